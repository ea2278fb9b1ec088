"""A query that is run again, killed or changed continues with the same results, or reports why it cannot."""

from __future__ import annotations

import os
import random
import shutil
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import functions as F  # noqa: N812 - its usual name

import tidegate as tg
from tests.spark import restarted, streams
from tests.spark.streams import conf, rows_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

ROOT = Path(__file__).parents[3]


@pytest.fixture(scope="module")
def before(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A query that ran over some files, and more files after it."""
    folder = tmp_path_factory.mktemp("restart")
    restarted.sources(folder, 0, 3)
    with conf(spark, spark__sql__streaming__noDataMicroBatches__enabled="false"):
        streams.run_to_files(restarted.query(spark, folder, "random"), folder / "checkpoint", folder / "out")
    restarted.sources(folder, 3, 5)
    return folder


@pytest.fixture
def checkpoint(before: Path, tmp_path: Path) -> Path:
    """A copy of its checkpoint, to continue from."""
    return Path(shutil.copytree(before / "checkpoint", tmp_path / "checkpoint"))


def numbers(folder: Path) -> list[int]:
    return sorted(int(file.name) for file in folder.iterdir() if file.name.isdigit())


def test_a_micro_batch_that_is_run_again_gives_the_same_rows(
    spark: SparkSession, before: Path, checkpoint: Path, tmp_path: Path
) -> None:
    last = numbers(checkpoint / "commits")[-1]
    (checkpoint / "commits" / str(last)).unlink()
    (checkpoint / "commits" / f".{last}.crc").unlink(missing_ok=True)
    streams.run_to_files(restarted.query(spark, before, "random"), checkpoint, tmp_path / "out")
    name = f"batch={last:04d}"
    first, second = (
        spark.read.parquet(str(folder / "out" / name)).collect() for folder in (before, tmp_path)
    )
    assert first
    assert Counter(map(str, first)) == Counter(map(str, second))


def test_another_budget_and_policy(
    spark: SparkSession, before: Path, checkpoint: Path, tmp_path: Path
) -> None:
    was = tg.inspect(checkpoint, "counts", spark=spark).collect()
    assert sum(row.buffered for row in was) == restarted.BUDGET
    streams.run_to_files(
        restarted.query(spark, before, "until_expiry", budget=6), checkpoint, tmp_path / "out"
    )
    now = tg.inspect(checkpoint, "counts", spark=spark).collect()
    assert sum(row.buffered for row in now) <= 6
    assert {row.policy for row in now} == {"until_expiry"}
    assert sum(row.budget for row in now) == 6
    for row in now:
        accounted = row.evicted + row.expired + row.buffered + row.late + row.null_keys
        assert accounted == row.rows_left + row.rows_right
    assert sum(row.rows_left for row in now) == 60 * 5


def test_another_number_of_buckets_is_refused(
    spark: SparkSession, before: Path, checkpoint: Path, tmp_path: Path
) -> None:
    """By whichever task is first: that of a bucket with another layout, or that of a bucket without state."""
    joined = restarted.query(spark, before, "random", buckets=4)
    words = r"written with buckets=2, the query now has 4|one of the query's 4 buckets has no state.*buckets="
    with pytest.raises(PySparkException, match=words):
        streams.run_to_files(joined, checkpoint, tmp_path / "out")
    with pytest.raises(
        tg.InputError, match=r"buckets=2, the query now has 4 \(give buckets=2, or use tidegate resc"
    ):
        restarted.query(spark, before, "random", buckets=4, checkpoint=checkpoint)


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"how": "left"}, ["how='full'", "'left'"]),
        ({"schema": True}, ["left column 'left_text'", "is missing"]),
    ],
    ids=str,
)
def test_what_the_state_does_not_fit_is_refused(
    spark: SparkSession,
    before: Path,
    checkpoint: Path,
    tmp_path: Path,
    settings: dict[str, object],
    words: list[str],
) -> None:
    if "schema" in settings:
        left, right = (streams.read(spark, before / side, "t", "3 seconds") for side in ("left", "right"))
        joined = tg.join(
            left.withColumnRenamed("left_text", "left_text2"),
            right,
            on="k",
            time="t",
            window=("15 s", "15 s"),
            budget=40,
            policy="random",
            how="full",
            buckets=2,
        )
    else:
        joined = restarted.query(spark, before, "random", **settings)
    with pytest.raises(PySparkException) as caught:
        streams.run_to_files(joined, checkpoint, tmp_path / "out")
    message = str(caught.value)
    assert "the query cannot continue from the checkpoint of" in message
    assert "start with a new checkpointLocation" in message
    for word in words:
        assert word in message


def test_new_columns_and_a_wider_type(
    spark: SparkSession, before: Path, checkpoint: Path, tmp_path: Path
) -> None:
    """Columns are added and reordered; results of rows that were buffered have nulls there."""
    left, right = (streams.read(spark, before / side, "t", "3 seconds") for side in ("left", "right"))
    settings: dict[str, Any] = {
        "on": "k",
        "time": "t",
        "window": ("15 s", "15 s"),
        "budget": 40,
        "policy": "random",
    }
    settings |= {"how": "full", "buckets": 2, "checkpoint": checkpoint}
    wider = left.select(F.lit("new").cast("string").alias("added"), "left_text", "t", "k")
    # A literal is never null, and buffered rows have no value.
    with pytest.raises(tg.InputError, match=r"the left has a new column 'added' that is never null"):
        tg.join(wider, right, **settings)
    nullable = left.select(F.expr("if(k >= 0, 'new', null)").alias("added"), "left_text", "t", "k")
    streams.run_to_files(tg.join(nullable, right, **settings), checkpoint, tmp_path / "out")
    rows = spark.read.parquet(str(tmp_path / "out")).where("left_text is not null")
    assert {row.added for row in rows.select("added").distinct().collect()} == {None, "new"}
    plain = tmp_path / "plain"
    shutil.copytree(before / "checkpoint", plain)
    streams.run_to_files(restarted.query(spark, before, "random"), plain, tmp_path / "same")
    same = spark.read.parquet(str(tmp_path / "same")).where("left_text is not null")
    columns = ["left_text", "right_text", "uncertain"]
    assert Counter(rows.select(columns).collect()) == Counter(same.select(columns).collect())


@pytest.mark.parametrize(
    "what",
    ["join", pytest.param("sample", marks=pytest.mark.slow), pytest.param("alert", marks=pytest.mark.slow)],
)
def test_another_number_of_shuffle_partitions(spark: SparkSession, tmp_path: Path, what: str) -> None:
    """Spark continues with the partitions of the checkpoint, and the buckets follow."""

    def rows(name: str, partitions: str) -> Counter[str]:
        with conf(spark, spark__sql__shuffle__partitions=partitions):
            sides = [streams.read(spark, tmp_path / side, "t", "3 seconds") for side in ("left", "right")]
            if what == "alert":
                both = {"a": (sides[0], "k"), "b": (sides[1], "k")}
                frame = tg.alert(both, on="k", time="t", within="5 seconds", when="a + b > 3", budget=4000)
            elif what == "sample":
                frame = tg.sample(*sides, on="k", time="t", window=("15 s", "15 s"), budget=2000, p=0.5)
            else:
                frame = restarted.query(spark, tmp_path, "random", buckets=None, budget=400)
            streams.run_to_files(frame, tmp_path / f"{name}_checkpoint", tmp_path / f"{name}_out")
        return rows_of(spark, tmp_path / f"{name}_out")

    restarted.sources(tmp_path, 0, 2)
    rows("changed", "3")
    restarted.sources(tmp_path, 2, 4)
    changed = rows("changed", "5")
    assert changed
    assert changed == rows("same", "3")


def start(folder: Path, policy: str) -> subprocess.Popen[bytes]:
    """The query in its own process group, with its Java process."""
    return subprocess.Popen(  # noqa: S603 - our own program
        [sys.executable, "-m", "tests.spark.restarted", str(folder), policy],
        cwd=ROOT,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )


def kill_after(process: subprocess.Popen[bytes], folder: Path, batch: int, seconds: float) -> bool:
    """Kill it some time after it began a micro-batch; returns whether it was still running."""
    offsets = folder / "checkpoint" / "offsets" / str(batch)
    while not offsets.exists() and process.poll() is None:
        time.sleep(0.01)
    time.sleep(seconds)
    working = process.poll() is None
    if working:
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    return working


def undisturbed(spark: SparkSession, folder: Path, policy: str) -> Counter[str]:
    streams.run_to_files(restarted.query(spark, folder, policy), folder / "calm", folder / "calm_out")
    return rows_of(spark, folder / "calm_out")


@pytest.mark.slow
def test_killed_once(spark: SparkSession, tmp_path: Path) -> None:
    restarted.sources(tmp_path, 0, 4)
    wanted = undisturbed(spark, tmp_path, "random")
    assert kill_after(start(tmp_path, "random"), tmp_path, 1, 0.3)
    streams.run_to_files(
        restarted.query(spark, tmp_path, "random"), tmp_path / "checkpoint", tmp_path / "out"
    )
    assert rows_of(spark, tmp_path / "out") == wanted


@pytest.mark.slow
@pytest.mark.parametrize("policy", ["random", "fifo"])
@pytest.mark.parametrize("seed", [1, 2])
def test_killed_again_and_again(spark: SparkSession, tmp_path: Path, policy: str, seed: int) -> None:
    rng = random.Random(seed)  # noqa: S311 - not for secrets
    restarted.sources(tmp_path, 0, 7)
    wanted = undisturbed(spark, tmp_path, policy)
    batch, kills = 0, 0
    while batch < 6:
        kills += kill_after(start(tmp_path, policy), tmp_path, batch, rng.uniform(0, 1.5))
        batch = max([batch, *numbers(tmp_path / "checkpoint" / "offsets")]) + rng.randint(0, 1)
    assert kills >= 2
    streams.run_to_files(restarted.query(spark, tmp_path, policy), tmp_path / "checkpoint", tmp_path / "out")
    if planned(tmp_path / "checkpoint") != planned(tmp_path / "calm"):
        pytest.skip("killed between two logs, Spark's file source put two files into one micro-batch")
    assert rows_of(spark, tmp_path / "out") == wanted


def planned(checkpoint: Path) -> list[list[str]]:
    """The offsets of each micro-batch, without the time at which it was planned."""
    logs = [checkpoint / "offsets" / str(number) for number in numbers(checkpoint / "offsets")]
    return [log.read_text().splitlines()[2:] for log in logs]
