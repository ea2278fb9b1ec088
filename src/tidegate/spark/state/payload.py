"""The columns of buffered rows that only results need, in immutable segments, found by row id.

A micro-batch appends the rows that it admits as one segment. Rows that leave stay in their segment until most of it
is dead; then its live rows are rewritten. So a micro-batch writes about as many bytes as it admits, and reads
only rows that matched. A segment is never changed, so a copy of it is always valid.

The id ranges of the segments ascend and do not overlap, so a row is found by two binary searches.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final, Protocol

import numpy as np
import pyarrow as pa

from tidegate.arrow_columns import one_chunk
from tidegate.spark.state.values import Blob

if TYPE_CHECKING:
    from tidegate.types import Array

ID: Final = "row"
"""The column of row ids in a segment."""
_SMALL_BYTES: Final = 1 << 20
"""Segments of fewer bytes are merged with their neighbours when there are many."""
_MIN_SMALL_SEGMENTS: Final = 16
_MAX_MERGED_BYTES: Final = 32 << 20
"""The largest size of a merged segment, in bytes."""


class Load(Protocol):
    """Returns the table of a segment; `anew`: a local copy is checked although this process has checked it before."""

    def __call__(self, *, anew: bool = False) -> pa.Table:
        """The column `ID`, then the columns of the rows."""


@dataclass(frozen=True)
class Segment:
    """Rows that were written together, in ascending order of id.

    Parameters
    ----------
    first, last
        The range of their ids.
    rows, nbytes
        The number of rows, and the bytes of their columns.
    load
        Returns the table.
    blob
        Its data in the state store; None before it is saved.
    """

    first: int
    last: int
    rows: int
    nbytes: int
    load: Load = field(compare=False)
    blob: Blob | None = None

    @classmethod
    def of(cls, ids: Array, table: pa.Table) -> Segment:
        """A segment of new rows."""
        segment_table = table.combine_chunks().add_column(0, ID, pa.array(ids, pa.int64()))

        def load(*, anew: bool = False) -> pa.Table:  # noqa: ARG001 - it is in memory
            return segment_table

        return cls(int(ids[0]), int(ids[-1]), len(ids), segment_table.nbytes, load)

    @classmethod
    def saved(cls, described: Sequence[Any], load: Callable[[Blob, bool], pa.Table]) -> Segment:
        """The segment with this description; `load` reads its data, checked anew if its second argument is true."""
        first, last, rows, nbytes, written = described
        blob = Blob.of(written)
        return cls(first, last, rows, nbytes, lambda *, anew=False: load(blob, anew), blob)

    @property
    def described(self) -> list[Any]:
        """A saved segment as plain values, for a manifest."""
        if self.blob is None:
            raise ValueError("the segment is not saved")
        return [self.first, self.last, self.rows, self.nbytes, self.blob.described]

    @cached_property
    def table(self) -> pa.Table:
        """Its rows."""
        return self.load()

    @cached_property
    def ids(self) -> Array:
        """The ids of its rows."""
        ids: Array = one_chunk(self.table.column(ID)).to_numpy()
        return ids

    def map_columns(self, convert: Callable[[pa.Table], pa.Table]) -> Segment:
        """The segment with converted columns, not saved."""

        def load(*, anew: bool = False) -> pa.Table:
            table = self.load(anew=anew)
            return convert(table).add_column(0, ID, table.column(ID))

        return replace(self, load=load, blob=None)

    def checked(self) -> Segment:
        """The segment with its data checked, whatever was checked before: what is written from it must be right."""
        table = self.load(anew=True)
        return replace(self, load=lambda *, anew=False: table)  # noqa: ARG005 - just checked

    def take(self, ids: Array, columns: Sequence[str] | None = None) -> pa.Table:
        """The rows of these ids, without the ids."""
        table = self.table.drop_columns([ID]) if columns is None else self.table.select(columns)
        if len(ids) == self.rows and np.array_equal(ids, self.ids):
            return table
        return table.take(pa.array(np.searchsorted(self.ids, ids)))


class PayloadStore:
    """The segments of one side.

    Examples
    --------
    >>> store = PayloadStore()
    >>> store.append(np.array([1, 4]), pa.table({"c0": ["a", "b"]}))
    >>> store.append(np.array([5]), pa.table({"c0": ["c"]}))
    >>> store.take(np.array([5, 1, 5])).column("c0").to_pylist()
    ['c', 'a', 'c']
    """

    def __init__(self, segments: Sequence[Segment] = ()) -> None:
        self.segments = list(segments)

    @property
    def rows(self) -> int:
        """The rows of all segments, dead ones included."""
        return sum(segment.rows for segment in self.segments)

    @property
    def row_bytes(self) -> int:
        """The approximate bytes of a row."""
        return sum(segment.nbytes for segment in self.segments) // max(1, self.rows)

    def append(self, ids: Array, table: pa.Table) -> None:
        """Add rows with larger ids than all before, in ascending order of id."""
        if len(ids):
            self.segments.append(Segment.of(ids, table))

    def take(self, ids: Array, columns: Sequence[str] | None = None) -> pa.Table:
        """The rows of these ids, in their order; all of them must be stored."""
        parts = list(self._parts(ids, columns))
        if len(parts) == 1:
            return parts[0][1]
        # The hidden columns of expressions keep their old type after a column was widened.
        table = pa.concat_tables([part for _, part in parts], promote_options="permissive").combine_chunks()
        places = np.concatenate([at for at, _ in parts])
        if bool((places[1:] > places[:-1]).all()):
            return table
        inverse = np.empty(len(places), np.int64)
        inverse[places] = np.arange(len(places))
        return table.take(pa.array(inverse))

    def compact(self, live: Array) -> None:
        """Drop segments without live rows, and rewrite those that are mostly dead; `live` is in ascending order."""
        begin = np.searchsorted(live, [segment.first for segment in self.segments], side="left")
        end = np.searchsorted(live, [segment.last for segment in self.segments], side="right")
        kept: list[Segment] = []
        for group in _group_segments(self.segments, (end - begin).tolist()):
            if not group.rewrite:
                kept += [segment for _, segment in group.members]
                continue
            ids = np.concatenate([live[begin[number] : end[number]] for number, _ in group.members])
            store = PayloadStore([segment.checked() for _, segment in group.members])
            kept.append(Segment.of(ids, store.take(ids)))
        self.segments = kept

    def _parts(self, ids: Array, columns: Sequence[str] | None) -> Iterator[tuple[Array, pa.Table]]:
        """The rows by segment: their positions in `ids`, and their columns."""
        if len(self.segments) == 1 or not len(ids):
            yield np.arange(len(ids)), self.segments[0].take(ids, columns)
            return
        owner = np.searchsorted([segment.last for segment in self.segments], ids)
        order = (
            np.argsort(owner, kind="stable") if bool((owner[1:] < owner[:-1]).any()) else np.arange(len(ids))
        )
        ends = np.searchsorted(owner[order], np.arange(len(self.segments) + 1))
        for number, segment in enumerate(self.segments):
            places = order[ends[number] : ends[number + 1]]
            if len(places):
                yield places, segment.take(ids[places], columns)


@dataclass(frozen=True)
class _SegmentGroup:
    """Neighbouring segments with live rows, by number, and whether they are rewritten as one segment."""

    members: list[tuple[int, Segment]]
    rewrite: bool


def _group_segments(segments: Sequence[Segment], live: Sequence[int]) -> Iterator[_SegmentGroup]:
    """Divide the segments with live rows into groups of neighbours.

    Neighbours that are mostly dead are rewritten as one segment, up to a size. So are many small neighbours.
    """
    members: list[tuple[int, Segment]] = []
    state, size = "", 0
    for number, segment in enumerate(segments):
        if not live[number]:
            continue
        nbytes = segment.nbytes * live[number] // segment.rows
        sparse = 2 * live[number] < segment.rows
        current = "sparse" if sparse else "small" if nbytes < _SMALL_BYTES else "large"
        if members and (current != state or current == "large" or size + nbytes > _MAX_MERGED_BYTES):
            yield _SegmentGroup(members, _is_rewrite_due(state, len(members)))
            members, size = [], 0
        members.append((number, segment))
        state, size = current, size + nbytes
    if members:
        yield _SegmentGroup(members, _is_rewrite_due(state, len(members)))


def _is_rewrite_due(state: str, count: int) -> bool:
    return state == "sparse" or (state == "small" and count >= _MIN_SMALL_SEGMENTS)
