"""Run a pipeline file: read two sources, join them within a budget, write the results.

A stream runs until it is stopped or, with `trigger.available_now`, until it has processed the data that is there.
Ctrl-C or SIGTERM stops it; it continues from its checkpoint when it is run again.
"""

from __future__ import annotations

import contextlib
import signal
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from pyspark.sql import DataFrame, Observation, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - its usual name
from rich.console import Console
from rich.markup import escape
from rich.status import Status
from rich.table import Table

from tidegate.spark.pipeline.file import check_inputs, load
from tidegate.spark.pipeline.models import Pipeline, SinkConfig, SparkConfig
from tidegate.spark.pipeline.query import SPARK_ERRORS, error_key, results
from tidegate.spark.session.configuration import PARTITIONS, configure
from tidegate.spark.session.local import LOCAL_SETTINGS, start_session
from tidegate.spark.session.spark_errors import (
    QueryFailedError,
    error_log_muted,
    explain_failure,
    root_cause,
    start_timed_out,
)

if TYPE_CHECKING:
    from pyspark.sql.streaming.listener import StreamingQueryProgress
    from pyspark.sql.streaming.query import StreamingQuery
    from pyspark.sql.streaming.readwriter import DataStreamWriter


_MAX_STARTS: Final = 3
"""The maximum number of starts of a query whose Python process does not start in time."""
_POLL_SECONDS: Final = 0.3
_SHOWN_ROWS: Final = 20
_RESULTS: Final = "tidegate_results"


@dataclass(frozen=True)
class PipelineResult:
    """The counts of a run of a pipeline.

    Parameters
    ----------
    batches
        Number of micro-batches; 0 for a batch.
    rows
        Number of rows read; None for a batch, where Spark does not report it.
    results
        Number of rows written.
    seconds
        Its duration, without the start of Spark.
    stopped
        Whether it was stopped before its end.
    """

    batches: int
    rows: int | None
    results: int
    seconds: float
    stopped: bool = False

    def __str__(self) -> str:
        batches = f"{_format_batches(self.batches)}, " if self.batches else ""
        rows = "" if self.rows is None else f"{self.rows:,} rows in, "
        return f"{batches}{rows}{self.results:,} results in {self.seconds:.1f} s"


def _format_batches(batches: int) -> str:
    return f"{batches:,} micro-batch{'es' * (batches != 1)}"


def check(path: str | Path) -> Pipeline:
    """Check a pipeline file without starting Spark: its keys and values, and that its input paths exist.

    Schemas, expressions, columns and connectors are checked by Spark when the pipeline runs.
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
) -> PipelineResult:
    """Run a pipeline to its end, or until it is stopped.

    Parameters
    ----------
    pipeline
        A pipeline that `load` returned, or the path of its file.
    spark
        A session to run in, set up by `tidegate.configure`; the file's [spark] is then not used. By default
        a session is created from [spark], and stopped at the end.
    console
        The terminal for the status line; standard error by default.
    log
        File for Spark's log; by default there is no log.

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
        with error_log_muted():
            return _run(pipeline, spark, console)
    with console.status("starting Spark"), error_key(pipeline, "spark"), _interrupt_handler_kept():
        spark = _session(pipeline.spark, log)
    try:
        with error_log_muted():
            return _run(pipeline, spark, console)
    finally:
        with console.status("stopping Spark"):
            spark.stop()


def _session(config: SparkConfig, log: Path | None) -> SparkSession:
    conf = config.conf
    builder = SparkSession.builder.appName(config.app)
    if config.remote:
        builder = builder.remote(config.remote)
    else:
        builder = builder.master(config.master).config("spark.ui.showConsoleProgress", "false")
    if config.local:
        conf = LOCAL_SETTINGS | {"spark.driver.memory": "2g"} | conf
    for name, value in conf.items():
        builder = builder.config(name, value)
    spark = start_session(builder, log, local=config.local)
    if not config.remote:
        spark.sparkContext.setLogLevel("ERROR" if log else "OFF")
    return configure(spark, partitions=None if PARTITIONS in conf else _cores(config, spark))


