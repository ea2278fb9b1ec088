"""On Spark heeb learns the trend or walk of a numeric key in every bucket; of a hashed key it learns shares."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pytest

import tidegate as tg
from tests.spark import buckets_by_hand as by_hand
from tests.spark import streams
from tests.spark.buckets_by_hand import Arrival, Batch, Hand
from tidegate.engine.policy_retention import PolicyRetention
from tidegate.policies import Heeb
from tidegate.types import SIDES, other_side

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

BATCHES, ROWS, BUCKETS = 4, 500, 2


def source(folder: Path, kind: pa.DataType) -> None:
    """Keys that rise by one every ten milliseconds, on the right seven seconds later, and scatter."""
    for lag, side in zip((0, 700), SIDES, strict=True):
        rng = np.random.default_rng(lag)
        rows = np.arange(BATCHES * ROWS)
        keys = pa.array(np.round(rows - lag + rng.normal(0, 20, len(rows))).astype(np.int64)).cast(kind)
        times = pa.array([streams.at(10 * i) for i in rows.tolist()], pa.timestamp("us", "UTC"))
        table = pa.table({"k": keys, "t": times})
        streams.write(folder / side, [table.slice(i * ROWS, ROWS) for i in range(BATCHES)])


def wandering(folder: Path) -> None:
    """Keys that walk, and on the right follow after half a second."""
    rng = np.random.default_rng(5)
    rows = BATCHES * ROWS
    walk = np.cumsum(np.round(rng.normal(0, 3, rows + 50)).astype(np.int64))
    for lag, side in zip((0, 50), SIDES, strict=True):
        keys = walk[50 - lag : 50 - lag + rows]
        times = pa.array([streams.at(10 * i) for i in range(rows)], pa.timestamp("us", "UTC"))
        table = pa.table({"k": keys, "t": times})
        streams.write(folder / side, [table.slice(i * ROWS, ROWS) for i in range(BATCHES)])


def run(spark: SparkSession, folder: Path, checkpoint: Path, policy: str) -> int:
    sides = [streams.read(spark, folder / side, "t", "0 seconds") for side in SIDES]
    window = ("30 seconds", "30 seconds")
    joined = tg.join(*sides, on="k", time="t", window=window, budget=80, policy=policy, buckets=BUCKETS)
    return len(streams.run(joined, checkpoint))


def learned_parameters(spark: SparkSession, checkpoint: Path) -> dict[tuple[int, str, str], float]:
    learned = tg.inspect(checkpoint, "model", spark=spark).collect()
    return {
        (row.bucket, row.side, row.model): row.value for row in learned if row.model not in ("rate", "share")
    }


def test_a_restarted_bucket_continues_and_its_state_has_the_model() -> None:
    rng = np.random.default_rng(1)
    keys = {
        side: np.round(np.arange(600) + rng.normal(0, 9, 600)).astype(np.int64).tolist() for side in SIDES
    }
    plan = by_hand.plan((10**7, 10**7), budget=30, policy="heeb")
    through, again = Hand(plan), Hand(plan)
    for begin in range(0, 600, 60):
        batch: Batch = {
            side: [Arrival(keys[side][i], 10_000 * i, f"{side} {i}") for i in range(begin, begin + 60)]
            for side in SIDES
        }
        for hand in (through, again):
            hand.step(batch, None)
        again.restart()
        assert by_hand.content(again.bucket) == by_hand.content(through.bucket)
    assert again.results == through.results
    saved = by_hand.saved(again.bucket)
    restored = saved.restore_policy(Heeb)
    assert saved.settings.numeric
    assert restored is not None
    learned = {(some.side, some.model): some.value for some in restored.retention.learned()}
    for side in SIDES:
        assert learned[side, "LinearTrend.speed"] == pytest.approx(1, rel=0.05)
        assert learned[side, "rate"] == pytest.approx(1e-4, rel=0.05)
        rows = saved.operator.buffers[side].rows
        running, clock = through.bucket.operator.retention, saved.progress.clocks.now.of(other_side(side))
        assert isinstance(running, PolicyRetention)
        assert np.array_equal(
            restored.retention.policy.scores(rows, clock), running.policy.scores(rows, clock)
        )


@pytest.mark.spark
def test_a_numeric_key_that_drifts(spark: SparkSession, tmp_path: Path) -> None:
    source(tmp_path, pa.int64())
    found = {name: run(spark, tmp_path, tmp_path / name, name) for name in ("heeb", "prob")}
    assert found["heeb"] > 100 > found["prob"]
    learned = learned_parameters(spark, tmp_path / "heeb")
    for bucket in range(BUCKETS):
        for side in SIDES:
            # In rows of this bucket: between two of them, each other bucket gets a row.
            assert learned[bucket, side, "LinearTrend.speed"] == pytest.approx(BUCKETS, rel=0.25)
            assert learned[bucket, side, "LinearTrend.noise.sigma"] == pytest.approx(20, rel=0.25)
    scores = [row.score for row in tg.inspect(tmp_path / "heeb", spark=spark).collect()]
    assert len(scores) == 80
    assert max(scores) > 0


@pytest.mark.spark
def test_a_numeric_key_that_walks(spark: SparkSession, tmp_path: Path) -> None:
    wandering(tmp_path)
    assert run(spark, tmp_path, tmp_path / "heeb", "heeb") > 0
    learned = learned_parameters(spark, tmp_path / "heeb")
    for bucket in range(BUCKETS):
        for side in SIDES:
            # From one row of the bucket to the next, the walk makes as many steps as there are buckets.
            assert learned[bucket, side, "RandomWalk.step.sigma"] == pytest.approx(3 * BUCKETS**0.5, rel=0.1)
            assert learned[bucket, side, "RandomWalk.drift"] == pytest.approx(0, abs=0.3)


@pytest.mark.spark
def test_a_key_that_is_a_text_has_shares(spark: SparkSession, tmp_path: Path) -> None:
    source(tmp_path, pa.string())
    run(spark, tmp_path, tmp_path / "heeb", "heeb")
    assert learned_parameters(spark, tmp_path / "heeb") == {}
    shares = tg.inspect(tmp_path / "heeb", "model", spark=spark).where("model = 'share'").count()
    assert shares > 0
