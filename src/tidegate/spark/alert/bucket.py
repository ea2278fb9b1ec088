"""One bucket of an alarm: the core's finder, the keys that it knows by number, and what was counted.

Nothing here knows Spark: tables and a watermark come in, alarms and bytes of state go out. The streaming processor
and the batch job both run this.
"""

from __future__ import annotations

import json
import warnings
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Final, Self

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tidegate.alerts import KeyedAlarms, KeyedFinder, KeyedRows
from tidegate.engine.snapshot import pack, unpack
from tidegate.spark.packing.columns import column, in_utc, micros
from tidegate.spark.packing.packed_rows import CHECK, KEY, from_bytes, to_bytes
from tidegate.spark.state.clock import Clock
from tidegate.spark.state.layout import check_layout
from tidegate.spark.state.task import task_buckets
from tidegate.streams.row_sizes import row_sizes
from tidegate.streams.trace import one_chunk
from tidegate.types import InputError

if TYPE_CHECKING:
    from tidegate.alerts import Certificate, Closed, Topology
    from tidegate.types import Array, Budget

ALERT: Final = "alert"
"""What the state of an alarm says that it is."""
TIME: Final = "t"
VALUE: Final = "v"
COUNTS: Final = ("arrived", "late", "null")
_NOTED: Final = 24
"""How many bytes of a row are kept beside what it carries: the number of its key, the time, the value."""
LEAST: Final = _NOTED + 16
"""How many bytes a row takes at least: with the two hashes of its key."""
_ALARMS_TOGETHER: Final = 1 << 16


def carried(number: int) -> str:
    """The name under which a column travels that is carried into an alarm."""
    return f"p{number}"


def share_of(total: Budget | None, buckets: int, streams: int) -> Budget | None:
    """What a bucket may keep of each stream."""
    if total is None:
        return None
    share, least = total.limit // (buckets * streams), 1 if total.unit == "rows" else LEAST
    if share < least:
        raise InputError(
            f"a budget of {total.limit} {total.unit} leaves nothing for some of {buckets} buckets and {streams} "
            f"streams; give at least {least * buckets * streams}, or fewer buckets"
        )
    return replace(total, **{total.unit: share})


@dataclass(frozen=True)
class AlertPlan:
    """Everything that a bucket needs to know; shipped to the workers.

    Parameters
    ----------
    certificate, topology, hop
        The alarm; times in microseconds.
    streams
        In the order in which the result has them.
    keys
        The types of the key's columns.
    time
        The type of times.
    carried
        The types of the columns that each stream's rows carry into an alarm.
    budget
        What a bucket may keep of each stream.
    layout
        What a state must agree on to be taken up again.
    total
        What the whole query may keep.
    fixed
        Whether the number of buckets was given. If not, it follows from the partitions of the running query.
    """

    certificate: Certificate
    topology: Topology
    hop: int | None
    streams: tuple[str, ...]
    keys: tuple[pa.DataType, ...]
    time: pa.DataType
    carried: dict[str, tuple[pa.DataType, ...]]
    budget: Budget | None
    layout: dict[str, Any]
    total: Budget | None = None
    fixed: bool = True

    def for_task(self) -> AlertPlan:
        """The plan with the number of buckets that the running query has."""
        if self.fixed:
            return self
        count = task_buckets(self.layout["buckets"])
        budget = share_of(self.total, count, len(self.streams))
        return replace(self, budget=budget, layout=self.layout | {"buckets": count}, fixed=True)

    @property
    def key_schema(self) -> pa.Schema:
        """A key as it is kept: two hashes (or the number that it is), and the user's columns."""
        hashes = [pa.field(name, pa.int64()) for name in (KEY, CHECK)]
        return pa.schema([*hashes, *(pa.field(f"c{i}", kind) for i, kind in enumerate(self.keys))])

    def carried_schema(self, name: str) -> pa.Schema:
        """What is kept of a stream's row beside key, time and value."""
        return pa.schema([pa.field(carried(i), kind) for i, kind in enumerate(self.carried[name])])

    def finder(self) -> KeyedFinder:
        """What finds the alarms of one bucket. Hopping windows are Spark's: without their end."""
        closed: Closed = "both" if self.hop is None else "left"
        budget = self.budget.limit if self.budget else None
        return KeyedFinder(self.certificate, self.topology, hop=self.hop, closed=closed, budget=budget)


