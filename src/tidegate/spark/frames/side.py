"""One side of a join as a DataFrame: its columns, its time, its key, and how they are sent to Python workers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812 - its usual name
from pyspark.sql.types import (
    ArrayType,
    BooleanType,
    ByteType,
    CalendarIntervalType,
    DataType,
    DateType,
    DoubleType,
    FloatType,
    GeographyType,
    GeometryType,
    IntegerType,
    LongType,
    MapType,
    ShortType,
    StructField,
    StructType,
    TimestampNTZType,
    TimestampType,
    VariantType,
)

from tidegate.spark.frames.durations import microseconds
from tidegate.spark.frames.explained_plan import check_not_chained
from tidegate.spark.packing.packed_rows import CHECK, CONTENT, KEY
from tidegate.spark.packing.type_encoding import TypeEncoding, contains_type, encoding_of, without_watermark
from tidegate.types import SIDES, InputError

if TYPE_CHECKING:
    from datetime import timedelta

    from tidegate.types import Condition, Side

On: TypeAlias = "str | Column | Sequence[str | Column | tuple[str, str]]"

BY: Final = "b"
"""The hidden column with the hash of `by`."""
INTEGERS: Final = (ByteType, ShortType, IntegerType, LongType)
_TIMES: Final = (TimestampType, TimestampNTZType)
_UNHASHABLE: Final = (MapType, VariantType, CalendarIntervalType, GeographyType, GeometryType)
_WATERMARK: Final = "spark.watermarkDelayMs"


def check_frame(frame: object, what: str) -> None:
    """Refuse anything but a Spark DataFrame, and name the remedy."""
    if hasattr(frame, "mapInArrow") and hasattr(frame, "sparkSession"):
        return
    module = type(frame).__module__.split(".")[0]
    if module in ("pandas", "polars", "pyarrow"):
        raise InputError(
            f"{what} is a {module} {type(frame).__name__}; give spark.createDataFrame({what}), or use "
            "tidegate.simulate, which accepts it"
        )
    raise InputError(f"{what} is a {type(frame).__name__}; give a Spark DataFrame")


def quoted(name: str) -> str:
    """A column's name, quoted for SQL."""
    escaped = name.replace("`", "``")
    return f"`{escaped}`"


@dataclass(frozen=True)
class SideFrame:
    """A DataFrame that was checked, with its columns, its time column and its watermark.

    Its columns are sent to Python workers under the names c0, c1, ... so that they cannot clash with hidden columns.
    """

    side: str
    frame: DataFrame
    fields: tuple[StructField, ...]
    encodings: tuple[TypeEncoding | None, ...]
    time: str
    delay: int | None

    @classmethod
    def of(
        cls, side: str, frame: DataFrame, time: str, lateness: str | timedelta | None, *, streaming: bool
    ) -> SideFrame:
        """Check a DataFrame, and refuse one that cannot be joined."""
        names = frame.columns
        folded = [name.casefold() for name in names]
        duplicate = next((name for name in names if folded.count(name.casefold()) > 1), None)
        if duplicate is not None:
            raise InputError(
                f"{side} has two columns {duplicate!r} (ignoring case); rename one, e.g. with toDF"
            )
        _check_names(side, [time], names)
        kind = frame.schema[time].dataType
        if not isinstance(kind, _TIMES):
            raise InputError(
                f"{side}.{time} is of type {kind.simpleString()}; give a timestamp, "
                f"e.g. {side}.withColumn({time!r}, F.to_timestamp({time!r}))"
            )
        if streaming and isinstance(kind, TimestampNTZType):
            raise InputError(
                f"{side}.{time} is of type {kind.simpleString()}, for which Spark has no watermark; "
                f'cast it first: {side}.withColumn("{time}", F.col("{time}").cast("timestamp"))'
            )
        if streaming:
            check_not_chained(side, frame)
        if lateness is not None and streaming:
            frame = add_watermark(side, frame, time, lateness)
        delay = watermark_delay(frame, time) if streaming else None
        if streaming and delay is None:
            raise InputError(
                f"{side} has no watermark on {time!r}, so its state would grow without limit; "
                f'add {side}.withWatermark("{time}", "10 minutes"), or lateness="10 minutes" for all; '
                "a watermark on a column that it is derived from does not count"
            )
        fields = tuple(without_watermark(field) for field in frame.schema.fields)
        encodings = tuple(encoding_of(field.dataType, f"{side}.{field.name}") for field in fields)
        return cls(side, frame, fields, encodings, time, delay)

    @property
    def names(self) -> list[str]:
        """The names that the user gave the columns."""
        return [field.name for field in self.fields]

    @property
    def columns(self) -> tuple[str, ...]:
        """The names of the columns in Python workers."""
        return tuple(f"c{i}" for i in range(len(self.fields)))

    @property
    def time_column(self) -> str:
        """The name of the time column in Python workers."""
        return self.column(self.time)

    @property
    def described(self) -> list[list[str]]:
        """Names and types as JSON, to compare with a checkpoint and to read its rows."""
        return [[field.name, field.dataType.json()] for field in self.fields]

    def empty(self) -> DataFrame:
        """The same columns without rows, to let Spark analyze an expression."""
        return self.frame.sparkSession.createDataFrame([], StructType(list(self.fields)))

    def column(self, name: str) -> str:
        """The name of a column in Python workers."""
        return self.columns[self.names.index(name)]

    def by_name(self, name: str) -> StructField:
        """The field of this name."""
        return self.fields[self.names.index(name)]

    def transport_type(self, field: StructField) -> DataType:
        """The type in which a field is sent."""
        encoding = encoding_of(field.dataType, field.name)
        return encoding.type if encoding else field.dataType

    def encoding(self, column: str) -> TypeEncoding | None:
        """How a column was encoded to be sent; None if it was not."""
        return self.encodings[self.columns.index(column)] if column in self.columns else None

    def packed(self, keys: dict[str, str], parts: dict[str, str]) -> DataFrame:
        """The columns that are sent: the key, a hash of the content, the user's columns, and parts of a condition."""
        content = [quoted(f.name) for f in self.fields if not contains_type(f.dataType, *_UNHASHABLE)]
        columns = [F.expr(sql).alias(name) for name, sql in keys.items()]
        columns.append(F.expr(f"xxhash64({', '.join(content) or '0'})").alias(CONTENT))
        for name, field, encoding in zip(self.columns, self.fields, self.encodings, strict=True):
            column = F.col(quoted(field.name))
            columns.append((encoding.encode(column) if encoding else column).alias(name))
        columns += [F.expr(sql).alias(name) for name, sql in parts.items()]
        return self.frame.select(*columns)


