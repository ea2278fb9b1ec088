"""The memory that each sampling probability needs, and the probability that a budget allows.

The rows that a sampler holds at some moment are those of many arrivals that each stay at random. The spread of their
number is at most that of a Poisson variable with the same mean. So a mean that is `z` standard deviations below the
budget overflows no more often than a normal variable exceeds `z`.

References
----------
Memory-Limited Execution of Windowed Stream Joins, section 4.2.2 and footnote 2 of section 4.3.1.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from statistics import NormalDist
from typing import TYPE_CHECKING, Final

import numpy as np

from tidegate.compiled import kernel
from tidegate.models.validation import is_number
from tidegate.sampling.samplers.probability_levels import LOWEST
from tidegate.types import InputError

if TYPE_CHECKING:
    from tidegate.types import Array

MANY: Final = 200.0
"""From this number of expected matches on, their number and times are treated as fixed."""

_SLICES: Final = 16


def safe_mean(rows: float, overflow: float) -> float:
    """The mean number of held rows that exceeds a budget of `rows` with probability `overflow` at any moment.

    Examples
    --------
    >>> round(safe_mean(100, 0.01)), round(safe_mean(100, 0.5))
    (79, 100)
    """
    z = NormalDist().inv_cdf(1 - overflow)
    root = (np.sqrt(z * z + 4 * rows) - z) / 2  # of mean + z * sqrt(mean) = rows
    return float(root * root)


def needed(mean: float, overflow: float) -> float:
    """The budget that this mean number of held rows exceeds with probability `overflow`: the inverse of `safe_mean`.

    Examples
    --------
    >>> round(needed(safe_mean(100, 0.01), 0.01), 9)
    100.0
    """
    return float(mean + NormalDist().inv_cdf(1 - overflow) * np.sqrt(mean))


class MemoryModel(ABC):
    """The number of rows that each level of probability needs, in theory."""

    @abstractmethod
    def rows(self, level: int) -> float:
        """The mean number of held rows; it falls with the level."""

    def level(self, room: float, highest: int) -> int:
        """The level of the highest probability that fits, from level `highest` on."""
        low, high = highest, LOWEST
        while low < high:
            middle = (low + high) // 2
            low, high = (low, middle) if self.rows(middle) <= room else (middle + 1, high)
        return low


def check_overflow(overflow: float) -> None:
    """Refuse a value that is not a probability."""
    if not is_number(overflow) or not 0 < overflow < 1:
        raise InputError(f"overflow must be a probability between 0 and 1, such as 0.01; got {overflow!r}")


@kernel
def held_time(matches: float, cutoff: int, fraction: float, widths: Array, reached: Array) -> float:
    """The mean time for which UNIFORM holds a row whose matches come at random.

    After k matches, a row is held while one of those up to the cutoff is still to be drawn. That has the probability
    1 - (1-p)^(cutoff-k).

    Parameters
    ----------
    matches
        The expected number of matches of the row.
    cutoff
        The number of the last match that may be drawn.
    fraction
        The probability of each match to be drawn.
    widths, reached
        The widths of buckets of age, and the part of its matches that a row has had at each edge.
    """
    if cutoff <= 0 or fraction <= 0.0:
        return 0.0
    kept = np.log1p(-fraction) if fraction < 1.0 else -np.inf
    total = 0.0
    for b in range(len(widths)):
        low, high = matches * reached[b], matches * reached[b + 1]
        if matches > MANY:
            for s in range(_SLICES):
                had = low + (high - low) * (s + 0.5) / _SLICES
                if had < cutoff:
                    total += widths[b] / _SLICES * -np.expm1(kept * (cutoff - had))
            continue
        before, after = np.exp(-low), np.exp(-high)
        over_low, over_high = 1.0 - before, 1.0 - after
        for k in range(cutoff):
            # The part of the bucket during which a row has had k matches.
            part = (over_high - over_low) / (high - low) if high > low else before
            total += widths[b] * part * -np.expm1(kept * (cutoff - k))
            before *= low / (k + 1)
            after *= high / (k + 1)
            over_low -= before
            over_high -= after
    return total


@kernel
def held_times(matches: Array, cutoffs: Array, fraction: float, widths: Array, reached: Array) -> Array:
    """`held_time` for several classes of rows."""
    times = np.empty(len(matches))
    for i in range(len(matches)):
        times[i] = held_time(matches[i], cutoffs[i], fraction, widths, reached)
    return times


def proportional(sizes: Array, rows: Array, room: float) -> float:
    """The constant c for which rows drawn with probability min(1, c * size) fill the room.

    Parameters
    ----------
    sizes
        What probabilities are proportional to, for each class of rows.
    rows
        The number of rows of each class.
    room
        The mean number of rows that may be drawn; infinity is returned if all fit.

    Examples
    --------
    Three of one row of size 8 and four of size 1: the large one for certain, and half of the others.

    >>> proportional(np.array([8.0, 1.0]), np.array([1.0, 4.0]), room=3)
    0.5
    """
    if rows[sizes > 0].sum() <= room:
        return float(np.inf)
    capped = np.zeros(len(sizes), bool)
    while True:
        constant = (room - rows[capped].sum()) / (rows[~capped] @ sizes[~capped])
        more = ~capped & (constant * sizes > 1)
        if not more.any():
            return float(constant)
        capped |= more
