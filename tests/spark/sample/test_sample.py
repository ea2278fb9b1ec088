"""Samples of a join on Spark: results of the exact join with the right weights, the same after a restart."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pytest
from pyspark.errors import PySparkException

import tidegate as tg
from tests.spark import streams
from tidegate import InputError
from tidegate.types import SIDES

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from tidegate.sampling.estimates.sample_design import Method

pytestmark = pytest.mark.spark

ROWS, BATCHES, BUDGET = 500, 3, 120
SETTINGS: dict[str, Any] = {"on": "k", "time": "t", "window": ("60 seconds", "60 seconds"), "buckets": 2}
SAMPLE_COLUMNS = {"probability", "weight", "owner", "shown", "batch"}


def table(side: str, batch: int) -> pa.Table:
    rng = np.random.default_rng(17 * batch + (side == "left"))
    times = np.sort(rng.integers(1000 * ROWS * batch, 1000 * ROWS * (batch + 1), ROWS))
    return pa.table(
        {
            "k": [f"key {int(30 * draw**2)}" for draw in rng.random(ROWS)],
            "t": pa.array([streams.at(int(ms)) for ms in times], pa.timestamp("us", "UTC")),
            f"{side}_value": rng.normal(100, 20, ROWS),
        }
    )


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Both sides, in files."""
    folder = tmp_path_factory.mktemp("sample")
    for side in SIDES:
        streams.write(folder / side, [table(side, batch) for batch in range(BATCHES)])
    return folder


def sides(spark: SparkSession, folder: Path) -> list[DataFrame]:
    return [spark.read.parquet(str(folder / side)) for side in SIDES]


def streamed(spark: SparkSession, folder: Path, **settings: Any) -> DataFrame:  # noqa: ANN401 - settings of all kinds
    frames = [streams.read(spark, folder / side, "t", "5 seconds") for side in SIDES]
    return tg.sample(*frames, **SETTINGS | settings)


def results(frame: DataFrame) -> Counter[tuple[object, ...]]:
    """Results without the columns of the sample."""
    columns = [name for name in frame.columns if name not in SAMPLE_COLUMNS]
    return Counter(tuple(row) for row in frame.select(columns).collect())


@pytest.fixture(scope="module")
def exact(spark: SparkSession, folder: Path) -> Counter[tuple[object, ...]]:
    """All results of the join."""
    return results(tg.join(*sides(spark, folder), **SETTINGS))


def test_a_probability_of_one_returns_the_join(
    spark: SparkSession, folder: Path, exact: Counter[tuple[object, ...]]
) -> None:
    whole = tg.sample(*sides(spark, folder), **SETTINGS, p=1.0)
    assert results(whole) == exact
    assert [tuple(row) for row in whole.select("probability", "weight").distinct().collect()] == [(1.0, 1.0)]


@pytest.mark.parametrize("method", ["uniform", "eq_cluster", "pps_cluster"])
def test_weights_within_a_small_budget_add_up_to_the_count(
    spark: SparkSession, folder: Path, exact: Counter[tuple[object, ...]], method: Method
) -> None:
    sample = tg.sample(*sides(spark, folder), **SETTINGS, budget=BUDGET, method=method, step=100).cache()
    assert not results(sample) - exact
    probability, weight = np.array(sample.select("probability", "weight").collect()).T
    assert 0 < len(weight) < 0.8 * exact.total()
    assert np.allclose(weight * probability, 1)
    # Six standard errors are below a third, also for clusters with a hot key.
    assert abs(weight.sum() / exact.total() - 1) < 1 / 3


