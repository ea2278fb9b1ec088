"""Many independent pieces of work as Spark jobs: how the grids of experiments run on a cluster."""

from __future__ import annotations

import contextlib
import logging
import os
import sys
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

import pyarrow as pa
from py4j.protocol import Py4JError  # type: ignore[import-untyped]
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from pyspark.sql.pandas.types import from_arrow_schema

from tidegate.spark.causes import root_cause
from tidegate.spark.java import needs_java
from tidegate.spark.session import QUIET, SHORT_LIVED, silenced
from tidegate.types import InputError

_TASKS: Final = 4
"""Tasks of a job for each core: a core that is done takes the next, but each costs a tenth of a second."""


def spread(
    spark: SparkSession,
    count: int,
    work: Callable[[int], Mapping[str, Any]],
    schema: pa.Schema,
    folder: str,
    cores: int,
) -> None:
    """Do a piece of work for each number below `count`, and write what it gives as Parquet.

    Parameters
    ----------
    spark
        The session; classic or Connect.
    count
        How many pieces there are.
    work
        Gives a line of the output for a number. It runs on the workers.
    schema
        What the lines hold.
    folder
        Where they are written, in one file; it must not be there yet.
    cores
        For how many cores there is to be work.
    """

    def lines(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            numbers = batch.column(0).to_pylist()
            yield pa.RecordBatch.from_pylist([dict(work(number)) for number in numbers], schema)

    numbers = spark.range(0, count, 1, min(count, _TASKS * cores))
    found = numbers.mapInArrow(lines, from_arrow_schema(schema))
    try:
        # Shuffled into one: otherwise every task would write a file.
        found.repartition(1).write.parquet(folder)
    except (PySparkException, Py4JError) as error:
        raise RuntimeError(root_cause(error)) from error


def answers(spark: SparkSession) -> bool:
    """Whether a session still does what it is told."""
    try:
        return spark.range(1).count() == 1
    except (PySparkException, Py4JError, OSError):
        return False


@contextlib.contextmanager
def session(master: str | None, confs: Mapping[str, str]) -> Iterator[tuple[SparkSession, int]]:
    """A session, and how many cores it has; one that was there before is used, and left running.

    Parameters
    ----------
    master
        Spark's master, such as "local[4]" or "spark://host:7077", or "sc://host" for Connect; by default all cores
        of this machine.
    confs
        Settings of Spark.
    """
    active = SparkSession.getActiveSession()
    if active is not None:
        if master is not None:
            raise InputError(f"a Spark session runs already; stop it, or leave out the master {master!r}")
        yield active, _cores(active)
        return
    # Workers run this very Python, whatever `python3` means on the path.
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    logging.getLogger("py4j").setLevel(logging.CRITICAL)
    address = master or "local[*]"
    own = address.startswith("local")
    builder = SparkSession.builder.appName("tidegate reproduce")
    builder = builder.remote(address) if address.startswith("sc://") else builder.master(address)
    told = QUIET | {"spark.driver.extraJavaOptions": SHORT_LIVED} if own else {}
    for name, value in (told | dict(confs)).items():
        builder = builder.config(name, value)
    try:
        with needs_java(), silenced(None):
            spark = builder.getOrCreate()
            spark.range(1).count()
    except (PySparkException, Py4JError, RuntimeError, OSError) as error:
        first = root_cause(error)
        raise InputError(f"Spark does not start at {address!r} ({first}); give another --master") from error
    if own:
        spark.sparkContext.setLogLevel("OFF")
    try:
        yield spark, _cores(spark)
    finally:
        spark.stop()


def _cores(spark: SparkSession) -> int:
    """How many cores there are; by Connect Spark does not say, but has told how many partitions it likes."""
    try:
        return int(spark.sparkContext.defaultParallelism)
    except (PySparkException, AttributeError):
        return int(spark.conf.get("spark.default.parallelism", "8") or 8)
