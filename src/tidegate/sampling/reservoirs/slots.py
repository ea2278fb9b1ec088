"""The rows that a reservoir holds, as columns of slots, and how they change."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple, Self

import numpy as np

from tidegate.types import Array, InputError


class SlotChanges(NamedTuple):
    """The rows of a block that came to be in a reservoir, by position in the block, and the slot of each.

    Whoever was in such a slot has left. Slots are in ascending order and none comes twice. A sampler may also
    free slots: those `kept` are then the slots, as they were before, whose rows moved to the first ones, in this
    order, before anybody came; None if all stayed where they were.
    """

    slots: Array
    rows: Array
    kept: Array | None = None

    @classmethod
    def none(cls, kept: Array | None = None) -> Self:
        """No row enters; `kept` stay."""
        return cls(np.empty(0, np.int64), np.empty(0, np.int64), kept)

    @classmethod
    def last(cls, slots: Array, rows: Array, kept: Array | None = None) -> Self:
        """Of rows that enter the same slot one after the other, only the last."""
        found, places = np.unique(slots[::-1], return_index=True)
        return cls(found, rows[::-1][places], kept)


@dataclass(frozen=True)
class Sample:
    """Rows chosen at random, each set of this size as likely as any other, from all that were seen.

    Parameters
    ----------
    seen
        How many rows they were chosen from.
    columns
        The rows, in an order that means nothing.
    refilling
        How many more rows must be seen until this is such a sample, where a reservoir has grown; 0 for one that is.
    """

    seen: int
    columns: Mapping[str, Array]
    refilling: int = field(default=0, repr=False)

    def __post_init__(self) -> None:
        rows = length_of(self.columns)
        if rows > self.seen:
            raise InputError(f"a sample of {rows} rows was chosen from {self.seen}; count all that were seen")

    def __len__(self) -> int:
        return length_of(self.columns)


class Slots:
    """Columns with a row in each slot, the first ones filled without gaps."""

    def __init__(self) -> None:
        self._columns: dict[str, Array] = {}
        self.filled = 0

    def put(self, block: Mapping[str, Array], taken: SlotChanges) -> None:
        """Let rows of a block come to their slots."""
        self.check(block)
        if taken.kept is not None:
            self.keep(taken.kept)
        self.filled = max(self.filled, 1 + int(taken.slots.max(initial=-1)))
        for name, values in block.items():
            mine = self._columns.get(name, values[:0])
            room = len(mine) if self.filled <= len(mine) else max(self.filled, 2 * len(mine))
            self._columns[name] = mine = _wide(mine, np.promote_types(mine.dtype, values.dtype), room)
            mine[taken.slots] = values[taken.rows]

    def keep(self, slots: Array) -> None:
        """Keep the rows of these slots only, in this order."""
        self._columns = {name: column[slots] for name, column in self._columns.items()}
        self.filled = len(slots)

    def columns(self) -> dict[str, Array]:
        """The rows that are there."""
        return {name: column[: self.filled].copy() for name, column in self._columns.items()}

    def restore(self, columns: Mapping[str, Array]) -> None:
        """Take up what `columns` gave."""
        self._columns = {name: column.copy() for name, column in columns.items()}
        self.filled = length_of(columns) if columns else 0

    def check(self, block: Mapping[str, Array]) -> None:
        """Refuse a block that has other columns than those before."""
        length_of(block)
        if self._columns and block.keys() != self._columns.keys():
            raise InputError(
                f"the rows have the columns {sorted(block)}, those before {sorted(self._columns)}; keep to one set"
            )
        for name, mine in self._columns.items():
            if _kind(mine) != _kind(block[name]):
                raise InputError(
                    f"column {name!r} is of {block[name].dtype}, before it was of {mine.dtype}; convert one of them"
                )


def length_of(columns: Mapping[str, Array]) -> int:
    """How many rows these columns have."""
    if not isinstance(columns, Mapping):
        raise InputError(f"rows came as {type(columns).__name__}; give a mapping from names to arrays")
    for name, values in columns.items():
        if not isinstance(values, np.ndarray) or values.ndim != 1:
            raise InputError(f"column {name!r} is {values!r}; give a NumPy array of one dimension")
    lengths = {name: len(values) for name, values in columns.items()}
    if len(set(lengths.values())) > 1:
        raise InputError(f"columns differ in length: {lengths}; give one value a row in each")
    return next(iter(lengths.values()), 0)


def _kind(column: Array) -> str:
    # A snapshot gives text back as objects.
    return "text" if column.dtype.kind in "UO" else column.dtype.kind


def _wide(column: Array, dtype: np.dtype[np.generic], room: int) -> Array:
    if column.dtype == dtype and len(column) == room:
        return column
    wide = np.empty(room, dtype)
    wide[: len(column)] = column
    return wide
