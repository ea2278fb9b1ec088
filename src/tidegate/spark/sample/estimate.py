"""Answers with error bars from a sampled join, as a DataFrame."""

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

from tidegate.sampling.estimates.aggregate import Aggregate
from tidegate.sampling.estimates.estimate import estimate as of_columns
from tidegate.sampling.estimates.intervals import check_level
from tidegate.sampling.estimates.sample_design import ALONE, Design, listed
from tidegate.spark.frames.durations import microseconds
from tidegate.spark.frames.explained_plan import check_not_chained
from tidegate.spark.frames.side import add_watermark, check_frame, quoted, watermark_delay
from tidegate.spark.session.configuration import shuffle_partitions
from tidegate.streams.trace import one_chunk
from tidegate.types import InputError, check_choice

if TYPE_CHECKING:
    from datetime import timedelta

FIGURES: Final = ("estimate", "low", "high", "rows")
_DRAWN: Final = ("value", "probability", "owner", "shown")
_CHANGING: Final = ("reservoir", "progressive", "counted")


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

    The figures are those of `tidegate.sampling.estimate`, which says how they come about and what to expect of them.
    The sampled results of a group are brought together on one worker: 24 or 32 bytes each, a reservoir as a whole. On
    a stream an estimate leaves once the watermark has passed its window; until then its results are in the state.

    Parameters
    ----------
    sample
        The sampled results. A streaming one needs a watermark on `time`, or `lateness`, and a `window`. The stream
        that `tidegate.sample` gives carries none, and Spark lets none be set behind it: estimate from its
        micro-batches (`foreachBatch`), or write it, and read that as a stream of its own.
    what
        `count(*)`, `count(x)`, `sum(x)`, `avg(x)`, `median(x)` or `quantile(x, 0.9)`, where `x` is a column or any
        expression of Spark SQL over the sample's columns. Nulls are skipped, as in SQL.
    by
        One estimate for each value of this column, or of these. A group of which no result was sampled is not in
        the answer: absent does not mean zero.
    window, every
        One estimate for each window of event time, too, as Spark's own `window` cuts them: how long they are, and
        how far apart ("10 minutes", "1 minute"); one after another by default.
    level
        How often the interval shall hold the truth.
    method
        How the sample was drawn. By default as the columns `owner` and `shown` say; without `shown`, results were
        in or out with all of their owner's, and without `owner` each was drawn by itself. "counted" is a
        reservoir of known size from a known number of results, each of probability size / number. A stream has no
        reservoirs: estimate from one where it is complete.
    time
        The column of event time, for windows.
    lateness
        Sets a watermark with this delay.
    probability, owner, stratum
        Names of columns: the probability with which the result came into the sample; whose match it is (null: drawn
        by itself); and, where several reservoirs were merged, the one that the result was in.
    shown
        The name of a column that there need not be: the probability with which its owner was kept for the result, as
        floating-point numbers. With it, results of one owner count as drawn together as far as they were.

    Returns
    -------
    DataFrame
        The columns of `by`, `window` (a struct of start and end), `estimate`, `low`, `high`, and `rows`: how many
        sampled results with a value are behind it. An end that the sample is too small to tell is null.
    """
    check_frame(sample, "sample")
    aggregate = Aggregate.parse(what)
    names = listed(by)
    check_level(level)
    if method is not None:
        check_choice(method, Design, "method")
    if stratum is not None and method != "counted":
        raise InputError(f"stratum={stratum!r} is for method='counted'; choose that, or leave it out")
    owners = listed(stratum if method == "counted" else owner)
    told = all(name in sample.columns for name in owners)
    numbers = shown in sample.columns and isinstance(sample.schema[shown].dataType, DoubleType | FloatType)
    shows = method in (None, *ALONE) and told and numbers
    clustered = shows or (method not in ALONE and (method is not None or told))
    if not clustered:
        owners = []
    _check_names(sample, names, [probability, *owners, *listed(time)])
    frame = _watermarked(sample, window, time, lateness, method)
    columns = [F.col(quoted(name)).alias(f"k{i}") for i, name in enumerate(names)]
    columns += [
        _value(sample, aggregate, what).alias("value"),
        F.col(quoted(probability)).cast("double").alias("probability"),
        _unit(owners).alias("owner"),
        *([F.col(quoted(shown)).cast("double").alias("shown")] if shows else []),
    ]
    windows = None
    if window is not None and time is not None:
        windows = _Windows.of(window, every)
        frame = _timed(frame, time)
        columns.append((windows.uncut(frame, time) if method == "counted" else windows.cut(time)).alias("w"))
    elif every is not None:
        raise InputError(f"every={every!r} needs a window; give window= and time=, or leave it out")
    asked = _Asked(_of_value(aggregate), level, method, clustered=clustered)
    drawn = frame.select(*columns)
    keys = [name for name in drawn.columns if name not in _DRAWN]
    if windows is not None and method == "counted":
        answers = _reservoirs(drawn, keys, asked, windows)
    else:
        answers = (_streaming if frame.isStreaming else _batch)(drawn, keys, asked)
    named = [F.col(f"k{i}").alias(name) for i, name in enumerate(names)]
    return answers.select(*named, *([F.col("w").alias("window")] if "w" in keys else []), *FIGURES)


@dataclass(frozen=True)
class _Asked:
    """What workers are told; `clustered` says whether `owner` counts."""

    what: str
    level: float
    method: Design | None
    clustered: bool

    def answers(self, table: pa.Table, by: Sequence[str], windows: _Windows | None = None) -> pa.Table:
        """Estimate for each group, from columns `value`, `probability`, `owner`, perhaps `shown`; windows: `w`."""
        whole = table if self.clustered else table.drop_columns(["owner"])
        reservoirs = self.method == "counted"
        return of_columns(
            whole,
            self.what,
            by=by,
            level=self.level,
            method=self.method,
            stratum="owner" if reservoirs else None,
            window=windows.length if windows else None,
            every=windows.apart if windows else None,
            time="w",
        )


def _check_names(sample: DataFrame, by: list[str], others: list[str]) -> None:
    for name in (*by, *others):
        if name not in sample.columns:
            raise InputError(f"sample has no column {name!r}; it has {', '.join(sample.columns)}")
    taken = next((name for name in by if name in (*FIGURES, "window")), None)
    if taken is not None:
        raise InputError(
            f"by={taken!r} is the name of a column of the answer; rename it, e.g. withColumnRenamed"
        )


def _watermarked(
    sample: DataFrame,
    window: str | timedelta | None,
    time: str | None,
    lateness: str | timedelta | None,
    method: Design | None,
) -> DataFrame:
    """Refuse what could never answer; set the watermark that was asked for."""
    if window is not None and time is None:
        raise InputError(f"window={window!r} needs to know the column of event time; name it with time=")
    if not sample.isStreaming:
        return sample
    if method in _CHANGING:
        raise InputError(
            f"method={method!r} on a stream: a reservoir changes until it is complete; estimate from a batch "
            "DataFrame of it, e.g. within foreachBatch"
        )
    if window is None or time is None:
        raise InputError(
            "a stream never ends, so an estimate over all of it never leaves; give window= and time="
        )
    check_not_chained("sample", sample)
    if lateness is not None:
        sample = add_watermark("sample", sample, time, lateness)
    if watermark_delay(sample, time) is None:
        raise InputError(
            f"sample has no watermark on {time!r}, so no window would ever be complete; "
            f'add withWatermark("{time}", "10 minutes"), or lateness="10 minutes"'
        )
    return sample


def _value(sample: DataFrame, aggregate: Aggregate, what: str) -> Column:
    """What is added up, averaged or ranked; 1 for a count."""
    if aggregate.of is None:
        return F.lit(1.0)
    value = F.expr(aggregate.of)
    try:
        # Beside other columns no aggregate passes.
        kind = sample.select("*", value.alias("value")).schema.fields[-1].dataType
    except PySparkException as error:
        raise InputError(
            f"{what!r}: {str(error).splitlines()[0]}; the sample has {', '.join(sample.columns)}"
        ) from error
    if aggregate.kind == "count":
        return F.when(value.isNotNull(), F.lit(1.0))
    if not isinstance(kind, NumericType):
        raise InputError(f"{what!r} is of type {kind.simpleString()}; give numbers")
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


def _timed(frame: DataFrame, time: str) -> DataFrame:
    """Refuse a null time, which windows of Spark's pass over in silence; a watermark stays."""
    complaint = f"sample.{time} has a null; give the time of each result, or leave such rows out"
    known = F.coalesce(F.col(quoted(time)), F.raise_error(F.lit(complaint)))
    return frame.withColumn(time, known.alias(time, metadata=frame.schema[time].metadata))


