"""The command `tidegate reproduce`: run experiments, print their tables and verdicts, and write pages."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib.metadata import version
from pathlib import Path

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from tidegate.experiments import PAPERS, find, runner
from tidegate.experiments.cells import CellResult, CellRunner
from tidegate.experiments.document import write_document
from tidegate.experiments.experiment import Cell, Experiment
from tidegate.experiments.pages import write_pages
from tidegate.experiments.summary import ExperimentSummary, can_draw, summarize
from tidegate.types import InputError


@dataclass(frozen=True)
class Request:
    """What to run and where results go; the fields are the options of the command."""

    names: Sequence[str] = ()
    paper: str | None = None
    quick: bool = False
    max_runs: int | None = None
    data: Path | None = None
    out: Path = Path("tidegate-reproduced")
    master: str | None = None
    conf: Mapping[str, str] = field(default_factory=dict)
    docs: Path | None = None
    finished: bool = False

    @property
    def size(self) -> str:
        """How large the run is, in words."""
        if self.quick:
            return "a quick run, with fewer rows and runs than in the papers"
        if self.max_runs is None:
            return "with the papers' rows and runs"
        return f"with the papers' rows and at most {self.max_runs} runs"


def reproduce(request: Request, console: Console) -> tuple[list[CellResult], int]:
    """Run experiments, print and write their summaries. Returns the failed cells, and the number of all cells."""
    chosen, skipped = _select(request)
    cells = {one.name: one.cells(quick=request.quick, max_runs=request.max_runs) for one in chosen}
    all_cells = list(dict.fromkeys(cell for listed in cells.values() for cell in listed))
    runner.ensure_writable(request.out)
    results, place = _run(request, CellRunner.for_experiments(chosen, request.data), all_cells, console)
    finished = {name: [cell for cell in listed if cell in results] for name, listed in cells.items()}
    summaries = [summarize(one, finished[one.name], results) for one in chosen if finished[one.name]]
    skipped += [one.name for one in chosen if not finished[one.name]]
    for one in summaries:
        _print_summary(one, console)
    hours = sum(one.seconds for one in results.values()) / 3600
    effort = f"{len(results):,} cells, {hours:.1f} hours of processor time"
    run = f"tidegate {version('tidegate')}, {request.size}, {place}; {effort}"
    console.print(f"pages: {write_pages(summaries, request.out, run)}", markup=False, soft_wrap=True)
    if not can_draw():
        console.print("no charts: they need matplotlib; run: pip install 'tidegate[pictures]'", markup=False)
    if skipped:
        console.print(f"not run: {', '.join(skipped)} (recorded streams need --data)", markup=False)
    if request.docs is not None:
        write_document(summaries, request.docs, run, skipped)
    return list(dict.fromkeys(failed for one in summaries for failed in one.failed)), len(all_cells)


def list_experiments(console: Console) -> None:
    """Print the experiments of all papers."""
    for name, paper in PAPERS.items():
        table = Table(
            title=f"{escape(paper.title)} ({escape(paper.authors)}): {name}",
            title_justify="left",
            title_style="bold",
            box=None,
            pad_edge=False,
            show_header=False,
        )
        for one in paper.experiments:
            needs = " [dim](needs --data)[/]" if one.needs_data else ""
            table.add_row(one.name, f"{escape(one.text.title)}{needs}")
        console.print(table)
        console.print()
    console.print("To run experiments, give names, --paper or --all. --quick uses fewer runs and rows.")


def _run(
    request: Request, cell_runner: CellRunner, cells: Sequence[Cell], console: Console
) -> tuple[dict[Cell, CellResult], str]:
    """The results of all cells, and where they ran."""
    if request.finished:
        return runner.finished_cells(cell_runner, cells, request.out), "only the finished cells"
    local = request.master == "none"
    executors = (
        contextlib.nullcontext(runner.LocalExecutor())
        if local
        else runner.on_spark(request.master, request.conf)
    )
    with executors as executor, runner.progress_bar(console) as progress:
        place = "in one process" if local else f"on Spark, {executor.cores} cores"
        return runner.run_cells(cell_runner, cells, request.out, executor, progress), place


def _select(request: Request) -> tuple[list[Experiment], list[str]]:
    """The experiments that can run, and the names of those that need recorded streams."""
    experiments = find(request.names, request.paper)
    if request.data is not None and not request.data.is_dir():
        raise InputError(f"--data {request.data} is not a folder; set it to the folder of recorded streams")
    without_data = [one.name for one in experiments if one.needs_data and request.data is None]
    if without_data and request.names:
        raise InputError(
            f"{', '.join(without_data)} needs recorded streams; set --data to the folder that holds them"
        )
    return [one for one in experiments if one.name not in without_data], without_data


def _print_summary(summary: ExperimentSummary, console: Console) -> None:
    table = Table(
        *summary.header,
        title=f"{summary.figure}: {escape(summary.experiment.text.title)} ({summary.experiment.name})",
        title_justify="left",
    )
    for row in summary.rows:
        table.add_row(*row, end_section="total" in row)
    console.print(table)
    for claim in summary.claims:
        console.print(f"[bold]{claim.verdict}:[/] {escape(claim.text)} [dim]({escape(claim.numbers)})[/]")


def parse_settings(texts: Iterable[str]) -> dict[str, str]:
    """Settings of Spark, each written as name=value."""
    settings = {}
    for text in texts:
        name, equals, value = text.partition("=")
        if not equals:
            raise InputError(f"--conf {text!r} must be written as name=value")
        settings[name] = value
    return settings
