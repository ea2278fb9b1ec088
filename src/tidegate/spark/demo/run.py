"""The demo: clicks and purchases joined by Spark itself, by Tidegate, and by Tidegate with a tenth of the memory.

The exact joins run one after the other, so that their speed can be compared. Then the best policy runs alone, and the
others together while the best possible choice of rows is computed.
"""

from __future__ import annotations

import contextlib
import shutil
import signal
import threading
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Final

from pyspark.sql import SparkSession
from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from tidegate.engine import simulate
from tidegate.spark.demo.charts import colour, picture
from tidegate.spark.demo.page import write_page
from tidegate.spark.demo.queries import DemoQuery, OwnJoin, TidegateJoin, largest_worker, same_rows
from tidegate.spark.demo.result import EXACT, OWN, DemoResult, QueryRecord, findings, percent
from tidegate.spark.demo.stream import DemoScale, DemoStream
from tidegate.spark.session.configuration import configure, shuffle_partitions
from tidegate.spark.session.local import SHORT_LIVED, local_session
from tidegate.types import InputError

POLICIES: Final = ("prob", "random", "fifo")
"""The policies that are compared: the best for this stream, and two that know nothing of it."""

_MARKER: Final = ".tidegate-demo"
_POLL: Final = 0.2
_MEMORY: Final = "3g"


def run_demo(
    folder: Path,
    console: Console,
    *,
    spark: SparkSession | None = None,
    scale: DemoScale | None = None,
    seed: int = 0,
) -> DemoResult:
    """Run the demo, show its progress, and write a page with charts; Ctrl-C ends it early and keeps the results.

    Parameters
    ----------
    folder
        Folder for inputs, results, checkpoints, Spark's log and the page. Those of an earlier demo are replaced.
    console
        The terminal for progress and results.
    spark
        A session to run in; by default one is created and stopped.
    scale
        The number of rows.
    seed
        Seed of the stream.
    """
    begun, scale = time.monotonic(), scale or DemoScale()
    _prepare_folder(folder)
    with console.status("Writing clicks and purchases ..."):
        stream = DemoStream(scale, seed)
        stream.write(folder)
    with console.status("Starting Spark ..."):
        base = spark or local_session(
            "tidegate demo", memory=_MEMORY, java=SHORT_LIVED, log=folder / "spark.log"
        )
    result = DemoResult(
        own=QueryRecord(OWN),
        exact=QueryRecord(EXACT),
        bounded=[QueryRecord(policy, policy) for policy in POLICIES],
        minutes=scale.minutes,
        budget=scale.budget,
        needed=scale.clicks * min(scale.minutes, scale.files),
        page=folder / "index.html",
    )
    try:
        # After Spark's start, which sets a handler of its own.
        with _stop_on_interrupt() as stopped:
            _Run(base, folder, stream, result, stopped).all_queries(console)
            result.interrupted = stopped.is_set()
    finally:
        if spark is None:
            base.stop()
    result.seconds = time.monotonic() - begun
    write_page(result)
    result.page.with_name("picture.svg").write_text(picture(result), encoding="utf-8")
    _show(result, console)
    return result


def _prepare_folder(folder: Path) -> None:
    if folder.exists() and not (folder / _MARKER).exists() and any(folder.iterdir()):
        raise InputError(
            f"{str(folder)!r} contains other files than a demo; name another folder, or empty it"
        )
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
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


