"""Results as record batches: the columns of both rows in order, then the columns that describe a result."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

import numpy as np
import pyarrow as pa

from tidegate.arrow_columns import one_chunk
from tidegate.draws import mix
from tidegate.engine.operator import Operator
from tidegate.spark.bucket.join.candidates import Candidates
from tidegate.spark.bucket.join.plan import UNCERTAIN, BucketPlan
from tidegate.spark.packing.columns import OWNER, PROBABILITY, SHOWN, WEIGHT
from tidegate.types import SIDES, Pairs, Sampled

if TYPE_CHECKING:
    from tidegate.types import Array, Side

_CHUNK_BYTES: Final = 8 << 20
_FEWEST_ROWS: Final = 1 << 10
_MOST_ROWS: Final = 1 << 18
_NUMBER_BITS: Final = 48
"""The low bits of an owner are the number of a row within its bucket, the high bits that of the bucket."""


class ResultWriter:
    """Builds the record batches that leave one bucket."""

    def __init__(self, plan: BucketPlan) -> None:
        self._plan = plan

    def pairs(self, pairs: Pairs, candidates: Mapping[Side, Candidates]) -> pa.RecordBatch:
        """Pairs of matching rows."""
        tables = {side: candidates[side].take(getattr(pairs, side)) for side in SIDES}
        return self._assemble(tables, self._result_columns(pairs))

    def left_rows(self, table: pa.Table) -> pa.RecordBatch:
        """Left rows that have a match, for a semi join."""
        return self._assemble({"left": table}, {})

    def unmatched(self, side: Side, table: pa.Table, uncertain: Array) -> pa.RecordBatch:
        """Rows of an outer or anti join without a match; `uncertain` where a partner may have been evicted."""
        return self._assemble({side: table}, {UNCERTAIN: uncertain})

    @staticmethod
    def chunk_rows(candidates: Mapping[Side, Candidates]) -> int:
        """The number of results in a batch, so that a batch takes a few megabytes."""
        width = sum(batch.bytes_a_row for batch in candidates.values())
        return int(np.clip(_CHUNK_BYTES // max(1, width), _FEWEST_ROWS, _MOST_ROWS))

    def _result_columns(self, pairs: Pairs) -> dict[str, Array]:
        """The columns that describe a result."""
        if isinstance(pairs, Sampled):
            owner = pairs.owner + (self._plan.join.partition << _NUMBER_BITS)
            weight = 1 / pairs.probability
            return {PROBABILITY: pairs.probability, WEIGHT: weight, OWNER: owner, SHOWN: pairs.shown}
        return {UNCERTAIN: np.zeros(len(pairs.left), bool)} if self._plan.flags_uncertain else {}

    def _assemble(self, tables: Mapping[Side, pa.Table], added: Mapping[str, Array]) -> pa.RecordBatch:
        """Build a batch of the result's columns, then the added ones; the columns of a missing side are null."""
        count = next(iter(tables.values())).num_rows
        columns = []
        for out in self._plan.output:
            sources: tuple[tuple[Side, str | None], ...] = (("left", out.left), ("right", out.right))
            source_column = next(
                (tables[side].column(name) for side, name in sources if name and side in tables), None
            )
            # The same type in all batches: Arrow's type of a timestamp contains the time zone of the session.
            columns.append(
                pa.nulls(count, out.type)
                if source_column is None
                else one_chunk(source_column).cast(out.type)
            )
        names = [f"o{i}" for i in range(len(columns))]
        return pa.record_batch([*columns, *map(pa.array, added.values())], [*names, *added])


def result_ids(pairs: Pairs, operator: Operator[Pairs]) -> Array:
    """A 64-bit number for each result, from the numbers of its two rows; two results rarely have the same."""
    left, right = (operator.buffers[side].rows.id[getattr(pairs, side)].view(np.uint64) for side in SIDES)
    numbers: Array = mix(mix(left) + right).view(np.int64)
    return numbers
