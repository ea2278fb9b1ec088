"""Cells give the same results on Spark as in this process, and a failed task fails its own cells only."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from rich.progress import Progress

from tidegate.experiments import EXPERIMENTS
from tidegate.experiments.cells import CellRunner
from tidegate.experiments.experiment import Cell
from tidegate.experiments.runner import LocalExecutor, SparkExecutor, on_spark, run_cells
from tidegate.types import InputError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark


def test_spark_gives_the_same_results_as_one_process(spark: SparkSession, tmp_path: Path) -> None:
    del spark  # the one that is active
    chosen = [EXPERIMENTS[name] for name in ("ijoin/table2", "stochastic-streams/figure6")]
    runner = CellRunner.for_experiments(chosen, None)
    cells = [cell for one in chosen for cell in one.cells()]
    cells.append(Cell(chosen[0].measure_name, '{"join": "no such"}', 0))
    with Progress(disable=True) as progress, on_spark() as where:
        assert where.cores == 2
        there = run_cells(runner, cells, tmp_path / "there", where, progress)
        here = run_cells(runner, cells, tmp_path / "here", LocalExecutor(), progress)
    assert {cell: (one.values, one.error) for cell, one in there.items()} == {
        cell: (one.values, one.error) for cell, one in here.items()
    }
    assert [one.error for one in there.values()].count("KeyError: 'no such'") == 1


def test_an_active_session_is_not_moved_to_another_master(spark: SparkSession) -> None:
    with (
        pytest.raises(InputError, match=r"a Spark session is already active; .* 'local\[1\]'"),
        on_spark("local[1]"),
    ):
        pass
    assert spark.range(1).count() == 1


def test_a_stopped_spark_ends_the_run_and_fails_no_cell(tmp_path: Path) -> None:
    class Gone:
        def range(self, *_: int) -> None:
            raise ConnectionRefusedError("connection refused")

    one = EXPERIMENTS["ijoin/table2"]
    runner, cells = CellRunner.for_experiments([one], None), one.cells()
    with (
        Progress(disable=True) as progress,
        pytest.raises(
            InputError, match=r"Spark has stopped \(connection refused\); run the same command again"
        ),
    ):
        run_cells(runner, cells, tmp_path, SparkExecutor(Gone(), 2), progress)
    with Progress(disable=True) as progress:
        found = run_cells(runner, cells, tmp_path, LocalExecutor(), progress)
    assert [one.error for one in found.values()] == [None] * len(cells)
