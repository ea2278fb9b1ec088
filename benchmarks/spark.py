"""Compare Tidegate's join on Spark with Spark's own join, on the same files in one run; compare only ratios."""

from __future__ import annotations

import contextlib
import statistics
import tempfile
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Self

import numpy as np
import pyarrow as pa
from pyarrow import parquet
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - its usual name
from pyspark.sql.streaming.listener import StreamingQueryProgress
from rich.console import Console
from rich.table import Table

import tidegate as tg
from tidegate.spark.session.configuration import STATE_STORE_PROVIDER
from tidegate.spark.session.daemon import MODULE
from tidegate.spark.session.local import local_session
from tidegate.spark.state.deferred_processor import CHUNKS

ROWS = 375_000
SECONDS = 60
WARM = 3
BATCHES = 9
DEFAULT_STORE = "org.apache.spark.sql.execution.streaming.state.HDFSBackedStateStoreProvider"
AS_SHIPPED = {
    "spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled": "false",
    "spark.sql.streaming.stateStore.rocksdb.trackTotalNumberOfRows": "true",
}
"""Spark's default settings of its RocksDB store."""
STATE_FORMAT_2 = {"spark.sql.streaming.join.stateFormatVersion": "2"}
"""Spark's default format of a join's state, with RocksDB and the settings of `tidegate.configure`."""
STATE_FORMAT_4 = {"spark.sql.streaming.join.stateFormatVersion": "4"}
"""Spark's newest format of a join's state, with RocksDB and the settings of `tidegate.configure`."""
_START = int(datetime(2026, 1, 1, tzinfo=UTC).timestamp() * 1e6)


@dataclass(frozen=True)
class QueryMeasurement:
    """One query.

    Parameters
    ----------
    rate, results
        Rows a second in steady state, and results a micro-batch.
    state_bytes, written_bytes
        The bytes of the state, and those written to the checkpoint a micro-batch.
    worker_bytes
        The largest resident size of a Python worker, as the system reports it.
    phases
        Where the time went, in milliseconds.
    """

    rate: float
    results: float
    state_bytes: float
    written_bytes: float
    worker_bytes: float
    phases: dict[str, float]


def write(
    folder: Path, rows: int, batches: int, *, window: int = 1, payload: int = 14, filled: bool = False
) -> list[int]:
    """Write a file for each side and micro-batch: uniform keys, one partner per row in its window, a string payload.

    Parameters
    ----------
    folder
        The output folder; each side has a subfolder.
    rows
        The number of rows per micro-batch, both sides together.
    batches
        The number of files of each side.
    window
        The length of a row's window in micro-batches, before it and after it.
    payload
        The length of the string in bytes.
    filled
        Whether the first file has as many rows as the window, so that the state is full after it.

    Returns
    -------
    list[int]
        The number of results of each micro-batch whose rows are both in it. These need no memory.
    """
    rng = np.random.default_rng(1)
    half, keys = rows // 2, window * (rows // 2) * 2
    inside = [np.ones(keys, np.int64) for _ in range(batches)]
    for side in ("left", "right"):
        (folder / side).mkdir(parents=True)
        start = 0
        for batch in range(batches):
            spans = window if filled and batch == 0 else 1
            count, length = half * spans, SECONDS * 10**6 * spans
            micros = _START + start + np.sort(rng.integers(0, length, count))
            key = rng.integers(0, keys, count)
            table = pa.table(
                {
                    "key": key,
                    "time": pa.array(micros, pa.timestamp("us", "UTC")),
                    "amount": rng.random(count),
                    "note": _strings(rng, count, payload),
                }
            )
            parquet.write_table(table, folder / side / f"{batch:04d}.parquet")
            inside[batch] *= np.bincount(key, minlength=keys)
            start += length
    return [int(pairs.sum()) for pairs in inside]


def _strings(rng: np.random.Generator, count: int, length: int) -> pa.Array:
    """Random strings, which no codec makes much smaller."""
    letters = rng.integers(33, 127, count * length, np.uint8)
    offsets = np.arange(count + 1, dtype=np.int32) * length
    return pa.StringArray.from_buffers(count, pa.py_buffer(offsets), pa.py_buffer(letters))