def test_intervals_contain_the_true_values_on_sessions(spark: SparkSession) -> None:
    left, right = tg.streams.Sessions().both(4000, seed=1)
    frames = [
        spark.createDataFrame(
            pa.table(
                {
                    "k": trace.keys[0],
                    f"{side}_s": trace.time,
                    "t": pa.array([streams.at(int(1000 * s)) for s in trace.time], pa.timestamp("us", "UTC")),
                }
            )
        )
        for side, trace in (("left", left), ("right", right))
    ]
    settings: dict[str, Any] = SETTINGS | {"window": ("400 seconds", "0 seconds")}
    joined = tg.join(*frames, **settings)
    truth = joined.selectExpr("count(*)", "avg(right_s - left_s)").collect()[0]
    held = []
    for seed in range(3):
        sample = tg.sample(*frames, **settings, budget=150, step=200, seed=seed).cache()
        for what, true in zip(("count(*)", "avg(right_s - left_s)"), truth, strict=True):
            answer = tg.estimate(sample, what, level=0.99).collect()[0]
            held.append(answer.low <= true <= answer.high)
            assert abs(answer.estimate / true - 1) < 0.25
        sample.unpersist()
    assert sum(held) >= 5
    sample = tg.sample(*frames, **settings, method="reservoir", size=100, budget=500, step=200).cache()
    assert sample.count() == 100
    for what, true in zip(("count(*)", "avg(right_s - left_s)"), truth, strict=True):
        answer = tg.estimate(sample, what, method="reservoir", level=0.999).collect()[0]
        assert answer.low <= true <= answer.high
    sample.unpersist()


def test_where_applies_to_the_sample(
    spark: SparkSession, folder: Path, exact: Counter[tuple[object, ...]]
) -> None:
    where = "l.left_value > r.right_value"
    sample = tg.sample(*sides(spark, folder), **SETTINGS, budget=BUDGET, where=where, step=100).cache()
    found = results(sample)
    wanted = Counter({row: n for row, n in exact.items() if row[2] > row[4]})  # type: ignore[operator]
    assert not found - wanted
    total = sample.groupBy().sum("weight").collect()[0][0]
    assert abs(total / wanted.total() - 1) < 1 / 3


def test_a_restart_draws_the_same_sample(spark: SparkSession, folder: Path, tmp_path: Path) -> None:
    straight, partly = tmp_path / "straight", tmp_path / "partly"
    streams.run_to_files(streamed(spark, folder, budget=BUDGET), straight / "checkpoint", straight / "out")
    for batches in (range(2), range(2, BATCHES)):
        for side in SIDES:
            streams.write(partly / side, [table(side, batch) for batch in batches])
        streams.run_to_files(streamed(spark, partly, budget=BUDGET), partly / "checkpoint", partly / "out")
    drawn = streams.rows_of(spark, straight / "out")
    assert streams.rows_of(spark, partly / "out") == drawn
    assert drawn.total() > 0


def test_a_reservoir_is_returned_and_can_be_read_from_the_checkpoint(
    spark: SparkSession, folder: Path, exact: Counter[tuple[object, ...]], tmp_path: Path
) -> None:
    frame = streamed(spark, folder, budget=400, method="reservoir", size=80)
    assert frame.columns[-5:] == ["probability", "weight", "owner", "shown", "batch"]
    shown = streams.Running.start(frame, tmp_path / "checkpoint").table().cache()
    assert [tuple(row) for row in shown.groupBy("batch").count().orderBy("batch").collect()] == [
        (batch, 80) for batch in range(BATCHES)
    ]
    last = shown.where(f"batch = {BATCHES - 1}")
    assert not results(last) - exact
    # The number of results is estimated from the ranks: five standard errors of 1 / sqrt(80 - 2).
    assert abs(last.groupBy().sum("weight").collect()[0][0] / exact.total() - 1) < 5 / 78**0.5
    held = tg.reservoir(tmp_path / "checkpoint")
    columns = held.columns
    assert Counter(map(tuple, held.collect())) == Counter(map(tuple, last.select(columns).collect()))
    assert tg.reservoir(tmp_path / "checkpoint", size=10).count() == 10
    models = {row.model for row in tg.inspect(tmp_path / "checkpoint", "model").collect()}
    assert {"fraction", "lowered"} <= models
    policies = {row.policy for row in tg.inspect(tmp_path / "checkpoint", "counts").collect()}
    assert policies == {"eq_cluster"}
    with pytest.raises(InputError, match="size must be from 1 to 80, the size of the reservoir; got 81"):
        tg.reservoir(tmp_path / "checkpoint", size=81)


def test_a_batch_query_returns_one_reservoir_of_all_buckets(
    spark: SparkSession, folder: Path, exact: Counter[tuple[object, ...]]
) -> None:
    sample = tg.sample(*sides(spark, folder), **SETTINGS, method="reservoir", size=80, step=200).cache()
    assert sample.count() == 80
    assert not results(sample) - exact
    answer = tg.estimate(sample, "count(*)", method="reservoir", level=0.9999).collect()[0]
    assert answer.low < exact.total() < answer.high


