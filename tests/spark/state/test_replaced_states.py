"""A state that is older or newer than the rest of its checkpoint is refused, and a rollback of everything is not."""

from __future__ import annotations

import re
import shutil
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow.parquet as pq
import pytest
from pyspark.errors import StreamingQueryException

import tidegate as tg
from tests.spark import restarted, streams
from tidegate.spark.session.spark_errors import explain_failure
from tidegate.spark.state.clock import Clock
from tidegate.spark.state.history import read_history
from tidegate.spark.state.values import DamagedStateError
from tidegate.types import SIDES, InputError

pytestmark = pytest.mark.spark

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

FILES = 5


class TestClock:
    def test_a_gap_without_arrivals_changes_what_is_late_by_the_watermark(self) -> None:
        """The watermark moved in none of the skipped micro-batches, so the previous one had that of this one."""
        clock = Clock()
        clock.advance(4, 50)
        assert clock.late_until == 50
        clock.advance(5, 80)
        assert clock.late_until == 50
        clock.advance(9, 120)
        assert (clock.batch, clock.watermark, clock.late_until) == (9, 120, 120)

    def test_a_repeated_micro_batch_keeps_what_is_late(self) -> None:
        clock = Clock(batch=4, watermark=50, late_until=20)
        clock.advance(4, 50)
        assert clock.late_until == 20
        clock.advance(None, 70)
        assert (clock.batch, clock.late_until) == (5, 50)

    def test_arrivals_are_the_last_micro_batch_with_rows(self) -> None:
        clock = Clock()
        clock.advance(3, 0)
        clock.advance(4, 10, arrivals=False)
        assert (clock.batch, clock.arrivals) == (4, 3)
        assert Clock.from_dict(clock.to_dict()) == clock
        assert Clock.from_dict({"batch": 4, "watermark": 10, "late": 5}) == Clock(4, 10, 5, -1)

    @pytest.mark.parametrize(("batch", "known"), [(5, 4), (5, -1), (None, 4), (9, 2)])
    def test_what_continues(self, batch: int | None, known: int) -> None:
        Clock(batch=4).check(batch, known, 2)

    def test_what_is_refused(self) -> None:
        for batch in (4, 3):
            with pytest.raises(
                DamagedStateError, match=rf"of micro-batch 4 where micro-batch {batch} begins"
            ):
                Clock(batch=4).check(batch, -1, 2)
        with pytest.raises(
            DamagedStateError, match=r"of micro-batch 4 where that of micro-batch 6 should be.*5"
        ):
            Clock(batch=4).check(9, 6, 2)
        with pytest.raises(
            DamagedStateError,
            match=r"one of the query's 2 buckets has no state, and micro-batch 6 is complete: give buckets=",
        ):
            Clock().check(9, 6, 2)


def query(spark: SparkSession, folder: Path, what: str = "join", **options: object) -> DataFrame:
    if what == "join":
        return restarted.query(spark, folder, "fifo", budget=None, how="inner", **options)
    sides = [streams.read(spark, folder / side, "t", "3 seconds") for side in SIDES]
    both = {"a": (sides[0], "k"), "b": (sides[1], "k")}
    return tg.alert(both, on="k", time="t", within="5 seconds", when="a + b > 3", buckets=2)


def run(spark: SparkSession, folder: Path, checkpoint: Path, what: str = "join") -> None:
    streams.run_to_files(query(spark, folder, what), checkpoint, checkpoint.parent / f"{checkpoint.name}_out")


def stopped(spark: SparkSession, folder: Path, what: str = "join") -> Path:
    """A query that ran and stopped, with more to read; its state of version 1 is in a snapshot."""
    restarted.sources(folder, 0, FILES)
    checkpoint = folder / "checkpoint"
    run(spark, folder, checkpoint, what)
    restarted.sources(folder, FILES, FILES + 1)
    for hidden in checkpoint.rglob(".*.crc"):
        hidden.unlink()
    return checkpoint


