"""Rows of both sides compare by expected results a unit of time, at whatever rates the sides bring rows."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import tidegate as tg
from tests.engine.test_bounded import both_ways
from tests.running_policy import observe
from tidegate.models import Frequency, LinearTrend, Noise, Stationary
from tidegate.policies import Exponential, FlowExpect, Heeb, IJoin, Life, Prob
from tidegate.types import Clocks, InputError, Rows, Setting, Side, Step, Window

if TYPE_CHECKING:
    from tidegate.policies import Policy, RunningPolicy
    from tidegate.types import Array

KEYS = 200
SHARES = np.arange(1, KEYS + 1) ** -0.8 / (np.arange(1, KEYS + 1) ** -0.8).sum()
MODEL = Frequency((np.arange(KEYS), SHARES), (np.arange(KEYS), SHARES))
STILL = Stationary((np.arange(KEYS), SHARES))
SPAN = 1_000.0


def side(counts: list[int], seed: int) -> dict[str, Array]:
    """A stream that brings so many rows in each of some equal stretches of time."""
    rng = np.random.default_rng(seed)
    stretch = SPAN / len(counts)
    times = [np.sort(rng.uniform(0, stretch, count)) + i * stretch for i, count in enumerate(counts)]
    return {"key": rng.choice(KEYS, sum(counts), p=SHARES), "time": np.concatenate(times)}


FASTER = side([400], 1), side([2_000], 2)
SLOWER = FASTER[::-1]
CHANGING = side([200, 1_000], 3), side([1_000, 200], 4)
STREAMS = {"right is faster": FASTER, "left is faster": SLOWER, "by turns": CHANGING}


def recall(
    streams: tuple[dict[str, Array], dict[str, Array]],
    policy: Policy | str,
    **settings: Any,  # noqa: ANN401 - those of simulate
) -> float:
    equal = [stream | {"importance": np.ones(len(stream["key"]))} for stream in streams]
    wanted: dict[str, Any] = {"window": (100, 100), "budget": 40, "split": "shared", "step": 1} | settings
    return tg.simulate(equal[0], equal[1], policy=policy, **wanted).recall


@pytest.mark.parametrize("streams", STREAMS)
@pytest.mark.parametrize(
    ("given", "learned"),
    [
        (Prob(MODEL, horizon=100), Prob(horizon=100)),
        (Life(MODEL, horizon=100), Life(horizon=100)),
        (Heeb(STILL, STILL, Exponential(50.0), horizon=100), Heeb(horizon=100)),
        (IJoin(expects=Prob(MODEL, horizon=100)), IJoin(expects=Prob(horizon=100))),
    ],
    ids=["prob", "life", "heeb", "ijoin by prob"],
)
@pytest.mark.parametrize("step", [1, 50])
def test_a_true_model_is_as_good_as_a_learned_one(
    streams: str, given: Policy, learned: Policy, step: int
) -> None:
    found, rival = (recall(STREAMS[streams], policy, step=step) for policy in (given, learned))
    assert found > 0.97 * rival


def test_rates_are_given_or_learned() -> None:
    learned = recall(FASTER, Prob(MODEL))
    given = recall(FASTER, Prob(MODEL, rates=(0.4, 2.0)))
    wrong = recall(FASTER, Prob(MODEL, rates=(1.0, 1.0)))
    assert given == pytest.approx(learned, rel=0.03)
    assert given > 1.1 * wrong


def test_divided_memory_needs_no_rates() -> None:
    for split in ("even", (30, 10)):
        ways = [recall(FASTER, Prob(MODEL, rates=rates), split=split) for rates in (None, (1.0, 1.0))]
        assert ways[0] == ways[1]


@pytest.mark.parametrize(
    "given", [Prob(MODEL), Prob(MODEL, rates=(0.4, 2.0)), Life(MODEL)], ids=["prob", "rates", "life"]
)
def test_an_optimal_division_is_as_good_as_a_shared_pool(given: Policy) -> None:
    assert recall(FASTER, given, split="optimal", step=20) > 0.93 * recall(FASTER, given, step=20)


@pytest.mark.parametrize("streams", STREAMS)
@pytest.mark.parametrize(
    "policy", [Prob(MODEL), Prob(MODEL, rates=(1, 3)), Prob(rates=(1, 3)), Life(rates=(1, 3))], ids=str
)
@pytest.mark.parametrize("step", [1, 5])
def test_the_compiled_loop_is_the_operator(streams: str, policy: Policy, step: Any) -> None:  # noqa: ANN401 - a step
    for split in ("shared", (25, 15)):
        settings: dict[str, Any] = {"window": (100, 60), "policy": policy, "split": split, "step": step}
        compiled, general = both_ways(
            partial(tg.simulate, *STREAMS[streams], **settings, budget=40, collect=True)
        )
        assert compiled == general


def rows_of(which: Side, keys: list[int], times: list[float]) -> Rows:
    none = np.zeros(len(keys), np.int64)
    return Rows(which, np.array(keys), np.array(times), np.arange(len(keys)), none)


def shown(
    policy: Policy, left: list[int], right: list[int], *, keys: list[int], window: Window
) -> RunningPolicy:
    """The policy after steps at the times 0, 1 and so on, which bring so many rows of each side."""
    setting = Setting(window)
    running = policy.start(setting)
    for now, counts in enumerate(zip(left, right, strict=True)):
        arrived = dict(zip(("left", "right"), counts, strict=True))
        rows = {s: rows_of(s, (keys * n)[:n], [float(now)] * n) for s, n in arrived.items()}  # type: ignore[arg-type]
        none: Any = {s: np.zeros(n, np.int64) for s, n in arrived.items()}
        clocks = Clocks.both(float(now))
        observe(running, setting, Step(now, clocks, clocks, rows, {"left": 0, "right": 0}, none, {}, 0.0, 0))  # type: ignore[arg-type]
    return running


TWO = Frequency({1: 0.75, 2: 0.25}, {1: 0.4, 2: 0.6})


def test_scores_by_hand() -> None:
    """In 4 units of time come 4 rows on the left and 16 on the right, the first instant left aside."""
    prob = shown(Prob(TWO, horizon=1e12), [1] * 5, [4] * 5, keys=[1], window=Window(10, 20))
    # Beside the right, which brings four times as many rows, the left counts a quarter.
    assert prob.scores(rows_of("left", [1, 2, 3], [4.0] * 3), 4.0) == pytest.approx([0.4, 0.6, 0])
    assert prob.scores(rows_of("right", [1, 2, 3], [4.0] * 3), 4.0) == pytest.approx([0.1875, 0.0625, 0])
    life = shown(Life(TWO, horizon=1e12), [1] * 5, [4] * 5, keys=[1], window=Window(10, 20))
    assert life.scores(rows_of("left", [1, 2], [4.0, 0.0]), 4.0) == pytest.approx([0.4 * 10, 0.6 * 6])
    assert life.scores(rows_of("right", [1, 2], [4.0, 0.0]), 4.0) == pytest.approx([0.1875 * 20, 0.0625 * 16])
    known = shown(Prob(TWO, rates=(2, 3)), [1] * 5, [4] * 5, keys=[1], window=Window(10, 20))
    assert known.scores(rows_of("left", [1, 2], [4.0] * 2), 4.0) == pytest.approx([1.2, 1.8])
    assert known.scores(rows_of("right", [1, 2], [4.0] * 2), 4.0) == pytest.approx([1.5, 0.5])


@pytest.mark.parametrize("counts", [([1] * 5, [1] * 5), ([1, 2, 1, 2, 1], [1, 2, 1, 2, 0]), ([3], [1])])
def test_equal_rates_leave_given_shares_as_they_are(counts: tuple[list[int], list[int]]) -> None:
    prob = shown(Prob(TWO), *counts, keys=[1], window=Window(10, 20))
    assert prob.scores(rows_of("left", [1, 2], [0.0] * 2), 4.0).tolist() == [0.4, 0.6]
    assert prob.scores(rows_of("right", [1, 2], [0.0] * 2), 4.0).tolist() == [0.75, 0.25]


def test_rows_that_the_other_side_has_passed_stay_below_all_others() -> None:
    line = LinearTrend(1, 0, Noise(bound=2))
    prob = shown(Prob(TWO, left=line, right=line), [1] * 5, [4] * 5, keys=[1], window=Window(10, 20))
    assert prob.scores(rows_of("left", [1, 2], [0.0] * 2), 4.0).tolist() == [-1, -1]


def test_a_side_that_fell_silent_after_its_first_instant_is_not_taken_for_fast() -> None:
    """Where a unit of time is short, a rate that is not known yet must not count as a row each."""
    million = 1_000_000
    setting = Setting(Window(100 * million, 100 * million))
    running = Prob().start(setting)
    for now in range(3):
        rows = {
            "left": rows_of("left", [1] * 5, [now * million] * 5),
            "right": rows_of("right", [1] * (5 if now == 0 else 0), [0] * (5 if now == 0 else 0)),
        }
        none: Any = {s: np.zeros(len(r), np.int64) for s, r in rows.items()}
        clocks = Clocks.both(now * million)
        observe(running, setting, Step(now, clocks, clocks, rows, {"left": 0, "right": 0}, none, {}, 0.0, 0))  # type: ignore[arg-type]
    left, right = (running.scores(rows_of(s, [1], [0]), 2 * million)[0] for s in ("left", "right"))
    assert 0 < left < right / 5


def test_plans_with_processes_count_rows_of_both_sides() -> None:
    streams = side([100], 1), side([500], 2)
    settings: dict[str, Any] = {"budget": 6, "step": "instant", "window": (None, None)}
    left, right = ({"key": s["key"] % 20, "time": np.floor(s["time"] / 20)} for s in streams)
    shares = np.bincount(np.arange(KEYS) % 20, SHARES)
    still = Stationary((np.arange(20), shares))
    found = {
        p: recall((left, right), p, **settings)
        for p in (FlowExpect(still, still, ahead=4), FlowExpect(ahead=4))
    }
    assert min(found.values()) > 0.9 * max(found.values())


@pytest.mark.parametrize("rates", [(1,), (0, 1), (1, -1), (1, float("inf")), "fast", (1, "2")])
def test_what_are_no_rates_is_refused(rates: Any) -> None:  # noqa: ANN401 - that is the point
    with pytest.raises(InputError, match="rate"):
        Prob(MODEL, rates=rates)
    with pytest.raises(InputError, match="rate"):
        Life(MODEL, rates=rates)


def test_rates_are_restored_from_parameters() -> None:
    for policy in (Prob(MODEL, rates=(1, 3)), Life(rates=(1, 3))):
        tg.checks.check_policy(policy)
