"""The columns of packed rows: hidden ones, those of samples, arrays of them, their order and transport types."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np
import pyarrow as pa

from tidegate.arrow_columns import one_chunk

if TYPE_CHECKING:
    from tidegate.types import Array

KEY: Final = "k"
"""The hidden column of the key, or of its hash."""
CHECK: Final = "x"
"""The hidden column of a second hash of the key."""
CONTENT: Final = "h"
"""The hidden column of a hash of the whole row."""
# The columns that a sample adds to those of its results.
PROBABILITY: Final = "probability"
WEIGHT: Final = "weight"
OWNER: Final = "owner"
SHOWN: Final = "shown"
RANK: Final = "rank"
BATCH: Final = "batch"


def column(table: pa.Table, name: str) -> Array:
    """A column as an array."""
    values: Array = one_chunk(table.column(name)).to_numpy(zero_copy_only=False)
    return values


def micros(table: pa.Table, name: str) -> Array:
    """A column of timestamps, in microseconds."""
    values: Array = one_chunk(table.column(name)).view(pa.int64()).to_numpy(zero_copy_only=False)
    return values


def sort_by_time(table: pa.Table, time: str) -> pa.Table:
    """Sort rows by time, then by content, so that the result does not depend on the order of the input."""
    combined = table.combine_chunks()
    times, content = micros(combined, time), column(combined, CONTENT)
    order = np.argsort(times, kind="stable")
    same = np.diff(times[order]) == 0
    if same.any():
        tied_positions = np.flatnonzero(np.append(same, values=False) | np.insert(same, 0, values=False))
        rows = order[tied_positions]
        order[tied_positions] = rows[np.lexsort((content[rows], times[rows]))]
    return combined.take(pa.array(order)) if (np.diff(order) < 0).any() else combined


def to_sortable_integers(floats: Array) -> Array:
    """Convert floats to integers in SQL's order: -0.0 equals 0.0, and NaN equals itself and exceeds all numbers.

    Examples
    --------
    >>> low, zero, minus, high, nan = to_sortable_integers(np.array([-1.5, 0.0, -0.0, np.inf, np.nan]))
    >>> bool(low < zero == minus < high < nan)
    True
    """
    values = floats.astype(np.float64) + 0.0
    bits = values.view(np.int64)
    numbers = np.where(bits < 0, np.iinfo(np.int64).min - bits, bits)
    numbers[np.isnan(values)] = np.iinfo(np.int64).max
    return numbers


def to_transport_types(table: pa.Table) -> pa.Table:
    """Cast every column to its `transport_type`."""
    schema = pa.schema([pa.field(field.name, transport_type(field.type)) for field in table.schema])
    return table if schema.equals(table.schema) else table.cast(schema)


def transport_type(kind: pa.DataType) -> pa.DataType:
    """The type in which a column is sent: timestamps have the time zone UTC, and all parts are nullable.

    Spark sends timestamps in UTC, so the cast changes no value. Neither change makes a different type for Spark.
    """
    if pa.types.is_timestamp(kind):
        return pa.timestamp(kind.unit, "UTC" if kind.tz else None)
    if pa.types.is_struct(kind):
        # The metadata must stay: Spark recognizes a geometry by it.
        return pa.struct([pa.field(f.name, transport_type(f.type), metadata=f.metadata) for f in kind.fields])
    if pa.types.is_map(kind):
        return pa.map_(transport_type(kind.key_type), transport_type(kind.item_type))
    if pa.types.is_list(kind):
        return pa.list_(pa.field(kind.value_field.name, transport_type(kind.value_type)))
    return kind
