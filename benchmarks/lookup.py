"""The lookup beside Spark's broadcast join of the same relation, on the same files, in one run, taking turns."""

from __future__ import annotations

import statistics
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import parquet
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - its usual name
from pyspark.sql.pandas.functions import arrow_udf
from rich.console import Console

import tidegate as tg
from tidegate.caching.lookup_cache import LookupCache
from tidegate.spark.session.local import local_session

RELATION = 100_000
HOT = 4_000
COLD = 0.01
CACHE = 10_000
WARM = 3
BATCHES = 7
FILES = 2
ROUNDS = 3
CACHED = (10_000, 100_000, 1_000_000)
CHUNK, SMALL = 131_072, 4_096
CHUNKED = 1 << 20
"""So many keys are looked up to tell what one costs."""
SIZES = (100_000, 375_000, 1_500_000)


def write(folder: Path, rows: int) -> None:
    """Files of a stream, of which one row in a hundred refers to any row of the relation and the others to few."""
    rng = np.random.default_rng(1)
    words = pa.array([f"payload {i:06d}" for i in range(1000)])
    folder.mkdir(parents=True)
    for i in range(BATCHES * FILES):
        count = rows // FILES
        cold = rng.random(count) < COLD
        table = pa.table(
            {
                "id": np.where(cold, rng.integers(0, RELATION, count), rng.integers(0, HOT, count)),
                "amount": rng.random(count),
                "note": words.take(pa.array(rng.integers(0, 1000, count))),
            }
        )
        parquet.write_table(table, folder / f"{i:04d}.parquet")


def write_relation(folder: Path) -> None:
    """The relation, as a table of DuckDB and as a file of Parquet."""
    rows = pa.table(
        {
            "id": np.arange(RELATION),
            "name": [f"name {i}" for i in range(RELATION)],
            "level": np.random.default_rng(2).random(RELATION),
        }
    )
    parquet.write_table(rows, folder / "relation.parquet")
    with duckdb.connect(str(folder / "relation.duckdb")) as connection:
        connection.register("given", rows)
        connection.execute(
            "create table users as select * from given; create unique index by_id on users (id)"
        )


def stream(spark: SparkSession, folder: Path) -> DataFrame:
    """The stream, as many files a micro-batch as there are cores to use."""
    read = spark.readStream.option("maxFilesPerTrigger", FILES).schema("id long, amount double, note string")
    return read.parquet(str(folder))


def rate(frame: DataFrame) -> float:
    """Rows a second in the micro-batches after the first few."""
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as checkpoint:
        writer = frame.writeStream.format("noop").option("checkpointLocation", checkpoint)
        query = writer.trigger(availableNow=True).start()
        query.awaitTermination()
        progress = [p for p in query.recentProgress if p["numInputRows"]][WARM:]
    return float(statistics.median(p["numInputRows"] / p["batchDuration"] * 1e3 for p in progress))


def nothing(keys: Iterator[pa.Array]) -> Iterator[pa.Array]:
    """What any function in Python costs: the same columns, without a value."""
    for some in keys:
        columns = [pa.nulls(len(some), pa.string()), pa.nulls(len(some), pa.float64())]
        yield pa.StructArray.from_arrays(columns, ["name", "level"])


def hit_rate(frame: DataFrame) -> float:
    """The fraction of rows whose key was cached, after the first few micro-batches."""
    observed = frame.observe("seen", F.count_if("hit").alias("hits"), F.count("*").alias("rows"))
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as checkpoint:
        writer = observed.writeStream.format("noop").option("checkpointLocation", checkpoint)
        query = writer.trigger(availableNow=True).start()
        query.awaitTermination()
        seen = [p["observedMetrics"]["seen"] for p in query.recentProgress if p["numInputRows"]][WARM:]
    return float(sum(s["hits"] for s in seen) / sum(s["rows"] for s in seen))


def chunk_cost(cached: int, chunk: int, seed: int = 3) -> float:
    """Nanoseconds of processor time for each key in the cache alone, at a hit rate of 0.99, what is fetched aside."""
    rng, fetching = np.random.default_rng(seed), 0.0
    cache = LookupCache(
        pa.schema([("id", pa.int64()), ("name", pa.string())]), tg.Budget(rows=cached), "heeb"
    )

    def fetch(keys: pa.Array) -> pa.Table:
        nonlocal fetching
        begin = time.process_time()
        rows = pa.table(
            {"id": keys, "name": pc.binary_join_element_wise("name", keys.cast(pa.string()), " ")}
        )
        fetching += time.process_time() - begin
        return rows

    for some in np.split(np.arange(cached), range(CHUNK, cached, CHUNK)):  # until it is full
        cache.resolve(pa.array(some), fetch, 0.0)
    hot, turns = cached * 4 // 5, max(8, CHUNKED // chunk)
    costs = []
    for turn in range(turns + WARM):
        cold = rng.random(chunk) < COLD
        keys = np.where(cold, rng.integers(2 * cached, 50 * cached, chunk), rng.integers(0, hot, chunk))
        fetching, begin = 0.0, time.process_time()
        cache.resolve(pa.array(keys), fetch, 0.0)
        if turn >= WARM:
            costs.append(time.process_time() - begin - fetching)
    return sum(costs) / turns / chunk * 1e9


def main(sizes: tuple[int, ...] = SIZES) -> None:
    """Run all of it, or the micro-batches of these sizes."""
    console = Console()
    for cached in CACHED:
        told = ", ".join(
            f"{chunk_cost(cached, chunk):,.0f} in chunks of {chunk:,}" for chunk in (CHUNK, SMALL)
        )
        console.print(f"{cached:,} rows cached: nanoseconds a key in the cache itself {told}")
    with tempfile.TemporaryDirectory() as name:
        root = Path(name)
        write_relation(root)
        relation = tg.relations.DuckDB(str(root / "relation.duckdb"), "users")
        spark = local_session("bench", memory="4g")

        def broadcast(rows: DataFrame) -> DataFrame:
            return rows.join(F.broadcast(spark.read.parquet(str(root / "relation.parquet"))), "id")

        def idle(rows: DataFrame) -> DataFrame:
            made = arrow_udf(nothing, "struct<name string, level double>")  # type: ignore[call-overload]  # its types know no struct
            return rows.withColumn("of", made("id")).select("*", "of.name", "of.level").drop("of")

        def looked_up(rows: DataFrame) -> DataFrame:
            return tg.lookup(rows, relation, on="id", cache=CACHE)

        try:
            for rows in sizes:
                folder = root / str(rows)
                write(folder, rows)
                turns = [
                    [rate(made(stream(spark, folder))) for made in (broadcast, idle, looked_up)]
                    for _ in range(ROUNDS)
                ]
                hits = hit_rate(tg.lookup(stream(spark, folder), relation, on="id", cache=CACHE, hit="hit"))
                plain, python, ours = (statistics.median(rates) / 1e3 for rates in zip(*turns, strict=True))
                ratios = sorted(ours / plain for plain, _, ours in turns)
                console.print(
                    f"{rows:,} rows a micro-batch: {plain:,.0f} thousand rows/s broadcast, {python:,.0f} through a "
                    f"function in Python that does nothing, {ours:,.0f} looked up at a hit rate of {hits:.3f}; "
                    f"lookup beside broadcast, turn by turn: {', '.join(f'{r:.2f}' for r in ratios)}"
                )
        finally:
            spark.stop()


if __name__ == "__main__":
    main()
