"""A query that continues from a rescaled checkpoint gives the answer that it would have given."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from pyspark.errors import StreamingQueryException

import tidegate as tg
from tests.spark import buckets_by_hand as by_hand
from tests.spark import restarted, streams
from tests.spark.buckets_by_hand import Batch
from tests.spark.state.test_log import stream
from tidegate.spark.bucket.join.bucket import BucketJoin
from tidegate.spark.bucket.join.saved import SavedBucket
from tidegate.spark.inspect.rescale import rescale
from tidegate.spark.inspect.rescaling import rescaled
from tidegate.spark.packing.buckets import bucket_of
from tidegate.spark.query.evolution import migrate
from tidegate.spark.state.log import StateLog
from tidegate.spark.state.values import DictValueStore
from tidegate.types import SIDES, InputError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from tidegate.spark.bucket.join.plan import BucketPlan, How


def plan(buckets: int, how: How, budget: int | None = None) -> BucketPlan:
    layout = {"buckets": buckets, "how": how}
    return by_hand.plan((120, 60), budget, "prob", how=how, layout=layout)


def step(buckets: dict[int, BucketJoin], batches: Iterable[tuple[int, Batch]]) -> list[Counter[str]]:
    """Give micro-batches to all buckets; returns the results of each."""
    found = []
    for number, batch in batches:
        results: Counter[str] = Counter()
        for place, bucket in buckets.items():
            bucket.clock.advance(number, 50 * number - 60)
            tables = {}
            for side, rows in batch.items():
                own = [r for r in rows if bucket_of(np.array([r.key]), len(buckets))[0] == place]
                if own:
                    tables[side] = by_hand.table(own)
            for result in bucket.step(tables, 50 * number - 60):
                results.update(map(str, result.to_pylist()))
        found.append(results)
    return found


def saved_and_read(merged: Any, chosen: BucketPlan) -> BucketJoin:  # noqa: ANN401 - a bucket
    values = DictValueStore()
    StateLog(values, local=False).write(merged.arrays(), dict(merged.payload().items()), "4")
    return BucketJoin.load(chosen, migrate(SavedBucket.read(StateLog(values, local=False)), chosen))


@pytest.mark.parametrize("how", ["inner", "full"])
@pytest.mark.parametrize(("before", "after"), [(2, 4), (4, 2), (3, 2), (1, 3), (4, 1), (6, 4)])
def test_buckets_give_the_same_results_in_another_number(before: int, after: int, how: How) -> None:
    batches = list(enumerate(stream(3, 9, keys=40)))
    buckets = {place: BucketJoin(plan(before, how)) for place in range(before)}
    step(buckets, batches[:5])
    merged = rescaled({place: by_hand.saved(bucket) for place, bucket in buckets.items()}, after)
    again = {place: saved_and_read(of, plan(after, how)) for place, of in merged.items()}
    assert sum(len(b.operator.buffers["left"]) for b in again.values()) > 40
    for total in ("late", "rows_left"):
        parts = [sum(getattr(b.intake.counts, total) for b in of.values()) for of in (buckets, again)]
        assert parts[0] == parts[1]
    for name in ("results", "expired"):
        parts = [sum(getattr(b.operator.tally, name) for b in of.values()) for of in (buckets, again)]
        assert parts[0] == parts[1]
    assert step(again, batches[5:]) == step(buckets, batches[5:])


def test_evicted_rows_stay_known_where_their_keys_are() -> None:
    """What could have matched an evicted row is uncertain before and after; nothing else becomes certain."""
    batches = list(enumerate(stream(5, 9, keys=40)))
    buckets = {place: BucketJoin(plan(2, "left", 12)) for place in range(2)}
    step(buckets, batches[:5])
    merged = rescaled({place: by_hand.saved(bucket) for place, bucket in buckets.items()}, 4)
    again = {place: saved_and_read(of, plan(4, "left", 12)) for place, of in merged.items()}
    for place, bucket in again.items():
        of_keys, former = bucket.evicted_partners, buckets[place % 2].evicted_partners
        for side in SIDES:
            assert (of_keys.until[side] == former.until[side]).all()
            rows = bucket.operator.buffers[side].rows
            assert (of_keys.possible(rows) == former.possible(rows)).all()


def query(spark: SparkSession, folder: Path, **options: Any) -> DataFrame:  # noqa: ANN401 - as join's
    return restarted.query(spark, folder, "fifo", budget=None, how="full", **options)


@pytest.fixture(scope="module")
def folder(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A query that has stopped, with more to read."""
    folder: Path = tmp_path_factory.mktemp("rescale")
    restarted.sources(folder, 0, 3)
    streams.run_to_files(query(spark, folder, buckets=2), folder / "checkpoint", folder / "before")
    restarted.sources(folder, 3, 5)
    return folder


