"""Keys in Spark SQL: a value as a 64-bit integer or a number, or two hashes of several values."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql.types import (
    ArrayType,
    BooleanType,
    DataType,
    DateType,
    DoubleType,
    FloatType,
    StructType,
    TimestampNTZType,
    TimestampType,
)

from tidegate.spark.frames.side import INTEGERS, TIMES, SideFrame, quoted
from tidegate.spark.packing.columns import CHECK, KEY
from tidegate.types import InputError

if TYPE_CHECKING:
    from tidegate.types import Condition


def is_exact(kind: DataType) -> bool:
    """Whether a value is itself a 64-bit integer, so that no hash is needed."""
    return isinstance(kind, (*INTEGERS, DateType, BooleanType, *TIMES))


def integer_sql(frame: SideFrame, name: str) -> str:
    """A value as a 64-bit integer (see `is_exact`)."""
    kind, column = frame.by_name(name).dataType, quoted(name)
    if isinstance(kind, DateType):
        return f"cast(unix_date({column}) as bigint)"
    if isinstance(kind, TimestampType):
        return f"unix_micros({column})"
    if isinstance(kind, TimestampNTZType):
        # From its parts, because the functions that return microseconds depend on the session's time zone.
        clock = f"(hour({column}) * 3600 + minute({column}) * 60 + extract(second from {column})) * 1000000"
        return f"unix_date(cast({column} as date)) * 86400000000 + cast({clock} as bigint)"
    return f"cast({column} as bigint)"


def hash_sql(frame: SideFrame, names: list[str]) -> dict[str, str]:
    """Two independent 64-bit hashes of a key; the first is null if any of its columns is null."""
    columns = []
    for name in names:
        kind = frame.by_name(name).dataType
        column = _normalize_zeros(kind, quoted(name))
        if isinstance(kind, INTEGERS):
            column = f"cast({column} as bigint)"
        elif isinstance(kind, ArrayType | StructType):
            # A hash ignores nulls inside; the JSON text shows where they are.
            column = f"{column}, to_json(named_struct('k', {column}), map('ignoreNullFields', 'false'))"
        columns.append(column)
    listed = ", ".join(columns)
    null = " or ".join(f"{quoted(name)} is null" for name in names)
    return {
        KEY: f"if({null}, null, xxhash64({listed}))",
        CHECK: f"xxhash64('tidegate', {listed})",
    }


def _normalize_zeros(kind: DataType, sql: str, depth: int = 0) -> str:
    """The value with 0.0 instead of -0.0 at any depth: they are the same key, as in Spark's own joins."""
    if isinstance(kind, FloatType | DoubleType):
        return f"({sql} + cast(0 as {kind.simpleString()}))"
    if isinstance(kind, ArrayType):
        element = f"e{depth}"
        inner = _normalize_zeros(kind.elementType, element, depth + 1)
        return sql if inner == element else f"transform({sql}, {element} -> {inner})"
    if isinstance(kind, StructType):
        fields = [f"{sql}.{quoted(field.name)}" for field in kind.fields]
        inners = [_normalize_zeros(f.dataType, at, depth) for f, at in zip(kind.fields, fields, strict=True)]
        if inners == fields:
            return sql
        parts = ", ".join(f"'f{i}', {inner}" for i, inner in enumerate(inners))
        return f"if({sql} is null, null, named_struct({parts}))"
    return sql


def number_sql(frame: SideFrame, name: str, condition: Condition) -> str:
    """A value as a number that can be compared by this condition: a 64-bit integer, or a double."""
    kind = frame.by_name(name).dataType
    if isinstance(kind, FloatType | DoubleType):
        return f"cast({quoted(name)} as double)"
    if not is_exact(kind) or isinstance(kind, BooleanType):
        raise InputError(
            f"the condition {condition!r} needs numbers or times; {name!r} is {kind.simpleString()}; "
            f"cast it to double or bigint"
        )
    return integer_sql(frame, name)
