"""Tables as bytes, and back: Arrow streams."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Literal

import numpy as np
import pyarrow as pa

if TYPE_CHECKING:
    from io import RawIOBase


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
