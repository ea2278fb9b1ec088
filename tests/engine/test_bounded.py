"""Within a budget: the same rows stay and the same pairs leave as in the plain reference."""

import subprocess
import sys
from collections.abc import Callable
from functools import partial
from typing import Any, get_args

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tidegate as tg
from tests.engine.brute_force import Bounded, Name, Spans, jain
from tests.engine.cases import STEPS, Streams, drawn_streams, is_part, pairs_of, streams
from tidegate import Band, Budget, Last, Report
from tidegate.engine.one_loop import run as one_loop_run
from tidegate.engine.tally import Measured
from tidegate.types import Array, Condition, Order, Rows, Split, StepSize, Time

ROW_BYTES = 4 * 8
"""A row without importance: key, time, id and matches; a `Last` window adds a count."""

NAMES: tuple[Name, ...] = get_args(Name)
SPLITS: list[Split] = ["shared", "even", (3, 1), (0, 2), (1, 0)]
PROBE_FIRST: list[Spans] = [
    (5, 5),
    (6, 0),
    (0, 0),
    (8, -3),
    (-2, 9),
    (None, 2),
    (None, None),
    (Last(3), Last(2)),
    (Last(2), 4),
]
SHED_FIRST: list[Spans] = [(5, 5), (6, 0), (0, 0), (None, 2), (None, None)]


def check(case: Streams, reference: Bounded, lateness: int | None = None, *, in_bytes: bool = False) -> None:
    limit = reference.limit
    assert limit is not None
    report = case.simulate(
        reference.window,
        budget=Budget(bytes=limit * ROW_BYTES + 5) if in_bytes else limit,
        policy=reference.policy,
        split=reference.split,
        order=reference.order,
        step=reference.step,
        condition=reference.condition,
        lateness=lateness,
    )
    expected = reference.run(case.arrived(lateness))
    assert pairs_of(report) == sorted(expected.pairs)
    assert report.results == len(expected.pairs)
    assert {name: getattr(report, name) for name in expected.origins} == expected.origins
    assert (report.evicted, report.expired) == (expected.evicted, expected.expired)
    assert report.peak_rows == expected.peak_rows <= limit
    counts = sum(isinstance(span, Last) for span in reference.window)
    assert report.peak_bytes == expected.peak_rows * (ROW_BYTES + 8 * counts)
    assert report.fairness == pytest.approx(jain(expected.lifetimes))
    exact = case.exact(reference.window, reference.condition, lateness)
    assert report.exact == len(exact)
    assert is_part(pairs_of(report), exact)
    assert report.recall == (report.results / len(exact) if exact else 1.0)


@settings(max_examples=250)
@given(
    streams(),
    st.sampled_from(PROBE_FIRST),
    st.integers(4, 8),
    st.sampled_from(NAMES),
    st.sampled_from(SPLITS),
    st.sampled_from(STEPS),
)
def test_probe_first(
    case: Streams, window: Spans, limit: int, policy: Name, split: Split, step: StepSize
) -> None:
    check(case, Bounded(window, limit, policy, split, "probe-first", step))


@settings(max_examples=200)
@given(
    streams(),
    st.sampled_from(SHED_FIRST),
    st.integers(4, 8),
    st.sampled_from(NAMES),
    st.sampled_from(SPLITS),
    st.sampled_from(STEPS),
)
def test_shed_first(
    case: Streams, window: Spans, limit: int, policy: Name, split: Split, step: StepSize
) -> None:
    check(case, Bounded(window, limit, policy, split, "shed-first", step))


@settings(max_examples=150)
@given(
    streams(),
    st.sampled_from(SHED_FIRST),
    st.integers(1, 3),
    st.sampled_from(NAMES),
    st.sampled_from(["<", "!=", ">=", Band(0, 1)]),
    st.sampled_from(STEPS),
    st.sampled_from(get_args(Order)),
)
def test_any_condition_and_a_tiny_budget(
    case: Streams,
    window: Spans,
    limit: int,
    policy: Name,
    condition: Condition,
    step: StepSize,
    order: Order,
) -> None:
    check(case, Bounded(window, limit, policy, "shared", order, step, condition))


@settings(max_examples=150)
@given(
    streams(),
    st.sampled_from([1, 4]),
    st.sampled_from([(5, 5), (2, 0), (6, -2), (None, 1)]),
    st.integers(1, 6),
    st.sampled_from(NAMES),
    st.sampled_from(STEPS),
)
def test_lateness(
    case: Streams, lateness: int, window: Spans, limit: int, policy: Name, step: StepSize
) -> None:
    check(case, Bounded(window, limit, policy, step=step, lateness=lateness), lateness)


@settings(max_examples=100)
@given(
    streams(),
    st.sampled_from(SHED_FIRST),
    st.integers(2, 6),
    st.sampled_from(NAMES),
    st.sampled_from(["shared", "even"]),
    st.sampled_from(STEPS),
    st.sampled_from(get_args(Order)),
)
def test_budget_in_bytes(
    case: Streams, window: Spans, limit: int, policy: Name, split: Split, step: StepSize, order: Order
) -> None:
    # Five bytes more than the rows take hold no further row, nor do their halves.
    if split == "even":
        limit += limit % 2
    check(case, Bounded(window, limit, policy, split, order, step), in_bytes=True)


