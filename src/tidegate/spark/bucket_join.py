"""One bucket of a join: the core's operator, with the columns that it does not look at kept beside it.

Nothing here knows Spark: tables and a watermark come in, results and bytes of state go out. The streaming
processor and the batch job both run this.
"""

from __future__ import annotations

import json
from collections.abc import Generator, Iterator
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Final, Literal, Self

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tidegate.engine.arrivals import Floors, Moment
from tidegate.engine.buffer import Buffer
from tidegate.engine.operator import Join, Operator, Outcome, Residual
from tidegate.engine.snapshot import pack, unpack
from tidegate.policies import find
from tidegate.policies.random import mix
from tidegate.spark.ordering import ordered
from tidegate.spark.packing import CONTENT, KEY, from_bytes, to_bytes
from tidegate.streams.trace import one_chunk
from tidegate.types import FOREVER, SIDES, Budget, InputError, Pairs, Rows, Window

if TYPE_CHECKING:
    from tidegate.spark.where import Where
    from tidegate.types import Array, Side

How = Literal["inner", "left", "right", "full", "left_semi"]
CHECK: Final = "x"
UNCERTAIN: Final = "uncertain"

_MARKS: Final = 1024
_RESULT_BYTES: Final = 8 << 20
_NEVER: Final = -FOREVER


@dataclass(frozen=True)
class SideColumns:
    """What one side sends.

    Parameters
    ----------
    names
        Its columns in the packed rows that belong to the user, in order.
    time
        Which of them holds the event time.
    """

    names: tuple[str, ...]
    time: str


@dataclass(frozen=True)
class Output:
    """A column of the result: from the left, from the right, or a key that either side may give."""

    left: str | None
    right: str | None
    type: pa.DataType


@dataclass(frozen=True)
class BucketPlan:
    """Everything that a bucket needs to know; shipped to the workers.

    Parameters
    ----------
    join
        The core's configuration, with this bucket's share of the budget.
    how
        What leaves beside the matched pairs.
    left, right
        The columns of the two sides.
    output
        The columns of the result.
    checked
        Whether equal hashes are confirmed by a second one, in the column `x`.
    where
        A further condition on pairs.
    layout
        What a state must agree on to be taken up again.
    """

    join: Join
    how: How
    left: SideColumns
    right: SideColumns
    output: tuple[Output, ...]
    checked: bool
    where: Where | None
    layout: dict[str, Any]

    def side(self, side: Side) -> SideColumns:
        """The columns of one side."""
        return self.left if side == "left" else self.right

    @property
    def flags_uncertain(self) -> bool:
        """Whether results say if their lack of a match is uncertain."""
        return self.how in ("left", "right", "full")

    def keeps_unmatched(self, side: Side) -> bool:
        """Whether rows of this side leave without a match."""
        return self.how in (side, "full")


@dataclass
class Counts:
    """What a bucket counts beside the operator's tally."""

    rows_left: int = 0
    rows_right: int = 0
    late: int = 0
    null_keys: int = 0


