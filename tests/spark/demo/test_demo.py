"""The demo, small: its queries run, keep their budget, and its numbers are those of the join."""

from __future__ import annotations

import io
from datetime import timedelta
from pathlib import Path

import numpy as np
import pyarrow.dataset
import pytest
from pyspark.sql import SparkSession
from rich.console import Console

import tidegate as tg
from tidegate.spark.demo.run import run_demo
from tidegate.spark.demo.stream import DemoScale, DemoStream
from tidegate.types import InputError

SMALL = DemoScale(files=4, auctions=200, minutes=2)


def test_exact_results_are_those_of_a_simulation() -> None:
    stream = DemoStream(SMALL, seed=1)
    auctions, bids = stream.rows("auctions", 3), stream.rows("bids", 3)
    left = {"key": np.arange(auctions), "time": stream.opened[:auctions]}
    right = {"key": stream.auction[:bids], "time": stream.placed[:bids]}
    report = tg.simulate(left, right, window=(SMALL.window, timedelta(0)))
    assert stream.exact(auctions, bids) == report.exact
    assert stream.files(bids) == 3
    assert stream.files(bids - 1) == 2


def test_a_folder_with_other_files_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "thesis.tex").touch()
    with pytest.raises(InputError, match="contains other files"):
        run_demo(tmp_path, Console(file=io.StringIO()))
    assert (tmp_path / "thesis.tex").exists()


@pytest.mark.spark
@pytest.mark.slow
def test_the_demo_keeps_its_budget_and_reports_its_results(spark: SparkSession, tmp_path: Path) -> None:
    screen = io.StringIO()
    result = run_demo(
        tmp_path / "demo", Console(file=screen), spark=spark, scale=SMALL, policies=["fifo", "until_expiry"]
    )
    stream = DemoStream(SMALL, seed=0)
    for record in result.records:
        assert record.exact == stream.exact(stream.rows("auctions", 4), stream.rows("bids", 4))
        assert 0 < record.results < record.exact
        assert record.peak_rows is not None
        assert record.peak_rows <= stream.budget
        written = pyarrow.dataset.dataset(tmp_path / "demo" / "results" / record.policy, format="parquet")
        assert written.count_rows() == record.results
        assert record.policy in screen.getvalue()
    page = result.page.read_text(encoding="utf-8")
    assert page.count("<svg") == 4  # two charts, each for wide and for narrow screens
    assert "<script" not in page