@pytest.fixture(scope="module")
def expected(spark: SparkSession, folder: Path) -> Counter[str]:
    undisturbed = query(spark, folder, buckets=2)
    streams.run_to_files(undisturbed, folder / "undisturbed", folder / "undisturbed_out")
    return streams.rows_of(spark, folder / "undisturbed_out")


@pytest.mark.spark
class TestCheckpoint:
    @pytest.mark.parametrize("buckets", [3, pytest.param(1, marks=pytest.mark.slow)])
    def test_the_answer_is_the_same(
        self, spark: SparkSession, folder: Path, expected: Counter[str], buckets: int
    ) -> None:
        new = folder / f"buckets_{buckets}"
        rescale(folder / "checkpoint", buckets, new, spark=spark)
        counts = tg.inspect(new, "counts", spark=spark).collect()
        before = tg.inspect(folder / "checkpoint", "counts", spark=spark).collect()
        assert len(counts) == buckets
        assert sum(row.buffered for row in counts) == sum(row.buffered for row in before) > 0
        with pytest.raises(InputError, match=f"written with buckets={buckets}, the query now has 2"):
            query(spark, folder, buckets=2, checkpoint=new)
        continued = query(spark, folder, buckets=buckets, checkpoint=new)
        streams.run_to_files(continued, new, folder / f"out_{buckets}")
        results = streams.rows_of(spark, folder / "before") + streams.rows_of(
            spark, folder / f"out_{buckets}"
        )
        assert results == expected

    def test_a_checkpoint_that_spark_has_repartitioned_goes_on(
        self, spark: SparkSession, folder: Path, expected: Counter[str]
    ) -> None:
        """Spark moves buckets to other partitions; a query without a given number of buckets keeps the saved one."""
        new = Path(shutil.copytree(folder / "checkpoint", folder / "repartitioned"))
        spark._streamingCheckpointManager.repartition(str(new), 3)
        with streams.conf(spark, spark__sql__shuffle__partitions="3"):
            with pytest.raises(
                StreamingQueryException, match=r"has 3 \(give buckets=2|3 buckets has no state.*give buckets="
            ):
                streams.run_to_files(query(spark, folder, buckets=None), new, folder / "unused")
            continued = query(spark, folder, buckets=None, checkpoint=new)
            streams.run_to_files(continued, new, folder / "repartitioned_out")
        after = streams.rows_of(spark, folder / "repartitioned_out")
        assert streams.rows_of(spark, folder / "before") + after == expected

    def test_what_cannot_be_rescaled(self, spark: SparkSession, folder: Path, tmp_path: Path) -> None:
        with pytest.raises(InputError, match="there is something at"):
            rescale(folder / "checkpoint", 3, tmp_path, spark=spark)
        with pytest.raises(InputError, match="buckets=0 is not a number of buckets"):
            rescale(folder / "checkpoint", 0, tmp_path / "new", spark=spark)
        with pytest.raises(InputError, match="has no 'other'; it has 'tidegate'"):
            rescale(folder / "checkpoint", 3, tmp_path / "new", name="other", spark=spark)
        with pytest.raises(InputError, match=r"there is no state|no state can be read"):
            rescale(tmp_path / "missing", 3, tmp_path / "new", spark=spark)
        assert not (tmp_path / "new").exists()

    @pytest.mark.slow
    def test_the_command(self, spark: SparkSession, folder: Path, tmp_path: Path) -> None:
        """In a process of its own: it stops its session."""
        code = "from tidegate.cli import run; run()"
        command = [sys.executable, "-c", code, "rescale", str(folder / "checkpoint"), "--buckets", "4"]
        new = tmp_path / "new"
        done = subprocess.run([*command, "--to", str(new)], check=True, capture_output=True, text=True)  # noqa: S603
        assert (
            done.stdout == f"written to {new}; start the query with this checkpointLocation and buckets=4\n"
        )
        assert tg.inspect(new, "counts", spark=spark).count() == 4
        failed = subprocess.run([*command, "--to", str(new)], check=False, capture_output=True, text=True)  # noqa: S603
        assert failed.returncode == 2
        assert "there is something at" in failed.stderr
