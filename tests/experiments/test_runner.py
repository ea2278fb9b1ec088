"""Cells run independently of each other, and a finished cell does not run again."""

from __future__ import annotations

import io
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from rich.console import Console
from rich.progress import Progress

from tidegate.experiments.cells import CellResult, CellRunner
from tidegate.experiments.experiment import Cell, Experiment, Grid
from tidegate.experiments.figure_text import FigureText
from tidegate.experiments.runner import LocalExecutor, ensure_writable, progress_bar, run_cells
from tidegate.experiments.summary import summarize
from tidegate.experiments.table_layout import TableLayout
from tidegate.types import InputError

RAN: list[tuple[str, int]] = []


def measure(*, policy: str, seed: int) -> dict[str, float]:
    RAN.append((policy, seed))
    if policy == "broken" and seed == 1:
        raise ValueError("no luck")
    return {"results": 10.0 * len(policy) + seed}


EXPERIMENT = Experiment(
    FigureText("made/up", "lengths", "longer is more"),
    Grid({"policy": ("age", "broken")}, runs=3),
    measure,
    TableLayout(("policy",), ("results",)),
)
RUNNER = CellRunner.for_experiments([EXPERIMENT], None)


@pytest.fixture(autouse=True)
def forget() -> None:
    RAN.clear()


def ran(
    out: Path, executor: LocalExecutor | None = None, runner: CellRunner = RUNNER
) -> dict[Cell, CellResult]:
    with Progress(disable=True) as progress:
        return run_cells(runner, EXPERIMENT.cells(), out, executor or LocalExecutor(), progress)


def test_a_failed_cell_is_reported_with_its_settings_and_affects_no_other(tmp_path: Path) -> None:
    found = ran(tmp_path)
    made = summarize(EXPERIMENT, EXPERIMENT.cells(), found)
    assert made.rows == [("age", "31 ± 2.48"), ("broken", "61 ± 12.7")]
    [failed] = made.failed
    assert failed.cell.description == f"{EXPERIMENT.measure_name}: policy broken, seed 1"
    assert failed.error == "ValueError: no luck"
    assert made.results.runs("results", policy="broken").tolist() == [60, 62]


def test_failed_cells_run_again_and_finished_ones_do_not(tmp_path: Path) -> None:
    ran(tmp_path)
    assert len(RAN) == 6
    RAN.clear()
    found = ran(tmp_path)
    assert RAN == [("broken", 1)]
    assert len(found) == 6


def test_a_stopped_run_continues_where_it_stopped(tmp_path: Path) -> None:
    class Stopped(LocalExecutor):
        def execute(self, runner: CellRunner, cells: Sequence[Cell], folder: Path) -> None:
            if len(RAN) >= 2:
                raise KeyboardInterrupt
            super().execute(runner, cells, folder)

    with pytest.raises(KeyboardInterrupt):
        ran(tmp_path, Stopped())
    before = list(RAN)
    RAN.clear()
    ran(tmp_path)
    assert sorted(before + RAN) == sorted((policy, seed) for policy in ("age", "broken") for seed in range(3))


def test_first_runs_come_first_and_two_experiments_share_cells(tmp_path: Path) -> None:
    other = replace(EXPERIMENT, text=EXPERIMENT.text._replace(name="made/too"))
    runner = CellRunner.for_experiments([EXPERIMENT, other], None)
    assert other.cells() == EXPERIMENT.cells()
    backwards = sorted(EXPERIMENT.cells(), reverse=True)
    with Progress(disable=True) as progress:
        found = run_cells(runner, backwards, tmp_path, LocalExecutor(), progress)
    assert [seed for _, seed in RAN] == [0, 0, 1, 1, 2, 2]
    first, second = (summarize(one, one.cells(), found) for one in (EXPERIMENT, other))
    assert second.rows == first.rows
    assert second.experiment.name == "made/too"


def test_results_of_other_code_are_not_reused(tmp_path: Path) -> None:
    ran(tmp_path, runner=replace(RUNNER, digests={EXPERIMENT.measure_name: "another"}))
    RAN.clear()
    ran(tmp_path)
    assert len(RAN) == 6


def test_the_cell_that_killed_a_worker_is_found(tmp_path: Path) -> None:
    class Fragile(LocalExecutor):
        cores = 3

        def execute(self, runner: CellRunner, cells: Sequence[Cell], folder: Path) -> None:
            if any(cell.seed == 2 and "age" in cell.settings for cell in cells):
                raise OSError("worker exited\nwith a long story")
            super().execute(runner, cells, folder)

    found = ran(tmp_path, Fragile())
    failed = {one.cell.description: one.error for one in found.values() if one.error}
    assert failed == {
        f"{EXPERIMENT.measure_name}: policy age, seed 2": "OSError: worker exited",
        f"{EXPERIMENT.measure_name}: policy broken, seed 1": "ValueError: no luck",
    }


def test_a_cell_must_return_numbers_and_strings(tmp_path: Path) -> None:
    odd = replace(RUNNER, measures={EXPERIMENT.measure_name: lambda **_: {"results": object()}})
    assert all(
        "return numbers and strings only" in str(one.error) for one in ran(tmp_path, runner=odd).values()
    )


def test_the_time_left_counts_only_cells_of_this_run() -> None:
    now = [0.0]
    console = Console(file=io.StringIO(), width=120, force_terminal=True)
    with progress_bar(console) as progress:
        progress.get_time = lambda: now[0]
        task = progress.add_task("cells", total=100, completed=50, before=50)
        assert "left" not in drawn(progress)
        now[0] = 60.0
        progress.advance(task, 10)
        assert "0:04:00 left" in drawn(progress)


def drawn(progress: Progress) -> str:
    paper = io.StringIO()
    Console(file=paper, width=120).print(progress.get_renderable())
    return paper.getvalue()


def test_a_folder_that_cannot_be_written_is_reported_first(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match=r"cannot write to .*file .*; set --out"):
        ensure_writable(tmp_path / "file")
    assert not RAN


def test_two_measures_with_one_name_are_refused() -> None:
    both = [replace(EXPERIMENT, measure=lambda run=run, **_: {"results": run}) for run in range(2)]
    with pytest.raises(InputError, match="two measures are called"):
        CellRunner.for_experiments(both, None)
