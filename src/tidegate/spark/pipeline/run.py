"""Run a pipeline file: read two sources, join them within a budget, write the results.

A stream runs until it is stopped or, with `trigger.available_now`, until it has handled what is there. Stopped
by Ctrl-C or SIGTERM, it goes on from its checkpoint when it is run again.
"""

from __future__ import annotations

import contextlib
import logging
import os
import re
import signal
import sys
import threading
import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from py4j.protocol import Py4JJavaError  # type: ignore[import-untyped]
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, Observation, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - its usual name
from pyspark.sql.types import TimestampNTZType, TimestampType
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from tidegate.spark.causes import QueryFailedError, hushed, remedy, root_cause
from tidegate.spark.java import needs_java
from tidegate.spark.join import join
from tidegate.spark.pipeline.file import Engine, Pipeline, Sink, Source, check_inputs, load
from tidegate.spark.session import PARTITIONS, QUIET, configure, silenced
from tidegate.types import SIDES, InputError

if TYPE_CHECKING:
    from pyspark.sql.streaming.listener import StreamingQueryProgress
    from pyspark.sql.streaming.query import StreamingQuery
    from pyspark.sql.streaming.readwriter import DataStreamWriter

    from tidegate.types import Side

# What Spark has no class for in Python comes as it left the JVM.
_SPARK_ERRORS: Final = (PySparkException, Py4JJavaError)
_TICK: Final = 0.3
_SHOWN_ROWS: Final = 20
_RESULTS: Final = "tidegate_results"
_CONNECTORS: Final = {"kafka": "spark-sql-kafka-0-10_2.13", "avro": "spark-avro_2.13"}


@dataclass(frozen=True)
class Outcome:
    """What a run did.

    Parameters
    ----------
    batches
        Micro-batches; 0 for a batch.
    rows
        Rows read; None for a batch, which does not tell.
    results
        Rows written.
    seconds
        How long it took, Spark's start aside.
    stopped
        Whether it was stopped before its end.
    """

    batches: int
    rows: int | None
    results: int
    seconds: float
    stopped: bool = False

    def __str__(self) -> str:
        batches = f"{_counted(self.batches)}, " if self.batches else ""
        rows = "" if self.rows is None else f"{self.rows:,} rows in, "
        return f"{batches}{rows}{self.results:,} results in {self.seconds:.1f} s"


def _counted(batches: int) -> str:
    return f"{batches:,} micro-batch{'es' * (batches != 1)}"


def check(path: str | Path) -> Pipeline:
    """Check a pipeline file without starting Spark: its keys and values, and that its input paths exist.

    What only Spark can tell, it tells when the pipeline runs: schemas, expressions, columns and connectors.
    """
    pipeline = load(path)
    check_inputs(pipeline)
    return pipeline


def run(
    pipeline: Pipeline | str | Path,
    *,
    spark: SparkSession | None = None,
    console: Console | None = None,
    log: Path | None = None,
) -> Outcome:
    """Run a pipeline to its end, or until it is stopped.

    Parameters
    ----------
    pipeline
        What `load` gave, or the path of its file.
    spark
        A session to run in, set up by `tidegate.configure`; the file's [spark] is then not used. By default
        one is made from [spark], and stopped at the end.
    console
        Where the status line goes; standard error by default.
    log
        Where Spark's own words go; nowhere by default.

    Raises
    ------
    InputError
        The pipeline cannot run as it is written; the message names the key.
    QueryFailedError
        It ran and failed.
    """
    if not isinstance(pipeline, Pipeline):
        pipeline = load(pipeline)
    check_inputs(pipeline)
    console = console or Console(stderr=True)
    if spark is not None:
        with hushed():
            return _run(pipeline, spark, console)
    with console.status("starting Spark"), _told(pipeline, "spark"):
        spark = _session(pipeline.spark, log)
    try:
        with hushed():
            return _run(pipeline, spark, console)
    finally:
        with console.status("stopping Spark"):
            spark.stop()


