"""Queries over one pool on Spark, and what they have learned."""

from __future__ import annotations

from functools import reduce
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pytest
from pyspark.sql import DataFrame

import tidegate as tg
from tests.spark import streams
from tidegate.spark.bucket.join.saved import SavedBucket
from tidegate.spark.state.deferred_processor import CHUNKS
from tidegate.spark.state.log import saved_log
from tidegate.types import SIDES, InputError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

BUDGET = 120


def source(folder: Path, batches: int, rows: int, skew: float = 0.5, keys: int = 12) -> None:
    """Write a file per side and micro-batch, each with one second; later calls write further files."""
    shares = 1.0 / np.arange(1, keys + 1) ** skew
    for place, side in enumerate(SIDES):
        begin = len(list((folder / side).glob("*.parquet")))
        tables = []
        for number in range(begin, begin + batches):
            rng = np.random.default_rng([number, place])
            times = np.sort(rng.integers(0, 1000, rows)) + 1 + number * 1000
            tables.append(
                pa.table(
                    {
                        "k": pa.array(rng.choice(keys, rows, p=shares / shares.sum()), pa.int64()),
                        "t": pa.array([streams.at(int(t)) for t in times], pa.timestamp("us", "UTC")),
                    }
                )
            )
        streams.write(folder / side, tables)


def joined(spark: SparkSession, folder: Path, **settings: Any) -> DataFrame:  # noqa: ANN401 - as join's
    sides = [streams.read(spark, folder / side, "t", "1 second") for side in SIDES]
    chosen: dict[str, Any] = {"window": ("2 seconds", "2 seconds"), "policy": "prob", "buckets": 2}
    return tg.join(*sides, on="k", time="t", **chosen | settings)


def run_again(spark: SparkSession, folder: Path, **settings: Any) -> None:  # noqa: ANN401
    frame = joined(spark, folder, **settings)
    writer = frame.writeStream.format("noop").option("checkpointLocation", str(folder / "checkpoint"))
    streams.run_to_end(writer.trigger(availableNow=True).start)


def saved(spark: SparkSession, folder: Path, batches: range) -> dict[int, list[SavedBucket]]:
    """The states of all buckets after each of some micro-batches."""
    frames = [
        spark.read.format("statestore")
        .option("stateVarName", CHUNKS)
        .option("batchId", batch)
        .load(str(folder / "checkpoint"))
        .selectExpr(f"{batch} as batch", "key.bucket", "user_map_key.name", "user_map_value.payload")
        for batch in batches
    ]
    found: dict[int, dict[int, list[dict[str, Any]]]] = {}
    for row in sorted(reduce(DataFrame.union, frames).collect()):
        value = {"name": row.name, "payload": bytes(row.payload)}
        found.setdefault(row.batch, {}).setdefault(row.bucket, []).append(value)
    read = {
        batch: [SavedBucket.read(saved_log(values)) for values in states.values()]
        for batch, states in found.items()
    }
    return {batch: [state for state in states if state is not None] for batch, states in read.items()}


def batches_of(folder: Path) -> int:
    return sum(file.name.isdigit() for file in (folder / "checkpoint" / "commits").iterdir())


def limits(spark: SparkSession, folder: Path) -> dict[int, int]:
    rows = tg.inspect(folder / "checkpoint", "counts", spark=spark).collect()
    return {row.bucket: row.budget for row in rows}


@pytest.mark.slow
def test_two_queries_share_one_budget(spark: SparkSession, tmp_path: Path) -> None:
    pool = tg.Pool(BUDGET, tmp_path / "pool", {"busy": 1.0, "calm": 1.0})
    rows = {"busy": 60, "calm": 6}
    held, done = dict.fromkeys(rows, 0), dict.fromkeys(rows, 0)
    for _ in range(3):
        for name, count in rows.items():
            source(tmp_path / name, 3, count)
            run_again(spark, tmp_path / name, budget=pool.member(name))
            # After each micro-batch of one query, with the rows that the other holds at that time.
            other = held["calm" if name == "busy" else "busy"]
            batches, done[name] = range(done[name], batches_of(tmp_path / name)), batches_of(tmp_path / name)
            for states in saved(spark, tmp_path / name, batches).values():
                held[name] = sum(state.operator.rows for state in states)
                assert held[name] <= sum(state.settings.limit for state in states)
                assert held[name] + other <= BUDGET
    busy, calm = (sum(limits(spark, tmp_path / name).values()) for name in rows)
    assert busy + calm <= BUDGET
    assert busy > 1.5 * calm
    models = {
        name: {(row.bucket, row.model): row.value for row in frame.where("side is null").collect()}
        for name in rows
        for frame in [tg.inspect(tmp_path / name / "checkpoint", "model", spark=spark)]
    }
    epochs = [value for model in models.values() for (_, kind), value in model.items() if kind == "epoch"]
    assert min(epochs) >= 1
    assert sum(value for (_, kind), value in models["busy"].items() if kind == "limit") == busy