def test_the_sampler_of_a_reservoir_can_be_chosen(
    spark: SparkSession, folder: Path, exact: Counter[tuple[object, ...]], tmp_path: Path
) -> None:
    """Rows are drawn with all results or none; the column `shown` has the probability, and estimates use it."""
    frame = streamed(spark, folder, budget=260, method="reservoir", size=80, sampler="eq_cluster")
    assert frame.columns[-5:] == ["probability", "weight", "owner", "shown", "batch"]
    whole = streams.Running.start(frame, tmp_path / "checkpoint").table()
    sample = whole.where(f"batch = {BATCHES - 1}").cache()
    assert 0 < sample.count() <= 80
    assert not results(sample) - exact
    probability, shown = np.array(sample.select("probability", "shown").collect()).T
    assert (probability <= shown).all()
    assert (shown < 1).any()
    held = tg.reservoir(tmp_path / "checkpoint")
    assert held.columns[-1] == "shown"
    assert Counter(map(tuple, held.collect())) == Counter(map(tuple, sample.select(held.columns).collect()))

    def width(frame: DataFrame) -> float:
        [row] = tg.estimate(frame, "count(*)", method="reservoir").collect()
        return float(row.high - row.low)

    [core] = tg.sampling.estimate(sample.toArrow(), "count(*)", method="reservoir").to_pylist()
    assert width(sample) == pytest.approx(core["high"] - core["low"])
    assert width(sample) > width(sample.drop("shown"))


def test_a_progressive_reservoir_grows_into_free_memory(
    spark: SparkSession, folder: Path, exact: Counter[tuple[object, ...]], tmp_path: Path
) -> None:
    frame = streamed(
        spark, folder, budget=400, method="progressive", size=40, use_at=streams.at(1000 * ROWS * BATCHES)
    )
    streams.run(frame, tmp_path)
    held = tg.reservoir(tmp_path)
    assert held.count() > 40
    assert not results(held) - exact
    buffered = tg.inspect(tmp_path, "counts").groupBy().sum("buffered").collect()[0][0]
    assert buffered + held.count() <= 400


def test_a_reservoir_with_groups_has_enough_results_of_each(
    spark: SparkSession, folder: Path, exact: Counter[tuple[object, ...]], tmp_path: Path
) -> None:
    keys = Counter(str(row[0]) for row in exact.elements())
    settings: dict[str, Any] = {
        "method": "reservoir",
        "size": 300,
        "budget": 2000,
        "by": "k",
        "min_per_group": 5,
    }
    shown = streams.Running.start(streamed(spark, folder, **settings), tmp_path / "checkpoint").table()
    last = shown.where(f"batch = {BATCHES - 1}").cache()
    assert not results(last) - exact
    found = Counter(row.k for row in last.select("k").collect())
    assert len(keys) > 25
    assert all(found[key] >= min(5, count) for key, count in keys.items())
    counts = tg.estimate(last, "count(*)", by="k", method="reservoir", level=0.999).collect()
    assert sum(row.low <= keys[row.k] <= row.high for row in counts) >= len(keys) - 1
    held = tg.reservoir(tmp_path / "checkpoint")
    assert Counter(map(tuple, held.collect())) == Counter(map(tuple, last.select(held.columns).collect()))
    sharing = tg.inspect(tmp_path / "checkpoint", "model").where("model = 'sharing'").collect()
    assert [row.value for row in sharing] == [0.0, 0.0]


def test_groups_that_share_a_place_have_the_right_weights(
    spark: SparkSession, folder: Path, exact: Counter[tuple[object, ...]]
) -> None:
    settings: dict[str, Any] = {"method": "reservoir", "size": 60, "by": ["k", "t"], "min_per_group": 4}
    sample = tg.sample(*sides(spark, folder), **SETTINGS | settings).cache()
    assert 60 <= sample.count() <= 120
    # Eleven groups of each bucket have their own place; by chance hardly any would have four results.
    assert sample.groupBy("k", "t").count().where("count >= 4").count() > 11
    assert not results(sample) - exact
    answer = tg.estimate(sample, "count(*)", method="reservoir", level=0.999).collect()[0]
    assert answer.low < exact.total() < answer.high


