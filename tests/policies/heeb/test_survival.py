"""Survival functions are probabilities that never rise, and expected benefits are the sums they say."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidegate import InputError
from tidegate.experiments.stochastic_streams.dominance import cumulative_benefit, dominates
from tidegate.experiments.stochastic_streams.survivals import Infinite, Inverse
from tidegate.models import AR1, History, LinearTrend, Noise, Oracle, Problem, Process, RandomWalk, Stationary
from tidegate.policies import Exponential, Fixed, Survival
from tidegate.policies.heeb import expected_benefit

STILL = Stationary({0: 0.5, 1: 0.3, 2: 0.2})
TREND = LinearTrend(1, -2, Noise(4, sigma=2.0))
PROCESSES: list[Process] = [
    STILL,
    TREND,
    RandomWalk(0.5, Noise(sigma=1.0)),
    AR1(1, 0.5, 2),
    Oracle([1, 2, 1, 0, 1, 2, 2, 1]),
]
SURVIVALS = st.one_of(
    st.builds(Fixed, st.integers(1, 20)),
    st.just(Infinite()),
    st.just(Inverse()),
    st.builds(Exponential, st.floats(0.05, 40)),
)
PROBLEMS = st.sampled_from(["joining", "caching"])


@given(SURVIVALS)
def test_survival_is_a_probability_that_never_rises(survival: Survival) -> None:
    left = survival.at(np.arange(1, 60))
    assert (left >= 0).all()
    assert (left <= 1).all()
    assert left[0] > 0
    assert (np.diff(left) <= 0).all()


@given(SURVIVALS)
def test_a_survival_is_restored_from_its_parameters(survival: Survival) -> None:
    assert Survival.from_parameters(json.loads(json.dumps(survival.to_parameters()))) == survival


@given(st.floats(1.001, 1e6))
def test_alpha_follows_from_the_mean_lifetime(lifetime: float) -> None:
    survival = Exponential.from_lifetime(lifetime)
    assert survival.lifetime == pytest.approx(lifetime, rel=1e-9)
    assert 1 / (1 - math.exp(-1 / survival.alpha)) == pytest.approx(lifetime, rel=1e-6)


@given(st.floats(0.001, 1000))
def test_beyond_its_reach_an_exponential_survival_is_negligible_and_not_long_before(alpha: float) -> None:
    survival = Exponential(alpha)
    reach = survival.negligible_after()
    tail = math.exp(-(reach + 1) / alpha) / -math.expm1(-1 / alpha)
    assert tail <= 1.0001e-12
    if reach > 1:
        assert math.exp(-reach / alpha) / -math.expm1(-1 / alpha) > 0.999e-12


@given(
    st.sampled_from(PROCESSES),
    SURVIVALS,
    PROBLEMS,
    st.lists(st.tuples(st.integers(-3, 12), st.integers(0, 15)), min_size=1, max_size=5),
)
def test_expected_benefit_is_the_sum_of_what_each_step_adds(
    process: Process, survival: Survival, problem: Problem, rows: list[tuple[int, int]]
) -> None:
    history = History(2, 1)
    values, lasting = [value for value, _ in rows], [last for _, last in rows]
    found = expected_benefit(process, history, values, survival, problem=problem, lasting=lasting)
    for row, (value, last) in enumerate(rows):
        [benefit] = cumulative_benefit(process, history, [value], 15, problem=problem)
        added = np.diff(benefit, prepend=0.0)
        by_hand = sum(added[d - 1] * survival.at(np.array([d]))[0] for d in range(1, last + 1))
        assert found[row] == pytest.approx(by_hand, abs=1e-12)


@given(SURVIVALS, PROBLEMS, st.lists(st.integers(-9, 20), min_size=2, max_size=6))
def test_who_dominates_never_ranks_lower(survival: Survival, problem: Problem, values: list[int]) -> None:
    history = History(3)
    benefits = cumulative_benefit(TREND, history, values, 60, problem=problem)
    ranks = expected_benefit(TREND, history, values, survival, problem=problem, ahead=60)
    for one in range(len(values)):
        for other in range(len(values)):
            if dominates(benefits[one], benefits[other]):
                assert ranks[one] >= ranks[other] - 1e-12
            if survival.at(np.array([1]))[0] > 1e-6 and dominates(
                benefits[one], benefits[other] + 1e-6, strongly=True
            ):
                assert ranks[one] > ranks[other]


def test_table_1() -> None:
    history, values = History(0), [0, 1, 2]
    fixed = expected_benefit(STILL, history, values, Fixed(7))
    assert fixed == pytest.approx(cumulative_benefit(STILL, history, values, 7)[:, -1])
    ever = expected_benefit(STILL, history, values, Infinite(), problem="caching", ahead=500)
    assert ever == pytest.approx(np.ones(3))
    # The mean of the inverse of a geometric waiting time.
    waiting = expected_benefit(STILL, history, values, Inverse(), problem="caching", ahead=500)
    shares = np.array([0.5, 0.3, 0.2])
    assert waiting == pytest.approx(-shares * np.log(shares) / (1 - shares))
    falling = expected_benefit(STILL, history, values, Exponential(10))
    assert falling == pytest.approx(shares / math.expm1(0.1))


def test_sums_without_bound_are_refused_and_those_with_one_are_not() -> None:
    for survival in (Infinite(), Inverse()):
        assert survival.converges(STILL, "caching")
        assert survival.converges(TREND, "joining")
        assert not survival.converges(STILL, "joining")
        assert not survival.converges(LinearTrend(0, 0, Noise(3)), "joining")
        assert not survival.converges(LinearTrend(1, 0, Noise(sigma=1)), "joining")
        with pytest.raises(InputError, match="has no bound; use Exponential or Fixed"):
            expected_benefit(STILL, History(0), [1], survival, ahead=10)
        with pytest.raises(InputError, match="give the number of steps to sum over"):
            expected_benefit(TREND, History(0), [1], survival)
        assert expected_benefit(STILL, History(0), [1], survival, lasting=[3])[0] > 0
    assert Fixed(3).converges(STILL, "joining")
    assert Exponential(3).converges(STILL, "joining")


def test_what_is_wrong_is_named() -> None:
    with pytest.raises(InputError, match=r"Fixed\(0\)"):
        Fixed(0)
    with pytest.raises(InputError, match="alpha is -1"):
        Exponential(-1)
    with pytest.raises(InputError, match=r"lifetime of 1.0 steps has no alpha"):
        Exponential.from_lifetime(1.0)
    with pytest.raises(InputError, match="survival 'Eternal' is not known; use one of Exponential, Fixed"):
        Survival.from_parameters({"survival": "Eternal"})
    for ahead in (0, -3, 1.5):
        with pytest.raises(InputError, match=f"ahead is {ahead}; give a whole number of steps, at least 1"):
            expected_benefit(STILL, History(0), [1], Exponential(3), ahead=ahead)  # type: ignore[arg-type]
    for wrong in ("exp", 3.0, None):
        with pytest.raises(InputError, match=rf"survival is {wrong!r}; give one such as Exponential\("):
            expected_benefit(STILL, History(0), [1], wrong)  # type: ignore[arg-type]
