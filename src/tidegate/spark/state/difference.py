"""What changed between two states: named arrays, and tables of rows that are sorted by row id.

A state is a flat dictionary of arrays. Some are columns of tables, such as the rows of a side: they are named
`rows.<table>.<column>`, and all have the order of `rows.<table>.id`, which ascends. The name of a table has no dot. A
difference is a dictionary of arrays, too:

| name | content |
|---|---|
| `removed.<table>` | positions, in the old state, of rows that left |
| `added.<table>.<column>` | the columns of rows that the old state does not have |
| `at.<name>`, `to.<name>` | positions in the new array, and their new values, if few have changed |
| `set.<name>` | a whole array |
| `names` | the names of all arrays of the new state, in JSON |

So the size of a difference follows from what has changed, not from the size of the state.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Final

import numpy as np

from tidegate.compiled import kernel

if TYPE_CHECKING:
    from tidegate.types import Array

ROWS: Final = "rows."
_SPARSE_FACTOR: Final = 3
"""Positions and values are written instead of a whole array if less than one value in this many has changed."""


def difference(old: Mapping[str, Array], new: Mapping[str, Array]) -> dict[str, Array]:
    """The difference between two states, for `apply_difference`.

    Examples
    --------
    >>> old = {"rows.left.id": np.array([1, 2]), "rows.left.key": np.array([7, 8]), "count": np.array([2])}
    >>> new = {"rows.left.id": np.array([2, 3]), "rows.left.key": np.array([8, 9]), "count": np.array([3])}
    >>> {name: values.tolist() for name, values in difference(old, new).items() if name != "names"}
    {'removed.left': [0], 'added.left.id': [3], 'added.left.key': [9], 'set.count': [3]}
    """
    changes: dict[str, Array] = {}
    for table in _tables(new):
        changes |= _rows_difference(table, old, new)
    for name, values in new.items():
        if not name.startswith(ROWS):
            changes |= _array_difference(name, old.get(name), values)
    changes["names"] = np.frombuffer(json.dumps([*new]).encode(), np.uint8)
    return changes


def apply_difference(old: Mapping[str, Array], changes: Mapping[str, Array]) -> dict[str, Array]:
    """Apply a difference to the old state, which gives the new one.

    Examples
    --------
    >>> old = {"rows.left.id": np.array([1, 2]), "rows.left.key": np.array([7, 8])}
    >>> new = {"rows.left.id": np.array([2, 3]), "rows.left.key": np.array([8, 9])}
    >>> apply_difference(old, difference(old, new))
    {'rows.left.id': array([2, 3]), 'rows.left.key': array([8, 9])}
    """
    state: dict[str, Array] = {}
    names = json.loads(changes["names"].tobytes())
    merged = {table: _MergedRows(table, old, changes) for table in _tables(names)}
    for name in names:
        replacement = changes.get(f"set.{name}")
        if replacement is not None:
            state[name] = replacement
            continue
        values = merged[_table_of(name)].column(name) if name.startswith(ROWS) else old[name]
        at = changes.get(f"at.{name}")
        if at is not None:
            values = values.copy()
            values[at] = changes[f"to.{name}"]
        state[name] = values
    return state


def _table_of(name: str) -> str:
    """The table of a column."""
    return name.split(".", 2)[1]


def _tables(names: Iterable[str]) -> list[str]:
    """The tables of a state."""
    return list(dict.fromkeys(_table_of(name) for name in names if name.startswith(ROWS)))


def sorted_by_id(state: Mapping[str, Array]) -> dict[str, Array]:
    """The state with the rows of each table in ascending order of id."""
    ordered = dict(state)
    for table in _tables(state):
        ids = state.get(f"rows.{table}.id")
        if ids is None or bool((ids[1:] > ids[:-1]).all()):
            continue
        order = np.argsort(ids, kind="stable")
        prefix = f"rows.{table}."
        ordered |= {name: values[order] for name, values in state.items() if name.startswith(prefix)}
    return ordered


def _rows_difference(table: str, old: Mapping[str, Array], new: Mapping[str, Array]) -> dict[str, Array]:
    prefix = f"rows.{table}."
    columns = {name: values for name, values in new.items() if name.startswith(prefix)}
    if not columns:
        return {}
    before, after = old.get(prefix + "id"), columns[prefix + "id"]
    if before is None or not len(before):
        return {f"set.{name}": values for name, values in columns.items()}
    places = _find_positions(before, after)
    known = places >= 0
    is_kept = np.zeros(len(before), bool)
    is_kept[places[known]] = True
    changes = {}
    if not is_kept.all():
        changes[f"removed.{table}"] = _narrow_integers(np.flatnonzero(~is_kept))
    added = np.flatnonzero(~known)
    known_at = None if not len(added) else np.flatnonzero(known)
    for name, values in columns.items():
        previous = old.get(name)
        if previous is None or previous.dtype != values.dtype:
            changes[f"set.{name}"] = values
            continue
        if len(added):
            changes[f"added.{name[len(ROWS) :]}"] = values[added]
        now = values if known_at is None else values[known_at]
        changed = _changed_positions(previous[places if known_at is None else places[known_at]], now)
        if not len(changed):
            continue
        if len(changed) * _SPARSE_FACTOR < len(values):
            at = changed if known_at is None else known_at[changed]
            changes[f"at.{name}"], changes[f"to.{name}"] = _narrow_integers(at), values[at]
        else:
            changes[f"set.{name}"] = values
            changes.pop(f"added.{name[len(ROWS) :]}", None)
    return changes


class _MergedRows:
    """The rows of one table after removals and additions, before changes of values."""

    def __init__(self, table: str, old: Mapping[str, Array], changes: Mapping[str, Array]) -> None:
        self._old, self._changes = old, changes
        ids = old.get(f"rows.{table}.id")
        self._is_kept: Array | None = None
        removed = changes.get(f"removed.{table}")
        if removed is not None and ids is not None:
            self._is_kept = np.ones(len(ids), bool)
            self._is_kept[removed] = False
        self._order: Array | None = None
        added = changes.get(f"added.{table}.id")
        if added is not None and ids is not None:
            kept = ids if self._is_kept is None else ids[self._is_kept]
            if len(kept) and len(added) and added[0] < kept[-1]:
                self._order = np.argsort(np.concatenate((kept, added)), kind="stable")

    def column(self, name: str) -> Array:
        values = self._old[name]
        if self._is_kept is not None:
            values = values[self._is_kept]
        added = self._changes.get(f"added.{name[len(ROWS) :]}")
        if added is not None:
            values = np.concatenate((values, added))
        return values if self._order is None else values[self._order]


def _array_difference(name: str, old: Array | None, new: Array) -> dict[str, Array]:
    if old is None or old.dtype != new.dtype or len(old) != len(new):
        return {f"set.{name}": new}
    changed = _changed_positions(old, new)
    if not len(changed):
        return {}
    if len(changed) * _SPARSE_FACTOR < len(new):
        return {f"at.{name}": _narrow_integers(changed), f"to.{name}": new[changed]}
    return {f"set.{name}": new}


def _changed_positions(old: Array, new: Array) -> Array:
    """The positions at which two arrays of the same type and length differ in bits; NaN equals itself."""
    if old.dtype.kind == "f":
        bits = np.dtype(f"i{old.dtype.itemsize}")
        old, new = np.ascontiguousarray(old).view(bits), np.ascontiguousarray(new).view(bits)
    return np.flatnonzero(old != new)


def _narrow_integers(places: Array) -> Array:
    """Positions as 32-bit integers, if they fit."""
    return places.astype(np.int32) if not len(places) or places[-1] < np.iinfo(np.int32).max else places


@kernel
def _find_positions(before: Array, after: Array) -> Array:
    """For each of the ascending `after`, its position in the ascending `before`, or -1."""
    places = np.empty(len(after), np.int64)
    at = 0
    for i in range(len(after)):
        while at < len(before) and before[at] < after[i]:
            at += 1
        places[i] = at if at < len(before) and before[at] == after[i] else -1
    return places
