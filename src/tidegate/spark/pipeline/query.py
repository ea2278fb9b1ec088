"""Build the DataFrame of a pipeline's results; errors name the key of the file."""

from __future__ import annotations

import contextlib
import re
import warnings
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Final

from py4j.protocol import Py4JJavaError  # type: ignore[import-untyped]
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import TimestampNTZType, TimestampType
from rich.console import Console
from rich.markup import escape

from tidegate.spark.join.join import join
from tidegate.spark.pipeline.models import Pipeline
from tidegate.spark.session.spark_errors import root_cause
from tidegate.types import SIDES, InputError

if TYPE_CHECKING:
    from tidegate.types import Side

SPARK_ERRORS: Final = (PySparkException, Py4JJavaError)
"""Errors of Spark; those without a class in Python arrive as the JVM raised them."""
_CONNECTORS: Final = {"kafka": "spark-sql-kafka-0-10_2.13", "avro": "spark-avro_2.13"}


def results(pipeline: Pipeline, spark: SparkSession, console: Console) -> DataFrame:
    """The DataFrame to write: both sources, joined, with the columns of the sink; warnings go to the console."""
    left, right = (_side(pipeline, spark, side) for side in SIDES)
    time = (pipeline.time("left"), pipeline.time("right"))
    with warnings.catch_warnings(record=True) as caught, error_key(pipeline, "join"):
        warnings.simplefilter("always", UserWarning)
        joined = join(left, right, time=time, checkpoint=pipeline.checkpoint, **pipeline.join.arguments())
    for warning in caught:
        console.print(f"[yellow]warning:[/] {escape(str(warning.message))}", highlight=False)
    return _select(pipeline, "sink", joined, pipeline.sink.select)


def _side(pipeline: Pipeline, spark: SparkSession, side: Side) -> DataFrame:
    source = pipeline.source(side)
    frame = _read(pipeline, spark, side)
    if source.where is not None:
        with error_key(pipeline, f"{side}.where"):
            frame = frame.where(source.where)
            _ = frame.schema
    frame = _select(pipeline, side, frame, source.select)
    _check_time(pipeline, side, frame)
    if pipeline.streaming:
        frame = frame.withWatermark(pipeline.time(side), f"{pipeline.lateness(side)} microseconds")
    return frame


def _read(pipeline: Pipeline, spark: SparkSession, side: Side) -> DataFrame:
    source = pipeline.source(side)
    reader: Any = spark.readStream if pipeline.streaming else spark.read
    reader = reader.options(**source.options)
    if source.ddl is not None:
        with error_key(pipeline, f"{side}.schema"):
            reader = reader.schema(source.ddl)
    key = "table" if source.table else "path" if source.path and not source.ddl else "format"
    with error_key(pipeline, f"{side}.{key}", source.format):
        if source.table is not None:
            frame: DataFrame = reader.table(source.table)
        else:
            reader = reader.format(source.format)
            frame = reader.load(source.path) if source.path else reader.load()
        _ = frame.schema  # Spark Connect checks it only then
    return frame


def _select(pipeline: Pipeline, part: str, frame: DataFrame, select: tuple[str, ...]) -> DataFrame:
    if not select:
        return frame
    try:
        chosen = frame.selectExpr(*select)
        _ = chosen.schema
    except SPARK_ERRORS:
        for number, expression in enumerate(select):
            with error_key(pipeline, f"{part}.select[{number}]"):
                _ = frame.selectExpr(expression).schema
        raise
    return chosen


def _check_time(pipeline: Pipeline, side: Side, frame: DataFrame) -> None:
    key, name = f"{pipeline.file}: {side}.time", pipeline.time(side)
    if name not in frame.columns:
        raise InputError(f"{key}: column {name!r} does not exist; the columns are {', '.join(frame.columns)}")
    kind = frame.schema[name].dataType
    if not isinstance(kind, TimestampType | TimestampNTZType):
        raise InputError(
            f"{key}: {name!r} is of type {kind.simpleString()}; make it a timestamp in {side}.schema, or "
            f'in {side}.select: "to_timestamp({name}) as {name}"'
        )


@contextlib.contextmanager
def error_key(pipeline: Pipeline, key: str, name: str | None = None) -> Iterator[None]:
    """Add the file and the key to the message of an error."""
    try:
        yield
    except InputError as error:
        raise InputError(f"{pipeline.file}: {key}: {error}") from error
    except SPARK_ERRORS as error:
        if missing := _missing_connector(error, name):
            raise InputError(f"{pipeline.file}: {key.partition('.')[0]}.format: {missing}") from error
        raise InputError(f"{pipeline.file}: {key}: {root_cause(error)}") from error


def _missing_connector(error: BaseException, name: str | None) -> str | None:
    if name is None or not re.search(r"Failed to find( the)? data source", str(error)):
        return None
    if name not in _CONNECTORS:
        return f"this Spark has no format {name!r}; add its package to spark.conf under spark.jars.packages"
    from pyspark import __version__  # noqa: PLC0415 - only for this message

    package = f"org.apache.spark:{_CONNECTORS[name]}:{__version__}"
    return (
        f"this Spark lacks the {name} connector; add it to the pipeline:\n"
        f'  [spark.conf]\n  "spark.jars.packages" = "{package}"\n'
        f"or start it with: spark-submit --packages {package}"
    )
