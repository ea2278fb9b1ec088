"""The reservoir of one bucket, with the columns of its results; and the merge of all buckets."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, Self

import numpy as np
import pyarrow as pa

from tidegate.engine.reservoir_join import settle
from tidegate.sampling.estimates.sample_design import GroupCodes
from tidegate.sampling.reservoirs.grouped_join import GroupedPart, RankedGroups, merge_groups
from tidegate.sampling.reservoirs.progressive_join import RunningProgressiveJoin
from tidegate.sampling.reservoirs.ranked import RankedReservoir, merge_ranked
from tidegate.spark.packing.arrow_bytes import from_bytes
from tidegate.spark.packing.columns import BATCH, OWNER, PROBABILITY, RANK, SHOWN, WEIGHT
from tidegate.spark.state.numbered_rows import NumberedRows
from tidegate.types import Budget, Pairs, as_part, parts_of

if TYPE_CHECKING:
    from tidegate.engine.operator import Operator
    from tidegate.sampling import RunningSampler, SlotChanges
    from tidegate.spark.state.payload import PayloadStore
    from tidegate.types import Array

_METADATA: Final = "reservoir"
"""The key of the schema metadata of packed rows."""
_STATE: Final = "reservoir"
_STATE_ROWS: Final = "reservoir rows"
"""In the first states: all rows as a table."""
_STATE_IDS: Final = "reservoir ids"
_STATE_NEXT: Final = "reservoir next"
_STATE_BY: Final = "reservoir by"
_POOLED: Final = "pooled"


@dataclass
class BucketReservoir:
    """A reservoir with the columns of its results.

    Results are numbered in the order in which they entered. A save writes those that entered since the last one.

    Parameters
    ----------
    reservoir
        Decides which results are held, and in which slots.
    by
        The columns that form groups, if any.
    rows
        The held results, by slot; None before the first offer.
    """

    reservoir: RankedReservoir
    by: Sequence[str] = ()
    rows: pa.Table | None = field(default=None)
    _numbered: NumberedRows = field(default_factory=NumberedRows.new)

    def offer(self, results: pa.RecordBatch, probability: Array, numbers: Array) -> None:
        """Offer results, with the probability of each and a unique number."""
        changes = self._changes(results, probability, numbers)
        self._keep(changes)
        held = self.rows or results.schema.empty_table()
        count = max(held.num_rows, 1 + int(changes.slots.max(initial=-1)))
        source = np.arange(count)
        source[changes.slots] = held.num_rows + np.arange(len(changes.slots))
        arrived = pa.Table.from_batches([results.take(pa.array(changes.rows))])
        self.rows = pa.concat_tables([held, arrived]).take(pa.array(source)).combine_chunks()
        self._numbered.update(source)

    def _changes(self, results: pa.RecordBatch, probability: Array, numbers: Array) -> SlotChanges:
        if not isinstance(self.reservoir, RankedGroups):
            return self.reservoir.offer(probability, numbers)
        held = len(self.reservoir)
        parts = [table.select(self.by) for table in (self.rows, pa.Table.from_batches([results])) if table]
        codes = _codes(pa.concat_tables(parts), self.by) if parts else np.empty(0, np.int64)
        return self.reservoir.offer(probability, numbers, groups=(codes[:held], codes[held:]))

    def settle(self, operator: Operator[Pairs], sampling: RunningSampler) -> None:
        """After a step, adapt reservoir and sampler to each other."""
        for changes in settle(self.reservoir, operator, sampling):
            self._keep(changes)

    def limit_join(self, operator: Operator[Pairs]) -> None:
        """Limit the join to the part of the budget that a growing reservoir leaves."""
        if isinstance(self.reservoir, RunningProgressiveJoin):
            operator.limit(Budget(rows=self.reservoir.demand().rows))

    def _keep(self, changes: SlotChanges) -> None:
        if changes.kept is not None and self.rows is not None:
            self.rows = self.rows.take(pa.array(changes.kept))
            self._numbered.update(changes.kept)

    def packed(self, batch: int) -> pa.RecordBatch:
        """The held results with their ranks, and metadata for the merge, also if there are no results."""
        reservoir = self.reservoir
        metadata: dict[str, object] = {"size": reservoir.size, "bound": reservoir.fraction, "batch": batch}
        columns = {RANK: reservoir.ranks}
        if isinstance(reservoir, RankedGroups):
            metadata |= {
                "by": list(self.by),
                "min_per_group": reservoir.min_per_group,
                "part": reservoir.part,
            }
            columns[_POOLED] = reservoir.pooled
        rows = pa.table({}) if self.rows is None else self.rows.drop_columns([PROBABILITY, WEIGHT])
        for name, column in columns.items() if self.rows is not None else ():
            rows = rows.append_column(name, pa.array(column))
        whole = rows.replace_schema_metadata({_METADATA: json.dumps(metadata)}).combine_chunks()
        return next(iter(whole.to_batches()), pa.RecordBatch.from_pylist([], whole.schema))

    def model_values(self) -> dict[str, float]:
        """Values for `tidegate.inspect(checkpoint, "model")`: the number of results of groups that share a place."""
        return {"sharing": self.reservoir.sharing} if isinstance(self.reservoir, RankedGroups) else {}

    def snapshot(self) -> dict[str, Array]:
        """The state without the columns of the held results, as plain arrays."""
        state = as_part(_STATE, self.reservoir.snapshot())
        if self.by:
            state[_STATE_BY] = np.frombuffer(json.dumps(self.by).encode(), np.uint8)
        if self.rows is not None:
            state |= {_STATE_IDS: self._numbered.ids, _STATE_NEXT: np.array([self._numbered.next])}
        return state

    def payload(self) -> PayloadStore:
        """The columns of the held results, by their numbers, to be saved."""
        return self._numbered.payload(pa.table({}) if self.rows is None else self.rows)

    def restore(self, state: Mapping[str, Array], payload: PayloadStore) -> Self:
        """Continue from what `snapshot` and `payload` returned."""
        self.reservoir.restore(parts_of(state)[_STATE])
        if _STATE_IDS in state:
            self._numbered = NumberedRows.saved(state[_STATE_IDS], int(state[_STATE_NEXT][0]), payload)
            self.rows = self._numbered.columns()
        elif _STATE_ROWS in state:
            self.rows = from_bytes(state[_STATE_ROWS].tobytes())
            self._numbered = NumberedRows.new(self.rows.num_rows)
        return self

    @classmethod
    def of(cls, state: Mapping[str, Array], payload: PayloadStore) -> Self | None:
        """The reservoir of a saved state, for inspection; None if the state has none."""
        saved = parts_of(state).get(_STATE)
        if saved is None:
            return None
        # All sizes and seeds are replaced by those of the saved state.
        reservoir = RankedGroups(1, 2, 0, 1) if "pooled" in saved else RankedReservoir(1, 2, 0)
        by = json.loads(state[_STATE_BY].tobytes()) if _STATE_BY in state else ()
        return cls(reservoir, by).restore(state, payload)


def merge_buckets(buckets: Iterable[pa.Table], size: int | None = None) -> Iterator[pa.RecordBatch]:
    """One sample from all buckets, each result with its probability."""
    parts = list(buckets)
    metadata = [json.loads(part.schema.metadata[_METADATA.encode()]) for part in parts]
    held = [part.replace_schema_metadata(None) for part in parts if part.num_rows]
    if not held:
        return
    rows = pa.concat_tables(held)
    most = size or max(part_metadata["size"] for part_metadata in metadata)
    ranks, first = rows.column(RANK).to_numpy(), metadata[0]
    if _POOLED in rows.column_names:
        groups, pooled = _codes(rows, first["by"]), rows.column(_POOLED).to_numpy()
        group_parts = [GroupedPart(*part_metadata["part"]) for part_metadata in metadata]
        lowest = merge_groups(ranks, groups, pooled, group_parts, most, first["min_per_group"])
    else:
        lowest = merge_ranked(ranks, [part_metadata["bound"] for part_metadata in metadata], most)
    sample = rows.take(pa.array(lowest.rows)).select(
        [name for name in rows.column_names if name not in (RANK, _POOLED)]
    )
    added = {
        PROBABILITY: lowest.chance,
        WEIGHT: 1 / lowest.chance,
        OWNER: sample.column(OWNER),
        SHOWN: sample.column(SHOWN),
        BATCH: np.full(sample.num_rows, max(part_metadata["batch"] for part_metadata in metadata)),
    }
    sample = sample.drop_columns([OWNER, SHOWN])
    for name, column in added.items():
        sample = sample.append_column(name, pa.array(column) if isinstance(column, np.ndarray) else column)
    yield from sample.combine_chunks().to_batches()


def _codes(rows: pa.Table, by: Sequence[str]) -> Array:
    return GroupCodes.of([rows.column(name) for name in by], rows.num_rows).codes


def unpack_buckets(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.Table]:
    """Unpack the reservoirs of buckets."""
    return (from_bytes(packed.as_buffer()) for batch in batches for packed in batch.column(0))


def merge_packed(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """One sample from the packed buckets of a micro-batch, or of a batch query."""
    yield from merge_buckets(unpack_buckets(batches))
