"""The reservoir of one bucket: which results it holds, and their columns beside it."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, Self

import numpy as np
import pyarrow as pa

from tidegate.engine.reservoir_join import settle
from tidegate.sampling.estimates.sample_design import GroupCodes
from tidegate.sampling.reservoirs.grouped_join import GroupedPart, RankedGroups, merged_groups
from tidegate.sampling.reservoirs.progressive_join import RunningProgressiveJoin
from tidegate.sampling.reservoirs.ranked import RankedReservoir, merged
from tidegate.spark.packing.packed_rows import from_bytes, to_bytes
from tidegate.spark.sample.columns import BATCH, OWNER, PROBABILITY, RANK, SHOWN, WEIGHT
from tidegate.types import Budget, as_part, parts_of

if TYPE_CHECKING:
    from tidegate.engine.sampling_operator import SamplingOperator
    from tidegate.sampling import SlotChanges
    from tidegate.types import Array

_NOTE: Final = "reservoir"
_PART: Final = "reservoir"
_ROWS: Final = "reservoir rows"
_BY: Final = "reservoir by"
_POOLED: Final = "pooled"


@dataclass
class BucketReservoir:
    """The results of a reservoir with all their columns, by slot.

    `by` names the columns of their groups, if any.
    """

    reservoir: RankedReservoir
    by: Sequence[str] = ()
    rows: pa.Table | None = field(default=None)

    def offer(self, results: pa.RecordBatch, probability: Array, numbers: Array) -> None:
        """Offer results, with the probability of each and a unique number."""
        changes = self._changes(results, probability, numbers)
        held = self._kept(changes) or results.schema.empty_table()
        count = max(held.num_rows, 1 + int(changes.slots.max(initial=-1)))
        source = np.arange(count)
        source[changes.slots] = held.num_rows + np.arange(len(changes.slots))
        arrived = pa.Table.from_batches([results.take(pa.array(changes.rows))])
        self.rows = pa.concat_tables([held, arrived]).take(pa.array(source)).combine_chunks()

    def _changes(self, results: pa.RecordBatch, probability: Array, numbers: Array) -> SlotChanges:
        if not isinstance(self.reservoir, RankedGroups):
            return self.reservoir.offer(probability, numbers)
        held = len(self.reservoir)
        parts = [table.select(self.by) for table in (self.rows, pa.Table.from_batches([results])) if table]
        codes = _codes(pa.concat_tables(parts), self.by) if parts else np.empty(0, np.int64)
        return self.reservoir.offer(probability, numbers, groups=(codes[:held], codes[held:]))

    def settle(self, operator: SamplingOperator) -> None:
        """After a step, adapt reservoir and sampler to each other."""
        for changes in settle(self.reservoir, operator):
            self.rows = self._kept(changes)

    def leave(self, operator: SamplingOperator) -> None:
        """Give the join the part of the budget that a growing reservoir leaves."""
        if isinstance(self.reservoir, RunningProgressiveJoin):
            operator.limit(Budget(rows=self.reservoir.demand().rows))

    def _kept(self, changes: SlotChanges) -> pa.Table | None:
        return (
            self.rows if changes.kept is None or self.rows is None else self.rows.take(pa.array(changes.kept))
        )

    def packed(self, batch: int) -> pa.RecordBatch:
        """The held results with their ranks, and what a merge needs to know; also of an empty bucket."""
        kept = self.reservoir
        note: dict[str, object] = {"size": kept.size, "bound": kept.fraction, "batch": batch}
        columns = {RANK: kept.ranks}
        if isinstance(kept, RankedGroups):
            note |= {"by": list(self.by), "min_per_group": kept.min_per_group, "part": kept.part}
            columns[_POOLED] = kept.pooled
        rows = pa.table({}) if self.rows is None else self.rows.drop_columns([PROBABILITY, WEIGHT])
        for name, column in columns.items() if self.rows is not None else ():
            rows = rows.append_column(name, pa.array(column))
        noted = rows.replace_schema_metadata({_NOTE: json.dumps(note)}).combine_chunks()
        return next(iter(noted.to_batches()), pa.RecordBatch.from_pylist([], noted.schema))

    def noted(self) -> dict[str, float]:
        """Numbers for `tidegate.inspect`: how many results are of groups that share a place."""
        return {"sharing": self.reservoir.sharing} if isinstance(self.reservoir, RankedGroups) else {}

    def snapshot(self) -> dict[str, Array]:
        """The whole state, as plain arrays."""
        state = as_part(_PART, self.reservoir.snapshot())
        if self.by:
            state[_BY] = np.frombuffer(json.dumps(self.by).encode(), np.uint8)
        if self.rows is not None:
            state[_ROWS] = np.frombuffer(to_bytes(self.rows), np.uint8)
        return state

    def restore(self, state: Mapping[str, Array]) -> Self:
        """Continue from what `snapshot` returned."""
        self.reservoir.restore(parts_of(state)[_PART])
        if _ROWS in state:
            self.rows = from_bytes(state[_ROWS].tobytes())
        return self

    @classmethod
    def of(cls, state: Mapping[str, Array]) -> Self | None:
        """The reservoir in a saved state, to look at; None if it has none."""
        saved = parts_of(state).get(_PART)
        if saved is None:
            return None
        kept = RankedGroups(1, 2, 0, 1) if "pooled" in saved else RankedReservoir(1, 2, 0)
        by = json.loads(state[_BY].tobytes()) if _BY in state else ()
        return cls(kept, by).restore(state)


def sample_of(buckets: Iterable[pa.Table], size: int | None = None) -> Iterator[pa.RecordBatch]:
    """One sample from all buckets, each result with its probability."""
    parts = list(buckets)
    notes = [json.loads(part.schema.metadata[_NOTE.encode()]) for part in parts]
    held = [part.replace_schema_metadata(None) for part in parts if part.num_rows]
    if not held:
        return
    rows = pa.concat_tables(held)
    most = size or max(note["size"] for note in notes)
    ranks, first = rows.column(RANK).to_numpy(), notes[0]
    if _POOLED in rows.column_names:
        groups, pooled = _codes(rows, first["by"]), rows.column(_POOLED).to_numpy()
        group_parts = [GroupedPart(*note["part"]) for note in notes]
        lowest = merged_groups(ranks, groups, pooled, group_parts, most, first["min_per_group"])
    else:
        lowest = merged(ranks, [note["bound"] for note in notes], most)
    sample = rows.take(pa.array(lowest.rows)).select(
        [name for name in rows.column_names if name not in (RANK, _POOLED)]
    )
    beside = {
        PROBABILITY: lowest.chance,
        WEIGHT: 1 / lowest.chance,
        OWNER: sample.column(OWNER),
        SHOWN: sample.column(SHOWN),
        BATCH: np.full(sample.num_rows, max(note["batch"] for note in notes)),
    }
    sample = sample.drop_columns([OWNER, SHOWN])
    for name, column in beside.items():
        sample = sample.append_column(name, pa.array(column) if isinstance(column, np.ndarray) else column)
    yield from sample.combine_chunks().to_batches()


def _codes(rows: pa.Table, by: Sequence[str]) -> Array:
    return GroupCodes.of([rows.column(name) for name in by], rows.num_rows).codes


def unpacked(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.Table]:
    """Unpack the reservoirs of buckets."""
    return (from_bytes(packed.as_buffer()) for batch in batches for packed in batch.column(0))


def merge(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The sample that the packed buckets of a micro-batch, or of a batch job, have together."""
    yield from sample_of(unpacked(batches))
