"""The columns beside the operator's: candidates, their order and their types on the way."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from tidegate.spark.packing.packed_rows import CONTENT, KEY
from tidegate.streams.trace import one_chunk

if TYPE_CHECKING:
    from tidegate.types import Array


class Candidates:
    """The columns of a step's candidates: what is buffered, then the arrivals."""

    def __init__(self, buffered: pa.Table | None, arrived: pa.Table | None) -> None:
        fresh = None if arrived is None else arrived.drop_columns([KEY, CONTENT])
        self._parts = [part for part in (buffered, fresh) if part is not None]
        self._edge = 0 if buffered is None else buffered.num_rows
        self._whole: pa.Table | None = None

    def __bool__(self) -> bool:
        return bool(self._parts)

    @property
    def bytes_a_row(self) -> int:
        """About how much one row takes."""
        return max((part.nbytes // max(1, part.num_rows) for part in self._parts), default=0)

    def take(self, places: Array) -> pa.Table:
        """The rows at these places."""
        part, local = self._part(places)
        return part.take(pa.array(local))

    def column(self, name: str, places: Array) -> pa.Array:
        """One column of the rows at these places."""
        part, local = self._part(places)
        return one_chunk(part.column(name).take(pa.array(local)))

    def _part(self, places: Array) -> tuple[pa.Table, Array]:
        """The table in which all these places lie, and the places in it; pairs lie on one side of the edge."""
        if len(self._parts) == 1:
            return self._parts[0], places
        if len(places) and places.max() < self._edge:
            return self._parts[0], places
        if len(places) and places.min() >= self._edge:
            return self._parts[1], places - self._edge
        if self._whole is None:
            self._whole = pa.concat_tables(self._parts).combine_chunks()
        return self._whole, places


def column(table: pa.Table, name: str) -> Array:
    """A column as an array."""
    values: Array = one_chunk(table.column(name)).to_numpy(zero_copy_only=False)
    return values


def micros(table: pa.Table, name: str) -> Array:
    """A column of timestamps, in microseconds."""
    values: Array = one_chunk(table.column(name)).view(pa.int64()).to_numpy(zero_copy_only=False)
    return values


def in_order(table: pa.Table, time: str) -> pa.Table:
    """By time, then by content: the same rows give the same order, whichever way they came."""
    whole = table.combine_chunks()
    clock, content = micros(whole, time), column(whole, CONTENT)
    order = np.argsort(clock, kind="stable")
    same = np.diff(clock[order]) == 0
    if same.any():
        tied = np.flatnonzero(np.append(same, values=False) | np.insert(same, 0, values=False))
        rows = order[tied]
        order[tied] = rows[np.lexsort((content[rows], clock[rows]))]
    return whole.take(pa.array(order)) if (np.diff(order) < 0).any() else whole


def in_utc(table: pa.Table) -> pa.Table:
    """Bring every column to its `travelled` type."""
    schema = pa.schema([pa.field(field.name, travelled(field.type)) for field in table.schema])
    return table if schema.equals(table.schema) else table.cast(schema)


def travelled(kind: pa.DataType) -> pa.DataType:
    """The type with timestamps marked as UTC, which they are, and nulls allowed: neither makes another type."""
    if pa.types.is_timestamp(kind):
        return pa.timestamp(kind.unit, "UTC" if kind.tz else None)
    if pa.types.is_struct(kind):
        # What a field notes stays: by it Spark tells a geometry from a struct.
        return pa.struct([pa.field(f.name, travelled(f.type), metadata=f.metadata) for f in kind.fields])
    if pa.types.is_map(kind):
        return pa.map_(travelled(kind.key_type), travelled(kind.item_type))
    if pa.types.is_list(kind):
        return pa.list_(pa.field(kind.value_field.name, travelled(kind.value_type)))
    return kind