def _check_names(side: str, wanted: list[str], names: Sequence[str]) -> None:
    for name in wanted:
        if name not in names:
            same = [known for known in names if known.casefold() == name.casefold()]
            hint = f"; did you mean {same[0]!r}? Names are compared with their case" if same else ""
            raise InputError(f"{side} has no column {name!r}; it has {', '.join(names)}{hint}")


def add_watermark(what: str, frame: DataFrame, time: str, lateness: str | timedelta) -> DataFrame:
    """Set the watermark of `lateness=` on a stream that has none."""
    wait = microseconds(lateness, "lateness")
    if wait < 0:
        raise InputError(f"lateness {lateness!r} is negative; give '0 seconds' or more")
    if frame.schema[time].metadata.get(_WATERMARK) is not None:
        raise InputError(f"{what} has a watermark on {time!r} already; leave out lateness={lateness!r}")
    return frame.withWatermark(quoted(time), f"{wait} microseconds")


def watermark_delay(frame: DataFrame, time: str) -> int | None:
    """The delay of the watermark on a column in microseconds; None without one.

    A column that is derived from one with a watermark has none: Spark's watermark follows the values of the original
    column, which may differ.
    """
    millis = frame.schema[time].metadata.get(_WATERMARK)
    return None if millis is None else int(millis) * 1000


@dataclass(frozen=True)
class JoinKey:
    """The key of a join.

    Parameters
    ----------
    left, right
        The SQL of the hidden columns that contain it, by name.
    shared
        Pairs (left, right) of key columns with the same name; the result has each once.
    checked
        Whether the key is a hash, so that a second hash is compared too.
    distributed_by
        The hidden column by which rows are distributed to buckets; None for one bucket.
    described
        The key as text, which must equal that in the checkpoint.
    columns
        By side, the columns that it is computed from.
    """

    left: dict[str, str]
    right: dict[str, str]
    shared: tuple[tuple[str, str], ...]
    checked: bool
    distributed_by: str | None
    described: str
    columns: dict[Side, list[str]]

    @staticmethod
    def wider(left: StructField, right: StructField) -> DataType:
        """The type that can hold the keys of both sides: the larger integer type."""
        kinds = [type(left.dataType), type(right.dataType)]
        if all(kind in INTEGERS for kind in kinds):
            return max((left.dataType, right.dataType), key=lambda kind: INTEGERS.index(type(kind)))
        return left.dataType

    def expressions(self, side: Side) -> dict[str, str]:
        """The hidden columns of one side."""
        return self.left if side == "left" else self.right


