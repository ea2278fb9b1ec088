"""A real streaming join to watch: auctions and bids, a tenth of the memory, several policies side by side.

A thread writes Parquet files while one query a policy joins them. What a policy found is counted by Spark
itself; what it holds is read from its checkpoint.
"""

from __future__ import annotations

import contextlib
import shutil
import signal
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Final

import numpy as np
import pyarrow as pa
from pyarrow import parquet
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - its usual name
from pyspark.sql.streaming.query import StreamingQuery
from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from tidegate.spark.causes import QueryFailedError, root_cause
from tidegate.spark.demo.page import Outcome, Reading, Track, colour, findings, write_page
from tidegate.spark.inspection import inspect
from tidegate.spark.join import join
from tidegate.spark.session import SHORT_LIVED, configure, local
from tidegate.streams import Auctions
from tidegate.types import Array, InputError

POLICIES: Final = ("age", "until_expiry", "fifo")
"""Who competes, unless told otherwise."""
MEMORY_SHARE: Final = 0.1
"""Of the rows that the window holds, how many the budget allows."""

_MARKER: Final = ".tidegate-demo"
_SPAN: Final = timedelta(minutes=1)
_BIDS: Final = 5.0
_LATENESS: Final = 4.0
_START: Final = np.datetime64("2026-01-01T00:00:00", "us").astype(np.int64)
_MICROS: Final = 1_000_000
_SIDES: Final = {
    "auctions": "auction bigint, opened_at timestamp",
    "bids": "auction bigint, placed_at timestamp, price double",
}
_FILES_AHEAD: Final = 2
_POLL: Final = 0.3
_INSPECT_EVERY: Final = 5.0
_METRIC: Final = "found"


@dataclass(frozen=True)
class Scale:
    """How much arrives; a file holds a minute of the stream.

    Parameters
    ----------
    files
        How many files of each side are written, at most.
    auctions
        How many auctions open in a minute; each draws five bids on average.
    minutes
        How long an auction is open, which is the join's window.
    """

    files: int = 30
    auctions: int = 10_000
    minutes: int = 8

    def __post_init__(self) -> None:
        if min(self.files, self.auctions, self.minutes) < 1:
            raise InputError(f"{self} is no stream; give numbers of at least 1")

    @property
    def window(self) -> timedelta:
        """How long an auction is open."""
        return self.minutes * _SPAN