def test_a_skewed_bucket_gets_more_and_a_restart_continues(spark: SparkSession, tmp_path: Path) -> None:
    pool = tg.Pool(40, tmp_path / "pool", ["only"])
    source(tmp_path, 8, 60, skew=2.0)
    run_again(spark, tmp_path, budget=pool.member("only"))
    before = limits(spark, tmp_path)
    assert sum(before.values()) <= 40
    assert max(before.values()) > 2 * min(before.values())
    source(tmp_path, 1, 60, skew=2.0)
    run_again(spark, tmp_path, budget=tg.Pool(40, tmp_path / "pool", ["only"]).member("only"))
    after = limits(spark, tmp_path)
    assert sum(after.values()) <= 40
    assert max(before, key=before.__getitem__) == max(after, key=after.__getitem__)
    assert max(after.values()) > 2 * min(after.values())
    source(tmp_path, 1, 60, skew=2.0)
    with pytest.raises(Exception, match=r"was created with total=40, this one has 50") as caught:
        run_again(spark, tmp_path, budget=tg.Pool(50, tmp_path / "pool", ["only"]).member("only"))
    assert "another path" in str(caught.value)


def test_learned_ages_and_keys_are_inspected(spark: SparkSession, tmp_path: Path) -> None:
    source(tmp_path, 3, 60, skew=1.0)
    run_again(spark, tmp_path, budget=60, policy="prob", buckets=1)
    rows = tg.inspect(tmp_path / "checkpoint", "model", spark=spark).collect()
    assert {row.model for row in rows} == {"rate", "share"}
    assert all(abs(row.value - 60) < 10 for row in rows if row.model == "rate")
    total, *keys = [row for row in rows if row.model == "share" and row.side == "left"]
    assert (total.key, total.value) == (None, 1.0)
    assert 100 < total.sample <= 180
    assert keys[0].key == 0
    assert [row.value for row in keys] == sorted((row.value for row in keys), reverse=True)
    assert sum(row.value for row in keys) == pytest.approx(1.0)
    assert sum(row.sample for row in keys) == pytest.approx(total.sample)
    source(tmp_path, 2, 60, skew=1.0)
    run_again(spark, tmp_path, budget=60, policy="age", buckets=1)
    rows = tg.inspect(tmp_path / "checkpoint", "model", spark=spark).collect()
    assert {row.model for row in rows} == {"rate", "age"}
    ages = [row for row in rows if row.model == "age" and row.side == "left"]
    assert ages[0].age_from == 0
    assert ages[-1].age_to == pytest.approx(2.0, rel=1e-3)
    assert all(one.age_to == two.age_from for one, two in pairwise(ages))
    assert all(row.value > 0 for row in ages)
    assert max(row.sample for row in ages) > 10


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"policy": "fifo"}, "Fifo() does not: use prob, life or age"),
        ({"split": (10, 10)}, "split=(10, 10) fixes what a pool would change"),
        ({"window": ("2 seconds", None)}, "needs a window with both ends"),
        ({"buckets": 11}, "'only' has 20 rows of the pool, too few for 11 buckets; give it at least 22"),
    ],
    ids=str,
)
def test_joins_that_cannot_be_in_a_pool_are_refused(
    spark: SparkSession, tmp_path: Path, settings: dict[str, Any], message: str
) -> None:
    source(tmp_path, 1, 2)
    pool = tg.Pool(20, tmp_path / "pool", ["only"])
    with pytest.raises(InputError) as caught:
        joined(spark, tmp_path, budget=pool.member("only"), **settings)
    assert message in str(caught.value)


def test_a_batch_join_is_refused(spark: SparkSession, tmp_path: Path) -> None:
    source(tmp_path, 1, 2)
    sides = [spark.read.parquet(str(tmp_path / side)) for side in SIDES]
    with pytest.raises(
        InputError, match=r"this is a batch join; give it a budget of its own, such as rows=20"
    ):
        tg.join(
            *sides,
            on="k",
            time="t",
            window=("2 seconds", "2 seconds"),
            policy="prob",
            budget=tg.Pool(20, tmp_path / "pool", ["only"]).member("only"),
        )
