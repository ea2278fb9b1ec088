"""Lookups in real databases: the right rows for any cache, and no loss when the database is down."""

from __future__ import annotations

import sqlite3
import time
from collections import Counter
from collections.abc import Iterator
from datetime import datetime
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import duckdb
import pyarrow as pa
import pytest
from pyspark.sql import functions as F  # noqa: N812 - its usual name

import tidegate as tg
from tests import postgres
from tests.spark import streams
from tidegate.relations import DuckDB, PostgreSQL, Relation, SQLite
from tidegate.spark.lookup.task import LookupTask
from tidegate.spark.session.spark_errors import root_cause
from tidegate.types import InputError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = pytest.mark.spark

USERS = 50


def create_duckdb(folder: Path) -> DuckDB:
    with duckdb.connect(str(folder / "users.duckdb")) as connection:
        connection.execute(
            f"create table users as select range::integer as id, 'name ' || range as name from range({USERS})"  # noqa: S608 - ours
        )
    return DuckDB(str(folder / "users.duckdb"), "users")


def create_sqlite(folder: Path) -> SQLite:
    connection = sqlite3.connect(folder / "users.sqlite")
    connection.execute("create table users (id integer primary key, name text)")
    connection.executemany("insert into users values (?, ?)", [(i, f"name {i}") for i in range(USERS)])
    connection.commit()
    connection.close()
    return SQLite(str(folder / "users.sqlite"), "users")


@pytest.fixture(scope="module")
def server() -> Iterator[postgres.Server]:
    with postgres.server() as running:
        running.execute(
            "create table users (id integer primary key, name text)",
            f"insert into users select g, 'name ' || g from generate_series(0, {USERS - 1}) g",  # noqa: S608 - ours
        )
        yield running


def clicks(folder: Path, batches: int, rows: int = 60, first: int = 0) -> Path:
    """Files of a stream, one a micro-batch: some keys are null and some match no row."""
    tables = []
    for batch in range(first, first + batches):
        keys = [None if i % 20 == 7 else (7 * i + 11 * batch) % (USERS + 5) for i in range(rows)]
        tables.append(
            pa.table({"id": pa.array(keys, pa.int64()), "n": [rows * batch + i for i in range(rows)]})
        )
    return streams.write(folder, tables)


def read(spark: SparkSession, folder: Path) -> DataFrame:
    schema = spark.read.parquet(str(folder)).schema
    return spark.readStream.schema(schema).option("maxFilesPerTrigger", 1).parquet(str(folder))


def expected(spark: SparkSession, folder: Path, how: str) -> Counter[tuple[Any, ...]]:
    users = spark.range(USERS).select("id", F.concat(F.lit("name "), "id").alias("name"))
    joined = spark.read.parquet(str(folder)).join(users, "id", how)
    return Counter(tuple(row) for row in joined.select("id", "n", "name").collect())


@pytest.mark.parametrize("make", [create_duckdb, create_sqlite])
def test_a_stream_gets_the_rows_of_each_database(spark: SparkSession, tmp_path: Path, make: Any) -> None:  # noqa: ANN401
    relation: Relation = make(tmp_path)
    folder = clicks(tmp_path / "clicks", 3)
    looked_up = tg.lookup(read(spark, folder), relation, on="id", cache=120, how="left", hit="hit", chunk=16)
    assert looked_up.columns == ["id", "n", "name", "hit"]
    rows = streams.run(looked_up, tmp_path / "checkpoint")
    assert Counter(row[:3] for row in rows) == expected(spark, folder, "left")
    hits = Counter(row[3] for row in rows)
    assert hits[None] == sum(row[0] is None for row in rows)
    assert hits[True] > 0


