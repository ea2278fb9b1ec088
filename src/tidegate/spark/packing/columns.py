"""The columns beside the operator's: candidates, their order and their types on the way."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from tidegate.spark.packing.packed_rows import CONTENT, KEY
from tidegate.streams.trace import one_chunk

if TYPE_CHECKING:
    from tidegate.spark.state.payload import PayloadStore
    from tidegate.types import Array


class Candidates:
    """The columns of a step's candidates: the buffered rows, then the arrivals.

    Parameters
    ----------
    stored, ids
        Where the columns of buffered rows are, and the ids of these rows in the order of the buffer.
    arrived
        The arrivals; None if there are none.
    """

    def __init__(self, stored: PayloadStore, ids: Array, arrived: pa.Table | None) -> None:
        self._stored = stored
        # The buffer's own column changes with the step.
        self._ids = ids.copy()
        self._arrived = None if arrived is None else arrived.drop_columns([KEY, CONTENT])

    @property
    def arrived(self) -> pa.Table | None:
        """The columns of the arrivals."""
        return self._arrived

    @property
    def bytes_a_row(self) -> int:
        """About how much one row takes."""
        arrived = 0 if self._arrived is None else self._arrived.nbytes // max(1, self._arrived.num_rows)
        return max(arrived, self._stored.row_bytes)

    def take(self, places: Array) -> pa.Table:
        """The rows at these places."""
        return self._taken(places, None)

    def column(self, name: str, places: Array) -> pa.Array:
        """One column of the rows at these places."""
        return one_chunk(self._taken(places, [name]).column(name))

    def _taken(self, places: Array, columns: list[str] | None) -> pa.Table:
        edge = len(self._ids)
        if self._arrived is None:
            return self._stored.take(self._ids[places], columns)
        arrived = self._arrived if columns is None else self._arrived.select(columns)
        if not edge or not len(places) or places.min() >= edge:
            return arrived.take(pa.array(places - edge))
        if places.max() < edge:
            return self._stored.take(self._ids[places], columns)
        old = places < edge
        parts = (
            self._stored.take(self._ids[places[old]], columns),
            arrived.take(pa.array(places[~old] - edge)),
        )
        back = np.empty(len(places), np.int64)
        back[np.concatenate((np.flatnonzero(old), np.flatnonzero(~old)))] = np.arange(len(places))
        return pa.concat_tables(parts).combine_chunks().take(pa.array(back))


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
