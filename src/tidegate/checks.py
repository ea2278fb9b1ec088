"""The laws that every policy and sampler obeys, for the tests of this project and for authors of new ones.

Examples
--------
>>> import tidegate as tg
>>> tg.checks.check_policy(tg.policies.Fifo())
>>> tg.checks.check_sampler(tg.sampling.EqCluster())
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Final, TypeAlias

import numpy as np

from tidegate.engine.arrivals import Arrivals
from tidegate.engine.encode import encode
from tidegate.engine.join import Join
from tidegate.engine.operator import Operator, collected
from tidegate.engine.policy_retention import PolicyRetention
from tidegate.engine.replay import Recording
from tidegate.engine.sampler_retention import SamplerRetention
from tidegate.engine.simulate import future_of, run, simulate
from tidegate.engine.simulate_sample import simulate_sample
from tidegate.streams import Trace
from tidegate.types import SIDES, Budget, Pairs, Sampled, Window

if TYPE_CHECKING:
    from tidegate.engine.report import Report
    from tidegate.policies import Policy, RunningPolicy
    from tidegate.sampling import Sampler
    from tidegate.types import Order, Split, StepSize

Law: TypeAlias = "Callable[[Policy], None]"
SamplerLaw: TypeAlias = "Callable[[Sampler], None]"

_WINDOW: Final = Window(20, 12)
_SHAPES: Final[tuple[tuple[StepSize, Order, Split], ...]] = (
    (1, "probe-first", "shared"),
    ("instant", "shed-first", "even"),
    (7, "probe-first", (5, 3)),
    (50, "probe-first", "shared"),
)


def _traces() -> tuple[Trace, Trace]:
    rng = np.random.default_rng(7)
    sides = []
    for n in (150, 130):
        columns = {"key": rng.integers(0, 9, n), "time": np.sort(rng.integers(0, 90, n))}
        sides.append(Trace.of(columns | {"importance": rng.integers(1, 9, n).astype(float)}))
    return sides[0], sides[1]


def _report(policy: Policy, step: StepSize, order: Order, split: Split) -> Report:
    left, right = _traces()
    return simulate(
        left,
        right,
        window=_WINDOW,
        budget=8,
        policy=policy,
        step=step,
        order=order,
        split=split,
        collect=True,
    )


def _shapes(policy: Policy) -> list[tuple[StepSize, Order, Split]]:
    """The shapes of a run whose order the policy supports."""
    return [shape for shape in _SHAPES if shape[1] in policy.orders]


def _arrivals() -> Arrivals:
    return encode(*_traces(), _WINDOW, "=", None).arrivals


def _operator(policy: Policy, budget: Budget) -> tuple[Operator[Pairs], RunningPolicy]:
    """An operator for steps of six rows, with the future if the policy needs it, and its running policy."""
    future = None
    if "future" in policy.needs:
        recording = Recording.of(_arrivals(), 6)
        pairs = run(recording, Join(_WINDOW), collect=True).pairs
        future = pairs and future_of(recording, pairs)
    join = Join(_WINDOW, budget, policy, seed=3)
    retention = PolicyRetention(join, future)
    return Operator(join, retention), retention.policy


def _running(policy: Policy, budget: Budget) -> Iterator[tuple[Operator[Pairs], RunningPolicy]]:
    """An operator after each of its steps, and its running policy."""
    arrivals = _arrivals()
    operator, running = _operator(policy, budget)
    for step in arrivals.steps(arrivals.cuts(6), whole_instants=False):
        collected(operator.step(*step))
        yield operator, running


def deterministic(policy: Policy) -> None:
    """The same input and seed give the same results."""
    for shape in _shapes(policy):
        first, second = (_report(policy, *shape).pairs for _ in range(2))
        assert first is not None
        assert second is not None
        for side in SIDES:
            same = np.array_equal(getattr(first, side), getattr(second, side))
            assert same, f"{policy} gave other results the second time, at step={shape[0]}"


def pure(policy: Policy) -> None:
    """`scores` changes no state, and returns a number for every row, in any order of the rows."""
    for operator, running in _running(policy, Budget(rows=20)):
        for buffer in operator.buffers.values():
            rows, now = buffer.rows, operator.state.number * 6
            first, second = (running.scores(rows, now) for _ in range(2))
            assert first.shape == (len(rows),), f"{policy} scored {len(rows)} rows with shape {first.shape}"
            assert not np.isnan(first).any(), f"{policy} scored a row with NaN"
            assert np.array_equal(first, second), (
                f"{policy} scored the same rows differently when asked again"
            )
            backwards = running.scores(rows.take(slice(None, None, -1)), now)[::-1]
            assert np.allclose(first, backwards), (
                f"{policy} let a row's score depend on the other rows' order"
            )


def bounded(policy: Policy) -> None:
    """The buffered rows never exceed the budget, in rows or in bytes, after any step."""
    for budget in (Budget(rows=1), Budget(rows=8), Budget(bytes=300)):
        for operator, _ in _running(policy, budget):
            held = operator.rows if budget.unit == "rows" else operator.nbytes
            assert held <= budget.limit, f"{policy} held {held} {budget.unit} of {budget.limit}"
    for shape in _shapes(policy):
        assert _report(policy, *shape).peak_rows <= 8, (
            f"{policy} held more than its budget at step={shape[0]}"
        )


def subset(policy: Policy) -> None:
    """Every result is one of the exact join's, once; a large budget produces all of them."""
    left, right = _traces()
    exact = simulate(left, right, window=_WINDOW, collect=True).pairs
    assert exact is not None
    true = set(zip(exact.left.tolist(), exact.right.tolist(), strict=True))
    for shape in _shapes(policy):
        pairs = _report(policy, *shape).pairs
        assert pairs is not None
        found = list(zip(pairs.left.tolist(), pairs.right.tolist(), strict=True))
        assert len(found) == len(set(found)), f"{policy} gave a result twice at step={shape[0]}"
        assert set(found) <= true, f"{policy} gave a result that is not in the exact join at step={shape[0]}"
    large = simulate(left, right, window=_WINDOW, budget=10_000, policy=policy, step=6)
    assert large.results == len(true), (
        f"{policy} lost {len(true) - large.results} results though all rows fit"
    )


