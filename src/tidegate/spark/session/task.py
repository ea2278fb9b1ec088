"""What Spark reports about the running task: its micro-batch, its partition, and the number of buckets."""

from __future__ import annotations

from typing import Final

from pyspark import TaskContext

from tidegate.spark.session.bucket_count import DEFAULT_MAX_BUCKETS

MICROS: Final = 1000
"""Microseconds in one of the milliseconds of Spark's watermarks."""
_PARTITIONS: Final = ("spark.sql.streaming.internal.stateStore.partitions", "spark.sql.shuffle.partitions")
"""Properties in which Spark passes the number of state partitions to tasks; the first may be missing."""
LAST_ARRIVALS: Final = "spark.tidegate.lastArrivals"
"""The setting in which tasks find the last micro-batch in which rows certainly arrived (`history.py`)."""


def batch_number() -> int | None:
    """The number of the running micro-batch, if Spark reports it."""
    number = local_property("streaming.sql.batchId")
    return None if number is None else int(number)


def last_arrivals() -> int:
    """A completed micro-batch in which rows arrived, from the checkpoint's logs; -1 if none is known."""
    return int(local_property(LAST_ARRIVALS) or -1)


def task_buckets(planned: int) -> int:
    """The number of buckets of the running query, if the user gave no number.

    A query that continues from a checkpoint keeps that checkpoint's partitions, whatever the session has now. So the
    number that was planned from the session may differ from the one that the state was written with.
    """
    partitions = next(filter(None, map(local_property, _PARTITIONS)), None)
    return planned if partitions is None else min(int(partitions), DEFAULT_MAX_BUCKETS)


def partition_number() -> int:
    """The number of the running task's partition; 0 outside of a task."""
    context = TaskContext.get()
    return context.partitionId() if context else 0


def local_property(name: str) -> str | None:
    """A property that Spark passes to its tasks."""
    context = TaskContext.get()
    return context.getLocalProperty(name) if context else None
