"""Probabilities equal direct sums."""

from __future__ import annotations

from fractions import Fraction
from math import comb

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidegate.sampling.reservoirs.distributions import binomial_sf, hypergeometric_cdf, mean_inverse


@pytest.mark.parametrize(("least", "trials", "p"), [(1, 5, 0.1), (3, 9, 0.7), (40, 1_000, 0.05)])
def test_a_binomial_tail_is_the_sum_of_its_terms(least: int, trials: int, p: float) -> None:
    rest, some = 0.0, (1 - p) ** trials
    for count in range(least):
        rest += some
        some *= (trials - count) / (count + 1) * p / (1 - p)
    assert binomial_sf(least, trials, p) == pytest.approx(1 - rest, abs=1e-12)


def test_edges_of_a_binomial_tail() -> None:
    assert binomial_sf(0, 5, 0.0) == 1
    assert binomial_sf(1, 5, 0.0) == 0
    assert binomial_sf(5, 5, 1.0) == 1
    assert binomial_sf(6, 5, 1.0) == 0


@given(st.integers(1, 40), st.integers(1, 40), st.floats(0.001, 1))
def test_the_mean_inverse_is_exact(most: int, trials: int, p: float) -> None:
    exact = sum(
        comb(trials, n)
        * Fraction(p) ** n
        * (1 - Fraction(p)) ** (trials - n)
        * Fraction(1, max(1, min(most, n)))
        for n in range(trials + 1)
    )
    assert mean_inverse(most, trials, p) == pytest.approx(float(exact), rel=1e-9)


def test_the_mean_inverse_of_many_trials_is_close_to_the_inverse_mean() -> None:
    assert mean_inverse(10**9, 10**8, 0.01) == pytest.approx(1e-6, rel=1e-5)
    assert mean_inverse(1000, 10**8, 0.01) == pytest.approx(1e-3, rel=1e-12)


def test_the_hypergeometric_tail_of_very_many_rows_is_binomial() -> None:
    assert hypergeometric_cdf(100, 10**15, 10**15, 190) == pytest.approx(
        1 - binomial_sf(101, 190, 0.5), rel=1e-9
    )
