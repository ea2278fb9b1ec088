"""The compiled search for the combinations of rows that can decide an alarm.

An arrival is combined with rows that arrived before it. The search goes through the streams in the order of a
`SearchPlan`, and chooses a row of each that is close in time to the rows already chosen. The last streams are not
joined to each other. So for each of them only the highest and the lowest row that fits can give the largest value of
a function that is quasiconvex in it.
"""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np

from tidegate.alerts.search.search_plan import DECREASING, QUASICONVEX, SearchPlan
from tidegate.alerts.stores.brackets import is_within
from tidegate.compiled import kernel
from tidegate.types import Array, Time

MAX_COMBINATIONS: Final = 1 << 18
"""The number of combinations after which the search returns, so that memory is bounded; it can be continued."""


class CandidateRows(NamedTuple):
    """The rows that may be combined, one stream after another, each in order of time.

    Attributes
    ----------
    time, value
        The columns of the rows.
    rank
        The position in the order of arrival; -1 for rows that arrived in an earlier step.
    offsets
        Where the rows of each stream begin, and the end.
    """

    time: Array
    value: Array
    rank: Array
    offsets: Array


class JoinRule(NamedTuple):
    """When rows are joined: at most `within` apart, or in one window if `hop` is above 0.

    Windows have the length `within`, and one begins at every multiple of `hop`. Both are integers if times are.
    """

    joined: Array
    within: Time
    strict: bool
    hop: Time


class SearchState(NamedTuple):
    """The position of a search that can be continued.

    Attributes
    ----------
    at
        The number of the arrival, and the depth of the search; the depth is -1 before the arrival is searched.
    chosen
        The chosen row of each stream; -1 if none is chosen.
    cursors
        At each depth, the row that was tried last; -1 before the first.
    """

    at: Array
    chosen: Array
    cursors: Array

    @classmethod
    def begin(cls, streams: int) -> SearchState:
        """The state before the first arrival."""
        return cls(np.array([0, -1]), np.empty(streams, np.int64), np.empty(streams, np.int64))


@kernel
def _are_joined(early: float, late: float, rule: JoinRule) -> bool:
    if rule.hop <= 0:
        return is_within(early, late, rule.within, rule.strict)
    end = early // rule.hop * rule.hop + rule.within
    return late < end or (late == end and not rule.strict)


@kernel
def _time_bounds(
    stream: int, chosen: Array, candidates: CandidateRows, rule: JoinRule
) -> tuple[float, float]:
    """The earliest and the latest time of the chosen rows that this stream is joined to."""
    first, last = candidates.time[0], candidates.time[0]
    found = False
    for other in range(len(chosen)):
        if chosen[other] >= 0 and rule.joined[stream, other]:
            time = candidates.time[chosen[other]]
            first = min(first, time) if found else time
            last = max(last, time) if found else time
            found = True
    return first, last


@kernel
def _first_candidate(stream: int, last: float, candidates: CandidateRows, rule: JoinRule) -> int:
    """The first row of the stream that is not too early for the latest chosen row."""
    low, high = int(candidates.offsets[stream]), int(candidates.offsets[stream + 1])
    while low < high:
        middle = (low + high) >> 1
        if candidates.time[middle] >= last or _are_joined(candidates.time[middle], last, rule):
            high = middle
        else:
            low = middle + 1
    return low


@kernel
def _not_too_late(first: float, time: float, rule: JoinRule) -> bool:
    return time <= first or _are_joined(first, time, rule)


@kernel
def _extremes(
    stream: int, rank: int, chosen: Array, candidates: CandidateRows, rule: JoinRule
) -> tuple[int, int]:
    """The highest and the lowest row of the stream that fit the chosen rows; -1 if none does."""
    first, last = _time_bounds(stream, chosen, candidates, rule)
    high = low = -1
    for place in range(_first_candidate(stream, last, candidates, rule), candidates.offsets[stream + 1]):
        if not _not_too_late(first, candidates.time[place], rule):
            break
        if candidates.rank[place] < rank:
            if high < 0 or candidates.value[place] > candidates.value[high]:
                high = place
            if low < 0 or candidates.value[place] < candidates.value[low]:
                low = place
    return high, low


