"""Compares counts with their expected values, by Pearson's chi-square."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike


def deviations(counts: ArrayLike, expected: ArrayLike) -> float:
    """The distance of chi-square from its mean, in standard deviations; the total of the counts is fixed."""
    observed, wanted = np.asarray(counts, float), np.asarray(expected, float) * np.ones(np.shape(counts))
    freedom = observed.size - 1
    return float((np.sum((observed - wanted) ** 2 / wanted) - freedom) / np.sqrt(2 * freedom))
