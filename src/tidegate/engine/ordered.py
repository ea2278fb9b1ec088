"""An index for comparisons and bands: arrivals are divided by time into blocks, and sorted by key within each.

If keys match by order, neither order alone suffices: with a narrow window few of the many rows whose keys match are
in it, and with a narrow band few of the many rows within the window match. So both are used. Arrivals are in order of
time, so that a probing row's window is a range of their positions, found by binary search. This range touches few
blocks, and in each of them the keys that match are a range again.

The blocks are about as long as the number of rows in a window, in the mean over the probing rows. A row then touches
three of them in the mean, and tests rows outside its window only in the first and the last. If the window contains
all arrivals there is one block: the arrivals sorted by key.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np

from tidegate.compiled import kernel
from tidegate.engine.ages import note_age
from tidegate.engine.combining import combined
from tidegate.types import Band

if TYPE_CHECKING:
    from tidegate.engine.ages import Watch
    from tidegate.types import Array, Condition, Side

_SHORTEST: Final = 5
"""Blocks have at least 2**5 rows: smaller ones would not be faster."""
_SAMPLE: Final = 4096
"""The number of probing rows from which the length of a window is estimated."""
_FREE, _CLOSED, _OPEN = 0, 1, 2


class _Rule(NamedTuple):
    """Which indexed keys match a probing key: others, larger or smaller ones, or those `low` to `high` from it."""

    band: bool
    negated: bool
    low_end: int
    high_end: int
    low: Any
    high: Any


def _rule(condition: Condition, indexed: Side, dtype: np.dtype[np.generic]) -> _Rule:
    number = dtype.type
    if isinstance(condition, Band):
        low, high = condition.low, condition.high
        if dtype.kind == "i":
            low, high = int(np.ceil(low)), int(np.floor(high))
        if indexed == "left":
            low, high = -high, -low
        return _Rule(True, False, _CLOSED, _CLOSED, number(low), number(high))
    zero = number(0)
    if condition == "!=":
        return _Rule(False, True, _CLOSED, _CLOSED, zero, zero)
    end = _CLOSED if condition.endswith("=") else _OPEN
    # `l < r`: an indexed l lies below the probing r, an indexed r above the probing l.
    if condition.startswith("<") == (indexed == "left"):
        return _Rule(False, False, _FREE, end, zero, zero)
    return _Rule(False, False, end, _FREE, zero, zero)


@kernel
def _first(values: Array, start: Any, stop: Any, bound: Any, past: bool) -> Any:
    """The first position in the sorted range whose value is >= bound, or > bound when `past`."""
    while start < stop:
        middle = (start + stop) >> 1
        if values[middle] < bound or (past and values[middle] == bound):
            start = middle + 1
        else:
            stop = middle
    return start


@kernel
def within(values: Array, start: Any, stop: Any, origin: Any, reach: Any, past: bool) -> Any:
    """The first position whose distance from the origin is >= reach, or > reach when `past`."""
    while start < stop:
        middle = (start + stop) >> 1
        value = values[middle]
        apart = value - origin
        # The difference of integers may overflow 64 bits; that of floats never does.
        wrapped_up = value >= 0 and origin < 0 and apart < 0
        wrapped_down = value < 0 and origin >= 0 and apart > 0
        if wrapped_down or (not wrapped_up and (apart < reach or (past and apart == reach))):
            start = middle + 1
        else:
            stop = middle
    return start


@kernel
def _window(
    lows: Array, highs: Array, low: Any, high: Any, reach_low: Any, reach_high: Any
) -> tuple[Any, Any]:
    """The positions in order of time, `[first, last)`, in the window of a probing row."""
    first = np.int64(within(lows, np.int64(0), np.int64(len(lows)), low, -reach_low, False))
    return first, np.int64(within(highs, first, np.int64(len(highs)), high, reach_high, True))


@kernel
def _matching(rule: _Rule, keys: Array, start: Any, stop: Any, key: Any) -> Any:
    """The positions of matching keys in a sorted range: `[begin, end)` without `[gap, resume)`."""
    band, negated, low_end, high_end, low_offset, high_offset = rule
    begin, end = start, stop
    if band:
        begin = np.int64(within(keys, begin, end, key, low_offset, False))
        end = np.int64(within(keys, begin, end, key, high_offset, True))
        return begin, end, end, end
    if low_end != _FREE:
        begin = np.int64(_first(keys, begin, end, key, low_end == _OPEN))
    if high_end != _FREE:
        end = np.int64(_first(keys, begin, end, key, high_end == _CLOSED))
    if negated:
        return start, stop, begin, end
    return begin, end, end, end


@kernel
def _block_bits(lows: Array, highs: Array, low: Array, high: Array, reach_low: Any, reach_high: Any) -> int:
    """The logarithm of a block's length: the mean number of rows in a window."""
    in_windows, probed = 0, 0
    for i in range(0, len(low), 1 + len(low) // _SAMPLE):
        first, last = _window(lows, highs, low[i], high[i], reach_low, reach_high)
        in_windows += max(last - first, 0)
        probed += 1
    bits = _SHORTEST
    while probed << bits < in_windows:
        bits += 1
    return bits


@kernel
def _blocks(by_key: Array, key: Array, bits: int) -> tuple[Array, Array]:
    """Distribute rows to their blocks in order of key; returns their positions and keys."""
    order = np.empty_like(by_key)
    keys = np.empty_like(key)
    ends = np.arange((len(key) >> bits) + 1) << bits
    for i in by_key:
        block = i >> bits
        at = ends[block]
        ends[block] = at + 1
        order[at] = i
        keys[at] = key[i]
    return order, keys


@kernel
def _count(
    rule: _Rule, bits: int, order: Array, keys: Array, lows: Array, highs: Array,
    key: Array, low: Array, high: Array, reach_low: Any, reach_high: Any,
    hits_indexed: Array, hits_probing: Array, importance_indexed: Array, importance_probing: Array, combine: int,
    watch: Watch,
) -> tuple[int, float]:  # fmt: skip
    """Count partners without forming pairs; returns results and their importance."""
    total = 0
    importance = 0.0
    has_importance = len(importance_probing) > 0
    watched = watch.counts.shape[1] > 0
    for i in range(len(key)):
        first, last = _window(lows, highs, low[i], high[i], reach_low, reach_high)
        found = 0
        start = first >> bits << bits
        while first < last and start < last:
            stop = min(start + (1 << bits), len(keys))
            begin, end, gap, resume = _matching(rule, keys, start, stop, key[i])
            j = begin
            while j < end:
                if gap <= j < resume:
                    j = resume
                    continue
                place = order[j]
                if first <= place < last:
                    found += 1
                    hits_indexed[place] += 1
                    if has_importance:
                        importance += combined(combine, importance_indexed[place], importance_probing[i])
                    if watched:
                        note_age(watch, low[i], lows[place])
                j += 1
            start = stop
        hits_probing[i] += found
        total += found
    return total, importance


@kernel
def _emit(
    rule: _Rule, bits: int, order: Array, keys: Array, lows: Array, highs: Array,
    key: Array, low: Array, high: Array, reach_low: Any, reach_high: Any,
    row: int, at: int, out_indexed: Array, out_probing: Array,
) -> tuple[int, int, int]:  # fmt: skip
    """Write pairs until the output is full; returns their number, and the row and position of the next, or -1."""
    n = 0
    room = len(out_indexed)
    for i in range(row, len(key)):
        first, last = _window(lows, highs, low[i], high[i], reach_low, reach_high)
        start = max(first, at) >> bits << bits
        while first < last and start < last:
            stop = min(start + (1 << bits), len(keys))
            begin, end, gap, resume = _matching(rule, keys, start, stop, key[i])
            j = max(begin, at)
            while j < end:
                if gap <= j < resume:
                    j = resume
                    continue
                if first <= order[j] < last:
                    if n == room:
                        return n, i, j
                    out_indexed[n] = order[j]
                    out_probing[n] = i
                    n += 1
                j += 1
            start = stop
        at = 0
    return n, -1, 0


class Ordered:
    """Rows of one side, indexed for a comparison or a band.

    Parameters
    ----------
    key, low, high
        Their columns, in order of time.
    condition, indexed
        The condition on keys, and the side of these rows.
    """

    count = staticmethod(_count)
    emit = staticmethod(_emit)

    def __init__(self, key: Array, low: Array, high: Array, condition: Condition, indexed: Side) -> None:
        self._rule = _rule(condition, indexed, key.dtype)
        by_key = np.argsort(key, kind="stable").astype(np.int32)
        self._sorted = by_key, key[by_key]
        self._key, self._bounds = key, (low, high)

    def search(self, key: Array, low: Array, high: Array, reaches: tuple[Any, Any]) -> tuple[Any, ...]:
        """The first arguments of both compiled loops, for these probing rows."""
        bits = _SHORTEST
        if len(self._key) > 1 << bits:
            bits = _block_bits(*self._bounds, low, high, *reaches)
        one_block = len(self._key) <= 1 << bits
        blocks = self._sorted if one_block else _blocks(self._sorted[0], self._key, bits)
        return (self._rule, bits, *blocks, *self._bounds, key, low, high, *reaches)
