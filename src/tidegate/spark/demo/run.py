"""The demo: a streaming join of auctions and bids in a tenth of the memory, by several policies side by side.

A thread writes Parquet files while one query for each policy joins them. Spark counts the results of a query; the
rows that it holds are read from its checkpoint.
"""

from __future__ import annotations

import contextlib
import shutil
import signal
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from datetime import timedelta
from pathlib import Path
from typing import Final

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - its usual name
from pyspark.sql.streaming.query import StreamingQuery
from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from tidegate.spark.demo.charts import colour
from tidegate.spark.demo.page import BatchReading, DemoResult, PolicyRecord, findings, write_page
from tidegate.spark.demo.stream import SIDE_SCHEMAS, DemoScale, DemoStream, FileWriter
from tidegate.spark.join.join import join
from tidegate.spark.session.configuration import configure
from tidegate.spark.session.local import SHORT_LIVED, local_session
from tidegate.spark.session.spark_errors import QueryFailedError, root_cause
from tidegate.spark.state.inspection import inspect
from tidegate.types import InputError

POLICIES: Final = ("age", "until_expiry", "fifo")
"""The policies that are compared by default."""

_MARKER: Final = ".tidegate-demo"
_POLL: Final = 0.3
_INSPECT_EVERY: Final = 5.0
_METRIC: Final = "demo"


class PolicyQuery:
    """The query of one policy, and its counts so far."""

    def __init__(self, spark: SparkSession, stream: DemoStream, folder: Path, policy: str) -> None:
        self.record = PolicyRecord(policy, stream.budget)
        self._spark, self._stream = spark, stream
        self._checkpoint = folder / "checkpoints" / policy
        self._rows = dict.fromkeys(SIDE_SCHEMAS, 0)
        self._batch = -1
        self._query = self._start(folder)

    def _start(self, folder: Path) -> StreamingQuery:
        auctions, bids = (self._source(folder / side, schema) for side, schema in SIDE_SCHEMAS.items())
        joined = join(
            auctions,
            bids,
            on="auction",
            time=("opened_at", "placed_at"),
            window=(self._stream.scale.window, timedelta(0)),
            budget=self._stream.budget,
            # A bid joins only auctions that opened before it, so it need not stay.
            split=(self._stream.budget, 0),
            policy=self.record.policy,
            lateness="0 seconds",
            # The queries share the cores, so each has one bucket.
            buckets=1,
        )
        return (
            joined.observe(_METRIC, F.count(F.lit(1)).alias("results"))
            .writeStream.format("parquet")
            .option("path", str(folder / "results" / self.record.policy))
            .option("checkpointLocation", str(self._checkpoint))
            .trigger(processingTime="200 milliseconds")
            .start()
        )

    def _source(self, path: Path, schema: str) -> DataFrame:
        return self._spark.readStream.schema(schema).option("maxFilesPerTrigger", 1).parquet(str(path))

    @property
    def files(self) -> int:
        """The number of files that it has read."""
        return self._stream.files(self._rows["bids"])

    def read_progress(self) -> None:
        """Read the progress of the query; raise if it failed."""
        failure = self._query.exception()
        if failure is not None:
            raise QueryFailedError(
                f"the query of policy {self.record.policy!r} failed: {root_cause(failure)}; start the demo again "
                "(it starts from the beginning; a query of yours would continue from its checkpoint)"
            )
        for progress in self._query.recentProgress:
            if progress.batchId <= self._batch or _METRIC not in progress.observedMetrics:
                continue
            self._batch = progress.batchId
            for side in SIDE_SCHEMAS:
                side_sources = (s for s in progress.sources if s.description.endswith(f"/{side}]"))
                self._rows[side] += sum(source.numInputRows for source in side_sources)
            auctions, bids = self._rows.values()
            self.record.readings.append(
                BatchReading(
                    minute=self._stream.minute(bids),
                    rows_in=auctions + bids,
                    results=self.record.results + progress.observedMetrics[_METRIC]["results"],
                    exact=self._stream.exact(auctions, bids),
                )
            )

    def read_state(self) -> None:
        """Read from the checkpoint how many rows are buffered; nothing before the first commit."""
        try:
            counts = inspect(self._checkpoint, "counts", spark=self._spark).collect()
        except (InputError, PySparkException):
            return
        if counts:
            minute = self._stream.minute(sum(bucket.rows_right for bucket in counts))
            self.record.memory.append((minute, sum(bucket.buffered for bucket in counts)))
            self.record.peak_rows = sum(bucket.peak_rows for bucket in counts)

    def stop(self) -> None:
        """Stop the query."""
        self._query.stop()


