"""One bucket of a join: the core's operator, with the columns that it does not look at kept beside it.

Nothing here knows Spark: tables and a watermark come in, results and bytes of state go out. The streaming
processor and the batch job both run this.
"""

from __future__ import annotations

import json
from collections.abc import Generator, Iterator
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final, Self

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tidegate.draws import mix
from tidegate.engine.arrivals import Floors, Moment
from tidegate.engine.buffer import Buffer
from tidegate.engine.operator import Operator, Outcome, Residual
from tidegate.engine.row_sizes import row_sizes
from tidegate.engine.sampling_operator import SamplingOperator
from tidegate.engine.snapshot import pack, unpack
from tidegate.policies import find
from tidegate.spark.clock import Clock
from tidegate.spark.columns import Candidates, column, in_order, in_utc, micros
from tidegate.spark.held_sample import OWNER, PROBABILITY, SHOWN, WEIGHT, HeldSample
from tidegate.spark.ordering import ordered
from tidegate.spark.packing import CHECK, CONTENT, KEY, from_bytes, to_bytes
from tidegate.spark.plan import UNCERTAIN, BucketPlan
from tidegate.spark.pool_folder import Desk
from tidegate.spark.pool_shares import Standing, told
from tidegate.spark.saved import Counts, check_layout, standing
from tidegate.spark.settings import Settings
from tidegate.spark.valuation import Files, Held, Noted
from tidegate.streams.trace import one_chunk
from tidegate.types import FOREVER, SIDES, InputError, Pairs, Rows, Sampled, other_side

if TYPE_CHECKING:
    from tidegate.importance import Content, Watched
    from tidegate.types import Array, Side

