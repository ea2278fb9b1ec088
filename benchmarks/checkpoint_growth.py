"""How a checkpoint grows: its files and bytes over many small micro-batches, with a state of constant size.

`python -m benchmarks.checkpoint_growth --help` has the options.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - its usual name
from rich.console import Console

import tidegate as tg
from tidegate.spark.session.local import local_session

_WINDOW = 20
"""Micro-batches of a row's window, before it and after it."""
_PAYLOAD = 320
_SAMPLES = 20
_START = 1_767_225_600_000


def main(batches: int = 2000, rows: int = 1000, retain: int = 100, settings: str = "") -> None:
    """Run a join of small micro-batches, and print over time what its checkpoint and Spark's local folder hold.

    Parameters
    ----------
    batches
        The number of micro-batches.
    rows
        The rows of a micro-batch, both sides together.
    retain
        How many micro-batches Spark keeps, for a rollback (`spark.sql.streaming.minBatchesToRetain`).
    settings
        Settings of Spark in addition to those of `tidegate.configure`, such as "name=value,name=value".
    """
    console = Console(width=150)
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        local, checkpoint = Path(folder) / "local", Path(folder) / "checkpoint"
        confs = {"spark.local.dir": str(local), "spark.sql.streaming.minBatchesToRetain": str(retain)}
        spark = local_session("growth", settings=confs)
        try:
            for pair in filter(None, settings.split(",")):
                spark.conf.set(*pair.split("=", 1))
            _run(console, spark, batches, rows // 2, checkpoint, local)
        finally:
            spark.stop()


def _run(
    console: Console, spark: SparkSession, batches: int, rows: int, checkpoint: Path, local: Path
) -> None:
    span = f"{_WINDOW} seconds"
    frame = tg.join(
        _stream(spark, rows), _stream(spark, rows), on="key", time="time", window=(span, span), budget=None
    )
    writer = frame.writeStream.format("noop").option("checkpointLocation", str(checkpoint))
    query = writer.trigger(processingTime="0 seconds").start()
    started, due = time.monotonic(), 0
    while due <= batches and query.isActive:
        progress = query.lastProgress
        done = -1 if progress is None else int(progress["batchId"])
        if done >= due:
            _print_sizes(console, checkpoint, local, done, time.monotonic() - started)
            due += max(1, batches // _SAMPLES)
        time.sleep(0.2)
    query.stop()


def _stream(spark: SparkSession, rows: int) -> DataFrame:
    """Rows of one second in each micro-batch, with a random payload that does not compress well."""
    reader = spark.readStream.format("rate-micro-batch").option("rowsPerBatch", rows)
    source = reader.option("advanceMillisPerBatch", 1000).option("startTimestamp", _START).load()
    digests = [F.sha2(F.concat_ws("-", "value", F.lit(i)), 512) for i in range(_PAYLOAD // 128 + 1)]
    return source.select(
        (F.hash("value") % (_WINDOW * rows)).alias("key"),
        F.col("timestamp").alias("time"),
        F.substring(F.concat(*digests), 1, _PAYLOAD).alias("note"),
    ).withWatermark("time", "0 seconds")


def _print_sizes(console: Console, checkpoint: Path, local: Path, batch: int, seconds: float) -> None:
    """Files and bytes of the checkpoint, those of its fullest partition, and the bytes of Spark's local folder."""
    files = [file for file in checkpoint.rglob("*") if file.is_file()]
    size, local_size = (sum(map(_size, of)) for of in (files, local.rglob("*")))
    partitions = [folder for folder in checkpoint.glob("state/0/[0-9]*") if folder.is_dir()]
    logs = max((len(list(folder.glob("*.changelog"))) for folder in partitions), default=0)
    snapshots = max((len(list(folder.glob("*.zip"))) for folder in partitions), default=0)
    console.print(
        f"micro-batch {batch:5}, {seconds:5.0f} s: {len(files):5} files, {size / 1e6:7.1f} MB; of a partition: "
        f"{logs:3} changelogs, {snapshots} snapshots; on the local disk {local_size / 1e6:6.1f} MB"
    )


def _size(file: Path) -> int:
    try:
        return file.stat().st_size if file.is_file() else 0
    except FileNotFoundError:  # deleted since it was listed
        return 0


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--batches", type=int, default=2000, help="micro-batches")
    parser.add_argument("--rows", type=int, default=1000, help="rows of a micro-batch, both sides together")
    parser.add_argument(
        "--retain", type=int, default=100, help="micro-batches that Spark keeps for a rollback"
    )
    parser.add_argument("--settings", default="", help="further settings of Spark: name=value,name=value")
    return parser.parse_args()


if __name__ == "__main__":
    main(**vars(_options()))
