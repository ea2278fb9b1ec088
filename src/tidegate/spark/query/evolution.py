"""What a query may change when it continues from a checkpoint, and how saved rows are converted.

A query may change its policy, budget, window and name, and the columns of its sides: add nullable ones, reorder
them, and widen types. Its `where` and its importance may use any column, any expression that they used before, and
any that can be computed from stored columns (`sql_to_arrow.py`). Buffered rows get null for a new column. All
other changes are refused, with a list of the differences.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
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

from tidegate.spark.packing.arrow_types import arrow_type
from tidegate.spark.packing.columns import CHECK
from tidegate.spark.packing.type_encoding import encoded_type
from tidegate.spark.query.arrow_expression import ArrowExpression, compute
from tidegate.spark.state.layout import check_owner, name_of
from tidegate.spark.state.payload import PayloadStore
from tidegate.types import SIDES, InputError

if TYPE_CHECKING:
    from tidegate.spark.bucket.join.plan import BucketPlan
    from tidegate.spark.bucket.join.saved import SavedBucket
    from tidegate.types import Side

_CHANGEABLE: Final = frozenset(
    (
        "name",
        "where",
        "importance",
        "computable",
        *(f"{side} {of}" for side in SIDES for of in ("columns", "required", "keys")),
    )
)
"""Parts of a layout that may change; some of them only within limits."""
_COLUMN: Final = re.compile("`(?:[^`]|``)*`")
_INTEGERS: Final = (ByteType, ShortType, IntegerType, LongType)
_WIDER_TYPES: Final[dict[type[DataType], tuple[type[DataType], ...]]] = {
    ByteType: (ShortType, IntegerType, LongType, DoubleType),
    ShortType: (IntegerType, LongType, DoubleType),
    IntegerType: (LongType, DoubleType),
    FloatType: (DoubleType,),
    DateType: (TimestampNTZType,),
}


def migrate(saved: SavedBucket | None, plan: BucketPlan) -> SavedBucket | None:
    """A saved bucket with the columns of the query's plan; refuse one from which the query cannot continue."""
    if saved is None:
        return None
    check_owner(saved.layout, plan.layout)
    check_restart(saved.layout, plan.layout)
    payload = dict(saved.payload)
    for side, store in saved.payload.items():
        migration = plan_migration(side, saved.layout, plan.layout, (CHECK,) if plan.is_hashed else ())
        if migration is not None:
            payload[side] = PayloadStore([segment.map_columns(migration) for segment in store.segments])
    return replace(saved, payload=payload)


def check_restart(saved: Mapping[str, Any], wanted: Mapping[str, Any]) -> None:
    """Refuse to continue from a state if the query has changed something that it may not change."""
    changes = list(differences(saved, wanted))
    if changes:
        listed = "".join(f"\n- {difference}" for difference in changes)
        raise InputError(
            f"the query cannot continue from the checkpoint of {name_of(dict(saved))!r}:{listed}\n"
            "change it back, or start with a new checkpointLocation"
        )


def differences(saved: Mapping[str, Any], wanted: Mapping[str, Any]) -> Iterator[str]:
    """Yield a line for each change that a query may not make.

    Examples
    --------
    >>> list(differences({"how": "inner", "buckets": 2}, {"how": "left", "buckets": 2}))
    ["the checkpoint was written with how='inner', the query now has 'left'"]
    """
    for name, value in wanted.items():
        if name not in _CHANGEABLE and saved.get(name) != value:
            remedy = (
                f" (give buckets={saved.get(name)}, or use tidegate rescale)" if name == "buckets" else ""
            )
            yield f"the checkpoint was written with {name}={saved.get(name)!r}, the query now has {value!r}{remedy}"
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
        elif kind != old[name]:
            yield from _type_differences(side, name, _parse_type(old[name]), _parse_type(kind), wanted)


def _type_differences(
    side: Side, name: str, old: DataType, new: DataType, wanted: Mapping[str, Any]
) -> Iterator[str]:
    changed = f"was of type {old.simpleString()} and is now {new.simpleString()}"
    if not _is_wider(old, new):
        yield f"the {side} column {name!r} {changed}, which is not wider"
    elif name in wanted.get(f"{side} keys", []) and not isinstance(new, _INTEGERS):
        yield f"the {side} key {name!r} {changed}, so it would not match buffered rows; only integers may be widened"


def _expression_differences(
    what: str,
    old: Mapping[Side, Mapping[str, str]],
    new: Mapping[Side, Mapping[str, str]],
    wanted: Mapping[str, Any],
) -> Iterator[str]:
    for side in SIDES:
        for sql in dict.fromkeys(new[side].values()):
            known = sql in old[side].values() or _plain_column(sql, side, wanted) is not None
            if not known and sql not in _computable(what, side, wanted):
                yield (
                    f"{what} uses the {side} expression {sql!r}, for which buffered rows have no value; use columns, "
                    "expressions that it used before, or arithmetic and comparisons of columns and constants"
                )


