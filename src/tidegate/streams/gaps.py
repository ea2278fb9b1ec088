"""Arrival times of generated streams, by the gaps between rows."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Literal

import numpy as np

if TYPE_CHECKING:
    from tidegate.types import Array

Gaps = Literal["even", "poisson", "uniform"]
"""Gaps at a rate `r`: all `1/r`; exponential with that mean; or uniform between `1/(2r)` and `2/r`."""

MIN_GAP, MAX_GAP = 0.5, 2.0
"""The range of uniform gaps, in units of `1/r`."""


def arrival_times(gaps: Gaps, rate: float, rows: int, rng: np.random.Generator) -> Array:
    """The arrival times of `rows` rows, the first one gap after time 0."""
    if gaps == "even":
        lengths = np.full(rows, 1.0)
    elif gaps == "poisson":
        lengths = rng.exponential(1.0, rows)
    else:
        lengths = rng.uniform(MIN_GAP, MAX_GAP, rows)
    return np.cumsum(lengths) / rate


def true_rate(gaps: Gaps, rate: float) -> float:
    """Rows per unit of time in the long run.

    Examples
    --------
    >>> true_rate("even", 5.0), true_rate("uniform", 5.0)
    (5.0, 4.0)

    Deviations
    ----------
    Memory-Limited Execution of Windowed Stream Joins, section 6.2, calls `r` the average rate of uniform gaps;
    their mean is `1.25/r`, so that the rate is `0.8 r` and a window of 500 at `r = 1` holds 400 rows.
    """
    return rate * 2 / (MIN_GAP + MAX_GAP) if gaps == "uniform" else rate


def row_count(rate: float, span: float) -> int:
    """A number of rows that covers a span of time: ten standard deviations more than the mean."""
    mean = rate * span
    return math.ceil(mean + 10 * math.sqrt(mean) + 10)