def join_key(
    left: SideFrame,
    right: SideFrame,
    on: On,
    condition: Condition,
    by: str | tuple[str, str] | None,
) -> JoinKey:
    """Check the key columns, and choose how keys are sent and compared."""
    pairs = key_pairs(on)
    if not pairs:
        raise InputError("on= names no column; write on='key' or on=['a', 'b']")
    for a, b in pairs:
        _check_names("left", [a], left.names)
        _check_names("right", [b], right.names)
        _check_key(left.by_name(a), right.by_name(b))
    shared = tuple((a, b) for a, b in pairs if a == b) if condition == "=" else ()
    described = f"{pairs} {condition} by {by}"
    names: tuple[str, ...] = (by, by) if isinstance(by, str) else by or ()
    columns: dict[Side, list[str]] = {
        side: [*(pair[i] for pair in pairs), *names[i : i + 1]] for i, side in enumerate(SIDES)
    }
    if condition == "=":
        if by is not None:
            raise InputError(f"by={by!r} needs a condition other than '='; add it to on= instead")
        sides = [_equality(frame, [pair[i] for pair in pairs]) for i, frame in enumerate((left, right))]
        exact = all(_exact(f.by_name(p[i]).dataType) for p in pairs for i, f in enumerate((left, right)))
        checked = not (exact and len(pairs) == 1)
        if not checked:
            sides = [{KEY: _integer(f, pairs[0][i])} for i, f in enumerate((left, right))]
        return JoinKey(sides[0], sides[1], shared, checked, KEY, described, columns)
    if len(pairs) != 1:
        raise InputError(f"the condition {condition!r} compares one column; got {pairs}; name one with on=")
    numbers = [{KEY: _number(f, pairs[0][i], condition)} for i, f in enumerate((left, right))]
    if by is None:
        return JoinKey(
            numbers[0],
            numbers[1],
            shared,
            checked=False,
            distributed_by=None,
            described=described,
            columns=columns,
        )
    for i, frame in enumerate((left, right)):
        _check_names(frame.side, [names[i]], frame.names)
        hashes = _equality(frame, [names[i]])
        numbers[i] |= {BY: hashes[KEY], CHECK: hashes[CHECK]}
        numbers[i][KEY] = f"if({hashes[KEY]} is null, null, {numbers[i][KEY]})"
    _check_key(left.by_name(names[0]), right.by_name(names[1]))
    return JoinKey(
        numbers[0], numbers[1], shared, checked=True, distributed_by=BY, described=described, columns=columns
    )


def key_pairs(on: On) -> list[tuple[str, str]]:
    """The key as pairs of names: (left, right)."""
    if not isinstance(on, str | Sequence):
        raise InputError(
            f"on={on!r} names no column; write on='key', on=['a', 'b'] or on=[('left_id', 'right_id')]"
        )
    names = [on] if isinstance(on, str) else list(on)
    pairs: list[tuple[Any, ...]] = [
        (name, name) if isinstance(name, str) else tuple(name) if isinstance(name, tuple | list) else (name,)
        for name in names
    ]
    for pair in pairs:
        if len(pair) != 2 or not all(isinstance(name, str) for name in pair):  # noqa: PLR2004 - left and right
            raise InputError(f"on has {pair!r}; write a name, or a pair of names (left, right)")
    return [(pair[0], pair[1]) for pair in pairs]


def _check_key(left: StructField, right: StructField) -> None:
    for field in (left, right):
        if contains_type(field.dataType, *_UNHASHABLE):
            raise InputError(
                f"{field.name!r} of type {field.dataType.simpleString()} cannot be a key: Spark defines no equality "
                "for it; use a column derived from it, e.g. to_json(...) or st_asbinary(...)"
            )
        if "collate" in field.dataType.simpleString():
            raise InputError(
                f"the key {field.name!r} is {field.dataType.simpleString()}; keys compare by their bytes: "
                f"use lower({field.name}) or {field.name} COLLATE UTF8_BINARY"
            )
    a, b = left.dataType, right.dataType
    if a.simpleString() != b.simpleString() and not (isinstance(a, INTEGERS) and isinstance(b, INTEGERS)):
        raise InputError(
            f"the left key {left.name!r} is {a.simpleString()}, the right one {right.name!r} is "
            f"{b.simpleString()}; cast one, e.g. F.col({right.name!r}).cast({a.simpleString()!r})"
        )


def _exact(kind: DataType) -> bool:
    """Whether a value is itself a 64-bit integer, so that no hash is needed."""
    return isinstance(kind, (*INTEGERS, DateType, BooleanType, *_TIMES))


def _integer(frame: SideFrame, name: str) -> str:
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


def _equality(frame: SideFrame, names: list[str]) -> dict[str, str]:
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


def _number(frame: SideFrame, name: str, condition: Condition) -> str:
    kind = frame.by_name(name).dataType
    if isinstance(kind, FloatType | DoubleType):
        return f"cast({quoted(name)} as double)"
    if not _exact(kind) or isinstance(kind, BooleanType):
        raise InputError(
            f"the condition {condition!r} needs numbers or times; {name!r} is {kind.simpleString()}; "
            f"cast it to double or bigint"
        )
    return _integer(frame, name)
