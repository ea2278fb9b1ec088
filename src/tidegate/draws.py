"""Reproducible random numbers: hashes of a seed and a row's number.

A repeated step gets the same numbers, in any process and for any grouping of rows into steps.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numba import vectorize

from tidegate.compiled import kernel

if TYPE_CHECKING:
    from tidegate.types import Array


def salt(seed: int, partition: int = 0) -> int:
    """The salt of a seed and a partition, which makes its draws independent of others."""
    mixed = mix(mix(np.uint64(int(seed) % 2**64)) ^ np.uint64(partition))
    return int(mixed >> np.uint64(1))


def derive_salt(common: int, purpose: int) -> int:
    """A salt for one of several purposes, derived from a common one; draws for different purposes are independent.

    Examples
    --------
    >>> derive_salt(7, 1) == derive_salt(7, 1), derive_salt(7, 1) == derive_salt(7, 2)
    (True, False)
    """
    return int(mix(mix(np.uint64(common)) + np.uint64(purpose)) >> np.uint64(1))


def draws(ids: Array, salts: Array | int) -> Array:
    """A draw from [0, 1) for each row; the same for the same salt.

    Examples
    --------
    >>> draws(np.arange(3), 7).round(3)
    array([0.39 , 0.74 , 0.387])
    """
    hashes: Array = mix((ids ^ salts).view(np.uint64))
    return (hashes >> np.uint64(11)).astype(np.float64) * 2.0**-53


@kernel
def hash64(number: int) -> np.uint64:
    """A hash of a 64-bit integer (the finaliser of splitmix64)."""
    z = np.uint64(number) + np.uint64(0x9E3779B97F4A7C15)
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))


@kernel
def draw_one(number: int, salted: int) -> float:
    """The draw of `draws` for one row, inside a compiled loop."""
    return float(np.int64(hash64(number ^ salted) >> np.uint64(11))) * 2.0**-53


@kernel
def spread(number: int) -> float:
    """A number from [0, 1) for each integer: the fractional parts of multiples of the golden ratio.

    Cheaper than a draw; the numbers of consecutive or equally spaced integers are evenly distributed.

    Examples
    --------
    >>> [round(spread(n), 3) for n in range(5)]
    [0.0, 0.618, 0.236, 0.854, 0.472]
    """
    return float(np.int64(np.uint64(number) * np.uint64(0x9E3779B97F4A7C15) >> np.uint64(11))) * 2.0**-53


@vectorize(["uint64(uint64)"], cache=True)
def mix(number: Any) -> Any:
    """The hash of `hash64` for an array of 64-bit integers."""
    return hash64(number)
