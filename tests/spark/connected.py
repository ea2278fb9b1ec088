"""The same joins through Spark Connect, in a process of its own: classic and Connect do not mix in one.

Run as a program: python -m tests.spark.connected FOLDER; it writes what it got to FOLDER/connect.json.
"""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from pyspark.sql import functions as F  # noqa: N812 - its usual name

import tidegate as tg
from tests.spark import restarted, streams
from tidegate.importance import DefinitionFile, Expression, Histogram
from tidegate.spark.session import configuration as session

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


def results(spark: SparkSession, folder: Path, name: str) -> dict[str, list[str]]:
    """A batch join, a streaming one, and the inspection of its checkpoint, as sorted texts."""
    left, right = (spark.read.parquet(str(folder / side)) for side in ("left", "right"))
    batch = tg.join(
        left, right, on="k", time="t", window=("15 s", "15 s"), how="full", where="l.left_text < r.right_text"
    )
    checkpoint, out = folder / f"{name}_checkpoint", folder / f"{name}_out"
    (folder / "importance.json").write_text(json.dumps(Histogram("k", [0, 4, 10], [1, 2]).to_dict()))
    importance = (DefinitionFile(folder / "importance.json"), Expression("k * 2"))
    joined = restarted.query(spark, folder, "random", importance=importance)
    writer = joined.writeStream.format("parquet").option("path", str(out))
    writer = writer.option("checkpointLocation", str(checkpoint))
    streams.run_to_end(writer.trigger(availableNow=True).start)
    stream = spark.read.parquet(str(out))
    counts = tg.inspect(checkpoint, "counts", spark=spark)
    inside = tg.inspect(checkpoint, spark=spark)
    one = left.where("k > 1")
    compared = tg.join(
        one, right.alias("b"), on=one.k == F.col("b.k"), time="t", window=("15 s", "15 s"), budget="90 rows"
    )
    frames = {
        "batch": batch,
        "stream": stream.select(*joined.columns),
        "counts": counts,
        "rows": inside,
        "compared": compared,
    }
    texts = {what: sorted(map(str, streams.texts(frame).elements())) for what, frame in frames.items()}
    return texts | {"refused": list(refused(joined, folder, checkpoint, name))}


def refused(joined: DataFrame, folder: Path, checkpoint: Path, name: str) -> Iterator[str]:
    """Errors are the same as in a classic session."""
    spark = joined.sparkSession
    right = streams.read(spark, folder / "right", "t", "1 second")
    damaged = Path(shutil.copytree(checkpoint, folder / f"{name}_damaged"))
    for path in [*damaged.rglob("*.changelog"), *damaged.rglob("*.zip")]:
        path.unlink()
    calls: list[Callable[[], object]] = [
        lambda: tg.join(joined, right, on="k", time="t", window=("1 s", "1 s")),
        lambda: tg.join(right, right, on=right.k > right.k, time="t", window=("1 s", "1 s")),
        lambda: tg.join(right, right, on=right.k == F.col("z"), time="t", window=("1 s", "1 s")),
        lambda: tg.inspect(checkpoint, name="bids", spark=spark),
        lambda: tg.inspect(damaged, spark=spark),
    ]
    for call in calls:
        try:
            call()
        except tg.InputError as error:
            # Spark has two names for one sign, and messages have the paths of two runs.
            yield str(error).replace("==(", "=(").replace(str(folder), "").replace(name, "")[:90]


def main() -> None:
    from pyspark.sql import SparkSession  # noqa: PLC0415 - only where it is a program

    folder = Path(sys.argv[1])
    spark = SparkSession.builder.remote("local[2]").getOrCreate()
    spark.conf.set("spark.sql.session.timeZone", "UTC")
    tg.configure(spark)
    assert spark.conf.get(session.PARTITIONS) == "2"  # as many as the server has cores
    assert session._parallelism(spark) == 2
    (folder / "connect.json").write_text(json.dumps(results(spark, folder, "connect")))
    spark.stop()


if __name__ == "__main__":
    main()
