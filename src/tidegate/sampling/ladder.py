"""Chances in a byte: a sampling probability is one of sixteen to an octave.

A row that waits in memory must know with which probability it was taken, or what it yields cannot be weighed. As a
level, the number of sixteenths of an octave below the highest probability, that is one byte down to a
sixty-thousandth, and two beyond. What is weighed is the level's own probability, so rounding to a level costs
nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from tidegate.compiled import kernel
from tidegate.draws import scattered

if TYPE_CHECKING:
    from tidegate.types import Array

STEPS: Final = 16
"""Levels to an octave."""

LOWEST: Final = 60 * STEPS
"""No level lies below this; its probability is nil for any stream that will ever be seen."""

_WHOLE: Final = 1 << 53


@kernel
def chance(base: float, level: int) -> float:
    """The probability of a level, where level 0 has that of the base.

    Examples
    --------
    >>> chance(0.5, 0), chance(0.5, 32)
    (0.5, 0.125)
    """
    return float(base * 2.0 ** (-level / STEPS))


def chances(base: float, levels: Array) -> Array:
    """The probability of each level."""
    return base * np.exp2(levels.astype(np.float64) / -STEPS)


@kernel
def coin(salt: int, number: int, nth: int) -> float:
    """Draw a number from 0 to 1, 1 excluded, for the nth chance of a row."""
    mixed = scattered(np.int64(scattered(number ^ salt)) ^ nth)  # type: ignore[arg-type] # a kernel takes either
    return float(np.int64(mixed >> np.uint64(11))) / _WHOLE


@kernel
def coins(salt: int, numbers: Array, nth: Array) -> Array:
    """Draw for the nth chance of each row."""
    drawn = np.empty(len(numbers))
    for i in range(len(numbers)):
        drawn[i] = coin(salt, numbers[i], nth[i])
    return drawn


def narrow(values: Array) -> Array:
    """Whole numbers, none negative, in as few bytes each as hold them all.

    Examples
    --------
    >>> narrow(np.array([3, 200])).dtype, narrow(np.array([3, 300])).dtype
    (dtype('uint8'), dtype('uint16'))
    """
    return values.astype(np.min_scalar_type(int(values.max(initial=0))))