class _Run:
    """The queries of one demo, and what they fill in."""

    def __init__(
        self,
        base: SparkSession,
        folder: Path,
        stream: DemoStream,
        result: DemoResult,
        stopped: threading.Event,
    ) -> None:
        self._base, self._folder, self._stream = base, folder, stream
        self._result, self._stopped = result, stopped

    def all_queries(self, console: Console) -> None:
        """Run them all, unless the demo is stopped."""
        result, scale = self._result, self._stream.scale
        own = OwnJoin(self._session(own=True), self._folder, scale, result.own)
        exact, best, *others = (
            TidegateJoin(self._session(), self._folder, scale, record)
            for record in (result.exact, *result.bounded)
        )
        with (
            ThreadPoolExecutor(1, "tidegate-demo") as pool,
            Live(console=console, refresh_per_second=4, transient=True) as live,
        ):
            self._join([own], live)
            self._join([exact], live)
            if not self._stopped.is_set():
                result.same_results = same_rows(own.results, exact.results)
            self._join([best], live)
            optimum = None if self._stopped.is_set() else pool.submit(self._optimum)
            self._join(others, live, optimum)
            if not self._stopped.is_set() and optimum is not None:
                result.optimum = optimum.result()
        if (context := getattr(self._base, "sparkContext", None)) is not None:
            result.worker_bytes = largest_worker(context._gateway.proc.pid)  # noqa: SLF001 - Spark's Java process
        for query in (best, *others):
            query.read_peak()

    def _session(self, *, own: bool = False) -> SparkSession:
        """A session with settings of its own, in the same Spark."""
        session = configure(self._base.newSession(), partitions=shuffle_partitions(self._base))
        # No row waits for the watermark alone, so micro-batches without data would only take time.
        session.conf.set("spark.sql.streaming.noDataMicroBatches.enabled", "false")
        if own:
            session.conf.set("spark.sql.streaming.join.stateFormatVersion", "4")
        return session

    def _join(self, queries: Sequence[DemoQuery], live: Live, optimum: Future[float] | None = None) -> None:
        """Run queries at the same time until all have finished, or the demo is stopped."""
        if self._stopped.is_set():
            return
        running = list(queries)
        try:
            for query in queries:
                query.start()
            while running or (optimum is not None and not optimum.done()):
                running = [query for query in running if not query.is_finished()]
                live.update(_view(self._result, self._stream.scale, [query.record for query in running]))
                if self._stopped.wait(_POLL):
                    break
        finally:
            for query in running:
                query.stop()

    def _optimum(self) -> float:
        """The recall of the best possible choice of rows, by a simulation of the same steps."""
        files, budget = self._stream.scale.files, self._result.budget
        left, right = self._stream.traces(files)
        step = max(1, (len(left) + len(right)) // files)
        window = (self._stream.scale.minutes, 0)
        report = simulate(
            left, right, window=window, budget=budget, policy="offline", split=(budget, 0), step=step
        )
        return report.recall


def _view(result: DemoResult, scale: DemoScale, running: Sequence[QueryRecord]) -> RenderableType:
    table = _table("", "recall", "state", "rows/s", "rows buffered", "results", "")
    for record in result.records:
        recall = result.recall(record)
        done = len(record.batches)
        state = f"minute {done} of {scale.files}" if record in running else ""
        bar = ProgressBar(1.0, recall or 0.0, width=16, complete_style=colour(record.name))
        table.add_row(
            Text(record.name, colour(record.name)), *result.cells(record), Group(bar) if done else "", state
        )
    title = Text("Clicks and purchases of the same account, joined on Spark", "bold")
    started = any(record.batches for record in result.records)
    hint = "Ctrl-C stops early" if started else "the first micro-batch takes longer: Spark compiles its plan"
    return Group(title, "", table, "", Text(hint, "dim"))


def _table(*columns: str) -> Table:
    table = Table(box=None, pad_edge=False, padding=(0, 3, 0, 0), header_style="dim")
    for column in columns:
        table.add_column(column, justify="right" if column else "left", no_wrap=True)
    table.add_column("")
    return table


def _show(result: DemoResult, console: Console) -> None:
    if result.interrupted:
        console.print("Stopped early: these are the results until then.", style="yellow")
    table = _table("", "recall", "state", "rows/s", "rows buffered", "results")
    for record in result.records:
        table.add_row(Text(record.name, colour(record.name)), *result.cells(record))
    if result.optimum is not None:
        optimum = Text("best possible", colour("offline"))
        table.add_row(optimum, percent(result.optimum), "", "", f"{result.budget:,}", "")
    console.print(table)
    console.print()
    for sentence in findings(result):
        console.print(sentence, highlight=False)
    console.print(f"Charts: {result.page}", highlight=False, soft_wrap=True)
