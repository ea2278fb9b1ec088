"""One bucket of an alarm: the finder of alarms, the keys by number, and counts of arrivals.

Its input is tables and a watermark, and its output alarms. The streaming processor and the batch job both use it.
"""

from __future__ import annotations

import json
import warnings
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import pairwise
from typing import TYPE_CHECKING, Final, Self

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tidegate.alerts import KeyedAlarmFinder, KeyedAlarms, KeyedRows
from tidegate.arrow_columns import one_chunk, row_sizes
from tidegate.spark.bucket.alert.plan import ARRIVAL_COUNTS, ROW_BYTES, TIME, VALUE, AlertPlan
from tidegate.spark.bucket.alert.saved import KEYS, VERSION, SavedAlert, table_name
from tidegate.spark.packing.columns import CHECK, KEY, column, micros, to_transport_types
from tidegate.spark.state.clock import Clock
from tidegate.spark.state.layout import check_layout
from tidegate.spark.state.numbered_rows import NumberedRows

if TYPE_CHECKING:
    from tidegate.spark.state.log import StateLog
    from tidegate.types import Array

_ALARMS_PER_BATCH: Final = 1 << 16


@dataclass
class AlertBucket:
    """A running bucket."""

    plan: AlertPlan
    finder: KeyedAlarmFinder = field(init=False)
    keys: pa.Table = field(init=False)
    counts: dict[str, dict[str, int]] = field(init=False)
    carried: dict[str, pa.Table] = field(init=False)
    key_rows: NumberedRows = field(default_factory=NumberedRows.new)
    stream_rows: dict[str, NumberedRows] = field(init=False)
    clock: Clock = field(default_factory=Clock)

    def __post_init__(self) -> None:
        self.finder = self.plan.new_finder()
        self.keys = self.plan.key_schema.empty_table()
        self.counts = {name: dict.fromkeys(ARRIVAL_COUNTS, 0) for name in self.plan.streams}
        self.stream_rows = {name: NumberedRows.new() for name in self.finder.rows}
        self.carried = {
            name: self.plan.carried_schema(name).empty_table()
            for name, kinds in self.plan.carried.items()
            if kinds
        }

    @classmethod
    def load(cls, plan: AlertPlan, saved: SavedAlert | None) -> Self:
        """A bucket that continues from a saved state, or a new one; refuse the state of another alarm."""
        bucket = cls(plan)
        if saved is not None:
            check_layout(saved.layout, plan.layout)
            bucket._restore(saved)
        return bucket

    def _restore(self, saved: SavedAlert) -> None:
        self.finder.resume(saved.rows, saved.counts, saved.lost, saved.undefined)
        self.clock = saved.clock
        if saved.keys.num_rows:
            self.keys = saved.keys
        self.carried = {name: saved.carried.get(name, empty) for name, empty in self.carried.items()}
        self.counts = {name: dict(saved.arrivals[name]) for name in self.plan.streams}
        self.key_rows = saved.stored[KEYS]
        self.stream_rows = {name: saved.stored[table_name(name)] for name in self.stream_rows}

    def save(self, log: StateLog) -> None:
        """Save the state. It replaces the state that the bucket was loaded from; `saved.py` describes the parts."""
        arrays: dict[str, Array | bytes] = {
            "layout": json.dumps(self.plan.layout, sort_keys=True).encode(),
            f"rows.{KEYS}.id": self.key_rows.ids,
            f"rows.{KEYS}.key": column(self.keys, KEY),
            f"rows.{KEYS}.check": column(self.keys, CHECK),
        }
        payload = {KEYS: self.key_rows.payload(self.keys.drop_columns([KEY, CHECK]))}
        for name, rows in self.finder.rows.items():
            table, stored = table_name(name), self.stream_rows[name]
            arrays[f"rows.{table}.id"] = stored.ids
            parts = rows._replace(key=self.key_rows.ids[rows.key])._asdict()
            arrays |= {f"rows.{table}.{part}": values for part, values in parts.items()}
            arrays[f"lost.{name}"] = self.finder.lost_time[name]
            if name in self.carried:
                payload[table] = stored.payload(self.carried[name])
        next_ids = {table_name(name): stored.next for name, stored in self.stream_rows.items()}
        progress = {
            "version": VERSION,
            "clock": self.clock.to_dict(),
            "arrivals": self.counts,
            "counts": self.finder.counts,
            "undefined": self.finder.undefined,
            "next": {KEYS: self.key_rows.next} | next_ids,
        }
        arrays["progress"] = json.dumps(progress, default=int).encode()
        log.write(arrays, payload, f"{self.clock.batch}")

    def step(self, tables: dict[str, pa.Table], watermark: int | None) -> Iterator[pa.RecordBatch]:
        """Process the arrivals of a micro-batch, or of a whole batch job, which has no watermark."""
        accepted = {
            name: self._accept(name, to_transport_types(table), drop_late=watermark is not None)
            for name, table in tables.items()
        }
        codes = self._number_keys(list(accepted.values()))
        rows = {
            name: KeyedRows(code, micros(table, TIME), column(table, VALUE))
            for (name, table), code in zip(accepted.items(), codes, strict=True)
        }
        not_evicted = [name for name, counts in self.finder.counts.items() if not counts["evicted"]]
        pools = {name: self._with_arrivals(name, accepted) for name in self.carried}
        if self.plan.budget and self.plan.budget.unit == "bytes":
            # Any selection of rows must fit, even if all are the largest, each with a different key.
            self.finder.budget = self.plan.budget.limit // self._max_row_bytes(pools)
        alarms = self.finder.step(rows, watermark)
        self._warn_if_evicted(not_evicted)
        result = self._to_result(alarms, pools)
        positions = self.finder.previous_positions
        self.carried = {name: pool.take(pa.array(positions[name])) for name, pool in pools.items()}
        for name, numbered in self.stream_rows.items():
            numbered.update(positions[name])
        self._drop_unused_keys()
        for begin in range(0, result.num_rows, _ALARMS_PER_BATCH):
            yield result.slice(begin, _ALARMS_PER_BATCH)

    def _max_row_bytes(self, pools: dict[str, pa.Table]) -> int:
        """The largest size of a row, with its key and its carried columns."""
        carried = max((int(row_sizes(pool).max(initial=0)) for pool in pools.values()), default=0)
        return ROW_BYTES + carried + int(row_sizes(self.keys).max(initial=0))

    def _warn_if_evicted(self, not_evicted: list[str]) -> None:
        """Warn if one of these streams, which had evicted no rows so far, has evicted rows now."""
        evicted = [name for name in not_evicted if self.finder.counts[name]["evicted"]]
        if evicted and (budget := self.plan.budget):
            warnings.warn(
                f"the budget of {budget.limit} {budget.unit} per bucket and stream is too small for "
                f"{', '.join(evicted)}: rows are evicted, and alarms may be missed, with an estimated probability of "
                f"{self.finder.miss_probability:.2g}",
                stacklevel=3,
            )

    def _accept(self, name: str, table: pa.Table, *, drop_late: bool) -> pa.Table:
        """Count arrivals; return the rows that have a key and a time and are not late."""
        counts = self.counts[name]
        counts["arrived"] += table.num_rows
        valid = table.filter(pc.and_(table.column(KEY).is_valid(), table.column(TIME).is_valid()))
        counts["null"] += table.num_rows - valid.num_rows
        if not drop_late:
            return valid
        in_time = valid.filter(pa.array(micros(valid, TIME) > self.clock.late_until))
        counts["late"] += valid.num_rows - in_time.num_rows
        return in_time

    def _number_keys(self, tables: list[pa.Table]) -> list[Array]:
        """Number the keys of the rows: known keys keep their numbers, new keys get the next ones."""
        schema = self.plan.key_schema
        arrivals = [table.select(schema.names).cast(schema) for table in tables]
        every = pa.concat_tables([self.keys, *arrivals]).combine_chunks()
        key, check = column(every, KEY), column(every, CHECK)
        order = np.lexsort((check, key))
        is_first = np.ones(len(order), bool)
        is_first[1:] = (np.diff(key[order]) != 0) | (np.diff(check[order]) != 0)
        firsts = order[is_first]
        # The sort is stable: if a key is known, its known row is the first of the equal ones.
        known = self.keys.num_rows
        numbers = np.where(firsts < known, firsts, known + np.cumsum(firsts >= known) - 1)
        code = np.empty(len(order), np.int64)
        code[order] = numbers[np.cumsum(is_first) - 1]
        added = firsts[firsts >= known]
        self.keys = every.take(pa.array(np.concatenate((np.arange(known), added))))
        self.key_rows.update(np.arange(known + len(added)))
        ends = np.cumsum([known, *(table.num_rows for table in tables)])
        return [code[begin:end] for begin, end in pairwise(ends)]

    def _with_arrivals(self, name: str, accepted: dict[str, pa.Table]) -> pa.Table:
        """The carried columns of a stream: of the kept rows, then of the arrivals."""
        kept = self.carried[name]
        if name not in accepted:
            return kept
        arrivals = accepted[name].select(kept.schema.names).cast(kept.schema)
        return pa.concat_tables([kept, arrivals]).combine_chunks()

    def _to_result(self, alarms: KeyedAlarms, pools: dict[str, pa.Table]) -> pa.RecordBatch:
        """The result: the key, time, stream and margin, then each stream's row with its carried columns."""
        streams = self.plan.topology.streams
        times = np.array([alarms.time[name] for name in streams])
        raised_at = times[alarms.stream, np.arange(len(alarms))] if len(alarms) else np.empty(0, np.int64)
        order = np.lexsort((alarms.key, alarms.stream, raised_at))
        keys = self.keys.take(pa.array(alarms.key[order]))
        columns = [one_chunk(keys.column(f"c{i}")) for i in range(len(self.plan.keys))]
        columns += [
            self._times(raised_at[order]),
            pa.array(np.array(streams, object)[alarms.stream[order]], pa.string()),
            pa.array(alarms.level[order]),
        ]
        for name in self.plan.streams:
            columns += [self._times(alarms.time[name][order]), pa.array(alarms.value[name][order])]
            if name in pools:
                columns += map(one_chunk, pools[name].take(pa.array(alarms.position[name][order])).columns)
        return pa.record_batch(columns, [f"o{i}" for i in range(len(columns))])

    def _times(self, times: Array) -> pa.Array:
        return pa.array(times, pa.int64()).cast(self.plan.time)

    def _drop_unused_keys(self) -> None:
        """Drop keys without kept rows, and renumber the others."""
        used = np.unique(np.concatenate([rows.key for rows in self.finder.rows.values()]))
        if len(used) < self.keys.num_rows:
            self.keys = self.keys.take(pa.array(used))
            self.key_rows.update(used)
            self.finder.rows = {
                name: rows._replace(key=np.searchsorted(used, rows.key))
                for name, rows in self.finder.rows.items()
            }