def _cores(config: SparkConfig, spark: SparkSession) -> int | None:
    """The number of cores, if Spark runs on this machine."""
    return spark.sparkContext.defaultParallelism if config.local else None


def _run(pipeline: Pipeline, spark: SparkSession, console: Console) -> PipelineResult:
    frame = results(pipeline, spark, console)
    result = (_stream if pipeline.streaming else _batch)(pipeline, frame, console)
    _print_summary(pipeline, result, console)
    return result


def _batch(pipeline: Pipeline, frame: DataFrame, console: Console) -> PipelineResult:
    begun, sink, observation = time.monotonic(), pipeline.sink, Observation()
    frame = frame.observe(observation, F.count(F.lit(1)).alias("results"))
    try:
        with console.status("joining"), _explain_errors(pipeline):
            if sink.format == "console":
                return PipelineResult(0, None, _show(frame, sink, console), time.monotonic() - begun)
            writer = frame.write.options(**sink.options).mode(pipeline.write_mode)
            if sink.partition_by:
                writer = writer.partitionBy(*sink.partition_by)
            if sink.table is not None:
                writer.saveAsTable(sink.table)
            else:
                writer.format(sink.format or "").save(sink.path)
    except KeyboardInterrupt:
        return PipelineResult(0, None, 0, time.monotonic() - begun, stopped=True)
    return PipelineResult(0, None, int(observation.get["results"]), time.monotonic() - begun)


def _stream(pipeline: Pipeline, frame: DataFrame, console: Console) -> PipelineResult:
    begun, counts = time.monotonic(), _Progress()
    with _stop_on_signal() as stop:
        for attempt in range(1, _MAX_STARTS + 1):
            with error_key(pipeline, "sink", pipeline.sink.format):
                query = _start(pipeline, frame, console)
            with console.status("first micro-batch") as status, _explain_errors(pipeline, stop):
                if _wait(query, stop, counts, status, final=attempt == _MAX_STARTS):
                    break
            if stop.is_set():
                break
        for progress in query.recentProgress:
            counts.add(progress)
    rows, written = sum(counts.rows.values()), sum(counts.results.values())
    return PipelineResult(len(counts.rows), rows, written, time.monotonic() - begun, stopped=stop.is_set())


def _wait(
    query: StreamingQuery, stop: threading.Event, counts: _Progress, status: Status, *, final: bool
) -> bool:
    """Wait until a query ends or is stopped; False if it did not start in time and may be started again."""
    try:
        while not stop.is_set() and not query.awaitTermination(_POLL_SECONDS):  # type: ignore[arg-type]
            if counts.add(query.lastProgress):
                status.update(counts.line)
    except SPARK_ERRORS as error:
        if final or counts.rows or stop.is_set() or not start_timed_out(error):
            raise
        return False
    query.stop()
    return True


def _start(pipeline: Pipeline, frame: DataFrame, console: Console) -> StreamingQuery:
    sink, trigger = pipeline.sink, pipeline.trigger
    writer: DataStreamWriter = (
        frame.observe(_RESULTS, F.count(F.lit(1)).alias("n"))
        .writeStream.outputMode("append")
        .options(**sink.options)
    )
    if pipeline.checkpoint:
        writer = writer.option("checkpointLocation", pipeline.checkpoint)
    if sink.partition_by:
        writer = writer.partitionBy(*sink.partition_by)
    if trigger.available_now:
        writer = writer.trigger(availableNow=True)
    elif trigger.processing_time is not None:
        writer = writer.trigger(processingTime=f"{trigger.processing_time // 1000} milliseconds")
    if sink.table is not None:
        return writer.toTable(sink.table)
    if sink.format == "console":
        return writer.foreachBatch(_show_batches(sink, console)).start()
    return writer.format(sink.format or "").start(sink.path)


