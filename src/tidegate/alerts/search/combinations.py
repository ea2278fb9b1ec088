"""Which combinations of rows can decide an alarm: the compiled search.

An arrival is combined with rows that came before it. Streams are taken one after another, rows of each as far as
those already taken allow; the streams taken last are joined to none of each other, so of each only the highest and
the lowest row that fits can give the largest value of a function that is quasiconvex in it.
"""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np

from tidegate.alerts.search.search_plan import DECREASING, QUASICONVEX, Plan
from tidegate.alerts.stores.brackets import near
from tidegate.compiled import kernel
from tidegate.types import Array, Time

ENOUGH: Final = 1 << 18
"""After so many combinations they are looked at, before the search goes on."""


class Pool(NamedTuple):
    """The rows of all streams, one stream after another, each in order of time; arrivals know their rank."""

    time: Array
    value: Array
    rank: Array
    offsets: Array


class Rule(NamedTuple):
    """When rows lie together: no more than `within` apart, or in one of the windows that begin every `hop`.

    Both are whole numbers if the times of the pool are, and floats else.
    """

    joined: Array
    within: Time
    strict: bool
    hop: Time


class Search(NamedTuple):
    """Where a search is: at which arrival and how deep, below 0 if it has not begun; which rows it has taken."""

    at: Array
    taken: Array
    cursors: Array

    @classmethod
    def begin(cls, streams: int) -> Search:
        """At the first arrival."""
        return cls(np.array([0, -1]), np.empty(streams, np.int64), np.empty(streams, np.int64))


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
def _with_extremes(
    rank: int, own: int, taken: Array, ends: Array, pool: Pool, rule: Rule, plan: Plan
) -> bool:
    """Find the extremes of each stream that is taken last; whether there are rows of all."""
    count = len(taken)
    for at in range(plan.inner[own], count - 1):
        stream = plan.order[own, at]
        high, low = _extremes(stream, rank, taken, pool, rule)
        if high < 0:
            return False
        ends[0, stream] = low if plan.shapes[stream] == DECREASING else high
        ends[1, stream] = low if plan.shapes[stream] == QUASICONVEX else ends[0, stream]
    return True


@kernel
def _corner(number: int, own: int, taken: Array, ends: Array, plan: Plan, found: Array, size: int) -> bool:
    """Write the combination of the rows taken with one choice of extremes; not if another choice is the same."""
    count = len(taken)
    begin = size * (count + 1)
    for stream in range(count):
        found[begin + stream] = taken[stream]
    for at in range(plan.inner[own], count - 1):
        stream = plan.order[own, at]
        lowest = number >> (at - plan.inner[own]) & 1
        if lowest and ends[1, stream] == ends[0, stream]:
            return False
        found[begin + stream] = ends[lowest, stream]
    return True


@kernel
def _doubled(column: Array) -> Array:
    grown = np.empty(2 * len(column), np.int64)
    for place in range(len(column)):
        grown[place] = column[place]
    return grown


@kernel
def _next(
    depth: int, rank: int, own: int, cursors: Array, taken: Array, pool: Pool, rule: Rule, plan: Plan
) -> bool:
    """Take the next row of the stream at this depth; before the first its cursor is below 0."""
    stream = plan.order[own, depth]
    taken[stream] = -1
    first, last = _bounds(stream, taken, pool, rule)
    place = cursors[depth] + 1 if cursors[depth] >= 0 else _begin(stream, last, pool, rule)
    end = pool.offsets[stream + 1]
    while place < end and pool.rank[place] >= rank:
        place += 1
    cursors[depth] = place
    if place == end or not _in_time(first, pool.time[place], rule):
        return False
    taken[stream] = place
    return True


@kernel
def combined(  # noqa: C901, PLR0912 - one compiled search
    search: Search, ranks: Array, streams: Array, places: Array, pool: Pool, rule: Rule, plan: Plan
) -> tuple[Array, int]:
    """Find combinations for arrivals of these ranks: a place a stream, and the rank; and how many there are.

    The search goes on from where it was, and stops where there are enough.
    """
    count = len(pool.offsets) - 1
    found = np.empty(256 * (count + 1), np.int64)
    size = 0
    taken, cursors = search.taken, search.cursors
    ends = np.empty((2, count), np.int64)
    for at in range(search.at[0], len(ranks)):
        rank = ranks[at]
        own = streams[rank]
        inner = plan.inner[own]
        depth = search.at[1]
        search.at[1] = -1
        if depth < 0:
            time = pool.time[places[rank]]
            if not _tied(time, time, rule):
                continue
            for stream in range(count):
                taken[stream] = cursors[stream] = -1
            taken[own] = places[rank]
            depth = 0
        while depth >= 0:
            if size >= ENOUGH:
                search.at[0], search.at[1] = at, depth
                return found, size
            if depth < inner:
                if _next(depth, rank, own, cursors, taken, pool, rule, plan):
                    depth += 1
                else:
                    cursors[depth] = -1
                    depth -= 1
                continue
            if _with_extremes(rank, own, taken, ends, pool, rule, plan):
                for number in range(1 << (count - 1 - inner)):
                    while (size + 1) * (count + 1) > len(found):
                        found = _doubled(found)
                    if _corner(number, own, taken, ends, plan, found, size):
                        found[size * (count + 1) + count] = rank
                        size += 1
            depth -= 1
    search.at[0] = len(ranks)
    return found, size
