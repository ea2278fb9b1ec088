"""The mean of a value as a function of position, learned in a few buckets that adapt to where it varies."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, Final

import numpy as np

from tidegate.compiled import kernel
from tidegate.types import ArrayField, InputError, Numbers, Stateful

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from tidegate.types import Array, State

_COUNT, _MEAN, _SQUARES, _POSITION, _DISTANCES = range(5)
"""Columns of a bucket: weight, mean and sum of squared deviations of the values, and the same of the positions."""
_MIN_WEIGHT: Final = 8.0
"""The minimum weight of a bucket that is split."""
_MIN_DEVIATION: Final = 0.5
"""The minimum standard deviation of the positions in a bucket that is split, for whole numbers."""
_SPLIT_RATIO: Final = 4.0
"""A bucket is split only if its variance is this many times that of the two buckets that are merged. Both halves
begin with the mean of the whole, so that a split loses detail until they have observations of their own."""
_HALF_DISTANCE: Final = 0.8
"""The distance of the means of two halves from that of the whole, in standard deviations (about, for any shape)."""


class AdaptiveHistogram(Stateful):
    """The mean value near a position, from observations whose weight may decay.

    Each bucket records the number of its observations, their mean and their standard deviation. `adapt` splits
    the one with the largest standard deviation. At the maximum number of buckets, it first merges the two neighbours
    with the lowest common standard deviation, if that is less than half as large.

    Parameters
    ----------
    buckets
        The maximum number of buckets.

    Examples
    --------
    >>> histogram = AdaptiveHistogram(buckets=4)
    >>> positions = np.arange(100) % 10
    >>> for _ in range(3):
    ...     histogram.observe(positions, positions >= 5)
    ...     histogram.adapt()
    >>> histogram.mean([1, 8]).round(2)
    array([0.17, 0.84])

    References
    ----------
    On Joining and Caching Stochastic Streams, section 6.2.

    Deviations
    ----------
    The paper gives no thresholds. A bucket also records the mean and standard deviation of its positions. It is split
    at their mean, into halves of the same mean value, but not if its positions hardly differ. Between the middles of
    two buckets the mean is interpolated.
    """

    state: ClassVar[State] = {
        "edges": ArrayField("edges"),
        "table": ArrayField("table", (-1, 5)),
        "used": Numbers(used=int),
    }

    def __init__(self, buckets: int = 10) -> None:
        if isinstance(buckets, bool) or not isinstance(buckets, int) or buckets < 1:
            raise InputError(f"buckets must be a positive whole number; got {buckets!r}")
        self.edges = np.full(buckets, np.inf)  # where each bucket ends; the last one has no end
        self.table = np.zeros((buckets, 5))
        self.used = 1

    @property
    def weight(self) -> float:
        """The decayed number of observations."""
        return float(self.table[:, _COUNT].sum())

    def observe(self, positions: ArrayLike, values: ArrayLike) -> None:
        """Learn from values at these positions."""
        _observe(self.edges, self.table, np.asarray(positions, np.float64), np.asarray(values, np.float64))

    def forget(self, factor: float) -> None:
        """Multiply the weight of all observations by a factor; means do not change."""
        self.table[:, [_COUNT, _SQUARES, _DISTANCES]] *= factor

    def adapt(self) -> None:
        """Split a bucket, after merging two if the number of buckets is at its limit."""
        self.used = _adapt(self.edges, self.table, self.used)

    def mean(self, positions: ArrayLike) -> Array:
        """The mean value near each of these positions; 0 without observations."""
        return _means(self.edges, self.table, self.used, np.asarray(positions, np.float64))

    def buckets(self) -> list[tuple[float | None, float | None, float, float]]:
        """The limits of each bucket (None: unlimited), its mean and its weight."""
        edges = self.edges[: self.used - 1].tolist()
        columns = self.table[: self.used, _MEAN].tolist(), self.table[: self.used, _COUNT].tolist()
        return list(zip([None, *edges], [*edges, None], *columns, strict=True))


@kernel
def _bucket(edges: Array, position: float) -> int:
    bucket = 0
    while position >= edges[bucket]:
        bucket += 1
    return bucket


@kernel
def _observe(edges: Array, table: Array, positions: Array, values: Array) -> None:
    for i in range(len(positions)):
        bucket = table[_bucket(edges, positions[i])]
        bucket[_COUNT] += 1.0
        for mean, squares, value in (
            (_MEAN, _SQUARES, values[i]),
            (_POSITION, _DISTANCES, positions[i]),
        ):
            difference = value - bucket[mean]
            bucket[mean] += difference / bucket[_COUNT]
            bucket[squares] += difference * (value - bucket[mean])


@kernel
def _means(edges: Array, table: Array, used: int, positions: Array) -> Array:
    """The mean of the bucket, interpolated between the middles of neighbouring buckets."""
    means = np.empty(len(positions))
    for i in range(len(positions)):
        bucket = _bucket(edges, positions[i])
        neighbour = bucket + (1 if positions[i] > table[bucket, _POSITION] else -1)
        means[i] = table[bucket, _MEAN]
        if 0 <= neighbour < used and table[neighbour, _COUNT] > 0:
            distance = table[neighbour, _POSITION] - table[bucket, _POSITION]
            share = (positions[i] - table[bucket, _POSITION]) / distance
            means[i] += share * (table[neighbour, _MEAN] - table[bucket, _MEAN])
    return means


@kernel
def _merge(one: Array, two: Array) -> Array:
    """Two buckets, merged."""
    both = one.copy()
    both[_COUNT] += two[_COUNT]
    if both[_COUNT] > 0:
        share = two[_COUNT] / both[_COUNT]
        for mean, squares in ((_MEAN, _SQUARES), (_POSITION, _DISTANCES)):
            difference = two[mean] - one[mean]
            both[mean] += difference * share
            both[squares] += two[squares] + difference * difference * share * one[_COUNT]
    return both


@kernel
def _variance(bucket: Array, squares: int) -> float:
    variance: float = bucket[squares] / bucket[_COUNT] if bucket[_COUNT] > 0 else 0.0
    return variance


@kernel
def _adapt(edges: Array, table: Array, used: int) -> int:
    """Split a bucket, if one varies enough; returns the number of buckets in use."""
    split, most = -1, 0.0
    for bucket in range(used):
        wide = (
            table[bucket, _COUNT] >= _MIN_WEIGHT
            and _variance(table[bucket], _DISTANCES) > _MIN_DEVIATION * _MIN_DEVIATION
        )
        if wide and _variance(table[bucket], _SQUARES) > most:
            split, most = bucket, _variance(table[bucket], _SQUARES)
    if split < 0:
        return used
    if used == len(edges):
        merged, least = -1, most / _SPLIT_RATIO
        for bucket in range(used - 1):
            merged_variance = _variance(_merge(table[bucket], table[bucket + 1]), _SQUARES)
            if merged_variance < least and split not in (bucket, bucket + 1):
                merged, least = bucket, merged_variance
        if merged < 0:
            return used
        table[merged] = _merge(table[merged], table[merged + 1])
        table[merged + 1 : -1] = table[merged + 2 :].copy()
        edges[merged:-1] = edges[merged + 1 :].copy()
        used -= 1
        split -= split > merged
    table[split + 1 :] = table[split:-1].copy()
    edges[split + 1 :] = edges[split:-1].copy()
    edges[split] = table[split, _POSITION]
    offset = _HALF_DISTANCE * np.sqrt(_variance(table[split], _DISTANCES))
    for half, sign in ((split, -1.0), (split + 1, 1.0)):
        table[half, _DISTANCES] = (
            max(table[half, _DISTANCES] - table[half, _COUNT] * offset * offset, 0.0) / 2
        )
        table[half, _COUNT] /= 2
        table[half, _SQUARES] /= 2
        table[half, _POSITION] += sign * offset
    return used + 1
