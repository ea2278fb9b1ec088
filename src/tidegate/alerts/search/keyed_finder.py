"""Find the alarms of many keys at once, also where values lie outside of what is certified."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Final, NamedTuple, Self

import numpy as np

from tidegate.alerts.certification.certificate import Certificate
from tidegate.alerts.search.alarm_finder import AlarmFinder, Alarms
from tidegate.alerts.stores.bracket_store import Closed, Shape, missing
from tidegate.alerts.topology import Topology
from tidegate.types import FAR, Array, InputError, Time

_LAP: Final = float(FAR // 4)
"""How far the clock runs before it starts anew: far from where whole numbers end."""
COUNTS: Final = ("nan", "outside", "omitted", "shed", "expired", "alarms")
"""What is counted of each stream; alarms are counted for the stream whose arrival raised them."""


class KeyedRows(NamedTuple):
    """Rows of one stream by columns; keys and times are whole numbers."""

    key: Array
    time: Array
    value: Array

    def take(self, places: Array) -> KeyedRows:
        """The rows at these places."""
        return KeyedRows(*(column[places] for column in self))


@dataclass(frozen=True)
class KeyedAlarms:
    """Alarms by columns: the key, whose arrival raised it, the margin, and each stream's row.

    Of a row, `place` tells where it stood: among those that were kept, then the arrivals as they were given.
    """

    key: Array
    stream: Array
    level: Array
    time: dict[str, Array]
    value: dict[str, Array]
    place: dict[str, Array]

    def __len__(self) -> int:
        return len(self.level)


class KeyedFinder:
    """An `AlarmFinder` for each key, all run as one.

    The keys are laid one behind the other on one clock, so far apart that none reaches the next; on it time passes
    as it does for the key, but a stretch in which nothing happens is cut short. So a step is one search over sorted
    columns, however many keys there are; only where the clock would run too far for whole numbers it starts anew, and
    each of its laps is searched by itself.

    A value outside the certificate's domain brackets nothing and is not omitted: as long as a key has such a row,
    all rows of its stream are kept and tried one by one, and so are those of the streams with which it shares a term
    of the margin. What these omitted before is gone: an alarm of such a row can be missed then, and `outside` counts
    them. Where the margin is a sum with a term for each stream, no alarm is.

    Parameters
    ----------
    certificate
        The alarm, and how its margin depends on each stream.
    topology
        Which streams are joined; its shapes are taken from the certificate.
    hop, closed, budget
        As for `AlarmFinder`; the keys share the budget.

    Examples
    --------
    >>> from tidegate.alerts import certify
    >>> moist = KeyedFinder(certify("damp + cold > 9"), Topology.clique(["damp", "cold"], within=5))
    >>> damp = KeyedRows(np.array([1, 1, 2]), np.array([0, 1, 0]), np.array([5.0, 3.0, 9.0]))
    >>> cold = KeyedRows(np.array([1, 2]), np.array([3, 7]), np.array([4.5, 4.5]))
    >>> alarms = moist.step({"damp": damp, "cold": cold})
    >>> alarms.key, alarms.level, alarms.time["damp"]
    (array([1]), array([0.5]), array([0]))
    """

    def __init__(
        self,
        certificate: Certificate,
        topology: Topology,
        *,
        hop: int | None = None,
        closed: Closed = "both",
        budget: int | None = None,
    ) -> None:
        if set(topology.streams) != set(certificate.inputs):
            raise InputError(
                f"the alarm looks at {', '.join(certificate.inputs)}, the streams are "
                f"{', '.join(topology.streams)}; give a stream for each, and no others"
            )
        self.certificate, self.hop, self.closed, self.budget = certificate, hop, closed, budget
        self.topology = replace(topology, shapes=certificate.shapes())
        self._reach = self._finder(frozenset()).reach  # what it refuses is told now
        self.undefined = 0
        self.counts = {name: dict.fromkeys(COUNTS, 0) for name in self.topology.streams}
        self._moved = {name: np.zeros(3) for name in self.topology.streams}
        self.rows = dict.fromkeys(self.topology.streams, _NONE)
        self.kept = dict.fromkeys(self.topology.streams, _NONE.key)
        """Where each row that is kept stood before the last step: among those kept then, or the arrivals."""
        within = int(np.ceil(topology.within))
        # Farther than any bracket is long, and any two rows of an alarm are apart.
        self._far = 2 * within + int(np.ceil(max(self._reach.values()))) + (hop or 0)
        # Windows begin at the same places of the clock, and of equal values the same ones count as extreme.
        self._unit = hop or 2 * within

    @property
    def chance(self) -> float:
        """The estimated chance that an alarm is missed, which only a budget can cause."""
        return 1 - math.prod(1 - chance(moved) for moved in self._moved.values())

    def step(self, rows: Mapping[str, KeyedRows], watermark: Time | None = None) -> KeyedAlarms:
        """Take arrivals and tell the alarms that they raise; rows that no later arrival can reach leave.

        A `watermark` says that no row will follow with such a time or an earlier one.
        """
        fresh, origin = {}, {}
        for name, there in self.rows.items():
            fresh[name], order = self._taken(name, rows.get(name, _NONE))
            origin[name] = np.concatenate((np.arange(len(there.key)), len(there.key) + order))
        pools = {name: _joined(self.rows[name], fresh[name]) for name in self.rows}
        clocks, laps = self._clocks(pools)
        whole = sum(map(len, clocks.values()))
        raised = []
        stays: dict[str, list[Array]] = {name: [] for name in self.rows}
        blindly = dict.fromkeys(self.rows, 0)
        for odd, places in self._groups(pools, laps):
            share = None
            if self.budget is not None:
                share = max(1, self.budget * sum(map(len, places.values())) // max(1, whole))
            finder = self._finder(odd, share)
            raised.append(self._found(finder, pools, clocks, places))
            for name, store in finder.stores.items():
                if self.budget is not None:
                    old = places[name] < len(self.rows[name].key)
                    seen, before = (
                        _covered(clocks[name][some], store.omega)
                        for some in (places[name], places[name][old])
                    )
                    alike = store.shape == "any"
                    blindly[name] += store.shed if alike else 0
                    self._moved[name] += [*(np.zeros(2) if alike else store.moved), seen - before]
                stays[name].append(places[name][store.ids])
                self.counts[name]["shed"] += store.shed
                self.counts[name]["omitted"] += len(places[name]) - len(store) - store.shed
            self.undefined += finder.undefined
        for name, parts in stays.items():
            kept = np.concatenate(parts)
            if len(parts) > 1:
                kept = kept[np.lexsort((clocks[name][kept], laps[name][kept]))]
            # Every group of keys has a row at least, which a small budget may not have room for.
            over = 0 if self.budget is None else max(0, len(kept) - self.budget)
            self.counts[name]["shed"] += over
            moved = self._moved[name]
            moved[:2] += over * 2 * self.topology.within  # no bracket is longer, so none reigned for longer
            self.rows[name] = pools[name].take(kept[over:])
            self.kept[name] = origin[name][kept[over:]]
            # Of rows that are all alike, each decides an equal share of what was seen.
            moved[0] += blindly[name] * moved[2] / max(1, self._arrived(name))
        if watermark is not None:
            self._trim(watermark)
        return _together(origin, raised)

    def _arrived(self, name: str) -> int:
        """How many rows there were to compare, those that are kept and those that are gone."""
        return len(self.rows[name].key) + sum(
            self.counts[name][gone] for gone in ("omitted", "shed", "expired")
        )

    def _taken(self, name: str, given: KeyedRows) -> tuple[KeyedRows, Array]:
        """The arrivals that can be compared, in an order that does not depend on how they came, and that order."""
        key, time, value = (
            np.asarray(column, kind)
            for column, kind in zip(given, (np.int64, np.int64, np.float64), strict=True)
        )
        there = np.flatnonzero(~np.isnan(value))
        self.counts[name]["nan"] += len(value) - len(there)
        self.counts[name]["outside"] += int((~self.certificate.covers(name, value[there])).sum())
        order = there[np.lexsort((value[there], time[there], key[there]))]
        return KeyedRows(key, time, value).take(order), order

    def _clocks(self, pools: Mapping[str, KeyedRows]) -> tuple[dict[str, Array], dict[str, Array]]:
        """Where on the one clock the rows lie, and in which lap: keys apart, and no nothing longer than needed."""
        key, time = (np.concatenate([pool[part] for pool in pools.values()]) for part in (0, 1))
        order = np.lexsort((time, key))
        apart = np.diff(time[order])
        cut = (np.diff(key[order]) != 0) | (apart > self._far)
        passed = np.where(cut, self._far + (apart - self._far) % self._unit, apart)
        ticks = np.cumsum(np.concatenate((time[order[:1]] % self._unit, passed)))
        # A lap begins at a cut, which parts no alarm's rows. Ticks may overflow; their distances in a lap do not.
        full = np.cumsum(passed, dtype=np.float64) // _LAP
        begins = np.diff(np.maximum.accumulate(np.where(cut, full, 0)), prepend=0.0) > 0
        lap = np.concatenate((np.zeros(min(1, len(time)), np.int64), np.cumsum(begins)))
        firsts = np.concatenate(([0], np.flatnonzero(begins) + 1))
        since = ticks[firsts] - time[order[firsts]] % self._unit if len(time) else ticks
        placed = np.empty((2, len(time)), np.int64)
        placed[:, order] = ticks - since[lap], lap
        ends = np.cumsum([len(pool.key) for pool in pools.values()])
        clocks, laps = (dict(zip(pools, np.split(column, ends[:-1]), strict=True)) for column in placed)
        return clocks, laps

    def _groups(
        self, pools: Mapping[str, KeyedRows], laps: Mapping[str, Array]
    ) -> Iterator[tuple[frozenset[str], dict[str, Array]]]:
        """Rows by lap and by which streams of their key have values outside of the domain, and their places."""
        odd = {
            name: np.unique(pool.key[~self.certificate.covers(name, pool.value)])
            for name, pool in pools.items()
        }
        if not any(map(len, odd.values())) and not any(lap.any() for lap in laps.values()):
            yield frozenset(), {name: np.arange(len(pool.key)) for name, pool in pools.items()}
            return
        marks = {name: laps[name] << len(pools) for name in pools}
        for name, pool in pools.items():
            for at, keys in enumerate(odd.values()):
                marks[name] |= np.isin(pool.key, keys).astype(np.int64) << at
        for mark in np.unique(np.concatenate(list(marks.values()))).tolist():
            streams = frozenset(name for at, name in enumerate(pools) if mark >> at & 1)
            yield streams, {name: np.flatnonzero(marked == mark) for name, marked in marks.items()}

    def _finder(self, odd: frozenset[str], budget: int | None = None) -> AlarmFinder:
        """What searches keys of which these streams have values outside of the domain."""
        entangled = [set(part.inputs) for part in self.certificate.parts if odd & set(part.inputs)]
        every = odd.union(*entangled)
        shapes: dict[str, Shape] = {
            name: "any" if name in every else shape for name, shape in self.topology.shapes.items()
        }
        return AlarmFinder(
            replace(self.topology, shapes=shapes),
            self.certificate.condition.margin,
            threshold=self.certificate.condition.threshold,
            hop=self.hop,
            closed=self.closed,
            budget=budget,
        )

    def _found(
        self,
        finder: AlarmFinder,
        pools: Mapping[str, KeyedRows],
        clocks: Mapping[str, Array],
        places: Mapping[str, Array],
    ) -> KeyedAlarms:
        """Let the stores hold what was kept, with their places as ids, and take the arrivals."""
        state: dict[str, Array] = {}
        old = {name: int(np.searchsorted(places[name], len(self.rows[name].key))) for name in pools}
        for name, pool in pools.items():
            there = places[name][: old[name]]
            state |= {
                f"{name}.time": clocks[name][there],
                f"{name}.value": pool.value[there],
                f"{name}.id": np.arange(old[name]),
                f"{name}.counts": np.array([old[name], 0]),
                f"{name}.moved": np.array([0.0, 0.0, np.inf, -np.inf]),
            }
        zeros = [0] * len(pools)
        finder.restore(
            state
            | {
                "counts": np.array([list(old.values()), zeros, zeros]),
                "undefined": np.array([0]),
                "watermark": np.empty(0),
            }
        )
        fresh = {name: places[name][old[name] :] for name in pools}
        alarms = finder.step(
            {name: (clocks[name][some], pools[name].value[some]) for name, some in fresh.items()}
        )
        return self._told(alarms, pools, places)

    def _told(
        self, alarms: Alarms, pools: Mapping[str, KeyedRows], places: Mapping[str, Array]
    ) -> KeyedAlarms:
        chosen = {name: places[name][alarms.id[name]] for name in pools}
        rows = {name: pool.take(chosen[name]) for name, pool in pools.items()}
        for at, name in enumerate(pools):
            self.counts[name]["alarms"] += int((alarms.stream == at).sum())
        return KeyedAlarms(
            next(iter(rows.values())).key,
            alarms.stream,
            alarms.level,
            {name: row.time for name, row in rows.items()},
            {name: row.value for name, row in rows.items()},
            chosen,
        )

    def _trim(self, watermark: Time) -> None:
        for name, pool in self.rows.items():
            stays = np.flatnonzero(pool.time >= watermark - self._reach[name])
            self.counts[name]["expired"] += len(pool.key) - len(stays)
            self.rows[name], self.kept[name] = pool.take(stays), self.kept[name][stays]

    def snapshot(self) -> dict[str, Array]:
        """All that is to be known of it, as arrays."""
        state = {
            f"{name}.{part}": column
            for name, pool in self.rows.items()
            for part, column in pool._asdict().items()
        }
        counted = np.array([list(of.values()) for of in self.counts.values()])
        return state | {
            "counted": counted.ravel(),
            "moved": np.concatenate(list(self._moved.values())),
            "undefined": np.array([self.undefined]),
        }

    def restore(self, state: Mapping[str, Array]) -> Self:
        """Take up what `snapshot` gave."""
        self.rows = {
            name: KeyedRows(*(state[f"{name}.{part}"] for part in KeyedRows._fields)) for name in self.rows
        }
        counted = state["counted"].reshape(len(self.rows), len(COUNTS)).tolist()
        self.counts = {
            name: dict(zip(COUNTS, of, strict=True)) for name, of in zip(self.rows, counted, strict=True)
        }
        moved = state.get("moved", np.zeros(3 * len(self.rows)))  # which states had not at first
        self._moved = dict(zip(self.rows, np.array(moved).reshape(-1, 3), strict=True))
        self.kept = {name: np.arange(len(rows.key)) for name, rows in self.rows.items()}
        self.undefined = int(state["undefined"][0])
        return self


_NONE: Final = KeyedRows(np.empty(0, np.int64), np.empty(0, np.int64), np.empty(0))


def chance(moved: Array) -> float:
    """The chance for one stream: of the highest and lowest that were moved, and of how much was seen."""
    return missing(moved[:2], moved[2]) if moved[:2].any() else 0.0


def _covered(times: Array, omega: Time) -> float:
    """How many intervals of length omega hold a row: for how long one that slides does."""
    return float(np.minimum(np.diff(np.sort(times)), omega).sum() + omega * min(1, len(times)))


def _joined(stored: KeyedRows, fresh: KeyedRows) -> KeyedRows:
    return KeyedRows(*(np.concatenate(columns) for columns in zip(stored, fresh, strict=True)))


def _together(origin: Mapping[str, Array], some: list[KeyedAlarms]) -> KeyedAlarms:
    return KeyedAlarms(
        np.concatenate([one.key for one in some]),
        np.concatenate([one.stream for one in some]),
        np.concatenate([one.level for one in some]),
        {name: np.concatenate([one.time[name] for one in some]) for name in origin},
        {name: np.concatenate([one.value[name] for one in some]) for name in origin},
        {name: come[np.concatenate([one.place[name] for one in some])] for name, come in origin.items()},
    )