def sides(spark: SparkSession, folder: Path) -> tuple[DataFrame, DataFrame]:
    """Both streams, with one file of each per micro-batch."""
    read = spark.readStream.option("maxFilesPerTrigger", 1).schema(
        "key long, time timestamp, amount double, note string"
    )
    left, right = (
        read.parquet(str(folder / s)).withWatermark("time", "5 seconds") for s in ("left", "right")
    )
    return left, right


def own_join(left: DataFrame, right: DataFrame, seconds: int = SECONDS) -> DataFrame:
    """Spark's own stream-stream join of the same rows."""
    other = right.select(*(F.col(name).alias(f"{name}_right") for name in right.columns))
    near = F.expr(
        "key = key_right and time_right between "
        f"time - interval {seconds} seconds and time + interval {seconds} seconds"
    )
    return left.join(other, near)


def bounded_join(budget: int | None, seconds: int = SECONDS) -> Callable[[DataFrame, DataFrame], DataFrame]:
    """Tidegate's join within a budget."""
    span = f"{seconds} seconds"
    return lambda left, right: tg.join(left, right, on="key", time="time", window=(span, span), budget=budget)


def measure(
    spark: SparkSession, folder: Path, join: Callable[[DataFrame, DataFrame], DataFrame], warm: int = WARM
) -> QueryMeasurement:
    """Run a query over all files, and measure the micro-batches after the first `warm`."""
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as checkpoint:
        stream = (
            join(*sides(spark, folder)).writeStream.format("noop").option("checkpointLocation", checkpoint)
        )
        with Watch(spark) as watch:
            query = stream.trigger(availableNow=True).start()
            query.awaitTermination()
        progress = [p for p in query.recentProgress if p["numInputRows"]][warm:]
        held = _bytes_of_state(spark, checkpoint, progress[-1])
        # Spark keeps the files of a hundred micro-batches, so what is there is what was written.
        written = sum(file.stat().st_size for file in Path(checkpoint).rglob("*") if file.is_file())
        batches = len([p for p in query.recentProgress if p["numInputRows"]])
    seconds = [p["batchDuration"] / 1e3 for p in progress]
    phases = {
        name: statistics.median(p["durationMs"].get(name, 0) for p in progress)
        for name in progress[0]["durationMs"]
    }
    return QueryMeasurement(
        rate=statistics.median(p["numInputRows"] / t for p, t in zip(progress, seconds, strict=True)),
        results=statistics.median(p["sink"]["numOutputRows"] for p in progress),
        state_bytes=held,
        written_bytes=written / batches,
        worker_bytes=watch.largest,
        phases=phases,
    )


class Watch:
    """Watches the resident size of a session's Python workers, from outside."""

    def __init__(self, spark: SparkSession) -> None:
        self._jvm = int(spark.sparkContext._gateway.proc.pid)  # type: ignore[union-attr]  # noqa: SLF001 - no other way
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self.largest = 0

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._done.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._done.wait(0.1):
            for process in _descendants(self._jvm):
                self.largest = max(self.largest, _resident(process))


def _descendants(process: int) -> Iterator[int]:
    """The processes that any thread of a process has started, and theirs."""
    for file in Path(f"/proc/{process}/task").glob("*/children"):
        with contextlib.suppress(OSError):
            for child in map(int, file.read_text().split()):
                yield child
                yield from _descendants(child)


def is_daemon(command: Sequence[str]) -> bool:
    """Whether a process is the daemon of Spark's Python workers, or one of the workers that it forked."""
    return "pyspark.daemon" in command or MODULE in command


def _resident(process: int) -> int:
    """The largest resident size of a Python worker so far, in bytes; 0 for other processes."""
    with contextlib.suppress(OSError, StopIteration):
        if not is_daemon(Path(f"/proc/{process}/cmdline").read_bytes().decode().split("\0")):
            return 0
        lines = Path(f"/proc/{process}/status").read_text().splitlines()
        return 1024 * int(next(line for line in lines if line.startswith("VmHWM")).split()[1])
    return 0


def _bytes_of_state(spark: SparkSession, checkpoint: str, progress: StreamingQueryProgress) -> float:
    """The size of Tidegate's state in the store; for Spark's own join the memory that the store reports."""
    if "TransformWithState" in progress["stateOperators"][0]["operatorName"] or "transformWithState" in str(
        progress
    ):
        chunks = spark.read.format("statestore").option("stateVarName", CHUNKS).load(checkpoint)
        [[size]] = chunks.agg(F.sum(F.length("user_map_value.payload"))).collect()
        return float(size)
    return float(sum(operator["memoryUsedBytes"] for operator in progress["stateOperators"]))


