"""The queries of the demo: Spark's own join and Tidegate's, each over the same files."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Final

import pyarrow.dataset
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - its usual name
from pyspark.sql.streaming.listener import StreamingQueryProgress

from tidegate.spark.demo.result import BatchRecord, QueryRecord
from tidegate.spark.demo.stream import SIDE_SCHEMAS, DemoScale
from tidegate.spark.inspect.inspect import inspect
from tidegate.spark.join.join import join
from tidegate.spark.session.spark_errors import QueryFailedError, root_cause, start_timed_out
from tidegate.types import InputError

_COLUMNS: Final = ("account", "clicked_at", "page", "bought_at", "amount")
_METRIC: Final = "demo"
_ATTEMPTS: Final = 3


class DemoQuery:
    """A query that joins every file once, and what it has measured so far."""

    def __init__(self, spark: SparkSession, folder: Path, scale: DemoScale, record: QueryRecord) -> None:
        self.record = record
        self._spark, self._folder, self._scale = spark, folder, scale
        name = "own" if record.policy is None else record.policy
        self._place = name
        self._last_batch = -1
        self._attempts = 0

    def start(self) -> None:
        """Start it, or let it continue after Spark could not start a Python process in time."""
        self._attempts += 1
        joined = self._joined()
        self._query = (
            joined.select(*_COLUMNS)
            .observe(_METRIC, F.count(F.lit(1)).alias("results"))
            .writeStream.format("parquet")
            .option("path", str(self.results))
            .option("checkpointLocation", str(self._checkpoint))
            .trigger(availableNow=True)
            .start()
        )

    @property
    def results(self) -> Path:
        """The folder of its results."""
        return self._folder / "results" / self._place

    @property
    def _checkpoint(self) -> Path:
        return self._folder / "checkpoints" / self._place

    def _joined(self) -> DataFrame:
        raise NotImplementedError

    def _source(self, side: str) -> DataFrame:
        reader = self._spark.readStream.schema(SIDE_SCHEMAS[side]).option("maxFilesPerTrigger", 1)
        return reader.parquet(str(self._folder / side))

    def is_finished(self) -> bool:
        """Read its progress; true if every file is joined. An error if it failed."""
        active = self._query.isActive
        failure = self._query.exception()
        for progress in self._query.recentProgress:
            if progress.batchId > self._last_batch and _METRIC in progress.observedMetrics:
                self._last_batch = progress.batchId
                self.record.batches.append(_batch_record(progress))
        if failure is None:
            return not active
        if start_timed_out(failure) and self._attempts < _ATTEMPTS:
            self.start()
            return False
        raise QueryFailedError(f"{self.record.name} failed: {root_cause(failure)}; start the demo again")

    def read_peak(self) -> None:
        """Read from the checkpoint how many rows were buffered at most; nothing before the first commit."""
        with contextlib.suppress(InputError, PySparkException):
            counts = inspect(self._checkpoint, "counts", spark=self._spark).collect()
            self.record.peak_rows = sum(bucket.peak_rows for bucket in counts)

    def stop(self) -> None:
        """Stop it, if it runs."""
        if self._attempts:
            self._query.stop()


class OwnJoin(DemoQuery):
    """Spark's own stream-stream join, in RocksDB and with its newest format of the state."""

    def _joined(self) -> DataFrame:
        clicks = self._source("clicks").withWatermark("clicked_at", "0 seconds").alias("c")
        purchases = self._source("purchases").withWatermark("bought_at", "0 seconds").alias("p")
        within = f"interval {self._scale.minutes} minutes"
        return clicks.join(
            purchases,
            F.expr(
                "c.account = p.account AND p.bought_at >= c.clicked_at "
                f"AND p.bought_at <= c.clicked_at + {within}"
            ),
        ).select("c.account", "clicked_at", "page", "bought_at", "amount")


class TidegateJoin(DemoQuery):
    """Tidegate's join: without a limit, or with a tenth of the rows."""

    def __init__(self, spark: SparkSession, folder: Path, scale: DemoScale, record: QueryRecord) -> None:
        super().__init__(spark, folder, scale, record)
        self._place = record.policy or "exact"

    def _joined(self) -> DataFrame:
        clicks, purchases = (self._source(side) for side in SIDE_SCHEMAS)
        joined = partial(
            join,
            clicks,
            purchases,
            on="account",
            time=("clicked_at", "bought_at"),
            window=(self._scale.window, "0 seconds"),
            lateness="0 seconds",
        )
        if self.record.policy is None:
            return joined()
        budget = self._scale.budget
        # A purchase joins only clicks before it, so it need not stay.
        return joined(budget=budget, policy=self.record.policy, split=(budget, 0))


def _batch_record(progress: StreamingQueryProgress) -> BatchRecord:
    operators = progress.stateOperators
    files = sum(int(operator.customMetrics.get("rocksdbSstFileSize", 0)) for operator in operators)
    return BatchRecord(
        rows=progress.numInputRows,
        seconds=progress.batchDuration / 1000,
        results=progress.observedMetrics[_METRIC]["results"],
        state_bytes=files + sum(operator.memoryUsedBytes for operator in operators),
    )


def same_rows(one: Path, other: Path) -> bool:
    """Whether two folders of results have the same rows, each equally often."""
    left, right = (
        pyarrow.dataset.dataset(folder, format="parquet").to_table(columns=list(_COLUMNS))
        for folder in (one, other)
    )
    if left.num_rows != right.num_rows:
        return False
    order = [(name, "ascending") for name in _COLUMNS]
    return bool(left.sort_by(order).equals(right.sort_by(order)))


def largest_worker(java: int) -> int | None:
    """The largest memory of a Python worker of Spark so far, in bytes; None where /proc does not tell."""
    sizes = [size for process in _descendants(java) if (size := _peak_memory(process))]
    return max(sizes, default=None)


def _descendants(process: int) -> Iterator[int]:
    for file in Path(f"/proc/{process}/task").glob("*/children"):
        with contextlib.suppress(OSError):
            for child in map(int, file.read_text(encoding="ascii").split()):
                yield child
                yield from _descendants(child)


def _peak_memory(process: int) -> int | None:
    """The largest resident memory of a process so far; None if it is not a Python process."""
    with contextlib.suppress(OSError):
        if b"python" in Path(f"/proc/{process}/cmdline").read_bytes():
            for line in Path(f"/proc/{process}/status").read_text(encoding="ascii").splitlines():
                if line.startswith("VmHWM"):
                    return 1024 * int(line.split()[1])
    return None
