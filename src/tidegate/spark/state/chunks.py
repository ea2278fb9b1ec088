"""What Spark keeps for a bucket between micro-batches, and tells of the one that runs."""

from __future__ import annotations

from typing import Final

from pyspark import TaskContext
from pyspark.sql.streaming.stateful_processor import StatefulProcessorHandle

from tidegate.spark.packing.buckets import MOST_BUCKETS
from tidegate.types import InputError

CHUNKS: Final = "chunks"
CHUNK_SCHEMA: Final = "payload binary"
MICROS: Final = 1000
"""Microseconds in one of the milliseconds of Spark's watermarks."""
_PARTITIONS: Final = ("spark.sql.streaming.internal.stateStore.partitions", "spark.sql.shuffle.partitions")
"""Where Spark passes the number of a running query's state partitions to its tasks; the first may be missing."""
_CHUNK_BYTES: Final = 1 << 20
_PREFIX: Final = 4


class Chunks:
    """A bucket's state: bytes in chunks, since Spark moves one large value slowly."""

    def __init__(self, handle: StatefulProcessorHandle) -> None:
        self._chunks = handle.getMapState(CHUNKS, "i int", CHUNK_SCHEMA)

    def read(self) -> tuple[bytes | None, int]:
        """The state of the bucket at hand, and in how many chunks it was."""
        first = self._chunks.getValue((0,))
        if first is None:
            return None, 0
        count = int.from_bytes(first[0][:_PREFIX], "little")
        rest = [self._chunks.getValue((i,)) for i in range(1, count)]
        return reassembled([first[0], *(part[0] for part in rest if part is not None)]), count

    def write(self, data: bytes, old: int) -> None:
        """Replace a state that was in so many chunks."""
        parts = [data[i : i + _CHUNK_BYTES] for i in range(0, len(data), _CHUNK_BYTES)]
        parts[0] = len(parts).to_bytes(_PREFIX, "little") + parts[0]
        for i, part in enumerate(parts):
            self._chunks.updateValue((i,), (part,))
        for i in range(len(parts), old):
            self._chunks.removeKey((i,))


def reassembled(chunks: list[bytes]) -> bytes:
    """A state from its chunks, of which the first begins with how many there are."""
    count = int.from_bytes(chunks[0][:_PREFIX], "little")
    if len(chunks) != count:
        raise InputError(
            f"the checkpoint has {len(chunks)} of the {count} chunks of a bucket's state, so it is damaged; "
            "restore it from a copy, or start with a new checkpointLocation"
        )
    return b"".join((chunks[0][_PREFIX:], *chunks[1:]))


def batch_number() -> int | None:
    """Which micro-batch runs, if Spark tells."""
    number = local_property("streaming.sql.batchId")
    return None if number is None else int(number)


def task_buckets(planned: int) -> int:
    """How many buckets the running query has, if the user gave no number.

    A query that goes on from a checkpoint keeps that checkpoint's partitions, whatever the session has now. So the
    number that was planned from the session may differ from the one that the state was written with.
    """
    found = next(filter(None, map(local_property, _PARTITIONS)), None)
    return planned if found is None else min(int(found), MOST_BUCKETS)


def local_property(name: str) -> str | None:
    """What Spark tells its tasks by this name."""
    context = TaskContext.get()
    return context.getLocalProperty(name) if context else None