def _session(engine: Engine, log: Path | None) -> SparkSession:
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    logging.getLogger("py4j").setLevel(logging.ERROR)
    conf = engine.conf or {}
    builder = SparkSession.builder.appName(engine.app)
    if engine.remote:
        builder = builder.remote(engine.remote)
    else:
        builder = builder.master(engine.master).config("spark.ui.showConsoleProgress", "false")
    if engine.local:
        conf = QUIET | {"spark.driver.memory": "2g"} | conf
    for name, value in conf.items():
        builder = builder.config(name, value)
    with needs_java(), silenced(log):
        spark = builder.getOrCreate()
    if not engine.remote:
        spark.sparkContext.setLogLevel("ERROR" if log else "OFF")
    return configure(spark, partitions=None if PARTITIONS in conf else _cores(engine, spark))


def _cores(engine: Engine, spark: SparkSession) -> int | None:
    """As many partitions as cores, where those are this machine's."""
    return spark.sparkContext.defaultParallelism if engine.local else None


def _run(pipeline: Pipeline, spark: SparkSession, console: Console) -> Outcome:
    results = _results(pipeline, spark, console)
    handle = _stream if pipeline.streaming else _batch
    outcome = handle(pipeline, results, console)
    _conclude(pipeline, outcome, console)
    return outcome


def _results(pipeline: Pipeline, spark: SparkSession, console: Console) -> DataFrame:
    """What is to be written."""
    left, right = (_side(pipeline, spark, side) for side in SIDES)
    settings = {item.name: getattr(pipeline.join, item.name) for item in fields(pipeline.join)}
    with warnings.catch_warnings(record=True) as heard, _told(pipeline, "join"):
        warnings.simplefilter("always", UserWarning)
        joined = join(left, right, time=(pipeline.left.time, pipeline.right.time), **settings)
    for warning in heard:
        console.print(f"[yellow]warning:[/] {escape(str(warning.message))}", highlight=False)
    return _selected(pipeline, "sink", joined, pipeline.sink.select)


def _side(pipeline: Pipeline, spark: SparkSession, side: Side) -> DataFrame:
    source = pipeline.side(side)
    frame = _read(pipeline, spark, source)
    if source.where is not None:
        with _told(pipeline, f"{side}.where"):
            frame = frame.where(source.where)
            _ = frame.schema
    frame = _selected(pipeline, side, frame, source.select)
    _check_time(pipeline, source, frame)
    if pipeline.streaming:
        frame = frame.withWatermark(source.time, f"{source.lateness} microseconds")
    return frame


def _read(pipeline: Pipeline, spark: SparkSession, source: Source) -> DataFrame:
    reader: Any = spark.readStream if pipeline.streaming else spark.read
    reader = reader.options(**source.options or {})
    if source.schema is not None:
        with _told(pipeline, f"{source.side}.schema"):
            reader = reader.schema(source.schema)
    key = "table" if source.table else "path" if source.path and not source.schema else "format"
    with _told(pipeline, f"{source.side}.{key}", source.format):
        if source.table is not None:
            frame: DataFrame = reader.table(source.table)
        else:
            reader = reader.format(source.format)
            frame = reader.load(source.path) if source.path else reader.load()
        _ = frame.schema  # Spark Connect looks only when asked
    return frame


def _selected(pipeline: Pipeline, part: str, frame: DataFrame, select: tuple[str, ...]) -> DataFrame:
    if not select:
        return frame
    try:
        chosen = frame.selectExpr(*select)
        _ = chosen.schema
    except _SPARK_ERRORS:
        for number, expression in enumerate(select):
            with _told(pipeline, f"{part}.select[{number}]"):
                _ = frame.selectExpr(expression).schema
        raise
    return chosen


def _check_time(pipeline: Pipeline, source: Source, frame: DataFrame) -> None:
    key, name = f"{pipeline.file}: {source.side}.time", source.time
    if name not in frame.columns:
        raise InputError(f"{key}: there is no column {name!r}; there are {', '.join(frame.columns)}")
    kind = frame.schema[name].dataType
    if not isinstance(kind, TimestampType | TimestampNTZType):
        raise InputError(
            f"{key}: {name!r} is of type {kind.simpleString()}; make it a timestamp in {source.side}.schema, or "
            f'in {source.side}.select: "to_timestamp({name}) as {name}"'
        )


