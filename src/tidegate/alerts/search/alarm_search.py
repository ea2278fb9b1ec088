"""Find the alarms of arrivals, given stores of the rows that arrived before."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, NamedTuple, TypeAlias

import numpy as np

from tidegate.alerts.search.combinations import CandidateRows, JoinRule, SearchState, find_combinations
from tidegate.alerts.search.search_plan import SearchPlan, plan_search, plan_upper_bound
from tidegate.alerts.stores.bracket_store import BracketStore, ClosedEnds
from tidegate.alerts.validation import check_duration
from tidegate.types import Array, InputError, Time, check_choice

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from tidegate.alerts.topology import Topology

_GROUP: Final = 512
"""The arrivals that are matched together, before the stores get them: among these no row is omitted yet."""
AlarmFunction: TypeAlias = Callable[[dict[str, Array]], "ArrayLike"]
"""A column of values by stream, to a column of numbers or truth values."""


@dataclass(frozen=True)
class Alarms:
    """Alarms as columns, in the order in which they were raised.

    Parameters
    ----------
    stream
        The stream of the arrival that raised the alarm: a position in the topology's streams.
    level
        The value of the function.
    time, value, id
        By stream: its row of the combination. The id of a row is its number among the arrivals of its stream.
    """

    stream: Array
    level: Array
    time: dict[str, Array]
    value: dict[str, Array]
    id: dict[str, Array]

    def __len__(self) -> int:
        return len(self.level)


class NewRows(NamedTuple):
    """Arrivals of one stream, in any order."""

    time: Array
    value: Array
    id: Array


class AlarmSearch:
    """How alarms are found: the function, and when rows are joined. It has no state: rows are in the given stores.

    The parameters are those of `AlarmFinder`.
    """

    def __init__(
        self,
        topology: Topology,
        function: AlarmFunction,
        *,
        threshold: float = 0.0,
        hop: Time | None = None,
        closed: ClosedEnds = "both",
    ) -> None:
        check_choice(closed, ClosedEnds, "closed")
        if closed not in (("both", "left") if hop is not None else ("both", "neither")):
            raise InputError(
                f"closed={closed!r} is not supported here; give 'both', or 'left' with hop= and 'neither' without it"
            )
        self.streams = streams = topology.streams
        if hop is not None:
            check_duration(hop, "hop")
            if any(len(topology.partners(name)) < len(streams) - 1 for name in streams):
                raise InputError(
                    "hop needs all streams to be joined to each other; use Topology.clique, or no hop"
                )
        self.topology, self.function, self.threshold, self.hop = topology, function, threshold, hop
        self.closed: ClosedEnds = closed
        self.reach: dict[str, Time] = {
            name: topology.within * (1 if hop is not None else max(topology.distances(name).values()))
            for name in streams
        }
        """The maximal time between a row of each stream and any other row of its alarm."""
        self._plan = plan_search(topology)
        self._upper_bound_plan = plan_upper_bound(topology, self._plan)
        self._joined = np.array([[other in topology.partners(name) for other in streams] for name in streams])

    def new_stores(self, budget: int | None) -> dict[str, BracketStore]:
        """An empty store for each stream, which keeps the rows that an alarm may need."""
        return {name: self._new_store(name, budget) for name in self.streams}

    def _new_store(self, name: str, budget: int | None) -> BracketStore:
        omission = self.topology.omission(name)
        if omission.omega is None:
            return BracketStore(self.topology.within, "any", budget=budget)
        if self.hop is not None:
            return BracketStore(self.topology.within, omission.shape, budget=budget)
        # The rows that can be joined to one row of the partner lie in an open interval of length 2 * within.
        strict = self.closed == "neither" and len(self.topology.partners(name)) == 1
        return BracketStore(omission.omega, omission.shape, "neither" if strict else "both", budget=budget)

    def find(self, stores: Mapping[str, BracketStore], arrivals: Mapping[str, NewRows]) -> tuple[Alarms, int]:
        """The alarms of arrivals with rows that came before, and how many combinations have no defined value.

        Arrivals are matched in order of time, at equal times in the order of the streams. Then their stores get them.
        """
        parts = [arrivals[name] for name in self.streams]
        own = np.repeat(np.arange(len(parts)), [len(part.time) for part in parts])
        when, value, ids = (np.concatenate(columns) for columns in zip(*parts, strict=True))
        order = np.lexsort((own, when))
        found = [
            self._match(stores, own[some], when[some], value[some], ids[some])
            for some in np.array_split(order, range(_GROUP, len(order), _GROUP))
        ]
        return _concatenate(self.streams, [alarms for alarms, _ in found]), sum(count for _, count in found)

    def _match(
        self, stores: Mapping[str, BracketStore], own: Array, when: Array, value: Array, ids: Array
    ) -> tuple[Alarms, int]:
        """Match arrivals in their order, then offer them to their stores."""
        candidates, times, candidate_ids = self._candidates(stores, own, when, value, ids)
        best, level = np.empty((0, len(self.streams) + 1), np.int64), np.empty(0)
        undefined = 0
        if len(when) and np.diff(candidates.offsets).all():
            best, level, undefined = self._highest_alarms(own, candidates)
        for at, name in enumerate(self.streams):
            arrivals = own == at
            stores[name].extend(when[arrivals], value[arrivals], ids[arrivals])
        alarms = Alarms(
            own[best[:, -1]],
            level,
            *(
                {name: column[best[:, at]] for at, name in enumerate(self.streams)}
                for column in (times, candidates.value, candidate_ids)
            ),
        )
        return alarms, undefined

    def _highest_alarms(self, own: Array, candidates: CandidateRows) -> tuple[Array, Array, int]:
        """The highest combination of each arrival that raises an alarm, its level, and how many levels are NaN."""
        rule = self._join_rule(candidates)
        arrivals = np.flatnonzero(candidates.rank >= 0)
        places = np.empty(len(own), np.int64)
        places[candidates.rank[arrivals]] = arrivals
        ranks = np.arange(len(own))
        if self._upper_bound_plan is not None:
            # Only arrivals whose upper bound exceeds the threshold, or is undefined, are searched.
            possible = [
                found[~(self._levels(found, candidates) <= self.threshold), -1]
                for found in _combinations(ranks, own, places, candidates, rule, self._upper_bound_plan)
            ]
            ranks = np.unique(np.concatenate(possible))
        undefined = 0
        parts = [(np.empty((0, len(self.streams) + 1), np.int64), np.empty(0))]
        for found in _combinations(ranks, own, places, candidates, rule, self._plan):
            level = self._levels(found, candidates)
            undefined += int(np.isnan(level).sum())
            best = _highest(found[:, -1], level)
            best = best[level[best] > self.threshold]
            parts.append((found[best], level[best]))
        found, level = (np.concatenate(columns) for columns in zip(*parts, strict=True))
        # An arrival with very many combinations occurs in several parts.
        first = _highest(found[:, -1], level)
        return found[first], level[first], undefined

    def _candidates(
        self, stores: Mapping[str, BracketStore], own: Array, when: Array, value: Array, ids: Array
    ) -> tuple[CandidateRows, Array, Array]:
        """The arrivals and the kept rows that they can reach; also their times and ids."""
        parts = []
        for at, (name, store) in enumerate(stores.items()):
            kept = store.retained()
            some = _reachable(kept.time, when, self.reach[name])
            arrivals = np.flatnonzero(own == at)
            time = np.concatenate((kept.time[some], when[arrivals]))
            order = np.argsort(time, kind="stable")
            rank = np.concatenate((np.full(len(time) - len(arrivals), -1), arrivals))
            parts.append(
                (
                    time[order],
                    np.concatenate((kept.value[some], value[arrivals]))[order],
                    rank[order],
                    np.concatenate((store.ids[some], ids[arrivals]))[order],
                )
            )
        time, values, rank, all_ids = (np.concatenate(columns) for columns in zip(*parts, strict=True))
        offsets = np.cumsum([0, *(len(part[0]) for part in parts)])
        integers = time.dtype.kind == "i" and float(self.hop or 0).is_integer()
        searched = time if integers else time.astype(np.float64)
        return CandidateRows(searched, values, rank, offsets), time, all_ids

    def _join_rule(self, candidates: CandidateRows) -> JoinRule:
        """When rows are joined; in integers if times are integers, so that nothing is rounded."""
        within, hop, strict = self.topology.within, self.hop or 0, self.closed != "both"
        if candidates.time.dtype.kind == "f":
            return JoinRule(self._joined, float(within), strict, float(hop))
        bound = math.ceil(within) - 1 if strict else math.floor(within)
        return JoinRule(self._joined, bound, strict=False, hop=int(hop))

    def _levels(self, found: Array, candidates: CandidateRows) -> Array:
        """The value of the function for each combination."""
        if not len(found):
            return np.empty(0)
        columns = {name: candidates.value[found[:, at]] for at, name in enumerate(self.streams)}
        level = np.asarray(self.function(columns), np.float64)
        if level.shape != (len(found),):
            raise InputError(
                f"the function returned shape {level.shape} for columns of {len(found)} values; it must return one "
                "number per row"
            )
        return level


def _reachable(kept: Array, when: Array, reach: Time) -> slice:
    """The kept rows that may be within reach of the arrivals; both are in order of time."""
    if not len(when):
        return slice(0, 0)
    # A little more than reach: rounding must not exclude a row.
    far = math.ceil(reach) if when.dtype.kind == "i" else np.nextafter(reach, np.inf) * (1 + 1e-15)
    first = np.searchsorted(kept, when[0] - far, side="left")
    return slice(int(first), int(np.searchsorted(kept, when[-1] + far, side="right")))


def _combinations(
    ranks: Array, own: Array, places: Array, candidates: CandidateRows, rule: JoinRule, plan: SearchPlan
) -> Iterator[Array]:
    """The combinations of the arrivals with these ranks, in parts: a position by stream, and the rank."""
    width = len(candidates.offsets)
    search = SearchState.begin(width - 1)
    while search.at[0] < len(ranks):
        flat, size = find_combinations(search, ranks, own, places, candidates, rule, plan)
        yield flat[: size * width].reshape(size, width)


def _highest(rank: Array, level: Array) -> Array:
    """The position of the highest level of each rank, in order of rank."""
    order = np.lexsort((np.where(np.isnan(level), np.inf, -level), rank))
    return order[np.flatnonzero(np.diff(rank[order], prepend=-1))]


def _concatenate(names: tuple[str, ...], alarms: list[Alarms]) -> Alarms:
    return Alarms(
        np.concatenate([some.stream for some in alarms]),
        np.concatenate([some.level for some in alarms]),
        *(
            {name: np.concatenate([getattr(some, part)[name] for some in alarms]) for name in names}
            for part in ("time", "value", "id")
        ),
    )
