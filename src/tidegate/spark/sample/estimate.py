"""Estimates of aggregates over a join from a sample of it, as a DataFrame."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import TYPE_CHECKING, Final, cast

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.errors import PySparkException
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812 - its usual name
from pyspark.sql.types import DoubleType, FloatType, LongType, NumericType, StructField, StructType

from tidegate.arrow_columns import one_chunk
from tidegate.sampling.estimates.aggregate import Aggregate
from tidegate.sampling.estimates.estimate import estimate as of_columns
from tidegate.sampling.estimates.intervals import check_level
from tidegate.sampling.estimates.sample_design import INDEPENDENT, Design, listed
from tidegate.spark.frames.durations import microseconds
from tidegate.spark.frames.explained_plan import check_not_chained
from tidegate.spark.frames.side import add_watermark, check_frame, quoted, watermark_delay
from tidegate.spark.session.configuration import shuffle_partitions
from tidegate.types import InputError, check_choice

if TYPE_CHECKING:
    from datetime import timedelta

FIGURES: Final = ("estimate", "low", "high", "rows")
_INPUTS: Final = ("value", "probability", "owner", "shown")
_RESERVOIRS: Final = ("reservoir", "progressive", "counted")


def estimate(
    sample: DataFrame,
    what: str,
    *,
    by: str | Sequence[str] | None = None,
    window: str | timedelta | None = None,
    every: str | timedelta | None = None,
    level: float = 0.9,
    method: Design | None = None,
    time: str | None = None,
    lateness: str | timedelta | None = None,
    probability: str = "probability",
    owner: str | Sequence[str] = "owner",
    stratum: str | Sequence[str] | None = None,
    shown: str = "shown",
) -> DataFrame:
    """Estimate an aggregate over all results of a join from a sample of them, batch or streaming.

    Estimates and intervals are those of `tidegate.sampling.estimate`. The sampled results of a group are processed by
    one worker, with 24 or 32 bytes each; a reservoir is processed as a whole. On a stream, an estimate is returned
    once the watermark has passed its window; until then its results are in the state.

    Parameters
    ----------
    sample
        The sampled results. A stream needs a watermark on `time`, or `lateness`, and a `window`. The stream that
        `tidegate.sample` returns has no watermark, and Spark does not allow one to be set on it: estimate from its
        micro-batches (`foreachBatch`), or write it and read it as another stream.
    what
        `count(*)`, `count(x)`, `sum(x)`, `avg(x)`, `median(x)` or `quantile(x, 0.9)`, where `x` is a column or any
        expression of Spark SQL over the sample's columns. Nulls are skipped, as in SQL.
    by
        Columns: one estimate for each of their values. A group without a sampled result is not returned, which does
        not mean that it has no results.
    window, every
        The length of windows of event time, and the interval between them ("10 minutes", "1 minute"), as in Spark's
        `window` function: one estimate for each window. By default windows do not overlap.
    level
        The confidence level: the probability with which the interval contains the true value.
    method
        How the sample was drawn, as in `tidegate.sampling.estimate`; by default the columns `owner` and `shown`
        decide. Reservoirs ("reservoir", "progressive", "counted") need a batch DataFrame.
    time
        The column of event time, for windows.
    lateness
        Sets a watermark with this delay.
    probability, owner, stratum
        Names of columns: the inclusion probability of the result; the row that owns the result (null: the result was
        drawn independently); the reservoir of the result, if several reservoirs were merged.
    shown
        The name of an optional column of floating-point numbers: the probability with which the owner of the result
        was kept.

    Returns
    -------
    DataFrame
        The columns of `by`, `window` (a struct of start and end), `estimate`, `low`, `high`, and `rows`: the number
        of sampled results with a value. `low` or `high` is null if the sample is too small for it.
    """
    check_frame(sample, "sample")
    aggregate = Aggregate.parse(what)
    names = listed(by)
    check_level(level)
    if method is not None:
        check_choice(method, Design, "method")
    if stratum is not None and method != "counted":
        raise InputError(f"stratum={stratum!r} needs method='counted'; set that, or remove stratum=")
    owners = listed(stratum if method == "counted" else owner)
    has_owners = all(name in sample.columns for name in owners)
    has_shown = shown in sample.columns and isinstance(sample.schema[shown].dataType, DoubleType | FloatType)
    uses_shown = method in (None, *INDEPENDENT) and has_owners and has_shown
    clustered = uses_shown or (method not in INDEPENDENT and (method is not None or has_owners))
    if not clustered:
        owners = []
    _check_names(sample, names, [probability, *owners, *listed(time)])
    frame = _watermarked(sample, window, time, lateness, method)
    columns = [F.col(quoted(name)).alias(f"k{i}") for i, name in enumerate(names)]
    columns += [
        _value(sample, aggregate, what).alias("value"),
        F.col(quoted(probability)).cast("double").alias("probability"),
        _unit(owners).alias("owner"),
        *([F.col(quoted(shown)).cast("double").alias("shown")] if uses_shown else []),
    ]
    windows = None
    if window is not None and time is not None:
        windows = _TimeWindows.of(window, every)
        frame = _refuse_null_times(frame, time)
        columns.append(
            (windows.time_of(frame, time) if method == "counted" else windows.assign(time)).alias("w")
        )
    elif every is not None:
        raise InputError(f"every={every!r} needs a window; set window= and time=, or remove every=")
    request = _EstimateRequest(_of_value(aggregate), level, method, clustered=clustered)
    inputs = frame.select(*columns)
    keys = [name for name in inputs.columns if name not in _INPUTS]
    if windows is not None and method == "counted":
        estimates = _estimate_reservoirs(inputs, keys, request, windows)
    else:
        estimates = (_estimate_stream if frame.isStreaming else _estimate_batch)(inputs, keys, request)
    named = [F.col(f"k{i}").alias(name) for i, name in enumerate(names)]
    return estimates.select(*named, *([F.col("w").alias("window")] if "w" in keys else []), *FIGURES)


@dataclass(frozen=True)
class _EstimateRequest:
    """The parameters of an estimate, sent to workers; `clustered` states whether `owner` is used."""

    what: str
    level: float
    method: Design | None
    clustered: bool

    def estimate(self, table: pa.Table, by: Sequence[str], windows: _TimeWindows | None = None) -> pa.Table:
        """Estimate for each group, from `value`, `probability`, `owner`, `shown` if used, and `w` with windows."""
        reservoirs = self.method == "counted"
        return of_columns(
            table if self.clustered else table.drop_columns(["owner"]),
            self.what,
            by=by,
            level=self.level,
            method=self.method,
            stratum="owner" if reservoirs else None,
            window=windows.length if windows else None,
            every=windows.interval if windows else None,
            time="w",
        )


def _check_names(sample: DataFrame, by: list[str], others: list[str]) -> None:
    for name in (*by, *others):
        if name not in sample.columns:
            raise InputError(f"sample has no column {name!r}; it has {', '.join(sample.columns)}")
    reserved = next((name for name in by if name in (*FIGURES, "window")), None)
    if reserved is not None:
        raise InputError(
            f"by={reserved!r} is also the name of a result column; rename it, e.g. withColumnRenamed"
        )


def _watermarked(
    sample: DataFrame,
    window: str | timedelta | None,
    time: str | None,
    lateness: str | timedelta | None,
    method: Design | None,
) -> DataFrame:
    """Refuse a stream whose estimates would never be returned, and set the watermark of `lateness`."""
    if window is not None and time is None:
        raise InputError(f"window={window!r} needs the column of event time; name it with time=")
    if not sample.isStreaming:
        return sample
    if method in _RESERVOIRS:
        raise InputError(
            f"method={method!r} needs a batch DataFrame, because a reservoir on a stream changes; estimate within "
            "foreachBatch"
        )
    if window is None or time is None:
        raise InputError("an estimate over a whole stream would never be complete; set window= and time=")
    check_not_chained("sample", sample)
    if lateness is not None:
        sample = add_watermark("sample", sample, time, lateness)
    if watermark_delay(sample, time) is None:
        raise InputError(
            f"sample has no watermark on {time!r}, so that no window would ever be complete; "
            f'add withWatermark("{time}", "10 minutes"), or lateness="10 minutes"'
        )
    return sample


def _value(sample: DataFrame, aggregate: Aggregate, what: str) -> Column:
    """The values to aggregate; 1 for a count."""
    if aggregate.of is None:
        return F.lit(1.0)
    value = F.expr(aggregate.of)
    try:
        # With "*", Spark refuses an expression that contains an aggregate.
        kind = sample.select("*", value.alias("value")).schema.fields[-1].dataType
    except PySparkException as error:
        raise InputError(
            f"{what!r}: {str(error).splitlines()[0]}; the sample has {', '.join(sample.columns)}"
        ) from error
    if aggregate.kind == "count":
        return F.when(value.isNotNull(), F.lit(1.0))
    if not isinstance(kind, NumericType):
        raise InputError(
            f"{what!r} needs numbers, but its argument is of type {kind.simpleString()}; cast it"
        )
    return value.cast("double")


def _of_value(aggregate: Aggregate) -> str:
    if aggregate.kind == "quantile":
        return f"quantile(value, {aggregate.q!r})"
    return f"{aggregate.kind}({'*' if aggregate.of is None else 'value'})"


def _unit(names: list[str]) -> Column:
    """One number for each cluster; null for a result without one."""
    if not names:
        return F.lit(None).cast("long")
    columns = [F.col(quoted(name)) for name in names]
    complete = reduce(Column.__and__, (column.isNotNull() for column in columns))
    return F.when(complete, F.xxhash64(*columns))


def _refuse_null_times(frame: DataFrame, time: str) -> DataFrame:
    """Raise an error for a null time, which Spark's `window` would skip silently; a watermark stays."""
    message = f"sample.{time} has a null; set the time of each result, or remove such rows"
    known = F.coalesce(F.col(quoted(time)), F.raise_error(F.lit(message)))
    return frame.withColumn(time, known.alias(time, metadata=frame.schema[time].metadata))