def _batch(pipeline: Pipeline, results: DataFrame, console: Console) -> Outcome:
    begun, sink, seen = time.monotonic(), pipeline.sink, Observation()
    results = results.observe(seen, F.count(F.lit(1)).alias("results"))
    try:
        with console.status("joining"), _failed(pipeline):
            if sink.format == "console":
                return Outcome(0, None, _show(results, sink, console), time.monotonic() - begun)
            writer = results.write.options(**sink.options or {}).mode(sink.mode)
            if sink.partition_by:
                writer = writer.partitionBy(*sink.partition_by)
            if sink.table is not None:
                writer.saveAsTable(sink.table)
            else:
                writer.format(sink.format or "").save(sink.path)
    except KeyboardInterrupt:
        return Outcome(0, None, 0, time.monotonic() - begun, stopped=True)
    return Outcome(0, None, int(seen.get["results"]), time.monotonic() - begun)


def _stream(pipeline: Pipeline, results: DataFrame, console: Console) -> Outcome:
    begun, tally = time.monotonic(), _Tally()
    with _stopping() as stop:
        with _told(pipeline, "sink", pipeline.sink.format):
            query = _started(pipeline, results, console)
        with console.status("first micro-batch") as status, _failed(pipeline, stop):
            while not stop.is_set() and not query.awaitTermination(_TICK):  # type: ignore[arg-type]
                if tally.add(query.lastProgress):
                    status.update(tally.line)
            query.stop()
        for progress in query.recentProgress:
            tally.add(progress)
    rows, results_in = sum(tally.rows.values()), sum(tally.results.values())
    return Outcome(len(tally.rows), rows, results_in, time.monotonic() - begun, stopped=stop.is_set())


def _started(pipeline: Pipeline, results: DataFrame, console: Console) -> StreamingQuery:
    sink, trigger = pipeline.sink, pipeline.trigger
    writer: DataStreamWriter = (
        results.observe(_RESULTS, F.count(F.lit(1)).alias("n"))
        .writeStream.outputMode("append")
        .options(**sink.options or {})
    )
    if pipeline.checkpoint:
        writer = writer.option("checkpointLocation", pipeline.checkpoint)
    if sink.partition_by:
        writer = writer.partitionBy(*sink.partition_by)
    if trigger.available_now:
        writer = writer.trigger(availableNow=True)
    elif trigger.every is not None:
        writer = writer.trigger(processingTime=f"{trigger.every // 1000} milliseconds")
    if sink.table is not None:
        return writer.toTable(sink.table)
    if sink.format == "console":
        return writer.foreachBatch(_shower(sink, console)).start()
    return writer.format(sink.format or "").start(sink.path)


@dataclass
class _Tally:
    """Rows and results of each micro-batch that was reported."""

    rows: dict[int, int] = field(default_factory=dict)
    results: dict[int, int] = field(default_factory=dict)
    rate: float = 0.0

    def add(self, progress: StreamingQueryProgress | None) -> bool:
        """Take a report up; whether it told anything new."""
        if progress is None or progress.batchId in self.rows:
            return False
        seen = progress.observedMetrics.get(_RESULTS)
        rows, results = progress.numInputRows or 0, int(seen["n"]) if seen else 0
        if not rows and not results:  # an idle stream tells of the micro-batch to come
            return False
        self.rows[progress.batchId], self.results[progress.batchId] = rows, results
        self.rate = progress.processedRowsPerSecond
        return True

    @property
    def line(self) -> str:
        rows, results = sum(self.rows.values()), sum(self.results.values())
        return (
            f"{_counted(len(self.rows))} · {rows:,} rows in · {results:,} results · {self.rate:,.0f} rows/s"
        )


