"""The columns of a step's candidates: of the buffered rows, and of the arrivals."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from tidegate.arrow_columns import one_chunk
from tidegate.spark.packing.columns import CONTENT, KEY

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
