"""What a Spark session must be set to."""

from __future__ import annotations

import contextlib
import logging
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Final, TypeVar

from tidegate.types import InputError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_Session = TypeVar("_Session", bound="SparkSession")

PROVIDER: Final = "spark.sql.streaming.stateStore.providerClass"
ROCKSDB: Final = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
PARTITIONS: Final = "spark.sql.shuffle.partitions"
UNSET: Final = 200
"""What Spark takes for shuffle partitions unless it is told."""
_CONFS: Final = {
    PROVIDER: ROCKSDB,
    # Commits write what changed instead of the whole store.
    "spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled": "true",
    # Counting rows would read every old value before it is replaced.
    "spark.sql.streaming.stateStore.rocksdb.trackTotalNumberOfRows": "false",
    # Fewer and larger batches between Spark and Python than the usual 10,000 rows.
    "spark.sql.execution.arrow.maxRecordsPerBatch": "100000",
    # Columns that are not Arrow's, Parquet's say, would go to Python by 4096 rows, and from rows to columns and back.
    "spark.sql.execution.arrow.pythonUDF.columnarInput.enabled": "false",
}


QUIET: Final = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.sql.session.timeZone": "UTC",
}
"""For a Spark of one's own on this machine."""

SHORT_LIVED: Final = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
"""Compiling Java thoroughly takes more time than it saves in a session of a minute or two."""


def configure(spark: _Session, *, partitions: int | None = None) -> _Session:
    """Set a session up for streaming joins, and return it.

    It sets the RocksDB state store, which Spark demands for joins of this kind, with settings that suit few
    large values, and larger batches between Spark and Python. These are settings of the session: Spark's own
    stream-stream joins in it would use RocksDB too.

    Parameters
    ----------
    spark
        The session; classic or Connect.
    partitions
        How many partitions a stream is shuffled into: as many as there are cores, as a rule. None leaves
        Spark's setting (200 unless you changed it).
    """
    for name, value in _CONFS.items():
        spark.conf.set(name, value)
    if partitions is not None:
        spark.conf.set(PARTITIONS, str(partitions))
    return spark


def partitions_of(spark: SparkSession) -> int:
    """How many partitions a stream is shuffled into."""
    return int(spark.conf.get(PARTITIONS) or UNSET)


def check_provider(spark: SparkSession) -> None:
    """Refuse to plan a stream that would fail at its first micro-batch."""
    provider = spark.conf.get(PROVIDER)
    if provider is None or not provider.endswith("RocksDBStateStoreProvider"):
        raise InputError(
            f"the session's state store is {provider!r}, and Spark runs such a stream on RocksDB only; "
            "add this line before the query starts: tidegate.configure(spark)"
        )


def local(
    app: str, *, cores: int | None = None, memory: str = "2g", java: str = "", log: Path | None = None
) -> SparkSession:
    """Make a quiet Spark on this machine, set up for streaming joins, for the command line and the demo.

    Parameters
    ----------
    app
        What Spark calls it.
    cores
        How many to use; all by default.
    memory
        What Spark's own process may take.
    java
        Options for it; `SHORT_LIVED` for a session of a minute or two.
    log
        Where its words go; nowhere by default.
    """
    from pyspark.sql import SparkSession  # noqa: PLC0415 - starting a session is what needs it

    from tidegate.spark.java import needs_java  # noqa: PLC0415 - as above

    # Workers run this very Python, whatever `python3` means on the path.
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    logging.getLogger("py4j").setLevel(logging.ERROR)
    count = cores or os.cpu_count() or 1
    builder = SparkSession.builder.master(f"local[{count}]").appName(app)
    confs = QUIET | {"spark.driver.memory": memory, "spark.driver.extraJavaOptions": java}
    for name, value in confs.items():
        builder = builder.config(name, value)
    with needs_java(), silenced(log):
        spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("ERROR" if log else "OFF")
    return configure(spark, partitions=count)


@contextlib.contextmanager
def silenced(log: Path | None) -> Iterator[None]:
    """Start programs with their output in a file: Spark's process and its workers write where they began."""
    sys.stdout.flush()
    sys.stderr.flush()
    kept = [os.dup(stream) for stream in (1, 2)]
    target = os.open(log or os.devnull, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
    try:
        for stream in (1, 2):
            os.dup2(target, stream)
        yield
    finally:
        for stream, old in zip((1, 2), kept, strict=True):
            os.dup2(old, stream)
            os.close(old)
        os.close(target)
