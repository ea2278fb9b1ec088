"""A throw-away index over the arrivals of one step, and the compiled loops that probe it.

The buffer carries no index of its own. Each step indexes its arrivals, which are few and fit a cache, and
streams the buffered rows of the other side past them: nothing has to be rebuilt when a state is restored or
rows are shed, and a buffer takes the bytes of its rows.

For equality the arrivals are laid out by hash bucket and by time within it, so that a row finds its partners
by one look and, in a long bucket, a binary search of the window. For comparisons and bands they are sorted by
value.

An index over one side is probed by the other. With `low` and `high` the axes that bound an indexed row from
below and above, a pair joins iff `probe.low - indexed.low <= reach_low` and `indexed.high - probe.high <=
reach_high`. Always differences: with floats any other form would round differently from either side.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np

from tidegate.compiled import kernel
from tidegate.engine.ages import NO_WATCH, Watch, note_age
from tidegate.types import Band, Combine, Pairs

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tidegate.types import Array, Condition, Side, Time

PAIRS_AT_A_TIME: Final = 1 << 18
"""Results leave in chunks of at most this many, so that a hot key cannot exhaust memory."""

_LONG_BUCKET: Final = 16
_FINER: Final = (3, 5)
"""The presence filter has 2**3 to 2**5 times as many buckets as the index; the more the better,
while it has no more than 2**20 and so fits a cache."""
_CACHED: Final = 20
_FREE, _CLOSED, _OPEN = 0, 1, 2
_MIN, _MAX, _SUM, _PRODUCT, _MEAN = range(5)
COMBINES: Final[dict[Combine, int]] = {
    "min": _MIN,
    "max": _MAX,
    "sum": _SUM,
    "product": _PRODUCT,
    "mean": _MEAN,
}


class _Rule(NamedTuple):
    """Which indexed keys match a probing key: equal ones, those beyond it, or those `low` to `high` from it."""

    equal: bool
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
        return _Rule(False, True, False, _CLOSED, _CLOSED, number(low), number(high))
    zero = number(0)
    if condition == "=":
        return _Rule(True, False, False, _CLOSED, _CLOSED, zero, zero)
    if condition == "!=":
        return _Rule(False, False, True, _CLOSED, _CLOSED, zero, zero)
    end = _CLOSED if condition.endswith("=") else _OPEN
    # `l < r`: an indexed l lies below the probing r, an indexed r above the probing l.
    if condition.startswith("<") == (indexed == "left"):
        return _Rule(False, False, False, _FREE, end, zero, zero)
    return _Rule(False, False, False, end, _FREE, zero, zero)


@kernel
def hashed(key: Any, shift: Any) -> Any:
    """The bucket of a key: the upper bits of its product with a constant (Fibonacci hashing)."""
    return (np.uint64(key) * np.uint64(0x9E3779B97F4A7C15)) >> shift


@kernel
def _layout(
    key: Array, low: Array, high: Array, same_axis: bool, shift: Any, finer: Any
) -> tuple[Array, Array, Array, Array, Array, Array]:
    """Lay rows out by bucket, keeping their order within each, and note which finer buckets hold any."""
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
    """Which rows may have a partner at all.

    Most buffered rows have none among a step's arrivals. Passing those over without a branch that the
    processor has to guess is what makes a large buffer cheap to stream past.
    """
    found = np.empty(len(key), np.int32)
    n = 0
    for i in range(len(key)):
        found[n] = i
        n += present[hashed(key[i], finer)]
    return found[:n]


@kernel
def _first(values: Array, start: Any, stop: Any, bound: Any, past: bool) -> Any:
    """The first position in the sorted stretch whose value is >= bound, or > bound when `past`."""
    while start < stop:
        middle = (start + stop) >> 1
        if values[middle] < bound or (past and values[middle] == bound):
            start = middle + 1
        else:
            stop = middle
    return start


@kernel
def _within(values: Array, start: Any, stop: Any, origin: Any, reach: Any, past: bool) -> Any:
    """The first position whose distance from the origin is >= reach, or > reach when `past`."""
    while start < stop:
        middle = (start + stop) >> 1
        value = values[middle]
        apart = value - origin
        # Integers further apart than 64 bits can say have wrapped around; floats never do.
        wrapped_up = value >= 0 and origin < 0 and apart < 0
        wrapped_down = value < 0 and origin >= 0 and apart > 0
        if wrapped_down or (not wrapped_up and (apart < reach or (past and apart == reach))):
            start = middle + 1
        else:
            stop = middle
    return start


@kernel
def _span(
    rule: _Rule, shift: Any, starts: Array, keys: Array, lows: Array, highs: Array,
    key: Any, low: Any, high: Any, reach_low: Any, reach_high: Any,
) -> Any:  # fmt: skip
    """Where partners may be: `[begin, end)`, less `[gap, resume)`."""
    equal, band, negated, low_end, high_end, low_offset, high_offset = rule
    if equal:
        b = hashed(key, shift)
        begin, end = np.int64(starts[b]), np.int64(starts[b + np.uint64(1)])
        if end - begin > _LONG_BUCKET:
            begin = _within(lows, begin, end, low, -reach_low, False)
            end = _within(highs, begin, end, high, reach_high, True)
        return begin, end, end, end
    begin, end = np.int64(0), np.int64(len(keys))
    if band:
        begin = np.int64(_within(keys, begin, end, key, low_offset, False))
        end = np.int64(_within(keys, begin, end, key, high_offset, True))
        return begin, end, end, end
    if low_end != _FREE:
        begin = np.int64(_first(keys, begin, end, key, low_end == _OPEN))
    if high_end != _FREE:
        end = np.int64(_first(keys, begin, end, key, high_end == _CLOSED))
    if negated:
        return np.int64(0), np.int64(len(keys)), begin, end
    return begin, end, end, end


@kernel
def combined(combine: int, a: float, b: float) -> float:
    """The importance of a result from its partners'."""
    if combine == _MIN:
        return min(a, b)
    if combine == _MAX:
        return max(a, b)
    if combine == _SUM:
        return a + b
    if combine == _PRODUCT:
        return a * b
    return (a + b) / 2.0


