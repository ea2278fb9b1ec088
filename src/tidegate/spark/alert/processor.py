"""The stateful operator that Spark runs for alarms, with one `AlertBucket` per bucket."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import pandas as pd
import pyarrow as pa
from pyspark.sql.streaming.stateful_processor import StatefulProcessor, StatefulProcessorHandle

from tidegate.spark.alert.bucket import AlertBucket, AlertPlan
from tidegate.spark.packing.packed_rows import (
    NO_LIMIT,
    BatchJob,
    pack_result,
    read_arrow_packs,
    read_pandas_packs,
    to_bytes,
    unpack_by_side,
)
from tidegate.spark.session.worker import freeze_imports
from tidegate.spark.state.log import StateLog
from tidegate.spark.state.task import MICROS, batch_number
from tidegate.spark.state.values import SparkValueStore

if TYPE_CHECKING:
    from pyspark.sql.streaming.stateful_processor import TimerValues


class AlertProcessor(StatefulProcessor):
    """Runs the buckets of an alarm in Spark's `transformWithStateInPandas`."""

    def __init__(self, plan: AlertPlan) -> None:
        self._plan = plan

    def init(self, handle: StatefulProcessorHandle) -> None:
        """Declare the state."""
        freeze_imports()
        self._plan = self._plan.for_task()
        self._values = SparkValueStore(handle)

    def handleInputRows(  # noqa: N802 - Spark's name
        self,
        key: Any,  # noqa: ANN401, ARG002 - Spark's signature
        rows: Iterator[pd.DataFrame],
        timerValues: TimerValues,  # noqa: N803
    ) -> Iterator[pd.DataFrame]:
        """Process the arrivals of a micro-batch as one step."""
        watermark = timerValues.getCurrentWatermarkInMs() * MICROS
        log = StateLog(self._values)
        bucket = AlertBucket.load(self._plan, log.read_bytes())
        bucket.clock.advance(batch_number(), watermark)
        # In one step: otherwise the result would depend on the order in which Spark shuffles rows.
        for tables in unpack_by_side(read_pandas_packs(rows), self._plan.streams, NO_LIMIT):
            for batch in bucket.step(tables, watermark):
                yield pd.DataFrame({"payload": [to_bytes(batch)]})
        log.write_bytes(bucket.save(), label=f"{bucket.clock.batch}")

    def close(self) -> None:
        """Nothing to close."""


def alert_job(plan: AlertPlan) -> BatchJob:
    """The function that runs one bucket of a batch job."""

    def run(key: tuple[pa.Scalar, ...], batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:  # noqa: ARG001 - Spark's signature
        bucket = AlertBucket(plan)
        for tables in unpack_by_side(read_arrow_packs(batches), plan.streams, NO_LIMIT):
            yield from map(pack_result, bucket.step(tables, None))

    return run
