"""The buffered rows of one side, in columns that grow in place."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Self

import numpy as np

from tidegate.types import Rows

if TYPE_CHECKING:
    from tidegate.types import Array, Side

SLACK: Final = 1 << 16
"""Unused memory of up to this number of rows is not released."""
_NOTHING: Final = np.empty(0, np.int64)


class Buffer:
    """Rows of one side.

    Appending copies only new rows. Dropping moves at most as many rows as are dropped: rows from the end fill the
    gaps, so that the order of rows is arbitrary afterwards.

    Examples
    --------
    >>> numbers = np.arange(5)
    >>> buffer = Buffer("left")
    >>> buffer.append(Rows("left", key=numbers, time=numbers, id=numbers, matches=numbers))
    >>> buffer.drop(np.array([0, 3]))
    >>> buffer.rows.key
    array([4, 1, 2])
    """

    def __init__(self, side: Side) -> None:
        self.side = side
        self._columns: dict[str, Array] = {}
        self._size = 0
        # Needed after every step; cleared when rows change.
        self._rows: Rows | None = None
        self._row_bytes = 0

    def __len__(self) -> int:
        return self._size

    @classmethod
    def of(cls, rows: Rows) -> Self:
        """Make a buffer of these rows."""
        buffer = cls(rows.side)
        buffer.append(rows)
        return buffer

    @property
    def rows(self) -> Rows:
        """The current rows: views, valid until the next change."""
        if self._rows is None:
            columns = self._columns or dict.fromkeys(("key", "time", "id", "matches"), _NOTHING)
            self._rows = Rows.from_columns(
                self.side, {name: column[: self._size] for name, column in columns.items()}
            )
        return self._rows

    @property
    def nbytes(self) -> int:
        """Bytes of all rows, payload included."""
        if "payload" in self._columns:
            return self.rows.nbytes
        if not self._row_bytes:
            self._row_bytes = self.rows.row_bytes
        return self._size * self._row_bytes

    def append(self, rows: Rows) -> None:
        """Append arrivals."""
        if not len(rows) and self._size:
            return
        self._rows = None
        old, new = self._size, self._size + len(rows)
        columns = rows.columns()
        # Otherwise buffered rows would have an undefined column.
        assert not old or self._columns.keys() == columns.keys(), "arrivals have other columns"  # noqa: S101 - an invariant
        for name, values in columns.items():
            column = self._columns.get(name)
            kind = values.dtype
            if column is not None and old and column.dtype != kind:
                kind = np.promote_types(column.dtype, kind)
            if column is None or len(column) < new or column.dtype != kind:
                self._row_bytes = 0
                # An eighth of unused memory keeps appending cheap and the memory close to that of the rows.
                grown = np.empty(new + (new >> 3 if old else 0), kind)
                if column is not None:
                    grown[:old] = column[:old]
                self._columns[name] = column = grown
            column[old:new] = values
        self._size = new

    def write(self, name: str, places: Array | slice, values: Array) -> None:
        """Write values of some rows into a column, named as in `Rows.columns`; it widens where they do not fit."""
        self._rows = None
        column = self._columns[name]
        kind = np.promote_types(column.dtype, values.dtype)
        if kind != column.dtype:
            self._row_bytes = 0
            self._columns[name] = column = column.astype(kind)
        column[places] = values

    def drop(self, dropped: Array) -> None:
        """Drop the rows at these positions, given in ascending order."""
        if not len(dropped):
            return
        self._rows = None
        gaps, fillers = _moved(self._size, dropped)
        self._size = left = self._size - len(dropped)
        for name, column in self._columns.items():
            if len(gaps):
                column[gaps] = column.take(fillers)
            if len(column) > left + (left >> 1) + SLACK:
                self._columns[name] = column[:left].copy()


def kept(candidates: int, dropped: Array) -> Array:
    """The former position of each remaining row after `Buffer.drop`, in the buffer's order."""
    places = np.arange(candidates)
    gaps, fillers = _moved(candidates, dropped)
    places[gaps] = fillers
    return places[: candidates - len(dropped)]


def _moved(size: int, dropped: Array) -> tuple[Array, Array]:
    """The gaps that are filled, and the positions of the rows at the end that fill them."""
    left = size - len(dropped)
    if len(dropped) == 1:  # as in most steps of few rows
        return (_NOTHING, _NOTHING) if dropped[0] == left else (dropped, np.array([left]))
    inner = int(dropped.searchsorted(left))
    stays = np.ones(len(dropped), bool)
    stays[dropped[inner:] - left] = False
    return dropped[:inner], left + np.flatnonzero(stays)
