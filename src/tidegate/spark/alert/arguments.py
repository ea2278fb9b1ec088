"""Checks of the arguments of `tidegate.alert`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Final, TypeAlias

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812 - its usual name
from pyspark.sql.types import BooleanType, DataType, DoubleType, NumericType, StructField, StructType

from tidegate.alerts import Certificate, Topology
from tidegate.spark.frames.durations import microseconds
from tidegate.spark.frames.side import INTEGERS, SideFrame, check_frame, quoted
from tidegate.types import InputError

if TYPE_CHECKING:
    from datetime import timedelta

    from pyspark.sql import SparkSession

Source: TypeAlias = "DataFrame | tuple[DataFrame, str]"

_MIN_STREAMS: Final = 2


def check_sources(streams: Mapping[str, Source]) -> dict[str, tuple[DataFrame, str]]:
    """The DataFrame of each stream, and the expression of its value."""
    if not isinstance(streams, Mapping) or len(streams) < _MIN_STREAMS:
        raise InputError(
            f"streams is {streams!r}; give at least two DataFrames by name, e.g. {{'a': air, 's': surface}}"
        )
    found = {}
    for name, source in streams.items():
        frame, value = (
            source if isinstance(source, tuple) and len(source) == 2 else (source, quoted(name))  # noqa: PLR2004 - a pair
        )
        if type(frame).__module__.split(".")[0] in ("pandas", "polars", "pyarrow"):
            check_frame(frame, f"stream {name!r}")
        if not hasattr(frame, "mapInArrow") or not isinstance(value, str):
            raise InputError(
                f"stream {name!r} is a {type(source).__name__}; give a Spark DataFrame, or (df, 'expression')"
            )
        found[name] = (frame, value)
    modes = {name: bool(frame.isStreaming) for name, (frame, _) in found.items()}
    if len(set(modes.values())) > 1:
        streaming, batch = (
            next(name for name, is_streaming in modes.items() if is_streaming == mode)
            for mode in (True, False)
        )
        raise InputError(
            f"{streaming!r} is streaming and {batch!r} is not; read all with spark.readStream, or all with spark.read"
        )
    return found


def check_key(on: str | Sequence[str] | None) -> list[str]:
    """The names of the key's columns; none if there is no key."""
    if on is None:
        return []
    names = [on] if isinstance(on, str) else list(on) if isinstance(on, Sequence) else []
    if not names or not all(isinstance(name, str) for name in names):
        raise InputError(f"on={on!r} names no column; write on='key', on=['a', 'b'], or on=None for no key")
    return names


def positive_microseconds(value: str | timedelta, name: str) -> int:
    """A positive duration in microseconds."""
    duration = microseconds(value, name)
    if duration <= 0:
        raise InputError(f"{name} must be a positive duration, e.g. '10 seconds'; got {value!r}")
    return duration


def check_inputs(certificate: Certificate, sources: Mapping[str, object]) -> None:
    """Check that the condition uses all streams and nothing else."""
    condition = certificate.condition
    for name in condition.inputs:
        if name not in sources:
            raise InputError(
                f"when={condition.sql!r} uses {name!r}, which is not a stream; the streams are: {', '.join(sources)}"
            )
    for name in sources:
        if name not in condition.inputs:
            raise InputError(
                f"stream {name!r} does not occur in when={condition.sql!r}; leave it out, or use it"
            )


def check_topology(pairs: Sequence[tuple[str, str]] | None, names: list[str], within: int) -> Topology:
    """The topology of these pairs; of all pairs by default."""
    if pairs is None:
        return Topology.clique(names, within)
    try:
        edges = tuple((left, right) for left, right in pairs)
    except (TypeError, ValueError) as error:
        raise InputError(
            f"topology={pairs!r} is not a list of pairs; write e.g. [('{names[0]}', '{names[1]}')]"
        ) from error
    for name in (name for edge in edges for name in edge):
        if name not in names:
            raise InputError(
                f"topology has {name!r}, which is not a stream; the streams are: {', '.join(names)}"
            )
    found = Topology(edges, within)
    missing = [name for name in names if name not in found.streams]
    if missing:
        raise InputError(
            f"topology has no pair with {missing[0]!r}; add one, e.g. ({names[0]!r}, {missing[0]!r})"
        )
    return found


