"""The stateful operator that Spark runs: one state, one timer and one `BucketJoin` a bucket."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Final, TypeAlias, TypeVar

import pandas as pd
import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql.streaming.stateful_processor import StatefulProcessor, StatefulProcessorHandle

from tidegate.spark.bucket_join import BucketJoin
from tidegate.spark.packing import from_bytes, to_bytes
from tidegate.spark.plan import QueryPlan
from tidegate.spark.pool_folder import Desk
from tidegate.spark.valuation import Files
from tidegate.types import SIDES, InputError

if TYPE_CHECKING:
    from pyspark.sql.streaming.stateful_processor import ExpiredTimerInfo, TimerValues

    from tidegate.types import Side

CHUNKS: Final = "chunks"
CHUNK_SCHEMA: Final = "payload binary"
_CHUNK_BYTES: Final = 1 << 20
_PREFIX: Final = 4
_INPUT_BYTES: Final = 256 << 20
NO_LIMIT: Final = 1 << 62
MICROS: Final = 1000

_Name = TypeVar("_Name", bound=str)

BatchJob: TypeAlias = "Callable[[tuple[pa.Scalar, ...], Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]"


def gathered(
    rows: Iterator[tuple[int, bytes]], names: Sequence[_Name], limit: int = _INPUT_BYTES
) -> Iterator[dict[_Name, pa.Table]]:
    """Unpack the arrivals of a micro-batch by side: all together, or in several parts where they are very large.

    At least one part comes, if an empty one.
    """
    held: dict[_Name, list[pa.Table]] = {name: [] for name in names}
    size, parts = 0, 0
    for side, payload in rows:
        if not payload:
            continue
        held[names[side]].append(from_bytes(payload))
        size += len(payload)
        if size >= limit:
            yield _together(held)
            held, size, parts = {name: [] for name in names}, 0, parts + 1
    if size or not parts:
        yield _together(held)


def reassembled(chunks: list[bytes]) -> bytes:
    """A state from its chunks, of which the first begins with how many there are."""
    count = int.from_bytes(chunks[0][:_PREFIX], "little")
    if len(chunks) != count:
        raise InputError(
            f"the checkpoint has {len(chunks)} of the {count} chunks of a bucket's state, so it is damaged; "
            "restore it from a copy, or start with a new checkpointLocation"
        )
    return b"".join((chunks[0][_PREFIX:], *chunks[1:]))


def _together(held: dict[_Name, list[pa.Table]]) -> dict[_Name, pa.Table]:
    return {name: pa.concat_tables(tables).combine_chunks() for name, tables in held.items() if tables}


def batch_number() -> int | None:
    """Which micro-batch runs, if Spark tells."""
    number = _property("streaming.sql.batchId")
    return None if number is None else int(number)


def _property(name: str) -> str | None:
    context = TaskContext.get()
    return context.getLocalProperty(name) if context else None


def packed(frames: Iterator[pd.DataFrame]) -> Iterator[tuple[int, bytes]]:
    """Packed rows as Spark hands them over."""
    for frame in frames:
        yield from zip(frame["side"], frame["payload"], strict=True)


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


class Processor(StatefulProcessor):
    """Runs a query's buckets in Spark's `transformWithStateInPandas`."""

    def __init__(self, plan: QueryPlan) -> None:
        self._plan = plan

    def init(self, handle: StatefulProcessorHandle) -> None:
        """Declare the state."""
        self._handle = handle
        self._stepped: set[int] = set()
        self._chunks = Chunks(handle)
        member, query = self._plan.member, _property("sql.streaming.queryId")
        self._files = Files()
        self._desk = Desk(member, self._plan.buckets, query or "") if member else None

    def handleInputRows(  # noqa: N802 - Spark's name
        self,
        key: Any,  # noqa: ANN401 - Spark's signature
        rows: Iterator[pd.DataFrame],
        timerValues: TimerValues,  # noqa: N803
    ) -> Iterator[pd.DataFrame]:
        """Take the arrivals of a micro-batch as one step."""
        watermark = timerValues.getCurrentWatermarkInMs() * MICROS
        self._stepped.add(key[0])
        yield from self._run(key[0], gathered(packed(rows), SIDES), watermark)

    def handleExpiredTimer(  # noqa: N802 - Spark's name
        self,
        key: Any,  # noqa: ANN401 - Spark's signature
        timerValues: TimerValues,  # noqa: N803
        expiredTimerInfo: ExpiredTimerInfo,  # noqa: ARG002, N803
    ) -> Iterator[pd.DataFrame]:
        """Let unmatched rows leave whose window has passed, though nothing arrived."""
        # Timers come after the rows of a micro-batch, with the same watermark: a step has done their work.
        if key[0] not in self._stepped:
            yield from self._run(key[0], iter([{}]), timerValues.getCurrentWatermarkInMs() * MICROS)

    def close(self) -> None:
        """Nothing is held open."""

    def _run(
        self, label: int, steps: Iterator[dict[Side, pa.Table]], watermark: int
    ) -> Iterator[pd.DataFrame]:
        old = self._chunks.read()
        bucket = BucketJoin.load(self._plan.of(label), old[0], self._files)
        bucket.heard(batch_number(), watermark)
        if self._desk:
            bucket.share(self._desk)
        for tables in steps:
            for batch in bucket.step(tables, watermark):
                yield pd.DataFrame({"payload": [to_bytes(batch)]})
        for batch in bucket.shown():
            yield pd.DataFrame({"payload": [to_bytes(batch)]})
        bucket.look()
        self._set_timer(bucket, watermark)
        self._chunks.write(bucket.save(), old[1])

    def _set_timer(self, bucket: BucketJoin, watermark: int) -> None:
        """Wake up when the next unmatched row may leave: once the watermark is past its last joinable time."""
        end = bucket.next_expiry()
        if end is None:
            return
        due = max(end, watermark) // MICROS + 1
        if bucket.timer <= watermark // MICROS or due < bucket.timer:
            bucket.timer = due
            self._handle.registerTimer(due)


def batch_job(plan: QueryPlan, size: int) -> BatchJob:
    """What runs one bucket of a batch job: all rows in order of time, in steps of `size` rows."""

    def run(key: tuple[pa.Scalar, ...], batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        bucket = BucketJoin(plan.of(key[0].as_py()))
        for tables in gathered(unlabelled(batches), SIDES, NO_LIMIT):
            for part in bucket.in_steps(tables, size):
                yield from map(result, bucket.step(part, None))
        yield from map(result, bucket.finish())

    return run


def unlabelled(batches: Iterator[pa.RecordBatch]) -> Iterator[tuple[int, bytes]]:
    """Packed rows as Spark hands them to a batch job."""
    return ((row["side"], row["payload"]) for batch in batches for row in batch.to_pylist())


def result(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Pack results of a batch job."""
    return pa.record_batch([pa.array([to_bytes(batch)], pa.binary())], ["payload"])
