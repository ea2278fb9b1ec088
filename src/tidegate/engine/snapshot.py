"""State as bytes: named arrays in one Arrow record batch, with a version and no code."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

import numpy as np
import pyarrow as pa

from tidegate.types import InputError

if TYPE_CHECKING:
    from tidegate.types import Array

VERSION: Final = 1
_KEY: Final = b"tidegate"


def pack(arrays: Mapping[str, Array | bytes], *, compressed: bool = False) -> bytes:
    """Write named arrays of any lengths, or bytes as such, as bytes: as they are or compressed (LZ4).

    Examples
    --------
    >>> unpack(pack({"a": np.arange(3), "b": np.array([0.5])}))["a"]
    array([0, 1, 2])
    """
    columns = {
        name: pa.LargeListArray.from_arrays(
            pa.array([0, len(values)], pa.int64()),
            pa.array(np.frombuffer(values, np.uint8) if isinstance(values, bytes) else values),
        )
        for name, values in arrays.items()
    }
    schema = pa.schema([(name, column.type) for name, column in columns.items()], {_KEY: str(VERSION)})
    sink = pa.BufferOutputStream()
    options = pa.ipc.IpcWriteOptions(compression="lz4" if compressed else None)
    with pa.ipc.new_stream(sink, schema, options=options) as writer:
        writer.write_batch(pa.record_batch(list(columns.values()), schema=schema))
    data: bytes = sink.getvalue().to_pybytes()
    return data


def unpack(data: bytes | pa.Buffer) -> dict[str, Array]:
    """Read what `pack` wrote."""
    try:
        with pa.ipc.open_stream(data) as reader:
            batch = reader.read_next_batch()
    except (pa.ArrowInvalid, OSError) as error:
        raise InputError(
            f"these {memoryview(data).nbytes} bytes are not a snapshot ({error}); give what snapshot() returned"
        ) from error
    version = (batch.schema.metadata or {}).get(_KEY, b"none").decode()
    if version != str(VERSION):
        raise InputError(
            f"the snapshot has version {version}, not {VERSION}; restore it with the release that wrote it"
        )
    return {
        name: np.asarray(column.values.to_numpy(zero_copy_only=False))
        for name, column in zip(batch.schema.names, batch.columns, strict=True)
    }
