"""What was learned, taken up by a join that is set otherwise."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import permutations

import numpy as np
import pytest

import tidegate as tg
from tests.running_policy import policy_of
from tidegate import Budget, InputError, Window
from tidegate.engine.encode import encode
from tidegate.engine.join import Join
from tidegate.engine.operator import Operator, collected
from tidegate.models import AgeCurve, Frequency, LearnedFrequency
from tidegate.policies import Age, Heeb, IJoin, Life, Policy, Prob
from tidegate.policies.heeb import Exponential
from tidegate.streams import Trace
from tidegate.types import Pairs


def steps(window: Window, rows: int = 4_000, keys: int = 3_000) -> Iterator[tuple[object, ...]]:
    rng = np.random.default_rng(1)
    left, right = (
        Trace.of({"key": rng.integers(0, keys, rows), "time": np.sort(rng.random(rows)) * rows}) for _ in "lr"
    )
    arrivals = encode(left, right, window, "=", None).arrivals
    return arrivals.steps(arrivals.cuts(100), whole_instants=False)


def resumed(first: Join, then: Join, *, after: int = 30, policy: bool = True) -> Operator[Pairs]:
    """Run one join for some steps, then go on with the other."""
    operator = Operator(first)
    for number, (left, right, moment) in enumerate(steps(first.window)):
        if number == after:
            state = operator.snapshot()
            operator = Operator(then)
            operator.restore(state, learned=policy)
        collected(operator.step(left, right, moment))  # type: ignore[arg-type]
        if number > after + 20:
            break
    return operator


@pytest.mark.parametrize("policy", [Prob(), Life()], ids=repr)
@pytest.mark.parametrize("after", [7, 14, 26, 33])
@pytest.mark.parametrize(("before", "now"), [(1_000, 50), (50, 1_000)])
def test_another_budget(policy: Policy, after: int, before: int, now: int) -> None:
    window = Window(200.0, 200.0)
    joins = (Join(window, Budget(rows=limit), policy) for limit in (before, now))
    assert resumed(*joins, after=after).rows <= now


@pytest.mark.parametrize("horizon", [5.0, 10.0, 20.0, None])
def test_another_horizon_still_follows(horizon: float | None) -> None:
    learner = LearnedFrequency(horizon=10.0).start()
    for now in range(1_000):
        learner.observe("left", np.array([1, 2]), now)
    again = LearnedFrequency(horizon=horizon).start().restore(learner.snapshot())
    assert again.share("left", np.array([1]))[0] == pytest.approx(0.5)
    for now in range(1_000, 1_100):
        again.observe("left", np.full(10, 3), now)
    assert again.share("left", np.array([3]))[0] > 0.9


SHARES = Frequency(dict.fromkeys(range(1000), 0.001), dict.fromkeys(range(1000), 0.001))


@pytest.mark.parametrize(
    ("before", "now"),
    [
        *permutations(
            [Prob(), Prob(model=SHARES), Life(model=SHARES), Prob(rates=(1.0, 1.0), capacity=9)], 2
        ),
        *permutations([Age(), Age(AgeCurve([0.0, 100.0], [1.0])), Age(buckets=7)], 2),
        *permutations([Heeb(), Heeb(survival=Exponential(10.0))], 2),
        *permutations([IJoin(expects="prob"), IJoin(expects=Prob(model=SHARES))], 2),
    ],
    ids=lambda policy: repr(policy)[:60],
)
def test_other_settings_of_a_policy(before: Policy, now: Policy) -> None:
    window = Window(200.0, 200.0)
    joins = (Join(window, Budget(rows=50), policy) for policy in (before, now))
    assert resumed(*joins, after=10).rows <= 50


def test_another_window_starts_a_new_curve() -> None:
    before, now = (Join(Window(w, w), Budget(rows=80), Age()) for w in (300.0, 30_000.0))
    same, other = Operator(before), Operator(now)
    state = resumed(before, before).snapshot()
    for operator in (same, other):
        operator.restore(state)
    assert policy_of(same)._learners["left"].exposure.any()  # type: ignore[attr-defined]
    assert not policy_of(other)._learners["left"].exposure.any()  # type: ignore[attr-defined]


def test_a_switch_to_age_begins_with_the_switch() -> None:
    window = Window(300.0, 300.0)
    before, now = (Join(window, Budget(rows=400), policy) for policy in ("fifo", Age()))
    operator = resumed(before, now, after=30, policy=False)
    exposure = policy_of(operator)._learners["left"].exposure.sum()  # type: ignore[attr-defined]
    assert exposure < 21 * 60 * 400  # steps, the time that one takes, and rows at most


def test_a_given_curve_reaches_as_far_as_the_window() -> None:
    curve = tg.models.AgeCurve([0, 100, 1_000], [1, 9])
    operator = Operator(Join(Window(100.0, 0.0), Budget(rows=50), Age(curve)))
    for left, right, moment in steps(Window(100.0, 0.0), 500):
        collected(operator.step(left, right, moment))  # type: ignore[arg-type]
    left_payoff, right_payoff = operator.retention.payoffs()  # type: ignore[misc]
    assert left_payoff.full == pytest.approx(1.0, rel=0.2)
    assert right_payoff.full == 0


@pytest.mark.parametrize("policy", ["random", "age"])
def test_a_seed_of_numpy(policy: str) -> None:
    stream = {"key": np.arange(50) % 7, "time": np.arange(50)}
    run = {"window": (9, 9), "budget": 5, "policy": policy}
    assert (
        tg.simulate(stream, stream, seed=np.int64(3), **run).results  # type: ignore[arg-type]
        == tg.simulate(stream, stream, seed=3, **run).results  # type: ignore[arg-type]
    )


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (lambda: Prob(horizon=0), "horizon=0 must be a positive duration"),
        (lambda: Prob(capacity=0), "capacity 0 is not a number of keys"),
        (lambda: Prob(model={1: 1.0}), "is not a frequency model; give tidegate.models.Frequency"),  # type: ignore[arg-type]
        (lambda: Life(window=(1, 2, 3)), "is not a pair of spans"),  # type: ignore[arg-type]
        (lambda: Life(window=("10 minutes", 0)), "is not a pair of spans"),  # type: ignore[arg-type]
        (lambda: Age(horizon=-5), "horizon=-5 must be a positive duration"),
        (lambda: Age(buckets=2.5), "is not a number of ages"),  # type: ignore[arg-type]
        (lambda: Age(curve=[1, 2]), "is not an age curve"),  # type: ignore[arg-type]
        (lambda: Join(Window(1, 1), condition="<", policy="prob"), "does not work if keys match by '<'"),
    ],
)
def test_settings_are_checked_where_they_are_written(wrong: object, message: str) -> None:
    with pytest.raises(InputError, match=message):
        wrong()  # type: ignore[operator]
