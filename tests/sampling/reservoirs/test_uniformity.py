"""Equations 2, 3 and 8 of the reservoir paper equal exact arithmetic."""

from __future__ import annotations

from fractions import Fraction
from math import comb

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tidegate as tg
from tidegate import InputError
from tidegate.sampling import (
    inclusion_chances,
    recovery_count,
    refill_confidence,
    retained_chances,
    uniformity_confidence,
)
from tidegate.sampling.reservoirs.uniformity import retained

SMALL = st.tuples(st.integers(1, 12), st.integers(0, 40), st.integers(1, 12), st.integers(0, 40))


def exact_terms(k: int, r: int, delta: int, m: int) -> list[Fraction]:
    """Equation 3 as printed, for x from 0 to r."""
    samples = comb(k + m, r + delta)
    return [Fraction(comb(k, x) * comb(m, r + delta - x), samples) for x in range(r + 1)]


@given(SMALL)
def test_confidence_equals_equation_2(case: tuple[int, int, int, int]) -> None:
    r, more, delta, later = case
    k, m = r + 1 + more, delta + later
    exact = sum(exact_terms(k, r, delta, m))
    assert uniformity_confidence(k, r, delta, m) == pytest.approx(float(exact), rel=1e-12, abs=1e-290)
    assert exact < 1, "theorem 1"


@given(SMALL)
def test_retained_rows_follow_equation_3_normalised(case: tuple[int, int, int, int]) -> None:
    r, more, delta, later = case
    k, m = r + more, delta + later
    terms = exact_terms(k, r, delta, m)
    expected = [float(term / sum(terms)) for term in terms]
    assert retained_chances(k, r, delta, m) == pytest.approx(expected, rel=1e-11, abs=1e-280)
    mean = sum(x * term for x, term in enumerate(terms)) / sum(terms)
    old, new = inclusion_chances(k, r, delta, m)
    assert old == pytest.approx(float(mean / k))
    assert new == pytest.approx(float((r + delta - mean) / m))
    assert {retained(k, r, delta, m, u) for u in np.linspace(0, 1, 99)} <= {
        x for x, term in enumerate(terms) if term
    }


@given(SMALL, st.floats(0.001, 0.999))
def test_the_recovery_count_equals_a_linear_search(case: tuple[int, int, int, int], threshold: float) -> None:
    r, more, delta, _ = case
    k = r + 1 + more
    if recovery_count(k, r, delta, threshold) < 3000:
        searched = next(m for m in range(3000) if uniformity_confidence(k, r, delta, m) >= threshold)
        assert recovery_count(k, r, delta, threshold) == searched


def test_the_curve_of_figures_2_and_3_rises_and_stays_below_one() -> None:
    counts = [*range(1000, 12_001, 500)]
    curve = [uniformity_confidence(10_000, 100, 50, m) for m in counts]
    assert np.all(np.diff(curve) > 0)
    assert curve[0] < 1e-6
    assert curve[counts.index(9000)] > 0.999
    magnified = [sum(exact_terms(10_000, 100, 50, m)) for m in (9000, 12_000)]
    assert magnified[0] < magnified[1] < 1


def test_large_numbers_are_finite() -> None:
    k, r, delta = 10**12, 10**6, 10**5
    m = recovery_count(k, r, delta, 0.9)
    confidence = uniformity_confidence(k, r, delta, m)
    assert 0.9 <= confidence < 0.9001
    # A sample holds (r + delta) * k / (k + m) old rows on average, 1.28 standard deviations below r.
    mean = (r + delta) * k / (k + m)
    deviation = (mean * m / (k + m)) ** 0.5
    assert (r + 0.5 - mean) / deviation == pytest.approx(1.2816, abs=0.01)


@given(st.integers(0, 60), st.floats(0.001, 1), st.integers(0, 70))
def test_refilling_is_binomial(results: int, fraction: float, size: int) -> None:
    p = Fraction(fraction)
    exact = sum(comb(results, n) * p**n * (1 - p) ** (results - n) for n in range(size, results + 1))
    assert refill_confidence(results, fraction, size) == pytest.approx(float(exact), rel=1e-9, abs=1e-280)


def test_refilling_from_many_results() -> None:
    assert refill_confidence(10**12, 1e-9, 1000) == pytest.approx(0.5042, abs=1e-3)
    assert refill_confidence(10**12, 0, 1) == 0
    assert refill_confidence(0, 0.5, 0) == 1


def test_edges() -> None:
    assert uniformity_confidence(10, 10, 5, 0) == 1, "it held all it saw"
    assert uniformity_confidence(11, 10, 0, 0) == 1
    assert uniformity_confidence(11, 10, 5, 4) == 0
    assert recovery_count(10, 10, 5, 0.9) == 0
    assert tg.sampling.uniformity_confidence is uniformity_confidence


@pytest.mark.parametrize("threshold", [0, 1, -0.5, 90, float("nan"), "high", None, True])
def test_a_threshold_is_between_0_and_1(threshold: float) -> None:
    with pytest.raises(InputError, match=r"threshold must be .* above 0 and below 1"):
        recovery_count(10, 5, 2, threshold)


def test_invalid_counts_are_refused() -> None:
    with pytest.raises(InputError, match="r is 0; give a whole number of rows, at least 1"):
        uniformity_confidence(10, 0, 1, 1)
    with pytest.raises(InputError, match="delta must be a whole number, at least 0; got -1"):
        uniformity_confidence(10, 5, -1, 1)
    with pytest.raises(InputError, match=r"k must be a whole number, at least 0; got 1\.5"):
        uniformity_confidence(1.5, 5, 1, 1)  # type: ignore[arg-type]
    with pytest.raises(InputError, match="m must be at least delta, which is 3; got 2"):
        retained_chances(10, 5, 3, 2)
    with pytest.raises(InputError, match=r"k must be at least r, which is .*; got 4"):
        retained_chances(4, 5, 3, 9)
    with pytest.raises(InputError, match=r"fraction must be between 0 and 1; got 1\.5"):
        refill_confidence(10, 1.5, 3)
