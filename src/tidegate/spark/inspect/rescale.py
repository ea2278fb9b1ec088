"""`tidegate rescale`: a new checkpoint of a stopped query, with another number of buckets.

Spark has no way to write a state store from outside of a query. So a small query, with an operator that looks like
the join's to Spark, writes the divided state to the new checkpoint. Then the logs of the old one are put beside it.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pandas as pd
import pyarrow as pa
from pyspark.sql import functions as F  # noqa: N812 - its usual name

from tidegate.spark.bucket.join.saved import saved_buckets
from tidegate.spark.inspect.rescaling import MergedBucket, divide
from tidegate.spark.packing.buckets import labels
from tidegate.spark.packing.packed_rows import RESULTS
from tidegate.spark.query.checkpoint import find_state, operator_names
from tidegate.spark.session.configuration import PARTITIONS
from tidegate.spark.session.task import DEFAULT_MAX_BUCKETS, bucket_count
from tidegate.spark.state.checkpoint_files import CheckpointFiles, is_classic
from tidegate.spark.state.deferred_processor import DeferredProcessor
from tidegate.spark.state.history import read_history
from tidegate.spark.state.log import StateLog
from tidegate.types import InputError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.stateful_processor import StatefulProcessorHandle

    from tidegate.spark.query.checkpoint import FoundState
    from tidegate.spark.state.deferred_processor import SparkValueStore

_PARTS: Final = "bucket int, source int, kind string, data binary"
_SETTINGS: Final = {
    # A commit writes the whole state, as a snapshot that can have any version.
    "spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled": "false",
    # One micro-batch: all of the state is written in version 1.
    "spark.sql.streaming.noDataMicroBatches.enabled": "false",
}
_TEMPORARY: Final = "rescaling"


def rescale(
    checkpoint: str | Path,
    buckets: int,
    to: str | Path,
    *,
    name: str | None = None,
    spark: SparkSession,
) -> None:
    """Write a new checkpoint of a stopped query of `tidegate.join`, with another number of buckets.

    Parameters
    ----------
    checkpoint
        The query's `checkpointLocation`. It is not changed.
    buckets
        The new number of buckets, and of partitions up to 64.
    to
        The new checkpoint, which must not exist.
    name
        The name of the join, to be sure.
    spark
        A classic session.
    """
    if not is_classic(spark):
        raise InputError(
            "rescale reads and writes files of a checkpoint, which Spark Connect cannot; use spark-submit"
        )
    count = bucket_count(buckets, buckets)
    partitions = min(count, DEFAULT_MAX_BUCKETS)
    old, new = CheckpointFiles(checkpoint, spark), CheckpointFiles(to, spark)
    if new.exists():
        raise InputError(f"there is something at {str(to)!r}; give the path of a new checkpoint")
    found = find_state(checkpoint, spark, name, "tidegate rescale")
    history = read_history(checkpoint, spark)
    _check(checkpoint, found, operator_names(checkpoint, spark))
    if history is None:
        raise InputError(
            f"the query at {str(checkpoint)!r} has completed no micro-batch; start it with the new number"
        )
    try:
        _write_state(found.states, count, partitions, str(to), spark)
        _put_version(new, history.last + 1)
        _put_logs(old, new, history.last, partitions)
    except BaseException:
        new.delete()
        raise


def _check(checkpoint: str | Path, found: FoundState, operators: list[str]) -> None:
    where, layout = f"the query at {str(checkpoint)!r}", found.layout
    if len(operators) != 1:
        raise InputError(
            f"{where} has several stateful operators ({', '.join(operators)}), which share their partitions; rescale "
            "works for a query whose only one is a join"
        )
    if layout is None:
        raise InputError(f"{where} has no state yet; start it with the new number of buckets")
    if "how" not in layout or "sample" in layout:
        raise InputError(
            f"{where} is a sample or an alarm; its draws belong to its buckets, so rescale works for joins only"
        )
    if not str(layout["on"]).endswith(" = by None"):
        raise InputError(
            f"{where} compares keys by {layout['on']!r}; its state does not have the column by which rows are "
            "distributed, so rescale works for joins by equality only"
        )


def _write_state(states: DataFrame, buckets: int, partitions: int, to: str, spark: SparkSession) -> None:
    """Write the divided state as version 1 of a checkpoint."""
    parts = f"{to}/{_TEMPORARY}"
    states.mapInArrow(_Divider(buckets), _PARTS).write.parquet(parts)
    settings = _SETTINGS | {PARTITIONS: str(partitions)}
    before = {setting: spark.conf.get(setting, None) for setting in settings}
    try:
        for setting, value in settings.items():
            spark.conf.set(setting, value)
        stream = spark.readStream.schema(_PARTS).parquet(parts)
        # Spark wants a watermark for timers by event time. It begins at 0, and a row at 0 would be late.
        timed = stream.withColumn("time", F.timestamp_seconds(F.lit(1))).withWatermark("time", "0 seconds")
        written = timed.groupBy("bucket").transformWithStateInPandas(
            DeferredProcessor(_StateWriter(buckets), packs=True), RESULTS, "Append", "EventTime"
        )
        writer = written.writeStream.format("noop").option("checkpointLocation", to)
        writer.trigger(availableNow=True).start().awaitTermination()
    finally:
        for setting, previous in before.items():
            if previous is None:
                spark.conf.unset(setting)
            else:
                spark.conf.set(setting, previous)


def _put_version(new: CheckpointFiles, version: int) -> None:
    """Make the state that of a later version."""
    operator = "state/0"
    for partition in new.numbers(operator):
        folder = f"{operator}/{partition}"
        new.rename(f"{folder}/1.zip", f"{folder}/{version}.zip")
        for file in new.names(folder):
            if file.startswith("1.") and version != 1:
                new.delete(f"{folder}/{file}")


def _put_logs(old: CheckpointFiles, new: CheckpointFiles, last: int, partitions: int) -> None:
    """Replace the logs by those of the query: of its last two micro-batches, and of one that is not complete."""
    for log in ("offsets", "commits", "sources", "metadata", _TEMPORARY):
        new.delete(log)
    for log in ("metadata", "sources"):
        new.copy(log, old)
    for number in [number for number in old.numbers("offsets") if number >= last - 1]:
        version, described, *sources = old.read(f"offsets/{number}").decode().split("\n")
        fields: dict[str, Any] = json.loads(described)
        fields.setdefault("conf", {})[PARTITIONS] = str(partitions)
        new.write(f"offsets/{number}", "\n".join([version, json.dumps(fields), *sources]).encode())
    for number in [number for number in old.numbers("commits") if number >= last - 1]:
        new.copy(f"commits/{number}", old)


@dataclass(frozen=True)
class _Divider:
    """Divides the states of buckets."""

    buckets: int

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        names = labels(self.buckets)
        for number, saved in saved_buckets(batches):
            for target, kind, data in divide(saved, number, self.buckets):
                row = {"bucket": names[target], "source": number, "kind": kind, "data": data}
                schema = pa.schema(
                    [
                        ("bucket", pa.int32()),
                        ("source", pa.int32()),
                        ("kind", pa.string()),
                        ("data", pa.binary()),
                    ]
                )
                yield pa.RecordBatch.from_pylist([row], schema)


class _StateWriter:
    """Writes the state of each new bucket from its parts."""

    def __init__(self, buckets: int) -> None:
        self._buckets = buckets

    def start(self, handle: StatefulProcessorHandle, values: SparkValueStore) -> None:
        """Start a task."""
        self._handle, self._values = handle, values

    def process_rows(
        self, bucket: int, rows: Iterator[pd.DataFrame], watermark: int
    ) -> Iterator[pa.RecordBatch]:
        """Merge the parts of a bucket, and save it."""
        merged = MergedBucket(labels(self._buckets).index(bucket), self._buckets)
        for frame in rows:
            for source, kind, data in zip(frame["source"], frame["kind"], frame["data"], strict=True):
                merged.add(int(source), kind, data)
        log = StateLog(self._values, local=False)
        log.write(merged.arrays(), dict(merged.payload().items()), f"{merged.progress.clock.batch}")
        timer = merged.next_timer()
        if timer is not None:
            self._handle.registerTimer(max(timer, watermark + 1))
        return iter(())

    def process_timer(self, bucket: int, watermark: int) -> Iterator[pa.RecordBatch]:  # noqa: ARG002 - as for joins
        """No timer expires: there is one micro-batch."""
        return iter(())