def _shower(sink: Sink, console: Console) -> Callable[[DataFrame, int], None]:
    def show(frame: DataFrame, _: int) -> None:
        _show(frame, sink, console)

    return show


def _show(frame: DataFrame, sink: Sink, console: Console) -> int:
    """Print the first rows; every partition is computed, since each has state to commit."""
    limit = int((sink.options or {}).get("numRows", _SHOWN_ROWS))
    kept = frame.persist()
    try:
        total, rows = kept.count(), kept.limit(limit).collect()
    finally:
        kept.unpersist()
    if rows:
        table = Table(*(escape(name) for name in frame.columns), box=None, pad_edge=False)
        for row in rows:
            table.add_row(*(escape(str(value)) for value in row))
        console.print(table)
        if total > len(rows):
            console.print(f"and {total - len(rows):,} more")
    return total


def _conclude(pipeline: Pipeline, outcome: Outcome, console: Console) -> None:
    console.print(f"{outcome} -> {pipeline.sink.place}", highlight=False, markup=False, soft_wrap=True)
    if outcome.stopped and pipeline.streaming:
        resumed = (
            f"run it again to go on from {pipeline.checkpoint}"
            if pipeline.checkpoint
            else "it has no checkpoint to go on from"
        )
        console.print(f"stopped; {resumed}", highlight=False, markup=False, soft_wrap=True)
    elif outcome.stopped:
        console.print("stopped; a batch starts anew when it is run again", highlight=False)
    elif pipeline.streaming and pipeline.checkpoint and not outcome.rows:
        console.print(
            f"nothing new since the last run; remove {pipeline.checkpoint} and the results to begin anew",
            highlight=False,
            markup=False,
            soft_wrap=True,
        )


@contextlib.contextmanager
def _stopping() -> Iterator[threading.Event]:
    """Take Ctrl-C and SIGTERM as a wish to stop; a second one ends the program as usual."""
    stop = threading.Event()
    old: dict[signal.Signals, Any] = {}

    def restore() -> None:
        for number in list(old):
            signal.signal(number, old.pop(number) or signal.SIG_DFL)

    def wish(*_: object) -> None:
        stop.set()
        restore()

    if threading.current_thread() is threading.main_thread():
        for number in (signal.SIGINT, signal.SIGTERM):
            old[number] = signal.signal(number, wish)
    try:
        yield stop
    finally:
        restore()


@contextlib.contextmanager
def _told(pipeline: Pipeline, key: str, name: str | None = None) -> Iterator[None]:
    """Say under which key an error arose."""
    try:
        yield
    except InputError as error:
        raise InputError(f"{pipeline.file}: {key}: {error}") from error
    except _SPARK_ERRORS as error:
        if missing := _missing_connector(error, name):
            raise InputError(f"{pipeline.file}: {key.partition('.')[0]}.format: {missing}") from error
        raise InputError(f"{pipeline.file}: {key}: {root_cause(error)}") from error


def _missing_connector(error: BaseException, name: str | None) -> str | None:
    if name is None or not re.search(r"Failed to find( the)? data source", str(error)):
        return None
    if name not in _CONNECTORS:
        return f"this Spark has no {name!r}; add its package to spark.conf under spark.jars.packages"
    from pyspark import __version__  # noqa: PLC0415 - only for this message

    package = f"org.apache.spark:{_CONNECTORS[name]}:{__version__}"
    return (
        f"this Spark lacks the {name} connector; add it to the pipeline:\n"
        f'  [spark.conf]\n  "spark.jars.packages" = "{package}"\n'
        f"or start it with: spark-submit --packages {package}"
    )


@contextlib.contextmanager
def _failed(pipeline: Pipeline, stop: threading.Event | None = None) -> Iterator[None]:
    """Tell the root cause of a failure; what fails because it was stopped has not failed."""
    try:
        yield
    except _SPARK_ERRORS as error:
        if stop is not None and stop.is_set():
            return
        end = remedy(error, pipeline.checkpoint) if stop is not None else ""
        raise QueryFailedError(f"{pipeline.file}: the query failed: {root_cause(error)}{end}") from error
