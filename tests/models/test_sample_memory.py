"""The memory of a sample, by enumerating every sample."""

from __future__ import annotations

from itertools import product
from math import prod
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidegate import InputError
from tidegate.models import AgeCurve, Frequency, sample_rows
from tidegate.sampling import ProgressiveJoinReservoir, expected_results

FRACTIONS = st.floats(0.001, 1)


def expected_time(ages: list[float], fraction: float) -> float:
    """The expected time that a row with matches at these ages is buffered."""
    mean = 0.0
    for taken in product([False, True], repeat=len(ages)):
        chance = prod(fraction if yes else 1 - fraction for yes in taken)
        mean += chance * max((age for age, yes in zip(ages, taken, strict=True) if yes), default=0.0)
    return mean


@given(st.lists(st.integers(0, 2), min_size=1, max_size=6).filter(any), FRACTIONS, st.floats(0.1, 10))
def test_age_curves_hold_a_row_until_its_last_sampled_match(
    rates: list[int], fraction: float, rate: float
) -> None:
    curve = AgeCurve(range(len(rates) + 1), rates)
    matches = np.arange(1, sum(rates) + 1)
    expected = rate * expected_time(list(curve.inverse(matches)), fraction)
    window = (len(rates), len(rates))
    assert sample_rows(curve, fraction, rates=(rate, 7), window=window) == pytest.approx(expected)
    assert sample_rows((None, curve), fraction, rates=(7, rate), window=window) == pytest.approx(expected)
    both = sample_rows((curve, curve), fraction, rates=(rate, rate), window=window)
    assert both == pytest.approx(2 * expected)
    assert sample_rows(curve, fraction, rates=(rate, 7), window=(0, 9)) == 0


@given(st.lists(st.integers(0, 5), min_size=1, max_size=5).filter(any), FRACTIONS)
def test_frequencies_equal_a_constant_age_curve(matches: list[int], fraction: float) -> None:
    window, rate = 100.0, 3.0
    right = np.array(matches) / sum(matches)
    left = np.arange(1, len(matches) + 1) / sum(range(1, len(matches) + 1))
    rate_right = sum(matches) / window
    expected = sum(
        rate * share * expected_time([window * (i + 1) / n for i in range(n)], fraction)
        for share, n in zip(left, matches, strict=True)
    )
    found = sample_rows((left, right), fraction, rates=(rate, rate_right), window=(window, 0))
    assert found == pytest.approx(expected, rel=1e-9)
    swapped = sample_rows((right, left), fraction, rates=(rate_right, rate), window=(0, window))
    assert swapped == pytest.approx(expected, rel=1e-9)


@given(st.floats(0.1, 4.9), FRACTIONS, FRACTIONS)
def test_a_larger_sample_needs_more_memory(total: float, one: float, other: float) -> None:
    low, high = sorted([one, other])
    for model in (AgeCurve([0, 5, 10], [total / 3, 2 * total / 3]), ([0.2, 0.8], [0.6, 0.4])):
        rows = [sample_rows(model, p, rates=(1, total / 10), window=(10, 0)) for p in (0, low, high, 1)]
        assert rows[0] == 0
        assert np.all(np.diff(rows) >= -1e-9)
        assert rows[-1] <= 10 + 1e-9


def test_a_total_that_is_not_whole_is_a_mean() -> None:
    curve = AgeCurve([0, 10], [1.25])
    one, two = expected_time([10], 0.5), expected_time([5, 10], 0.5)
    expected = 0.75 * one + 0.25 * two
    assert sample_rows(curve, 0.5, rates=(1, 1), window=(10, 0)) == pytest.approx(expected)


def test_invalid_fractions_are_refused() -> None:
    curve = AgeCurve([0, 1], [1])
    with pytest.raises(InputError, match=r"fraction 1\.5"):
        sample_rows(curve, 1.5, rates=(1, 1), window=(1, 1))
    with pytest.raises(InputError, match="2 keys on the left and 1 on the right"):
        sample_rows(([0.5, 0.5], [1.0]), 0.5, rates=(1, 1), window=(1, 1))
    with pytest.raises(InputError, match="not a pair of age curves"):
        sample_rows((curve, [1.0]), 0.5, rates=(1, 1), window=(1, 1))  # type: ignore[arg-type]
    with pytest.raises(InputError, match="rate on the right is 0"):
        sample_rows(curve, 0.5, rates=(1, 0), window=(1, 1))


def test_a_frequency_equals_its_shares() -> None:
    model = Frequency({1: 0.5, 2: 0.5}, {2: 0.25, 3: 0.75})
    shares = ([0.5, 0.5, 0.0], [0.0, 0.25, 0.75])
    given: dict[str, Any] = {"rates": (1, 2), "window": (40, 30)}
    assert sample_rows(model, 0.3, **given) == sample_rows(shares, 0.3, **given)
    assert expected_results(model, 10, **given) == expected_results(shares, 10, **given)
    one, other = (ProgressiveJoinReservoir(5, 60, 100, some, (1, 2), (40, 30)) for some in (model, shares))
    assert one.memory(0.2) == other.memory(0.2)
    assert one.left(7) == other.left(7)


@pytest.mark.parametrize("model", [None, 7, "frequency", (1, 2, 3)])
def test_other_objects_are_refused(model: Any) -> None:  # noqa: ANN401 - of any kind
    with pytest.raises(InputError, match="is not a model of matches"):
        sample_rows(model, 0.3, rates=(1, 2), window=(40, 30))
