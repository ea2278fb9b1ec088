"""An index over the arrivals of one step, and the compiled loops that probe it.

The buffer has no index. Each step indexes its arrivals, which are few and fit in the CPU cache, and probes the index
with the buffered rows of the other side. So nothing has to be rebuilt when a state is restored or rows are evicted,
and a buffer takes only the bytes of its rows.

For equality the arrivals are ordered by hash bucket and by time within it, so that a row finds its partners by one
lookup and, in a long bucket, a binary search of the window. For comparisons and bands they are `Ordered`.

An index over one side is probed by the other, with `low` and `high` the axes that bound an indexed row from below and
above.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np

from tidegate.compiled import inlined, kernel
from tidegate.engine.ages import NO_WATCH, note_age
from tidegate.engine.combining import COMBINES, combined
from tidegate.engine.ordered import Ordered, within
from tidegate.types import Pairs

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tidegate.engine.ages import Watch
    from tidegate.types import Array, Combine, Condition, Side, Time

PAIRS_AT_A_TIME: Final = 1 << 18
"""The maximum number of results in a chunk, so that a frequent key cannot exhaust memory."""

_LONG_BUCKET: Final = 16
_EXTRA_FILTER_BITS: Final = (3, 5)
"""The presence filter has 2**3 to 2**5 times as many buckets as the index, but at most 2**20, to fit in the cache."""
_MAX_FILTER_BITS: Final = 20


@kernel
def hashed(key: Any, shift: Any) -> Any:
    """The bucket of a key: the upper bits of its product with a constant (Fibonacci hashing)."""
    return (np.uint64(key) * np.uint64(0x9E3779B97F4A7C15)) >> shift


@inlined
def in_window(
    low: Any, high: Any, probing_low: Any, probing_high: Any, reach_low: Any, reach_high: Any
) -> Any:
    """Whether an indexed row and a probing row are in the window, by their positions on both axes.

    `low` is the axis of the left window if the left row is the indexed one, and otherwise that of the right window.
    Always differences: with floats any other form would round differently from either side.
    """
    return probing_low - low <= reach_low and high - probing_high <= reach_high


@kernel
def _layout(
    key: Array, low: Array, high: Array, same_axis: bool, shift: Any, finer: Any
) -> tuple[Array, Array, Array, Array, Array, Array]:
    """Order rows by bucket, keeping their order within each, and mark the finer buckets that have any."""
    n = len(key)
    present = np.zeros(np.int64(1) << (64 - np.int64(finer)), np.bool_)
    for i in range(n):
        present[hashed(key[i], finer)] = True
    starts = np.zeros((np.int64(1) << (64 - np.int64(shift))) + 2, np.int32)
    for i in range(n):
        starts[hashed(key[i], shift) + np.uint64(2)] += 1
    for b in range(2, len(starts)):
        starts[b] += starts[b - 1]
    order = np.empty(n, np.int32)
    keys = np.empty_like(key)
    lows = np.empty_like(low)
    highs = lows if same_axis else np.empty_like(high)
    for i in range(n):
        b = hashed(key[i], shift) + np.uint64(1)
        at = starts[b]
        starts[b] = at + 1
        order[at] = i
        keys[at] = key[i]
        lows[at] = low[i]
        if not same_axis:
            highs[at] = high[i]
    return present, starts, order, keys, lows, highs


@kernel
def _likely(present: Array, finer: Any, key: Array) -> Array:
    """The rows that may have a partner.

    Most buffered rows have none among a step's arrivals. Skipping them without a branch, which the processor would
    have to predict, makes probing with a large buffer cheap.
    """
    found = np.empty(len(key), np.int32)
    n = 0
    for i in range(len(key)):
        found[n] = i
        n += present[hashed(key[i], finer)]
    return found[:n]


@kernel
def _bucket(
    shift: Any, starts: Array, lows: Array, highs: Array,
    key: Any, low: Any, high: Any, reach_low: Any, reach_high: Any,
) -> Any:  # fmt: skip
    """The positions of possible partners: `[begin, end)`."""
    b = hashed(key, shift)
    begin, end = np.int64(starts[b]), np.int64(starts[b + np.uint64(1)])
    if end - begin > _LONG_BUCKET:
        begin = within(lows, begin, end, low, -reach_low, False)
        end = within(highs, begin, end, high, reach_high, True)
    return begin, end


@kernel
def _count(
    shift: Any, starts: Array, order: Array, keys: Array, lows: Array, highs: Array,
    likely: Array, key: Array, low: Array, high: Array, reach_low: Any, reach_high: Any,
    hits_indexed: Array, hits_probing: Array, importance_indexed: Array, importance_probing: Array, combine: int,
    watch: Watch,
) -> tuple[int, float]:  # fmt: skip
    """Count partners without forming pairs; returns results and their importance."""
    total = 0
    importance = 0.0
    has_importance = len(importance_probing) > 0
    watched = watch.counts.shape[1] > 0
    for i in likely:
        begin, end = _bucket(shift, starts, lows, highs, key[i], low[i], high[i], reach_low, reach_high)
        found = 0
        for j in range(begin, end):
            near = in_window(lows[j], highs[j], low[i], high[i], reach_low, reach_high)
            if near and keys[j] == key[i]:
                found += 1
                hits_indexed[order[j]] += 1
                if has_importance:
                    importance += combined(combine, importance_indexed[order[j]], importance_probing[i])
                if watched:
                    note_age(watch, low[i], lows[j])
        hits_probing[i] += found
        total += found
    return total, importance


@kernel
def _emit(
    shift: Any, starts: Array, order: Array, keys: Array, lows: Array, highs: Array,
    likely: Array, key: Array, low: Array, high: Array, reach_low: Any, reach_high: Any,
    row: int, at: int, out_indexed: Array, out_probing: Array,
) -> tuple[int, int, int]:  # fmt: skip
    """Write pairs until the output is full; returns their number, and the row and position of the next, or -1."""
    n = 0
    room = len(out_indexed)
    for nth in range(row, len(likely)):
        i = likely[nth]
        begin, end = _bucket(shift, starts, lows, highs, key[i], low[i], high[i], reach_low, reach_high)
        for j in range(max(begin, at), end):
            near = in_window(lows[j], highs[j], low[i], high[i], reach_low, reach_high)
            if near and keys[j] == key[i]:
                if n == room:
                    return n, nth, j
                out_indexed[n] = order[j]
                out_probing[n] = i
                n += 1
        at = 0
    return n, -1, 0


class _Hashed:
    """Rows of one side, indexed for equality."""

    count = staticmethod(_count)
    emit = staticmethod(_emit)

    def __init__(self, key: Array, low: Array, high: Array) -> None:
        bits = max(1, len(key).bit_length())
        self._shift = np.uint64(64 - bits)
        fewest, most = _EXTRA_FILTER_BITS
        self._finer = np.uint64(64 - bits - min(max(_MAX_FILTER_BITS - bits, fewest), most))
        self._present, *self._layout = _layout(key, low, high, low is high, self._shift, self._finer)

    def search(self, key: Array, low: Array, high: Array, reaches: tuple[Any, Any]) -> tuple[Any, ...]:
        """The first arguments of both compiled loops, for these probing rows."""
        likely = _likely(self._present, self._finer, key)
        return (self._shift, *self._layout, likely, key, low, high, *reaches)


NO_IMPORTANCE: Final = np.empty(0, np.float64)


class Axes(NamedTuple):
    """The columns of rows that a condition and a window use."""

    key: Array
    left: Array
    right: Array


class Index:
    """The arrivals of one side, indexed for rows of the other.

    Parameters
    ----------
    side
        The side that is indexed.
    rows
        Its arrivals, in order of time.
    condition, reach_left, reach_right
        The condition on keys, and the window's two lengths.
    """

    def __init__(
        self, side: Side, rows: Axes, condition: Condition, reach_left: Time, reach_right: Time
    ) -> None:
        self._side = side
        number = rows.left.dtype.type
        reaches = number(reach_left), number(reach_right)
        self._reaches = reaches if side == "left" else reaches[::-1]
        columns = rows.key, *self._bounds(rows)
        self._rows = _Hashed(*columns) if condition == "=" else Ordered(*columns, condition, side)

    def _bounds(self, rows: Axes) -> tuple[Array, Array]:
        # An indexed left row is bounded from below by the left window and from above by the right one;
        # for an indexed right row it is the other way round.
        return (rows.left, rows.right) if self._side == "left" else (rows.right, rows.left)

    def _search(self, probing: Axes) -> tuple[Any, ...]:
        return self._rows.search(probing.key, *self._bounds(probing), self._reaches)

    def count(
        self,
        probing: Axes,
        hits: tuple[Array, Array],
        importance: tuple[Array, Array] | None = None,
        combine: Combine = "min",
        watch: Watch = NO_WATCH,
    ) -> tuple[int, float]:
        """Count results and add up their importance; `hits` and `importance` are (indexed, probing)."""
        of_rows = importance or (NO_IMPORTANCE, NO_IMPORTANCE)
        arguments = (*self._search(probing), *hits, *of_rows, COMBINES[combine], watch)
        total, of_results = self._rows.count(*arguments)
        return int(total), float(of_results)

    def pairs(self, probing: Axes, chunk: int = PAIRS_AT_A_TIME) -> Iterator[Pairs]:
        """Yield results as (left, right) positions, at most `chunk` at a time."""
        search = self._search(probing)
        row, at = 0, 0
        while row >= 0:
            out_indexed, out_probing = np.empty(chunk, np.int32), np.empty(chunk, np.int32)
            arguments = (*search, row, at, out_indexed, out_probing)
            n, row, at = self._rows.emit(*arguments)
            if n:
                found = (out_indexed[:n], out_probing[:n])
                yield Pairs(*(found if self._side == "left" else found[::-1]))
