"""The demo, small: its queries run, keep their budget, and its numbers are those of the join."""

from __future__ import annotations

import io
from pathlib import Path

import pyarrow.dataset
import pytest
from pyspark.sql import SparkSession
from rich.console import Console

import tidegate as tg
from tidegate.spark.demo.queries import same_rows
from tidegate.spark.demo.result import (
    BatchRecord,
    DemoResult,
    QueryRecord,
    findings,
    megabytes,
    percent,
)
from tidegate.spark.demo.run import run_demo
from tidegate.spark.demo.stream import DemoScale, DemoStream
from tidegate.types import InputError

SMALL = DemoScale(files=4, clicks=800, minutes=2, accounts=300)


def record(name: str, results: list[int], *, bounded: bool = True, seconds: float = 1.0) -> QueryRecord:
    batches = [BatchRecord(1_000, seconds, count, 2_000_000) for count in results]
    return QueryRecord(name, name if bounded else None, batches, peak_rows=9 if bounded else None)


def demo_result(*bounded: QueryRecord, same: bool | None = True) -> DemoResult:
    return DemoResult(
        own=record("Spark's own join", [100, 100, 100], bounded=False),
        exact=record("Tidegate, no limit", [100, 100, 100], bounded=False, seconds=0.5),
        bounded=list(bounded),
        minutes=1,
        budget=10,
        needed=100,
        page=Path("index.html"),
        same_results=same,
        optimum=0.9,
    )


def test_recall_is_that_of_the_minutes_that_both_have_finished() -> None:
    result = demo_result(record("prob", [100, 50]))
    assert result.bounded[0].recall_by_minute(result.own) == [1.0, 0.75]
    assert result.recall(result.bounded[0]) == 0.75
    assert result.recall(QueryRecord("prob", "prob")) is None


def test_the_findings_name_the_best_policy_the_worst_and_the_optimum() -> None:
    lead, compared, held = findings(demo_result(record("fifo", [20, 10, 0]), record("prob", [80, 80, 80])))
    assert lead == (
        "With a tenth of the memory, Tidegate found 80 % of the results, where dropping the oldest rows finds 10 % "
        "and the best possible choice of rows 90 %."
    )
    assert (
        "the same 300 results as Spark's own join, 2.0 times as fast, with 2.0 MB of state instead of 2.0"
        in compared
    )
    assert held == "No bounded query buffered more than its 10 rows at any time."


def test_other_rows_are_called_an_error() -> None:
    _, compared, *_ = findings(demo_result(record("prob", [80, 80, 80]), same=False))
    assert "OTHER ROWS" in compared


def test_a_slower_join_is_not_called_fast() -> None:
    result = demo_result(record("prob", [80, 80, 80]))
    result.exact = record("Tidegate, no limit", [100, 100, 100], bounded=False, seconds=2.0)
    assert "at 0.50 of its speed" in findings(result)[1]


def test_without_a_micro_batch_there_are_no_findings() -> None:
    empty = DemoResult(QueryRecord("a"), QueryRecord("b"), [QueryRecord("c", "c")], 1, 1, 1, Path("p"))
    assert findings(empty) == [
        "No join with a tenth of the memory finished a micro-batch, so there is nothing to compare."
    ]


@pytest.mark.parametrize(
    ("share", "text"), [(1.0, "100 %"), (0.99999, "99.9 %"), (0.5, "50.0 %"), (0.0, "0.0 %")]
)
def test_only_everything_is_100_percent(share: float, text: str) -> None:
    assert percent(share) == text
    assert megabytes(1e8 * share + 1e6) in {"101", "51", "1.0"}


def test_the_stream_is_skewed_and_in_order() -> None:
    clicks, purchases = DemoStream(DemoScale(), 0).traces(12)
    shares = clicks.keys[0].value_counts().field("counts").to_numpy() / len(clicks)
    assert shares.max() > 50 / 200_000
    for trace in (clicks, purchases):
        assert (trace.time[1:] >= trace.time[:-1]).all()


def test_a_folder_with_other_files_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "thesis.tex").touch()
    with pytest.raises(InputError, match="contains other files"):
        run_demo(tmp_path, Console(file=io.StringIO()))
    assert (tmp_path / "thesis.tex").exists()


@pytest.mark.spark
@pytest.mark.slow
def test_the_demo_keeps_its_budget_and_reports_its_results(spark: SparkSession, tmp_path: Path) -> None:
    screen = io.StringIO()
    result = run_demo(tmp_path / "demo", Console(file=screen, width=150), spark=spark, scale=SMALL)
    left, right = DemoStream(SMALL, seed=0).traces(SMALL.files)
    exact = tg.simulate(left, right, window=(SMALL.minutes, 0)).exact
    assert result.same_results
    assert result.own.results == result.exact.results == exact
    assert result.budget == SMALL.clicks * SMALL.minutes // 10
    for bounded in result.bounded:
        assert 0 < bounded.results < exact
        assert bounded.peak_rows is not None
        assert 0 < bounded.peak_rows <= result.budget
        written = pyarrow.dataset.dataset(tmp_path / "demo" / "results" / bounded.name, format="parquet")
        assert written.count_rows() == bounded.results
        assert bounded.name in screen.getvalue()
        assert not same_rows(
            tmp_path / "demo" / "results" / "own", tmp_path / "demo" / "results" / bounded.name
        )
    assert result.optimum is not None
    assert max(result.recall(bounded) or 0.0 for bounded in result.bounded) <= result.optimum + 0.02
    page = result.page.read_text(encoding="utf-8")
    assert page.count("<svg") == 4  # two charts, each for wide and for narrow screens
    assert "<script" not in page
    assert (tmp_path / "demo" / "picture.svg").read_text().startswith("<svg")
