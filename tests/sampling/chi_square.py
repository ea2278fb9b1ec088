"""How far counts are from what they should be, by Pearson's chi-square."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike


def deviations(counts: ArrayLike, expected: ArrayLike) -> float:
    """Chi-square in standard deviations from its mean, for counts of which all but one are free."""
    observed, due = np.asarray(counts, float), np.asarray(expected, float) * np.ones(np.shape(counts))
    free = observed.size - 1
    return float((np.sum((observed - due) ** 2 / due) - free) / np.sqrt(2 * free))
