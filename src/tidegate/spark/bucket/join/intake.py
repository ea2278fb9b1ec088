"""From the packed tables of a step to the rows that the operator takes.

Columns get their transport types. Late rows are dropped. Rows without a key or a time are separated. The others are
sorted by time and numbered.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tidegate.arrow_columns import one_chunk, row_sizes
from tidegate.spark.bucket.join.plan import BucketPlan
from tidegate.spark.packing.columns import (
    CONTENT,
    KEY,
    column,
    micros,
    sort_by_time,
    to_sortable_integers,
    to_transport_types,
)
from tidegate.types import FOREVER, SIDES, Rows

if TYPE_CHECKING:
    from tidegate.types import Array, Side

_NO_INTS: Final = np.empty(0, np.int64)


@dataclass
class ArrivalCounts:
    """The counts of a bucket's arrivals that the operator's tally does not have."""

    rows_left: int = 0
    rows_right: int = 0
    late: int = 0
    null_keys: int = 0


@dataclass(frozen=True)
class StepInput:
    """The arrivals of a step by side.

    Parameters
    ----------
    joinable
        Rows with a key and a time that are not late, in order of time.
    unmatchable
        Rows without a key or a time, if there are any. They never match.
    """

    joinable: dict[Side, pa.Table] = field(default_factory=dict)
    unmatchable: dict[Side, pa.Table] = field(default_factory=dict)


class Intake:
    """Prepares the arrivals of one bucket, and counts them."""

    def __init__(self, plan: BucketPlan) -> None:
        self._plan = plan
        self.counts = ArrivalCounts()

    def accept(self, tables: dict[Side, pa.Table], late: int | None) -> StepInput:
        """Count the arrivals, drop late rows, and separate rows that cannot match.

        Parameters
        ----------
        tables
            The arrivals, in any order; a side may be missing. The dict is emptied, to free their memory.
        late
            A row at or before this time, in microseconds, is late; None: no row is.
        """
        accepted = StepInput()
        for side in list(tables):
            table = to_transport_types(tables.pop(side))
            if side == "left":
                self.counts.rows_left += table.num_rows
            else:
                self.counts.rows_right += table.num_rows
            if late is not None:
                table = self._without_late(side, table, late)
            table, nulls = self._without_nulls(side, table)
            accepted.joinable[side] = sort_by_time(table, self._plan.side(side).time)
            if nulls is not None:
                accepted.unmatchable[side] = nulls
        return accepted

    def rows(
        self, joinable: Mapping[Side, pa.Table], first: int, importance: Mapping[Side, Array]
    ) -> dict[Side, Rows]:
        """Number the arrivals by time from `first` on, left before right, and select the operator's columns."""
        times = {
            side: micros(joinable[side], self._plan.side(side).time) if side in joinable else _NO_INTS
            for side in SIDES
        }
        places = {side: np.arange(len(times[side])) for side in SIDES}
        ids = {
            "left": first + places["left"] + np.searchsorted(times["right"], times["left"], side="left"),
            "right": first + places["right"] + np.searchsorted(times["left"], times["right"], side="right"),
        }
        rows: dict[Side, Rows] = {}
        for side in SIDES:
            table = joinable.get(side)
            key = _NO_INTS if table is None else self._keys(table)
            rows[side] = Rows(
                side,
                key=key,
                time=times[side],
                id=ids[side],
                matches=np.zeros(len(key), np.int64),
                importance=importance.get(side),
                payload=self.sizes(None if table is None else table.drop_columns([KEY, CONTENT])),
            )
        return rows

    def sizes(self, table: pa.Table | None) -> Array | None:
        """The bytes of each row, if the budget counts bytes."""
        budget = self._plan.join.budget
        if budget is None or budget.unit != "bytes":
            return None
        return _NO_INTS if table is None else row_sizes(table)

    def divide_into_steps(self, tables: Mapping[Side, pa.Table], size: int) -> Iterator[dict[Side, pa.Table]]:
        """Divide the rows of a batch query into steps of `size` rows by time; rows without a time come first."""
        sorted_tables = {}
        for side, table in tables.items():
            time = table.column(self._plan.side(side).time)
            timeless = table.filter(time.is_null())
            if timeless.num_rows:
                yield {side: timeless}
            sorted_tables[side] = sort_by_time(table.filter(time.is_valid()), self._plan.side(side).time)
        if not sorted_tables:
            return
        times = {side: micros(table, self._plan.side(side).time) for side, table in sorted_tables.items()}
        merged = np.sort(np.concatenate(list(times.values())), kind="stable")
        done = dict.fromkeys(times, 0)
        for last in [*merged[size::size], FOREVER]:
            # A step ends before a time, never within it: rows of one time are handled together.
            ends = {side: int(np.searchsorted(time, last)) for side, time in times.items()}
            if ends != done:
                yield {
                    side: table.slice(done[side], ends[side] - done[side])
                    for side, table in sorted_tables.items()
                }
            done = ends

    def _keys(self, table: pa.Table) -> Array:
        keys = column(table, KEY)
        if keys.dtype.kind == "f" and isinstance(self._plan.join.condition, str):
            return to_sortable_integers(keys)
        return keys

    def _without_late(self, side: Side, table: pa.Table, late: int) -> pa.Table:
        time = one_chunk(table.column(self._plan.side(side).time)).view(pa.int64())
        timely = pc.fill_null(pc.greater(time, late), True)  # noqa: FBT003 - a row without a time is not late
        if pc.all(timely).as_py() is not False:
            return table
        self.counts.late += pc.sum(pc.invert(timely)).as_py()
        return table.filter(timely)

    def _without_nulls(self, side: Side, table: pa.Table) -> tuple[pa.Table, pa.Table | None]:
        key, time = table.column(KEY), table.column(self._plan.side(side).time)
        if not key.null_count and not time.null_count:
            return table, None
        valid = pc.and_(key.is_valid(), time.is_valid())
        nulls = table.filter(pc.invert(valid))
        self.counts.null_keys += nulls.num_rows
        return table.filter(valid), nulls
