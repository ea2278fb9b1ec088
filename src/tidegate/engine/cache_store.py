"""Where a cache keeps its rows: to find, add and drop some does not cost more the more there are."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tidegate.compiled import kernel
from tidegate.draws import scattered
from tidegate.types import InputError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from tidegate.types import Array

NOWHERE: Final = -1
_SLACK: Final = 8
"""Rows that were dropped take room until they are more than an eighth of those that are here."""
_PLACES_A_SLOT: Final = 2
NOTED: Final = 50
"""Bytes of what is noted of a row, its places in the index included."""


class CacheStore:
    """Rows by slot. A row gets the next slot, and that is empty once the row was dropped.

    Rows that were dropped stay in memory until they are more than an eighth of those that are here; then these move
    together, in their order, and slots are numbered anew. So a row is copied a few times in all, not whenever another
    comes. The index is of codes, which keys may share: whoever asks for a key compares it. Slot 0 is of no key: its
    values are null.

    Attributes
    ----------
    found, since, last, codes, sizes
        By slot: whether the relation has the key; when it was asked; the number of the last reference; the code of
        the key; bytes.
    used
        How many slots there are.
    nbytes
        Bytes of all rows that are here.
    here
        By slot: whether there is a row.
    weak
        By slot: whether the row may be among the lowest; whoever comes may be.
    """

    def __init__(self, schema: pa.Schema) -> None:
        nothing = pa.Table.from_arrays([pa.nulls(1, field.type) for field in schema], schema=schema)
        self._settled, self._added = nothing, schema.empty_table()
        self.used, self._dropped, self.nbytes = 1, 0, 0
        self.found, self.here, self.weak = np.zeros(1, bool), np.ones(1, bool), np.zeros(1, bool)
        self.since = np.zeros(1)
        self.last, self.codes, self.sizes = (np.zeros(1, np.int64) for _ in range(3))
        self._index = _index_of(self.codes, self.used)

    def __len__(self) -> int:
        """How many rows are here."""
        return self.used - self._dropped - 1

    @property
    def rows(self) -> list[pa.Table]:
        """The rows of all slots, in tables to be laid end to end."""
        return [self._settled, self._added]

    def slots(self, *, weak: bool = False) -> Array:
        """Where there are rows; or only those that may be among the lowest."""
        some: Array = self.here[1 : self.used]
        return 1 + np.flatnonzero(some & self.weak[1 : self.used] if weak else some)

    def find(self, keys: pa.Array, codes: Array) -> Array:
        """The slot of each key, or `NOWHERE`."""
        slots = _found(self._index, self.codes, self.here, codes)
        for rows, which, within in _parted([table.select([0]) for table in self.rows], slots):
            same = pc.equal(rows.column(0).take(pa.array(within)), keys.take(pa.array(which)))
            slots[which[~same.to_numpy(zero_copy_only=False)]] = NOWHERE
        return slots

    def drop(self, slots: Array) -> None:
        """Drop rows that are here; slots stay as they are numbered."""
        self.here[slots] = False
        self._dropped += len(slots)
        self.nbytes -= int(self.sizes[slots].sum())

    def add(
        self, rows: pa.Table, *, found: Array, since: float, last: Array, codes: Array, sizes: Array
    ) -> None:
        """Add rows of keys that are not here; slots may be numbered anew before."""
        if self.used + len(found) > len(self.here) or self._dropped * _SLACK > len(self):
            self._move_together(len(found))
        begin, self.used = self.used, self.used + len(found)
        slots = slice(begin, self.used)
        self.found[slots], self.since[slots], self.last[slots] = found, since, last
        self.codes[slots], self.sizes[slots] = codes, sizes
        self.here[slots] = self.weak[slots] = True
        self.nbytes += int(sizes.sum())
        if len(found):
            self._added = pa.concat_tables([self._added, rows]).combine_chunks()
            _enter(self._index, self.codes, begin, self.used)

    def _move_together(self, coming: int) -> None:
        """Lay out anew what is here, with room for so many more, and for an eighth at least."""
        kept = np.flatnonzero(self.here[: self.used])
        mask = pa.array(self.here[: self.used])
        self._settled = pa.concat_tables(self.rows).filter(mask).combine_chunks()
        self._added = self._settled.schema.empty_table()
        size = len(kept) + max(coming, len(kept) // _SLACK)
        for name in ("found", "since", "last", "codes", "sizes", "here", "weak"):
            noted = getattr(self, name)
            moved = np.zeros(size, noted.dtype)
            moved[: len(kept)] = noted[kept]
            setattr(self, name, moved)
        self.used, self._dropped = len(kept), 0
        self._index = _index_of(self.codes, self.used)


def taken(tables: Sequence[pa.Table], places: Array, order: Array) -> pa.Table:
    """The rows at `places[order]` of tables laid end to end, without laying them so.

    An array of Arrow's holds 2 GB of text: where there is more, the table has several chunks.
    """
    if not tables[0].num_columns:
        return tables[0]
    parts = list(_parted(tables, places))
    at = np.empty(len(places), np.int64)
    at[np.concatenate([which for _, which, _ in parts])] = np.arange(len(places))
    some = [rows.take(pa.array(within)) for rows, _, within in parts]
    try:
        return pa.Table.from_batches(some).combine_chunks().take(pa.array(at[order]))
    except pa.ArrowInvalid as error:
        if len(order) < 2:  # noqa: PLR2004 - one cannot be halved
            raise InputError(
                f"a row of the relation is too large to be handed on ({error}); leave columns out by columns="
            ) from error
    halves = (np.unique(half, return_inverse=True) for half in np.array_split(order, 2))
    return pa.concat_tables([taken(tables, places[which], again) for which, again in halves])


def _parted(tables: Sequence[pa.Table], places: Array) -> Iterator[tuple[pa.RecordBatch, Array, Array]]:
    """Each part of the tables that has some of these places, which these are, and where they are in it."""
    begin = 0
    for rows in (batch for table in tables for batch in table.to_batches()):
        which = np.flatnonzero((places >= begin) & (places < begin + rows.num_rows))
        if len(which):
            yield rows, which, places[which] - begin
        begin += rows.num_rows


def _index_of(codes: Array, used: int) -> Array:
    """An index of these slots, with room for all that there are codes for."""
    index = np.full(1 << (_PLACES_A_SLOT * len(codes)).bit_length(), NOWHERE, np.int32)
    _enter(index, codes, 1, used)
    return index


@kernel
def _enter(index: Array, codes: Array, begin: int, end: int) -> None:
    """Enter slots by their codes; of several that share one, the last."""
    mask = len(index) - 1
    for slot in range(begin, end):
        at = np.int64(scattered(codes[slot])) & mask
        while index[at] >= 0 and codes[index[at]] != codes[slot]:
            at = (at + 1) & mask
        index[at] = slot


@kernel
def _found(index: Array, codes: Array, here: Array, wanted: Array) -> Array:
    """The slot of each code, if a row is there."""
    mask = len(index) - 1
    slots = np.full(len(wanted), NOWHERE, np.int64)
    for i in range(len(wanted)):
        at = np.int64(scattered(wanted[i])) & mask
        while index[at] >= 0 and codes[index[at]] != wanted[i]:
            at = (at + 1) & mask
        if index[at] >= 0 and here[index[at]]:
            slots[i] = index[at]
    return slots