@dataclass
class _Progress:
    """Rows and results of each micro-batch that was reported."""

    rows: dict[int, int] = field(default_factory=dict)
    results: dict[int, int] = field(default_factory=dict)
    rate: float = 0.0

    def add(self, progress: StreamingQueryProgress | None) -> bool:
        """Add a progress report; return whether it was new."""
        if progress is None or progress.batchId in self.rows:
            return False
        observed = progress.observedMetrics.get(_RESULTS)
        rows, results = progress.numInputRows or 0, int(observed["n"]) if observed else 0
        if not rows and not results:  # an idle stream reports the next micro-batch
            return False
        self.rows[progress.batchId], self.results[progress.batchId] = rows, results
        self.rate = progress.processedRowsPerSecond
        return True

    @property
    def line(self) -> str:
        rows, results = sum(self.rows.values()), sum(self.results.values())
        return f"{_format_batches(len(self.rows))} · {rows:,} rows in · {results:,} results · {self.rate:,.0f} rows/s"


def _show_batches(sink: SinkConfig, console: Console) -> Callable[[DataFrame, int], None]:
    def show(frame: DataFrame, _: int) -> None:
        _show(frame, sink, console)

    return show


def _show(frame: DataFrame, sink: SinkConfig, console: Console) -> int:
    """Print the first rows; every partition is computed, since each has state to commit."""
    limit = int(sink.options.get("numRows", _SHOWN_ROWS))
    cached = frame.persist()
    try:
        total, rows = cached.count(), cached.limit(limit).collect()
    finally:
        cached.unpersist()
    if rows:
        table = Table(*(escape(name) for name in frame.columns), box=None, pad_edge=False)
        for row in rows:
            table.add_row(*(escape(str(value)) for value in row))
        console.print(table)
        if total > len(rows):
            console.print(f"and {total - len(rows):,} more")
    return total


def _print_summary(pipeline: Pipeline, result: PipelineResult, console: Console) -> None:
    console.print(f"{result} -> {pipeline.sink.destination}", highlight=False, markup=False, soft_wrap=True)
    if result.stopped and pipeline.streaming:
        resumed = (
            f"run it again to continue from {pipeline.checkpoint}"
            if pipeline.checkpoint
            else "without a checkpoint it cannot continue"
        )
        console.print(f"stopped; {resumed}", highlight=False, markup=False, soft_wrap=True)
    elif result.stopped:
        console.print("stopped; a batch starts from the beginning when it is run again", highlight=False)
    elif pipeline.streaming and pipeline.checkpoint and not result.rows:
        console.print(
            f"no new data since the last run; remove {pipeline.checkpoint} and the results to start again",
            highlight=False,
            markup=False,
            soft_wrap=True,
        )


@contextlib.contextmanager
def _interrupt_handler_kept() -> Iterator[None]:
    """Keep the handler of Ctrl-C: Spark sets one that calls Spark, and fails while another call is under way."""
    usual = signal.getsignal(signal.SIGINT)
    yield
    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGINT, usual)


@contextlib.contextmanager
def _stop_on_signal() -> Iterator[threading.Event]:
    """Turn Ctrl-C and SIGTERM into an event; a second one ends the program as usual."""
    stop = threading.Event()
    old: dict[signal.Signals, Any] = {}

    def restore() -> None:
        for number in list(old):
            signal.signal(number, old.pop(number) or signal.SIG_DFL)

    def request(*_: object) -> None:
        stop.set()
        restore()

    if threading.current_thread() is threading.main_thread():
        for number in (signal.SIGINT, signal.SIGTERM):
            old[number] = signal.signal(number, request)
    try:
        yield stop
    finally:
        restore()


@contextlib.contextmanager
def _explain_errors(pipeline: Pipeline, stop: threading.Event | None = None) -> Iterator[None]:
    """Raise the root cause of a failure; a query that was stopped has not failed."""
    try:
        yield
    except SPARK_ERRORS as error:
        if stop is not None and stop.is_set():
            return
        # Without a checkpoint of its own, or as a batch, it begins from the start.
        resumes = stop is not None and pipeline.checkpoint
        cause = explain_failure(error, pipeline.checkpoint) if resumes else root_cause(error)
        raise QueryFailedError(f"{pipeline.file}: the query failed: {cause}") from error
