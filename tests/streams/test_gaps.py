"""Gaps are within their bounds and have their true rate."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidegate.streams.gaps import Gaps, arrival_times, row_count, true_rate

KINDS: list[Gaps] = ["even", "poisson", "uniform"]


@pytest.mark.parametrize("gaps", KINDS)
def test_the_true_rate_is_met(gaps: Gaps) -> None:
    arrived = arrival_times(gaps, 5.0, 100_000, np.random.default_rng(1))
    assert 100_000 / arrived[-1] == pytest.approx(true_rate(gaps, 5.0), rel=0.01)


def test_uniform_gaps_have_four_fifths_of_the_rate() -> None:
    assert true_rate("uniform", 1.0) == 0.8
    gaps = np.diff(arrival_times("uniform", 2.0, 10_000, np.random.default_rng(0)))
    assert 0.25 - 1e-9 < gaps.min() < 0.26
    assert 0.99 < gaps.max() < 1.0 + 1e-9


@given(st.sampled_from(KINDS), st.floats(0.01, 100), st.floats(0, 200), st.integers(0, 2**32))
def test_the_row_count_covers_the_span(gaps: Gaps, rate: float, span: float, seed: int) -> None:
    assert arrival_times(gaps, rate, row_count(rate, span), np.random.default_rng(seed))[-1] >= span
