"""Measures `tidegate.lookup` and Spark's broadcast join of the same relation, in turns, on the same files."""

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
WARM_UP = 3
BATCHES = 7
FILES = 2
ROUNDS = 3
CACHE_SIZES = (10_000, 100_000, 1_000_000)
CHUNK, SMALL = 131_072, 4_096
KEYS_PER_MEASUREMENT = 1 << 20
"""The keys that are looked up to measure the cost of one."""
SIZES = (100_000, 375_000, 1_500_000)


def write_stream(folder: Path, rows: int) -> None:
    """Write the files of a stream: one row in a hundred refers to any row of the relation, the others to few rows."""
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
    """Write the relation, as a DuckDB table and as a Parquet file."""
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
    """Read the stream, with one file per core in each micro-batch."""
    read = spark.readStream.option("maxFilesPerTrigger", FILES).schema("id long, amount double, note string")
    return read.parquet(str(folder))


def rate(frame: DataFrame) -> float:
    """Rows per second in the micro-batches after the first few."""
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as checkpoint:
        writer = frame.writeStream.format("noop").option("checkpointLocation", checkpoint)
        query = writer.trigger(availableNow=True).start()
        query.awaitTermination()
        progress = [p for p in query.recentProgress if p["numInputRows"]][WARM_UP:]
    return float(statistics.median(p["numInputRows"] / p["batchDuration"] * 1e3 for p in progress))


def nothing(keys: Iterator[pa.Array]) -> Iterator[pa.Array]:
    """Return the columns of a lookup as nulls: the cost of any Python function."""
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
        seen = [p["observedMetrics"]["seen"] for p in query.recentProgress if p["numInputRows"]][WARM_UP:]
    return float(sum(s["hits"] for s in seen) / sum(s["rows"] for s in seen))


def chunk_cost(cached: int, chunk: int, seed: int = 3) -> float:
    """Nanoseconds of processor time per key in the cache alone, at a hit rate of 0.99, without fetching."""
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
    hot, turns = cached * 4 // 5, max(8, KEYS_PER_MEASUREMENT // chunk)
    costs = []
    for turn in range(turns + WARM_UP):
        cold = rng.random(chunk) < COLD
        keys = np.where(cold, rng.integers(2 * cached, 50 * cached, chunk), rng.integers(0, hot, chunk))
        fetching, begin = 0.0, time.process_time()
        cache.resolve(pa.array(keys), fetch, 0.0)
        if turn >= WARM_UP:
            costs.append(time.process_time() - begin - fetching)
    return sum(costs) / turns / chunk * 1e9


def main(sizes: tuple[int, ...] = SIZES) -> None:
    """Measure the cache alone, then lookups with micro-batches of these sizes."""
    console = Console()
    for cached in CACHE_SIZES:
        costs = ", ".join(
            f"{chunk_cost(cached, chunk):,.0f} in chunks of {chunk:,}" for chunk in (CHUNK, SMALL)
        )
        console.print(f"{cached:,} rows cached: nanoseconds per key in the cache: {costs}")
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
                write_stream(folder, rows)
                turns = [
                    [rate(made(stream(spark, folder))) for made in (broadcast, idle, looked_up)]
                    for _ in range(ROUNDS)
                ]
                hits = hit_rate(tg.lookup(stream(spark, folder), relation, on="id", cache=CACHE, hit="hit"))
                plain, python, ours = (statistics.median(rates) / 1e3 for rates in zip(*turns, strict=True))
                ratios = sorted(ours / plain for plain, _, ours in turns)
                console.print(
                    f"{rows:,} rows per micro-batch: {plain:,.0f} thousand rows/s by broadcast, {python:,.0f} by a "
                    f"Python function that does nothing, {ours:,.0f} by lookup at a hit rate of {hits:.3f}; "
                    f"lookup relative to broadcast, by turn: {', '.join(f'{r:.2f}' for r in ratios)}"
                )
        finally:
            spark.stop()


if __name__ == "__main__":
    main()