@kernel
def importances(combine: int, left: Array, right: Array, at_left: Array, at_right: Array) -> Array:
    """The importance of each of some pairs."""
    found = np.empty(len(at_left))
    for i in range(len(at_left)):
        found[i] = combined(combine, left[at_left[i]], right[at_right[i]])
    return found


@kernel
def _count(
    rule: _Rule, shift: Any, starts: Array, order: Array, keys: Array, lows: Array, highs: Array,
    likely: Array, key: Array, low: Array, high: Array, reach_low: Any, reach_high: Any,
    hits_indexed: Array, hits_probing: Array, worth_indexed: Array, worth_probing: Array, combine: int,
    watch: Watch,
) -> tuple[int, float]:  # fmt: skip
    """Count partners without forming pairs; returns results and their importance."""
    total = 0
    worth = 0.0
    equal = rule[0]
    weighed = len(worth_probing) > 0
    watched = watch.counts.shape[1] > 0
    for i in likely:
        begin, end, gap, resume = _span(
            rule, shift, starts, keys, lows, highs, key[i], low[i], high[i], reach_low, reach_high
        )
        found = 0
        j = begin
        while j < end:
            if j == gap:
                j = resume
                if j >= end:
                    break
            near = low[i] - lows[j] <= reach_low and highs[j] - high[i] <= reach_high
            if near and (not equal or keys[j] == key[i]):
                found += 1
                hits_indexed[order[j]] += 1
                if weighed:
                    worth += combined(combine, worth_indexed[order[j]], worth_probing[i])
                if watched:
                    note_age(watch, low[i], lows[j])
            j += 1
        hits_probing[i] += found
        total += found
    return total, worth