@dataclass(frozen=True)
class _TimeWindows:
    """Windows of Spark's `window` function, in microseconds; they begin at multiples of `interval`."""

    length: int
    interval: int

    @classmethod
    def of(cls, window: str | timedelta, every: str | timedelta | None) -> _TimeWindows:
        length = microseconds(window, "window")
        interval = length if every is None else microseconds(every, "every")
        if not 0 < interval <= length:
            raise InputError(
                f"window and every must be positive, and every at most window; got {window!r} and {every!r}"
            )
        return cls(length, interval)

    def assign(self, time: str) -> Column:
        """The windows of each result; a result is repeated for each of its windows."""
        return F.window(F.col(quoted(time)), f"{self.length} microseconds", f"{self.interval} microseconds")

    def time_of(self, frame: DataFrame, time: str) -> Column:
        """The time of each result, with the type of a window's start."""
        [window] = frame.select(self.assign(time)).schema.fields
        return F.col(quoted(time)).cast(cast("StructType", window.dataType)["start"].dataType)


def _estimate_batch(inputs: DataFrame, keys: list[str], request: _EstimateRequest) -> DataFrame:
    """Distribute groups over workers; a reservoir goes to one worker."""
    partitions = shuffle_partitions(inputs.sparkSession)
    flat, fields = _flat(inputs, keys)
    by = [field.name for field in fields]
    distribute = by and request.method != "counted"
    bucket = F.pmod(F.xxhash64(*by), F.lit(partitions)) if distribute else F.lit(0)

    def estimate_groups(table: pa.Table) -> pa.Table:
        return request.estimate(table.drop_columns(["bucket"]), by)

    grouped = flat.withColumn("bucket", bucket).groupBy("bucket")
    return _structured(grouped.applyInArrow(estimate_groups, _schema(fields)), keys)