@dataclass(frozen=True)
class _Windows:
    """Windows of time, as Spark's own `window` cuts them, in microseconds; they begin at multiples of `apart`."""

    length: int
    apart: int

    @classmethod
    def of(cls, window: str | timedelta, every: str | timedelta | None) -> _Windows:
        length = microseconds(window, "window")
        apart = length if every is None else microseconds(every, "every")
        if not 0 < apart <= length:
            raise InputError(
                f"windows of {window!r} every {every!r}: give lengths above 0, the second at most the first"
            )
        return cls(length, apart)

    def cut(self, time: str) -> Column:
        """The windows of each result, of which there then is one a window."""
        return F.window(F.col(quoted(time)), f"{self.length} microseconds", f"{self.apart} microseconds")

    def uncut(self, frame: DataFrame, time: str) -> Column:
        """The time of each result, as windows would tell it."""
        [window] = frame.select(self.cut(time)).schema.fields
        return F.col(quoted(time)).cast(cast("StructType", window.dataType)["start"].dataType)


def _batch(drawn: DataFrame, keys: list[str], asked: _Asked) -> DataFrame:
    """Deal groups out to workers, a reservoir to one."""
    partitions = shuffle_partitions(drawn.sparkSession)
    flat, fields = _flat(drawn, keys)
    by = [field.name for field in fields]
    spread = by and asked.method != "counted"
    bucket = F.pmod(F.xxhash64(*by), F.lit(partitions)) if spread else F.lit(0)

    def answers(table: pa.Table) -> pa.Table:
        return asked.answers(table.drop_columns(["bucket"]), by)

    dealt = flat.withColumn("bucket", bucket).groupBy("bucket")
    return _structured(dealt.applyInArrow(answers, _schema(fields)), keys)


