"""What a task knows of itself: its micro-batch, its partition, the number of buckets, its release and its memory."""

from __future__ import annotations

import gc
import sys
from functools import cache
from typing import Final

import pyarrow as pa
from pyspark import TaskContext

from tidegate._version import __version__
from tidegate.types import InputError

DEFAULT_MAX_BUCKETS: Final = 64
"""The largest number of buckets of a query, unless the user gives a number."""
_MAX_BUCKETS: Final = 4096
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


def bucket_count(buckets: int | None, partitions: int) -> int:
    """The number of buckets of a query: `buckets` if given, otherwise the number of partitions."""
    if buckets is None:
        return min(partitions, DEFAULT_MAX_BUCKETS)
    if isinstance(buckets, bool) or not isinstance(buckets, int) or not 1 <= buckets <= _MAX_BUCKETS:
        raise InputError(
            f"buckets={buckets!r} is not a number of buckets; give an integer from 1 to {_MAX_BUCKETS}"
        )
    return buckets


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


def check_release(release: str) -> None:
    """Refuse to run what another release of Tidegate on the driver has sent."""
    if release != __version__:
        raise InputError(
            f"Spark's workers run {sys.executable}, which has tidegate {__version__}, and the driver has {release}; "
            f"install tidegate {release} for that Python"
        )


@cache
def freeze_imports() -> None:
    """Exclude everything that is loaded by now from garbage collection.

    Spark's workers collect garbage after every task. In a process that has imported the join this takes 80 ms of a
    core, in each worker and micro-batch. The objects of imported modules live as long as the process, so searching
    them finds nothing.
    """
    gc.collect()
    gc.freeze()


def release_memory() -> None:
    """Return the memory of Arrow tables that are gone to the system: Arrow's allocator would keep some of it."""
    pa.default_memory_pool().release_unused()
