"""Packed rows: one Arrow batch in bytes for each bucket, so that Spark shuffles a few rows instead of millions."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import TYPE_CHECKING, Final, Literal, TypeAlias, TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark import TaskContext

from tidegate._version import __version__
from tidegate.spark.packing.buckets import bucket_of, labels
from tidegate.spark.session.worker import check_release, freeze_imports, release_memory
from tidegate.spark.state.task import task_buckets

if TYPE_CHECKING:
    from io import RawIOBase

    import pandas as pd

    from tidegate.types import Array

PACKED: Final = "bucket int, side tinyint, payload binary"
RESULTS: Final = "payload binary"
KEY: Final = "k"
CHECK: Final = "x"
CONTENT: Final = "h"

_ROWS_A_PACK: Final = 1 << 18
_BYTES_A_PACK: Final = 8 << 20
_INPUT_BYTES: Final = 32 << 20
"""The bytes of a bucket's arrivals that are handled together; a worker needs two to three times this memory."""
NO_LIMIT: Final = 1 << 62

_Name = TypeVar("_Name", bound=str)

BatchJob: TypeAlias = "Callable[[tuple[pa.Scalar, ...], Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]"


def to_bytes(table: pa.Table | pa.RecordBatch) -> bytes:
    """Write rows as an Arrow stream."""
    data: bytes = to_column([table])[0].as_py()
    return data


def to_column(tables: Sequence[pa.Table | pa.RecordBatch | None]) -> pa.Array:
    """Write each table as an Arrow stream, into the values of one column; None as no bytes.

    The sizes are counted first, so that wide rows are copied only once.

    Examples
    --------
    >>> column = to_column([None, pa.table({"n": [1, 2]})])
    >>> column[0].as_py(), from_bytes(column[1].as_buffer()).column("n").to_pylist()
    (b'', [1, 2])
    """
    counter = pa.MockOutputStream()
    ends = [0]
    for table in tables:
        if table is not None:
            write_stream(counter, table)
        ends.append(counter.size())
    data = pa.allocate_buffer(ends[-1])
    with pa.FixedSizeBufferWriter(data) as sink:
        for table in tables:
            if table is not None:
                write_stream(sink, table)
    offsets = pa.py_buffer(np.array(ends, np.int32))
    return pa.Array.from_buffers(pa.binary(), len(tables), [None, offsets, data])


def write_stream(
    sink: pa.NativeFile | RawIOBase,
    table: pa.Table | pa.RecordBatch,
    *,
    compression: Literal["lz4"] | None = None,
    rows: int | None = None,
) -> None:
    """Write a table as an Arrow stream, in batches of at most this number of rows."""
    options = pa.ipc.IpcWriteOptions(compression=compression)
    with pa.ipc.new_stream(sink, table.schema, options=options) as writer:
        if rows is None:
            writer.write(table)
        else:
            writer.write_table(table, max_chunksize=rows)


def from_bytes(data: bytes | pa.Buffer) -> pa.Table:
    """Read what `to_bytes` wrote, without copying."""
    with pa.ipc.open_stream(data) as reader:
        return reader.read_all()


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
    fixed
        Whether the user gave the number of buckets. Otherwise it is that of the running query's partitions.
    release
        The release of Tidegate on the driver. The packer is the first of its code that a worker runs.
    """

    side: int
    buckets: int
    by: str | None
    fixed: bool = True
    release: str = __version__

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Pack the batches of one partition, in packs of bounded size."""
        check_release(self.release)
        freeze_imports()
        if not self.fixed:
            yield from replace(self, buckets=task_buckets(self.buckets), fixed=True)(batches)
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
        context = TaskContext.get()
        if context is None or context.partitionId() == 0:
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


def to_frame(batch: pa.RecordBatch) -> pd.DataFrame:
    """Rows as a pandas DataFrame whose columns are those of Arrow: Spark sends them without a conversion.

    This holds for atomic types. Spark converts values of nested types one by one.

    Examples
    --------
    >>> to_frame(pa.record_batch({"n": [1, None], "s": ["a", "b"]})).dtypes.to_list()
    [int64[pyarrow], string[pyarrow]]
    """
    import pandas as pd  # noqa: PLC0415 - only the workers of a streaming query need it

    frame: pd.DataFrame = pa.Table.from_batches([batch]).to_pandas(types_mapper=pd.ArrowDtype)
    return frame


def to_packed_frame(batch: pa.RecordBatch) -> pd.DataFrame:
    """Rows of any types as a pandas DataFrame of one row, which `unpack` unpacks."""
    import pandas as pd  # noqa: PLC0415 - as above

    return pd.DataFrame({"payload": [to_bytes(batch)]})


def _slices(batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
    """A batch, divided if it is larger than a pack."""
    parts = -(-batch.nbytes // _BYTES_A_PACK) or 1
    rows = -(-batch.num_rows // parts)
    return (batch.slice(begin, rows) for begin in range(0, batch.num_rows, max(1, rows)))


def unpack(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Unpack results, batch by batch."""
    freeze_imports()
    for batch in batches:
        for packed in batch.column(0):
            with pa.ipc.open_stream(packed.as_buffer()) as reader:
                yield from reader


def read_pandas_packs(frames: Iterator[pd.DataFrame]) -> Iterator[tuple[int, bytes]]:
    """Read packed rows from the pandas DataFrames of a streaming query: the side and the bytes of each."""
    for frame in frames:
        yield from zip(frame["side"], frame["payload"], strict=True)


def read_arrow_packs(batches: Iterator[pa.RecordBatch]) -> Iterator[tuple[int, bytes]]:
    """Read packed rows from the Arrow batches of a batch query: the side and the bytes of each."""
    return ((row["side"], row["payload"]) for batch in batches for row in batch.to_pylist())


def unpack_by_side(
    rows: Iterator[tuple[int, bytes]], names: Sequence[_Name], limit: int = _INPUT_BYTES
) -> Iterator[dict[_Name, pa.Table]]:
    """Unpack the arrivals of a micro-batch by side, in parts of about `limit` bytes.

    Yields at least one part, which is empty if there are no arrivals.
    """
    pending: dict[_Name, list[pa.Table]] = {name: [] for name in names}
    size, parts = 0, 0
    for side, payload in rows:
        if not payload:
            continue
        pending[names[side]].append(from_bytes(payload))
        size += len(payload)
        if size >= limit:
            yield _take_all(pending)
            size, parts = 0, parts + 1
    if size or not parts:
        yield _take_all(pending)


def _take_all(pending: dict[_Name, list[pa.Table]]) -> dict[_Name, pa.Table]:
    """The pending rows by side. They are no longer pending, because the step needs the memory."""
    tables = {name: pa.concat_tables(parts).combine_chunks() for name, parts in pending.items() if parts}
    for parts in pending.values():
        parts.clear()
    return tables


def pack_result(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Pack a batch of results."""
    return pa.record_batch([to_column([batch])], ["payload"])
