"""Find the alarms of several streams as their rows arrive, from the few rows that must be kept."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Self, TypeAlias

import numpy as np

from tidegate.alerts.search.combinations import Pool, Rule, Search, combined
from tidegate.alerts.search.search_plan import Plan, bounding, planned
from tidegate.alerts.stores.bracket_store import BracketStore, Closed, check_length, readings
from tidegate.types import Array, InputError, Time, check_choice

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from tidegate.alerts.topology import Topology

_TOGETHER: Final = 512
"""How many arrivals are matched before the stores are offered them: a stretch in which nothing is omitted yet."""
When: TypeAlias = Callable[[dict[str, Array]], "ArrayLike"]


@dataclass(frozen=True)
class Alarms:
    """Alarms by columns, in the order in which they were raised.

    Parameters
    ----------
    stream
        Whose arrival raised it: a position in the topology's streams.
    level
        The value of the function.
    time, value, id
        Of each stream's row in the combination; a row's id is its number among its stream's arrivals.
    """

    stream: Array
    level: Array
    time: dict[str, Array]
    value: dict[str, Array]
    id: dict[str, Array]

    def __len__(self) -> int:
        return len(self.level)


class AlarmFinder:
    """Each arrival raises one alarm if, with rows that came before it, it exceeds the threshold.

    An arrival is matched before it is offered to its own store, so that whether it raises an alarm, and how high, is
    what it would be if nothing were omitted; the alarm names the highest combination (of equally high ones, any).
    A combination is thus told of by that of its rows which came last, and a row raises at most one alarm.

    Rows of a step arrive in order of time, at equal times in the order of the streams.

    Parameters
    ----------
    topology
        The streams, which of them are joined, and how the function depends on each.
    when
        The function: takes a column of values by stream, gives a column of numbers (or of truth values).
    threshold
        Above it there is an alarm.
    hop
        Where given, rows are joined that lie in one of the windows of length `within` that begin at the multiples of
        this; the topology is then a clique.
    closed
        "both" or "neither": whether rows exactly `within` apart are joined. With `hop`, "both" or "left".
    budget
        How many rows of each stream may stay at most; None for as many as must. `chance` tells what it costs.

    Examples
    --------
    >>> from tidegate.alerts import Topology
    >>> moist = AlarmFinder(Topology.clique(["damp", "cold"], within=5), lambda of: of["damp"] + of["cold"] - 9)
    >>> step = {"damp": ([0, 1, 2], [5.0, 3.0, 4.0]), "cold": ([3, 9], [4.5, 9.0])}
    >>> alarms = moist.step(step, watermark=9)
    >>> alarms.time["damp"], alarms.time["cold"], alarms.level
    (array([0]), array([3]), array([0.5]))
    >>> {name: len(store) for name, store in moist.stores.items()}
    {'damp': 0, 'cold': 1}

    References
    ----------
    Optimization of Threshold Functions over Streams, sections 2.1, 3 and 4.

    Deviations
    ----------
    The paper says only that an alarm is raised; here one is raised for each arrival that completes a combination. For
    hopping windows the rows are kept that sliding intervals of the same length need, which are enough.
    """

    def __init__(
        self,
        topology: Topology,
        when: When,
        *,
        threshold: float = 0.0,
        hop: Time | None = None,
        closed: Closed = "both",
        budget: int | None = None,
    ) -> None:
        check_choice(closed, Closed, "closed")
        if closed not in (("both", "left") if hop is not None else ("both", "neither")):
            raise InputError(
                f"closed {closed!r} is not of use here; give 'both', or 'neither' without and 'left' with hop"
            )
        streams = topology.streams
        if hop is not None:
            check_length(hop, "hop")
            if any(len(topology.partners(name)) < len(streams) - 1 for name in streams):
                raise InputError("hop wants all streams joined to each other; use Topology.clique, or no hop")
        self.topology, self.when, self.threshold, self.hop = topology, when, threshold, hop
        self.closed: Closed = closed
        self.watermark: Time | None = None
        self.arrived, self.late, self.nan = (dict.fromkeys(streams, 0) for _ in range(3))
        self.undefined = 0
        self.stores = {name: self._store(name, budget) for name in streams}
        self.reach: dict[str, Time] = {
            name: topology.within * (1 if hop is not None else max(topology.distances(name).values()))
            for name in streams
        }
        """How far apart a row of each stream and any other of its alarm can be."""
        self._plan = planned(topology)
        self._loose = bounding(topology, self._plan)
        self._joined = np.array([[other in topology.partners(name) for other in streams] for name in streams])

    def _store(self, name: str, budget: int | None) -> BracketStore:
        told = self.topology.omission(name)
        if told.omega is None:
            return BracketStore(self.topology.within, "any", budget=budget)
        if self.hop is not None:
            return BracketStore(self.topology.within, told.shape, budget=budget)
        # A pair less than the bound apart cannot tell the ends of a bracket of just that length from its inside.
        strict = self.closed == "neither" and len(self.topology.partners(name)) == 1
        return BracketStore(told.omega, told.shape, "neither" if strict else "both", budget=budget)

    @property
    def chance(self) -> float:
        """The estimated chance that an alarm is missed, which only a budget can cause."""
        return 1 - math.prod(1 - store.chance for store in self.stores.values())

    def step(self, rows: Mapping[str, tuple[ArrayLike, ArrayLike]], watermark: Time | None = None) -> Alarms:
        """Take arrivals, times and values by stream, and tell the alarms that they raise.

        Rows at or before an earlier watermark are late, and values that are NaN say nothing: both are counted and
        left out. A `watermark` says that no row will follow with such a time or an earlier one.
        """
        unknown = [name for name in rows if name not in self.stores]
        if unknown:
            raise InputError(f"there is no stream {unknown[0]!r}; there is {', '.join(self.stores)}")
        parts = [self._taken(name, *rows.get(name, ((), ()))) for name in self.stores]
        own = np.repeat(np.arange(len(parts)), [len(when) for when, _, _ in parts])
        when, value, number = (np.concatenate(columns) for columns in zip(*parts, strict=True))
        order = np.lexsort((own, when))
        alarms = [
            self._matched(own[some], when[some], value[some], number[some])
            for some in np.array_split(order, range(_TOGETHER, len(order), _TOGETHER))
        ]
        if watermark is not None and (self.watermark is None or watermark > self.watermark):
            self.watermark = watermark
            for name, store in self.stores.items():
                store.trim(watermark - self.reach[name])
        return _together(list(self.stores), alarms)

    def _taken(self, name: str, times: ArrayLike, values: ArrayLike) -> tuple[Array, Array, Array]:
        when, value = readings(times, values)
        number = np.arange(self.arrived[name], self.arrived[name] + len(when))
        self.arrived[name] += len(when)
        late = np.zeros(len(when), bool) if self.watermark is None else when <= self.watermark
        blank = np.isnan(value) & ~late
        self.late[name] += int(late.sum())
        self.nan[name] += int(blank.sum())
        stays = ~(late | blank)
        return when[stays], value[stays], number[stays]

    def _matched(self, own: Array, when: Array, value: Array, number: Array) -> Alarms:
        """Match arrivals in their order, then offer them to their stores."""
        pool, times, ids = self._pool(own, when, value, number)
        streams = list(self.stores)
        best, level = np.empty((0, len(streams) + 1), np.int64), np.empty(0)
        if len(when) and np.diff(pool.offsets).all():
            rule = self._rule(pool)
            fresh = np.flatnonzero(pool.rank >= 0)
            places = np.empty(len(when), np.int64)
            places[pool.rank[fresh]] = fresh
            ranks = np.arange(len(when))
            if self._loose is not None:
                some = [
                    found[~(self._levels(found, pool) <= self.threshold), -1]
                    for found in _found(ranks, own, places, pool, rule, self._loose)
                ]
                ranks = np.unique(np.concatenate(some))
            parts = [
                (best, level),
                *(self._best(found, pool) for found in _found(ranks, own, places, pool, rule, self._plan)),
            ]
            best, level = (np.concatenate(columns) for columns in zip(*parts, strict=True))
            first = _highest(best[:, -1], level)  # an arrival of very many combinations is in several parts
            best, level = best[first], level[first]
        for number_of, name in enumerate(streams):
            its = own == number_of
            self.stores[name].extend(when[its], value[its], number[its])
        return Alarms(
            own[best[:, -1]],
            level,
            *(
                {name: column[best[:, at]] for at, name in enumerate(streams)}
                for column in (times, pool.value, ids)
            ),
        )

    def _pool(self, own: Array, when: Array, value: Array, number: Array) -> tuple[Pool, Array, Array]:
        """The stored rows that these arrivals can reach, and the arrivals; their times and ids, too."""
        parts = []
        for at, (name, store) in enumerate(self.stores.items()):
            there = store.retained()
            some = _reached(there.time, when, self.reach[name])
            its = np.flatnonzero(own == at)
            time = np.concatenate((there.time[some], when[its]))
            order = np.argsort(time, kind="stable")
            rank = np.concatenate((np.full(len(time) - len(its), -1), its))
            parts.append(
                (
                    time[order],
                    np.concatenate((there.value[some], value[its]))[order],
                    rank[order],
                    np.concatenate((store.ids[some], number[its]))[order],
                )
            )
        time, values, rank, ids = (np.concatenate(columns) for columns in zip(*parts, strict=True))
        offsets = np.cumsum([0, *(len(part[0]) for part in parts)])
        whole = time.dtype.kind == "i" and float(self.hop or 0).is_integer()
        return Pool(time if whole else time.astype(np.float64), values, rank, offsets), time, ids

    def _rule(self, pool: Pool) -> Rule:
        """When rows lie together: in whole numbers for whole times, of which none is rounded then."""
        within, hop, strict = self.topology.within, self.hop or 0, self.closed != "both"
        if pool.time.dtype.kind == "f":
            return Rule(self._joined, float(within), strict, float(hop))
        bound = math.ceil(within) - 1 if strict else math.floor(within)
        return Rule(self._joined, bound, strict=False, hop=int(hop))

    def _best(self, found: Array, pool: Pool) -> tuple[Array, Array]:
        """The highest combination of each arrival, if it is an alarm."""
        level = self._levels(found, pool)
        self.undefined += int(np.isnan(level).sum())
        best = _highest(found[:, -1], level)
        best = best[level[best] > self.threshold]
        return found[best], level[best]

    def _levels(self, found: Array, pool: Pool) -> Array:
        """The value of the function for each combination."""
        if not len(found):
            return np.empty(0)
        told = self.when({name: pool.value[found[:, at]] for at, name in enumerate(self.stores)})
        level = np.asarray(told, np.float64)
        if level.shape != (len(found),):
            raise InputError(
                f"the function gave {level.shape} for columns of {len(found)} values; it must give one number a row"
            )
        return level

    def snapshot(self) -> dict[str, Array]:
        """All that is to be known of it, as arrays."""
        state = {
            f"{name}.{part}": column
            for name, store in self.stores.items()
            for part, column in store.snapshot().items()
        }
        counts = [list(counted.values()) for counted in (self.arrived, self.late, self.nan)]
        marks = [] if self.watermark is None else [self.watermark]
        return state | {
            "counts": np.array(counts),
            "undefined": np.array([self.undefined]),
            "watermark": np.array(marks),
        }

    def restore(self, state: dict[str, Array]) -> Self:
        """Take up what `snapshot` gave."""
        for name, store in self.stores.items():
            store.restore(
                {
                    key.removeprefix(f"{name}."): column
                    for key, column in state.items()
                    if key.startswith(f"{name}.")
                }
            )
        for counted, row in zip((self.arrived, self.late, self.nan), state["counts"].tolist(), strict=True):
            counted.update(zip(self.stores, row, strict=True))
        self.undefined = int(state["undefined"][0])
        self.watermark = state["watermark"][0].item() if len(state["watermark"]) else None
        return self


def _reached(there: Array, when: Array, reach: Time) -> slice:
    """Which stored rows, in order of time, may lie within reach of arrivals in order of time."""
    if not len(when):
        return slice(0, 0)
    # A little more than reach: rounding must not hide a row.
    far = math.ceil(reach) if when.dtype.kind == "i" else np.nextafter(reach, np.inf) * (1 + 1e-15)
    first = np.searchsorted(there, when[0] - far, side="left")
    return slice(int(first), int(np.searchsorted(there, when[-1] + far, side="right")))


def _found(ranks: Array, own: Array, places: Array, pool: Pool, rule: Rule, plan: Plan) -> Iterator[Array]:
    """Combinations for arrivals of these ranks, some at a time; a row each."""
    wide = len(pool.offsets)
    search = Search.begin(wide - 1)
    while search.at[0] < len(ranks):
        flat, size = combined(search, ranks, own, places, pool, rule, plan)
        yield flat[: size * wide].reshape(size, wide)


def _highest(rank: Array, level: Array) -> Array:
    """Where each rank has its highest level, in order of rank."""
    order = np.lexsort((np.where(np.isnan(level), np.inf, -level), rank))
    return order[np.flatnonzero(np.diff(rank[order], prepend=-1))]


def _together(names: list[str], alarms: list[Alarms]) -> Alarms:
    return Alarms(
        np.concatenate([some.stream for some in alarms]),
        np.concatenate([some.level for some in alarms]),
        *(
            {name: np.concatenate([getattr(some, part)[name] for some in alarms]) for name in names}
            for part in ("time", "value", "id")
        ),
    )
