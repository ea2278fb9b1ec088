"""Quantiles of few draws have little bias, and intervals have their level.

The runs of a design are groups of one call. Seeds are fixed.
"""

from __future__ import annotations

from functools import cache
from typing import NamedTuple

import numpy as np
import pytest

from tidegate.sampling import estimate
from tidegate.types import Array

RUNS = 4_000


class QuantileRuns(NamedTuple):
    """The coverage of intervals over many samples, and the error of the mean estimate.

    The error is in standard errors of 200 runs; two are allowed.
    """

    coverage: float
    error: float
    low: Array
    high: Array


@cache
def skewed(size: int) -> Array:
    """Values of a lognormal distribution at evenly spaced shares, without randomness."""
    rng = np.random.default_rng(1)
    normal = np.sort(rng.standard_normal((2_000, size)), axis=1).mean(axis=0)
    return np.asarray(100 * np.exp(0.5 * normal))


def estimate_runs(rows: Array, values: Array, q: float, size: int = 1) -> QuantileRuns:
    """Each row of `rows` is a sample of clusters, each with several results of equal value."""
    runs, draws = rows.shape
    sample = {
        "x": np.repeat(values[rows].ravel(), size),
        "run": np.repeat(np.arange(runs), draws * size),
        "owner": np.repeat(np.arange(rows.size), size),
        "probability": np.full(rows.size * size, draws / len(values)),
    }
    found = estimate(sample, f"quantile(x, {q})", by="run", method="reservoir" if size == 1 else None)
    middle, low, high = (found[name].to_numpy() for name in ("estimate", "low", "high"))
    exact = float(np.quantile(values, q))
    return QuantileRuns(
        float((~(low > exact) & ~(high < exact)).mean()),
        float((middle.mean() - exact) / middle.std() * np.sqrt(200)),
        low,
        high,
    )


def drawn(draws: int, size: int, runs: int = RUNS) -> Array:
    """A sample without replacement from `size` results, for each run."""
    rng = np.random.default_rng(draws)
    return rng.random((runs, size)).argpartition(draws, axis=1)[:, :draws]


@pytest.mark.parametrize("q", [0.25, 0.5, 0.75, 0.9])
@pytest.mark.parametrize("draws", [10, 20, 40])
def test_quantiles_of_few_draws(draws: int, q: float) -> None:
    """With two draws or fewer on one side there is a bias: 2 % here, less than a fifth of the standard error."""
    found = estimate_runs(drawn(draws, 500), skewed(500), q)
    assert 0.88 <= found.coverage <= 0.93
    assert abs(found.error) <= (1 if draws * min(q, 1 - q) > 2.5 else 2.6)


@pytest.mark.parametrize("q", [0.5, 0.9])
@pytest.mark.parametrize("draws", [60, 120])
def test_a_sample_of_a_large_part_has_a_smaller_variance(draws: int, q: float) -> None:
    """120 of 150 results have a fifth of the variance of 120 of very many."""
    found = estimate_runs(drawn(draws, 150), skewed(150), q)
    wide = estimate_runs(drawn(draws, 5_000, 400), skewed(5_000), q)
    assert 0.87 <= found.coverage <= 0.93
    part = np.median(found.high - found.low) / np.median(wide.high - wide.low)
    assert part == pytest.approx((1 - draws / 150) ** 0.5, rel=0.15)


@pytest.mark.parametrize("q", [0.5, 0.9])
def test_results_of_one_cluster_count_once(q: float) -> None:
    """Seven results of each value; with fewer clusters the coverage would vary, as there are no values between."""
    rows, values = drawn(25, 500), skewed(500)
    alone, together = estimate_runs(rows, values, q), estimate_runs(rows, values, q, size=7)
    assert 0.87 <= together.coverage <= 0.93
    assert np.nanmedian(together.low) == pytest.approx(np.nanmedian(alone.low), rel=0.03)
    assert np.isnan(together.high).all() == np.isnan(alone.high).all() == (q > 0.5)


def test_without_one_end_the_other_has_the_whole_error_probability() -> None:
    """Every eighth sample of 20 draws has none of the largest tenth; the lower end may miss in one of ten."""
    found = estimate_runs(drawn(20, 500), skewed(500), 0.9)
    assert np.isnan(found.high).all()
    assert 0.08 <= (found.low > np.quantile(skewed(500), 0.9)).mean() <= 0.12


def test_a_single_cluster_has_no_interval() -> None:
    sample = {"x": np.arange(40.0), "owner": np.ones(40), "probability": np.full(40, 0.1)}
    [row] = estimate(sample, "median(x)").to_pylist()
    assert (row["low"], row["high"]) == (None, None)
    assert row["estimate"] == pytest.approx(19.5)


def test_many_draws_give_the_plain_quantile() -> None:
    values = np.random.default_rng(3).lognormal(4, 0.5, 2_000)
    for q in (0.1, 0.5, 0.99):
        [row] = estimate({"x": values, "probability": np.full(2_000, 0.01)}, f"quantile(x, {q})").to_pylist()
        assert row["estimate"] == pytest.approx(np.quantile(values, q, method="hazen"), rel=1e-4)


def test_an_outlier_has_limited_influence() -> None:
    [row] = estimate({"x": [*range(1, 10), 1e6], "probability": np.full(10, 0.5)}, "median(x)").to_pylist()
    assert row["low"] <= row["estimate"] <= row["high"]
    endless = {"x": [1.0, 2, 3, 4, 5, 6, 7, 8, np.inf, np.inf], "probability": np.full(10, 0.5)}
    [row] = estimate(endless, "median(x)").to_pylist()
    assert row["low"] <= row["estimate"] <= row["high"]


def test_estimates_of_heavy_tails_are_within_their_intervals() -> None:
    rng = np.random.default_rng(5)
    values, group = rng.lognormal(0, 2, 16_000), np.repeat(np.arange(1_000), 16)
    for q in (0.5, 0.75):
        sample = {"x": values, "group": group, "probability": np.full(16_000, 0.1)}
        found = estimate(sample, f"quantile(x, {q})", by="group").to_pandas()
        assert (found["estimate"] > 0).all()
        assert not (found["estimate"] < found["low"]).any()