def _reservoirs(drawn: DataFrame, keys: list[str], asked: _Asked, windows: _Windows) -> DataFrame:
    """Bring all to one worker and cut windows there: a result that several have counts once in its reservoir."""
    by = [name for name in keys if name != "w"]
    fields = [StructField(name, drawn.schema[name].dataType) for name in by]
    fields += [StructField(name, drawn.schema["w"].dataType) for name in ("start", "end")]
    # The core has windows end at multiples, not begin.
    shift, length = (
        pa.scalar(span, pa.duration("us")) for span in (windows.length % windows.apart, windows.length)
    )

    def answers(table: pa.Table) -> pa.Table:
        shifted = table.drop_columns(["w"]).append_column("w", pc.subtract(table.column("w"), shift))
        found = asked.answers(shifted, by, windows)
        end = pc.add(found.column("window_end"), shift)
        columns = {name: found.column(name) for name in by} | {"start": pc.subtract(end, length), "end": end}
        return pa.table(columns | {name: found.column(name) for name in FIGURES})

    return _structured(drawn.groupBy().applyInArrow(answers, _schema(fields)), keys)


def _streaming(drawn: DataFrame, keys: list[str], asked: _Asked) -> DataFrame:
    """Let Spark keep the results of each group until its window is complete."""
    told = [name for name in drawn.columns if name in _DRAWN]
    lists = drawn.groupBy(*keys).agg(F.collect_list(F.struct(*told)).alias("drawn"))
    flat, fields = _flat(lists, keys)
    by = [field.name for field in fields]
    return _structured(flat.mapInArrow(_per_list(asked, by), _schema(fields)), keys)


def _per_list(asked: _Asked, by: list[str]) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    def answers(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            lists = batch.column("drawn")
            drawn = one_chunk(pa.chunked_array([pc.list_flatten(lists)]))
            told = [field.name for field in drawn.type]
            columns = dict(zip(told, drawn.flatten(), strict=True)) | {"place": pc.list_parent_indices(lists)}
            found = asked.answers(pa.table(columns), ["place"])
            own = pa.Table.from_batches([batch.select(by)]).take(found.column("place"))
            for name in FIGURES:
                own = own.append_column(name, found.column(name))
            yield from own.to_batches()

    return answers


def _flat(frame: DataFrame, keys: list[str]) -> tuple[DataFrame, list[StructField]]:
    """The window as two columns, which Arrow can compare; and the fields of the keys."""
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
