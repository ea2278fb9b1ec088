"""How a task runs the buckets of a join: one state, one timer and one `BucketJoin` per bucket."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pandas as pd
import pyarrow as pa

from tidegate.spark.bucket.join.bucket import BucketJoin
from tidegate.spark.bucket.join.plan import BucketPlan, QueryPlan
from tidegate.spark.bucket.join.saved import SavedBucket
from tidegate.spark.bucket.join.valuation import WatchedFiles
from tidegate.spark.packing.packed_rows import (
    NO_LIMIT,
    BatchJob,
    read_arrow_packs,
    read_pandas_packs,
    unpack_by_side,
)
from tidegate.spark.session.task import (
    MICROS,
    batch_number,
    freeze_imports,
    last_arrivals,
    local_property,
    release_memory,
    task_buckets,
)
from tidegate.spark.state.log import StateLog
from tidegate.types import SIDES

if TYPE_CHECKING:
    from pyspark.sql.streaming.stateful_processor import StatefulProcessorHandle

    from tidegate.spark.pool.folder import PoolClient
    from tidegate.spark.state.deferred_processor import SparkValueStore
    from tidegate.types import Side


class JoinProcessor:
    """Runs a query's buckets (see `DeferredProcessor`).

    Parameters
    ----------
    plan
        The plan of the query.
    """

    def __init__(self, plan: QueryPlan) -> None:
        self._plan = plan

    def start(self, handle: StatefulProcessorHandle, values: SparkValueStore) -> None:
        """Start a task."""
        freeze_imports()
        if not self._plan.buckets_given:
            self._plan = self._plan.with_buckets(task_buckets(self._plan.buckets))
        self._handle = handle
        self._stepped: set[int] = set()
        self._values = values
        member, query = self._plan.member, local_property("sql.streaming.queryId")
        self._files = WatchedFiles()
        self._pool: PoolClient | None = None
        if member:
            from tidegate.spark.pool.folder import PoolClient  # noqa: PLC0415 - in a pool only

            self._pool = PoolClient(member, self._plan.buckets, query or "")

    def process_rows(
        self, bucket: int, rows: Iterator[pd.DataFrame], watermark: int
    ) -> Iterator[pa.RecordBatch]:
        """Process the arrivals of a micro-batch."""
        self._stepped.add(bucket)
        steps = unpack_by_side(read_pandas_packs(rows), SIDES)
        yield from self._run(bucket, steps, watermark * MICROS, arrivals=True)

    def process_timer(self, bucket: int, watermark: int) -> Iterator[pa.RecordBatch]:
        """Emit unmatched rows whose window has passed, although no row arrived."""
        # Timers run after the rows of a micro-batch, with the same watermark. A bucket with rows is up to date.
        if bucket not in self._stepped:
            yield from self._run(bucket, iter([{}]), watermark * MICROS, arrivals=False)

    def _run(
        self, label: int, steps: Iterator[dict[Side, pa.Table]], watermark: int, *, arrivals: bool
    ) -> Iterator[pa.RecordBatch]:
        log = StateLog(self._values)
        plan = self._plan.of(label)
        bucket = BucketJoin.load(plan, _read_bucket(log, plan), self._files)
        bucket.clock.check(batch_number(), last_arrivals(), self._plan.buckets)
        bucket.clock.advance(batch_number(), watermark, arrivals=arrivals)
        if self._pool:
            bucket.request_grant(self._pool)
        for tables in steps:
            yield from bucket.step(tables, watermark)
            release_memory()
        yield from bucket.end_batch()
        self._set_timer(bucket, watermark)
        bucket.save(log)
        release_memory()

    def _set_timer(self, bucket: BucketJoin, watermark: int) -> None:
        """Set a timer for the next unmatched row: when the watermark is past its last joinable time."""
        end = bucket.next_expiry()
        if end is None:
            return
        due = max(end, watermark) // MICROS + 1
        if bucket.timer <= watermark // MICROS or due < bucket.timer:
            bucket.timer = due
            self._handle.registerTimer(due)


def _read_bucket(log: StateLog, plan: BucketPlan) -> SavedBucket | None:
    """The saved bucket, with the columns of the plan."""
    saved = SavedBucket.read(log)
    if saved is None or saved.layout == plan.layout:
        return saved
    from tidegate.spark.query.evolution import migrate  # noqa: PLC0415 - only if the query has changed

    return migrate(saved, plan)


def batch_job(plan: QueryPlan, size: int) -> BatchJob:
    """The function that runs one bucket of a batch query: all rows in order of time, in steps of `size` rows."""

    def run(key: tuple[pa.Scalar, ...], batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        bucket = BucketJoin(plan.of(key[0].as_py()))
        for tables in unpack_by_side(read_arrow_packs(batches), SIDES, NO_LIMIT):
            for part in bucket.intake.divide_into_steps(tables, size):
                yield from bucket.step(part, None)
        yield from bucket.finish()

    return run
