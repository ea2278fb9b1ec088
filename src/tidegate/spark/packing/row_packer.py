"""From the rows of a DataFrame to packed rows: what a worker runs before the shuffle."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import TYPE_CHECKING, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tidegate._version import __version__
from tidegate.spark.packing.arrow_bytes import to_column
from tidegate.spark.packing.buckets import bucket_of, labels
from tidegate.spark.packing.columns import CONTENT
from tidegate.spark.session.task import (
    check_release,
    freeze_imports,
    partition_number,
    release_memory,
    task_buckets,
)

if TYPE_CHECKING:
    from tidegate.types import Array

_ROWS_A_PACK: Final = 1 << 18
_BYTES_A_PACK: Final = 8 << 20


@dataclass(frozen=True)
class RowPacker:
    """Distributes rows to buckets by the hash of a column; rows in which it is null, by their content.

    Parameters
    ----------
    side
        0 for left, 1 for right.
    buckets
        The number of buckets.
    by
        The column by which rows are distributed; None puts all rows into the first bucket.
    buckets_given
        Whether the number of buckets was given. Otherwise it is that of the running query's partitions.
    release
        The release of Tidegate on the driver. The packer is the first of its code that a worker runs.
    """

    side: int
    buckets: int
    by: str | None
    buckets_given: bool = True
    release: str = __version__

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Pack the batches of one partition, in packs of bounded size."""
        check_release(self.release)
        freeze_imports()
        if not self.buckets_given:
            yield from replace(self, buckets=task_buckets(self.buckets), buckets_given=True)(batches)
            return
        pending: list[pa.RecordBatch] = []
        empty_buckets = set(range(self.buckets))
        for batch in chain.from_iterable(map(_slices, batches)):
            pending.append(batch)
            if (
                sum(b.num_rows for b in pending) >= _ROWS_A_PACK
                or sum(b.nbytes for b in pending) >= _BYTES_A_PACK
            ):
                yield self._pack(pending, empty_buckets)
                pending = []
        if pending:
            yield self._pack(pending, empty_buckets)
        # Every bucket takes part in every micro-batch with data: lateness depends on the previous watermark.
        if partition_number() == 0:
            yield self._to_record_batch(sorted(empty_buckets), [None] * len(empty_buckets))
        release_memory()

    def _pack(self, pending: list[pa.RecordBatch], empty_buckets: set[int]) -> pa.RecordBatch:
        table = pa.Table.from_batches(pending).combine_chunks()
        if self.by is None or self.buckets == 1:
            numbers, parts = [0], [table]
        else:
            buckets = bucket_of(self._bucket_hashes(table), self.buckets)
            order = np.argsort(buckets, kind="stable")
            ends = np.searchsorted(buckets[order], np.arange(self.buckets + 1))
            distributed = table.take(pa.array(order)).combine_chunks()
            numbers = [b for b in range(self.buckets) if ends[b + 1] > ends[b]]
            parts = [distributed.slice(ends[b], ends[b + 1] - ends[b]) for b in numbers]
        empty_buckets.difference_update(numbers)
        return self._to_record_batch(numbers, parts)

    def _to_record_batch(self, numbers: list[int], parts: Sequence[pa.Table | None]) -> pa.RecordBatch:
        names = labels(self.buckets)
        return pa.record_batch(
            [
                pa.array([names[b] for b in numbers], pa.int32()),
                pa.array([self.side] * len(parts), pa.int8()),
                to_column(parts),
            ],
            ["bucket", "side", "payload"],
        )

    def _bucket_hashes(self, table: pa.Table) -> Array:
        column = table.column(self.by)
        if column.null_count:
            column = pc.coalesce(column, table.column(CONTENT))
        hashes: Array = column.combine_chunks().to_numpy(zero_copy_only=False)
        return hashes.view(np.int64)


def _slices(batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
    """A batch, divided if it is larger than a pack."""
    parts = -(-batch.nbytes // _BYTES_A_PACK) or 1
    rows = -(-batch.num_rows // parts)
    return (batch.slice(begin, rows) for begin in range(0, batch.num_rows, max(1, rows)))
