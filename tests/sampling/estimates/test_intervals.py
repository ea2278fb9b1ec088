"""Quantiles of Student's t equal published tables; the interval of a count is the Poisson mid-P interval."""

from __future__ import annotations

import math

import numpy as np
import pytest

from tidegate.sampling import estimate
from tidegate.sampling.estimates.intervals import of_mean, of_total, student_quantile
from tidegate.sampling.estimates.moments import Moments, OrderedDraws


@pytest.mark.parametrize(
    ("level", "expected"),
    [(0.9, [6.3138, 2.9200, 2.0150, 1.6973, 1.6449]), (0.95, [12.7062, 4.3027, 2.5706, 2.0423, 1.9600])],
)
def test_student_quantiles_equal_published_tables(level: float, expected: list[float]) -> None:
    found = student_quantile(np.array([1, 2, 5, 30, 1e12]), level)
    assert np.allclose(found, expected, rtol=5e-5)


def below(count: int, mean: float) -> float:
    """For a Poisson variable: the probability of less than `count`, plus half that of `count`."""
    chances = [math.exp(-mean + k * math.log(mean) - math.lgamma(k + 1)) for k in range(count + 1)]
    return sum(chances) - chances[-1] / 2


@pytest.mark.parametrize("count", [5, 10, 30, 200])
def test_counts_have_mid_p_limits(count: int) -> None:
    chance, tolerance = 1e-6, 0.11 / count
    draws = OrderedDraws.of(np.zeros(count, np.int64), None, np.full(count, chance), None, 1)
    low, high = of_total(draws.moments(np.ones(count)), 0.9)
    assert below(count, float(low[0]) * chance) == pytest.approx(0.95, abs=tolerance)
    assert below(count, float(high[0]) * chance) == pytest.approx(0.05, abs=tolerance)


def test_without_skewness_it_is_the_normal_interval() -> None:
    zero, one = np.zeros(1), np.ones(1)
    low, high = of_total(Moments(10 * one, 4 * one, zero, zero, one, one), 0.9)
    assert (low[0], high[0]) == pytest.approx((10 - 2 * 1.644854, 10 + 2 * 1.644854))


def test_equal_draws_have_an_interval_of_width_zero() -> None:
    for value, count in ((1.0, 100), (0.0, 2)):
        few = {"x": np.full(count, value), "probability": np.full(count, 0.25)}
        [row] = estimate(few, "avg(x)", method="uniform").to_pylist()
        assert row["low"] == row["estimate"] == row["high"] == value


def test_the_mean_of_one_draw_has_no_interval_and_that_of_a_census_is_exact() -> None:
    one, zero = np.ones(1), np.zeros(1)
    assert np.isnan(of_mean(one, Moments(zero, zero, zero, zero, zero, one), 0.9)).all()
    assert np.array_equal(of_mean(one, Moments(zero, zero, zero, zero, zero, zero), 0.9), [one, one])


def test_the_interval_of_a_mean_uses_the_farther_end_with_and_without_skewness() -> None:
    """One value is far above the others: the upper end moves, the lower end is that of Student's t."""
    values = np.array([1.0, 2.0, 3.0, 4.0, 30.0])
    few = {"x": values, "probability": np.full(5, 1e-9)}
    [row] = estimate(few, "avg(x)", method="uniform").to_pylist()
    error = values.std(ddof=1) / math.sqrt(5)
    t = (row["estimate"] - row["low"]) / error
    assert row["estimate"] == pytest.approx(8)
    assert t == pytest.approx(student_quantile(np.array([4.0]), 0.9)[0])
    assert row["high"] - 8 > 1.5 * (8 - row["low"])


def test_a_dominant_cluster_is_compared_with_the_mean_of_the_others() -> None:
    """Nine clusters of one result and one of 90: the mean is nearly that of the large one, and uncertain."""
    owner = np.repeat(np.arange(10), [90, *[1] * 9])
    value = np.where(owner == 0, 10.0, owner)
    given = {"x": value, "owner": owner, "probability": np.full(99, 0.01)}
    [row] = estimate(given, "avg(x)", level=0.9).to_pylist()
    assert row["estimate"] == pytest.approx((900 + 45) / 99)
    assert row["low"] < 1
    assert row["high"] > 15
