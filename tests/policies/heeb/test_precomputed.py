"""What is reckoned beforehand is what the sums give, or as near as it says."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tidegate import InputError
from tidegate.experiments.stochastic_streams.survivals import Infinite, Inverse
from tidegate.models import AR1, History, Noise, Problem, RandomWalk, gains
from tidegate.policies import Exponential, Fixed, Survival
from tidegate.policies.heeb import expected_benefit, h1, h2
from tidegate.policies.heeb.precomputed import steps_left
from tidegate.types import Array

NOISES = st.builds(Noise, st.integers(0, 4), st.none() | st.floats(0.3, 3)) | st.builds(
    Noise, st.none(), st.floats(0.3, 2)
)
WALKS = st.builds(RandomWalk, st.floats(-3, 3), NOISES)
PROBLEMS = st.sampled_from(["joining", "caching"])
WALK, LEVEL = RandomWalk(0, Noise(1)), AR1(0, 0.5, 2)
VALUES = np.arange(-30, 31)


@settings(deadline=None)
@given(WALKS, st.floats(0.3, 8), PROBLEMS, st.integers(-20, 20))
def test_h1_is_the_sum(walk: RandomWalk, alpha: float, problem: Problem, last: int) -> None:
    survival = Exponential(alpha)
    summed = expected_benefit(walk, History(3, last), VALUES, survival, problem=problem)
    assert h1(walk, survival, problem=problem).of(VALUES, last) == pytest.approx(summed, abs=1e-9)


@settings(deadline=None, max_examples=30)
@given(WALKS, st.sampled_from([Fixed(7), Infinite(), Inverse(), Exponential(4.0)]), PROBLEMS)
def test_h1_of_so_many_steps_is_their_sum(walk: RandomWalk, survival: Survival, problem: Problem) -> None:
    summed = gains(walk, History(0, 5), VALUES, 12, problem=problem) @ survival.at(np.arange(1, 13))
    assert h1(walk, survival, problem=problem, ahead=12).of(VALUES, 5) == pytest.approx(summed, abs=1e-12)


@pytest.mark.parametrize(
    "step", [Noise(sigma=1.0), Noise(3), Noise(9, sigma=2.0), Noise(sigma=20.0)], ids=repr
)
@pytest.mark.parametrize("survival", [Exponential(1.0), Exponential(30.0), Fixed(12)], ids=repr)
@pytest.mark.parametrize("problem", ["joining", "caching"])
def test_h1_is_the_same_either_way_to_the_last_digit(
    step: Noise, survival: Survival, problem: Problem
) -> None:
    away = np.arange(200)
    still = h1(RandomWalk(0, step), survival, problem=problem)
    assert (still.of(away) == still.of(-away)).all()
    up, down = (h1(RandomWalk(drift, step), survival, problem=problem) for drift in (0.3, -0.3))
    assert (up.of(away) == down.of(-away)).all()
    assert (up.of(-away) == down.of(away)).all()


@pytest.mark.parametrize("phi1", [0.97, 0.5, -0.97])
@pytest.mark.parametrize("survival", [Exponential(40.0), Fixed(300), Inverse()], ids=repr)
def test_some_far_steps_stand_for_all(phi1: float, survival: Survival) -> None:
    level, values = AR1(3, phi1, 4.0), np.arange(-60, 61)
    left, weights = steps_left(level, survival, 700)
    steps = np.arange(1, 701)
    for last in (0, 35):
        summed = level.probability(History(0, last), steps, values) @ survival.at(steps)
        found = level.reached(last, left, values[:, None]) @ weights
        assert found == pytest.approx(summed, abs=1e-11 * summed.max())
    assert phi1 == 0.5 or len(left) < 300


def test_figure_6() -> None:
    """Without drift the nearest is the best; with one, what lies ahead at whole multiples of it."""
    still, two, four = (
        h1(RandomWalk(d, Noise(sigma=1.0)), Exponential(10), problem="caching") for d in (0, 2, 4)
    )
    away = np.arange(25)
    assert (np.diff(still.of(away)) < 0).all()
    assert still.of(away) == pytest.approx(still.of(-away))
    assert two.of([-5]) < 0.01 < two.of([5])
    peaks = four.of(np.arange(0, 15))
    assert peaks[4] > max(peaks[2], peaks[6])
    assert peaks[8] > max(peaks[6], peaks[10])


LEVELS = [AR1(2, 0.5, 2), AR1(-3, -0.6, 3.5), AR1(0, 0.9, 1), AR1(5, 0, 4)]


@pytest.mark.parametrize("level", LEVELS, ids=repr)
@pytest.mark.parametrize("alpha", [0.7, 8.0])
@pytest.mark.parametrize("problem", ["joining", "caching"])
def test_h2_is_the_sum_where_control_points_are_next_to_each_other(
    level: AR1, alpha: float, problem: Problem
) -> None:
    surface = h2(level, Exponential(alpha), problem=problem)
    assert surface.spacing == 1
    for last in (-3, 0, 4):
        summed = expected_benefit(level, History(0, last), VALUES, Exponential(alpha), problem=problem)
        assert surface.of(VALUES, last) == pytest.approx(summed, abs=1e-9)


def error(level: AR1, problem: Problem, points: int | None = None, ahead: int | None = None) -> float:
    """The largest error between control points, beside the largest benefit."""
    survival = Exponential(6.0)
    surface = h2(level, survival, problem=problem, points=points, ahead=ahead)
    values = np.arange(round(level.mean - 9 * level.sigma), round(level.mean + 9 * level.sigma), 3)
    worst = 0.0
    for last in (level.mean + np.array([-5.1, -1.3, 0, 0.7, 3]) * level.sigma).astype(int).tolist():
        summed = expected_benefit(level, History(0, last), values, survival, problem=problem, ahead=ahead)
        worst = max(worst, float(np.abs(surface.of(values, last) - summed).max() / surface.benefits.max()))
    return worst


@pytest.mark.parametrize("level", [AR1(56, 0.72, 42.2), AR1(5, -0.6, 20), AR1(0, 0.85, 30)], ids=repr)
@pytest.mark.parametrize("problem", ["joining", "caching"])
def test_between_control_points_the_error_is_below_one_in_a_thousand_million(
    level: AR1, problem: Problem
) -> None:
    assert h2(level, Exponential(6.0), problem=problem).spacing > 1
    assert 0 < error(level, problem) < 1e-9


def compared(level: AR1, alpha: float, points: int | None) -> tuple[float, float]:
    """The largest error beside the largest benefit; and what the tenth of values ranked highest has of the best's."""
    survival, deviation = Exponential(alpha), level.sigma / (1 - level.phi1**2) ** 0.5
    surface = h2(level, survival, problem="caching", points=points)
    worst, least = 0.0, 1.0
    for last in (deviation * np.array([-2.1, -0.7, 0.03, 1.3])).astype(int).tolist():
        around = last + np.arange(-90, 91, 7)
        values = np.union1d(np.linspace(-3 * deviation, 3 * deviation, 200).astype(int), around)
        summed = expected_benefit(level, History(0, last), values, survival, problem="caching")
        interpolated, tenth = surface.of(values, last), len(values) // 10
        worst = max(worst, float(np.abs(interpolated - summed).max() / summed.max()))
        least = min(
            least, float(summed[np.argsort(interpolated)[-tenth:]].sum() / np.sort(summed)[-tenth:].sum())
        )
    return worst, least


