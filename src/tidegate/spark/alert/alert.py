"""`tidegate.alert`: threshold alarms over several DataFrames."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812 - its usual name
from pyspark.sql.types import (
    DataType,
    DoubleType,
    StringType,
    StructField,
    StructType,
)

from tidegate.alerts import Certificate, Topology, certify
from tidegate.alerts.certification.proof import KnownShape
from tidegate.spark.alert.arguments import (
    Source,
    check_carried,
    check_inputs,
    check_key,
    check_one_bucket,
    check_parsed_by_spark,
    check_sources,
    check_topology,
    positive_microseconds,
    select_columns,
    widest_type,
)
from tidegate.spark.alert.processor import AlertProcessor, alert_job
from tidegate.spark.bucket.alert.plan import ALERT, TIME, VALUE, AlertPlan, budget_share, carried_column
from tidegate.spark.frames.keys import join_key
from tidegate.spark.frames.side import SideFrame, quoted
from tidegate.spark.packing.arrow_types import arrow_type
from tidegate.spark.packing.columns import CHECK, CONTENT, KEY
from tidegate.spark.query.bucket_query import BucketQuery, prepare_session
from tidegate.spark.session.configuration import shuffle_partitions
from tidegate.spark.session.task import bucket_count
from tidegate.spark.state.layout import NAME, check_name
from tidegate.types import Budget, InputError

if TYPE_CHECKING:
    from datetime import timedelta


def alert(
    streams: Mapping[str, Source],
    *,
    on: str | Sequence[str] | None,
    time: str,
    within: str | timedelta,
    when: str,
    domain: Mapping[str, tuple[float, float]] | None = None,
    assume_shape: Mapping[str, KnownShape] | None = None,
    hop: str | timedelta | None = None,
    topology: Sequence[tuple[str, str]] | None = None,
    lateness: str | timedelta | None = None,
    carry: str | Sequence[str] = (),
    budget: Budget | int | str | None = None,
    buckets: int | None = None,
    name: str = NAME,
) -> DataFrame:
    """Raise an alarm if readings of several streams, close in time, fulfil a condition.

    All streams are streaming, or all are batch. An arrival raises at most one alarm, the highest, with rows of the
    other streams that arrived before it. Rows of a micro-batch arrive in order of event time, at equal times in the
    order of the streams. Rows that cannot decide an alarm are not kept. Whether an arrival raises an alarm, and how
    high, is the same as if all rows were kept, but its partners may be different. See `tidegate.alerts` for the
    guarantees.

    The watermark is the minimum of all streams'. If a stream is silent, the watermark does not advance, and rows of
    the other streams that can still decide an alarm are kept. A row at or before the watermark of the previous
    micro-batch is late and dropped. Late rows, rows without a key or a time, and rows whose value is null or NaN
    raise no alarm and are counted: `tidegate.inspect(checkpoint, "counts")`.

    Parameters
    ----------
    streams
        The DataFrames by the names of their values in the condition. The value is the column of that name. For
        another column, or an expression of Spark SQL, give a pair `(df, "expression")`.
    on
        The key: one or several columns that all streams have; None for no key.
    time
        The column of event time, which all streams have. Streaming DataFrames need a watermark on it, or `lateness`.
    within
        The maximal difference between the times of rows of two joined streams: "10 seconds", or a timedelta.
    when
        The condition, as Spark SQL over the streams' names: "ln(h/100) + 18.678*a/(257.14+a) - s > 0".
    domain
        The least and greatest value of each stream; see `tidegate.alerts.certify`. By default all numbers. Rows with
        other values are counted, kept and compared, but no row is omitted because of them; see
        `tidegate.alerts.KeyedAlarmFinder`.
    assume_shape
        How the condition depends on a stream ("quasiconvex", "increasing", "decreasing"), if it cannot be proven.
    hop
        Join rows that lie in one window instead. Windows have the length `within`, and one begins every `hop`. As in
        Spark's `window`, they start at the epoch and do not include their end.
    topology
        The pairs of streams that must be close in time: `[("h", "a"), ("a", "s")]` for a chain. By default all pairs.
    lateness
        Sets a watermark with this delay on all streams.
    carry
        Further columns of the streams that have them, such as "sensor", to include in the result. They are kept with
        each kept row. If rows have the same key, time and value, they are those of any of these rows.
    budget
        What the whole query may keep, in rows or bytes ("64 MB"); each stream and bucket has an equal share. Beyond
        it rows are evicted and counted by `inspect`, alarms may be missed, and a worker warns. In bytes, every row
        counts as much as the largest one, with its carried columns and a key of its own. None for no limit.
    buckets
        The number of parts into which keys and state are divided. By default the number of shuffle partitions, at
        most
        64. A restart must use the same number; by default it uses that of the checkpoint.
    name
        The name of this alarm in a query that has several operators, as in `tidegate.join`.

    Returns
    -------
    DataFrame
        The columns of the key; `at`, the time of the arrival that raised the alarm; `stream`, its stream; `margin`,
        by how much the threshold is exceeded. Then for each stream `h`: `h_time` and `h` (a double), the time and
        the value of its row, and its carried columns, such as `h_sensor`.
    """
    sources, names = check_sources(streams), check_key(on)
    certificate = certify(when, domain, assume_shape=assume_shape)
    check_inputs(certificate, sources)
    length, step = (
        positive_microseconds(within, "within"),
        None if hop is None else positive_microseconds(hop, "hop"),
    )
    joined = check_topology(topology, list(sources), length)
    carried_names = check_carried(carry, sources)
    frames = select_columns(sources, names, time, lateness, carried_names)
    first = next(iter(frames.values())).frame
    spark, streaming = first.sparkSession, bool(first.isStreaming)
    check_parsed_by_spark(when, certificate, spark)
    count = bucket_count(buckets, shuffle_partitions(spark)) if names else check_one_bucket(buckets)
    prepare_session(spark, count, streaming=streaming, stacklevel=2)
    total, buckets_given = Budget.of(budget), buckets is not None or not names or not streaming
    keys, time_type = {name: widest_type(name, frames) for name in names}, widest_type(time, frames)
    carried = {
        name: {column: frame.by_name(column).dataType for column in carried_names[name]}
        for name, frame in frames.items()
    }
    schema = _result_schema(keys, time_type, carried)
    plan = AlertPlan(
        certificate,
        joined,
        step,
        tuple(frames),
        tuple(map(arrow_type, keys.values())),
        arrow_type(time_type),
        {name: tuple(map(arrow_type, columns.values())) for name, columns in carried.items()},
        budget_share(total, count, len(frames)),
        _layout(certificate, joined, step, keys, carried, count) | {"name": check_name(name)},
        total,
        buckets_given,
    )
    _warn_of_kept_streams(certificate, plan.new_finder().topology)
    sent = StructType([StructField(f"o{i}", f.dataType, f.nullable) for i, f in enumerate(schema)])
    query = BucketQuery(_internal_columns(frames, names, carried_names), KEY, count, buckets_given, sent)
    alarms = query.stream(AlertProcessor(plan)) if streaming else query.batch(alert_job(plan))
    return alarms.toDF(*schema.names)


def _result_schema(
    keys: dict[str, DataType], time: DataType, carried: dict[str, dict[str, DataType]]
) -> StructType:
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
    """The settings that a restart must not change, as stored in the state."""
    carry = {
        name: [[column, kind.json()] for column, kind in columns.items()]
        for name, columns in carried.items()
        if columns
    }
    # States of the first layout have no "carry". It is compared only if columns are carried.
    return ({"carry": carry} if carry else {}) | {
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


def _warn_of_kept_streams(certificate: Certificate, topology: Topology) -> None:
    """Warn of streams whose rows are all kept, with the reason."""
    for warning in certificate.warnings:
        warnings.warn(warning, stacklevel=3)
    for name, shape in certificate.shapes().items():
        omission = topology.omission(name)
        if omission.omega is None and shape != "any":
            warnings.warn(f"every row of {name!r} is kept: {omission.reason}", stacklevel=3)


def _internal_columns(
    frames: dict[str, SideFrame], keys: list[str], carry: dict[str, list[str]]
) -> list[DataFrame]:
    """Each stream with internal names: hashes of the key, its columns, the time, the value, and carried columns."""
    (_, first), *others = frames.items()
    hashes = [{KEY: "0L"} for _ in frames]
    if keys:
        pairs = [join_key(first, frame, keys, "=", None) for _, frame in others]
        hashes = [pairs[0].left, *(pair.right for pair in pairs)]
    renamed = []
    for (name, frame), expressions in zip(frames.items(), hashes, strict=True):
        # CONTENT chooses the bucket of rows without a key. These are only counted, so a constant will do.
        all_hashes = {CHECK: "0L", CONTENT: "0L"} | expressions
        columns = [F.expr(sql).alias(hidden) for hidden, sql in all_hashes.items()]
        columns += [F.col(quoted(key)).alias(f"c{i}") for i, key in enumerate(keys)]
        columns += [F.col(quoted(column)).alias(carried_column(i)) for i, column in enumerate(carry[name])]
        columns.append(F.col(quoted(frame.time)).alias(TIME))
        columns.append(F.col(quoted(frame.names[-1])).cast("double").alias(VALUE))
        renamed.append(frame.frame.select(*columns))
    return renamed