def run_demo(
    folder: Path,
    console: Console,
    *,
    spark: SparkSession | None = None,
    scale: DemoScale | None = None,
    policies: Sequence[str] = POLICIES,
    seconds: float = 65.0,
    seed: int = 0,
) -> DemoResult:
    """Run the demo, show its progress, and write a page with plots; Ctrl-C ends it early and keeps the results.

    Parameters
    ----------
    folder
        Folder for inputs, results, checkpoints, Spark's log and the page. Those of an earlier demo are replaced.
    console
        The terminal for progress and results.
    spark
        A session to run in; by default one is created and stopped.
    scale
        The number of rows that arrive.
    policies
        The policies to compare.
    seconds
        How long input is written, in seconds; everything that is written is still joined.
    seed
        Seed of the stream.
    """
    _prepare_folder(folder)
    stream = DemoStream(scale or DemoScale(), seed)
    with console.status("Starting Spark ..."):
        base = spark or local_session("tidegate demo", java=SHORT_LIVED, log=folder / "spark.log")
    try:
        # After Spark's start, which sets a handler of its own.
        with _stop_on_interrupt() as stopped:
            result = _run_queries(base, stream, folder, console, policies, seconds, stopped)
    finally:
        if spark is None:
            base.stop()
    write_page(result, folder / "index.html")
    _show(result, console)
    return result


def _prepare_folder(folder: Path) -> None:
    if folder.exists() and not (folder / _MARKER).exists() and any(folder.iterdir()):
        raise InputError(
            f"{str(folder)!r} contains other files than a demo; name another folder, or empty it"
        )
    shutil.rmtree(folder, ignore_errors=True)
    for side in SIDE_SCHEMAS:
        (folder / side).mkdir(parents=True)
    (folder / _MARKER).touch()


@contextlib.contextmanager
def _stop_on_interrupt() -> Iterator[threading.Event]:
    """Turn the first Ctrl-C into an event, so that no call to Spark is interrupted; the second acts as usual."""
    stopped = threading.Event()
    if threading.current_thread() is not threading.main_thread():
        yield stopped
        return
    usual = signal.getsignal(signal.SIGINT)

    def stop(*_: object) -> None:
        stopped.set()
        signal.signal(signal.SIGINT, usual)

    signal.signal(signal.SIGINT, stop)
    try:
        yield stopped
    finally:
        signal.signal(signal.SIGINT, usual)


def _session(base: SparkSession) -> SparkSession:
    """A session with settings of its own, in the same Spark."""
    session = configure(base.newSession(), partitions=1)
    # No row waits for the watermark alone, and micro-batches without data would slow down the other queries.
    session.conf.set("spark.sql.streaming.noDataMicroBatches.enabled", "false")
    return session


def _run_queries(
    base: SparkSession,
    stream: DemoStream,
    folder: Path,
    console: Console,
    policies: Sequence[str],
    seconds: float,
    stopped: threading.Event,
) -> DemoResult:
    session = _session(base)
    begun = time.monotonic()
    writer = FileWriter(stream, folder, stopped, seconds)
    queries: list[PolicyQuery] = []
    try:
        writer.start()
        with console.status("Starting the queries ..."):
            queries += (PolicyQuery(session, stream, folder, policy) for policy in policies)
        _watch(queries, writer, stream, console, stopped)
    finally:
        interrupted = stopped.is_set()
        stopped.set()
        for query in queries:
            query.stop()
        writer.join()
    for query in queries:
        query.read_state()
    minutes = max((query.files for query in queries), default=0)
    return DemoResult(
        records=[query.record for query in queries],
        budget=stream.budget,
        needed=list(enumerate(stream.needed[: minutes + 1].tolist())),
        window=stream.scale.minutes,
        seconds=time.monotonic() - begun,
        interrupted=interrupted,
        page=folder / "index.html",
    )


