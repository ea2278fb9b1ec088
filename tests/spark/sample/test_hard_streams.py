"""Samples and reservoirs on Spark, with estimates by group, on streams that no sampler was designed for.

Each run is small. Seeds are fixed, and intervals have a level of 99 % or 99.9 %, so that the fast tests check for
gross bias only; the slow tests check the bias over several runs.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pytest
from pyspark.sql import functions as F  # noqa: N812 - its usual name

import tidegate as tg
from tests.sampling.hard_streams import check_estimates, hard_stream
from tests.spark import streams

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from tidegate.streams import Trace

pytestmark = pytest.mark.spark

ROWS = 2000
SETTINGS: dict[str, Any] = {
    "on": "k",
    "time": "t",
    "window": ("400 seconds", "0 seconds"),
    "buckets": 2,
    "step": 200,
}
AGGREGATES = {"count(*)": "count(*)", "avg(lag)": "avg(right_s - left_s)"}
METHODS: dict[str, dict[str, Any]] = {
    "uniform": {"method": "uniform", "budget": 150},
    "eq_cluster": {"method": "eq_cluster", "budget": 150},
    "pps_cluster": {"method": "pps_cluster", "budget": 150},
    "reservoir": {"method": "reservoir", "size": 150, "budget": 800},
    "progressive": {"method": "progressive", "size": 60, "budget": 800},
    "grouped": {"method": "reservoir", "size": 150, "budget": 800, "by": "side_group", "min_per_group": 30},
}


def frame(spark: SparkSession, side: str, trace: Trace) -> DataFrame:
    """One side; the left one has the group of its key, for reservoirs with groups."""
    seconds = trace.time
    columns: dict[str, Any] = {"k": trace.keys[0], f"{side}_s": seconds}
    columns["t"] = pa.array([streams.at(round(1000 * s)) for s in seconds], pa.timestamp("us", "UTC"))
    if side == "left":
        columns["side_group"] = np.asarray(trace.keys[0]) % 3
    return spark.createDataFrame(pa.table(columns))


@cache
def frames(spark: SparkSession, name: str) -> tuple[DataFrame, DataFrame]:
    stream = hard_stream(name, ROWS)
    left, right = frame(spark, "left", stream.left), frame(spark, "right", stream.right)
    return left.cache(), right.cache()


@cache
def true_values(spark: SparkSession, name: str) -> dict[str, dict[tuple[int, ...], float]]:
    """The exact aggregates by group, of the join on Spark."""
    settings = {option: value for option, value in SETTINGS.items() if option != "step"}
    joined = tg.join(*frames(spark, name), **settings)
    rows = joined.groupBy("side_group").agg(F.expr("count(*)"), F.expr("avg(right_s - left_s)")).collect()
    truth: dict[str, dict[tuple[int, ...], float]] = {what: {} for what in AGGREGATES}
    for group, *values in rows:
        for what, value in zip(AGGREGATES, values, strict=True):
            truth[what][(group,)] = float(value)
    return truth


def estimates(spark: SparkSession, name: str, method: str, seed: int, level: float) -> dict[str, pa.Table]:
    """The estimates by group of one sample."""
    options = METHODS[method]
    if method == "progressive":
        end = hard_stream(name, ROWS).left.time[-1]
        options = options | {"use_at": streams.at(round(1000 * float(end)))}
    sample = tg.sample(*frames(spark, name), **SETTINGS | options, seed=seed).cache()
    design = options["method"] if options["method"] in ("reservoir", "progressive") else None
    found = {
        what: tg.estimate(sample, expression, by="side_group", method=design, level=level).toArrow()
        for what, expression in AGGREGATES.items()
    }
    sample.unpersist()
    return found


def check_one_run(spark: SparkSession, name: str, method: str) -> None:
    truth = true_values(spark, name)
    for what, found in estimates(spark, name, method, seed=1, level=0.999).items():
        rows: dict[tuple[int, ...], Any] = {(row["side_group"],): row for row in found.to_pylist()}
        assert rows.keys() == truth[what].keys()
        for group, true in truth[what].items():
            low, high = rows[group]["low"], rows[group]["high"]
            assert low is None or low <= true, (what, group)
            assert high is None or true <= high, (what, group)


@pytest.mark.parametrize("method", ["uniform", "reservoir", "progressive", "grouped"])
def test_intervals_by_group_contain_the_true_values_on_sessions(spark: SparkSession, method: str) -> None:
    check_one_run(spark, "sessions", method)


@pytest.mark.slow
@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("name", ["rush hours", "hot keys", "two lags", "rate jump"])
def test_intervals_by_group_contain_the_true_values_on_other_streams(
    spark: SparkSession, name: str, method: str
) -> None:
    check_one_run(spark, name, method)


@pytest.mark.slow
@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("name", ["sessions", "rush hours"])
def test_estimates_by_group_are_unbiased_over_several_runs(
    spark: SparkSession, name: str, method: str
) -> None:
    """Over 12 runs, the mean and the coverage of 90 % intervals are within 4 standard errors."""
    runs = 12
    found = [estimates(spark, name, method, seed, 0.9) for seed in range(runs)]
    for what, truth in true_values(spark, name).items():
        together = pa.concat_tables([run[what] for run in found])
        check_estimates(together, truth, ["side_group"], runs, z=4, min_rows=8)
