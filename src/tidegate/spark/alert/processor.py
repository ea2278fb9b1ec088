"""How a task runs the buckets of an alarm, with one `AlertBucket` per bucket."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pandas as pd
import pyarrow as pa

from tidegate.spark.bucket.alert.bucket import AlertBucket
from tidegate.spark.bucket.alert.plan import AlertPlan
from tidegate.spark.bucket.alert.saved import SavedAlert
from tidegate.spark.packing.packed_rows import (
    NO_LIMIT,
    BatchJob,
    read_arrow_packs,
    read_pandas_packs,
    unpack_by_side,
)
from tidegate.spark.session.task import MICROS, batch_number, freeze_imports, last_arrivals, task_buckets
from tidegate.spark.state.log import StateLog

if TYPE_CHECKING:
    from pyspark.sql.streaming.stateful_processor import StatefulProcessorHandle

    from tidegate.spark.state.deferred_processor import SparkValueStore


class AlertProcessor:
    """Runs the buckets of an alarm (see `DeferredProcessor`)."""

    def __init__(self, plan: AlertPlan) -> None:
        self._plan = plan

    def start(self, handle: StatefulProcessorHandle, values: SparkValueStore) -> None:  # noqa: ARG002 - as for joins
        """Start a task."""
        freeze_imports()
        if not self._plan.buckets_given:
            self._plan = self._plan.with_buckets(task_buckets(self._plan.buckets))
        self._values = values

    def process_rows(
        self,
        bucket: int,  # noqa: ARG002 - all buckets are alike
        rows: Iterator[pd.DataFrame],
        watermark: int,
    ) -> Iterator[pa.RecordBatch]:
        """Process the arrivals of a micro-batch as one step."""
        late_until = watermark * MICROS
        log = StateLog(self._values)
        alarm = AlertBucket.load(self._plan, SavedAlert.read(log))
        alarm.clock.check(batch_number(), last_arrivals(), self._plan.buckets)
        alarm.clock.advance(batch_number(), late_until)
        # In one step: otherwise the result would depend on the order in which Spark shuffles rows.
        for tables in unpack_by_side(read_pandas_packs(rows), self._plan.streams, NO_LIMIT):
            yield from alarm.step(tables, late_until)
        alarm.save(log)

    def process_timer(self, bucket: int, watermark: int) -> Iterator[pa.RecordBatch]:  # noqa: ARG002 - none is set
        """Alarms set no timers."""
        return iter(())


def alert_job(plan: AlertPlan) -> BatchJob:
    """The function that runs one bucket of a batch job."""

    def run(key: tuple[pa.Scalar, ...], batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:  # noqa: ARG001 - Spark's signature
        bucket = AlertBucket(plan)
        for tables in unpack_by_side(read_arrow_packs(batches), plan.streams, NO_LIMIT):
            yield from bucket.step(tables, None)

    return run
