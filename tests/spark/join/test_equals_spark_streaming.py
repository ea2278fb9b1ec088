"""With a sufficient budget, a streaming join has the same rows as Spark's own, for the same watermarks."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from pyspark.sql import functions as F  # noqa: N812 - its usual name

import tidegate as tg
from tests.spark import streams
from tests.spark.streams import HOWS, SENTINEL, Case, conf
from tidegate.types import SIDES

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

FASTER = "org.apache.spark.sql.execution.streaming.state.HDFSBackedStateStoreProvider"
pytestmark = pytest.mark.spark


def sides(spark: SparkSession, folder: Path, case: Case) -> tuple[DataFrame, DataFrame]:
    delay = f"{case.delay} milliseconds"
    left, right = (
        streams.read(spark, folder / side, time, delay) for side, time in zip(SIDES, "tu", strict=True)
    )
    return left, right


def own(left: DataFrame, right: DataFrame, case: Case) -> DataFrame:
    """Spark's own join, with the columns that ours gives."""
    ahead, behind = case.window
    right = right.withColumnsRenamed({"k": "k2", "s": "s2"})
    ends = (f"t - interval {behind} milliseconds", f"t + interval {ahead} milliseconds")
    earliest, latest = (
        end.replace("+ interval -", "- interval ").replace("- interval -", "+ interval ") for end in ends
    )
    window = f"u >= {earliest} and u <= {latest}"
    condition = " and ".join([*(f"{name} = {name}2" for name in case.on), window])
    # Spark has no left anti join of streams.
    joined = left.join(right, F.expr(condition), "left" if case.how == "left_anti" else case.how)
    if case.how == "left_semi":
        return joined
    if case.how == "left_anti":
        return joined.where("u is null").select(*left.columns)
    keys = {name: F.coalesce(name, f"{name}2").alias(name) for name in case.on}
    columns = [keys.get(name, F.col(name)) for name in ("k", "s", "t", "a")]
    others = [F.col(f"{name}2").alias(f"{name}_right") for name in ("k", "s") if name not in case.on]
    return joined.select(*columns, *others, "u", "b")


def counted(rows: list[tuple[Any, ...]]) -> Counter[tuple[Any, ...]]:
    return Counter(row for row in rows if SENTINEL not in row)


def compare(spark: SparkSession, folder: Path, case: Case) -> dict[str, int]:
    """Run both, compare the results, and return the counts."""
    for side, batches in zip(SIDES, case.sides(), strict=True):
        streams.write(folder / side, [streams.table(side, rows) for rows in batches])
    with conf(spark, spark__sql__streaming__stateStore__providerClass=FASTER):
        theirs = streams.Running.start(own(*sides(spark, folder, case), case), folder / "own")
    ahead, behind = (f"{span} ms" for span in case.window)
    joined = tg.join(
        *sides(spark, folder, case), on=list(case.on), time=("t", "u"), window=(ahead, behind), how=case.how
    )
    flagged = case.how not in ("inner", "left_semi")
    if flagged:
        assert joined.columns[-1] == "uncertain"
    results = streams.run(joined, folder / "checkpoint")
    if flagged:
        assert not any(row[-1] for row in results)
        results = [row[:-1] for row in results]
    got, wanted = counted(results), counted(theirs.rows())
    assert not wanted - got
    surplus = got - wanted
    if case.how == "left_semi" and surplus:
        # A row past its window on arrival that meets its partner in the same micro-batch: Spark's own inner join
        # has the pair, its semi join omits the row.
        inner = replace(case, how="inner")
        pairs = streams.run(own(*sides(spark, folder, inner), inner), folder / "inner")
        surplus -= Counter(dict.fromkeys((row[:4] for row in pairs), len(pairs)))
    assert not surplus
    counts = tg.inspect(folder / "checkpoint", "counts", spark=spark).collect()
    names = ("rows_left", "rows_right", "late", "null_keys", "expired")
    return {name: sum(row[name] for row in counts) for name in names} | {"results": got.total()}


@pytest.mark.parametrize(
    "case",
    [
        Case(8, "inner"),
        Case(4, "left", on=("k", "s")),
        Case(12, "right", on=("s",)),
        # Spark's streaming full join lets null keys match each other; ours never does.
        Case(19, "full", nulls=False),
        Case(11, "left_semi", on=("s", "k")),
        Case(4, "left_anti", on=("k", "s"), rows=300),
    ],
    ids=lambda case: f"{case.how}-{'-'.join(case.on)}",
)
def test_a_seeded_stream(spark: SparkSession, tmp_path: Path, case: Case) -> None:
    counts = compare(spark, tmp_path, case)
    # The seeds are chosen so that each of these cases occurs.
    assert counts["results"] > 40
    assert counts["late"] > 0
    assert counts["expired"] > 0
    assert (counts["null_keys"] > 0) == case.nulls


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(100, 125))
def test_more_seeds(spark: SparkSession, tmp_path: Path, seed: int) -> None:
    how = HOWS[seed % len(HOWS)]
    on = [("k",), ("s",), ("k", "s")][seed % 3]
    compare(
        spark, tmp_path, Case(seed, how, on, nulls=how != "full", batches=3 + seed % 4, rows=10 + seed % 50)
    )


@pytest.mark.slow
def test_one_side_ends_long_before_the_other(spark: SparkSession, tmp_path: Path) -> None:
    """An idle side holds the watermark back, and so every row that waits."""
    left, right = Case(7, "full", nulls=False).sides()
    for side, batches in (("left", left[:2]), ("right", right[:-2])):
        streams.write(tmp_path / side, [streams.table(side, rows) for rows in batches])  # type: ignore[arg-type]
    case = Case(7, "full", nulls=False)
    wanted = counted(streams.run(own(*sides(spark, tmp_path, case), case), tmp_path / "own"))
    ahead, behind = (f"{span} ms" for span in case.window)
    joined = tg.join(
        *sides(spark, tmp_path, case), on="k", time=("t", "u"), window=(ahead, behind), how="full"
    )
    assert counted([row[:-1] for row in streams.run(joined, tmp_path / "checkpoint")]) == wanted