class Feed:
    """All rows that will arrive, and so what an exact join would find and hold."""

    def __init__(self, scale: Scale, seed: int) -> None:
        self.scale = scale
        stream = Auctions(
            length=scale.window.total_seconds(),
            bids=_BIDS,
            rate=scale.auctions / _SPAN.total_seconds(),
            lateness=_LATENESS,
        )
        # A few more than are needed on average, so that the last minute is as full as the others.
        opened, bids = stream.both(int(scale.files * scale.auctions * 1.05) + 100, seed)
        self.opened = _START + (opened.time * _MICROS).astype(np.int64)
        self.placed = _START + (bids.time * _MICROS).astype(np.int64)
        self.auction: Array = bids.keys[0].to_numpy()
        self.price = np.zeros(0) if bids.value is None else bids.value
        ends = _START + np.arange(scale.files + 1) * (_SPAN // timedelta(microseconds=1))
        self._cuts = {
            "auctions": np.searchsorted(self.opened, ends),
            "bids": np.searchsorted(self.placed, ends),
        }
        waited = self.placed - self.opened[self.auction]
        self._joins = (waited >= 0) & (waited <= scale.window // timedelta(microseconds=1))
        # Auctions are numbered in the order of their opening, so those open form a range.
        closed = np.searchsorted(self.opened, ends - scale.window // timedelta(microseconds=1))
        self.needed = self._cuts["auctions"] - closed
        self.budget = max(1, int(self.needed.max() * MEMORY_SHARE))

    def rows(self, side: str, files: int) -> int:
        """How many rows of a side the first files hold."""
        return int(self._cuts[side][files])

    def files(self, bids: int) -> int:
        """How many files these bids fill."""
        return int(np.searchsorted(self._cuts["bids"], bids, side="right")) - 1

    def minute(self, bids: int) -> float:
        """How far the stream has come once these bids have arrived."""
        last = self.placed[bids - 1] if bids else _START
        return float((last - _START) / _MICROS / _SPAN.total_seconds())

    def exact(self, auctions: int, bids: int) -> int:
        """How many results the first rows of each side have."""
        return int(np.count_nonzero((self.auction[:bids] < auctions) & self._joins[:bids]))

    def table(self, side: str, file: int) -> pa.Table:
        """The rows of one file."""
        part = slice(*self._cuts[side][file : file + 2])
        stamp = pa.timestamp("us", "UTC")
        if side == "auctions":
            numbers = np.arange(part.start, part.stop)
            return pa.table({"auction": numbers, "opened_at": pa.array(self.opened[part], stamp)})
        placed = pa.array(self.placed[part], stamp)
        return pa.table({"auction": self.auction[part], "placed_at": placed, "price": self.price[part]})


class Writer(threading.Thread):
    """Writes the files: never far ahead of the slowest query, and no more once time is up."""

    def __init__(self, feed: Feed, folder: Path, halted: threading.Event, seconds: float) -> None:
        super().__init__(name="tidegate-demo-writer", daemon=True)
        self.written = 0
        self.taken = 0
        self._feed, self._folder, self._halted = feed, folder, halted
        self._deadline = time.monotonic() + seconds

    def run(self) -> None:
        """Write until all is written, time is up, or the demo is halted."""
        for file in range(self._feed.scale.files):
            while self.written - self.taken >= _FILES_AHEAD:
                if self._halted.wait(_POLL / 4) or time.monotonic() > self._deadline:
                    return
            if self._halted.is_set() or time.monotonic() > self._deadline:
                return
            self._write(file)
            self.written += 1

    def _write(self, file: int) -> None:
        """Write both sides out of sight, then show both at once: a query that saw bids alone would lose them."""
        hidden = {side: self._folder / side / f".{file:04}.parquet" for side in _SIDES}
        for side, path in hidden.items():
            parquet.write_table(self._feed.table(side, file), path)
        for path in hidden.values():
            path.rename(path.with_name(path.name.removeprefix(".")))


class Runner:
    """One policy's query, and what it has done so far."""

    def __init__(self, spark: SparkSession, feed: Feed, folder: Path, policy: str) -> None:
        self.track = Track(policy, feed.budget)
        self._spark, self._feed = spark, feed
        self._checkpoint = folder / "checkpoints" / policy
        self._rows = dict.fromkeys(_SIDES, 0)
        self._batch = -1
        self._query = self._start(folder)

    def _start(self, folder: Path) -> StreamingQuery:
        auctions, bids = (self._source(folder / side, schema) for side, schema in _SIDES.items())
        joined = join(
            auctions,
            bids,
            on="auction",
            time=("opened_at", "placed_at"),
            window=(self._feed.scale.window, timedelta(0)),
            budget=self._feed.budget,
            # A bid joins auctions that opened before it, so it is of no use once it has arrived.
            split=(self._feed.budget, 0),
            policy=self.track.policy,
            lateness="0 seconds",
            # The queries share the cores: each does with one.
            buckets=1,
        )
        return (
            joined.observe(_METRIC, F.count(F.lit(1)).alias("results"))
            .writeStream.format("parquet")
            .option("path", str(folder / "results" / self.track.policy))
            .option("checkpointLocation", str(self._checkpoint))
            .trigger(processingTime="200 milliseconds")
            .start()
        )

    def _source(self, path: Path, schema: str) -> DataFrame:
        return self._spark.readStream.schema(schema).option("maxFilesPerTrigger", 1).parquet(str(path))

    @property
    def files(self) -> int:
        """How many files it has been through."""
        return self._feed.files(self._rows["bids"])

    def catch_up(self) -> None:
        """Read how far the query has come; a query that failed raises."""
        failure = self._query.exception()
        if failure is not None:
            raise QueryFailedError(
                f"the query of policy {self.track.policy!r} failed: {root_cause(failure)}; start the demo again (it "
                "begins anew; a query of yours would go on from its checkpoint)"
            )
        for progress in self._query.recentProgress:
            if progress.batchId <= self._batch or _METRIC not in progress.observedMetrics:
                continue
            self._batch = progress.batchId
            for side in _SIDES:
                ours = (s for s in progress.sources if s.description.endswith(f"/{side}]"))
                self._rows[side] += sum(source.numInputRows for source in ours)
            auctions, bids = self._rows.values()
            self.track.readings.append(
                Reading(
                    minute=self._feed.minute(bids),
                    rows_in=auctions + bids,
                    results=self.track.results + progress.observedMetrics[_METRIC]["results"],
                    exact=self._feed.exact(auctions, bids),
                )
            )

    def look_inside(self) -> None:
        """Read from the checkpoint how many rows are buffered; before the first commit there is none."""
        try:
            counts = inspect(self._checkpoint, "counts", spark=self._spark).collect()
        except (InputError, PySparkException):
            return
        if counts:
            minute = self._feed.minute(sum(bucket.rows_right for bucket in counts))
            self.track.memory.append((minute, sum(bucket.buffered for bucket in counts)))
            self.track.peak_rows = sum(bucket.peak_rows for bucket in counts)

    def stop(self) -> None:
        """End the query and keep what it has done."""
        self._query.stop()


def run_demo(
    folder: Path,
    console: Console,
    *,
    spark: SparkSession | None = None,
    scale: Scale | None = None,
    policies: Sequence[str] = POLICIES,
    seconds: float = 65.0,
    seed: int = 0,
) -> Outcome:
    """Run the demo, show its progress, and leave a page with plots; Ctrl-C ends it early, with what there is.

    Parameters
    ----------
    folder
        Where inputs, results, checkpoints, Spark's log and the page go. An earlier demo's are replaced.
    console
        Where to show it.
    spark
        A session to run in; by default one is made and stopped.
    scale
        How much arrives.
    policies
        Who competes.
    seconds
        After this time no more is written; what is there is still joined.
    seed
        Fixes what arrives.
    """
    _make_room(folder)
    feed = Feed(scale or Scale(), seed)
    with console.status("Starting Spark ..."):
        base = spark or local("tidegate demo", java=SHORT_LIVED, log=folder / "spark.log")
    try:
        # After Spark's start, which sets a handler of its own.
        with _interruptible() as halted:
            outcome = _race(base, feed, folder, console, policies, seconds, halted)
    finally:
        if spark is None:
            base.stop()
    write_page(outcome, folder / "index.html")
    _show(outcome, console)
    return outcome


def _make_room(folder: Path) -> None:
    if folder.exists() and not (folder / _MARKER).exists() and any(folder.iterdir()):
        raise InputError(
            f"{str(folder)!r} holds something else than a demo; name another folder, or empty it"
        )
    shutil.rmtree(folder, ignore_errors=True)
    for side in _SIDES:
        (folder / side).mkdir(parents=True)
    (folder / _MARKER).touch()


@contextlib.contextmanager
def _interruptible() -> Iterator[threading.Event]:
    """Turn the first Ctrl-C into an event, so that no call to Spark is torn apart; the second acts as usual."""
    halted = threading.Event()
    if threading.current_thread() is not threading.main_thread():
        yield halted
        return
    usual = signal.getsignal(signal.SIGINT)

    def halt(*_: object) -> None:
        halted.set()
        signal.signal(signal.SIGINT, usual)

    signal.signal(signal.SIGINT, halt)
    try:
        yield halted
    finally:
        signal.signal(signal.SIGINT, usual)


def _session(base: SparkSession) -> SparkSession:
    """A session with settings of its own, in the same Spark."""
    session = configure(base.newSession(), partitions=1)
    # No row waits for the watermark alone here, and micro-batches without data would take time from the others.
    session.conf.set("spark.sql.streaming.noDataMicroBatches.enabled", "false")
    return session


def _race(
    base: SparkSession,
    feed: Feed,
    folder: Path,
    console: Console,
    policies: Sequence[str],
    seconds: float,
    halted: threading.Event,
) -> Outcome:
    session = _session(base)
    begun = time.monotonic()
    writer = Writer(feed, folder, halted, seconds)
    runners: list[Runner] = []
    try:
        writer.start()
        with console.status("Starting the queries ..."):
            runners += (Runner(session, feed, folder, policy) for policy in policies)
        _watch(runners, writer, feed, console, halted)
    finally:
        interrupted = halted.is_set()
        halted.set()
        for runner in runners:
            runner.stop()
        writer.join()
    for runner in runners:
        runner.look_inside()
    minutes = max((runner.files for runner in runners), default=0)
    return Outcome(
        tracks=[runner.track for runner in runners],
        budget=feed.budget,
        needed=list(enumerate(feed.needed[: minutes + 1].tolist())),
        window=feed.scale.minutes,
        seconds=time.monotonic() - begun,
        interrupted=interrupted,
        page=folder / "index.html",
    )


def _watch(
    runners: list[Runner], writer: Writer, feed: Feed, console: Console, halted: threading.Event
) -> None:
    """Show progress until all that was written is joined."""
    begun = time.monotonic()
    with (
        ThreadPoolExecutor(1, "tidegate-demo-inspector") as pool,
        Live(console=console, refresh_per_second=4, transient=True) as live,
    ):
        looking: Future[None] | None = None
        turn, looked = 0, begun
        while not halted.wait(_POLL):
            for runner in runners:
                runner.catch_up()
            writer.taken = min(runner.files for runner in runners)
            live.update(_view(runners, feed, writer, time.monotonic() - begun))
            if not writer.is_alive() and writer.taken == writer.written:
                return
            if (looking is None or looking.done()) and time.monotonic() - looked > _INSPECT_EVERY:
                looking, looked = pool.submit(runners[turn % len(runners)].look_inside), time.monotonic()
                turn += 1


def _view(runners: list[Runner], feed: Feed, writer: Writer, elapsed: float) -> RenderableType:
    table = Table(box=None, pad_edge=False, padding=(0, 3, 0, 0), header_style="dim")
    for name in ("policy", "rows in", "results", "recall so far", "", "memory / budget", ""):
        table.add_column(name, justify="right" if name in ("rows in", "results", "recall so far") else "left")
    best = max((runner.track.recall for runner in runners), default=0.0)
    for track in (runner.track for runner in runners):
        held = track.memory[-1][1] if track.memory else 0
        bar = _bar(track.policy)
        table.add_row(
            Text(track.policy, colour(track.policy)),
            f"{track.rows_in:,}",
            f"{track.results:,}",
            f"{track.recall:.1%}",
            bar(best or 1.0, track.recall),
            f"{held:,} / {feed.budget:,} rows" if track.memory else f"... / {feed.budget:,} rows",
            bar(feed.budget, held),
        )
    files = f"minute {writer.written} of {feed.scale.files} written"
    title = Text.assemble(
        ("Auctions and bids, joined in a tenth of the memory", "bold"), f"   {files}, {elapsed:.0f} s"
    )
    first = all(runner.track.rows_in for runner in runners)
    hint = (
        "Ctrl-C stops early"
        if first
        else "the first micro-batch takes a while: Spark starts its Python workers"
    )
    return Group(title, "", table, "", Text(hint, "dim"))


def _bar(policy: str) -> Callable[[float, float], ProgressBar]:
    def bar(total: float, done: float) -> ProgressBar:
        return ProgressBar(
            total, done, width=16, complete_style=colour(policy), finished_style=colour(policy)
        )

    return bar


def _show(outcome: Outcome, console: Console) -> None:
    if outcome.interrupted:
        console.print("Stopped early: this is what was found until then.", style="yellow")
    table = Table(box=None, pad_edge=False, padding=(0, 3, 0, 0), header_style="bold")
    table.add_column("policy")
    for name in ("rows in", "results", "exact", "recall", "peak rows", "budget"):
        table.add_column(name, justify="right")
    for track in outcome.tracks:
        table.add_row(Text(track.policy, colour(track.policy)), *track.cells())
    console.print(table)
    console.print()
    for sentence in findings(outcome):
        console.print(sentence, highlight=False)
    console.print(f"Plots: {outcome.page}", highlight=False, soft_wrap=True)
