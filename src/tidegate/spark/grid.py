"""Independent tasks as Spark jobs. The grids of experiments run on a cluster this way."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

import pyarrow as pa
from py4j.protocol import Py4JError  # type: ignore[import-untyped]
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from pyspark.sql.pandas.types import from_arrow_schema

from tidegate.spark.session.local import LOCAL_SETTINGS, SHORT_LIVED, output_redirected, start_session
from tidegate.spark.session.spark_errors import root_cause
from tidegate.types import InputError

_TASKS: Final = 4
"""Tasks per core of a job. More tasks balance the load better, but each costs a tenth of a second."""


def run_tasks(
    spark: SparkSession,
    count: int,
    task: Callable[[int], Mapping[str, Any]],
    schema: pa.Schema,
    folder: str,
    cores: int,
) -> None:
    """Run a task for each number below `count`, and write the results as Parquet.

    Parameters
    ----------
    spark
        The session, classic or Connect.
    count
        The number of tasks.
    task
        Returns a row of the output for a number. It runs on the workers.
    schema
        The schema of the rows.
    folder
        The folder to write to, one file. It must not exist yet.
    cores
        The number of cores that should be busy.
    """

    def rows(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            numbers = batch.column(0).to_pylist()
            yield pa.RecordBatch.from_pylist([dict(task(number)) for number in numbers], schema)

    numbers = spark.range(0, count, 1, min(count, _TASKS * cores))
    results = numbers.mapInArrow(rows, from_arrow_schema(schema))
    try:
        # One partition: otherwise every task would write a file.
        results.repartition(1).write.parquet(folder)
    except (PySparkException, Py4JError) as error:
        raise RuntimeError(root_cause(error)) from error


def is_alive(spark: SparkSession) -> bool:
    """Whether a session still runs queries."""
    try:
        return spark.range(1).count() == 1
    except (PySparkException, Py4JError, OSError):
        return False


@contextlib.contextmanager
def open_session(master: str | None, confs: Mapping[str, str]) -> Iterator[tuple[SparkSession, int]]:
    """A session and its number of cores. An active session is used, and is not stopped.

    Parameters
    ----------
    master
        Spark's master, such as "local[4]" or "spark://host:7077", or "sc://host" for Connect. The default is all
        cores of this machine.
    confs
        Settings of Spark.
    """
    active = SparkSession.getActiveSession()
    if active is not None:
        if master is not None:
            raise InputError(
                f"a Spark session is already active; stop it, or leave out the master {master!r}"
            )
        yield active, _cores(active)
        return
    address = master or "local[*]"
    is_local = address.startswith("local")
    builder = SparkSession.builder.appName("tidegate reproduce")
    builder = builder.remote(address) if address.startswith("sc://") else builder.master(address)
    defaults = LOCAL_SETTINGS | {"spark.driver.extraJavaOptions": SHORT_LIVED} if is_local else {}
    for name, value in (defaults | dict(confs)).items():
        builder = builder.config(name, value)
    try:
        spark = start_session(builder, None, local=is_local)
        with output_redirected(None):
            spark.range(1).count()
    except (PySparkException, Py4JError, RuntimeError, OSError) as error:
        cause = root_cause(error)
        raise InputError(f"cannot start Spark at {address!r} ({cause}); set another --master") from error
    if is_local:
        spark.sparkContext.setLogLevel("OFF")
    try:
        yield spark, _cores(spark)
    finally:
        spark.stop()


def _cores(spark: SparkSession) -> int:
    """The number of cores. Connect does not report it, so its default parallelism is used there."""
    try:
        return int(spark.sparkContext.defaultParallelism)
    except (PySparkException, AttributeError):
        return int(spark.conf.get("spark.default.parallelism", "8") or 8)