@dataclass
class AlertBucket:
    """A running bucket."""

    plan: AlertPlan
    finder: KeyedFinder = field(init=False)
    keys: pa.Table = field(init=False)
    counts: dict[str, dict[str, int]] = field(init=False)
    carried: dict[str, pa.Table] = field(init=False)
    clock: Clock = field(default_factory=Clock)

    def __post_init__(self) -> None:
        self.finder = self.plan.finder()
        self.keys = self.plan.key_schema.empty_table()
        self.counts = {name: dict.fromkeys(COUNTS, 0) for name in self.plan.streams}
        self.carried = {
            name: self.plan.carried_schema(name).empty_table()
            for name, kinds in self.plan.carried.items()
            if kinds
        }

    def step(self, tables: dict[str, pa.Table], watermark: int | None) -> Iterator[pa.RecordBatch]:
        """Take the arrivals of a micro-batch, or of a whole batch job, for which there is no watermark."""
        taken = {
            name: self._taken(name, in_utc(table), timely=watermark is None) for name, table in tables.items()
        }
        codes = self._coded(list(taken.values()))
        rows = {
            name: KeyedRows(code, micros(table, TIME), column(table, VALUE))
            for (name, table), code in zip(taken.items(), codes, strict=True)
        }
        kept_all = [name for name, counted in self.finder.counts.items() if not counted["shed"]]
        pools = {name: self._with_arrivals(name, taken) for name in self.carried}
        if self.plan.budget and self.plan.budget.unit == "bytes":
            # Whichever rows stay, they fit: also if they are the largest, each with a key of its own.
            self.finder.budget = self.plan.budget.limit // self._largest(pools)
        alarms = self.finder.step(rows, watermark)
        self._warn(kept_all)
        whole = self._laid_out(alarms, pools)
        self.carried = {name: pool.take(pa.array(self.finder.kept[name])) for name, pool in pools.items()}
        self._forget()
        for begin in range(0, whole.num_rows, _ALARMS_TOGETHER):
            yield whole.slice(begin, _ALARMS_TOGETHER)

    def _largest(self, pools: dict[str, pa.Table]) -> int:
        """How many bytes a row may take at most, with its key and what it carries."""
        carried = max((int(row_sizes(pool).max(initial=0)) for pool in pools.values()), default=0)
        return _NOTED + carried + int(row_sizes(self.keys).max(initial=0))

    def _warn(self, kept_all: list[str]) -> None:
        """Say of streams that had kept all that they need, if now they have not."""
        shed = [name for name in kept_all if self.finder.counts[name]["shed"]]
        if shed and (budget := self.plan.budget):
            warnings.warn(
                f"the budget of {budget.limit} {budget.unit} a bucket and stream is too small for {', '.join(shed)}: "
                f"rows are shed, and alarms may be missed, by now with a chance of {self.finder.chance:.2g}",
                stacklevel=3,
            )

    def _taken(self, name: str, table: pa.Table, *, timely: bool) -> pa.Table:
        """The rows that have a key and a time, and are not late."""
        counts = self.counts[name]
        counts["arrived"] += table.num_rows
        there = table.filter(pc.and_(table.column(KEY).is_valid(), table.column(TIME).is_valid()))
        counts["null"] += table.num_rows - there.num_rows
        if timely:
            return there
        fresh = there.filter(pa.array(micros(there, TIME) > self.clock.late))
        counts["late"] += there.num_rows - fresh.num_rows
        return fresh

    def _coded(self, tables: list[pa.Table]) -> list[Array]:
        """Number the keys: those that are known keep theirs, others come behind them."""
        schema = self.plan.key_schema
        some = [table.select(schema.names).cast(schema) for table in tables]
        every = pa.concat_tables([self.keys, *some]).combine_chunks()
        key, check = column(every, KEY), column(every, CHECK)
        order = np.lexsort((check, key))
        new = np.ones(len(order), bool)
        new[1:] = (np.diff(key[order]) != 0) | (np.diff(check[order]) != 0)
        firsts = order[new]
        # The order is stable: the first of a kind is the one that is known, if any is.
        known = self.keys.num_rows
        numbers = np.where(firsts < known, firsts, known + np.cumsum(firsts >= known) - 1)
        code = np.empty(len(order), np.int64)
        code[order] = numbers[np.cumsum(new) - 1]
        added = firsts[firsts >= known]
        self.keys = every.take(pa.array(np.concatenate((np.arange(known), added))))
        ends = np.cumsum([known, *(table.num_rows for table in tables)])
        return [code[begin:end] for begin, end in pairwise(ends)]

    def _with_arrivals(self, name: str, taken: dict[str, pa.Table]) -> pa.Table:
        """What the rows of a stream carry: those that were kept, then the arrivals."""
        there = self.carried[name]
        if name not in taken:
            return there
        fresh = taken[name].select(there.schema.names).cast(there.schema)
        return pa.concat_tables([there, fresh]).combine_chunks()

    def _laid_out(self, alarms: KeyedAlarms, pools: dict[str, pa.Table]) -> pa.RecordBatch:
        """The columns of the result: the key, when, who and how high, and the rows with what they carry."""
        streams = self.plan.topology.streams
        times = np.array([alarms.time[name] for name in streams])
        own = times[alarms.stream, np.arange(len(alarms))] if len(alarms) else np.empty(0, np.int64)
        order = np.lexsort((alarms.key, alarms.stream, own))
        keys = self.keys.take(pa.array(alarms.key[order]))
        columns = [one_chunk(keys.column(f"c{i}")) for i in range(len(self.plan.keys))]
        columns += [
            self._times(own[order]),
            pa.array(np.array(streams, object)[alarms.stream[order]], pa.string()),
            pa.array(alarms.level[order]),
        ]
        for name in self.plan.streams:
            columns += [self._times(alarms.time[name][order]), pa.array(alarms.value[name][order])]
            if name in pools:
                columns += map(one_chunk, pools[name].take(pa.array(alarms.place[name][order])).columns)
        return pa.record_batch(columns, [f"o{i}" for i in range(len(columns))])

    def _times(self, times: Array) -> pa.Array:
        return pa.array(times, pa.int64()).cast(self.plan.time)

    def _forget(self) -> None:
        """Drop keys of which no row is kept, and close the gaps in their numbers."""
        used = np.unique(np.concatenate([rows.key for rows in self.finder.rows.values()]))
        if len(used) < self.keys.num_rows:
            self.keys = self.keys.take(pa.array(used))
            self.finder.rows = {
                name: rows._replace(key=np.searchsorted(used, rows.key))
                for name, rows in self.finder.rows.items()
            }

    def save(self) -> bytes:
        """The whole state as bytes."""
        counted = np.array([list(self.counts[name].values()) for name in self.plan.streams])
        state: dict[str, Array | bytes] = {
            "layout": json.dumps(self.plan.layout, sort_keys=True).encode(),
            "clock": np.array([*vars(self.clock).values()]),
            "arrivals": counted.ravel(),
            "keys": to_bytes(self.keys),
        }
        state |= {f"{name}.carried": to_bytes(table) for name, table in self.carried.items()}
        return pack(state | self.finder.snapshot(), compressed=True)

    @classmethod
    def load(cls, plan: AlertPlan, data: bytes | None) -> Self:
        """Go on from saved bytes, or begin."""
        bucket = cls(plan)
        if data is None:
            return bucket
        state = unpack(data)
        check_layout(json.loads(state["layout"].tobytes()), plan.layout)
        bucket.finder.restore(state)
        bucket.keys = from_bytes(state["keys"].tobytes())
        bucket.carried = {name: from_bytes(state[f"{name}.carried"].tobytes()) for name in bucket.carried}
        bucket.counts = arrivals(state, plan.streams)
        bucket.clock = Clock(*state["clock"].tolist())
        return bucket


def arrivals(state: dict[str, Array], streams: tuple[str, ...]) -> dict[str, dict[str, int]]:
    """What a saved bucket counted of what came in."""
    counted = state["arrivals"].reshape(len(streams), len(COUNTS)).tolist()
    return {name: dict(zip(COUNTS, of, strict=True)) for name, of in zip(streams, counted, strict=True)}
