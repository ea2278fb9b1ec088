"""Cells run one by one, whatever becomes of others; what is finished is not run again."""

from __future__ import annotations

import io
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from rich.console import Console
from rich.progress import Progress

from tidegate.experiments import outcomes
from tidegate.experiments.experiment import Cell, Experiment, Grid
from tidegate.experiments.outcomes import Plan
from tidegate.experiments.reproduced import reproduced
from tidegate.experiments.run import Here, bar, run, writable
from tidegate.experiments.shown import Shown
from tidegate.types import InputError

RAN: list[tuple[str, int]] = []


def measure(*, policy: str, seed: int) -> dict[str, float]:
    RAN.append((policy, seed))
    if policy == "broken" and seed == 1:
        raise ValueError("no luck")
    return {"results": 10.0 * len(policy) + seed}


EXPERIMENT = Experiment(
    "made/up",
    "lengths",
    "longer is more",
    Grid({"policy": ("age", "broken")}, runs=3),
    measure,
    Shown(("policy",), ("results",)),
)
PLAN = Plan.of([EXPERIMENT], None)


@pytest.fixture(autouse=True)
def forget() -> None:
    RAN.clear()


def ran(out: Path, where: Here | None = None, plan: Plan = PLAN) -> dict[Cell, outcomes.Outcome]:
    with Progress(disable=True) as progress:
        return run(plan, EXPERIMENT.cells(), out, where or Here(), progress)


def test_a_cell_that_fails_is_told_with_its_settings_and_loses_no_other(tmp_path: Path) -> None:
    found = ran(tmp_path)
    made = reproduced(EXPERIMENT, EXPERIMENT.cells(), found)
    assert made.rows == [("age", "31 ± 2.48"), ("broken", "61 ± 12.7")]
    [failed] = made.failed
    assert failed.cell.told == f"{EXPERIMENT.runs_as}: policy broken, seed 1"
    assert failed.error == "ValueError: no luck"
    assert made.results.runs("results", policy="broken").tolist() == [60, 62]


def test_what_is_finished_is_not_run_again_but_what_failed_is(tmp_path: Path) -> None:
    ran(tmp_path)
    assert len(RAN) == 6
    RAN.clear()
    found = ran(tmp_path)
    assert RAN == [("broken", 1)]
    assert len(found) == 6


def test_a_run_that_is_stopped_goes_on_where_it_was(tmp_path: Path) -> None:
    class Stopped(Here):
        def work(self, plan: Plan, cells: Sequence[Cell], folder: Path) -> None:
            if len(RAN) >= 2:
                raise KeyboardInterrupt
            super().work(plan, cells, folder)

    with pytest.raises(KeyboardInterrupt):
        ran(tmp_path, Stopped())
    before = list(RAN)
    RAN.clear()
    ran(tmp_path)
    assert sorted(before + RAN) == sorted((policy, seed) for policy in ("age", "broken") for seed in range(3))


def test_first_runs_come_first_and_cells_serve_two_experiments(tmp_path: Path) -> None:
    other = replace(EXPERIMENT, name="made/too")
    plan = Plan.of([EXPERIMENT, other], None)
    assert other.cells() == EXPERIMENT.cells()
    backwards = sorted(EXPERIMENT.cells(), reverse=True)
    with Progress(disable=True) as progress:
        found = run(plan, backwards, tmp_path, Here(), progress)
    assert [seed for _, seed in RAN] == [0, 0, 1, 1, 2, 2]
    told, too = (reproduced(one, one.cells(), found) for one in (EXPERIMENT, other))
    assert too.rows == told.rows
    assert too.experiment.name == "made/too"


def test_other_code_s_results_are_not_taken(tmp_path: Path) -> None:
    ran(tmp_path, plan=replace(PLAN, codes={EXPERIMENT.runs_as: "another"}))
    RAN.clear()
    ran(tmp_path)
    assert len(RAN) == 6


def test_a_worker_that_dies_is_traced_to_its_cell(tmp_path: Path) -> None:
    class Fragile(Here):
        cores = 3

        def work(self, plan: Plan, cells: Sequence[Cell], folder: Path) -> None:
            if any(cell.seed == 2 and "age" in cell.settings for cell in cells):
                raise OSError("worker exited\nwith a long story")
            super().work(plan, cells, folder)

    found = ran(tmp_path, Fragile())
    failed = {one.cell.told: one.error for one in found.values() if one.error}
    assert failed == {
        f"{EXPERIMENT.runs_as}: policy age, seed 2": "OSError: worker exited",
        f"{EXPERIMENT.runs_as}: policy broken, seed 1": "ValueError: no luck",
    }


def test_what_a_cell_tells_must_be_plain(tmp_path: Path) -> None:
    odd = replace(PLAN, measures={EXPERIMENT.runs_as: lambda **_: {"results": object()}})
    assert all("let it tell numbers and words" in str(one.error) for one in ran(tmp_path, plan=odd).values())


def test_the_time_left_is_that_of_what_is_left() -> None:
    now = [0.0]
    console = Console(file=io.StringIO(), width=120, force_terminal=True)
    with bar(console) as progress:
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


def test_a_folder_that_cannot_be_written_is_told_at_once(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match=r"file cannot be written .* by --out"):
        writable(tmp_path / "file")
    assert not RAN


def test_two_measures_of_one_name_are_refused() -> None:
    both = [replace(EXPERIMENT, measure=lambda run=run, **_: {"results": run}) for run in range(2)]
    with pytest.raises(InputError, match="two measures are called"):
        Plan.of(both, None)
