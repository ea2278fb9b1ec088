"""Settings that a Spark session needs for streaming joins."""

from __future__ import annotations

import logging
import re
import warnings
from typing import TYPE_CHECKING, Final, TypeVar

from tidegate.spark.session.task import DEFAULT_MAX_BUCKETS
from tidegate.spark.session.worker_python import use_own_python
from tidegate.types import InputError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_Session = TypeVar("_Session", bound="SparkSession")

STATE_STORE_PROVIDER: Final = "spark.sql.streaming.stateStore.providerClass"
ROCKSDB: Final = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
PARTITIONS: Final = "spark.sql.shuffle.partitions"
DEFAULT_PARTITIONS: Final = 200
"""Spark's default number of shuffle partitions."""
_MIN_ON_CLUSTER: Final = 8
"""The minimum on a cluster: some executors may not have started, and a checkpoint fixes the number of partitions."""
_MAX_PER_BUCKET: Final = 3
"""More partitions per bucket than this cause a warning: all but one of them are always empty."""
_MAX_PER_CORE: Final = 4
"""More partitions per core than this cause a warning."""
_LOCAL: Final = re.compile(r"local(?:\[(\d+|\*)(?:,\s*\d+)?\])?")
"""Spark's master for one machine: `local`, `local[4]`, `local[*]`, `local[4, 3]`."""
_LOG: Final = logging.getLogger("tidegate")
_MAX_ARROW_BYTES: Final = "spark.sql.execution.arrow.maxBytesPerBatch"
_CONFS: Final = {
    STATE_STORE_PROVIDER: ROCKSDB,
    # Commits write what changed instead of the whole store.
    "spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled": "true",
    # Counting rows would read every old value before it is replaced.
    "spark.sql.streaming.stateStore.rocksdb.trackTotalNumberOfRows": "false",
    # Only maintenance writes snapshots, and without these no changelog is deleted. Within the usual minute a query
    # of small micro-batches writes hundreds of changelogs.
    "spark.sql.streaming.stateStore.maintenanceInterval": "15s",
    # Fewer and larger batches between Spark and Python than the usual 10,000 rows.
    "spark.sql.execution.arrow.maxRecordsPerBatch": "100000",
    # Otherwise columnar input that is not Arrow, such as Parquet, is sent by 4,096 rows and converted twice.
    "spark.sql.execution.arrow.pythonUDF.columnarInput.enabled": "false",
}


def configure(spark: _Session, *, partitions: int | None = None) -> _Session:
    """Configure a session for streaming joins, and return it.

    It sets the RocksDB state store, which Spark requires for these joins, with settings for few large values. Batches
    between Spark and Python get at most 100,000 rows and, if you have set no other limit, 16 MB. If the number of
    shuffle partitions is not set, it sets that too. These settings apply to the whole session: Spark's own
    stream-stream joins in it also use RocksDB, and its other queries are shuffled into as many partitions.
    `spark.newSession()` has settings of its own.

    On a local master, workers run the Python of this process, unless `PYSPARK_PYTHON` or `spark.pyspark.python` is
    set. Spark would start the first `python3` of the path, which has no Tidegate if this process uses an environment
    that is not activated, as in an IDE or a notebook. A Python that is set, but cannot run Tidegate, is an error.

    A query that continues from a checkpoint keeps the number of partitions that it started with. Spark stores it in
    the checkpoint and ignores that of the session.

    Parameters
    ----------
    spark
        The session, classic or Connect.
    partitions
        The number of shuffle partitions of streams. By default `spark.sql.shuffle.partitions` if it is set;
        otherwise the number of Spark's cores, at most 64, and at least 8 on a cluster. The logger `tidegate` reports
        the chosen number (level INFO; on stderr if no logging is configured).
    """
    for name, value in _CONFS.items():
        spark.conf.set(name, value)
    # The second argument of `get` replaces Spark's own default: None means that nothing was set.
    if spark.conf.get(_MAX_ARROW_BYTES, None) is None:
        # A worker holds a whole batch in several forms. Spark's 64 MB take too much memory if rows are wide.
        spark.conf.set(_MAX_ARROW_BYTES, "16m")
    if partitions is None and spark.conf.get(PARTITIONS, None) is None:
        partitions, why = _choose_partitions(spark)
        _report(
            f"{PARTITIONS} was not set and is now {partitions} in this session ({why}; Spark's default is "
            f"{DEFAULT_PARTITIONS}); choose another number with tidegate.configure(spark, partitions=...)"
        )
    if partitions is not None:
        spark.conf.set(PARTITIONS, str(partitions))
    choose_worker_python(spark)
    return spark