def test_even_gives_the_left_the_odd_row() -> None:
    stream = {"key": [1, 2, 3], "time": [0, 1, 2]}
    alone: dict[str, list[int]] = {"key": [], "time": []}
    held = [
        tg.simulate(*sides, window=(9, 9), budget=3, split="even").peak_rows
        for sides in ((stream, alone), (alone, stream))
    ]
    assert held == [2, 1]


@settings(max_examples=150)
@given(
    streams(importance=True),
    st.sampled_from(["random", *NAMES]),
    st.integers(1, 8),
    st.sampled_from(PROBE_FIRST),
    st.sampled_from(STEPS),
    st.sampled_from(get_args(Order)),
    st.sampled_from(["=", "<"]),
)
def test_bounded_output_is_part_of_the_exact_one(
    case: Streams, policy: str, limit: int, window: Spans, step: StepSize, order: Order, condition: Condition
) -> None:
    report = case.simulate(
        window, policy=policy, budget=limit, step=step, order=order, condition=condition, seed=limit
    )
    assert is_part(pairs_of(report), case.exact(window, condition))
    assert report.from_left + report.from_right + report.from_step == report.results <= report.exact
    assert report.importance <= report.exact_importance + 1e-9
    assert report.peak_rows <= limit
    assert 0 < report.fairness <= 1 + 1e-9


def everything(report: Report) -> dict[str, Any]:
    values: dict[str, Any] = {
        name: value.tolist() if isinstance(value, np.ndarray) else value
        for name, value in vars(report).items()
        if name != "pairs"
    }
    for name in ("importance", "exact_importance", "fairness"):
        values[name] = pytest.approx(values[name])
    if report.pairs is not None:
        values["pairs"] = pairs_of(report)
    return values


def both_ways(simulated: Callable[[], Report]) -> tuple[dict[str, Any], dict[str, Any]]:
    """What the loop gives, which must have run, and what the general operator does."""
    ran = []

    def spied(*args: object, **keywords: object) -> Measured | None:
        ran.append(one_loop_run(*args, **keywords))  # type: ignore[arg-type]  # as it was called
        return ran[-1]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("tidegate.engine.one_loop._FEW", 100)
        patch.setattr("tidegate.engine.one_loop.run", spied)
        compiled = simulated()
        patch.setattr("tidegate.engine.one_loop.run", lambda *_, **__: None)
        general = simulated()
    assert ran[0] is not None or compiled.rows_left + compiled.rows_right == compiled.null_keys
    return everything(compiled), everything(general)


@settings(max_examples=300)
@given(
    streams(keys=("int", "text"), nulls=True, importance=True, max_rows=20),
    st.sampled_from([*PROBE_FIRST, (2.5, 3.75), (None, -1)]),
    st.sampled_from([None, 1, 4, 9]),
    st.sampled_from(["random", "prob", tg.policies.Life(window=(7, 5)), *NAMES]),
    st.sampled_from(["shared", "even", (1, 3), (0, 4)]),
    st.sampled_from([1, 3, "instant"]),
    st.sampled_from([0, 3, 40]),
    st.sampled_from(["min", "product"]),
    st.booleans(),
)
def test_the_compiled_loop_is_the_operator(
    case: Streams,
    window: Spans,
    limit: int | None,
    policy: str | tg.policies.Policy,
    split: Split,
    step: StepSize,
    warmup: int,
    combine: str,
    collect: bool,  # noqa: FBT001 - drawn
) -> None:
    if limit == 1:
        split = "shared"
    settings_ = {
        "budget": limit,
        "policy": policy,
        "split": split,
        "step": step,
        "warmup": warmup,
        "combine": combine,
        "collect": collect,
        "seed": 7,
    }
    compiled, general = both_ways(lambda: case.simulate(window, **settings_))
    assert compiled == general


def test_the_compiled_loop_is_the_operator_on_a_longer_run() -> None:
    draw = np.random.default_rng(3)
    left, right = (
        {"key": draw.zipf(1.6, 300) % 300, "time": np.sort(draw.integers(0, 300, 300))} for _ in range(2)
    )
    curves = tg.models.AgeCurve([0, 30, 80, 200], [1, 3, 2]), tg.models.AgeCurve([0, 5, 40, 90], [3, 1, 2])
    shares = range(300), np.arange(1, 301) / 45_150
    frequency = tg.models.Frequency(shares, shares)
    given = tg.policies.Age(*curves), tg.policies.Prob(frequency)
    learning = "prob", "life", tg.policies.Prob(horizon=40.0), tg.policies.Life(horizon=40.0)
    for policy in ("random", *NAMES, *given, *learning):
        for split, step in (("shared", 1), ((40, 10), 1), ("shared", "instant"), ((40, 10), 5)):
            settings_: dict[str, Any] = {"window": (200, 90), "policy": policy, "split": split, "step": step}
            simulated = partial(tg.simulate, left, right, **settings_, budget=50, collect=True)
            compiled, general = both_ways(simulated)
            assert compiled["results"] > 100
            assert compiled == general, (policy, split, step)


