"""A stateful processor that is created when its first rows arrive.

Before a query runs, Spark starts a Python process next to the driver, which only asks the processor for its state
variables. That process need not import the join and everything below it, which takes a second of a core.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

from pyspark import cloudpickle
from pyspark.sql.streaming.stateful_processor import StatefulProcessor

from tidegate.spark.state.spark_values import SparkValueStore

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pandas as pd
    from pyspark.sql.streaming.stateful_processor import (
        ExpiredTimerInfo,
        StatefulProcessorHandle,
        TimerValues,
    )


class BucketProcessor(Protocol):
    """What runs the buckets of a query in a task."""

    def start(self, handle: StatefulProcessorHandle, values: SparkValueStore) -> None:
        """Start a task: `values` are those of the bucket that Spark is processing."""

    def process_rows(
        self, bucket: int, rows: Iterator[pd.DataFrame], watermark: int
    ) -> Iterator[pd.DataFrame]:
        """Process the arrivals of a micro-batch; the watermark is in milliseconds."""

    def process_timer(self, bucket: int, watermark: int) -> Iterator[pd.DataFrame]:
        """Process a timer that has expired."""


class DeferredProcessor(StatefulProcessor):
    """Sends a processor to Spark's workers, where it is created when its first rows arrive.

    Parameters
    ----------
    processor
        What runs the buckets.
    """

    def __init__(self, processor: BucketProcessor) -> None:
        # Serialized here, because Spark creates everything that a processor refers to when it receives it.
        self._serialized: bytes = cloudpickle.dumps(processor)  # type: ignore[no-untyped-call]
        self._created: BucketProcessor | None = None

    def init(self, handle: StatefulProcessorHandle) -> None:
        """Declare the state; Spark allows this only here."""
        self._handle = handle
        self._values = SparkValueStore(handle)

    def handleInputRows(  # noqa: N802 - Spark's name
        self,
        key: Any,  # noqa: ANN401 - Spark's signature
        rows: Iterator[pd.DataFrame],
        timerValues: TimerValues,  # noqa: N803
    ) -> Iterator[pd.DataFrame]:
        """Process the arrivals of a micro-batch."""
        return self._processor().process_rows(key[0], rows, timerValues.getCurrentWatermarkInMs())

    def handleExpiredTimer(  # noqa: N802 - Spark's name
        self,
        key: Any,  # noqa: ANN401 - Spark's signature
        timerValues: TimerValues,  # noqa: N803
        expiredTimerInfo: ExpiredTimerInfo,  # noqa: ARG002, N803
    ) -> Iterator[pd.DataFrame]:
        """Process a timer that has expired."""
        return self._processor().process_timer(key[0], timerValues.getCurrentWatermarkInMs())

    def close(self) -> None:
        """Nothing to close."""

    def _processor(self) -> BucketProcessor:
        if self._created is None:
            created: BucketProcessor = cloudpickle.loads(self._serialized)
            created.start(self._handle, self._values)
            self._created = created
        return self._created
