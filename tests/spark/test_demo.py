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
from tidegate.spark.demo.run import Feed, Scale, run_demo
from tidegate.types import InputError

SMALL = Scale(files=4, auctions=200, minutes=2)


def test_what_arrives_is_counted_exactly() -> None:
    feed = Feed(SMALL, seed=1)
    auctions, bids = feed.rows("auctions", 3), feed.rows("bids", 3)
    left = {"key": np.arange(auctions), "time": feed.opened[:auctions]}
    right = {"key": feed.auction[:bids], "time": feed.placed[:bids]}
    report = tg.simulate(left, right, window=(SMALL.window, timedelta(0)))
    assert feed.exact(auctions, bids) == report.exact
    assert feed.files(bids) == 3
    assert feed.files(bids - 1) == 2


def test_a_folder_of_something_else_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "thesis.tex").touch()
    with pytest.raises(InputError, match="holds something else"):
        run_demo(tmp_path, Console(file=io.StringIO()))
    assert (tmp_path / "thesis.tex").exists()


@pytest.mark.spark
@pytest.mark.slow
def test_the_demo_keeps_its_budget_and_tells_what_it_found(spark: SparkSession, tmp_path: Path) -> None:
    screen = io.StringIO()
    outcome = run_demo(
        tmp_path / "demo", Console(file=screen), spark=spark, scale=SMALL, policies=["fifo", "until_expiry"]
    )
    feed = Feed(SMALL, seed=0)
    for track in outcome.tracks:
        assert track.exact == feed.exact(feed.rows("auctions", 4), feed.rows("bids", 4))
        assert 0 < track.results < track.exact
        assert track.peak_rows is not None
        assert track.peak_rows <= feed.budget
        written = pyarrow.dataset.dataset(tmp_path / "demo" / "results" / track.policy, format="parquet")
        assert written.count_rows() == track.results
        assert track.policy in screen.getvalue()
    assert "Plotly" in outcome.page.read_text(encoding="utf-8")