@dataclass
class BucketJoin:
    """A running bucket."""

    plan: BucketPlan
    operator: Operator = field(init=False)
    payload: dict[Side, pa.Table] = field(default_factory=dict)
    marks: dict[Side, Array] = field(init=False)
    counts: Counts = field(default_factory=Counts)
    now: int = _NEVER
    timer: int = 0
    batch: int = -1
    watermark: int = 0
    late: int = 0

    def __post_init__(self) -> None:
        self.operator = Operator(self.plan.join)
        self.marks = {side: np.full(_MARKS, _NEVER, np.int64) for side in SIDES}

    def step(self, tables: dict[Side, pa.Table], watermark: int | None) -> Iterator[pa.RecordBatch]:
        """Take a step; yields results in bounded chunks and must be run to its end.

        Parameters
        ----------
        tables
            The arrivals, in any order; a side may be missing.
        watermark
            Microseconds: what can only match rows at or before it leaves. None: rows come in order of time,
            and nothing is late.
        """
        arrivals: dict[Side, pa.Table] = {}
        for side, given in tables.items():
            table = in_utc(given)
            if side == "left":
                self.counts.rows_left += table.num_rows
            else:
                self.counts.rows_right += table.num_rows
            timely = table if watermark is None else self._without_late(side, table)
            keyed, nulls = self._without_nulls(side, timely)
            arrivals[side] = _in_order(keyed, self.plan.side(side).time)
            if nulls is not None and self.plan.keeps_unmatched(side):
                yield self._alone(side, nulls, np.zeros(nulls.num_rows, bool))
        yield from self._advance(arrivals, watermark)

    def heard(self, batch: int | None, watermark: int) -> None:
        """Learn which micro-batch runs. As in Spark, a row is late at or before the watermark of the one before.

        A bucket hears of every micro-batch with data; where it missed some, those had none, and the watermark
        has not moved since.
        """
        if batch is None or batch == self.batch + 1:
            self.late = self.watermark
        elif batch > self.batch:
            self.late = watermark
        self.batch, self.watermark = self.batch + 1 if batch is None else batch, watermark

    def finish(self) -> Iterator[pa.RecordBatch]:
        """End of a batch job: whoever still waits for a match will not find one."""
        for side in SIDES:
            if self.plan.keeps_unmatched(side) and len(self.operator.buffers[side]):
                rows = self.operator.buffers[side].rows
                waiting = np.flatnonzero(rows.matches == 0)
                uncertain = self._uncertain(rows.take(waiting))
                yield self._alone(side, self.payload[side].take(pa.array(waiting)), uncertain)

    def in_steps(self, tables: dict[Side, pa.Table], size: int) -> Iterator[dict[Side, pa.Table]]:
        """Cut rows into steps of `size`, in order of time; rows without a time come first."""
        ordered = {}
        for side, table in tables.items():
            time = table.column(self.plan.side(side).time)
            timeless = table.filter(time.is_null())
            if timeless.num_rows:
                yield {side: timeless}
            ordered[side] = _in_order(table.filter(time.is_valid()), self.plan.side(side).time)
        if not ordered:
            return
        times = {side: _times(table, self.plan.side(side).time) for side, table in ordered.items()}
        merged = np.sort(np.concatenate(list(times.values())), kind="stable")
        done = dict.fromkeys(times, 0)
        for last in [*merged[size::size], FOREVER]:
            # A step ends before a time, never within it: rows of one time are handled together.
            ends = {side: int(np.searchsorted(time, last)) for side, time in times.items()}
            if ends != done:
                yield {
                    side: table.slice(done[side], ends[side] - done[side]) for side, table in ordered.items()
                }
            done = ends

    def next_expiry(self) -> int | None:
        """The least last joinable time among the rows that leave unmatched."""
        ends = []
        for side in SIDES:
            span = self.plan.join.window.left if side == "left" else self.plan.join.window.right
            if self.plan.keeps_unmatched(side) and len(self.operator.buffers[side]) and isinstance(span, int):
                ends.append(int(self.operator.buffers[side].rows.time.min()) + span)
        return min(ends, default=None)

    def _advance(self, arrivals: dict[Side, pa.Table], watermark: int | None) -> Iterator[pa.RecordBatch]:
        rows = self._rows(arrivals)
        times = [r.time for r in rows.values() if len(r)]
        self.now = max([self.now, *(int(time[-1]) for time in times)])
        begin, end = watermark, watermark
        if begin is None or end is None:
            begin, end = min((int(time[0]) for time in times), default=self.now), self.now
        moment = Moment(self.now, Floors(begin, begin), Floors(end, end))
        batches = {side: _Candidates(self.payload.get(side), arrivals.get(side)) for side in SIDES}
        semi = self.plan.how == "left_semi"
        outcome = yield from self._joined(
            self.operator.step(
                rows["left"],
                rows["right"],
                moment,
                pairs=not semi,
                residual=self._residual(batches),
                chunk=self._chunk(batches),
                firsts=semi,
            ),
            batches,
        )
        if len(outcome.firsts):
            yield self._assembled({"left": batches["left"].take(outcome.firsts)})
        yield from self._unmatched(outcome, batches)
        for side in SIDES:
            if batches[side]:
                self.payload[side] = batches[side].take(outcome.kept(side))

    def _rows(self, arrivals: dict[Side, pa.Table]) -> dict[Side, Rows]:
        """Number the arrivals by time, left before right, and give the operator its columns."""
        first = sum(self.operator.arrived.values())
        times = {s: _times(arrivals[s], self.plan.side(s).time) if s in arrivals else _NO_INTS for s in SIDES}
        places = {side: np.arange(len(times[side])) for side in SIDES}
        ids = {
            "left": first + places["left"] + np.searchsorted(times["right"], times["left"], side="left"),
            "right": first + places["right"] + np.searchsorted(times["left"], times["right"], side="right"),
        }
        rows: dict[Side, Rows] = {}
        for side in SIDES:
            table = arrivals.get(side)
            key = _NO_INTS if table is None else self._keys(table)
            sizes = None
            if self._in_bytes:
                sizes = _NO_INTS if table is None else row_sizes(table.drop_columns([KEY, CONTENT]))
            rows[side] = Rows(
                side,
                key=key,
                time=times[side],
                id=ids[side],
                matches=np.zeros(len(key), np.int64),
                payload=sizes,
            )
        return rows

    def _keys(self, table: pa.Table) -> Array:
        keys = _column(table, KEY)
        if keys.dtype.kind == "f" and isinstance(self.plan.join.condition, str):
            return ordered(keys)
        return keys

    def _residual(self, batches: dict[Side, _Candidates]) -> Residual | None:
        """What must hold of a pair beside equal keys and the window."""
        if not self.plan.checked and self.plan.where is None:
            return None

        def holds(pairs: Pairs) -> Array:
            mask = np.ones(len(pairs.left), bool)
            if self.plan.checked:
                left, right = (batches[s].column(CHECK, getattr(pairs, s)) for s in SIDES)
                mask &= left.to_numpy(zero_copy_only=False) == right.to_numpy(zero_copy_only=False)
            if self.plan.where is not None:
                mask &= self.plan.where.holds(
                    lambda side, name: batches[side].column(name, getattr(pairs, side))
                )
            return mask

        return holds

    def _chunk(self, batches: dict[Side, _Candidates]) -> int:
        width = sum(batch.bytes_a_row for batch in batches.values())
        return int(np.clip(_RESULT_BYTES // max(1, width), 1 << 10, 1 << 18))

    def _joined(
        self, step: Generator[Pairs, None, Outcome], batches: dict[Side, _Candidates]
    ) -> Generator[pa.RecordBatch, None, Outcome]:
        while True:
            try:
                pairs = next(step)
            except StopIteration as stop:
                outcome: Outcome = stop.value
                return outcome
            if self.plan.how != "left_semi":
                yield self._assembled({side: batches[side].take(getattr(pairs, side)) for side in SIDES})

    def _unmatched(self, outcome: Outcome, batches: dict[Side, _Candidates]) -> Iterator[pa.RecordBatch]:
        for side in SIDES:
            other: Side = "right" if side == "left" else "left"
            if self.plan.keeps_unmatched(other) and len(outcome.evicted[side].rows):
                self._mark(outcome.evicted[side].rows)
        for side in SIDES:
            if not self.plan.keeps_unmatched(side):
                continue
            for departed, shed in ((outcome.expired[side], False), (outcome.evicted[side], True)):
                waiting = departed.rows.matches == 0
                if waiting.any():
                    rows = departed.rows.take(waiting)
                    uncertain = np.full(len(rows), True) if shed else self._uncertain(rows)  # noqa: FBT003
                    yield self._alone(side, batches[side].take(departed.places[waiting]), uncertain)

    def _mark(self, shed: Rows) -> None:
        """Remember, by a hash of the key, until when a row that was shed could have matched."""
        span = self.plan.join.window.left if shed.side == "left" else self.plan.join.window.right
        until = shed.time + span if isinstance(span, int) else np.full(len(shed), FOREVER)
        np.maximum.at(self.marks[shed.side], self._slot(shed.key), until)

    def _uncertain(self, rows: Rows) -> Array:
        """Whether a partner may have been shed: one with the same hash whose window reached these rows."""
        other: Side = "right" if rows.side == "left" else "left"
        uncertain: Array = self.marks[other][self._slot(rows.key)] >= rows.time
        return uncertain

    def _slot(self, keys: Array) -> Array:
        if self.plan.join.condition != "=":
            return np.zeros(len(keys), np.int64)
        slots: Array = mix(keys.view(np.uint64)) % np.uint64(_MARKS)
        return slots.astype(np.int64)

    def _alone(self, side: Side, table: pa.Table, uncertain: Array) -> pa.RecordBatch:
        return self._assembled({side: table}, uncertain)

    def _assembled(self, tables: dict[Side, pa.Table], uncertain: Array | None = None) -> pa.RecordBatch:
        """Lay out the result's columns; a side that is missing is null."""
        count = next(iter(tables.values())).num_rows
        columns = []
        for out in self.plan.output:
            sources: tuple[tuple[Side, str | None], ...] = (("left", out.left), ("right", out.right))
            found = next(
                (tables[side].column(name) for side, name in sources if name and side in tables), None
            )
            # One type whatever it came with: a session's time zone is part of Arrow's type of a timestamp.
            columns.append(pa.nulls(count, out.type) if found is None else one_chunk(found).cast(out.type))
        names = [f"o{i}" for i in range(len(columns))]
        if self.plan.flags_uncertain:
            columns.append(pa.array(np.zeros(count, bool) if uncertain is None else uncertain))
            names.append(UNCERTAIN)
        return pa.record_batch(columns, names)

    def _without_nulls(self, side: Side, table: pa.Table) -> tuple[pa.Table, pa.Table | None]:
        key, time = table.column(KEY), table.column(self.plan.side(side).time)
        if not key.null_count and not time.null_count:
            return table, None
        valid = pc.and_(key.is_valid(), time.is_valid())
        nulls = table.filter(pc.invert(valid))
        self.counts.null_keys += nulls.num_rows
        return table.filter(valid), nulls

    def _without_late(self, side: Side, table: pa.Table) -> pa.Table:
        time = one_chunk(table.column(self.plan.side(side).time)).view(pa.int64())
        timely = pc.fill_null(pc.greater(time, self.late), True)  # noqa: FBT003 - a row without a time is not late
        if pc.all(timely).as_py() is not False:
            return table
        self.counts.late += pc.sum(pc.invert(timely)).as_py()
        return table.filter(timely)

    def save(self) -> bytes:
        """The whole state as bytes."""
        state: dict[str, Array] = {
            "layout": _array(json.dumps(self.plan.layout, sort_keys=True).encode()),
            "policy": _array(self.policy.encode()),
            "budget": np.array([_limit(self.plan.join.budget)], np.int64),
            "operator": _array(self.operator.snapshot()),
            "counts": np.array([*vars(self.counts).values(), *self._clock()], np.int64),
        }
        state |= {f"payload.{side}": _array(to_bytes(table)) for side, table in self.payload.items()}
        if self.plan.flags_uncertain:
            state |= {f"marks.{side}": marks for side, marks in self.marks.items()}
        return pack(state, compressed=True)

    def _measure(self, side: Side) -> None:
        """Let restored rows tell their sizes if, and only if, this budget counts bytes."""
        rows = self.operator.buffers[side].rows
        sizes = row_sizes(self.payload[side]) if self._in_bytes and side in self.payload else None
        if self._in_bytes and sizes is None:
            sizes = np.zeros(len(rows), np.int64)
        self.operator.buffers[side] = Buffer(side)
        self.operator.buffers[side].append(replace(rows, payload=sizes))

    @property
    def _in_bytes(self) -> bool:
        budget = self.plan.join.budget
        return budget is not None and budget.unit == "bytes"

    def _clock(self) -> list[int]:
        return [self.now, self.timer, self.batch, self.watermark, self.late]

    @property
    def policy(self) -> str:
        """The name of the policy that runs."""
        return find(self.plan.join.policy).name

    @classmethod
    def load(cls, plan: BucketPlan, data: bytes | None) -> Self:
        """Go on from saved bytes, or begin."""
        bucket = cls(plan)
        if data is None:
            return bucket
        state = unpack(data)
        _check_layout(json.loads(state["layout"].tobytes()), plan.layout)
        same_policy = state["policy"].tobytes().decode() == bucket.policy
        bucket.operator.restore(state["operator"].tobytes(), policy=same_policy)
        numbers = state["counts"].tolist()
        *counts, bucket.now, bucket.timer, bucket.batch, bucket.watermark, bucket.late = numbers
        bucket.counts = Counts(*counts)
        for side in SIDES:
            if f"payload.{side}" in state:
                bucket.payload[side] = from_bytes(state[f"payload.{side}"].tobytes())
            if f"marks.{side}" in state:
                bucket.marks[side] = state[f"marks.{side}"].copy()
            bucket._measure(side)
        return bucket


@dataclass(frozen=True)
class Saved:
    """What a saved state says of itself, without the plan that wrote it."""

    layout: dict[str, Any]
    policy: str
    budget: int
    counts: Counts
    now: int
    operator: Operator
    payload: dict[Side, pa.Table]

    @classmethod
    def of(cls, data: bytes) -> Self:
        """Read what `BucketJoin.save` wrote."""
        state = unpack(data)
        operator = Operator(Join(Window(None, None)))
        operator.restore(state["operator"].tobytes(), policy=False)
        *counts, now, _, _, _, _ = state["counts"].tolist()
        return cls(
            json.loads(state["layout"].tobytes()),
            state["policy"].tobytes().decode(),
            int(state["budget"][0]),
            Counts(*counts),
            now,
            operator,
            {
                side: from_bytes(state[f"payload.{side}"].tobytes())
                for side in SIDES
                if f"payload.{side}" in state
            },
        )


def _limit(budget: Budget | None) -> int:
    return -1 if budget is None else budget.limit


def _check_layout(saved: dict[str, Any], wanted: dict[str, Any]) -> None:
    for name, value in wanted.items():
        if saved.get(name) != value:
            raise InputError(
                f"the checkpoint was written with {name}={saved.get(name)!r}, the query now has {value!r}; "
                f"change it back, or start with a new checkpointLocation"
            )


class _Candidates:
    """The columns of a step's candidates: what is buffered, then the arrivals."""

    def __init__(self, buffered: pa.Table | None, arrived: pa.Table | None) -> None:
        fresh = None if arrived is None else arrived.drop_columns([KEY, CONTENT])
        self._parts = [part for part in (buffered, fresh) if part is not None]
        self._edge = 0 if buffered is None else buffered.num_rows
        self._whole: pa.Table | None = None

    def __bool__(self) -> bool:
        return bool(self._parts)

    @property
    def bytes_a_row(self) -> int:
        return max((part.nbytes // max(1, part.num_rows) for part in self._parts), default=0)

    def take(self, places: Array) -> pa.Table:
        part, local = self._part(places)
        return part.take(pa.array(local))

    def column(self, name: str, places: Array) -> pa.Array:
        part, local = self._part(places)
        return one_chunk(part.column(name).take(pa.array(local)))

    def _part(self, places: Array) -> tuple[pa.Table, Array]:
        """The table in which all these places lie, and the places in it; pairs lie on one side of the edge."""
        if len(self._parts) == 1:
            return self._parts[0], places
        if len(places) and places.max() < self._edge:
            return self._parts[0], places
        if len(places) and places.min() >= self._edge:
            return self._parts[1], places - self._edge
        if self._whole is None:
            self._whole = pa.concat_tables(self._parts).combine_chunks()
        return self._whole, places


_NO_INTS: Final = np.empty(0, np.int64)


def _array(data: bytes) -> Array:
    return np.frombuffer(data, np.uint8)


def _column(table: pa.Table, name: str) -> Array:
    values: Array = one_chunk(table.column(name)).to_numpy(zero_copy_only=False)
    return values


def _times(table: pa.Table, name: str) -> Array:
    values: Array = one_chunk(table.column(name)).view(pa.int64()).to_numpy(zero_copy_only=False)
    return values


def _in_order(table: pa.Table, time: str) -> pa.Table:
    """By time, then by content: the same rows give the same order, whichever way they came."""
    whole = table.combine_chunks()
    times, content = _times(whole, time), _column(whole, CONTENT)
    order = np.argsort(times, kind="stable")
    same = np.diff(times[order]) == 0
    if same.any():
        tied = np.flatnonzero(np.append(same, values=False) | np.insert(same, 0, values=False))
        rows = order[tied]
        order[tied] = rows[np.lexsort((content[rows], times[rows]))]
    return whole.take(pa.array(order)) if (np.diff(order) < 0).any() else whole


def row_sizes(table: pa.Table) -> Array:
    """Bytes of each row's values, nested ones included."""
    return sum((_sizes(one_chunk(column)) for column in table.columns), np.zeros(table.num_rows, np.int64))


def _sizes(column: pa.Array) -> Array:
    kind = column.type
    if pa.types.is_null(kind):
        return np.zeros(len(column), np.int64)
    if pa.types.is_struct(kind):
        return sum((_sizes(column.field(i)) for i in range(kind.num_fields)), np.ones(len(column), np.int64))
    if pa.types.is_map(kind) or pa.types.is_list(kind) or pa.types.is_large_list(kind):
        inner = [column.keys, column.items] if pa.types.is_map(kind) else [column.values]
        upto = np.concatenate(([0], np.cumsum(sum(_sizes(values) for values in inner))))
        offsets = column.offsets.to_numpy(zero_copy_only=False)
        sizes: Array = offsets.itemsize + upto[offsets[1:]] - upto[offsets[:-1]]
        return sizes
    try:
        return np.full(len(column), max(1, kind.bit_width // 8), np.int64)
    except ValueError:
        lengths: Array = pc.binary_length(column).fill_null(0).to_numpy(zero_copy_only=False)
        return 4 + lengths.astype(np.int64)


def in_utc(table: pa.Table) -> pa.Table:
    """Bring every column to its `travelled` type."""
    schema = pa.schema([pa.field(field.name, travelled(field.type)) for field in table.schema])
    return table if schema.equals(table.schema) else table.cast(schema)


def travelled(kind: pa.DataType) -> pa.DataType:
    """The type with timestamps marked as UTC, which they are, and nulls allowed: neither makes another type."""
    if pa.types.is_timestamp(kind):
        return pa.timestamp(kind.unit, "UTC" if kind.tz else None)
    if pa.types.is_struct(kind):
        return pa.struct(
            [pa.field(kind.field(i).name, travelled(kind.field(i).type)) for i in range(kind.num_fields)]
        )
    if pa.types.is_map(kind):
        return pa.map_(travelled(kind.key_type), travelled(kind.item_type))
    if pa.types.is_list(kind):
        return pa.list_(pa.field(kind.value_field.name, travelled(kind.value_type)))
    return kind
