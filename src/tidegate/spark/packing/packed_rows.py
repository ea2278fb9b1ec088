"""Packed rows: one Arrow batch in bytes for each bucket, so that Spark shuffles a few rows instead of millions."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Final, TypeAlias, TypeVar

import pyarrow as pa

from tidegate.spark.packing.arrow_bytes import from_bytes, to_bytes, to_column
from tidegate.spark.session.task import freeze_imports

if TYPE_CHECKING:
    import pandas as pd


PACKED: Final = "bucket int, side tinyint, payload binary"
RESULTS: Final = "payload binary"

_INPUT_BYTES: Final = 32 << 20
"""The bytes of a bucket's arrivals that are handled together; a worker needs two to three times this memory."""
NO_LIMIT: Final = 1 << 62

_Name = TypeVar("_Name", bound=str)

BatchJob: TypeAlias = "Callable[[tuple[pa.Scalar, ...], Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]"


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