@pytest.mark.parametrize(
    ("phi1", "points", "error", "worth"),
    [
        pytest.param(0.95, None, 1.5e-10, 0.9999, marks=pytest.mark.slow),
        pytest.param(0.99, None, 3e-8, 0.9999, marks=pytest.mark.slow),
        pytest.param(0.999, None, 1.5e-3, 0.9999, marks=pytest.mark.slow),
        (0.72, 64, 3.5e-5, 0.9999),
        (0.95, 64, 0.006, 0.9999),
        (0.99, 64, 0.08, 0.999),
        (0.999, 64, 0.45, 0.97),
    ],
)
def test_where_control_points_are_far_apart_the_error_is_as_stated(
    phi1: float, points: int | None, error: float, worth: float
) -> None:
    (short, kept), (long, _) = (compared(AR1(0, phi1, 30.0), alpha, points) for alpha in (6.0, 50.0))
    assert error / 2 < short < error
    assert long < short * 0.55
    assert kept > worth


def test_fewer_control_points_err_more() -> None:
    level = AR1(56, 0.72, 42.2)
    errors = [error(level, "joining", points) for points in (16, 32, 64, 128)]
    assert errors == sorted(errors, reverse=True)
    assert errors[0] < 0.2


def test_h2_of_so_many_steps_and_of_other_survivals() -> None:
    level = AR1(2, 0.5, 2)
    for survival, ahead in ((Fixed(7), None), (Inverse(), 9), (Infinite(), 9), (Exponential(5), 9)):
        steps = ahead or 7
        for problem in ("joining", "caching"):
            weights = survival.at(np.arange(1, steps + 1))
            summed = gains(level, History(0, 1), VALUES, steps, problem=problem) @ weights
            surface = h2(level, survival, problem=problem, ahead=ahead)
            assert surface.of(VALUES, 1) == pytest.approx(summed, abs=1e-12)


