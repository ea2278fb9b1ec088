"""The alarms of many keys at once, also if values lie outside of the certified domain."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import ClassVar, Final, NamedTuple

import numpy as np

from tidegate.alerts.certification.certificate import Certificate
from tidegate.alerts.search.alarm_search import Alarms, AlarmSearch, NewRows
from tidegate.alerts.stores.bracket_store import BracketStore, ClosedEnds, Shape, miss_probability
from tidegate.alerts.topology import Topology
from tidegate.types import FAR, Array, InputError, Numbers, Record, State, Stateful, Time

_MAX_SEGMENT: Final = float(FAR // 4)
"""The length of the time axis after which a new segment begins, so that 64-bit integers do not overflow."""
STREAM_COUNTS: Final = ("nan", "outside", "omitted", "evicted", "expired", "alarms")
"""The counters of each stream; an alarm is counted for the stream whose arrival raised it."""


class KeyedRows(NamedTuple):
    """Rows of one stream as columns; keys and times are integers."""

    key: Array
    time: Array
    value: Array

    def take(self, positions: Array) -> KeyedRows:
        """The rows at these positions."""
        return KeyedRows(*(column[positions] for column in self))


@dataclass(frozen=True)
class KeyedAlarms:
    """Alarms as columns: the key, the stream whose arrival raised it, the margin, and each stream's row.

    `position` is the position of a row before the step: among the kept rows, followed by the arrivals as given.
    """

    key: Array
    stream: Array
    level: Array
    time: dict[str, Array]
    value: dict[str, Array]
    position: dict[str, Array]

    def __len__(self) -> int:
        return len(self.level)


class _TimeAxis(NamedTuple):
    """By stream: the time of each row on the shared axis, and the number of its segment."""

    time: dict[str, Array]
    segment: dict[str, Array]


class KeyedAlarmFinder(Stateful):
    """An `AlarmFinder` for many keys, run as one.

    The keys are placed one after another on a shared time axis, so far apart that rows of different keys are never
    joined. Time differences within a key are kept, but long gaps are shortened. So a step is one search over sorted
    columns, for any number of keys. If the axis became too long for 64-bit integers, it is divided into segments that
    are searched one by one.

    A row whose value is outside of the certificate's domain brackets no other row and is never omitted. As long as a
    key has such a row, all rows of its stream are kept and tried one by one, and also those of streams that share a
    term of the margin with it. Rows that were omitted before are lost, so an alarm of such a row can be missed; the
    count `outside` shows how many there were. If the margin is a sum with one term per stream, no alarm is missed.

    Parameters
    ----------
    certificate
        The condition, and how its margin depends on each stream.
    topology
        Which streams are joined; its shapes are replaced by those of the certificate.
    hop, closed, budget
        As for `AlarmFinder`; all keys share the budget.

    Examples
    --------
    >>> from tidegate.alerts import certify
    >>> streams = Topology.clique(["humidity", "cold"], within=5)
    >>> finder = KeyedAlarmFinder(certify("humidity + cold > 9"), streams)
    >>> humidity = KeyedRows(np.array([1, 1, 2]), np.array([0, 1, 0]), np.array([5.0, 3.0, 9.0]))
    >>> cold = KeyedRows(np.array([1, 2]), np.array([3, 7]), np.array([4.5, 4.5]))
    >>> alarms = finder.step({"humidity": humidity, "cold": cold})
    >>> alarms.key, alarms.level, alarms.time["humidity"]
    (array([1]), array([0.5]), array([0]))
    """

    state: ClassVar[State] = {
        "{}.": Record("rows", KeyedRows),
        "counted": Numbers(counts=dict),
        "moved": Numbers(lost_time=dict).optional(),
        "undefined": Numbers(undefined=int),
    }

    def __init__(
        self,
        certificate: Certificate,
        topology: Topology,
        *,
        hop: int | None = None,
        closed: ClosedEnds = "both",
        budget: int | None = None,
    ) -> None:
        if set(topology.streams) != set(certificate.inputs):
            raise InputError(
                f"the condition uses {', '.join(certificate.inputs)}, but the streams are "
                f"{', '.join(topology.streams)}; give exactly one stream for each input"
            )
        self.certificate, self.hop, self.closed, self.budget = certificate, hop, closed, budget
        self.topology = replace(topology, shapes=certificate.shapes())
        self._search = self._new_search(frozenset())
        self.undefined = 0
        self.counts = {name: dict.fromkeys(STREAM_COUNTS, 0) for name in self.topology.streams}
        self.lost_time = {name: np.zeros(3) for name in self.topology.streams}
        """By stream: for how long the highest and the lowest rows were lost, and the total time."""
        self.rows = dict.fromkeys(self.topology.streams, _NO_ROWS)
        self.previous_positions = dict.fromkeys(self.topology.streams, _NO_ROWS.key)
        """The positions of the kept rows before the last step: among the rows kept then, followed by the arrivals."""
        within = int(np.ceil(topology.within))
        # Longer than any bracket, and than the time between any two rows of an alarm.
        self._gap = 2 * within + int(np.ceil(max(self._search.reach.values()))) + (hop or 0)
        # Shifts by multiples of this change neither the windows nor which of equal values counts as the extreme.
        self._unit = hop or 2 * within

    @property
    def miss_probability(self) -> float:
        """The estimated probability that an alarm is missed; above 0 only if a budget is too small."""
        return 1 - math.prod(1 - stream_miss_probability(lost) for lost in self.lost_time.values())

    def step(self, rows: Mapping[str, KeyedRows], watermark: Time | None = None) -> KeyedAlarms:
        """Process arrivals, and return the alarms that they raise; rows that no later arrival can reach expire.

        No row will arrive later whose time is at or before the `watermark`.
        """
        arrivals, origins = {}, {}
        for name, kept in self.rows.items():
            arrivals[name], order = self._accept(name, rows.get(name, _NO_ROWS))
            origins[name] = np.concatenate((np.arange(len(kept.key)), len(kept.key) + order))
        pools = {name: _concatenate_rows(self.rows[name], arrivals[name]) for name in self.rows}
        axis = self._shared_axis(pools)
        total = sum(map(len, axis.time.values()))
        raised = []
        kept_parts: dict[str, list[Array]] = {name: [] for name in self.rows}
        evicted_blindly = dict.fromkeys(self.rows, 0)
        for outside, places in self._groups(pools, axis.segment):
            share = None
            if self.budget is not None:
                share = max(1, self.budget * sum(map(len, places.values())) // max(1, total))
            search = self._new_search(outside) if outside else self._search
            stores = search.new_stores(share)
            raised.append(self._find(search, stores, pools, axis.time, places))
            for name, store in stores.items():
                if self.budget is not None:
                    evicted_blindly[name] += self._record_lost_time(
                        name, store, axis.time[name], places[name]
                    )
                kept_parts[name].append(places[name][store.ids])
                self.counts[name]["evicted"] += store.evicted
                self.counts[name]["omitted"] += len(places[name]) - len(store) - store.evicted
        for name, parts in kept_parts.items():
            positions = np.concatenate(parts)
            if len(parts) > 1:
                positions = positions[np.lexsort((axis.time[name][positions], axis.segment[name][positions]))]
            self._keep(name, pools[name], positions, origins[name], evicted_blindly[name])
        if watermark is not None:
            self._expire(watermark)
        return _concatenate_alarms(origins, raised)

    def _record_lost_time(self, name: str, store: BracketStore, times: Array, places: Array) -> int:
        """Add the time in which a store's extremes were lost, and the time that is new.

        Returns the number of evicted rows of a store that keeps all rows: for these the time is not known.
        """
        old = places < len(self.rows[name].key)
        after, before = (_covered_time(times[some], store.omega) for some in (places, places[old]))
        keeps_all = store.shape == "any"
        self.lost_time[name] += [*(np.zeros(2) if keeps_all else store.lost_time), after - before]
        return store.evicted if keeps_all else 0

    def _keep(
        self, name: str, pool: KeyedRows, positions: Array, origin: Array, evicted_blindly: int
    ) -> None:
        """Keep the rows at these positions, within the budget."""
        # Every group of keys keeps at least one row, which together may exceed a small budget.
        excess = 0 if self.budget is None else max(0, len(positions) - self.budget)
        self.counts[name]["evicted"] += excess
        lost = self.lost_time[name]
        # No bracket is longer than 2 * within, so no row is an extreme for longer.
        lost[:2] += excess * 2 * self.topology.within
        self.rows[name] = pool.take(positions[excess:])
        self.previous_positions[name] = origin[positions[excess:]]
        # If all rows are equally likely to decide an alarm, each accounts for an equal share of the total time.
        lost[0] += evicted_blindly * lost[2] / max(1, self._compared(name))

    def _compared(self, name: str) -> int:
        """The number of rows that were compared so far, kept or not."""
        return len(self.rows[name].key) + sum(
            self.counts[name][count] for count in ("omitted", "evicted", "expired")
        )

    def _accept(self, name: str, given: KeyedRows) -> tuple[KeyedRows, Array]:
        """Count arrivals; return those with a value, in an order independent of how they came, and this order."""
        key, time, value = (
            np.asarray(column, kind)
            for column, kind in zip(given, (np.int64, np.int64, np.float64), strict=True)
        )
        valid = np.flatnonzero(~np.isnan(value))
        self.counts[name]["nan"] += len(value) - len(valid)
        self.counts[name]["outside"] += int((~self.certificate.covers(name, value[valid])).sum())
        order = valid[np.lexsort((value[valid], time[valid], key[valid]))]
        return KeyedRows(key, time, value).take(order), order

    def _shared_axis(self, pools: Mapping[str, KeyedRows]) -> _TimeAxis:
        """Place the rows of all keys on one time axis: keys apart, and long gaps shortened."""
        key, time = (np.concatenate([pool[part] for pool in pools.values()]) for part in (0, 1))
        order = np.lexsort((time, key))
        difference = np.diff(time[order])
        cut = (np.diff(key[order]) != 0) | (difference > self._gap)
        advance = np.where(cut, self._gap + (difference - self._gap) % self._unit, difference)
        ticks = np.cumsum(np.concatenate((time[order[:1]] % self._unit, advance)))
        # A segment begins at a cut, which separates no rows of an alarm. Ticks may overflow, but the differences
        # within a segment do not.
        full = np.cumsum(advance, dtype=np.float64) // _MAX_SEGMENT
        begins = np.diff(np.maximum.accumulate(np.where(cut, full, 0)), prepend=0.0) > 0
        segment = np.concatenate((np.zeros(min(1, len(time)), np.int64), np.cumsum(begins)))
        firsts = np.concatenate(([0], np.flatnonzero(begins) + 1))
        starts = ticks[firsts] - time[order[firsts]] % self._unit if len(time) else ticks
        placed = np.empty((2, len(time)), np.int64)
        placed[:, order] = ticks - starts[segment], segment
        ends = np.cumsum([len(pool.key) for pool in pools.values()])
        return _TimeAxis(*(dict(zip(pools, np.split(column, ends[:-1]), strict=True)) for column in placed))

    def _groups(
        self, pools: Mapping[str, KeyedRows], segments: Mapping[str, Array]
    ) -> Iterator[tuple[frozenset[str], dict[str, Array]]]:
        """Group rows by segment and by the streams of their key that have values outside of the domain.

        Yields these streams, and the positions of the rows by stream.
        """
        outside_keys = {
            name: np.unique(pool.key[~self.certificate.covers(name, pool.value)])
            for name, pool in pools.items()
        }
        one_segment = not any(segment.any() for segment in segments.values())
        if not any(map(len, outside_keys.values())) and one_segment:
            yield frozenset(), {name: np.arange(len(pool.key)) for name, pool in pools.items()}
            return
        # The number of a group: the segment, and one bit per stream with values outside.
        numbers = {name: segments[name] << len(pools) for name in pools}
        for name, pool in pools.items():
            for bit, keys in enumerate(outside_keys.values()):
                numbers[name] |= np.isin(pool.key, keys).astype(np.int64) << bit
        for number in np.unique(np.concatenate(list(numbers.values()))).tolist():
            streams = frozenset(name for bit, name in enumerate(pools) if number >> bit & 1)
            yield streams, {name: np.flatnonzero(each == number) for name, each in numbers.items()}

    def _new_search(self, outside: frozenset[str]) -> AlarmSearch:
        """The search for keys with values outside of the domain in these streams."""
        sharing_a_term = [set(term.inputs) for term in self.certificate.terms if outside & set(term.inputs)]
        affected = outside.union(*sharing_a_term)
        shapes: dict[str, Shape] = {
            name: "any" if name in affected else shape for name, shape in self.topology.shapes.items()
        }
        condition = self.certificate.condition
        return AlarmSearch(
            replace(self.topology, shapes=shapes),
            condition.margin,
            threshold=condition.threshold,
            hop=self.hop,
            closed=self.closed,
        )

    def _find(
        self,
        search: AlarmSearch,
        stores: Mapping[str, BracketStore],
        pools: Mapping[str, KeyedRows],
        times: Mapping[str, Array],
        places: Mapping[str, Array],
    ) -> KeyedAlarms:
        """Fill the stores with the kept rows of a group, numbered in order, and match its arrivals."""
        arrivals = {}
        for name, store in stores.items():
            time, value = times[name][places[name]], pools[name].value[places[name]]
            old = int(np.searchsorted(places[name], len(self.rows[name].key)))
            store.resume(time[:old], value[:old])
            arrivals[name] = NewRows(time[old:], value[old:], np.arange(old, len(time)))
        alarms, undefined = search.find(stores, arrivals)
        self.undefined += undefined
        return self._with_keys(alarms, pools, places)

    def _with_keys(
        self, alarms: Alarms, pools: Mapping[str, KeyedRows], places: Mapping[str, Array]
    ) -> KeyedAlarms:
        """Count the alarms of a group, and add keys, original times and positions."""
        positions = {name: places[name][alarms.id[name]] for name in pools}
        rows = {name: pool.take(positions[name]) for name, pool in pools.items()}
        for at, name in enumerate(pools):
            self.counts[name]["alarms"] += int((alarms.stream == at).sum())
        return KeyedAlarms(
            next(iter(rows.values())).key,
            alarms.stream,
            alarms.level,
            {name: row.time for name, row in rows.items()},
            {name: row.value for name, row in rows.items()},
            positions,
        )

    def _expire(self, watermark: Time) -> None:
        for name, pool in self.rows.items():
            alive = np.flatnonzero(pool.time >= watermark - self._search.reach[name])
            self.counts[name]["expired"] += len(pool.key) - len(alive)
            self.rows[name] = pool.take(alive)
            self.previous_positions[name] = self.previous_positions[name][alive]

    def resume(
        self,
        rows: Mapping[str, KeyedRows],
        counts: Mapping[str, Mapping[str, int]],
        lost_time: Mapping[str, Array],
        undefined: int,
    ) -> None:
        """Continue with the kept rows, in their order, and the numbers of an earlier run."""
        self.rows = {name: rows[name] for name in self.rows}
        self.counts = {name: dict(counts[name]) for name in self.counts}
        self.lost_time = {name: np.array(lost_time[name]) for name in self.lost_time}
        self.undefined = undefined
        self.after_restore()

    def after_restore(self) -> None:
        """Number the kept rows."""
        self.previous_positions = {name: np.arange(len(of.key)) for name, of in self.rows.items()}


_NO_ROWS: Final = KeyedRows(np.empty(0, np.int64), np.empty(0, np.int64), np.empty(0))


def stream_miss_probability(lost: Array) -> float:
    """The probability for one stream, given the times for which its highest and lowest rows were lost, and in all."""
    return miss_probability(lost[:2], lost[2]) if lost[:2].any() else 0.0


def _covered_time(times: Array, omega: Time) -> float:
    """For how long a sliding interval of length omega contains at least one row."""
    return float(np.minimum(np.diff(np.sort(times)), omega).sum() + omega * min(1, len(times)))


def _concatenate_rows(kept: KeyedRows, arrivals: KeyedRows) -> KeyedRows:
    return KeyedRows(*(np.concatenate(columns) for columns in zip(kept, arrivals, strict=True)))


def _concatenate_alarms(origins: Mapping[str, Array], parts: list[KeyedAlarms]) -> KeyedAlarms:
    return KeyedAlarms(
        np.concatenate([part.key for part in parts]),
        np.concatenate([part.stream for part in parts]),
        np.concatenate([part.level for part in parts]),
        {name: np.concatenate([part.time[name] for part in parts]) for name in origins},
        {name: np.concatenate([part.value[name] for part in parts]) for name in origins},
        {
            name: origin[np.concatenate([part.position[name] for part in parts])]
            for name, origin in origins.items()
        },
    )
