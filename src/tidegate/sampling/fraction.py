"""How large a sample a budget allows: the memory that each fraction takes, turned around.

The rows that a sampler holds at a moment are those of many arrivals that each happened to stay. Such a number is
spread no wider than a Poisson variable of the same mean, so a mean that leaves `z` standard deviations of room
overflows no more often than a normal variable exceeds `z`.

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
from tidegate.models.numbers import is_number
from tidegate.sampling.ladder import LOWEST
from tidegate.types import InputError

if TYPE_CHECKING:
    from tidegate.types import Array

MANY: Final = 200.0
"""From so many expected matches on, their number and times are taken as given: chance moves them little."""

_SLICES: Final = 16


def safe_mean(rows: float, overflow: float) -> float:
    """The mean number of held rows that exceeds a budget of `rows` with this chance at any moment.

    Examples
    --------
    >>> round(safe_mean(100, 0.01)), round(safe_mean(100, 0.5))
    (79, 100)
    """
    z = NormalDist().inv_cdf(1 - overflow)
    root = (np.sqrt(z * z + 4 * rows) - z) / 2  # of mean + z * sqrt(mean) = rows
    return float(root * root)


def needed(mean: float, overflow: float) -> float:
    """The budget that this mean number of held rows exceeds with this chance: `safe_mean` turned around.

    Examples
    --------
    >>> round(needed(safe_mean(100, 0.01), 0.01), 9)
    100.0
    """
    return float(mean + NormalDist().inv_cdf(1 - overflow) * np.sqrt(mean))


class Taking(ABC):
    """How many rows each level of probability takes, by theory."""

    @abstractmethod
    def rows(self, level: int) -> float:
        """The rows that are held in the mean; the fewer the higher the level."""

    def level(self, room: float, highest: int) -> int:
        """The highest probability, at most that of level `highest`, whose rows find room."""
        low, high = highest, LOWEST
        while low < high:
            middle = (low + high) // 2
            low, high = (low, middle) if self.rows(middle) <= room else (middle + 1, high)
        return low


def check_overflow(overflow: float) -> None:
    """Refuse a chance that is none."""
    if not is_number(overflow) or not 0 < overflow < 1:
        raise InputError(f"overflow {overflow!r} is not a chance; give one between 0 and 1, such as 0.01")


@kernel
def held_time(matches: float, cutoff: int, fraction: float, widths: Array, reached: Array) -> float:
    """How long UNIFORM holds a row of the mean whose matches come at random.

    A row with k matches behind it is held while one of those up to the cutoff is still to be taken, which has the
    chance 1 - (1-p)^(cutoff-k).

    Parameters
    ----------
    matches
        How many the row expects in its life.
    cutoff
        The number of the last match that may be taken.
    fraction
        The chance of each to be taken.
    widths, reached
        Buckets of age, and the part of its matches that a row has had by each of their edges.
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
            # The part of the bucket that a row passes with k matches behind it.
            part = (over_high - over_low) / (high - low) if high > low else before
            total += widths[b] * part * -np.expm1(kept * (cutoff - k))
            before *= low / (k + 1)
            after *= high / (k + 1)
            over_low -= before
            over_high -= after
    return total


@kernel
def held_times(matches: Array, cutoffs: Array, fraction: float, widths: Array, reached: Array) -> Array:
    """`held_time` for rows of several kinds."""
    times = np.empty(len(matches))
    for i in range(len(matches)):
        times[i] = held_time(matches[i], cutoffs[i], fraction, widths, reached)
    return times


def proportional(sizes: Array, rows: Array, room: float) -> float:
    """The constant c for which rows taken with the chance min(1, c * size) fill the room.

    Parameters
    ----------
    sizes
        What chances are proportional to, for each kind of row.
    rows
        How many rows there are of each kind.
    room
        How many may be taken in the mean; infinity is returned where all may.

    Examples
    --------
    Of one row of size 8 and four of size 1, three shall be taken: the large one for certain, half of the others.

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