def choose_worker_python(spark: SparkSession) -> None:
    """Let local workers run the Python of this process, also in a session without `configure`; report a change."""
    if (changed := use_own_python(spark)) is not None:
        _report(changed)


def _choose_partitions(spark: SparkSession) -> tuple[int, str]:
    """A number of partitions for the session, and the reason."""
    if local := _LOCAL.fullmatch(_master(spark)):
        cores = _named_cores(local) or _parallelism(spark)
        return min(cores, DEFAULT_MAX_BUCKETS), f"Spark runs on one machine with {cores} cores"
    cores = max(_parallelism(spark), _executor_cores(spark))
    count = min(max(cores, _MIN_ON_CLUSTER), DEFAULT_MAX_BUCKETS)
    return (
        count,
        f"Spark has {cores} cores now; {_MIN_ON_CLUSTER} to {DEFAULT_MAX_BUCKETS} are chosen on a cluster",
    )


def _master(spark: SparkSession) -> str:
    return spark.conf.get("spark.master", None) or ""


def _named_cores(local: re.Match[str]) -> int | None:
    """The number in `local[4]`; None for `local[*]`."""
    return 1 if local[1] is None else None if local[1] == "*" else int(local[1])


def _local_cores(spark: SparkSession) -> int | None:
    """The number of cores if Spark runs on one machine; None on a cluster, or if only a job could determine it."""
    local = _LOCAL.fullmatch(_master(spark))
    if local is None:
        return None
    classic = getattr(spark, "sparkContext", None) is not None
    return _named_cores(local) or (_parallelism(spark) if classic else None)


def _parallelism(spark: SparkSession) -> int:
    """The number of tasks that Spark runs at once; through Connect, a small job determines it."""
    context = getattr(spark, "sparkContext", None)
    if context is not None:
        return int(context.defaultParallelism)
    # A range has as many partitions as Spark's default parallelism, and its last row is in the last of them.
    rows = spark.range(DEFAULT_MAX_BUCKETS).selectExpr("spark_partition_id() AS partition").collect()
    return 1 + max(int(row.partition) for row in rows)


def _executor_cores(spark: SparkSession) -> int:
    """The number of cores of the configured executors; 0 if that is not configured."""
    names = ("spark.executor.instances", "spark.executor.cores")
    executors, cores = (spark.conf.get(name, None) or "" for name in names)
    return int(executors) * int(cores) if executors.isdigit() and cores.isdigit() else 0


def _report(message: str) -> None:
    """Log at level INFO; print to stderr if no logging is configured, since Python would drop the message."""
    if _LOG.hasHandlers():
        _LOG.info(message)
    else:
        logging.StreamHandler().handle(
            _LOG.makeRecord(_LOG.name, logging.INFO, __file__, 0, message, (), None)
        )


def warn_about_partitions(spark: SparkSession, buckets: int, *, stacklevel: int) -> None:
    """Warn if a stream would be shuffled into far more partitions than there are buckets or cores."""
    partitions = shuffle_partitions(spark)
    cores = _local_cores(spark)
    if partitions > _MAX_PER_BUCKET * buckets:
        excess = f"{buckets} buckets, so most of them are always empty"
    elif cores is not None and partitions > _MAX_PER_CORE * cores:
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


def shuffle_partitions(spark: SparkSession) -> int:
    """The number of shuffle partitions of a stream."""
    return int(spark.conf.get(PARTITIONS) or DEFAULT_PARTITIONS)


def check_state_store(spark: SparkSession) -> None:
    """Refuse a session whose state store would let a stream fail at its first micro-batch."""
    provider = spark.conf.get(STATE_STORE_PROVIDER)
    if provider is None or not provider.endswith("RocksDBStateStoreProvider"):
        raise InputError(
            f"the session's state store is {provider!r}, but Spark needs RocksDB for such a stream; "
            "add this line before the query starts: tidegate.configure(spark)"
        )
