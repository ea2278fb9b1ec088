"""Cells run on Spark as they do here, and its tasks' failures are theirs alone."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from rich.progress import Progress

from tidegate.experiments import EXPERIMENTS
from tidegate.experiments.experiment import Cell
from tidegate.experiments.outcomes import Plan
from tidegate.experiments.run import Here, OnSpark, on_spark, run
from tidegate.types import InputError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark


def test_spark_finds_what_this_process_finds(spark: SparkSession, tmp_path: Path) -> None:
    del spark  # the one that is active
    chosen = [EXPERIMENTS[name] for name in ("ijoin/table2", "stochastic-streams/figure6")]
    plan = Plan.of(chosen, None)
    cells = [cell for one in chosen for cell in one.cells()]
    cells.append(Cell(chosen[0].runs_as, '{"join": "no such"}', 0))
    with Progress(disable=True) as progress, on_spark() as where:
        assert where.cores == 2
        there = run(plan, cells, tmp_path / "there", where, progress)
        here = run(plan, cells, tmp_path / "here", Here(), progress)
    assert {cell: (one.found, one.error) for cell, one in there.items()} == {
        cell: (one.found, one.error) for cell, one in here.items()
    }
    assert [one.error for one in there.values()].count("KeyError: 'no such'") == 1


def test_a_session_that_runs_is_not_moved_to_another_master(spark: SparkSession) -> None:
    with (
        pytest.raises(InputError, match=r"a Spark session runs already; .* 'local\[1\]'"),
        on_spark("local[1]"),
    ):
        pass
    assert spark.range(1).count() == 1


def test_a_spark_that_is_gone_ends_the_run_and_blames_no_cell(tmp_path: Path) -> None:
    class Gone:
        def range(self, *_: int) -> None:
            raise ConnectionRefusedError("nobody there")

    one = EXPERIMENTS["ijoin/table2"]
    plan, cells = Plan.of([one], None), one.cells()
    with (
        Progress(disable=True) as progress,
        pytest.raises(InputError, match=r"Spark has stopped \(nobody there\); start the same command again"),
    ):
        run(plan, cells, tmp_path, OnSpark(Gone(), 2), progress)
    with Progress(disable=True) as progress:
        found = run(plan, cells, tmp_path, Here(), progress)
    assert [one.error for one in found.values()] == [None] * len(cells)
