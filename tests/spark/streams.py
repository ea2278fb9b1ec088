"""Helpers of streaming tests: batches of rows become files, one per micro-batch, and results are collected."""

from __future__ import annotations

import os
import random
import shutil
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.errors import StreamingQueryException
from pyspark.sql import functions as F  # noqa: N812 - its usual name
from pyspark.sql.types import (
    BinaryType,
    GeographyType,
    GeometryType,
    TimestampNTZType,
    TimestampType,
    VariantType,
)

from tidegate.spark.session.spark_errors import start_timed_out

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

    from tidegate.spark.bucket.join.plan import How

EPOCH = datetime(2026, 1, 1, tzinfo=UTC)
HOWS: tuple[How, ...] = ("inner", "left", "right", "full", "left_semi", "left_anti")
SENTINEL = -9
FAR = 10_000_000
"""Milliseconds; a row this late moves the watermark past every window."""

_names = count()


def at(milliseconds: int) -> datetime:
    return EPOCH + timedelta(milliseconds=milliseconds)


def write(folder: Path, batches: Sequence[pa.Table]) -> Path:
    """Write one file per micro-batch; Spark reads files in order of modification."""
    folder.mkdir(parents=True, exist_ok=True)
    begin = len(list(folder.glob("*.parquet")))
    for i, table in enumerate(batches, start=begin):
        file = folder / f"{i:04d}.parquet"
        pq.write_table(table, file)
        os.utime(file, (1000 + 10 * i, 1000 + 10 * i))
    return folder


def read(spark: SparkSession, folder: Path, time: str, delay: str) -> DataFrame:
    """A stream with one file per micro-batch."""
    schema = spark.read.parquet(str(folder)).schema
    frame = spark.readStream.schema(schema).option("maxFilesPerTrigger", 1).parquet(str(folder))
    return frame.withWatermark(time, delay)


_STARTS = 3
"""Maximum number of starts of a query: a busy machine may not start its Python process in time."""


@dataclass
class Running:
    """A query that runs until all available data is processed."""

    query: StreamingQuery
    name: str
    frame: DataFrame
    checkpoint: Path

    @classmethod
    def start(cls, frame: DataFrame, checkpoint: Path) -> Running:
        name = f"results_{next(_names)}"
        return cls(_started(frame, name, checkpoint), name, frame, checkpoint)

    def rows(self) -> list[tuple[Any, ...]]:
        """All rows of its result."""
        return [tuple(row) for row in self.table().collect()]

    def table(self) -> DataFrame:
        """The same as a DataFrame."""
        self.query = run_to_end(self._start_over, self.query)
        return self.frame.sparkSession.table(self.name)

    def _start_over(self) -> StreamingQuery:
        """Start again without a checkpoint: Spark's memory sink cannot continue from one."""
        shutil.rmtree(self.checkpoint)
        return _started(self.frame, self.name, self.checkpoint)


def _started(frame: DataFrame, name: str, checkpoint: Path) -> StreamingQuery:
    writer = frame.writeStream.format("memory").queryName(name)
    return writer.option("checkpointLocation", str(checkpoint)).trigger(availableNow=True).start()


def run_to_end(start: Callable[[], StreamingQuery], running: StreamingQuery | None = None) -> StreamingQuery:
    """Wait for the end of a query; start it again if its Python process did not start in time."""
    query = running or start()
    for _ in range(_STARTS - 1):
        try:
            query.awaitTermination()
        except StreamingQueryException as error:
            if not start_timed_out(error):
                raise
            query = start()
        else:
            return query
    query.awaitTermination()
    return query


def run(frame: DataFrame, checkpoint: Path) -> list[tuple[Any, ...]]:
    """Run a stream until all available data is processed, and return all rows of the result."""
    return Running.start(frame, checkpoint).rows()


def run_to_files(frame: DataFrame, checkpoint: Path, folder: Path) -> None:
    """Run a stream with an idempotent sink: one folder per micro-batch, which is overwritten if that is repeated."""

    def save(batch: DataFrame, number: int) -> None:
        batch.write.mode("overwrite").parquet(str(folder / f"batch={number:04d}"))

    writer = frame.writeStream.foreachBatch(save).option("checkpointLocation", str(checkpoint))
    run_to_end(lambda: writer.trigger(availableNow=True).start())


