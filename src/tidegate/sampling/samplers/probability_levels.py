"""Sampling probabilities in one byte: 16 levels per factor of two.

A buffered row must carry the probability with which it was drawn, since its results are weighted by it. Level n is
the probability 2**(-n/16) times the highest. One byte is enough down to 1/60,000; lower ones take two. Results are
weighted by the probability of the level itself, so rounding to a level causes no bias.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from tidegate.compiled import kernel
from tidegate.draws import hash64

if TYPE_CHECKING:
    from tidegate.types import Array

STEPS: Final = 16
"""Levels per factor of two."""

LOWEST: Final = 60 * STEPS
"""The last level: its probability is practically 0."""

_WHOLE: Final = 1 << 53


@kernel
def probability_at(base: float, level: int) -> float:
    """The probability of a level, where level 0 has the probability `base`.

    Examples
    --------
    >>> probability_at(0.5, 0), probability_at(0.5, 32)
    (0.5, 0.125)
    """
    return float(base * 2.0 ** (-level / STEPS))


def probabilities_at(base: float, levels: Array) -> Array:
    """The probability of each level."""
    return base * np.exp2(levels.astype(np.float64) / -STEPS)


@kernel
def uniform_draw(salt: int, number: int, nth: int) -> float:
    """Draw a number from 0 to 1, 1 excluded: the nth draw of a row."""
    mixed = hash64(np.int64(hash64(number ^ salt)) ^ nth)  # type: ignore[arg-type] # a kernel takes either
    return float(np.int64(mixed >> np.uint64(11))) / _WHOLE


@kernel
def uniform_draws(salt: int, numbers: Array, nth: Array) -> Array:
    """The nth draw of each row."""
    drawn = np.empty(len(numbers))
    for i in range(len(numbers)):
        drawn[i] = uniform_draw(salt, numbers[i], nth[i])
    return drawn


def narrowest(values: Array) -> Array:
    """Convert non-negative integers to the smallest type that holds them all.

    Examples
    --------
    >>> narrowest(np.array([3, 200])).dtype, narrowest(np.array([3, 300])).dtype
    (dtype('uint8'), dtype('uint16'))
    """
    return values.astype(np.min_scalar_type(int(values.max(initial=0))))
