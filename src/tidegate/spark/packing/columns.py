"""Columns that the operator does not need: those of candidates, their order and their transport types."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from tidegate.arrow_columns import one_chunk
from tidegate.spark.packing.packed_rows import CONTENT, KEY

if TYPE_CHECKING:
    from tidegate.spark.state.payload import PayloadStore
    from tidegate.types import Array


class Candidates:
    """The columns of a step's candidates: the buffered rows, then the arrivals.

    Parameters
    ----------
    stored, ids
        The store of the columns of buffered rows, and the ids of these rows in the order of the buffer.
    arrived
        The arrivals; None if there are none.
    """

    def __init__(self, stored: PayloadStore, ids: Array, arrived: pa.Table | None) -> None:
        self._stored = stored
        # A copy, because the step changes the column of the buffer.
        self._ids = ids.copy()
        self._arrived = None if arrived is None else arrived.drop_columns([KEY, CONTENT])

    @property
    def arrived(self) -> pa.Table | None:
        """The columns of the arrivals."""
        return self._arrived

    @property
    def bytes_a_row(self) -> int:
        """The approximate bytes of a row."""
        arrived = 0 if self._arrived is None else self._arrived.nbytes // max(1, self._arrived.num_rows)
        return max(arrived, self._stored.row_bytes)

    def take(self, places: Array) -> pa.Table:
        """The rows at these positions."""
        return self._take(places, None)

    def column(self, name: str, places: Array) -> pa.Array:
        """One column of the rows at these positions."""
        return one_chunk(self._take(places, [name]).column(name))

    def _take(self, places: Array, columns: list[str] | None) -> pa.Table:
        stored_count = len(self._ids)
        if self._arrived is None:
            return self._stored.take(self._ids[places], columns)
        arrived = self._arrived if columns is None else self._arrived.select(columns)
        if not stored_count or not len(places) or places.min() >= stored_count:
            return arrived.take(pa.array(places - stored_count))
        if places.max() < stored_count:
            return self._stored.take(self._ids[places], columns)
        old = places < stored_count
        parts = (
            self._stored.take(self._ids[places[old]], columns),
            arrived.take(pa.array(places[~old] - stored_count)),
        )
        inverse = np.empty(len(places), np.int64)
        inverse[np.concatenate((np.flatnonzero(old), np.flatnonzero(~old)))] = np.arange(len(places))
        return pa.concat_tables(parts).combine_chunks().take(pa.array(inverse))


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
