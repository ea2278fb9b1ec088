"""Buckets: how rows are distributed to the parallel instances of a join.

A bucket is a group of keys with one operator, one state and one share of the budget. Spark assigns groups to
partitions by a hash of their label, which can put two labels on one core. This module chooses labels that spread
evenly over the usual numbers of partitions. They depend only on the number of buckets, so a restart finds its state.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Final

import numpy as np

from tidegate.draws import mix

if TYPE_CHECKING:
    from tidegate.types import Array

_LABEL_MODULUS: Final = 6720
"""Labels are consecutive modulo this number, and so modulo its divisors: 1 to 8, 10, 12, 16, 20, 24, 32, 64."""


@cache
def labels(buckets: int) -> tuple[int, ...]:
    """Return one label per bucket; Spark puts the i-th into partition `i % n`, for every n that divides 6720.

    Examples
    --------
    >>> [int(spark_hash(np.array([label]))[0] % 4) for label in labels(8)]
    [0, 1, 2, 3, 0, 1, 2, 3]
    """
    # About 32 candidates for each residue, so that every residue has at least one.
    residues = spark_hash(np.arange(32 * _LABEL_MODULUS, dtype=np.int32)).astype(np.int64) % _LABEL_MODULUS
    first = dict(zip(*np.unique(residues, return_index=True), strict=True))
    return tuple(int(first[np.int64(bucket)]) for bucket in range(buckets))


def bucket_of(keys: Array, buckets: int) -> Array:
    """The bucket of each 64-bit key."""
    mixed: Array = mix(keys.view(np.uint64)) % np.uint64(buckets)
    return mixed.astype(np.uint16)


def spark_hash(values: Array) -> Array:
    """Spark's `hash` of 32-bit integers: Murmur3 with seed 42."""

    def rotate(x: Array, by: int) -> Array:
        return (x << np.uint32(by)) | (x >> np.uint32(32 - by))

    k = rotate(values.astype(np.int32).view(np.uint32) * np.uint32(0xCC9E2D51), 15) * np.uint32(0x1B873593)
    h = rotate(np.uint32(42) ^ k, 13) * np.uint32(5) + np.uint32(0xE6546B64)
    h ^= np.uint32(4)
    h = (h ^ (h >> np.uint32(16))) * np.uint32(0x85EBCA6B)
    h = (h ^ (h >> np.uint32(13))) * np.uint32(0xC2B2AE35)
    return (h ^ (h >> np.uint32(16))).view(np.int32)