def _watch(
    queries: list[PolicyQuery],
    writer: FileWriter,
    stream: DemoStream,
    console: Console,
    stopped: threading.Event,
) -> None:
    """Show progress until everything that was written is joined."""
    begun = time.monotonic()
    with (
        ThreadPoolExecutor(1, "tidegate-demo-inspector") as pool,
        Live(console=console, refresh_per_second=4, transient=True) as live,
    ):
        inspection: Future[None] | None = None
        turn, inspected = 0, begun
        while not stopped.wait(_POLL):
            for query in queries:
                query.read_progress()
            writer.consumed = min(query.files for query in queries)
            live.update(_view(queries, stream, writer, time.monotonic() - begun))
            if not writer.is_alive() and writer.consumed == writer.written:
                return
            if (inspection is None or inspection.done()) and time.monotonic() - inspected > _INSPECT_EVERY:
                query = queries[turn % len(queries)]
                inspection, inspected = pool.submit(query.read_state), time.monotonic()
                turn += 1


def _view(
    queries: list[PolicyQuery], stream: DemoStream, writer: FileWriter, elapsed: float
) -> RenderableType:
    table = Table(box=None, pad_edge=False, padding=(0, 3, 0, 0), header_style="dim")
    for name in ("policy", "rows in", "results", "recall so far", "", "memory / budget", ""):
        table.add_column(name, justify="right" if name in ("rows in", "results", "recall so far") else "left")
    best = max((query.record.recall for query in queries), default=0.0)
    for record in (query.record for query in queries):
        rows = record.memory[-1][1] if record.memory else 0
        bar = _bar(record.policy)
        table.add_row(
            Text(record.policy, colour(record.policy)),
            f"{record.rows_in:,}",
            f"{record.results:,}",
            f"{record.recall:.1%}",
            bar(best or 1.0, record.recall),
            f"{rows:,} / {stream.budget:,} rows" if record.memory else f"... / {stream.budget:,} rows",
            bar(stream.budget, rows),
        )
    files = f"minute {writer.written} of {stream.scale.files} written"
    title = Text.assemble(
        ("Auctions and bids, joined in a tenth of the memory", "bold"), f"   {files}, {elapsed:.0f} s"
    )
    first = all(query.record.rows_in for query in queries)
    hint = (
        "Ctrl-C stops early"
        if first
        else "the first micro-batch takes longer: Spark starts its Python workers"
    )
    return Group(title, "", table, "", Text(hint, "dim"))


def _bar(policy: str) -> Callable[[float, float], ProgressBar]:
    def bar(total: float, done: float) -> ProgressBar:
        return ProgressBar(
            total, done, width=16, complete_style=colour(policy), finished_style=colour(policy)
        )

    return bar


def _show(result: DemoResult, console: Console) -> None:
    if result.interrupted:
        console.print("Stopped early: these are the results until then.", style="yellow")
    table = Table(box=None, pad_edge=False, padding=(0, 3, 0, 0), header_style="bold")
    table.add_column("policy")
    for name in ("rows in", "results", "exact", "recall", "peak rows", "budget"):
        table.add_column(name, justify="right")
    for record in result.records:
        table.add_row(Text(record.policy, colour(record.policy)), *record.cells())
    console.print(table)
    console.print()
    for sentence in findings(result):
        console.print(sentence, highlight=False)
    console.print(f"Plots: {result.page}", highlight=False, soft_wrap=True)
