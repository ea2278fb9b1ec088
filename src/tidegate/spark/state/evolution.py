"""What a query may change when it continues from a checkpoint, and how saved rows follow.

A query may change its policy, budget, window and name, and the columns of its sides: add nullable ones, reorder
them, and widen types. Its `where` and its importance may use any column, and any expression that they used
before. Rows that are buffered get null for a column that is new. All else is refused, with a list of the differences.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
from pyspark.sql.types import (
    ByteType,
    DataType,
    DateType,
    DecimalType,
    DoubleType,
    FloatType,
    IntegerType,
    LongType,
    ShortType,
    TimestampNTZType,
    _parse_datatype_json_string,
)

from tidegate.spark.state.layout import name_of
from tidegate.types import SIDES, InputError

if TYPE_CHECKING:
    from tidegate.types import Side

_FREE: Final = frozenset(
    (
        "name",
        "where",
        "importance",
        *(f"{side} {of}" for side in SIDES for of in ("columns", "required", "hashed")),
    )
)
"""Parts of a layout that may change, within limits or without."""
_WIDER: Final[dict[type[DataType], tuple[type[DataType], ...]]] = {
    ByteType: (ShortType, IntegerType, LongType, DoubleType),
    ShortType: (IntegerType, LongType, DoubleType),
    IntegerType: (LongType, DoubleType),
    FloatType: (DoubleType,),
    DateType: (TimestampNTZType,),
}


def check_restart(saved: Mapping[str, Any], wanted: Mapping[str, Any]) -> None:
    """Refuse to continue from a state if the query differs from the one that wrote it by more than it may."""
    found = list(differences(saved, wanted))
    if found:
        listed = "".join(f"\n- {difference}" for difference in found)
        raise InputError(
            f"the query cannot continue from the checkpoint of {name_of(dict(saved))!r}:{listed}\n"
            "change it back, or start with a new checkpointLocation"
        )


def differences(saved: Mapping[str, Any], wanted: Mapping[str, Any]) -> Iterator[str]:
    """What a query has changed that it may not, one line each.

    Examples
    --------
    >>> list(differences({"how": "inner", "buckets": 2}, {"how": "left", "buckets": 2}))
    ["the checkpoint was written with how='inner', the query now has 'left'"]
    """
    for name, value in wanted.items():
        if name not in _FREE and saved.get(name) != value:
            yield f"the checkpoint was written with {name}={saved.get(name)!r}, the query now has {value!r}"
    for side in SIDES:
        if f"{side} columns" in wanted:
            yield from _column_differences(side, saved, wanted)
    yield from _expression_differences("where", _where_parts(saved), _where_parts(wanted), wanted)
    yield from _expression_differences(
        "importance", _importance_parts(saved), _importance_parts(wanted), wanted
    )


def _column_differences(side: Side, saved: Mapping[str, Any], wanted: Mapping[str, Any]) -> Iterator[str]:
    old, new = dict(saved.get(f"{side} columns", [])), dict(wanted[f"{side} columns"])
    for name in old:
        if name not in new:
            yield f"the {side} column {name!r}, which buffered rows have, is missing"
    for name, kind in new.items():
        if name not in old:
            if name in wanted.get(f"{side} required", []):
                yield f"the {side} has a new column {name!r} that is never null; buffered rows have no value for it"
        elif kind != old[name] and not _is_wider(_parsed(old[name]), _parsed(kind)):
            types = _parsed(old[name]).simpleString(), _parsed(kind).simpleString()
            yield f"the {side} column {name!r} was of type {types[0]} and is now {types[1]}, which is not wider"
        elif kind != old[name] and name in wanted.get(f"{side} hashed", []):
            yield f"the {side} key {name!r} is of another type, so it has other hashes than those of buffered rows"


def _expression_differences(
    what: str,
    old: Mapping[Side, Mapping[str, str]],
    new: Mapping[Side, Mapping[str, str]],
    wanted: Mapping[str, Any],
) -> Iterator[str]:
    for side in SIDES:
        for sql in dict.fromkeys(new[side].values()):
            if sql not in old[side].values() and _plain_column(sql, side, wanted) is None:
                yield (
                    f"{what} uses the {side} expression {sql!r}, for which buffered rows have no value; "
                    "use columns, or expressions that it used before"
                )


@dataclass(frozen=True)
class Migration:
    """How the saved columns of one side become those of the query.

    Parameters
    ----------
    sources
        For each column: the saved one, or None for nulls, and its type if it changes.
    """

    sources: dict[str, tuple[str | None, pa.DataType | None]]

    def __call__(self, table: pa.Table) -> pa.Table:
        """Convert saved rows."""
        columns: dict[str, Any] = {}
        for name, (source, kind) in self.sources.items():
            if source is None:
                columns[name] = pa.nulls(table.num_rows, kind)
            else:
                column = table.column(source)
                columns[name] = column if kind is None else column.cast(kind)
        return pa.table(columns)


def migration(
    side: Side,
    saved: Mapping[str, Any],
    wanted: Mapping[str, Any],
    fixed: tuple[str, ...],
    arrow_type: Callable[[str], pa.DataType],
) -> Migration | None:
    """How the saved columns of a side become those of the query; None if they are the same.

    Parameters
    ----------
    side
        Of the rows.
    saved, wanted
        The layouts of the state and of the query.
    fixed
        Columns that every state has.
    arrow_type
        The Arrow type of a Spark type in JSON.
    """
    parts = [(of(saved)[side], of(wanted)[side]) for of in (_where_parts, _importance_parts)]
    name = f"{side} columns"
    if saved.get(name) == wanted.get(name) and all(before == after for before, after in parts):
        return None
    old_columns = {name: (f"c{i}", kind) for i, (name, kind) in enumerate(saved[f"{side} columns"])}
    sources: dict[str, tuple[str | None, pa.DataType | None]] = {name: (name, None) for name in fixed}
    for i, (name, kind) in enumerate(wanted[f"{side} columns"]):
        old, old_kind = old_columns.get(name, (None, ""))
        sources[f"c{i}"] = old, None if old_kind == kind else arrow_type(kind)
    for before, after in parts:
        hidden = {sql: name for name, sql in before.items()}
        for name, sql in after.items():
            column = _plain_column(sql, side, wanted)
            sources[name] = (hidden[sql], None) if sql in hidden else sources[column or ""]
    return Migration(sources)


def _where_parts(layout: Mapping[str, Any]) -> dict[Side, dict[str, str]]:
    """By side, the hidden columns of `where`, and their expressions."""
    where: list[dict[str, str]] = layout.get("where") or [{}, {}]
    return {side: where[i] for i, side in enumerate(SIDES)}


def _importance_parts(layout: Mapping[str, Any]) -> dict[Side, dict[str, str]]:
    """By side, the hidden columns of the importance, and their expressions."""
    parts = layout.get("importance") or {}
    return {side: {name: sql for sql, name in parts.get(side, {}).items()} for side in SIDES}


def _plain_column(sql: str, side: Side, wanted: Mapping[str, Any]) -> str | None:
    """The hidden name of the column that an expression is, if it is no more than a column."""
    names = [name for name, _ in wanted.get(f"{side} columns", [])]
    quoted = {f"`{name.replace('`', '``')}`": f"c{i}" for i, name in enumerate(names)}
    return quoted.get(sql)


def _parsed(kind: str) -> DataType:
    return _parse_datatype_json_string(kind)


def _is_wider(old: DataType, new: DataType) -> bool:
    """Whether every value of one type is a value of the other, by Spark's rules for widening.

    Examples
    --------
    >>> _is_wider(IntegerType(), LongType()), _is_wider(LongType(), IntegerType())
    (True, False)
    >>> _is_wider(DecimalType(5, 2), DecimalType(8, 3)), _is_wider(DecimalType(5, 2), DecimalType(5, 3))
    (True, False)
    """
    if isinstance(old, DecimalType) and isinstance(new, DecimalType):
        digits = new.precision - new.scale >= old.precision - old.scale
        return digits and new.scale >= old.scale
    return type(new) in _WIDER.get(type(old), ())