def test_batch_inner_join_with_different_key_names(spark: SparkSession, tmp_path: Path) -> None:
    create_sqlite(tmp_path)
    folder = clicks(tmp_path / "clicks", 1)
    stream = (
        spark.read.parquet(str(folder)).withColumnRenamed("id", "who").withColumn("name", F.lit("theirs"))
    )
    looked_up = tg.lookup(
        stream, tmp_path / "users.sqlite", table="users", on=[("who", "id")], cache="4 KB", policy="lru"
    )
    assert looked_up.columns == ["who", "n", "name", "id", "name_right"]
    found = Counter((row.who, row.n, row.name_right) for row in looked_up.collect())
    assert found == expected(spark, folder, "inner")
    assert looked_up.where("who != id").count() == 0
    some = tg.lookup(
        stream, tmp_path / "users.sqlite", table="users", on=[("who", "id")], columns=[], cache=9
    )
    assert some.columns == stream.columns
    assert some.count() == sum(found.values())


@pytest.mark.parametrize("database", ["duckdb", "sqlite", "postgresql"])
def test_names_with_dots_and_decimals(
    spark: SparkSession, tmp_path: Path, server: postgres.Server, database: str
) -> None:
    create = 'create table "or.ders" ("i.d" integer, "pri.ce" numeric(10, 2), "at.`x`" timestamp, "d" date)'
    insert = """insert into "or.ders" values (1, 0.99, '2026-01-31 12:30:00', '2026-01-31')"""
    if database == "postgresql":
        server.execute('drop table if exists "or.ders"', create, insert)
        relation: Relation = PostgreSQL(server.dsn, '"or.ders"')
    else:
        file = tmp_path / f"a.b.{database}"
        connection = duckdb.connect(str(file)) if database == "duckdb" else sqlite3.connect(file)
        connection.execute(create)
        connection.execute(insert)
        connection.commit()
        connection.close()
        relation = tg.relations.as_relation(file, ("or.ders",))
    stream = spark.createDataFrame([(1, 5), (2, 6)], "`i.d` int, `n.m` int")
    found = tg.lookup(stream, relation, on="i.d", cache=10, how="left", hit="was.hit")
    assert found.columns == ["i.d", "n.m", "pri.ce", "at.`x`", "d", "was.hit"]
    kinds = {field.name: field.dataType.simpleString() for field in found.schema.fields}
    assert (kinds["pri.ce"], kinds["at.`x`"], kinds["d"]) == ("decimal(10,2)", "timestamp_ntz", "date")
    rows = {row[0]: tuple(row)[1:5] for row in found.collect()}
    at = datetime(2026, 1, 31, 12, 30)  # noqa: DTZ001 - without a zone
    assert rows == {1: (5, Decimal("0.99"), at, at.date()), 2: (6, None, None, None)}
    named = stream.withColumnRenamed("i.d", "k.ey")
    again = tg.lookup(named, relation, on=[("k.ey", "i.d")], cache=10, columns=["pri.ce"])
    assert [tuple(row) for row in again.collect()] == [(1, 5, Decimal("0.99"))]
    prices = spark.createDataFrame([(Decimal("0.99"),)], "`pri.ce` decimal(10, 2)")
    by_price = tg.lookup(prices, relation, on="pri.ce", cache=10, columns=["i.d"])
    assert [tuple(row) for row in by_price.collect()] == [(Decimal("0.99"), 1)]
    if database == "sqlite":
        days = spark.createDataFrame([(at.date(),)], "d date")
        with pytest.raises(InputError, match=r"the key 'd' is declared date, .*cast it to text or a number"):
            tg.lookup(days, relation, on="d", cache=10)


