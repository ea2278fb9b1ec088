"""Which combinations of rows can decide an alarm: the compiled search.

An arrival is combined with rows that came before it. Streams are taken one after another, rows of each as far as
those already taken allow; the streams taken last are joined to none of each other, so of each only the highest and
the lowest row that fits can give the largest value of a function that is quasiconvex in it.
"""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np

from tidegate.alerts.brackets import near
from tidegate.compiled import kernel
from tidegate.types import Array

QUASICONVEX, INCREASING, DECREASING = 0, 1, 2
ENOUGH: Final = 1 << 18
"""After so many combinations they are looked at, before the search goes on."""


class Pool(NamedTuple):
    """The rows of all streams, one stream after another, each in order of time; arrivals know their rank."""

    time: Array
    value: Array
    rank: Array
    offsets: Array


class Rule(NamedTuple):
    """When rows lie together: no more than `within` apart, or in one of the windows that begin every `hop`."""

    joined: Array
    within: float
    strict: bool
    hop: float


class Plan(NamedTuple):
    """For arrivals of each stream, in which order the others are taken, and how many of them row by row."""

    order: Array
    inner: Array
    shapes: Array


@kernel
def _tied(early: float, late: float, rule: Rule) -> bool:
    if rule.hop <= 0:
        return near(early, late, rule.within, rule.strict)
    end = early // rule.hop * rule.hop + rule.within
    return late < end or (late == end and not rule.strict)


@kernel
def _bounds(stream: int, taken: Array, pool: Pool, rule: Rule) -> tuple[float, float]:
    """The earliest and the latest of the rows taken that this stream is joined to."""
    first, last = pool.time[0], pool.time[0]
    found = False
    for other in range(len(taken)):
        if taken[other] >= 0 and rule.joined[stream, other]:
            time = pool.time[taken[other]]
            first = min(first, time) if found else time
            last = max(last, time) if found else time
            found = True
    return first, last


@kernel
def _begin(stream: int, last: float, pool: Pool, rule: Rule) -> int:
    """Where the stream's rows begin that are not too early."""
    low, high = int(pool.offsets[stream]), int(pool.offsets[stream + 1])
    while low < high:
        middle = (low + high) >> 1
        if pool.time[middle] >= last or _tied(pool.time[middle], last, rule):
            high = middle
        else:
            low = middle + 1
    return low


@kernel
def _in_time(first: float, time: float, rule: Rule) -> bool:
    return time <= first or _tied(first, time, rule)


@kernel
def _extremes(stream: int, rank: int, taken: Array, pool: Pool, rule: Rule) -> tuple[int, int]:
    """The highest and the lowest row that fits; -1 if none does."""
    first, last = _bounds(stream, taken, pool, rule)
    high = low = -1
    for place in range(_begin(stream, last, pool, rule), pool.offsets[stream + 1]):
        if not _in_time(first, pool.time[place], rule):
            break
        if pool.rank[place] < rank:
            if high < 0 or pool.value[place] > pool.value[high]:
                high = place
            if low < 0 or pool.value[place] < pool.value[low]:
                low = place
    return high, low


@kernel
def _corners(
    rank: int, outer: Array, taken: Array, pool: Pool, rule: Rule, shapes: Array, found: Array, size: int
) -> tuple[Array, int]:
    """Add the combinations of the rows taken with the extremes of the outer streams."""
    ends = np.empty((2, len(outer)), np.int64)
    for at, stream in enumerate(outer):
        high, low = _extremes(stream, rank, taken, pool, rule)
        if high < 0:
            return found, size
        ends[0, at] = low if shapes[stream] == DECREASING else high
        ends[1, at] = low if shapes[stream] == QUASICONVEX else ends[0, at]
    for corner in range(1 << len(outer)):
        again = False
        for at in range(len(outer)):
            again |= bool(corner >> at & 1) and ends[1, at] == ends[0, at]
        if again:
            continue
        if size == len(found):
            grown = np.empty((2 * size + 64, found.shape[1]), np.int64)
            grown[:size] = found
            found = grown
        found[size, :-1] = taken
        for at, stream in enumerate(outer):
            found[size, stream] = ends[corner >> at & 1, at]
        found[size, -1] = rank
        size += 1
    return found, size


@kernel
def combined(
    begin: int, streams: Array, places: Array, pool: Pool, rule: Rule, plan: Plan
) -> tuple[Array, int]:
    """Find combinations for the arrivals from `begin` on; a row each, with the arrival's rank at its end.

    Returns also the first arrival that was not looked at for want of room.
    """
    count = len(pool.offsets) - 1
    found = np.empty((256, count + 1), np.int64)
    size = 0
    taken = np.full(count, -1, np.int64)
    cursors = np.empty(count, np.int64)
    firsts = np.empty(count, pool.time.dtype)
    for rank in range(begin, len(streams)):
        if size >= ENOUGH:
            return found[:size], rank
        own = streams[rank]
        time = pool.time[places[rank]]
        if not _tied(time, time, rule):
            continue
        taken[:] = -1
        taken[own] = places[rank]
        order, inner = plan.order[own], plan.inner[own]
        depth, fresh = 0, True
        while depth >= 0:
            if depth == inner:
                found, size = _corners(rank, order[inner:], taken, pool, rule, plan.shapes, found, size)
                depth, fresh = depth - 1, False
                continue
            stream = order[depth]
            if fresh:
                taken[stream] = -1
                firsts[depth], last = _bounds(stream, taken, pool, rule)
                cursors[depth] = _begin(stream, last, pool, rule)
            else:
                cursors[depth] += 1
            end = pool.offsets[stream + 1]
            while cursors[depth] < end and pool.rank[cursors[depth]] >= rank:
                cursors[depth] += 1
            fresh = cursors[depth] < end and _in_time(firsts[depth], pool.time[cursors[depth]], rule)
            taken[stream] = cursors[depth] if fresh else -1
            depth += 1 if fresh else -1
    return found[:size], len(streams)
