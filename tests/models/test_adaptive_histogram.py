"""Adaptive histograms learn a mean by position; splitting and merging loses no observations."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidegate import InputError
from tidegate.models.adaptive_histogram import AdaptiveHistogram
from tidegate.types import Array

SEEN = st.lists(st.tuples(st.integers(-30, 30), st.floats(0, 9)), min_size=1, max_size=60)


def moments(histogram: AdaptiveHistogram) -> Array:
    """The total weight, and the means and squared deviations of all values and positions."""
    count, mean, squares, place, spread = histogram.table[: histogram.used].T
    total = count.sum()
    middle, centre = (count @ mean) / total, (count @ place) / total
    return np.array(
        [
            total,
            middle,
            squares.sum() + count @ (mean - middle) ** 2,
            centre,
            spread.sum() + count @ (place - centre) ** 2,
        ]
    )


@given(SEEN, st.integers(1, 6))
def test_one_bucket_equals_numpy(seen: list[tuple[int, float]], buckets: int) -> None:
    places, values = np.array(seen).T
    histogram = AdaptiveHistogram(buckets)
    histogram.observe(places, values)
    expected = [len(seen), values.mean(), values.var() * len(seen), places.mean(), places.var() * len(seen)]
    assert moments(histogram) == pytest.approx(expected, abs=1e-7)


@given(st.lists(SEEN, min_size=1, max_size=8), st.integers(1, 6))
def test_splitting_and_merging_loses_nothing(batches: list[list[tuple[int, float]]], buckets: int) -> None:
    histogram = AdaptiveHistogram(buckets)
    for batch in batches:
        histogram.observe(*np.array(batch).T)
        before = moments(histogram)
        histogram.adapt()
        assert moments(histogram) == pytest.approx(before, rel=1e-9, abs=1e-7)
        assert 1 <= histogram.used <= buckets
        inner = histogram.edges[: histogram.used - 1]
        assert (np.diff(inner) > 0).all()
        assert np.isinf(histogram.edges[histogram.used - 1 :]).all()
        assert (histogram.table[histogram.used :] == histogram.table[-1]).all() or histogram.used == buckets


def learned(function: object, rounds: int = 40, buckets: int = 10) -> AdaptiveHistogram:
    rng, histogram = np.random.default_rng(1), AdaptiveHistogram(buckets)
    for _ in range(rounds):
        places = rng.integers(-40, 41, 100)
        histogram.forget(0.8)
        histogram.observe(places, function(places))  # type: ignore[operator]
        histogram.adapt()
    return histogram


def test_a_step_and_a_peak_are_learned() -> None:
    step = learned(lambda places: 1.0 * (places >= 7))
    assert step.mean([-30, 0, 15, 30]) == pytest.approx([0, 0, 1, 1], abs=0.05)
    hill = learned(lambda places: np.maximum(8.0 - np.abs(places - 5), 0))
    at = np.array([-30, -15, 1, 5, 9, 25, 30])
    assert hill.mean(at) == pytest.approx(np.maximum(8.0 - np.abs(at - 5), 0), abs=1.5)


def test_buckets_are_narrow_where_values_differ() -> None:
    step = learned(lambda places: 9.0 * (places >= 7), buckets=4)
    assert np.abs(step.edges[: step.used - 1] - 7).min() < 3


def test_forgotten_observations_lose_weight() -> None:
    histogram = learned(lambda places: np.ones(len(places)))
    for _ in range(20):
        histogram.forget(0.5)
        histogram.observe([0, 10, -10], [5, 5, 5])
    assert histogram.mean([0]) == pytest.approx([5], abs=0.1)
    assert histogram.weight == pytest.approx(6, abs=0.1)


def test_without_observations_the_mean_is_0() -> None:
    assert AdaptiveHistogram(3).mean([1, 2]).tolist() == [0, 0]
    assert len(AdaptiveHistogram(3).mean([])) == 0


def test_a_snapshot_continues_equally() -> None:
    one = learned(lambda places: places * 1.0)
    two = AdaptiveHistogram(10).restore(one.snapshot())
    for histogram in (one, two):
        histogram.observe([1, 2, 3], [4, 5, 6])
        histogram.adapt()
    at = np.arange(-50, 50)
    assert one.mean(at).tolist() == two.mean(at).tolist()


@pytest.mark.parametrize("buckets", [0, -1, 2.5, True])
def test_errors_name_the_value(buckets: int) -> None:
    with pytest.raises(InputError, match="buckets must be a positive whole number"):
        AdaptiveHistogram(buckets)
