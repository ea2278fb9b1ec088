"""Arrow columns as one array, and the size of rows in bytes, for any Arrow type."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

if TYPE_CHECKING:
    from tidegate.types import Array


def one_chunk(column: pa.ChunkedArray) -> pa.Array:
    """A column as one array."""
    joined = column.combine_chunks()
    return joined if isinstance(joined, pa.Array) else pa.concat_arrays(joined.chunks)


def row_sizes(table: pa.Table) -> Array:
    """The bytes of each row's values, including nested ones."""
    return sum((_sizes(one_chunk(values)) for values in table.columns), np.zeros(table.num_rows, np.int64))


def _sizes(column: pa.Array) -> Array:
    kind = column.type
    if pa.types.is_null(kind):
        return np.zeros(len(column), np.int64)
    if pa.types.is_struct(kind):
        return sum((_sizes(column.field(i)) for i in range(kind.num_fields)), np.ones(len(column), np.int64))
    if pa.types.is_map(kind) or pa.types.is_list(kind) or pa.types.is_large_list(kind):
        inner = [column.keys, column.items] if pa.types.is_map(kind) else [column.values]
        upto = np.concatenate(([0], np.cumsum(sum(_sizes(values) for values in inner))))
        offsets = column.offsets.to_numpy(zero_copy_only=False)
        sizes: Array = offsets.itemsize + upto[offsets[1:]] - upto[offsets[:-1]]
        return sizes
    try:
        return np.full(len(column), max(1, kind.bit_width // 8), np.int64)
    except ValueError:
        lengths: Array = pc.binary_length(column).fill_null(0).to_numpy(zero_copy_only=False)
        return 4 + lengths.astype(np.int64)