def _estimate_reservoirs(
    inputs: DataFrame, keys: list[str], request: _EstimateRequest, windows: _TimeWindows
) -> DataFrame:
    """Estimate on one worker and assign windows there: a result of several windows counts once in its reservoir."""
    by = [name for name in keys if name != "w"]
    fields = [StructField(name, inputs.schema[name].dataType) for name in by]
    fields += [StructField(name, inputs.schema["w"].dataType) for name in ("start", "end")]
    # In the core, windows end at multiples of the interval; here they begin there.
    shift, length = (
        pa.scalar(span, pa.duration("us")) for span in (windows.length % windows.interval, windows.length)
    )

    def estimate_windows(table: pa.Table) -> pa.Table:
        shifted = table.drop_columns(["w"]).append_column("w", pc.subtract(table.column("w"), shift))
        found = request.estimate(shifted, by, windows)
        end = pc.add(found.column("window_end"), shift)
        columns = {name: found.column(name) for name in by} | {"start": pc.subtract(end, length), "end": end}
        return pa.table(columns | {name: found.column(name) for name in FIGURES})

    return _structured(inputs.groupBy().applyInArrow(estimate_windows, _schema(fields)), keys)


def _estimate_stream(inputs: DataFrame, keys: list[str], request: _EstimateRequest) -> DataFrame:
    """Let Spark keep the results of each group until its window is complete."""
    used = [name for name in inputs.columns if name in _INPUTS]
    lists = inputs.groupBy(*keys).agg(F.collect_list(F.struct(*used)).alias("inputs"))
    flat, fields = _flat(lists, keys)
    by = [field.name for field in fields]
    return _structured(flat.mapInArrow(_estimate_lists(request, by), _schema(fields)), keys)


def _estimate_lists(
    request: _EstimateRequest, by: list[str]
) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    def estimate_lists(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            lists = batch.column("inputs")
            inputs = one_chunk(pa.chunked_array([pc.list_flatten(lists)]))
            names = [field.name for field in inputs.type]
            columns = dict(zip(names, inputs.flatten(), strict=True))
            columns["place"] = pc.list_parent_indices(lists)
            found = request.estimate(pa.table(columns), ["place"])
            rows = pa.Table.from_batches([batch.select(by)]).take(found.column("place"))
            for name in FIGURES:
                rows = rows.append_column(name, found.column(name))
            yield from rows.to_batches()

    return estimate_lists


def _flat(frame: DataFrame, keys: list[str]) -> tuple[DataFrame, list[StructField]]:
    """Replace the window by two columns, which Arrow can compare; returns also the fields of the keys."""
    columns = [F.col(name) for name in frame.columns if name != "w"]
    names = [name for name in keys if name != "w"]
    if "w" in keys:
        columns += [F.col("w.start").alias("start"), F.col("w.end").alias("end")]
        names += ["start", "end"]
    flat = frame.select(*columns)
    ordered = flat.select(*names, *(name for name in flat.columns if name not in names))
    return ordered, [StructField(name, ordered.schema[name].dataType) for name in names]


def _structured(flat: DataFrame, keys: list[str]) -> DataFrame:
    return flat.withColumn("w", F.struct("start", "end")) if "w" in keys else flat


def _schema(keys: list[StructField]) -> StructType:
    figures = [StructField(name, DoubleType()) for name in FIGURES[:-1]]
    return StructType([*keys, *figures, StructField(FIGURES[-1], LongType())])