@kernel
def _emit(
    rule: _Rule, shift: Any, starts: Array, order: Array, keys: Array, lows: Array, highs: Array,
    likely: Array, key: Array, low: Array, high: Array, reach_low: Any, reach_high: Any,
    row: int, at: int, out_indexed: Array, out_probing: Array,
) -> tuple[int, int, int]:  # fmt: skip
    """Write pairs until the output is full; returns how many, and the row and place to go on from."""
    n = 0
    equal = rule[0]
    room = len(out_indexed)
    for nth in range(row, len(likely)):
        i = likely[nth]
        begin, end, gap, resume = _span(
            rule, shift, starts, keys, lows, highs, key[i], low[i], high[i], reach_low, reach_high
        )
        j = max(begin, at)
        at = 0
        while j < end:
            if gap <= j < resume:
                j = resume
                if j >= end:
                    break
            near = low[i] - lows[j] <= reach_low and highs[j] - high[i] <= reach_high
            if near and (not equal or keys[j] == key[i]):
                if n == room:
                    return n, nth, j
                out_indexed[n] = order[j]
                out_probing[n] = i
                n += 1
            j += 1
    return n, len(likely), 0


_NO_WORTH: Final = np.empty(0, np.float64)
_NO_PLACES: Final = np.empty(0, np.int32)
_LIKELY: Final = 7


@dataclass(frozen=True)
class Axes:
    """The columns of some rows that a condition and a window look at."""

    key: Array
    left: Array
    right: Array


class Index:
    """The arrivals of one side, arranged to be probed by rows of the other.

    Parameters
    ----------
    side
        The side that is indexed.
    rows
        Its arrivals, in order of time.
    condition, reach_left, reach_right
        What joins: the condition on keys and the window's two lengths.
    """

    def __init__(
        self, side: Side, rows: Axes, condition: Condition, reach_left: Time, reach_right: Time
    ) -> None:
        self._side = side
        self._rule = _rule(condition, side, rows.key.dtype)
        number = rows.left.dtype.type
        reaches = number(reach_left), number(reach_right)
        self._reaches = reaches if side == "left" else reaches[::-1]
        bits = max(1, len(rows.key).bit_length())
        self._shift = np.uint64(64 - bits)
        self._finer = np.uint64(64 - bits - min(max(_CACHED - bits, _FINER[0]), _FINER[1]))
        low, high = self._bounds(rows)
        if self._rule.equal:
            self._present, *self._layout = _layout(rows.key, low, high, low is high, self._shift, self._finer)
        else:
            order = np.argsort(rows.key, kind="stable").astype(np.int32)
            lows = low[order]
            highs = lows if low is high else high[order]
            self._layout = [_NO_PLACES, order, rows.key[order], lows, highs]

    def _bounds(self, rows: Axes) -> tuple[Array, Array]:
        # An indexed left row is bounded from below by the left window and from above by the right one;
        # for an indexed right row it is the other way round.
        return (rows.left, rows.right) if self._side == "left" else (rows.right, rows.left)

    def _search(self, probing: Axes) -> tuple[Any, ...]:
        """What both compiled loops begin with; the rows that may have partners come seventh."""
        everyone = not self._rule.equal
        count = len(probing.key)
        likely = np.arange(count) if everyone else _likely(self._present, self._finer, probing.key)
        found = likely.astype(np.int32, copy=False)
        return (
            self._rule,
            self._shift,
            *self._layout,
            found,
            probing.key,
            *self._bounds(probing),
            *self._reaches,
        )

    def count(
        self,
        probing: Axes,
        hits: tuple[Array, Array],
        worth: tuple[Array, Array] | None = None,
        combine: Combine = "min",
        watch: Watch = NO_WATCH,
    ) -> tuple[int, float]:
        """Count results and add up their importance; `hits` and `worth` are (indexed, probing)."""
        worths = worth or (_NO_WORTH, _NO_WORTH)
        arguments = (*self._search(probing), *hits, *worths, COMBINES[combine], watch)
        total, importance = _count(*arguments)
        return int(total), float(importance)

    def pairs(self, probing: Axes, chunk: int = PAIRS_AT_A_TIME) -> Iterator[Pairs]:
        """Yield results as (left, right) positions, at most `chunk` at a time."""
        search = self._search(probing)
        row, at, rows = 0, 0, len(search[_LIKELY])
        while row < rows:
            out_indexed, out_probing = np.empty(chunk, np.int32), np.empty(chunk, np.int32)
            arguments = (*search, row, at, out_indexed, out_probing)
            n, row, at = _emit(*arguments)
            if n:
                found = (out_indexed[:n], out_probing[:n])
                yield Pairs(*(found if self._side == "left" else found[::-1]))