def test_another_probability_needs_a_new_checkpoint(spark: SparkSession, tmp_path: Path) -> None:
    for side in SIDES:
        streams.write(tmp_path / side, [table(side, 0)])
    streams.run_to_files(streamed(spark, tmp_path, p=0.5), tmp_path / "checkpoint", tmp_path / "out")
    for side in SIDES:
        streams.write(tmp_path / side, [table(side, 1)])
    with pytest.raises(PySparkException, match="the checkpoint was written with sample="):
        streams.run_to_files(streamed(spark, tmp_path, p=0.4), tmp_path / "checkpoint", tmp_path / "out")


def test_a_checkpoint_without_a_reservoir_is_refused(
    spark: SparkSession, folder: Path, tmp_path: Path
) -> None:
    streams.run(streamed(spark, folder, budget=BUDGET), tmp_path)
    with pytest.raises(InputError, match="holds no reservoir; give the checkpointLocation"):
        tg.reservoir(tmp_path)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"p": 0.0}, r"p must be a number above 0 and at most 1, or None to follow the budget; got 0.0"),
        ({"method": "unifrom"}, "did you mean 'uniform'"),
        ({"method": "reservoir"}, "needs size=, the number of results to hold"),
        ({"size": 10}, "size=10 needs method='reservoir' or 'progressive', but method is 'uniform'"),
        ({"sampler": "uniform"}, "sampler='uniform' needs method='reservoir'"),
        ({"method": "reservoir", "size": 10, "sampler": "equal"}, "sampler 'equal' is not known"),
        ({"method": "reservoir", "size": 10, "sampler": "pps_cluster"}, "use 'uniform' or 'eq_cluster'"),
        (
            {"method": "reservoir", "size": 10, "sampler": tg.sampling.Uniform(), "p": 0.1},
            "p=0.1 cannot be combined with",
        ),
        ({"method": "progressive", "size": 10, "budget": 90}, "needs use_at=, a time such as .* got None"),
        (
            {"method": "progressive", "size": 10, "use_at": "2026-01-02"},
            "needs budget=, the number of rows",
        ),
        ({"method": "reservoir", "size": 10, "use_at": "2026-01-02"}, "needs method='progressive'"),
        (
            {"method": "reservoir", "size": 100, "budget": 150},
            "leaves the join no memory of a budget of 150 rows; set a budget of at least 202, or fewer buckets",
        ),
        ({"method": "reservoir", "size": 100, "budget": "1 MB"}, "a reservoir needs a budget in rows"),
        ({"method": "reservoir", "size": 0}, "size"),
        (
            {"method": "reservoir", "size": 10, "where": "concat(l.k, r.k) like '%1%'"},
            "can only be applied to whole results",
        ),
        ({"by": "k"}, "by='k' needs method='reservoir', with by=, but method is 'uniform'"),
        (
            {"method": "reservoir", "size": 10, "min_per_group": 3},
            "min_per_group=3 needs method='reservoir', with by=",
        ),
        (
            {"method": "reservoir", "size": 10, "by": "k"},
            "size must be at least 22 for min_per_group=10; got 10",
        ),
        (
            {"method": "reservoir", "size": 90, "by": "city"},
            "by='city' is not a column of the result, which has k, t",
        ),
        ({"method": tg.sampling.EqCluster(p=0.5), "p": 0.1}, "p=0.1 cannot be combined with EqCluster"),
    ],
)
def test_invalid_input_is_refused_before_the_query_starts(
    spark: SparkSession, folder: Path, settings: dict[str, Any], message: str
) -> None:
    with pytest.raises(InputError, match=message):
        tg.sample(*sides(spark, folder), **SETTINGS | settings)


def test_a_column_that_the_sample_adds(spark: SparkSession, folder: Path) -> None:
    left, right = sides(spark, folder)
    with pytest.raises(InputError, match="an input has a column 'weight', which the result adds; rename it"):
        tg.sample(left.withColumnRenamed("left_value", "weight"), right, **SETTINGS)
