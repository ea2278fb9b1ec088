"""Settings that a Spark session needs for streaming joins."""

from __future__ import annotations

import logging
import re
import warnings
from typing import TYPE_CHECKING, Final, TypeVar

from tidegate.spark.packing.buckets import MOST_BUCKETS
from tidegate.types import InputError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_Session = TypeVar("_Session", bound="SparkSession")

PROVIDER: Final = "spark.sql.streaming.stateStore.providerClass"
ROCKSDB: Final = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
PARTITIONS: Final = "spark.sql.shuffle.partitions"
UNSET: Final = 200
"""Spark's default number of shuffle partitions."""
_FEWEST_ON_A_CLUSTER: Final = 8
"""A cluster may not have all of its executors yet, and a checkpoint fixes the number of partitions."""
_IDLE: Final = 3
"""How many partitions a bucket is worth a warning: all but one of them are always empty."""
_WAITING: Final = 4
"""How many partitions a core is worth a warning."""
_LOCAL: Final = re.compile(r"local(?:\[(\d+|\*)(?:,\s*\d+)?\])?")
"""A master that is this one machine: `local`, `local[4]`, `local[*]`, `local[4, 3]`."""
_LOG: Final = logging.getLogger("tidegate")
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


def configure(spark: _Session, *, partitions: int | None = None) -> _Session:
    """Set a session up for streaming joins, and return it.

    It sets the RocksDB state store, which Spark demands for joins of this kind, with settings that suit few
    large values, and larger batches between Spark and Python. If the session has no number of shuffle partitions,
    it sets that too. These are settings of the session: Spark's own stream-stream joins in it would use RocksDB
    too, and its other queries would be shuffled into as many partitions. `spark.newSession()` has its own.

    A query that goes on from a checkpoint keeps the number of partitions that it began with. Spark stores it in
    the checkpoint and ignores the session's.

    Parameters
    ----------
    spark
        The session; classic or Connect.
    partitions
        How many partitions a stream is shuffled into. By default `spark.sql.shuffle.partitions`, if you set that
        anywhere; else as many as Spark has cores, at most 64, and on a cluster at least 8. The logger `tidegate`
        reports the number (level INFO; on stderr if no logging is set up).
    """
    for name, value in _CONFS.items():
        spark.conf.set(name, value)
    # The second argument replaces Spark's own default of 200: None means that no number was set.
    if partitions is None and spark.conf.get(PARTITIONS, None) is None:
        partitions, why = _chosen_partitions(spark)
        _report(
            f"{PARTITIONS} was not set and is now {partitions} in this session ({why}; Spark's default is {UNSET}); "
            "choose another number with tidegate.configure(spark, partitions=...)"
        )
    if partitions is not None:
        spark.conf.set(PARTITIONS, str(partitions))
    return spark


def _chosen_partitions(spark: SparkSession) -> tuple[int, str]:
    """A number of partitions that suits the session, and why."""
    if local := _LOCAL.fullmatch(_master(spark)):
        cores = _named_cores(local) or _parallelism(spark)
        return min(cores, MOST_BUCKETS), f"Spark runs on one machine with {cores} cores"
    cores = max(_parallelism(spark), _executor_cores(spark))
    count = min(max(cores, _FEWEST_ON_A_CLUSTER), MOST_BUCKETS)
    return (
        count,
        f"Spark has {cores} cores now; {_FEWEST_ON_A_CLUSTER} to {MOST_BUCKETS} are chosen on a cluster",
    )


def _master(spark: SparkSession) -> str:
    return spark.conf.get("spark.master", None) or ""


def _named_cores(local: re.Match[str]) -> int | None:
    """The number in `local[4]`; None for `local[*]`."""
    return 1 if local[1] is None else None if local[1] == "*" else int(local[1])


def _local_cores(spark: SparkSession) -> int | None:
    """How many cores a Spark on one machine uses; None on a cluster, or where only a job could find out."""
    local = _LOCAL.fullmatch(_master(spark))
    if local is None:
        return None
    classic = getattr(spark, "sparkContext", None) is not None
    return _named_cores(local) or (_parallelism(spark) if classic else None)


def _parallelism(spark: SparkSession) -> int:
    """How many tasks Spark runs at once; through Connect a small job finds out."""
    context = getattr(spark, "sparkContext", None)
    if context is not None:
        return int(context.defaultParallelism)
    # A range has as many partitions as Spark's default parallelism, and its last row is in the last of them.
    rows = spark.range(MOST_BUCKETS).selectExpr("spark_partition_id() AS partition").collect()
    return 1 + max(int(row.partition) for row in rows)


def _executor_cores(spark: SparkSession) -> int:
    """How many cores the configured executors will have; 0 if that is not configured."""
    names = ("spark.executor.instances", "spark.executor.cores")
    executors, cores = (spark.conf.get(name, None) or "" for name in names)
    return int(executors) * int(cores) if executors.isdigit() and cores.isdigit() else 0


def _report(message: str) -> None:
    """Log at level INFO; on stderr if the program has set up no logging, where Python would drop it."""
    if _LOG.hasHandlers():
        _LOG.info(message)
    else:
        logging.StreamHandler().handle(
            _LOG.makeRecord(_LOG.name, logging.INFO, __file__, 0, message, (), None)
        )


def warn_of_partitions(spark: SparkSession, buckets: int, *, stacklevel: int) -> None:
    """Warn if a stream would be shuffled into far more partitions than there are buckets or cores."""
    partitions = partitions_of(spark)
    cores = _local_cores(spark)
    if partitions > _IDLE * buckets:
        excess = f"{buckets} buckets, so that most of them are always empty"
    elif cores is not None and partitions > _WAITING * cores:
        excess = f"{cores} cores"
    else:
        return
    warnings.warn(
        f"the stream will be shuffled into {partitions} partitions for {excess}; each micro-batch opens and commits "
        f"the state of every partition, empty or not; set fewer before the query first starts: "
        f"tidegate.configure(spark, partitions={min(buckets, cores or buckets)}); a query that has a checkpoint "
        "keeps its number",
        stacklevel=stacklevel + 1,
    )


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
