"""Estimates on Spark equal those of the core, batch and streaming."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from pyspark.errors import PySparkException

import tidegate as tg
from tests.spark import streams
from tidegate.types import InputError

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import DataFrame, SparkSession

    from tidegate.sampling.estimates.sample_design import Design

pytestmark = pytest.mark.spark

EPOCH = datetime(2026, 1, 1, tzinfo=UTC)
NAMES = ("city", "price", "owner", "probability", "ts")


def sampled(rows: int = 400) -> pa.Table:
    """Clusters of several results within twenty minutes, with some nulls."""
    rng = np.random.default_rng(4)
    owner = np.sort(rng.integers(0, 90, rows))
    chances = rng.uniform(0.2, 1, 90)
    price = rng.lognormal(3, 1, rows)
    return pa.table(
        {
            "city": pa.array(rng.choice(["Oslo", "Rome", "Lima"], rows), mask=rng.random(rows) < 0.1),
            "price": pa.array(price, mask=rng.random(rows) < 0.1),
            "owner": pa.array(owner, mask=owner == 7),
            "probability": np.where(owner == 7, 1.0, chances[owner]),
            "ts": pa.array(
                [EPOCH + timedelta(seconds=float(s)) for s in rng.uniform(0, 1200, rows)],
                pa.timestamp("us", "UTC"),
            ),
        }
    )


def rounded(rows: list[Any]) -> list[tuple[Any, ...]]:
    """Rounded rows, since sums of floats depend on the order of rows."""

    def plain(value: Any) -> str:  # noqa: ANN401 - a cell
        if isinstance(value, datetime):
            return value.astimezone(UTC).isoformat()
        return f"{value:.9g}" if isinstance(value, float) else repr(value)

    return sorted(tuple(plain(value) for value in row) for row in rows)


def of_core(table: pa.Table, what: str, **options: Any) -> list[tuple[Any, ...]]:  # noqa: ANN401
    found = tg.sampling.estimate(table, what, time="ts", **options)
    return rounded([tuple(row.values()) for row in found.to_pylist()])


@pytest.mark.parametrize(
    ("what", "by", "method"),
    [
        ("count(*)", None, "eq_cluster"),
        ("count(price)", "city", None),
        ("quantile(price, 0.75)", ["city", "owner"], "uniform"),
    ],
)
def test_batch_equals_the_core(
    spark: SparkSession, what: str, by: str | list[str] | None, method: Design | None
) -> None:
    table = sampled()
    found = tg.estimate(spark.createDataFrame(table), what, by=by, method=method).collect()
    assert rounded(found) == of_core(table, what, by=by, method=method)


def halved() -> pa.Table:
    """Two reservoirs, merged."""
    table = sampled()
    half = pa.array(np.arange(len(table)) % 2)
    chances = pa.array(0.1 + 0.2 * half.to_numpy())
    return table.append_column("half", half).set_column(3, "probability", chances)


def test_reservoirs_equal_the_core(spark: SparkSession) -> None:
    table = halved()
    frame = spark.createDataFrame(table)
    found = tg.estimate(frame, "sum(price)", by="city", method="counted", stratum="half").collect()
    assert rounded(found) == of_core(table, "sum(price)", by="city", method="counted", stratum="half")


@pytest.mark.parametrize("by", [None, "city"])
def test_overlapping_windows_do_not_change_the_size_of_reservoirs(
    spark: SparkSession, by: str | None
) -> None:
    table = halved()
    found = tg.estimate(
        spark.createDataFrame(table), "sum(price)", by=by, method="counted", stratum="half",
        window="10 minutes", every="5 minutes", time="ts",
    )  # fmt: skip
    flat = found.selectExpr(*([by] if by else []), "window.end", "estimate", "low", "high", "rows").collect()
    assert rounded(flat) == of_core(
        table, "sum(price)", by=by, method="counted", stratum="half", window=600 * 10**6, every=300 * 10**6
    )


def test_windows_of_reservoirs_equal_those_of_spark(spark: SparkSession) -> None:
    frame = spark.createDataFrame(halved())
    cut: dict[str, Any] = {"window": "7 minutes", "every": "4 minutes", "time": "ts"}
    found = tg.estimate(frame, "count(*)", method="counted", stratum="half", **cut)
    plain = tg.estimate(frame, "count(*)", method="uniform", **cut)
    assert found.schema == plain.schema
    counts = [one.select("window", "rows").collect() for one in (found, plain)]
    assert sorted(counts[0]) == sorted(counts[1])


def test_a_null_time_stops_the_query(spark: SparkSession, tmp_path: Path) -> None:
    table = sampled()
    holed = table.set_column(4, "ts", pa.array([None, *table["ts"].to_pylist()[1:]], table["ts"].type))
    cut: dict[str, Any] = {"window": "5 minutes", "time": "ts"}
    for method in ("uniform", "counted"):
        even = holed.set_column(3, "probability", pa.array(np.full(len(holed), 0.5)))
        found = tg.estimate(spark.createDataFrame(even), "count(*)", method=method, **cut)
        with pytest.raises(PySparkException, match=r"sample.ts has a null; set the time of each"):
            found.collect()
    stream = streams.read(spark, streams.write(tmp_path / "in", [holed]), "ts", "1 minute")
    with pytest.raises(PySparkException, match=r"sample.ts has a null; set the time of each"):
        streams.run(tg.estimate(stream, "count(*)", **cut), tmp_path / "checkpoint")


def test_expressions_and_windows_are_those_of_spark(spark: SparkSession) -> None:
    table = sampled()
    frame = spark.createDataFrame(table)
    found = tg.estimate(
        frame, "avg(greatest(price, 10) * 2)", by="city", window="10 minutes", every="5 minutes", time="ts"
    )
    assert found.columns == ["city", "window", "estimate", "low", "high", "rows"]
    doubled = table.set_column(
        1, "price", pa.array([p and 2 * max(p, 10) for p in table["price"].to_pylist()])
    )
    # Spark's greatest skips nulls.
    doubled = table.set_column(
        1, "price", pa.array([2 * max(p or 0, 10) for p in table["price"].to_pylist()])
    )
    expected = of_core(doubled, "avg(price)", by="city", window=600 * 10**6, every=300 * 10**6)
    flat = found.selectExpr("city", "window.end", "estimate", "low", "high", "rows").collect()
    assert rounded(flat) == expected
    assert len(expected) > 12


@pytest.mark.parametrize("what", ["sum(price)", "median(price)"])
def test_streaming_equals_batch(spark: SparkSession, tmp_path: Path, what: str) -> None:
    table = sampled().sort_by("ts")
    late = table.slice(0, 1).set_column(
        4, "ts", pa.array([EPOCH + timedelta(days=1)], table.schema.field("ts").type)
    )
    parts = [table.slice(0, 150), table.slice(150, 150), table.slice(300), late]
    stream = streams.read(spark, streams.write(tmp_path / "in", parts), "ts", "1 minute")
    found = tg.estimate(stream, what, by="city", window="5 minutes", time="ts")
    flat = found.selectExpr("city", "window.end", "estimate", "low", "high", "rows")
    assert rounded(streams.run(flat, tmp_path / "checkpoint")) == of_core(
        table, what, by="city", window=300 * 10**6
    )


def joinable(side: str, batch: int, rows: int = 200) -> pa.Table:
    """One row per second, of a few keys."""
    rng = np.random.default_rng(2 * batch + (side == "left"))
    seconds = rows * batch + np.arange(rows)
    return pa.table(
        {
            "k": rng.integers(0, 6, rows),
            "ts": pa.array([EPOCH + timedelta(seconds=int(s)) for s in seconds], pa.timestamp("us", "UTC")),
            f"{side}_price": rng.lognormal(3, 0.5, rows),
        }
    )


def test_a_streaming_sample_is_written_and_estimated_over_sliding_windows(
    spark: SparkSession, tmp_path: Path
) -> None:
    for side in ("left", "right"):
        streams.write(tmp_path / side, [joinable(side, batch) for batch in range(4)])
    settings: dict[str, Any] = {"on": "k", "time": "ts", "window": ("40 seconds", "40 seconds"), "buckets": 1}
    sides = [streams.read(spark, tmp_path / side, "ts", "0 seconds") for side in ("left", "right")]
    sample = tg.sample(*sides, **settings, method="eq_cluster", p=0.5)
    counts: list[float] = []

    def save(batch: DataFrame, _: int) -> None:
        batch.write.mode("append").parquet(str(tmp_path / "sample"))
        counts.extend(row.estimate for row in tg.estimate(batch, "count(*)", method="eq_cluster").collect())

    query = sample.writeStream.foreachBatch(save).option("checkpointLocation", str(tmp_path / "drawn"))
    streams.run_to_end(query.trigger(availableNow=True).start)
    options: dict[str, Any] = {
        "window": "4 minutes",
        "every": "1 minute",
        "time": "ts",
        "method": "eq_cluster",
    }
    stream = streams.read(spark, tmp_path / "sample", "ts", "1 minute")
    answers = tg.estimate(stream, "sum(left_price)", **options)
    flat = answers.selectExpr("window.end", "estimate", "low", "high", "rows")
    found = streams.run(flat, tmp_path / "estimates")
    written = spark.read.parquet(str(tmp_path / "sample")).toArrow()
    assert sum(counts) == pytest.approx(np.sum(1 / written["probability"].to_numpy()))
    spans: dict[str, Any] = {"window": 240 * 10**6, "every": 60 * 10**6}
    over = pc.max(written["ts"]).as_py() - timedelta(minutes=1)
    core = tg.sampling.estimate(written, "sum(left_price)", time="ts", method="eq_cluster", **spans)
    complete = core.filter(pc.less_equal(core["window_end"], over))
    assert rounded(found) == rounded([tuple(row.values()) for row in complete.to_pylist()])
    assert len(found) > 10
    exact = tg.join(*(spark.read.parquet(str(tmp_path / side)) for side in ("left", "right")), **settings)
    whole = exact.toArrow().append_column("probability", pa.array(np.ones(exact.count())))
    truth = {
        row["window_end"]: row["estimate"]
        for row in tg.sampling.estimate(whole, "sum(left_price)", time="ts", **spans).to_pylist()
    }
    # Windows overlap, and so do their errors: more often than not is what fifteen of them can show.
    hold = [row[2] <= truth[row[0].astimezone(UTC)] <= row[3] for row in found]
    assert np.mean(hold) > 0.6


def test_invalid_input_is_refused(spark: SparkSession, tmp_path: Path) -> None:
    frame = spark.createDataFrame(sampled())
    stream = streams.read(spark, streams.write(tmp_path / "in", [sampled()]), "ts", "1 minute")
    plain = spark.readStream.schema(frame.schema).parquet(str(tmp_path / "in"))
    refused: list[tuple[DataFrame, str, dict[str, Any], str]] = [
        (frame, "avg(prise)", {}, "prise.*the sample has city"),
        (frame, "avg(city)", {}, "needs numbers, but its argument is of type string"),
        (frame, "avg(sum(price))", {}, "avg"),
        (frame, "avg(price)", {"by": "town"}, "no column 'town'"),
        (frame, "avg(price)", {"window": "1 minute"}, "time="),
        (frame, "avg(price)", {"every": "1 minute"}, "needs a window"),
        (plain, "avg(price)", {"window": "1 hour", "time": "ts", "lateness": "-1 s"}, "is negative; give"),
        (stream, "avg(price)", {"window": "1 hour", "time": "ts", "lateness": "1 s"}, "already; leave out"),
        (frame, "avg(price)", {"window": "1 minute", "every": "2 minutes", "time": "ts"}, "at most"),
        (frame, "avg(price)", {"stratum": "city"}, "needs method='counted'"),
        (frame, "avg(price)", {"level": 90}, r"level must be a number between 0 and 1"),
        (stream, "avg(price)", {}, "set window= and time="),
        (stream, "avg(price)", {"method": "counted"}, "foreachBatch"),
        (plain, "avg(price)", {"window": "1 minute", "time": "ts"}, "no watermark on 'ts'"),
    ]
    for sample, what, options, message in refused:
        with pytest.raises(InputError, match=message):
            tg.estimate(sample, what, **options)


def test_an_invalid_probability_stops_the_query(spark: SparkSession) -> None:
    frame = spark.createDataFrame([(1.0, 0.0)], "price double, probability double")
    with pytest.raises(PySparkException, match=r"'probability' must have .* got 0\.0 at row 0"):
        tg.estimate(frame, "sum(price)").collect()