def rows_of(spark: SparkSession, folder: Path) -> Counter[str]:
    """The rows in an idempotent sink."""
    frame = spark.read.parquet(*sorted(str(f) for f in folder.glob("batch=*")))
    return Counter(map(str, frame.collect()))


def texts(frame: DataFrame) -> Counter[tuple[str | None, ...]]:
    """All rows, every value as a text that is unique within its type."""
    columns = []
    for field in frame.schema.fields:
        escaped = field.name.replace("`", "``")
        name = f"`{escaped}`"
        kind = field.dataType
        if isinstance(kind, TimestampType):
            sql = f"cast(unix_micros({name}) as string)"
        elif isinstance(kind, TimestampNTZType):
            sql = f"cast({name} as string)"
        elif isinstance(kind, BinaryType):
            sql = f"hex({name})"
        elif isinstance(kind, GeographyType | GeometryType):
            sql = f"st_srid({name}) || hex(st_asbinary({name}))"
        elif isinstance(kind, VariantType):
            sql = f"schema_of_variant({name}) || to_json({name})"
        else:
            sql = f"cast({name} as string)"
        columns.append(F.expr(sql))
    # One partition, so that the order of a shuffle does not matter.
    return Counter(tuple(row) for row in frame.select(*columns).collect())


@contextmanager
def conf(spark: SparkSession, **settings: str) -> Iterator[None]:
    """Settings within a block; `__` is written for a dot."""
    names = {name.replace("__", "."): value for name, value in settings.items()}
    old = {name: spark.conf.get(name) for name in names}
    try:
        for name, value in names.items():
            spark.conf.set(name, value)
        yield
    finally:
        for name, before in old.items():
            if before is None:
                spark.conf.unset(name)
            else:
                spark.conf.set(name, before)


Row = tuple[int | None, int, int]
"""Key, time in milliseconds, number."""


_WINDOWS = [(4000, 1000), (8000, 0), (3000, 3000), (6000, -2000), (0, 0), (-1000, 5000)]


@dataclass(frozen=True)
class Case:
    """A seeded stream of both sides and the settings of its join.

    Rows are out of order within a micro-batch and across, some beyond the watermark; now and then a side is
    idle; rows repeat, times coincide, and keys are null.
    """

    seed: int
    how: How
    on: tuple[str, ...] = ("k",)
    nulls: bool = True
    batches: int = 5
    rows: int = 40

    @property
    def window(self) -> tuple[int, int]:
        """Milliseconds."""
        return random.Random(self.seed).choice(_WINDOWS)  # noqa: S311 - not for secrets

    @property
    def delay(self) -> int:
        """Milliseconds."""
        return random.Random(self.seed + 1).choice([0, 1000, 5000])  # noqa: S311

    def sides(self) -> tuple[list[list[Row]], list[list[Row]]]:
        rng = random.Random(self.seed)  # noqa: S311 - not for secrets
        number = count(1)
        return self._side(rng, number), self._side(rng, number)

    def _side(self, rng: random.Random, number: Iterator[int]) -> list[list[Row]]:
        span = 8000
        base, batches = span, []
        for _ in range(self.batches):
            rows: list[Row] = []
            if rng.random() < 0.8:
                for _ in range(rng.randint(1, self.rows)):
                    key = None if self.nulls and rng.random() < 0.1 else rng.randint(0, 4)
                    # Coarse times coincide often, and fall on the ends of windows.
                    rows.append((key, base + 500 * rng.randint(-span // 500, span // 500), next(number)))
                rows += rng.choices(rows, k=len(rows) // 5)
                base += rng.choice([0, span // 2, span])
            batches.append(rows)
        return [*batches, [(SENTINEL, FAR, 0)], [(SENTINEL, FAR + 1, 0)]]


def table(side: Literal["left", "right"], rows: list[Row]) -> pa.Table:
    """A micro-batch: the key as a number and as a text, the time (`t` or `u`), and a number (`a` or `b`)."""
    keys = [row[0] for row in rows]
    time, value = ("t", "a") if side == "left" else ("u", "b")
    return pa.table(
        {
            "k": pa.array(keys, pa.int64()),
            "s": pa.array([None if key is None else f"ключ {key % 3}" for key in keys], pa.string()),
            time: pa.array([at(row[1]) for row in rows], pa.timestamp("us", "UTC")),
            value: pa.array([row[2] for row in rows], pa.int64()),
        }
    )