def restorable(policy: Policy) -> None:
    """Restoring a snapshot changes nothing."""
    plain = [operator.snapshot() for operator, _ in _running(policy, Budget(rows=8))]
    arrivals = _arrivals()
    operator, _ = _operator(policy, Budget(rows=8))
    for number, step in enumerate(arrivals.steps(arrivals.cuts(6), whole_instants=False)):
        collected(operator.step(*step))
        state = operator.snapshot()
        assert state == plain[number], f"{policy} differed after a restore, at step {number}"
        operator, _ = _operator(policy, Budget(rows=8))
        operator.restore(state)


def described(policy: Policy) -> None:
    """Its parameters make an equal policy, after conversion to JSON and back; they may be None."""
    parameters = policy.parameters()
    if parameters is not None:
        try:
            plain = json.loads(json.dumps(parameters))
        except TypeError as error:
            raise AssertionError(f"{policy} has parameters {parameters}, which JSON cannot hold") from error
        made = type(policy).from_parameters(plain)
        assert made == policy, f"{policy} has parameters {parameters}, which make {made}"


LAWS: Final[tuple[Law, ...]] = (deterministic, pure, bounded, subset, restorable, described)


def check_policy(policy: Policy) -> None:
    """Check every law for a policy; an AssertionError states which law is broken, and how."""
    for law in LAWS:
        law(policy)


_SAMPLED_STEPS: Final[tuple[StepSize, ...]] = (1, "instant", 7, 50)


def _sampling_operator(sampler: Sampler, budget: Budget) -> Operator[Sampled]:
    join = Join(_WINDOW, budget, seed=3)
    return Operator(join, SamplerRetention(join, sampler))


