"""A query whose rows are processed in buckets: pack the rows of its DataFrames, run the buckets, unpack the results.

The rows of a bucket meet in one task. In a streaming query, a stateful operator runs the bucket once a micro-batch;
in a batch query, a function runs it once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import TYPE_CHECKING, TypeAlias

import pyarrow as pa
from pyspark.sql import DataFrame

from tidegate.spark.packing.packed_rows import PACKED, RESULTS, BatchJob, pack_result, unpack
from tidegate.spark.packing.row_packer import RowPacker
from tidegate.spark.packing.type_encoding import is_atomic
from tidegate.spark.session.configuration import (
    check_state_store,
    choose_worker_python,
    warn_about_partitions,
)
from tidegate.spark.state.deferred_processor import DeferredProcessor
from tidegate.spark.state.start_listener import watch_starts

if TYPE_CHECKING:
    from pyspark.sql import GroupedData, SparkSession
    from pyspark.sql.types import StructType

    from tidegate.spark.state.deferred_processor import BucketProcessor

Merge: TypeAlias = "Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]"


@dataclass(frozen=True)
class BucketQuery:
    """The rows of several DataFrames, processed in buckets.

    Parameters
    ----------
    frames
        The DataFrames with the columns that are sent, in the order of the sides.
    distributed_by
        The hidden column by which rows are distributed to buckets; None for one bucket.
    buckets, buckets_given
        The number of buckets, and whether it was given. Otherwise it is that of the running query's partitions.
    schema
        The columns that leave a bucket.
    merge
        Merges the packed results of all buckets in one partition; None for results that are independent.
    """

    frames: Sequence[DataFrame]
    distributed_by: str | None
    buckets: int
    buckets_given: bool
    schema: StructType
    merge: Merge | None = None

    def stream(self, processor: BucketProcessor) -> DataFrame:
        """The results of a streaming query."""
        operator = DeferredProcessor(processor, packs=self._packs)
        return self._unpacked(
            self._grouped().transformWithStateInPandas(operator, self._written, "Append", "EventTime")
        )

    def batch(self, job: BatchJob) -> DataFrame:
        """The results of a batch query."""
        return self._unpacked(
            self._grouped().applyInArrow(_packing(job) if self._packs else job, self._written)
        )

    @property
    def _packs(self) -> bool:
        """Whether each batch of results leaves as one row of bytes. Spark converts nested types value by value."""
        return self.merge is not None or not all(is_atomic(field.dataType) for field in self.schema)

    @property
    def _written(self) -> StructType | str:
        return RESULTS if self._packs else self.schema

    def _grouped(self) -> GroupedData:
        packed = [
            frame.mapInArrow(RowPacker(side, self.buckets, self.distributed_by, self.buckets_given), PACKED)
            for side, frame in enumerate(self.frames)
        ]
        return reduce(DataFrame.union, packed).groupBy("bucket")

    def _unpacked(self, results: DataFrame) -> DataFrame:
        if self.merge is not None:
            return results.repartition(1).mapInArrow(self.merge, self.schema)
        return results.mapInArrow(unpack, self.schema) if self._packs else results


def prepare_session(spark: SparkSession, buckets: int, *, streaming: bool, stacklevel: int) -> None:
    """Check the session of a query, and set what its tasks need; a warning names the caller at this level."""
    choose_worker_python(spark)
    if streaming:
        check_state_store(spark)
        watch_starts(spark)
        warn_about_partitions(spark, buckets, stacklevel=stacklevel + 1)


def _packing(job: BatchJob) -> BatchJob:
    """The function of a batch query, with packed results."""

    def run(key: tuple[pa.Scalar, ...], batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        return map(pack_result, job(key, batches))

    return run