_MARKS: Final = 1024
_RESULT_BYTES: Final = 8 << 20
_NEVER: Final = -FOREVER
_NUMBER_BITS: Final = 48
"""Below these a row's number among those of its bucket, above them the bucket's."""


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
    clock: Clock = field(default_factory=Clock)
    standing: Standing | None = None
    files: Files = field(default_factory=Files)
    held: Held | None = field(init=False)
    sample: HeldSample | None = None

    def __post_init__(self) -> None:
        sampling, number = self.plan.sampling, self.plan.join.partition
        self.operator = (
            SamplingOperator(self.plan.join, sampling.sampler) if sampling else Operator(self.plan.join)
        )
        if sampling and sampling.reservoir:
            kept = sampling.reservoir.start(self.plan.join.seed, number)
            self.sample = HeldSample(kept, sampling.by)
        self.held = Held(dict(self.plan.valuation.found)) if self.plan.valuation else None
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
            arrivals[side] = in_order(keyed, self.plan.side(side).time)
            if nulls is not None and self.plan.keeps_unmatched(side):
                yield self._alone(side, nulls, np.zeros(nulls.num_rows, bool))
        yield from self._advance(arrivals, watermark)

    def share(self, desk: Desk) -> None:
        """Learn, after which micro-batch runs, what a pool lets this bucket hold after it."""
        first = self.plan.join.budget
        if first is not None:
            number, payoff = self.plan.join.partition, told(self.operator)
            self.standing = desk.standing(number, self.clock.batch, self.standing, first.limit, payoff)
            self.operator.limit(replace(first, **{first.unit: self.standing.limit}))

    def look(self) -> None:
        """At the end of a micro-batch, see whether importance was redefined; that holds from the next one on.

        Files that cannot be used, or do not value what is buffered, change nothing and are counted.
        """
        valuation, held = self.plan.valuation, self.held
        if not valuation or not held:
            return
        found, problems = held.renewed(self.files)
        if held.changed(found):
            try:
                self._revalue(found)
                held.redefined += 1
            except InputError as error:
                problems.append(str(error))
        if problems:
            held.refused += 1
            held.refusal = problems[0]

    def shown(self) -> Iterator[pa.RecordBatch]:
        """The reservoir as it is after this micro-batch."""
        if self.sample:
            yield self.sample.told(self.clock.batch)

    def finish(self) -> Iterator[pa.RecordBatch]:
        """End of a batch job: whoever still waits for a match will not find one."""
        yield from self.shown()
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
            ordered[side] = in_order(table.filter(time.is_valid()), self.plan.side(side).time)
        if not ordered:
            return
        times = {side: micros(table, self.plan.side(side).time) for side, table in ordered.items()}
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
        batches = {side: Candidates(self.payload.get(side), arrivals.get(side)) for side in SIDES}
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
            yield self._assembled({"left": batches["left"].take(outcome.firsts)}, {})
        yield from self._unmatched(outcome, batches)
        if self.sample and isinstance(self.operator, SamplingOperator):
            self.sample.settle(self.operator)
        for side in SIDES:
            if batches[side]:
                self.payload[side] = batches[side].take(outcome.kept(side))

    def _rows(self, arrivals: dict[Side, pa.Table]) -> dict[Side, Rows]:
        """Number the arrivals by time, left before right, and give the operator its columns."""
        first = sum(self.operator.arrived.values())
        times = {s: micros(arrivals[s], self.plan.side(s).time) if s in arrivals else _NO_INTS for s in SIDES}
        places = {side: np.arange(len(times[side])) for side in SIDES}
        ids = {
            "left": first + places["left"] + np.searchsorted(times["right"], times["left"], side="left"),
            "right": first + places["right"] + np.searchsorted(times["left"], times["right"], side="right"),
        }
        rows: dict[Side, Rows] = {}
        worths = self._worths(arrivals)
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
                importance=worths.get(side),
                payload=sizes,
            )
        return rows

    def _worths(self, arrivals: dict[Side, pa.Table]) -> dict[Side, Array]:
        """What the arrivals are worth."""
        valuation, held = self.plan.valuation, self.held
        if not valuation or not held:
            return {}
        try:
            return self._valued(held.found, arrivals)
        except InputError:
            # The query would stop here, and again after every restart, though the file was mended.
            found, _ = held.renewed(self.files)
            if not held.changed(found):
                raise
            worths = self._valued(found, arrivals)
            self._revalue(found)
            held.redefined += 1
            return worths

    def _valued(self, found: dict[Watched, Content], tables: dict[Side, pa.Table]) -> dict[Side, Array]:
        """What some rows are worth by what was found in files; nothing for a side that has none."""
        valuation = self.plan.valuation
        if not valuation:
            return {}
        definition = valuation.settled(found)
        return {
            side: valuation.worth(definition, side, tables[side]) if side in tables else np.empty(0)
            for side in SIDES
        }

    def _revalue(self, found: dict[Watched, Content]) -> None:
        """Value what is buffered anew, by what was found in files; that holds from now on."""
        if self.plan.valuation:
            self.plan.valuation.check(self.plan.valuation.settled(found))
        worths = self._valued(found, self.payload)
        for side in SIDES:
            self.operator.revalue(side, worths.get(side))
        if self.held:
            self.held.found = found

    def _replace(self, side: Side, **columns: Array | None) -> None:
        rows = self.operator.buffers[side].rows
        self.operator.buffers[side] = Buffer.of(replace(rows, **columns))  # type: ignore[arg-type]

    def _keys(self, table: pa.Table) -> Array:
        keys = column(table, KEY)
        if keys.dtype.kind == "f" and isinstance(self.plan.join.condition, str):
            return ordered(keys)
        return keys

    def _residual(self, batches: dict[Side, Candidates]) -> Residual | None:
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

    def _chunk(self, batches: dict[Side, Candidates]) -> int:
        width = sum(batch.bytes_a_row for batch in batches.values())
        return int(np.clip(_RESULT_BYTES // max(1, width), 1 << 10, 1 << 18))

    def _joined(
        self, step: Generator[Pairs, None, Outcome], batches: dict[Side, Candidates]
    ) -> Generator[pa.RecordBatch, None, Outcome]:
        while True:
            try:
                pairs = next(step)
            except StopIteration as stop:
                outcome: Outcome = stop.value
                return outcome
            if self.plan.how != "left_semi":
                tables = {side: batches[side].take(getattr(pairs, side)) for side in SIDES}
                results = self._assembled(tables, self._told(pairs))
                if self.sample and isinstance(pairs, Sampled):
                    self.sample.offer(results, pairs.probability, self._numbers(pairs))
                else:
                    yield results

    def _unmatched(self, outcome: Outcome, batches: dict[Side, Candidates]) -> Iterator[pa.RecordBatch]:
        for side in SIDES:
            other = other_side(side)
            if self.plan.keeps_unmatched(other) and len(outcome.evicted[side].rows):
                self._mark(outcome.evicted[side].rows)
        for side in SIDES:
            if not self.plan.keeps_unmatched(side):
                continue
            for departed, shed in ((outcome.expired[side], False), (outcome.evicted[side], True)):
                waiting = departed.rows.matches == 0
                if waiting.any():
                    rows = departed.rows.take(waiting)
                    uncertain = np.full(len(rows), True) if shed else self._uncertain(rows)  # noqa: FBT003 - a value
                    yield self._alone(side, batches[side].take(departed.places[waiting]), uncertain)

    def _mark(self, shed: Rows) -> None:
        """Remember, by a hash of the key, until when a row that was shed could have matched."""
        span = self.plan.join.window.left if shed.side == "left" else self.plan.join.window.right
        until = shed.time + span if isinstance(span, int) else np.full(len(shed), FOREVER)
        np.maximum.at(self.marks[shed.side], self._slot(shed.key), until)

    def _uncertain(self, rows: Rows) -> Array:
        """Whether a partner may have been shed: one with the same hash whose window reached these rows."""
        other = other_side(rows.side)
        uncertain: Array = self.marks[other][self._slot(rows.key)] >= rows.time
        return uncertain

    def _slot(self, keys: Array) -> Array:
        if self.plan.join.condition != "=":
            return np.zeros(len(keys), np.int64)
        slots: Array = mix(keys.view(np.uint64)) % np.uint64(_MARKS)
        return slots.astype(np.int64)

    def _alone(self, side: Side, table: pa.Table, uncertain: Array) -> pa.RecordBatch:
        return self._assembled({side: table}, {UNCERTAIN: uncertain})

    def _told(self, pairs: Pairs) -> dict[str, Array]:
        """What a result says beside its rows' columns."""
        if isinstance(pairs, Sampled):
            owner = pairs.owner + (self.plan.join.partition << _NUMBER_BITS)
            weight = 1 / pairs.probability
            return {PROBABILITY: pairs.probability, WEIGHT: weight, OWNER: owner, SHOWN: pairs.shown}
        return {UNCERTAIN: np.zeros(len(pairs.left), bool)} if self.plan.flags_uncertain else {}

    def _numbers(self, pairs: Pairs) -> Array:
        """A number for each result, which no other has but by the rarest chance."""
        left, right = (
            self.operator.buffers[side].rows.id[getattr(pairs, side)].view(np.uint64) for side in SIDES
        )
        numbers: Array = mix(mix(left) + right).view(np.int64)
        return numbers

    def _assembled(self, tables: dict[Side, pa.Table], told: dict[str, Array]) -> pa.RecordBatch:
        """Lay out the result's columns, and behind them what else is told; a side that is missing is null."""
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
        return pa.record_batch([*columns, *map(pa.array, told.values())], [*names, *told])

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
        timely = pc.fill_null(pc.greater(time, self.clock.late), True)  # noqa: FBT003 - a row without a time is not late
        if pc.all(timely).as_py() is not False:
            return table
        self.counts.late += pc.sum(pc.invert(timely)).as_py()
        return table.filter(timely)

    def save(self) -> bytes:
        """The whole state as bytes."""
        state: dict[str, Array | bytes] = {
            "layout": json.dumps(self.plan.layout, sort_keys=True).encode(),
            "settings": Settings.of(self.operator.join).to_json(),
            "operator": self.operator.snapshot(),
            "counts": np.array([*vars(self.counts).values(), *self._times()], np.int64),
        }
        if self.standing:
            state["pool"] = json.dumps(vars(self.standing)).encode()
        if self.held and self.plan.valuation:
            state["importance"] = self.held.to_json(self.plan.valuation)
        if isinstance(self.operator, SamplingOperator) and self.plan.sampling:
            drawing = self.operator.sampling
            told = {
                "sampler": self.plan.sampling.sampler.name,
                "fraction": drawing.fraction,
                "lowered": drawing.control.lowered,
            } | (self.sample.noted() if self.sample else {})
            state["sampling"] = json.dumps(told).encode()
        if self.sample:
            state |= self.sample.snapshot()
        state |= {f"payload.{side}": to_bytes(table) for side, table in self.payload.items()}
        if self.plan.flags_uncertain:
            state |= {f"marks.{side}": marks for side, marks in self.marks.items()}
        return pack(state, compressed=True)

    def _measure(self, side: Side) -> None:
        """Let restored rows tell their sizes if, and only if, this budget counts bytes."""
        rows = self.operator.buffers[side].rows
        sizes = row_sizes(self.payload[side]) if self._in_bytes and side in self.payload else None
        if self._in_bytes and sizes is None:
            sizes = np.zeros(len(rows), np.int64)
        self._replace(side, payload=sizes)

    @property
    def _in_bytes(self) -> bool:
        budget = self.plan.join.budget
        return budget is not None and budget.unit == "bytes"

    def _times(self) -> list[int]:
        return [self.now, self.timer, *vars(self.clock).values()]

    @classmethod
    def load(cls, plan: BucketPlan, data: bytes | None, files: Files | None = None) -> Self:
        """Go on from saved bytes, or begin; `files` are shared with other buckets."""
        bucket = cls(plan, files=files or Files())
        if data is None:
            return bucket
        state = unpack(data)
        check_layout(json.loads(state["layout"].tobytes()), plan.layout)
        # The settings are the plan's; the saved ones say only whose learning the state holds.
        learned_by = Settings.from_json(state["settings"].tobytes()).policy
        same_policy = learned_by == find(plan.join.policy).label()
        bucket.operator.restore(state["operator"].tobytes(), policy=same_policy)
        numbers = state["counts"].tolist()
        *counts, bucket.now, bucket.timer, batch, watermark, late = numbers
        bucket.counts, bucket.clock = Counts(*counts), Clock(batch, watermark, late)
        bucket.standing = standing(state)
        for side in SIDES:
            if f"payload.{side}" in state:
                bucket.payload[side] = from_bytes(state[f"payload.{side}"].tobytes())
            if f"marks.{side}" in state:
                bucket.marks[side] = state[f"marks.{side}"].copy()
            bucket._measure(side)
        if bucket.sample and isinstance(bucket.operator, SamplingOperator):
            bucket.sample.restore(state).leave(bucket.operator)
        bucket._resume(Noted.of(state))
        return bucket

    def _resume(self, noted: Noted | None) -> None:
        """Go on with the importance that restored rows have, or give them that of another definition."""
        valuation = self.plan.valuation
        if valuation and noted:
            self.held = noted.held(valuation)
        if bool(noted) != bool(valuation) or (noted and valuation and noted.given != valuation.digest):
            self._revalue(self.held.found if self.held else {})


_NO_INTS: Final = np.empty(0, np.int64)