def _sampling_steps(sampler: Sampler, budget: Budget) -> Iterator[Operator[Sampled]]:
    """An operator after each of its steps."""
    arrivals = _arrivals()
    operator = _sampling_operator(sampler, budget)
    for step in arrivals.steps(arrivals.cuts(6), whole_instants=False):
        collected(operator.step(*step))
        yield operator


def _sample(
    sampler: Sampler, step: StepSize, budget: int | None = 8, seed: int = 0
) -> list[tuple[int, int, float]]:
    left, right = _traces()
    report = simulate_sample(
        left, right, window=_WINDOW, budget=budget, sampler=sampler, step=step, seed=seed
    )
    assert budget is None or report.peak_rows <= budget, f"{sampler} held {report.peak_rows} rows of {budget}"
    columns = (report.pairs.left, report.pairs.right, report.pairs.probability)
    return list(zip(*(column.tolist() for column in columns), strict=True))


def sample_is_deterministic(sampler: Sampler) -> None:
    """The same input and seed give the same sample; other seeds give other samples."""
    for step in _SAMPLED_STEPS:
        first, second = (_sample(sampler, step) for _ in range(2))
        assert first == second, f"{sampler} gave another sample the second time, at step={step}"
    others = [_sample(sampler, 50, seed=seed) for seed in range(5)]
    assert any(other != others[0] for other in others), f"{sampler} gave the same sample for every seed"


def sample_is_bounded(sampler: Sampler) -> None:
    """The buffered rows never exceed the budget, in rows or in bytes, after any step."""
    for budget in (Budget(rows=1), Budget(rows=8), Budget(bytes=300)):
        for operator in _sampling_steps(sampler, budget):
            held = operator.rows if budget.unit == "rows" else operator.nbytes
            assert held <= budget.limit, f"{sampler} held {held} {budget.unit} of {budget.limit}"


def sample_is_subset(sampler: Sampler) -> None:
    """Every sampled result is one of the exact join's, once, with a probability above 0 and at most 1."""
    left, right = _traces()
    exact = simulate(left, right, window=_WINDOW, collect=True).pairs
    assert exact is not None
    true = set(zip(exact.left.tolist(), exact.right.tolist(), strict=True))
    for step in _SAMPLED_STEPS:
        sample = _sample(sampler, step)
        found = [(left, right) for left, right, _ in sample]
        assert len(found) == len(set(found)), f"{sampler} gave a result twice at step={step}"
        assert set(found) <= true, f"{sampler} gave a result that is not in the exact join at step={step}"
        probabilities = [probability for *_, probability in sample]
        assert all(0 < p <= 1 for p in probabilities), (
            f"{sampler} gave a probability outside (0, 1] at step={step}"
        )
    if sampler.p is None:
        whole = _sample(sampler, 6, None)
        assert {pair[:2] for pair in whole} == true, f"{sampler} lost results though all rows fit"
        assert all(p == 1 for *_, p in whole), f"{sampler} has a probability below 1 though all rows fit"


def sampler_is_restorable(sampler: Sampler) -> None:
    """Restoring a snapshot changes nothing."""
    plain = [operator.snapshot() for operator in _sampling_steps(sampler, Budget(rows=8))]
    arrivals = _arrivals()
    operator = _sampling_operator(sampler, Budget(rows=8))
    for number, step in enumerate(arrivals.steps(arrivals.cuts(6), whole_instants=False)):
        collected(operator.step(*step))
        state = operator.snapshot()
        assert state == plain[number], f"{sampler} differed after a restore, at step {number}"
        operator = _sampling_operator(sampler, Budget(rows=8))
        operator.restore(state)


SAMPLER_LAWS: Final[tuple[SamplerLaw, ...]] = (
    sample_is_deterministic,
    sample_is_bounded,
    sample_is_subset,
    sampler_is_restorable,
)


def check_sampler(sampler: Sampler) -> None:
    """Check every law for a sampler; an AssertionError states which law is broken, and how."""
    for law in SAMPLER_LAWS:
        law(sampler)