LINES = (
    tg.models.LinearTrend(1.0, -1.0, tg.models.Noise(10, 1.0)),
    tg.models.LinearTrend(1.0, 0.0, tg.models.Noise(15, 2.0)),
)
WALKS = (tg.models.RandomWalk(0.0, tg.models.Noise(sigma=1.0)),) * 2


@pytest.mark.parametrize("memory", [1, 10])
@pytest.mark.parametrize(
    ("processes", "policy"),
    [
        (LINES, tg.policies.Random(None, *LINES)),
        (LINES, tg.policies.Prob(left=LINES[0], right=LINES[1])),
        (LINES, tg.policies.Life(left=LINES[0], right=LINES[1])),
        (LINES, tg.policies.Heeb(*LINES, survival=tg.policies.Exponential(12.0))),
        (WALKS, tg.policies.Heeb(*WALKS, survival=tg.policies.Exponential(12.0))),
        (LINES, "offline"),
    ],
)
def test_the_compiled_loop_is_the_operator_where_keys_move(
    processes: tuple[Any, Any], policy: str | tg.policies.Policy, memory: int
) -> None:
    left, right = tg.streams.StochasticPair(*processes).both(800, 3)
    settings_: dict[str, Any] = {
        "window": (None, None),
        "budget": memory,
        "policy": policy,
        "step": "instant",
    }
    compiled, general = both_ways(lambda: tg.simulate(left, right, **settings_, warmup=100, collect=True))
    assert compiled["results"] > 50
    assert compiled == general


class Contrary(tg.policies.Random):
    """Inherits how `random` ranks, but keeps the oldest."""

    def scores(self, rows: Rows, now: Time) -> Array:
        return -rows.id.astype(np.float64)


class Patient(tg.policies.Prob):
    """Inherits how `prob` counts, but weighs by age."""

    def weight(self, rows: Rows, now: Time, reach: object = None) -> Array:
        return 1.0 + now - rows.time


class Matched(tg.policies.Fifo):
    """Inherits that scores are for good, but keeps those with most matches."""

    def scores(self, rows: Rows, now: Time) -> Array:
        return rows.matches.astype(np.float64)


SHARES = tg.models.Frequency(*[dict.fromkeys(range(10), 0.1)] * 2)


@pytest.mark.parametrize("policy", [Contrary(), Patient(), Patient(SHARES), Matched()])
def test_who_inherits_a_ranking_and_scores_otherwise_is_asked(policy: tg.policies.Policy) -> None:
    case = drawn_streams(4, "int", "int", rows=80)
    found = case.simulate((20, 20), policy=policy, budget=5)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("tidegate.engine.one_loop.run", lambda *_, **__: None)
        assert pairs_of(found) == pairs_of(case.simulate((20, 20), policy=policy, budget=5))


def random_pairs(seed: int) -> Array:
    case = drawn_streams(4, "text", "float", rows=80)
    report = case.simulate((9, 9), policy="random", budget=5, seed=seed, step=3)
    assert report.pairs is not None
    return np.concatenate(report.pairs)


def test_the_seed_decides() -> None:
    assert np.array_equal(random_pairs(1), random_pairs(1))
    assert not np.array_equal(random_pairs(1), random_pairs(2))


@pytest.mark.parametrize("step", [1, 5])
def test_a_seed_of_ones_own_overrules_the_join(step: int) -> None:
    case = drawn_streams(4, "int", "int", rows=80)
    found = [
        pairs_of(case.simulate((9, 9), policy=tg.policies.Random(seed=3), budget=5, seed=seed, step=step))
        for seed in (1, 2)
    ]
    assert found[0] == found[1]


def test_random_replays_in_another_process() -> None:
    code = "from tests.engine.test_bounded import random_pairs; print(random_pairs(5).tolist())"
    # The interpreter's own hashes differ from process to process.
    done = subprocess.run(  # noqa: S603 - our own code
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        check=True,
        env={"PYTHONPATH": ":".join(filter(None, [".", *sys.path])), "PYTHONHASHSEED": "12345"},
    )
    assert done.stdout.strip() == str(random_pairs(5).tolist())


def test_every_row_is_as_likely_to_be_dropped() -> None:
    # 40 rows compete for 20 places; over 200 seeds each should stay about half the time.
    left = {"key": np.arange(40), "time": np.zeros(40, np.int64)}
    right = {"key": np.arange(40), "time": np.ones(40, np.int64)}
    stayed = np.zeros(40)
    for seed in range(200):
        report = tg.simulate(
            left, right, window=(1, 0), budget=20, policy="random", step="instant", seed=seed, collect=True
        )
        assert report.pairs is not None
        stayed[report.pairs.left] += 1
    assert stayed.sum() == 200 * 20
    assert stayed.min() > 70
    assert stayed.max() < 130