def test_a_level_that_is_long_remembered() -> None:
    """More chances than are kept at hand, for more steps than it takes to be forgotten."""
    level, survival = AR1(0, 0.95, 20), Exponential(60.0)
    values = np.arange(-100, 101, 20)
    summed: Array = expected_benefit(level, History(0, 40), values, survival)
    assert h2(level, survival).of(values, 40) == pytest.approx(summed, rel=1e-9)


def test_what_has_no_table_is_refused() -> None:
    with pytest.raises(InputError, match="does not cover a last value of 10000"):
        h2(AR1(0, 0.5, 2), Exponential(3)).of([1], 10_000)
    for find in (lambda: h1(RandomWalk(0, Noise(1)), Infinite()), lambda: h2(AR1(0, 0.5, 2), Inverse())):
        with pytest.raises(InputError, match="give the number of steps to sum over"):
            find()


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: h1(WALK, Exponential(3), ahead=0), "ahead is 0; give a whole number of steps, at least 1"),
        (
            lambda: h2(LEVEL, Exponential(3), ahead=-1),
            "ahead is -1; give a whole number of steps, at least 1",
        ),
        (lambda: h2(LEVEL, Exponential(3), points=0), "points is 0; give a whole number of control points"),
        (lambda: h2(LEVEL, Exponential(3), points=-2), "points is -2; give a whole number of control points"),
        (lambda: h1(WALK, "exp"), r"survival is 'exp'; give one such as Exponential\("),  # type: ignore[arg-type]
        (lambda: h2(LEVEL, 3.0), r"survival is 3.0; give one such as Exponential\("),  # type: ignore[arg-type]
        (lambda: h1(LEVEL, Exponential(3)), "not of AR1.*; use h2 for an AR1"),  # type: ignore[arg-type]
        (lambda: h2(WALK, Exponential(3)), "not of RandomWalk.*; use h1 for a RandomWalk"),  # type: ignore[arg-type]
    ],
)
def test_what_is_wrong_is_named(call: Callable[[], object], message: str) -> None:
    with pytest.raises(InputError, match=message):
        call()


def test_even_a_single_control_point_gives_a_surface() -> None:
    assert (h2(LEVEL, Exponential(3), points=1).of([0, 5], 0) >= 0).all()
