"""The mean of a value as a function of a place, learned in a few buckets that adapt to where it varies."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Self

import numpy as np

from tidegate.compiled import kernel
from tidegate.types import InputError

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from tidegate.types import Array

_COUNT, _MEAN, _SQUARES, _PLACE, _SPREAD = range(5)
"""What a bucket records: its weight, the mean and the squared deviations of the values, the same of the places."""
_ENOUGH: Final = 8.0
"""What a bucket must weigh to be split."""
_NARROW: Final = 0.5
"""The standard deviation of the places below which a bucket is not split: whole numbers are no closer."""
_SPLIT_RATIO: Final = 4.0
"""A bucket is split only if its variance is this many times that of the two buckets that are merged. Both halves
begin with the mean of the whole, so that a split loses detail until they have observations of their own."""
_HALVES: Final = 0.8
"""The distance of the means of two halves from that of the whole, in standard deviations (about, for any shape)."""


class AdaptiveHistogram:
    """The mean value around a place, from observations that may lose weight.

    Each bucket records the number of its observations, their mean and their standard deviation. `adapt` splits
    the one with the largest standard deviation; once there are as many buckets as there may be, it first merges the
    two neighbours with the lowest standard deviation together, if that is less than half as large.

    Parameters
    ----------
    buckets
        The largest number of buckets.

    Examples
    --------
    >>> histogram = AdaptiveHistogram(buckets=4)
    >>> places = np.arange(100) % 10
    >>> for _ in range(3):
    ...     histogram.observe(places, places >= 5)
    ...     histogram.adapt()
    >>> histogram.mean([1, 8]).round(2)
    array([0.17, 0.84])

    References
    ----------
    On Joining and Caching Stochastic Streams, section 6.2.

    Deviations
    ----------
    The paper gives no thresholds. A bucket also records the mean and standard deviation of
    its places. It is split at their mean, into halves of the same mean value, and it is not split while its places
    hardly differ. Between the middles of two buckets the mean is interpolated.
    """

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

    def observe(self, places: ArrayLike, values: ArrayLike) -> None:
        """Learn from values at these places."""
        _observe(self.edges, self.table, np.asarray(places, np.float64), np.asarray(values, np.float64))

    def forget(self, kept: float) -> None:
        """Multiply the weight of all observations by `kept`; means stay as they are."""
        self.table[:, [_COUNT, _SQUARES, _SPREAD]] *= kept

    def adapt(self) -> None:
        """Split a bucket, after merging two if the number of buckets is at its limit."""
        self.used = _adapt(self.edges, self.table, self.used)

    def most(self) -> float:
        """The largest mean of any bucket."""
        return float(self.table[: self.used, _MEAN].max())

    def mean(self, places: ArrayLike) -> Array:
        """The mean value around each of these places; 0 where nothing was observed."""
        return _means(self.edges, self.table, self.used, np.asarray(places, np.float64))

    def buckets(self) -> list[tuple[float | None, float | None, float, float]]:
        """The limits of each bucket (None: unlimited), its mean and its weight."""
        edges = self.edges[: self.used - 1].tolist()
        columns = self.table[: self.used, _MEAN].tolist(), self.table[: self.used, _COUNT].tolist()
        return list(zip([None, *edges], [*edges, None], *columns, strict=True))

    def snapshot(self) -> dict[str, Array]:
        """The state as plain arrays."""
        return {"edges": self.edges.copy(), "table": self.table.ravel().copy(), "used": np.array([self.used])}

    def restore(self, state: dict[str, Array]) -> Self:
        """Restore the state that `snapshot` returned."""
        self.edges = state["edges"].copy()
        self.table = state["table"].reshape(len(self.edges), -1).copy()
        self.used = int(state["used"][0])
        return self


@kernel
def _bucket(edges: Array, place: float) -> int:
    bucket = 0
    while place >= edges[bucket]:
        bucket += 1
    return bucket


@kernel
def _observe(edges: Array, table: Array, places: Array, values: Array) -> None:
    for i in range(len(places)):
        bucket = table[_bucket(edges, places[i])]
        bucket[_COUNT] += 1.0
        for mean, squares, seen in ((_MEAN, _SQUARES, values[i]), (_PLACE, _SPREAD, places[i])):
            apart = seen - bucket[mean]
            bucket[mean] += apart / bucket[_COUNT]
            bucket[squares] += apart * (seen - bucket[mean])


@kernel
def _means(edges: Array, table: Array, used: int, places: Array) -> Array:
    """The mean of the bucket, interpolated between the middles of neighbouring buckets."""
    found = np.empty(len(places))
    for i in range(len(places)):
        here = _bucket(edges, places[i])
        there = here + (1 if places[i] > table[here, _PLACE] else -1)
        found[i] = table[here, _MEAN]
        if 0 <= there < used and table[there, _COUNT] > 0:
            share = (places[i] - table[here, _PLACE]) / (table[there, _PLACE] - table[here, _PLACE])
            found[i] += share * (table[there, _MEAN] - table[here, _MEAN])
    return found


@kernel
def _together(one: Array, two: Array) -> Array:
    """The record of two buckets, merged."""
    both = one.copy()
    both[_COUNT] += two[_COUNT]
    if both[_COUNT] > 0:
        share = two[_COUNT] / both[_COUNT]
        for mean, squares in ((_MEAN, _SQUARES), (_PLACE, _SPREAD)):
            apart = two[mean] - one[mean]
            both[mean] += apart * share
            both[squares] += two[squares] + apart * apart * share * one[_COUNT]
    return both


@kernel
def _variance(bucket: Array, squares: int) -> float:
    found: float = bucket[squares] / bucket[_COUNT] if bucket[_COUNT] > 0 else 0.0
    return found


@kernel
def _adapt(edges: Array, table: Array, used: int) -> int:
    """Returns how many buckets are in use afterwards."""
    split, most = -1, 0.0
    for bucket in range(used):
        wide = table[bucket, _COUNT] >= _ENOUGH and _variance(table[bucket], _SPREAD) > _NARROW * _NARROW
        if wide and _variance(table[bucket], _SQUARES) > most:
            split, most = bucket, _variance(table[bucket], _SQUARES)
    if split < 0:
        return used
    if used == len(edges):
        merged, least = -1, most / _SPLIT_RATIO
        for bucket in range(used - 1):
            together = _variance(_together(table[bucket], table[bucket + 1]), _SQUARES)
            if together < least and split not in (bucket, bucket + 1):
                merged, least = bucket, together
        if merged < 0:
            return used
        table[merged] = _together(table[merged], table[merged + 1])
        table[merged + 1 : -1] = table[merged + 2 :].copy()
        edges[merged:-1] = edges[merged + 1 :].copy()
        used -= 1
        split -= split > merged
    table[split + 1 :] = table[split:-1].copy()
    edges[split + 1 :] = edges[split:-1].copy()
    edges[split] = table[split, _PLACE]
    apart = _HALVES * np.sqrt(_variance(table[split], _SPREAD))
    for half, sign in ((split, -1.0), (split + 1, 1.0)):
        table[half, _SPREAD] = max(table[half, _SPREAD] - table[half, _COUNT] * apart * apart, 0.0) / 2
        table[half, _COUNT] /= 2
        table[half, _SQUARES] /= 2
        table[half, _PLACE] += sign * apart
    return used + 1