@kernel
def _find_extremes(
    rank: int,
    own: int,
    chosen: Array,
    ends: Array,
    candidates: CandidateRows,
    rule: JoinRule,
    plan: SearchPlan,
) -> bool:
    """Find the extremes of each stream that is not enumerated; returns whether every stream has a row that fits."""
    count = len(chosen)
    for at in range(plan.enumerated[own], count - 1):
        stream = plan.order[own, at]
        high, low = _extremes(stream, rank, chosen, candidates, rule)
        if high < 0:
            return False
        ends[0, stream] = low if plan.shapes[stream] == DECREASING else high
        ends[1, stream] = low if plan.shapes[stream] == QUASICONVEX else ends[0, stream]
    return True


@kernel
def _write_combination(
    choice: int, own: int, chosen: Array, ends: Array, plan: SearchPlan, found: Array, size: int
) -> bool:
    """Write the chosen rows with one choice of extremes; False if that is the same as another choice."""
    count = len(chosen)
    begin = size * (count + 1)
    for stream in range(count):
        found[begin + stream] = chosen[stream]
    for at in range(plan.enumerated[own], count - 1):
        stream = plan.order[own, at]
        extreme = choice >> (at - plan.enumerated[own]) & 1
        if extreme and ends[1, stream] == ends[0, stream]:
            return False
        found[begin + stream] = ends[extreme, stream]
    return True


@kernel
def _doubled(column: Array) -> Array:
    grown = np.empty(2 * len(column), np.int64)
    for place in range(len(column)):
        grown[place] = column[place]
    return grown


@kernel
def _choose_next(
    depth: int,
    rank: int,
    own: int,
    cursors: Array,
    chosen: Array,
    candidates: CandidateRows,
    rule: JoinRule,
    plan: SearchPlan,
) -> bool:
    """Choose the next row of the stream at this depth; False if there is none."""
    stream = plan.order[own, depth]
    chosen[stream] = -1
    first, last = _time_bounds(stream, chosen, candidates, rule)
    place = cursors[depth] + 1 if cursors[depth] >= 0 else _first_candidate(stream, last, candidates, rule)
    end = candidates.offsets[stream + 1]
    while place < end and candidates.rank[place] >= rank:
        place += 1
    cursors[depth] = place
    if place == end or not _not_too_late(first, candidates.time[place], rule):
        return False
    chosen[stream] = place
    return True


@kernel
def find_combinations(  # noqa: C901, PLR0912 - one compiled search
    search: SearchState,
    ranks: Array,
    streams: Array,
    places: Array,
    candidates: CandidateRows,
    rule: JoinRule,
    plan: SearchPlan,
) -> tuple[Array, int]:
    """Find combinations for arrivals, from where the search stopped until there are `MAX_COMBINATIONS`.

    Parameters
    ----------
    search
        The state, which is updated.
    ranks
        The ranks of the arrivals to find combinations for.
    streams, places
        By rank: the stream of an arrival, and its position among the candidates.
    candidates, rule, plan
        The candidates, when rows are joined, and the order of the search.

    Returns
    -------
    tuple
        A flat array with the row of each stream and the rank, for each combination; and their number.
    """
    count = len(candidates.offsets) - 1
    found = np.empty(256 * (count + 1), np.int64)
    size = 0
    chosen, cursors = search.chosen, search.cursors
    ends = np.empty((2, count), np.int64)
    for at in range(search.at[0], len(ranks)):
        rank = ranks[at]
        own = streams[rank]
        enumerated = plan.enumerated[own]
        depth = search.at[1]
        search.at[1] = -1
        if depth < 0:
            time = candidates.time[places[rank]]
            if not _are_joined(time, time, rule):
                continue
            for stream in range(count):
                chosen[stream] = cursors[stream] = -1
            chosen[own] = places[rank]
            depth = 0
        while depth >= 0:
            if size >= MAX_COMBINATIONS:
                search.at[0], search.at[1] = at, depth
                return found, size
            if depth < enumerated:
                if _choose_next(depth, rank, own, cursors, chosen, candidates, rule, plan):
                    depth += 1
                else:
                    cursors[depth] = -1
                    depth -= 1
                continue
            if _find_extremes(rank, own, chosen, ends, candidates, rule, plan):
                for choice in range(1 << (count - 1 - enumerated)):
                    while (size + 1) * (count + 1) > len(found):
                        found = _doubled(found)
                    if _write_combination(choice, own, chosen, ends, plan, found, size):
                        found[size * (count + 1) + count] = rank
                        size += 1
            depth -= 1
    search.at[0] = len(ranks)
    return found, size