@dataclass(frozen=True)
class Migration:
    """How the saved columns of one side become those of the query.

    Parameters
    ----------
    sources
        For each column: the saved column, or None for nulls, and its type if it changes.
    computed
        For each column that is computed from those: how.
    """

    sources: dict[str, tuple[str | None, pa.DataType | None]]
    computed: dict[str, ArrowExpression]

    def __call__(self, table: pa.Table) -> pa.Table:
        """Convert saved rows."""
        columns: dict[str, Any] = {}
        for name, (source, kind) in self.sources.items():
            if source is None:
                columns[name] = pa.nulls(table.num_rows, kind)
            else:
                column = table.column(source)
                columns[name] = column if kind is None else column.cast(kind)
        converted = pa.table(columns)
        for name, expression in self.computed.items():
            columns[name] = compute(expression, converted)
        return pa.table(columns)


def plan_migration(
    side: Side, saved: Mapping[str, Any], wanted: Mapping[str, Any], fixed: tuple[str, ...]
) -> Migration | None:
    """How the saved columns of a side become those of the query; None if they are the same.

    Parameters
    ----------
    side
        The side of the rows.
    saved, wanted
        The layouts of the state and of the query.
    fixed
        Columns that every state has.
    """
    parts = {
        "where": (_where_parts(saved)[side], _where_parts(wanted)[side]),
        "importance": (_importance_parts(saved)[side], _importance_parts(wanted)[side]),
    }
    name = f"{side} columns"
    if saved.get(name) == wanted.get(name) and all(before == after for before, after in parts.values()):
        return None
    old_columns = {name: (f"c{i}", kind) for i, (name, kind) in enumerate(saved[f"{side} columns"])}
    sources: dict[str, tuple[str | None, pa.DataType | None]] = {name: (name, None) for name in fixed}
    for i, (name, kind) in enumerate(wanted[f"{side} columns"]):
        old, old_kind = old_columns.get(name, (None, ""))
        sources[f"c{i}"] = old, None if old_kind == kind else arrow_type(encoded_type(_parse_type(kind)))
    computed: dict[str, ArrowExpression] = {}
    for what, (before, after) in parts.items():
        hidden = {sql: name for name, sql in before.items()}
        for name, sql in after.items():
            column = _plain_column(sql, side, wanted)
            if sql in hidden:
                sources[name] = hidden[sql], None
            elif column is not None:
                sources[name] = sources[column]
            else:
                computed[name] = _computable(what, side, wanted)[sql]
    return Migration(sources, computed)


def _computable(what: str, side: Side, layout: Mapping[str, Any]) -> dict[str, ArrowExpression]:
    """The SQL expressions that can be computed from stored columns, and how."""
    expressions: dict[str, ArrowExpression] = layout.get("computable", {}).get(what, {}).get(side, {})
    return expressions


def _where_parts(layout: Mapping[str, Any]) -> dict[Side, dict[str, str]]:
    """By side, the expressions of `where` by hidden column."""
    where: list[dict[str, str]] = layout.get("where") or [{}, {}]
    return {side: where[i] for i, side in enumerate(SIDES)}


def _importance_parts(layout: Mapping[str, Any]) -> dict[Side, dict[str, str]]:
    """By side, the expressions of the importance by hidden column."""
    parts = layout.get("importance") or {}
    return {side: {name: sql for sql, name in parts.get(side, {}).items()} for side in SIDES}


def is_plain_column(sql: str) -> bool:
    """Whether an expression is just a column.

    Examples
    --------
    >>> is_plain_column("`a`"), is_plain_column("`a``b`"), is_plain_column("`a` + `b`")
    (True, True, False)
    """
    return _COLUMN.fullmatch(sql) is not None


def _plain_column(sql: str, side: Side, wanted: Mapping[str, Any]) -> str | None:
    """The packed name of the column, if an expression is just a column."""
    names = [name for name, _ in wanted.get(f"{side} columns", [])]
    quoted = {f"`{name.replace('`', '``')}`": f"c{i}" for i, name in enumerate(names)}
    return quoted.get(sql)


def _parse_type(kind: str) -> DataType:
    return _parse_datatype_json_string(kind)


def _is_wider(old: DataType, new: DataType) -> bool:
    """Whether a type can be widened to another, by Spark's rules.

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
    return type(new) in _WIDER_TYPES.get(type(old), ())
