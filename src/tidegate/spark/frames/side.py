"""One side of a join as a DataFrame: its columns, its time, its key, and how they are sent to Python workers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812 - its usual name
from pyspark.sql.types import (
    ByteType,
    CalendarIntervalType,
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
from tidegate.spark.packing.columns import CONTENT
from tidegate.spark.packing.type_encoding import TypeEncoding, contains_type, encoding_of, without_watermark
from tidegate.types import InputError

if TYPE_CHECKING:
    from datetime import timedelta


INTEGERS: Final = (ByteType, ShortType, IntegerType, LongType)
TIMES: Final = (TimestampType, TimestampNTZType)
UNHASHABLE: Final = (MapType, VariantType, CalendarIntervalType, GeographyType, GeometryType)
WATERMARK: Final = "spark.watermarkDelayMs"
"""The metadata of a column that has a watermark: its delay."""


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
        check_names(side, [time], names)
        kind = frame.schema[time].dataType
        if not isinstance(kind, TIMES):
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
            check_not_chained(side, frame, carries_time=watermark_delay(frame, time) is not None)
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

    def encoding(self, column: str) -> TypeEncoding | None:
        """How a column was encoded to be sent; None if it was not."""
        return self.encodings[self.columns.index(column)] if column in self.columns else None

    def packed(self, keys: dict[str, str], parts: dict[str, str]) -> DataFrame:
        """The columns that are sent: the key, a hash of the content, the user's columns, and parts of a condition."""
        content = [quoted(f.name) for f in self.fields if not contains_type(f.dataType, *UNHASHABLE)]
        columns = [F.expr(sql).alias(name) for name, sql in keys.items()]
        columns.append(F.expr(f"xxhash64({', '.join(content) or '0'})").alias(CONTENT))
        for name, field, encoding in zip(self.columns, self.fields, self.encodings, strict=True):
            column = F.col(quoted(field.name))
            columns.append((encoding.encode(column) if encoding else column).alias(name))
        columns += [F.expr(sql).alias(name) for name, sql in parts.items()]
        return self.frame.select(*columns)


def check_names(side: str, wanted: list[str], names: Sequence[str]) -> None:
    """Refuse a column that a side does not have."""
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
    if frame.schema[time].metadata.get(WATERMARK) is not None:
        raise InputError(f"{what} has a watermark on {time!r} already; leave out lateness={lateness!r}")
    return frame.withWatermark(quoted(time), f"{wait} microseconds")


def watermark_delay(frame: DataFrame, time: str) -> int | None:
    """The delay of the watermark on a column in microseconds; None without one.

    A column that is derived from one with a watermark has none: Spark's watermark follows the values of the original
    column, which may differ.
    """
    millis = frame.schema[time].metadata.get(WATERMARK)
    return None if millis is None else int(millis) * 1000