@pytest.fixture(scope="module")
def base(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder: Path = tmp_path_factory.mktemp("base")
    stopped(spark, folder)
    return folder


@pytest.fixture
def checkpoint(base: Path, tmp_path: Path) -> Path:
    """A copy of the checkpoint, which knows the source's files by their paths."""
    return Path(shutil.copytree(base / "checkpoint", tmp_path / "checkpoint"))


def partitions(checkpoint: Path) -> list[Path]:
    return sorted(checkpoint.glob("state/0/[01]"))


def versions(partition: Path) -> list[int]:
    return sorted(int(file.stem) for file in partition.glob("*.changelog"))


def older_snapshot(partition: Path) -> None:
    shutil.copy(partition / "1.zip", partition / f"{versions(partition)[-1]}.zip")


def older_changelogs(partition: Path) -> None:
    for newer in versions(partition)[3:]:
        shutil.copy(partition / "3.changelog", partition / f"{newer}.changelog")


@pytest.mark.parametrize(
    ("replace", "where"),
    [
        (older_snapshot, "one bucket"),
        (older_changelogs, "all buckets"),
        pytest.param(older_snapshot, "all buckets", marks=pytest.mark.slow),
        pytest.param(older_changelogs, "one bucket", marks=pytest.mark.slow),
    ],
)
def test_an_older_state_is_refused(
    spark: SparkSession, base: Path, checkpoint: Path, replace: Callable[[Path], None], where: str
) -> None:
    whole = where == "all buckets"
    for partition in partitions(checkpoint)[: 2 if whole else 1]:
        replace(partition)
    with pytest.raises(
        InputError, match="an older state replaced it" if whole else "is not of one micro-batch"
    ):
        query(spark, base, checkpoint=checkpoint)
    with pytest.raises(StreamingQueryException) as caught:
        run(spark, base, checkpoint)
    text = explain_failure(caught.value, checkpoint)
    assert re.match(
        r"there is a state of micro-batch \d where that of micro-batch \d should be: an older", text
    )
    assert len(text.splitlines()) <= 3
    if not whole:
        with pytest.raises(InputError, match="is not of one micro-batch"):
            tg.inspect(checkpoint, spark=spark)


def test_an_older_state_of_an_alarm_is_refused(spark: SparkSession, tmp_path: Path) -> None:
    checkpoint = stopped(spark, tmp_path, "alert")
    older_snapshot(partitions(checkpoint)[1])
    with pytest.raises(StreamingQueryException, match="an older state replaced it"):
        run(spark, tmp_path, checkpoint, "alert")


def test_a_newer_state_is_refused(spark: SparkSession, base: Path, checkpoint: Path) -> None:
    last = versions(partitions(checkpoint)[0])[-1]
    for number in range(2, last):
        for log in ("offsets", "commits"):
            (checkpoint / log / f"{number}").unlink()
    for partition in partitions(checkpoint):
        shutil.copy(partition / f"{FILES}.changelog", partition / "2.changelog")
        for number in range(3, last + 1):
            (partition / f"{number}.changelog").unlink()
    with pytest.raises(StreamingQueryException, match=r"where micro-batch 2 begins|is damaged"):
        run(spark, base, checkpoint)


def test_a_rollback_of_state_and_logs_together_goes_on(
    spark: SparkSession, base: Path, checkpoint: Path
) -> None:
    begin = 3
    for log in ("offsets", "commits"):
        for file in (checkpoint / log).iterdir():
            if int(file.name) >= begin:
                file.unlink()
    for partition in partitions(checkpoint):
        for file in [*partition.glob("*.changelog"), *partition.glob("*.zip")]:
            if int(file.stem) > begin:
                file.unlink()
    query(spark, base, checkpoint=checkpoint)
    run(spark, base, checkpoint)
    undisturbed = checkpoint.parent / "undisturbed"
    for end in ("", "_out"):
        shutil.copytree(base / f"checkpoint{end}", f"{undisturbed}{end}")
    run(spark, base, undisturbed)
    assert new_results(spark, checkpoint, begin)
    assert new_results(spark, checkpoint, begin) == new_results(spark, undisturbed, begin)


def new_results(spark: SparkSession, checkpoint: Path, begin: int) -> Counter[str]:
    folders = sorted((checkpoint.parent / f"{checkpoint.name}_out").glob("batch=*"))
    chosen = [folder for folder in folders if int(folder.name.removeprefix("batch=")) >= begin]
    return Counter(map(str, spark.read.parquet(*map(str, chosen)).collect()))


def test_a_query_with_another_source_goes_on_when_only_that_one_had_rows(
    spark: SparkSession, tmp_path: Path
) -> None:
    """The watermark moves in micro-batches in which the join takes no part."""

    def run_both() -> None:
        other = streams.read(spark, tmp_path / "other", "t", "3 seconds").select("k")
        frame = query(spark, tmp_path).select("k").union(other)
        streams.run_to_files(frame, tmp_path / "checkpoint", tmp_path / "out")

    restarted.sources(tmp_path, 0, 1)
    restarted.sources(tmp_path / "more", 0, 4)
    streams.write(tmp_path / "other", [pq.read_table(tmp_path / "more/left/0000.parquet")])
    run_both()
    for number in (1, 2, 3):
        streams.write(tmp_path / "other", [pq.read_table(tmp_path / f"more/left/000{number}.parquet")])
        run_both()
    restarted.sources(tmp_path, 1, 2)
    run_both()
    query(spark, tmp_path, checkpoint=tmp_path / "checkpoint")


class TestHistory:
    def test_the_last_micro_batch_with_arrivals(self, spark: SparkSession, base: Path) -> None:
        history = read_history(base / "checkpoint", spark)
        assert history is not None
        # A last micro-batch without rows follows, in which rows expire.
        assert (history.last, history.last_arrivals, history.sources) == (FILES, FILES - 1, 2)

    def test_a_query_that_has_not_run(self, spark: SparkSession, tmp_path: Path) -> None:
        assert read_history(tmp_path / "missing", spark) is None

    @pytest.mark.parametrize("content", [b"", b"garbage \xff", b"v1\n{no json", b"v1\n[]", b"other\n{}"])
    @pytest.mark.parametrize("log", ["offsets", "commits"])
    def test_garbage_is_refused(
        self, spark: SparkSession, base: Path, checkpoint: Path, log: str, content: bytes
    ) -> None:
        (checkpoint / log / f"{FILES}").write_bytes(content)
        with pytest.raises(
            InputError, match=rf"is damaged: {log}/{FILES} is not what Spark wrote there; restore"
        ):
            query(spark, base, checkpoint=checkpoint)

    def test_a_plan_that_was_not_completed_may_be_deleted(
        self, spark: SparkSession, base: Path, checkpoint: Path
    ) -> None:
        plan = checkpoint / "offsets" / f"{FILES + 1}"
        plan.write_bytes(b"garbage")
        with pytest.raises(
            InputError, match=rf"delete offsets/{FILES + 1} and offsets/.{FILES + 1}.crc, since"
        ):
            query(spark, base, checkpoint=checkpoint)
        plan.unlink()
        run(spark, base, checkpoint)
