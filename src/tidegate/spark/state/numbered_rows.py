"""Rows of a table that changes between micro-batches, numbered so that a save writes only the new ones."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Self

import numpy as np

from tidegate.spark.state.payload import PayloadStore

if TYPE_CHECKING:
    import pyarrow as pa

    from tidegate.types import Array


@dataclass
class NumberedRows:
    """The numbers of the rows of a table, in its order, and their columns as they are stored.

    Parameters
    ----------
    ids
        The number of each row; later rows have larger numbers.
    next
        The number of the next row.

    Examples
    --------
    >>> import pyarrow as pa
    >>> rows = NumberedRows.new(2)
    >>> rows.update(np.array([1, 2, 3]))
    >>> rows.ids
    array([1, 2, 3])
    >>> rows.payload(pa.table({"c0": ["b", "c", "d"]})).take(rows.ids)["c0"].to_pylist()
    ['b', 'c', 'd']
    """

    ids: Array
    next: int
    _stored: PayloadStore = field(default_factory=PayloadStore)
    _stored_until: int = 0

    @classmethod
    def new(cls, count: int = 0) -> Self:
        """The first rows, of which nothing is stored."""
        return cls(np.arange(count), count)

    @classmethod
    def saved(cls, ids: Array, next_id: int, stored: PayloadStore) -> Self:
        """Rows of a saved state, with their columns."""
        return cls(ids.copy(), next_id, stored, next_id)

    def update(self, positions: Array) -> None:
        """The table has changed: its rows now are those at these positions of the former ones and of new ones."""
        known = positions < len(self.ids)
        ids = np.empty(len(positions), np.int64)
        ids[known] = self.ids[positions[known]]
        fresh = len(positions) - int(known.sum())
        ids[~known] = self.next + np.arange(fresh)
        self.ids, self.next = ids, self.next + fresh

    def columns(self) -> pa.Table | None:
        """The stored columns, in the order of the rows; None if there are none."""
        return self._stored.take(self.ids) if len(self.ids) and self._stored.segments else None

    def payload(self, table: pa.Table) -> PayloadStore:
        """The stored columns, with those of new rows: `table` has the columns of all rows."""
        new = np.flatnonzero(self.ids >= self._stored_until)
        new = new[np.argsort(self.ids[new])]
        if table.num_columns:
            self._stored.append(self.ids[new], table.take(new))
            self._stored.compact(np.sort(self.ids))
        self._stored_until = self.next
        return self._stored
