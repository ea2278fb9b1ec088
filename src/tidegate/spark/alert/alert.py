"""Threshold alarms over several streams on Spark: DataFrames in, a DataFrame of alarms out."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from functools import reduce
from typing import TYPE_CHECKING, Final, TypeAlias

import pyarrow as pa
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812 - its usual name
from pyspark.sql.pandas.types import to_arrow_type
from pyspark.sql.types import (
    BooleanType,
    DataType,
    DoubleType,
    NumericType,
    StringType,
    StructField,
    StructType,
)

from tidegate.alerts import Certificate, Topology, certify
from tidegate.alerts.certification.proof import KnownShape
from tidegate.spark.alert.bucket import ALERT, TIME, VALUE, AlertPlan, carried, share_of
from tidegate.spark.alert.processor import AlertProcessor, alert_job
from tidegate.spark.frames.durations import microseconds
from tidegate.spark.frames.side import INTEGERS, SideFrame, check_frame, join_key, quoted
from tidegate.spark.packing.buckets import bucket_count
from tidegate.spark.packing.columns import travelled
from tidegate.spark.packing.packed_rows import CHECK, CONTENT, KEY, PACKED, RESULTS, Pack, unpack
from tidegate.spark.session.configuration import check_state_store, shuffle_partitions, warn_about_partitions
from tidegate.spark.state.layout import NAME, checked_name
from tidegate.types import Budget, InputError

if TYPE_CHECKING:
    from datetime import timedelta

Source: TypeAlias = "DataFrame | tuple[DataFrame, str]"

_FEWEST: Final = 2


def alert(
    streams: Mapping[str, Source],
    *,
    on: str | Sequence[str] | None,
    time: str,
    within: str | timedelta,
    when: str,
    domain: Mapping[str, tuple[float, float]] | None = None,
    vouch: Mapping[str, KnownShape] | None = None,
    hop: str | timedelta | None = None,
    topology: Sequence[tuple[str, str]] | None = None,
    lateness: str | timedelta | None = None,
    carry: str | Sequence[str] = (),
    budget: Budget | int | str | None = None,
    buckets: int | None = None,
    name: str = NAME,
) -> DataFrame:
    """Raise an alarm where readings of several streams, close in time, fulfil a condition.

    All are streaming, or all are batch. An arrival raises one alarm at most, the highest, with rows of the others
    that came before it; rows of a micro-batch come in order of event time, at equal times in the order of the
    streams. Rows that cannot decide an alarm are not kept; whether an arrival raises one, and how high, is the same
    as if all were, but its partners may be others. See `tidegate.alerts` for what is promised.

    The watermark is the least of all streams': one that is silent holds it back, and of the others the rows are kept
    that can still decide an alarm. A row at or before the watermark of the previous micro-batch is late and dropped.
    Rows that are late, without a key or a time, or whose value is null or NaN raise nothing and are counted:
    `tidegate.inspect(checkpoint, "counts")`.

    Parameters
    ----------
    streams
        A DataFrame by the name that the condition has for its value. The value is the column of that name; or give a
        pair `(df, "expression")`, another column or any expression of Spark SQL.
    on
        The key: one column, or several, that all streams have; None if all rows belong together.
    time
        The column of event time that all have. Streaming ones need a watermark on it, or `lateness`.
    within
        How far apart the times of an alarm's rows may be, each two of joined streams: "10 seconds", or a timedelta.
    when
        The condition, as Spark SQL over the streams' names: "ln(h/100) + 18.678*a/(257.14+a) - s > 0".
    domain
        The least and greatest value of each stream; see `tidegate.alerts.certify`. Without it, any number. Rows with
        other values are counted, kept and compared, but stand in for no other; see `tidegate.alerts.KeyedFinder`.
    vouch
        How the condition depends on a stream ("quasiconvex", "increasing", "decreasing"), where you answer for it.
    hop
        Rows are joined that lie in one of the windows of length `within` that begin every `hop`, as in Spark's
        `window`: from the epoch, and without their end.
    topology
        Which pairs of streams must be close: `[("h", "a"), ("a", "s")]` for a chain. By default all of them.
    lateness
        Sets a watermark with this delay on all streams.
    carry
        Further columns, of the streams that have them, that an alarm is to tell of its rows: "sensor". They are kept
        with each row that is. Of rows alike in key, time and value it is any one's.
    budget
        What the whole query may keep, in rows or bytes ("64 MB"), an even share for each stream and bucket. Beyond it
        rows are shed, alarms may be missed, a worker warns, and `inspect` counts them. In bytes every row counts as
        much as the largest that is there, with what it carries and a key of its own. None: as much as must be kept.
    buckets
        Into how many parts keys and state are divided. By default as many as the query has shuffle partitions, at
        most 64. A restart needs the same number; by default it has that of the checkpoint.
    name
        As in `tidegate.join`: what it is called, where a query has several.

    Returns
    -------
    DataFrame
        The key's columns; `at`, the time of the arrival that raised the alarm; `stream`, its stream; `margin`, by how
        much the threshold is exceeded; then for each stream the time (`h_time`) and the value (`h`, a double) of its
        row, and what it carries (`h_sensor`), under the stream's name.
    """
    sources, names = _sources(streams), _key_names(on)
    certificate = certify(when, domain, vouch=vouch)
    _check_inputs(certificate, sources)
    length, step = _length(within, "within"), None if hop is None else _length(hop, "hop")
    joined = _topology(topology, list(sources), length)
    extra = _carried(carry, sources)
    frames = _frames(sources, names, time, lateness, extra)
    spark = next(iter(frames.values())).frame.sparkSession
    _check_understood(when, certificate, next(iter(frames.values())))
    streaming = bool(next(iter(frames.values())).frame.isStreaming)
    count = bucket_count(buckets, shuffle_partitions(spark)) if names else _one(buckets)
    if streaming:
        check_state_store(spark)
        warn_about_partitions(spark, count, stacklevel=2)
    total, fixed = Budget.of(budget), buckets is not None or not names or not streaming
    keys, clock = {name: _widest(name, frames) for name in names}, _widest(time, frames)
    along = {
        name: {column: frame.by_name(column).dataType for column in extra[name]}
        for name, frame in frames.items()
    }
    schema = _schema(keys, clock, along)
    plan = AlertPlan(
        certificate,
        joined,
        step,
        tuple(frames),
        tuple(map(_arrow, keys.values())),
        _arrow(clock),
        {name: tuple(map(_arrow, columns.values())) for name, columns in along.items()},
        share_of(total, count, len(frames)),
        _layout(certificate, joined, step, keys, along, count) | {"name": checked_name(name)},
        total,
        fixed,
    )
    _warn(certificate, plan.finder().topology)
    packs = [
        frame.mapInArrow(Pack(number, count, KEY, fixed), PACKED)
        for number, frame in enumerate(_travelling(frames, names, extra))
    ]
    grouped = reduce(DataFrame.union, packs).groupBy("bucket")
    if streaming:
        results = grouped.transformWithStateInPandas(AlertProcessor(plan), RESULTS, "Append", "EventTime")
    else:
        results = grouped.applyInArrow(alert_job(plan), RESULTS)
    return results.mapInArrow(unpack, schema)


def _sources(streams: Mapping[str, Source]) -> dict[str, tuple[DataFrame, str]]:
    """Each stream's DataFrame and the expression of its value."""
    if not isinstance(streams, Mapping) or len(streams) < _FEWEST:
        raise InputError(
            f"streams is {streams!r}; give at least two DataFrames by name, e.g. {{'a': air, 's': surface}}"
        )
    found = {}
    for name, source in streams.items():
        frame, value = (
            source if isinstance(source, tuple) and len(source) == _FEWEST else (source, quoted(name))
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
        live, still = (next(name for name, is_so in modes.items() if is_so == kind) for kind in (True, False))
        raise InputError(
            f"{live!r} is streaming and {still!r} is not; read all with spark.readStream, or all with spark.read"
        )
    return found


def _key_names(on: str | Sequence[str] | None) -> list[str]:
    if on is None:
        return []
    names = [on] if isinstance(on, str) else list(on) if isinstance(on, Sequence) else []
    if not names or not all(isinstance(name, str) for name in names):
        raise InputError(f"on={on!r} names no column; write on='key', on=['a', 'b'], or on=None for one key")
    return names


def _length(value: str | timedelta, what: str) -> int:
    length = microseconds(value, what)
    if length <= 0:
        raise InputError(f"{what}={value!r} is no length of time; give one above 0, e.g. '10 seconds'")
    return length


def _check_inputs(certificate: Certificate, sources: Mapping[str, object]) -> None:
    condition = certificate.condition
    for name in condition.inputs:
        if name not in sources:
            raise InputError(
                f"when={condition.sql!r} looks at {name!r}, which is no stream; there is {', '.join(sources)}"
            )
    for name in sources:
        if name not in condition.inputs:
            raise InputError(
                f"stream {name!r} does not occur in when={condition.sql!r}; leave it out, or use it"
            )


def _topology(pairs: Sequence[tuple[str, str]] | None, names: list[str], within: int) -> Topology:
    if pairs is None:
        return Topology.clique(names, within)
    try:
        edges = tuple((left, right) for left, right in pairs)
    except (TypeError, ValueError) as error:
        raise InputError(
            f"topology={pairs!r} is no list of pairs; write e.g. [('{names[0]}', '{names[1]}')]"
        ) from error
    for name in (name for edge in edges for name in edge):
        if name not in names:
            raise InputError(f"topology joins {name!r}, which is no stream; there is {', '.join(names)}")
    found = Topology(edges, within)
    apart = [name for name in names if name not in found.streams]
    if apart:
        raise InputError(
            f"topology joins {apart[0]!r} to nothing; add a pair, e.g. ({names[0]!r}, {apart[0]!r})"
        )
    return found


def _carried(carry: str | Sequence[str], sources: dict[str, tuple[DataFrame, str]]) -> dict[str, list[str]]:
    """The columns that the rows of each stream carry."""
    names = [carry] if isinstance(carry, str) else list(carry)
    known = {name: frame.columns for name, (frame, _) in sources.items()}
    for name in names:
        if not any(name in columns for columns in known.values()):
            listed = "; ".join(f"{of!r} has {', '.join(columns)}" for of, columns in known.items())
            raise InputError(f"carry names {name!r}, which no stream has: {listed}")
    return {of: [name for name in dict.fromkeys(names) if name in columns] for of, columns in known.items()}


def _frames(
    sources: dict[str, tuple[DataFrame, str]],
    keys: list[str],
    time: str,
    lateness: str | timedelta | None,
    carry: dict[str, list[str]],
) -> dict[str, SideFrame]:
    """The columns that are needed of each stream, looked over."""
    frames = {}
    for name, (frame, value) in sources.items():
        for column in (*keys, time):
            if column not in frame.columns:
                raise InputError(
                    f"stream {name!r} has no column {column!r}; it has {', '.join(frame.columns)}"
                )
        try:
            needed = dict.fromkeys((*keys, time, *carry[name]))
            hidden = "v" + "_" * max(map(len, needed))  # a name that none of these has
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
        for how, column in zip(frames[name].carriers, narrow.columns, strict=True):
            if how:
                raise InputError(
                    f"{column!r} is of type {how.kind.simpleString()}, which cannot be used here; cast it to a string"
                )
    _check_alike(frames, [*keys, time])
    return frames


def _check_alike(frames: dict[str, SideFrame], columns: list[str]) -> None:
    """Key and time must be of one type in all streams; whole numbers of any size go together."""
    (one, first), *others = frames.items()
    for name, frame in others:
        for column in columns:
            a, b = first.by_name(column).dataType, frame.by_name(column).dataType
            if a.simpleString() != b.simpleString() and not (
                isinstance(a, INTEGERS) and isinstance(b, INTEGERS)
            ):
                raise InputError(
                    f"{column!r} is {a.simpleString()} in {one!r}, {b.simpleString()} in {name!r}; cast one, "
                    f"e.g. F.col({column!r}).cast({a.simpleString()!r})"
                )


def _widest(column: str, frames: dict[str, SideFrame]) -> DataType:
    """The type that holds every stream's key: of whole numbers the largest."""
    kinds = [frame.by_name(column).dataType for frame in frames.values()]
    return max(kinds, key=lambda kind: INTEGERS.index(type(kind)) if isinstance(kind, INTEGERS) else 0)


def _arrow(kind: DataType) -> pa.DataType:
    return travelled(to_arrow_type(kind, timezone="UTC"))


def _check_understood(when: str, certificate: Certificate, frame: SideFrame) -> None:
    """Let Spark say, on no rows, whether it reads the condition, too."""
    spark = frame.frame.sparkSession
    fields = [StructField(name, DoubleType()) for name in certificate.condition.inputs]
    try:
        kind = spark.createDataFrame([], StructType(fields)).select(F.expr(when)).schema.fields[0].dataType
    except PySparkException as error:
        raise InputError(f"when={when!r}: {str(error).splitlines()[0]}") from error
    if not isinstance(kind, BooleanType):
        raise InputError(f"when={when!r} is of type {kind.simpleString()}; write a condition, true or false")


def _one(buckets: int | None) -> int:
    if (buckets or 1) != 1:
        raise InputError(f"buckets={buckets} need a key to divide rows by: name it with on=")
    return 1


def _schema(keys: dict[str, DataType], time: DataType, carried: dict[str, dict[str, DataType]]) -> StructType:
    fields = [StructField(name, kind, nullable=False) for name, kind in keys.items()]
    fields += [
        StructField("at", time, nullable=False),
        StructField("stream", StringType(), nullable=False),
        StructField("margin", DoubleType(), nullable=False),
    ]
    for name, columns in carried.items():
        fields.append(StructField(f"{name}_time", time, nullable=False))
        fields.append(StructField(name, DoubleType(), nullable=False))
        fields += [StructField(f"{name}_{column}", kind) for column, kind in columns.items()]
    folded = [field.name.casefold() for field in fields]
    double = next((field.name for field in fields if folded.count(field.name.casefold()) > 1), None)
    if double is not None:
        raise InputError(
            f"the result would have two columns {double!r} (case aside); rename the key, or the stream and its name "
            "in when="
        )
    return StructType(fields)


def _layout(
    certificate: Certificate,
    topology: Topology,
    hop: int | None,
    keys: dict[str, DataType],
    carried: dict[str, dict[str, DataType]],
    buckets: int,
) -> dict[str, object]:
    told = {
        name: [[column, kind.json()] for column, kind in columns.items()]
        for name, columns in carried.items()
        if columns
    }
    # Which states had not at first: it is only compared where it is asked for.
    return ({"carry": told} if told else {}) | {
        "kind": ALERT,
        "buckets": buckets,
        "streams": list(carried),
        "on": [[name, kind.json()] for name, kind in keys.items()],
        "when": certificate.condition.sql,
        "shapes": dict(certificate.shapes()),
        "domain": {name: list(map(str, ends)) for name, ends in certificate.domain.items()},
        "topology": [list(edge) for edge in topology.edges],
        "within": topology.within,
        "hop": hop,
    }


def _warn(certificate: Certificate, topology: Topology) -> None:
    """Say of which streams every row is kept, and why."""
    for told in certificate.warnings:
        warnings.warn(told, stacklevel=3)
    for name, shape in certificate.shapes().items():
        omission = topology.omission(name)
        if omission.omega is None and shape != "any":
            warnings.warn(f"every row of {name!r} is kept: {omission.reason}", stacklevel=3)


def _travelling(
    frames: dict[str, SideFrame], keys: list[str], carry: dict[str, list[str]]
) -> list[DataFrame]:
    """What is sent of each stream: hashes of the key, its columns, the time, the value, and what rows carry."""
    (_, first), *others = frames.items()
    hashes = [{KEY: "0L"} for _ in frames]
    if keys:
        found = [join_key(first, frame, keys, "=", None) for _, frame in others]
        hashes = [found[0].left, *(pair.right for pair in found)]
    sent = []
    for (name, frame), expressions in zip(frames.items(), hashes, strict=True):
        # Rows without a key are only counted, wherever they go.
        whole = {CHECK: "0L", CONTENT: "0L"} | expressions
        columns = [F.expr(sql).alias(hidden) for hidden, sql in whole.items()]
        columns += [F.col(quoted(key)).alias(f"c{i}") for i, key in enumerate(keys)]
        columns += [F.col(quoted(column)).alias(carried(i)) for i, column in enumerate(carry[name])]
        columns.append(F.col(quoted(frame.time)).alias(TIME))
        columns.append(F.col(quoted(frame.names[-1])).cast("double").alias(VALUE))
        sent.append(frame.frame.select(*columns))
    return sent
