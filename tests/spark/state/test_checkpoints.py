"""Which state `inspect` finds in a checkpoint, and the error for a damaged one."""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import tidegate as tg
from tests.spark import streams
from tests.spark.state.test_inspection import source
from tidegate.types import SIDES, InputError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = pytest.mark.spark


@pytest.fixture(scope="module")
def rows(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("rows")
    source(folder, [(key, 10 * key) for key in range(8)], [(key, 900 + 10 * key) for key in range(8)])
    return folder


def joined(spark: SparkSession, rows: Path, **settings: Any) -> DataFrame:  # noqa: ANN401 - as join's
    sides = [streams.read(spark, rows / side, "t", "9 seconds") for side in SIDES]
    defaults: dict[str, Any] = {"on": "k", "time": "t", "window": ("9 s", "9 s"), "buckets": 2}
    return tg.join(*sides, **defaults | settings)


def run(frame: DataFrame, checkpoint: Path, mode: str = "append") -> Path:
    writer = frame.writeStream.format("noop").outputMode(mode).option("checkpointLocation", str(checkpoint))
    streams.run_to_end(writer.trigger(availableNow=True).start)
    return checkpoint


def results(spark: SparkSession, checkpoint: Path, **options: Any) -> int:  # noqa: ANN401 - as inspect's
    counts = tg.inspect(checkpoint, "counts", spark=spark, **options).collect()
    assert len(counts) == 2
    return sum(row.results for row in counts)


@pytest.mark.parametrize("behind", ["dedupe", "aggregate"])
def test_a_stateful_operator_behind_the_join(
    spark: SparkSession, rows: Path, tmp_path: Path, behind: str
) -> None:
    frame = joined(spark, rows)
    if behind == "dedupe":
        checkpoint = run(frame.dropDuplicates(["k"]), tmp_path / "checkpoint")
    else:
        checkpoint = run(frame.groupBy("k").count(), tmp_path / "checkpoint", "complete")
    assert results(spark, checkpoint) == 32
    assert tg.inspect(checkpoint, spark=spark).count() == 32


@pytest.fixture(scope="module")
def two(spark: SparkSession, rows: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A query of two joins; one of them only matches rows that arrive together."""
    wide = joined(spark, rows, name="wide")
    narrow = joined(spark, rows, name="narrow", window=("100 ms", "100 ms"))
    return run(wide.select("k").union(narrow.select("k")), tmp_path_factory.mktemp("two") / "checkpoint")


def test_one_of_several_joins_is_picked_by_its_name(spark: SparkSession, two: Path) -> None:
    assert results(spark, two, name="wide") == 32
    assert results(spark, two, name="narrow") == 16
    assert {results(spark, two, name=number) for number in (0, 1)} == {16, 32}


def test_several_joins_without_a_name_are_listed(spark: SparkSession, two: Path) -> None:
    with pytest.raises(
        InputError, match=r"has several joins: 'narrow' \(operator \d\), 'wide' \(operator \d\)"
    ):
        tg.inspect(two, spark=spark)
    with pytest.raises(InputError, match=r"has no 'bids'; it has 'narrow' .*'wide' "):
        tg.inspect(two, spark=spark, name="bids")
    with pytest.raises(InputError, match=r"has no 7; it has 'narrow' "):
        tg.inspect(two, spark=spark, name=7)
    with pytest.raises(InputError, match=r"has several joins: 'narrow' .*give name=, as in tidegate.sample"):
        tg.reservoir(two, spark=spark)


def test_joins_of_one_name_are_distinguished_by_number(
    spark: SparkSession, rows: Path, tmp_path: Path
) -> None:
    both = joined(spark, rows).union(joined(spark, rows, window=("100 ms", "100 ms")))
    checkpoint = run(both, tmp_path / "checkpoint")
    with pytest.raises(InputError, match=r"'tidegate' \(operator 0\), 'tidegate' \(operator 1\)"):
        tg.inspect(checkpoint, spark=spark, name="tidegate")
    assert {results(spark, checkpoint, name=number) for number in (0, 1)} == {16, 32}


def test_a_name_may_be_given_later_and_then_stays(spark: SparkSession, rows: Path, tmp_path: Path) -> None:
    folder = Path(shutil.copytree(rows, tmp_path / "rows"))
    checkpoint = run(joined(spark, folder), tmp_path / "checkpoint")
    assert results(spark, checkpoint, name="tidegate") == 32
    source(folder, [(3, 950)])
    run(joined(spark, folder, name="bids"), checkpoint)
    assert results(spark, checkpoint, name="bids") == 37
    source(folder, [(3, 960)])
    with pytest.raises(Exception, match=r"'bids'.*'views'"):
        run(joined(spark, folder, name="views"), checkpoint)


@pytest.mark.parametrize("name", ["views", "tidegate"])
def test_a_changed_name_is_refused_before_the_query_starts(
    spark: SparkSession, rows: Path, two: Path, name: str
) -> None:
    with pytest.raises(
        InputError, match=rf"has no state of '{name}'; it has 'narrow' .*, 'wide' .*; restore"
    ):
        joined(spark, rows, name=name, checkpoint=two)
    joined(spark, rows, name="wide", checkpoint=two)


@pytest.mark.parametrize("name", ["", 5, None])
def test_what_is_no_name(spark: SparkSession, rows: Path, name: object) -> None:
    with pytest.raises(InputError, match=r"name=.* is not a name; give a string such as 'bids'"):
        joined(spark, rows, name=name)


def test_a_query_without_a_join(spark: SparkSession, rows: Path, tmp_path: Path) -> None:
    left = streams.read(spark, rows / "left", "t", "9 seconds")
    checkpoint = run(left.dropDuplicates(["k"]), tmp_path / "checkpoint")
    with pytest.raises(InputError, match=r"has no tidegate operator \(it has dedupe\); give the checkpoint"):
        tg.inspect(checkpoint, spark=spark)


def files(checkpoint: Path, pattern: str) -> list[Path]:
    found = [path for path in (checkpoint / "state").rglob(pattern) if path.is_file()]
    assert found
    return found


def truncated(checkpoint: Path) -> None:
    for path in files(checkpoint, "*.changelog"):
        path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


def overwritten(checkpoint: Path) -> None:
    for path in files(checkpoint, "*.changelog"):
        path.write_bytes(bytes(path.stat().st_size))


def deleted(checkpoint: Path) -> None:
    for path in files(checkpoint, "*.changelog") + files(checkpoint, "*.zip"):
        path.unlink()


def without_metadata(checkpoint: Path) -> None:
    for path in files(checkpoint, "*"):
        if "_metadata" in path.parts:
            path.write_bytes(b"no")


def without_offsets(checkpoint: Path) -> None:
    shutil.rmtree(checkpoint / "offsets")


@pytest.fixture(scope="module")
def whole(spark: SparkSession, rows: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return run(joined(spark, rows), tmp_path_factory.mktemp("whole") / "checkpoint")


@pytest.mark.parametrize(
    "damage",
    [
        truncated,
        *(
            pytest.param(damage, marks=pytest.mark.slow)
            for damage in (overwritten, deleted, without_metadata, without_offsets)
        ),
    ],
)
def test_a_damaged_checkpoint_is_explained_in_a_few_lines(
    spark: SparkSession, rows: Path, whole: Path, tmp_path: Path, damage: Callable[[Path], None]
) -> None:
    checkpoint = Path(shutil.copytree(whole, tmp_path / "checkpoint"))
    for hidden in checkpoint.rglob(".*.crc"):
        hidden.unlink()
    damage(checkpoint)
    with pytest.raises(InputError) as caught:
        tg.inspect(checkpoint, spark=spark)
    message = str(caught.value)
    assert str(checkpoint) in message
    assert re.search(r"restore|give the checkpointLocation", message)
    assert len(message.splitlines()) <= 4
    assert len(message) < 900
    assert "\tat " not in message
    # Java's stack trace is in the error's context, and not printed.
    assert caught.value.__cause__ is None
    assert caught.value.__suppress_context__
    with pytest.raises(InputError) as refused:
        joined(spark, rows, checkpoint=checkpoint)
    assert re.search(r"restore|give the checkpointLocation|start the query with a new", str(refused.value))
