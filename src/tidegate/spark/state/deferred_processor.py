"""A stateful processor that is created when its first rows arrive.

Before a query runs, Spark starts a Python process next to the driver, which only asks the processor for its state
variables. That process need not import the join and everything below it, which takes a second of a core.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, Protocol

from pyspark import cloudpickle
from pyspark.sql.streaming.stateful_processor import StatefulProcessor

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pandas as pd
    import pyarrow as pa
    from pyspark.sql.streaming.stateful_processor import (
        ExpiredTimerInfo,
        StatefulProcessorHandle,
        TimerValues,
    )

CHUNKS: Final = "chunks"
"""The state variable with a bucket's values."""
NAME_SCHEMA: Final = "name string"
CHUNK_SCHEMA: Final = "payload binary"


class SparkValueStore:
    """The values of the bucket that Spark is processing."""

    def __init__(self, handle: StatefulProcessorHandle) -> None:
        self._state = handle.getMapState(CHUNKS, NAME_SCHEMA, CHUNK_SCHEMA)

    def get(self, name: str) -> bytes | None:
        """The value of this name, if there is one."""
        value = self._state.getValue((name,))
        return None if value is None else bytes(value[0])

    def put(self, name: str, value: bytes) -> None:
        """Set a value."""
        self._state.updateValue((name,), (value,))

    def remove(self, name: str) -> None:
        """Remove a value."""
        self._state.removeKey((name,))


class BucketProcessor(Protocol):
    """What runs the buckets of a query in a task."""

    def start(self, handle: StatefulProcessorHandle, values: SparkValueStore) -> None:
        """Start a task: `values` are those of the bucket that Spark is processing."""

    def process_rows(
        self, bucket: int, rows: Iterator[pd.DataFrame], watermark: int
    ) -> Iterator[pa.RecordBatch]:
        """Process the arrivals of a micro-batch, and yield results; the watermark is in milliseconds."""

    def process_timer(self, bucket: int, watermark: int) -> Iterator[pa.RecordBatch]:
        """Process a timer that has expired, and yield results."""


class DeferredProcessor(StatefulProcessor):
    """Sends a processor to Spark's workers, where it is created when its first rows arrive.

    Parameters
    ----------
    processor
        What runs the buckets.
    packs
        Whether each batch of results becomes one row of bytes.
    """

    def __init__(self, processor: BucketProcessor, *, packs: bool) -> None:
        self._packs = packs
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
        watermark = timerValues.getCurrentWatermarkInMs()
        return self._to_frames(self._processor().process_rows(key[0], rows, watermark))

    def handleExpiredTimer(  # noqa: N802 - Spark's name
        self,
        key: Any,  # noqa: ANN401 - Spark's signature
        timerValues: TimerValues,  # noqa: N803
        expiredTimerInfo: ExpiredTimerInfo,  # noqa: ARG002, N803
    ) -> Iterator[pd.DataFrame]:
        """Process a timer that has expired."""
        watermark = timerValues.getCurrentWatermarkInMs()
        return self._to_frames(self._processor().process_timer(key[0], watermark))

    def close(self) -> None:
        """Nothing to close."""

    def _to_frames(self, results: Iterator[pa.RecordBatch]) -> Iterator[pd.DataFrame]:
        # Imported here: the process next to the driver does not need it.
        from tidegate.spark.packing.packed_rows import to_frame, to_packed_frame  # noqa: PLC0415

        return map(to_packed_frame if self._packs else to_frame, results)

    def _processor(self) -> BucketProcessor:
        if self._created is None:
            created: BucketProcessor = cloudpickle.loads(self._serialized)
            created.start(self._handle, self._values)
            self._created = created
        return self._created
