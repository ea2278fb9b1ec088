"""The event time of results: aggregations and joins behind a join in one query, with nothing dropped."""

from __future__ import annotations

from collections import Counter
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest
from pyspark.sql import functions as F  # noqa: N812 - its usual name

import tidegate as tg
from tests.spark import streams
from tests.spark.streams import HOWS, SENTINEL, Case
from tidegate import InputError
from tidegate.types import SIDES

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import DataFrame, SparkSession

    from tidegate.spark.bucket.join.plan import How

pytestmark = pytest.mark.spark


def sides(spark: SparkSession, folder: Path, case: Case) -> tuple[DataFrame, DataFrame]:
    for side, batches in zip(SIDES, case.sides(), strict=True):
        streams.write(folder / side, [streams.table(side, rows) for rows in batches])
    left = streams.read(spark, folder / "left", "t", "2 seconds")
    return left, streams.read(spark, folder / "right", "u", "3 seconds")


def joined(left: DataFrame, right: DataFrame, case: Case, **settings: Any) -> DataFrame:  # noqa: ANN401 - of join
    ahead, behind = (f"{span} ms" for span in case.window)
    return tg.join(
        left,
        right,
        on="k",
        time=("t", "u"),
        window=(ahead, behind),
        how=case.how,
        event_time="at",
        **settings,
    )


def counted(results: DataFrame) -> DataFrame:
    windows = results.groupBy(F.window("at", "5 seconds")).count()
    return windows.select("window.start", "window.end", "count")


def compare(spark: SparkSession, folder: Path, case: Case, **settings: Any) -> int:  # noqa: ANN401 - of join
    """Count results by window behind the join, and from its results; returns the number of windows."""
    left, right = sides(spark, folder, case)
    results = joined(left, right, case, **settings)
    running = streams.Running.start(counted(results), folder / "chained")
    got = running.rows()
    dropped = [
        operator.numRowsDroppedByWatermark
        for progress in running.query.recentProgress
        for operator in progress.stateOperators
    ]
    assert not any(dropped)
    plain = streams.Running.start(results, folder / "plain").table()
    expected = Counter({(row[0], row[1]): row[2] for row in counted(plain).collect()})
    # The last rows of both sides move the watermark past all windows but their own.
    last = streams.at(streams.FAR - 60_000).replace(tzinfo=None)
    assert Counter({(start, end): n for start, end, n in got}) == Counter(
        {at: n for at, n in expected.items() if at[1] < last}
    )
    return len(got)


@pytest.mark.parametrize(
    "case",
    [Case(8, "inner"), Case(12, "full", nulls=False), Case(11, "left_semi")],
    ids=lambda case: case.how,
)
def test_a_windowed_count_behind_a_join(spark: SparkSession, tmp_path: Path, case: Case) -> None:
    assert compare(spark, tmp_path, case) >= 3


def test_a_windowed_count_behind_a_bounded_join(spark: SparkSession, tmp_path: Path) -> None:
    assert compare(spark, tmp_path, Case(4, "left"), budget=12, policy="random") > 3


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(200, 224))
def test_more_seeds(spark: SparkSession, tmp_path: Path, seed: int) -> None:
    how: How = HOWS[seed % len(HOWS)]
    budget = (None, 10)[seed % 2]
    compare(spark, tmp_path, Case(seed, how, batches=3 + seed % 4, rows=20 + seed % 50), budget=budget)


@pytest.mark.parametrize("how", ["inner", "left"])
def test_a_join_behind_a_join(spark: SparkSession, tmp_path: Path, how: How) -> None:
    case = Case(8, how)
    results = joined(*sides(spark, tmp_path, case), case)
    rows: list[streams.Row] = [(n % 5, 500 * n, 1000 + n) for n in range(60)]
    third: list[list[streams.Row]] = [
        [*rows, (SENTINEL, streams.FAR, 0)],
        [(SENTINEL, streams.FAR + 1, 0)],
    ]
    streams.write(tmp_path / "third", [streams.table("right", some) for some in third])
    others = streams.read(spark, tmp_path / "third", "u", "1 second").withColumnsRenamed({"u": "v", "b": "c"})
    settings: dict[str, Any] = {"on": "k", "time": ("at", "v"), "window": ("2 seconds", "3 seconds")}
    chained = tg.join(results, others.select("k", "v", "c"), name="second", **settings)
    columns = ("k", "a", "b", "c")
    got = Counter(streams.Running.start(chained.select(*columns), tmp_path / "chained").rows())
    plain = streams.Running.start(results, tmp_path / "plain").table()
    there = spark.read.parquet(str(tmp_path / "third")).selectExpr("k as k3", "u as v", "b as c")
    near = "k = k3 and v between at - interval 3 seconds and at + interval 2 seconds"
    wanted = Counter(tuple(row) for row in plain.join(there, F.expr(near)).select(*columns).collect())
    assert Counter({row: n for row, n in got.items() if row[0] != SENTINEL}) == Counter(
        {row: n for row, n in wanted.items() if row[0] != SENTINEL}
    )
    assert len(got) > 40


def test_batches_have_the_same_column(spark: SparkSession) -> None:
    times = [("1", "2026-01-01 00:00:00"), ("2", "2026-01-01 00:00:05")]
    left = spark.createDataFrame(times, "k string, t string").withColumn("t", F.to_timestamp("t"))
    right = (
        left.where("k = '1'").withColumnRenamed("t", "u").withColumn("u", F.expr("u + interval 3 seconds"))
    )
    result = tg.join(
        left, right, on="k", time=("t", "u"), window=("9 s", "1 s"), how="left", event_time="at"
    ).orderBy("k")
    first, second = result.collect()
    assert first["at"] == first["u"]
    assert second["at"] == second["t"] + timedelta(seconds=9, microseconds=1)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"event_time": 5}, "event_time=5 is not a name"),
        ({"event_time": "T"}, "event_time='T' is a column of the result already"),
        ({"event_time": "at", "how": "left", "window": (None, "1 s")}, "each left row of a 'left' join"),
        ({"event_time": "at", "how": "semi", "window": (None, "1 s")}, "each left row of a 'left_semi' join"),
    ],
)
def test_a_time_that_cannot_be_is_refused(
    spark: SparkSession, settings: dict[str, Any], message: str
) -> None:
    left = spark.createDataFrame([], "k long, t timestamp")
    with pytest.raises(InputError, match=message):
        tg.join(
            left,
            left.withColumnRenamed("t", "u"),
            **{"on": "k", "time": ("t", "u"), "window": ("1 s", "1 s")} | settings,
        )


def test_a_chained_join_without_event_time_is_refused(spark: SparkSession, tmp_path: Path) -> None:
    case = Case(8, "inner")
    left, right = sides(spark, tmp_path, case)
    plain = tg.join(left, right, on="k", time=("t", "u"), window=("1 s", "1 s"))
    for stream in (plain, plain.withWatermark("t", "1 second")):
        with pytest.raises(InputError, match="give that join event_time='at'"):
            tg.join(stream, right.select("k", "u"), on="k", time=("t", "u"), window=("1 s", "1 s"))
