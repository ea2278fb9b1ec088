"""The rows in a reservoir, as columns with one value per slot, and their changes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple, Self

import numpy as np

from tidegate.types import Array, InputError


class SlotChanges(NamedTuple):
    """The rows of a block that enter a reservoir.

    Parameters
    ----------
    slots
        The slots that they enter, in ascending order and without duplicates. Rows that were there are removed.
    rows
        Their positions in the block.
    kept
        The slots whose rows stay. Before rows enter, these rows are moved to the first slots, in this order. None if
        all rows stay in their slots.
    """

    slots: Array
    rows: Array
    kept: Array | None = None

    @classmethod
    def none(cls, kept: Array | None = None) -> Self:
        """No row enters."""
        return cls(np.empty(0, np.int64), np.empty(0, np.int64), kept)

    @classmethod
    def last(cls, slots: Array, rows: Array, kept: Array | None = None) -> Self:
        """Keep only the last of several rows that enter the same slot."""
        distinct, places = np.unique(slots[::-1], return_index=True)
        return cls(distinct, rows[::-1][places], kept)


@dataclass(frozen=True)
class Sample:
    """A uniform sample: all sets of this size are equally likely.

    Parameters
    ----------
    seen
        The number of rows that it was drawn from.
    columns
        The rows, in no particular order.
    refilling
        The number of rows to be seen before the sample is uniform, if its reservoir has grown; otherwise 0.
    """

    seen: int
    columns: Mapping[str, Array]
    refilling: int = field(default=0, repr=False)

    def __post_init__(self) -> None:
        rows = length_of(self.columns)
        if rows > self.seen:
            raise InputError(f"seen must be at least the {rows} rows of the sample; got {self.seen}")

    def __len__(self) -> int:
        return length_of(self.columns)


class Slots:
    """Columns with one row per slot; the first `filled` slots are in use."""

    def __init__(self) -> None:
        self._columns: dict[str, Array] = {}
        self.filled = 0

    def put(self, block: Mapping[str, Array], changes: SlotChanges) -> None:
        """Apply changes with rows of a block."""
        self.check(block)
        if changes.kept is not None:
            self.keep(changes.kept)
        self.filled = max(self.filled, 1 + int(changes.slots.max(initial=-1)))
        for name, values in block.items():
            column = self._columns.get(name, values[:0])
            room = len(column) if self.filled <= len(column) else max(self.filled, 2 * len(column))
            column = _resized(column, np.promote_types(column.dtype, values.dtype), room)
            column[changes.slots] = values[changes.rows]
            self._columns[name] = column

    def keep(self, slots: Array) -> None:
        """Keep the rows of these slots only, in this order."""
        self._columns = {name: column[slots] for name, column in self._columns.items()}
        self.filled = len(slots)

    def columns(self) -> dict[str, Array]:
        """Copies of the columns of all rows."""
        return {name: column[: self.filled].copy() for name, column in self._columns.items()}

    snapshot = columns

    def restore(self, columns: dict[str, Array]) -> Self:
        """Continue from what `snapshot` returned."""
        self._columns = {name: column.copy() for name, column in columns.items()}
        self.filled = length_of(columns) if columns else 0
        return self

    def check(self, block: Mapping[str, Array]) -> None:
        """Refuse a block with other columns than earlier ones."""
        length_of(block)
        if self._columns and block.keys() != self._columns.keys():
            raise InputError(
                f"rows must have the same columns in every offer: {sorted(self._columns)}; got {sorted(block)}"
            )
        for name, column in self._columns.items():
            if _kind(column) != _kind(block[name]):
                raise InputError(
                    f"column {name!r} must have the same type in every offer: {column.dtype}; got {block[name].dtype}"
                )


def length_of(columns: Mapping[str, Array]) -> int:
    """The number of rows of these columns."""
    if not isinstance(columns, Mapping):
        raise InputError(f"rows must be a mapping from names to arrays; got {type(columns).__name__}")
    for name, values in columns.items():
        if not isinstance(values, np.ndarray) or values.ndim != 1:
            raise InputError(f"column {name!r} must be a NumPy array of one dimension; got {values!r}")
    lengths = {name: len(values) for name, values in columns.items()}
    if len(set(lengths.values())) > 1:
        raise InputError(f"columns must have the same length; got {lengths}")
    return next(iter(lengths.values()), 0)


def _kind(column: Array) -> str:
    # Snapshots restore text as objects.
    return "text" if column.dtype.kind in "UO" else column.dtype.kind


def _resized(column: Array, dtype: np.dtype[np.generic], room: int) -> Array:
    if column.dtype == dtype and len(column) == room:
        return column
    resized = np.empty(room, dtype)
    resized[: len(column)] = column
    return resized
