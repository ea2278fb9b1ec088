"""Chance that can be repeated: draws that are hashes of a seed and a row's number.

A step that is run again draws the same, in any process and in any grouping of rows into steps.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numba import vectorize

from tidegate.compiled import kernel

if TYPE_CHECKING:
    from tidegate.types import Array, Setting


def salt(setting: Setting) -> int:
    """What sets the draws of one join and partition apart from those of another."""
    mixed = mix(mix(np.uint64(int(setting.seed) % 2**64)) ^ np.uint64(setting.partition))
    return int(mixed >> np.uint64(1))


def apart(common: int, purpose: int) -> int:
    """A salt for one purpose among several that share one: draws for different purposes are unrelated.

    Examples
    --------
    >>> apart(7, 1) == apart(7, 1), apart(7, 1) == apart(7, 2)
    (True, False)
    """
    return int(mix(mix(np.uint64(common)) + np.uint64(purpose)) >> np.uint64(1))


def draws(ids: Array, salts: Array | int) -> Array:
    """Draw a number from 0 to 1, 1 excluded, for each row; the same salt draws the same.

    Examples
    --------
    >>> draws(np.arange(3), 7).round(3)
    array([0.39 , 0.74 , 0.387])
    """
    drawn: Array = mix((ids ^ salts).view(np.uint64))
    return (drawn >> np.uint64(11)).astype(np.float64) * 2.0**-53


@kernel
def scattered(number: int) -> np.uint64:
    """Scatter a 64-bit integer over all of them (the finaliser of splitmix64)."""
    z = np.uint64(number) + np.uint64(0x9E3779B97F4A7C15)
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))


@kernel
def drawn(number: int, salted: int) -> float:
    """Draw as `draws` does, for one row, inside a compiled loop."""
    return float(np.int64(scattered(number ^ salted) >> np.uint64(11))) * 2.0**-53


@kernel
def spread(number: int) -> float:
    """A number from 0 to 1, 1 excluded, for each integer: the golden ratio's multiples without their whole parts.

    No draw, but cheaper: those of integers in a row, or at equal distances, are spread evenly.

    Examples
    --------
    >>> [round(spread(n), 3) for n in range(5)]
    [0.0, 0.618, 0.236, 0.854, 0.472]
    """
    return float(np.int64(np.uint64(number) * np.uint64(0x9E3779B97F4A7C15) >> np.uint64(11))) * 2.0**-53


@vectorize(["uint64(uint64)"], cache=True)
def mix(number: Any) -> Any:
    """Scatter 64-bit integers, a whole array of them."""
    return scattered(number)
