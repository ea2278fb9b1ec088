"""Benefits that follow from one another equal those that are summed."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidegate import InputError
from tidegate.experiments.stochastic_streams.printed_recursion import later, trusted
from tidegate.models import AR1, History, LinearTrend, Noise, Oracle, Problem, Process, RandomWalk, Stationary
from tidegate.policies import Exponential, Fixed
from tidegate.policies.heeb import DriftingBenefit, earlier, expected_benefit, over_time

NOISES = st.builds(Noise, st.integers(0, 6), st.none() | st.floats(0.3, 5)) | st.builds(
    Noise, st.none(), st.floats(0.3, 4)
)
TRENDS = st.builds(LinearTrend, st.floats(-3, 3), st.floats(-9, 9), NOISES)
INDEPENDENT = st.one_of(
    TRENDS,
    st.just(Stationary({0: 0.5, 1: 0.3, 2: 0.2})),
    st.just(Stationary({1: 1.0})),
    st.lists(st.integers(0, 3), min_size=1, max_size=60).map(Oracle),
)
PROBLEMS = st.sampled_from(["joining", "caching"])
SURVIVALS = st.builds(Exponential, st.floats(0.3, 30))
VALUES = st.lists(st.integers(-15, 15), min_size=1, max_size=5)


@given(INDEPENDENT, SURVIVALS, PROBLEMS, VALUES, st.integers(0, 9), st.integers(0, 40))
def test_over_time_is_the_sum_at_each_time(
    process: Process, survival: Exponential, problem: Problem, values: list[int], now: int, steps: int
) -> None:
    table = over_time(process, History(now), values, survival, steps, problem=problem)
    assert table.shape == (len(values), steps + 1)
    for step in range(0, steps + 1, 7):
        summed = expected_benefit(process, History(now + step), values, survival, problem=problem)
        assert table[:, step] == pytest.approx(summed, abs=1e-11)


@given(INDEPENDENT, SURVIVALS, PROBLEMS, VALUES, st.integers(0, 9))
def test_a_step_forward_is_the_sum_of_the_next_time_and_a_step_back_undoes_it(
    process: Process, survival: Exponential, problem: Problem, values: list[int], now: int
) -> None:
    before, after = (
        expected_benefit(process, History(at), values, survival, problem=problem) for at in (now, now + 1)
    )
    chance = process.probability(History(now), np.array([1]), np.array(values))[:, 0]
    stepped = later(before, chance, survival.alpha, problem=problem)
    unsure = (problem == "caching") & (chance >= 1)
    assert (np.isnan(stepped) == unsure).all()
    usual = ~unsure & (chance < 0.99)
    assert stepped[usual] == pytest.approx(after[usual], abs=1e-8)
    back = earlier(after, chance, survival.alpha, problem=problem)
    assert back == pytest.approx(before, abs=1e-11)


def test_steps_forward_lose_digits_as_predicted_and_steps_back_do_not() -> None:
    alpha, still = 10.0, Stationary({0: 0.3, 1: 0.7})
    true = 0.3 / math.expm1(1 / alpha)
    benefit, errors = np.array([0.3 / math.expm1(1 / alpha)]), []
    for _ in range(600):
        benefit = later(benefit, np.array([0.3]), alpha)
        errors.append(abs(benefit[0] - true) / true)
    assert max(errors[: trusted(alpha)]) < 1e-9
    assert errors[-1] > 1
    table = over_time(still, History(0), [0], Exponential(alpha), 600)
    assert np.abs(table - true).max() < 1e-11


def test_infinite_survival_in_caching_is_an_infinite_alpha() -> None:
    still = Stationary({0: 0.3, 1: 0.7})
    chance = still.share(np.array([0]))
    assert later(np.array([1.0]), chance, math.inf, problem="caching") == pytest.approx(1.0)
    assert earlier(np.array([1.0]), chance, math.inf, problem="caching") == pytest.approx(1.0)


@given(
    st.integers(-4, 4).filter(bool),
    st.floats(-9, 9),
    NOISES,
    SURVIVALS,
    PROBLEMS,
    st.integers(-20, 20),
    st.lists(st.integers(-200, 200), min_size=1, max_size=8),
)
def test_one_table_serves_every_value_at_every_time(
    speed: int,
    offset: float,
    noise: Noise,
    survival: Exponential,
    problem: Problem,
    now: int,
    values: list[int],
) -> None:
    trend = LinearTrend(speed, offset, noise)
    table = DriftingBenefit(trend, survival, problem)
    summed = expected_benefit(trend, History(now), values, survival, problem=problem)
    assert table.of(now, values) == pytest.approx(summed, abs=1e-11)
    # Corollary 5: the same lies ahead of a value that is as far from the centre at another time.
    moved = np.array(values) + speed * 13
    assert table.of(now + 13, moved) == pytest.approx(table.of(now, values), abs=1e-15)


@pytest.mark.parametrize("process", [AR1(0, 0.5, 1), RandomWalk(0, Noise(1))], ids=repr)
def test_processes_that_are_not_independent_are_refused(process: Process) -> None:
    with pytest.raises(InputError, match="is not independent"):
        over_time(process, History(0, 0), [1], Exponential(5), 3)


@pytest.mark.parametrize("speed", [0, 0.5])
def test_a_table_wants_a_whole_speed(speed: float) -> None:
    with pytest.raises(InputError, match=f"speed is {speed}"):
        DriftingBenefit(LinearTrend(speed, 0, Noise(1)), Exponential(5))


ONE = np.array([0.5])


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: later(ONE, ONE, 0), "alpha is 0; give a number above 0"),
        (lambda: later(ONE, ONE, -1), "alpha is -1; give a number above 0"),
        (lambda: later(ONE, ONE, math.nan), "alpha is nan"),
        (lambda: earlier(ONE, ONE, 0), "alpha is 0; give a number above 0"),
        (lambda: earlier(ONE, ONE, "slow"), "alpha is 'slow'"),  # type: ignore[arg-type]
        (lambda: trusted(0), "alpha is 0"),
        (lambda: trusted(10, error=0), "error is 0"),
        (lambda: over_time(Oracle([1]), History(0), [1], Exponential(5), -1), "steps is -1; .* at least 0"),
        (lambda: over_time(Oracle([1]), History(0), [1], Fixed(5), 1), r"survival is Fixed\("),  # type: ignore[arg-type]
        (lambda: DriftingBenefit(Oracle([1]), Exponential(5)), "give a LinearTrend"),  # type: ignore[arg-type]
        (lambda: DriftingBenefit(LinearTrend(1, 0, Noise(1)), 5.0), "survival is 5.0"),  # type: ignore[arg-type]
    ],
)
def test_what_is_wrong_is_named(call: Callable[[], object], message: str) -> None:
    with pytest.raises(InputError, match=message):
        call()