Contenders = dict[str, tuple[dict[str, str], Callable[[DataFrame, DataFrame], DataFrame]]]
"""Queries by name, with the settings that each needs in addition to those of `tidegate.configure`."""


def take_turns(
    spark: SparkSession, folder: Path, contenders: Contenders, turns: int, warm: int = WARM
) -> dict[str, list[QueryMeasurement]]:
    """Run the queries alternately, each `turns` times."""
    measured: dict[str, list[QueryMeasurement]] = {name: [] for name in contenders}
    for _ in range(turns):
        for name, (confs, join) in contenders.items():
            tg.configure(spark)
            for conf, value in confs.items():
                spark.conf.set(conf, value)
            measured[name].append(measure(spark, folder, join, warm))
            for conf in confs:
                spark.conf.unset(conf)
    tg.configure(spark)
    return measured


def shares(results: float, every: float, inside: Sequence[int]) -> tuple[str, str]:
    """The share of all results that were found, and of those whose rows are in different micro-batches."""
    free = statistics.median(inside)
    return f"{results / every:.0%}", f"{(results - free) / (every - free):.0%}"


def against_spark(console: Console, spark: SparkSession, folder: Path, inside: Sequence[int]) -> None:
    """Run Tidegate's join and Spark's own join with both stores on the same files, alternately."""
    window = 2 * ROWS
    contenders: Contenders = {
        "Spark's own, default store": ({STATE_STORE_PROVIDER: DEFAULT_STORE}, own_join),
        "Tidegate, a tenth of the window": ({}, bounded_join(window // 10)),
        "Spark's own, RocksDB": (AS_SHIPPED, own_join),
        "Tidegate, no limit": ({}, bounded_join(None)),
    }
    measured = take_turns(spark, folder, contenders, 2)
    every = max(m.results for runs in measured.values() for m in runs)
    table = Table(
        f"{ROWS:,} rows per micro-batch",
        "thousand rows/s",
        "x default store",
        "x RocksDB",
        "results",
        "of all",
        "across micro-batches",
        "state MB",
    )
    rates = {name: max(m.rate for m in runs) for name, runs in measured.items()}
    for name, runs in measured.items():
        ratios = [
            rates[name] / rates[peer] for peer in ("Spark's own, default store", "Spark's own, RocksDB")
        ]
        best = max(runs, key=lambda m: m.rate)
        table.add_row(
            name,
            f"{best.rate / 1e3:.0f}",
            *(f"{r:.2f}" for r in ratios),
            f"{best.results:,.0f}",
            *shares(best.results, every, inside[WARM:]),
            f"{best.state_bytes / 1e6:.1f}",
        )
    console.print(table)
    phases = max(measured["Tidegate, a tenth of the window"], key=lambda m: m.rate).phases
    console.print(
        "a micro-batch of Tidegate, ms:", ", ".join(f"{name} {ms:.0f}" for name, ms in phases.items())
    )


def over_budgets(console: Console, spark: SparkSession, folder: Path) -> None:
    """Rows per second by budget."""
    table = Table("budget, rows", "thousand rows/s", "results")
    for budget in (1_000, 10_000, 100_000, 1_000_000):
        result = measure(spark, folder, bounded_join(budget))
        table.add_row(f"{budget:,}", f"{result.rate / 1e3:.0f}", f"{result.results:,.0f}")
    console.print(table)


def over_sizes(console: Console, spark: SparkSession, root: Path) -> None:
    """Rows per second by size of the micro-batch, with a tenth of the window."""
    table = Table("rows per micro-batch", "thousand rows/s")
    for rows in (10_000, 100_000, 750_000):
        folder = root / str(rows)
        write(folder, rows, WARM + 4)
        result = measure(spark, folder, bounded_join(rows // 5))
        table.add_row(f"{rows:,}", f"{result.rate / 1e3:.0f}")
    console.print(table)


def main() -> None:
    """Run all measurements."""
    console = Console()
    with tempfile.TemporaryDirectory() as name:
        root = Path(name)
        inside = write(root / "main", ROWS, BATCHES)
        spark = local_session("bench", memory="4g")
        try:
            against_spark(console, spark, root / "main", inside)
            over_budgets(console, spark, root / "main")
            over_sizes(console, spark, root)
        finally:
            spark.stop()


if __name__ == "__main__":
    main()
