"""Packed rows: Arrow batches as bytes, one a bucket, so that Spark shuffles few rows instead of millions."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final, Literal, TypeAlias, TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark import TaskContext

from tidegate.spark.packing.buckets import bucket_of, labels
from tidegate.spark.state.task import task_buckets

if TYPE_CHECKING:
    import pandas as pd

    from tidegate.types import Array

PACKED: Final = "bucket int, side tinyint, payload binary"
RESULTS: Final = "payload binary"
KEY: Final = "k"
CHECK: Final = "x"
CONTENT: Final = "h"

_ROWS_A_PACK: Final = 1 << 18
_BYTES_A_PACK: Final = 8 << 20
_INPUT_BYTES: Final = 64 << 20
"""How much of a bucket's arrivals is handled together: a worker holds a few times as much."""
NO_LIMIT: Final = 1 << 62

_Name = TypeVar("_Name", bound=str)

BatchJob: TypeAlias = "Callable[[tuple[pa.Scalar, ...], Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]"


def to_bytes(table: pa.Table | pa.RecordBatch) -> bytes:
    """Write rows as an Arrow stream."""
    data: bytes = to_buffer(table).to_pybytes()
    return data


def to_buffer(table: pa.Table | pa.RecordBatch, compression: Literal["lz4"] | None = None) -> pa.Buffer:
    """Write rows as an Arrow stream, without copying it."""
    sink = pa.BufferOutputStream()
    options = pa.ipc.IpcWriteOptions(compression=compression)
    with pa.ipc.new_stream(sink, table.schema, options=options) as writer:
        writer.write(table)
    return sink.getvalue()


def from_bytes(data: bytes | pa.Buffer) -> pa.Table:
    """Read what `to_bytes` wrote, without copying."""
    with pa.ipc.open_stream(data) as reader:
        return reader.read_all()


@dataclass(frozen=True)
class Pack:
    """Deal rows to buckets by the hash of their deciding column; rows without one go by their content.

    Parameters
    ----------
    side
        0 for left, 1 for right.
    buckets
        How many there are.
    by
        The column that decides; None puts all into the first bucket.
    fixed
        Whether the number of buckets was given. If not, it follows from the partitions of the running query.
    """

    side: int
    buckets: int
    by: str | None
    fixed: bool = True

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Pack the batches of one partition, in packs of bounded size."""
        if not self.fixed:
            yield from replace(self, buckets=task_buckets(self.buckets), fixed=True)(batches)
            return
        held: list[pa.RecordBatch] = []
        silent = set(range(self.buckets))
        for batch in batches:
            if batch.num_rows:
                held.append(batch)
            if sum(b.num_rows for b in held) >= _ROWS_A_PACK or sum(b.nbytes for b in held) >= _BYTES_A_PACK:
                yield self._packed(held, silent)
                held = []
        if held:
            yield self._packed(held, silent)
        # Every bucket hears of every micro-batch that has data: what is late depends on the one before.
        context = TaskContext.get()
        if context is None or context.partitionId() == 0:
            yield self._labelled(sorted(silent), [b""] * len(silent))

    def _packed(self, held: list[pa.RecordBatch], silent: set[int]) -> pa.RecordBatch:
        table = pa.Table.from_batches(held).combine_chunks()
        if self.by is None or self.buckets == 1:
            numbers, parts = [0], [to_bytes(table)]
        else:
            buckets = bucket_of(self._deciding(table), self.buckets)
            order = np.argsort(buckets, kind="stable")
            ends = np.searchsorted(buckets[order], np.arange(self.buckets + 1))
            dealt = table.take(pa.array(order)).combine_chunks()
            numbers = [b for b in range(self.buckets) if ends[b + 1] > ends[b]]
            parts = [to_bytes(dealt.slice(ends[b], ends[b + 1] - ends[b])) for b in numbers]
        silent.difference_update(numbers)
        return self._labelled(numbers, parts)

    def _labelled(self, numbers: list[int], parts: list[bytes]) -> pa.RecordBatch:
        names = labels(self.buckets)
        return pa.record_batch(
            [
                pa.array([names[b] for b in numbers], pa.int32()),
                pa.array([self.side] * len(parts), pa.int8()),
                pa.array(parts, pa.binary()),
            ],
            ["bucket", "side", "payload"],
        )

    def _deciding(self, table: pa.Table) -> Array:
        column = table.column(self.by)
        if column.null_count:
            column = pc.coalesce(column, table.column(CONTENT))
        deciding: Array = column.combine_chunks().to_numpy(zero_copy_only=False)
        return deciding.view(np.int64)


def unpack(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Give the rows of packed results back, batch by batch."""
    for batch in batches:
        for packed in batch.column(0):
            with pa.ipc.open_stream(packed.as_buffer()) as reader:
                yield from reader


def packed(frames: Iterator[pd.DataFrame]) -> Iterator[tuple[int, bytes]]:
    """Packed rows as Spark hands them over."""
    for frame in frames:
        yield from zip(frame["side"], frame["payload"], strict=True)


def unlabelled(batches: Iterator[pa.RecordBatch]) -> Iterator[tuple[int, bytes]]:
    """Packed rows as Spark hands them to a batch job."""
    return ((row["side"], row["payload"]) for batch in batches for row in batch.to_pylist())


def gathered(
    rows: Iterator[tuple[int, bytes]], names: Sequence[_Name], limit: int = _INPUT_BYTES
) -> Iterator[dict[_Name, pa.Table]]:
    """Unpack the arrivals of a micro-batch by side: all together, or in several parts where they are very large.

    At least one part comes, if an empty one.
    """
    held: dict[_Name, list[pa.Table]] = {name: [] for name in names}
    size, parts = 0, 0
    for side, payload in rows:
        if not payload:
            continue
        held[names[side]].append(from_bytes(payload))
        size += len(payload)
        if size >= limit:
            # What was unpacked is let go before the step that needs the memory.
            whole = _together(held)
            held, size, parts = {name: [] for name in names}, 0, parts + 1
            yield whole
    if size or not parts:
        yield _together(held)


def _together(held: dict[_Name, list[pa.Table]]) -> dict[_Name, pa.Table]:
    return {name: pa.concat_tables(tables).combine_chunks() for name, tables in held.items() if tables}


def result(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Pack results of a batch job."""
    return pa.record_batch([pa.array([to_bytes(batch)], pa.binary())], ["payload"])