def check_carried(
    carry: str | Sequence[str], sources: dict[str, tuple[DataFrame, str]]
) -> dict[str, list[str]]:
    """The names of the carried columns of each stream."""
    names = [carry] if isinstance(carry, str) else list(carry)
    known = {stream: frame.columns for stream, (frame, _) in sources.items()}
    for name in names:
        if not any(name in columns for columns in known.values()):
            listed = "; ".join(f"{stream!r} has {', '.join(columns)}" for stream, columns in known.items())
            raise InputError(f"carry has {name!r}, which is not a column of any stream: {listed}")
    return {
        stream: [name for name in dict.fromkeys(names) if name in columns]
        for stream, columns in known.items()
    }


def select_columns(
    sources: dict[str, tuple[DataFrame, str]],
    keys: list[str],
    time: str,
    lateness: str | timedelta | None,
    carry: dict[str, list[str]],
) -> dict[str, SideFrame]:
    """Select the columns of each stream that are needed, and check them."""
    frames = {}
    for name, (frame, value) in sources.items():
        for column in (*keys, time):
            if column not in frame.columns:
                raise InputError(
                    f"stream {name!r} has no column {column!r}; it has {', '.join(frame.columns)}"
                )
        try:
            needed = dict.fromkeys((*keys, time, *carry[name]))
            hidden = "v" + "_" * max(map(len, needed))  # longer than, so different from, all these names
            narrow = frame.select(*(F.col(quoted(column)) for column in needed), F.expr(value).alias(hidden))
            kind = narrow.schema.fields[-1].dataType
        except PySparkException as error:
            raise InputError(
                f"the value of stream {name!r}, {value}: {str(error).splitlines()[0]}; give (df, 'expression')"
            ) from error
        if not isinstance(kind, NumericType):
            raise InputError(
                f"the value of stream {name!r}, {value}, is of type {kind.simpleString()}; give a number, "
                f"e.g. (df, 'cast({value} as double)')"
            )
        frames[name] = SideFrame.of(name, narrow, time, lateness, streaming=bool(frame.isStreaming))
        for encoding, column in zip(frames[name].encodings, narrow.columns, strict=True):
            if encoding:
                raise InputError(
                    f"{column!r} is of type {encoding.kind.simpleString()}, which cannot be used here; "
                    "cast it to a string"
                )
    _check_same_types(frames, [*keys, time])
    return frames


def _check_same_types(frames: dict[str, SideFrame], columns: list[str]) -> None:
    """Check that key and time have the same types in all streams; integers may have different sizes."""
    (first_name, first), *others = frames.items()
    for name, frame in others:
        for column in columns:
            a, b = first.by_name(column).dataType, frame.by_name(column).dataType
            if a.simpleString() != b.simpleString() and not (
                isinstance(a, INTEGERS) and isinstance(b, INTEGERS)
            ):
                raise InputError(
                    f"{column!r} is {a.simpleString()} in {first_name!r}, {b.simpleString()} in {name!r}; cast one, "
                    f"e.g. F.col({column!r}).cast({a.simpleString()!r})"
                )


def widest_type(column: str, frames: dict[str, SideFrame]) -> DataType:
    """The type of a column in all streams; of integers the largest one."""
    kinds = [frame.by_name(column).dataType for frame in frames.values()]
    return max(kinds, key=lambda kind: INTEGERS.index(type(kind)) if isinstance(kind, INTEGERS) else 0)


def check_parsed_by_spark(when: str, certificate: Certificate, spark: SparkSession) -> None:
    """Check, on an empty DataFrame, that Spark can parse the condition."""
    fields = [StructField(name, DoubleType()) for name in certificate.condition.inputs]
    try:
        kind = spark.createDataFrame([], StructType(fields)).select(F.expr(when)).schema.fields[0].dataType
    except PySparkException as error:
        raise InputError(f"when={when!r}: {str(error).splitlines()[0]}") from error
    if not isinstance(kind, BooleanType):
        raise InputError(f"when={when!r} is of type {kind.simpleString()}; write a boolean condition")


def check_one_bucket(buckets: int | None) -> int:
    """The number of buckets of an alarm without a key: one."""
    if (buckets or 1) != 1:
        raise InputError(f"buckets={buckets} needs a key by which to divide rows; give one with on=")
    return 1