def test_the_stream_s_columns_and_watermark_are_unchanged(spark: SparkSession, tmp_path: Path) -> None:
    relation = create_duckdb(tmp_path)
    sql = """select id, interval '14' month as months, make_interval(1, 2, 3, 4) as calendar,
             parse_json('{"a": 1}') as v, map('k', make_ym_interval(1, 2)) as inside,
             named_struct('a', 1Y, 'b', cast(null as void)) as odd,
             timestamp '0001-01-01 00:00:00' as at, 9007199254740995 + id as large, cast(1.5 as decimal(38, 18)) as d,
             time '12:00:01' as noon from range(3)"""
    stream = spark.sql(sql)
    looked_up = tg.lookup(stream, relation, on="id", cache=10)
    assert looked_up.drop("name").schema == stream.schema
    assert streams.texts(looked_up.drop("name")) == streams.texts(stream)
    marked = read(spark, clicks(tmp_path / "clicks", 1)).withColumn("t", F.timestamp_seconds("n"))
    marked = marked.withWatermark("t", "5 seconds")
    metadata = tg.lookup(marked, relation, on="id", cache=10).schema["t"].metadata
    assert metadata == marked.schema["t"].metadata != {}


def test_changes_are_seen_after_the_time_to_live(spark: SparkSession, tmp_path: Path) -> None:
    relation = create_duckdb(tmp_path)
    stream = spark.range(1, 2)
    looked_up = tg.lookup(stream, relation, on="id", cache=10, ttl="1 second")
    assert looked_up.collect()[0].name == "name 1"
    with duckdb.connect(relation.path) as connection:
        connection.execute("update users set name = 'new' where id = 1")
    time.sleep(1.1)
    assert looked_up.collect()[0].name == "new"


def test_equal_calls_share_a_cache(spark: SparkSession, tmp_path: Path) -> None:
    """As in foreachBatch. Spark may run each call in another worker, but there are fewer workers than calls."""
    relation = create_duckdb(tmp_path)
    calls = [
        tg.lookup(spark.range(1, 2, numPartitions=1), relation, on="id", cache=10, hit="hit")
        for _ in range(8)
    ]
    assert any(call.collect()[0].hit for call in calls)


def test_by_default_all_of_a_small_cache_is_used(spark: SparkSession, tmp_path: Path) -> None:
    """On two cores: divided by the 200 partitions that Spark shuffles into, it would be refused."""
    before = spark.conf.get("spark.sql.shuffle.partitions")
    spark.conf.set("spark.sql.shuffle.partitions", "200")
    try:
        assert tg.lookup(spark.range(5), create_duckdb(tmp_path), on="id", cache=100).count() == 5
    finally:
        spark.conf.set("spark.sql.shuffle.partitions", before or "")


def test_the_database_goes_down_and_comes_back(
    spark: SparkSession, tmp_path: Path, server: postgres.Server
) -> None:
    """The query fails after the retry timeout; restarted from its checkpoint, it has no missing or duplicate rows."""
    folder = clicks(tmp_path / "clicks", 2)
    relation = PostgreSQL(server.dsn, "users")

    def query(retry_timeout: str) -> DataFrame:
        return tg.lookup(
            read(spark, folder), relation, on="id", cache=4, how="left", retry_timeout=retry_timeout
        )

    streams.run_to_files(query("1 second"), tmp_path / "checkpoint", tmp_path / "out")
    before = streams.rows_of(spark, tmp_path / "out")
    clicks(folder, 2, first=2)
    failing = query("1 second")
    server.stop()
    try:
        with pytest.raises(Exception, match="did not answer") as caught:
            streams.run_to_files(failing, tmp_path / "checkpoint", tmp_path / "out")
    finally:
        server.start()
    message = root_cause(caught.value)
    assert "'users' in PostgreSQL at 127.0.0.1" in message
    assert "Start the query again from its checkpoint" in message
    assert "s3cr" not in str(caught.value)
    assert streams.rows_of(spark, tmp_path / "out") == before
    streams.run_to_files(query("1 second"), tmp_path / "checkpoint", tmp_path / "out")
    frame = spark.read.parquet(*sorted(str(f) for f in (tmp_path / "out").glob("batch=*")))
    found = Counter(tuple(row) for row in frame.select("id", "n", "name").collect())
    assert found == expected(spark, folder, "left")


