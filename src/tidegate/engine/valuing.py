"""The importance of recorded rows, by the user's definitions: on arrival, and whenever it is redefined."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, cast

import numpy as np
import pyarrow as pa

from tidegate.importance import Attributes, Definition, evaluate_importance
from tidegate.types import SIDES, InputError, Rows

if TYPE_CHECKING:
    from tidegate.engine.arrivals import Arrivals
    from tidegate.importance import DefinitionLike
    from tidegate.streams import Trace
    from tidegate.types import Array, Time


@dataclass(frozen=True)
class Redefined:
    """The importance of rows after each redefinition.

    Parameters
    ----------
    by_arrivals
        For the numbers (left, right) of rows that arrive before a definition holds, the importance of each row, by
        row number.
    """

    by_arrivals: dict[tuple[int, ...], Array] = field(default_factory=dict)

    def __bool__(self) -> bool:
        return bool(self.by_arrivals)

    def importance(self, arrived: tuple[int, ...]) -> Array | None:
        """The importance of rows from here on, if it changes here."""
        return self.by_arrivals.get(arrived)

    def cut(self, cuts: Array) -> Array:
        """The same steps, but none contains rows from before and after a redefinition."""
        if not self.by_arrivals:
            return cuts
        return np.unique(np.concatenate((cuts, np.array(list(self.by_arrivals), cuts.dtype))), axis=0)


def value(
    arrivals: Arrivals, source: Array, traces: tuple[Trace, Trace], importance: DefinitionLike
) -> tuple[Arrivals, Redefined]:
    """Add to arrivals the importance that they have on arrival, and return the later changes.

    Parameters
    ----------
    arrivals, source
        The rows, and for each row number its position in its trace.
    traces
        The traces with their attributes.
    importance
        A definition, or definitions by the time from which on they hold; the first holds from the beginning.
    """
    given = _by_time(importance)
    starts = [(0, 0), *(arrivals.before(time) for time in list(given)[1:])]
    ends = [*starts[1:], (len(arrivals.left), len(arrivals.right))]
    first = np.zeros(len(arrivals))
    by_arrivals: dict[tuple[int, ...], Array] = {}
    for definition, start, end in zip(given.values(), starts, ends, strict=True):
        values = np.zeros(len(arrivals))
        for side, trace, count, begin in zip(SIDES, traces, end, start, strict=True):
            ids = (arrivals.left if side == "left" else arrivals.right).id[:count]
            attributes = Attributes(side, count, _TraceColumns(trace, source[ids]))
            values[ids] = evaluate_importance(definition, attributes)
            first[ids[begin:]] = values[ids[begin:]]
        if start != end and any(start):
            by_arrivals[start] = values
    sides = (replace(rows, importance=first[rows.id]) for rows in (arrivals.left, arrivals.right))
    left, right = cast("tuple[Rows, Rows]", tuple(sides))
    return replace(arrivals, left=left, right=right), Redefined(by_arrivals)


def _by_time(importance: DefinitionLike) -> dict[Time, Definition]:
    timed = isinstance(importance, Mapping) and "kind" not in importance
    given = cast("Mapping[Time, DefinitionLike]", importance if timed else {0: importance})
    for time in given:
        if isinstance(time, bool) or not isinstance(time, int | float | np.number) or not np.isfinite(time):
            raise InputError(
                f"importance is redefined at {time!r}; give finite times, as the data has them (calendar times in "
                "microseconds): {0: first, 500: second}"
            )
    if not given:
        raise InputError("importance={} defines nothing; write {0: first, 500: second}")
    return {
        time: Definition.of(given[time]).with_files(lambda file: file.read().definition)
        for time in sorted(given)
    }


class _TraceColumns(Mapping[str, pa.Array]):
    """The columns of a trace at some positions, read when they are needed."""

    def __init__(self, trace: Trace, places: Array) -> None:
        self._places = pa.array(places)
        given = {"time": trace.time, "importance": trace.importance, "value": trace.value}
        there = {name: column for name, column in given.items() if column is not None}
        self._table = pa.table(there) if trace.table is None else trace.table

    def __getitem__(self, name: str) -> pa.Array:
        return self._table.column(name).take(self._places)

    def __contains__(self, name: object) -> bool:
        return name in self._table.column_names

    def __iter__(self) -> Iterator[str]:
        return iter(self._table.column_names)

    def __len__(self) -> int:
        return len(self._table.column_names)
