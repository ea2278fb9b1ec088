"""The rows of a cache, in Arrow columns with an index: finding, adding and dropping cost the same at any size."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tidegate.compiled import kernel
from tidegate.draws import hash64
from tidegate.types import InputError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from tidegate.types import Array

NOT_FOUND: Final = -1
_SLACK: Final = 8
"""Dropped rows stay in memory until they are more than one in eight of the live rows."""
_INDEX_PLACES_PER_SLOT: Final = 2
ENTRY_BYTES: Final = 50
"""Bytes per row besides its values: its columns here and its places in the index."""


class CacheStore:
    """Rows by slot. A row gets the next slot; the slot is empty after the row was dropped.

    When dropped rows are more than one in eight of the live rows, the live rows are compacted, in their order, and
    get new slots. So a row is copied a few times in all, not with every addition. The index holds codes, which
    different keys may share; `find` compares the keys. Slot 0 has no key, and its values are null.

    Attributes
    ----------
    found, fetched_at, last_used, codes, sizes
        By slot: whether the relation has the key; when it was fetched; the number of the last reference; the code
        of the key; bytes.
    used
        The number of slots.
    nbytes
        Bytes of all live rows.
    live
        By slot: whether it holds a row.
    evictable
        By slot: whether the row may be among those with the lowest scores; always so for a new row.
    """

    def __init__(self, schema: pa.Schema) -> None:
        nothing = pa.Table.from_arrays([pa.nulls(1, field.type) for field in schema], schema=schema)
        self._compacted, self._appended = nothing, schema.empty_table()
        self.used, self._dropped, self.nbytes = 1, 0, 0
        self.found, self.live, self.evictable = np.zeros(1, bool), np.ones(1, bool), np.zeros(1, bool)
        self.fetched_at = np.zeros(1)
        self.last_used, self.codes, self.sizes = (np.zeros(1, np.int64) for _ in range(3))
        self._index = _build_index(self.codes, self.used)

    def __len__(self) -> int:
        """The number of live rows."""
        return self.used - self._dropped - 1

    @property
    def rows(self) -> list[pa.Table]:
        """The rows of all slots, in consecutive tables."""
        return [self._compacted, self._appended]

    def slots(self, *, evictable: bool = False) -> Array:
        """The slots of all live rows, or of the evictable ones."""
        some: Array = self.live[1 : self.used]
        return 1 + np.flatnonzero(some & self.evictable[1 : self.used] if evictable else some)

    def find(self, keys: pa.Array, codes: Array) -> Array:
        """The slot of each key, or `NOT_FOUND`."""
        slots = _find(self._index, self.codes, self.live, codes)
        for rows, which, within in _parts([table.select([0]) for table in self.rows], slots):
            same = pc.equal(rows.column(0).take(pa.array(within)), keys.take(pa.array(which)))
            slots[which[~same.to_numpy(zero_copy_only=False)]] = NOT_FOUND
        return slots

    def drop(self, slots: Array) -> None:
        """Drop live rows; the other rows keep their slots."""
        self.live[slots] = False
        self._dropped += len(slots)
        self.nbytes -= int(self.sizes[slots].sum())

    def add(
        self, rows: pa.Table, *, found: Array, fetched_at: float, last_used: Array, codes: Array, sizes: Array
    ) -> None:
        """Add rows of keys that are not cached; the other rows may get new slots."""
        if self.used + len(found) > len(self.live) or self._dropped * _SLACK > len(self):
            self._compact(len(found))
        begin, self.used = self.used, self.used + len(found)
        slots = slice(begin, self.used)
        self.found[slots], self.fetched_at[slots], self.last_used[slots] = found, fetched_at, last_used
        self.codes[slots], self.sizes[slots] = codes, sizes
        self.live[slots] = self.evictable[slots] = True
        self.nbytes += int(sizes.sum())
        if len(found):
            self._appended = pa.concat_tables([self._appended, rows]).combine_chunks()
            _insert(self._index, self.codes, begin, self.used)

    def _compact(self, coming: int) -> None:
        """Move the live rows together, with space for `coming` more rows, and for an eighth at least."""
        kept = np.flatnonzero(self.live[: self.used])
        mask = pa.array(self.live[: self.used])
        self._compacted = pa.concat_tables(self.rows).filter(mask).combine_chunks()
        self._appended = self._compacted.schema.empty_table()
        size = len(kept) + max(coming, len(kept) // _SLACK)
        for name in ("found", "fetched_at", "last_used", "codes", "sizes", "live", "evictable"):
            values = getattr(self, name)
            moved = np.zeros(size, values.dtype)
            moved[: len(kept)] = values[kept]
            setattr(self, name, moved)
        self.used, self._dropped = len(kept), 0
        self._index = _build_index(self.codes, self.used)


def take_rows(tables: Sequence[pa.Table], places: Array, order: Array) -> pa.Table:
    """The rows at `places[order]` of consecutive tables, without concatenating them.

    An Arrow array holds 2 GB of text at most; the result has several chunks if there is more.
    """
    if not tables[0].num_columns:
        return tables[0]
    parts = list(_parts(tables, places))
    at = np.empty(len(places), np.int64)
    at[np.concatenate([which for _, which, _ in parts])] = np.arange(len(places))
    some = [rows.take(pa.array(within)) for rows, _, within in parts]
    try:
        return pa.Table.from_batches(some).combine_chunks().take(pa.array(at[order]))
    except pa.ArrowInvalid as error:
        if len(order) < 2:  # noqa: PLR2004 - one cannot be halved
            raise InputError(
                f"a row of the relation is too large for an Arrow array ({error}); choose fewer columns by columns="
            ) from error
    halves = (np.unique(half, return_inverse=True) for half in np.array_split(order, 2))
    return pa.concat_tables([take_rows(tables, places[which], again) for which, again in halves])


def _parts(tables: Sequence[pa.Table], places: Array) -> Iterator[tuple[pa.RecordBatch, Array, Array]]:
    """The record batches that contain some of these places: each with indices of `places`, and rows of the batch."""
    begin = 0
    for rows in (batch for table in tables for batch in table.to_batches()):
        which = np.flatnonzero((places >= begin) & (places < begin + rows.num_rows))
        if len(which):
            yield rows, which, places[which] - begin
        begin += rows.num_rows


def _build_index(codes: Array, used: int) -> Array:
    """An index of the used slots, with space for as many slots as there are codes."""
    index = np.full(1 << (_INDEX_PLACES_PER_SLOT * len(codes)).bit_length(), NOT_FOUND, np.int32)
    _insert(index, codes, 1, used)
    return index


@kernel
def _insert(index: Array, codes: Array, begin: int, end: int) -> None:
    """Insert slots by their codes; of several slots with one code, the last is found."""
    mask = len(index) - 1
    for slot in range(begin, end):
        at = np.int64(hash64(codes[slot])) & mask
        while index[at] >= 0 and codes[index[at]] != codes[slot]:
            at = (at + 1) & mask
        index[at] = slot


@kernel
def _find(index: Array, codes: Array, live: Array, wanted: Array) -> Array:
    """The slot of each code, if it holds a row."""
    mask = len(index) - 1
    slots = np.full(len(wanted), NOT_FOUND, np.int64)
    for i in range(len(wanted)):
        at = np.int64(hash64(wanted[i])) & mask
        while index[at] >= 0 and codes[index[at]] != wanted[i]:
            at = (at + 1) & mask
        if index[at] >= 0 and live[index[at]]:
            slots[i] = index[at]
    return slots