def test_a_query_in_flight_waits_for_the_database(server: postgres.Server) -> None:
    """Without Spark: the connection that a process holds breaks, and is opened again once the server is back."""
    relation = PostgreSQL(server.dsn, "users")
    source = relation.open()
    columns = {column.name: column for column in source.columns()}
    source.close()
    task = LookupTask(
        name="waits", relation=relation, key=columns["id"], columns=(columns["name"],), key_type=pa.int64(),
        cache=tg.Budget(rows=2), tasks=1, policy="lru", ttl=None, probabilities=None, seed=0,
        retry_timeout=60.0, chunk=2,
    )  # fmt: skip

    def keys() -> Iterator[pa.Array]:
        yield pa.array([1, 2])
        server.stop()
        server.start()
        yield pa.array([3, 1])

    found = [name for part in task.run(keys()) for name in part.field("c0").to_pylist()]
    assert found == ["name 1", "name 2", "name 3", "name 1"]


def test_duplicate_keys_fail_the_query(spark: SparkSession, tmp_path: Path) -> None:
    relation = create_duckdb(tmp_path)
    with duckdb.connect(relation.path) as connection:
        connection.execute("insert into users values (1, 'other')")
    assert tg.lookup(spark.range(2, 5), relation, on="id", cache=10).count() == 3
    with pytest.raises(Exception, match="several rows whose id is 1, but a lookup returns one"):
        tg.lookup(spark.range(5), relation, on="id", cache=10).collect()


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"on": "who"}, "has no column 'who'; it has id, name, score, noon"),
        ({"on": [("who", "id")]}, "stream has no column 'who'; it has id, text, ratio, Name"),
        ({"on": ["id", "text"]}, "names 2 columns, but a lookup uses one"),
        ({"on": [("text", "id")]}, "the stream's key 'text' is string, the relation's 'id' is int; cast one"),
        ({"on": [("ratio", "score")]}, "the key 'ratio' of type double cannot be looked up"),
        ({"columns": ["nope"]}, "has no column 'nope'"),
        ({"columns": "name"}, r"write columns=\['name'\]"),
        (
            {"columns": None},
            "'noon' of .* is of type time64.us., which Spark does not have; exclude it",
        ),
        ({"hit": "score"}, "two columns 'score'"),
        ({"suffix": ""}, "two columns 'Name'"),
        ({"cache": None}, "cache=None has no bound"),
        ({"cache": 1, "tasks": 2}, "a budget of 1 rows cannot be divided among 2"),
        ({"tasks": 0}, "tasks must be a whole number, at least 1; got 0"),
        ({"chunk": 0}, "chunk must be a whole number, at least 1; got 0"),
        ({"ttl": "0 seconds"}, "ttl must be a positive duration; got '0 seconds'"),
        ({"ttl": 10}, "ttl 10 has no unit"),
        ({"how": "full"}, "how='full' is not supported; use 'inner', 'left', or"),
        ({"policy": "lfd"}, "cache policy 'lfd' is not known"),
        ({"relation": "nowhere.duckdb", "table": "users"}, "cannot be reached"),
        ({"table": "users"}, "has a table already"),
    ],
)
def test_invalid_arguments_are_refused_before_the_query_starts(
    spark: SparkSession, tmp_path: Path, settings: dict[str, Any], message: str
) -> None:
    relation = create_duckdb(tmp_path)
    with duckdb.connect(relation.path) as connection:
        connection.execute(
            "alter table users add column score double; alter table users add column noon time"
        )
    stream = spark.range(1).selectExpr("id", "'a' as text", "1.5D as ratio", "'b' as Name")
    chosen = {"relation": relation, "on": "id", "cache": 10, "columns": ["name", "score"]} | settings
    with pytest.raises(InputError, match=message):
        tg.lookup(stream, **chosen)  # type: ignore[arg-type]
