"""The summary of an experiment: a table, charts, and the paper's claims with our verdicts."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from importlib.util import find_spec
from typing import TYPE_CHECKING, NamedTuple

from tidegate.experiments.cells import CellResult, collect
from tidegate.experiments.claims import JudgedClaim, judge_all
from tidegate.experiments.experiment import Cell, Experiment
from tidegate.experiments.results import Results

if TYPE_CHECKING:
    from matplotlib.figure import Figure


class ExperimentSummary(NamedTuple):
    """What `tidegate reproduce` prints and what pages show.

    `charts` are pairs of a panel's label, which may be empty, and a figure. `seconds` is the processor time of all
    cells. `reductions` describes how the grid was made smaller, and is empty for a full run.
    """

    experiment: Experiment
    results: Results
    header: tuple[str, ...]
    rows: list[tuple[str, ...]]
    claims: tuple[JudgedClaim, ...]
    charts: list[tuple[str, Figure]]
    failed: list[CellResult]
    seconds: float
    runs: int
    reductions: str

    @property
    def figure(self) -> str:
        """The paper's name for it: "Figure 8"."""
        return figure_name(self.experiment)


def figure_name(experiment: Experiment) -> str:
    """The paper's name for an experiment, or ours.

    Examples
    --------
    >>> from tidegate.experiments import EXPERIMENTS
    >>> figure_name(EXPERIMENTS["ijoin/figure2"]), figure_name(EXPERIMENTS["ijoin/frontier"])
    ('Figure 2', 'Frontier')
    """
    name = experiment.name.partition("/")[2]
    numbered = re.fullmatch(r"([a-z]+)(\d+)(?:-(\w+))?", name)
    if numbered is None:
        return name.capitalize()
    word, number, suffix = numbered.groups()
    return f"{word.capitalize()} {number}" + (f" ({suffix})" if suffix else "")


def can_draw() -> bool:
    """Whether Matplotlib is installed. Without it there are no charts."""
    return find_spec("matplotlib") is not None


def summarize(
    experiment: Experiment, cells: Sequence[Cell], cell_results: Mapping[Cell, CellResult]
) -> ExperimentSummary:
    """Make the table and the charts of an experiment, and judge its claims."""
    finished = [cell_results[cell] for cell in cells if cell in cell_results]
    results = collect(finished)
    header, rows = experiment.table.table(results)
    try:
        claims = judge_all(experiment.claims, results) if len(results) else ()
    except (LookupError, ValueError) as error:  # failed cells can leave too few runs
        claims = (JudgedClaim("the claims cannot be judged", "open", str(error)),)
    title = f"{figure_name(experiment)}: {experiment.text.title}"
    plots = experiment.plots if can_draw() else ()
    return ExperimentSummary(
        experiment,
        results,
        header,
        rows,
        claims,
        [chart for plot in plots for chart in plot.draw(title, results)],
        [one for one in finished if one.error is not None],
        sum(one.seconds for one in finished),
        len({cell.seed for cell in cells}),
        _reductions(experiment, cells),
    )


def _reductions(experiment: Experiment, cells: Sequence[Cell]) -> str:
    """How the cells are fewer than those of the full grid.

    Examples
    --------
    >>> from tidegate.experiments import EXPERIMENTS
    >>> table6 = EXPERIMENTS["ijoin/table6"]
    >>> _reductions(table6, table6.cells(quick=True))
    'seconds 50 instead of 100; 3 runs instead of 10'
    """
    settings = [json.loads(cell.settings) for cell in cells]
    parts = []
    for axis, full in experiment.grid.axes.items():
        here = list(dict.fromkeys(one[axis] for one in settings))
        if set(here) != set(full):
            used, all_ = (
                ", ".join(f"{v:g}" if isinstance(v, float) else str(v) for v in some) for some in (here, full)
            )
            parts.append(f"{axis} {used} instead of {all_}")
    runs = len({cell.seed for cell in cells})
    if runs != experiment.grid.runs:
        parts.append(f"{runs} run{'s' if runs > 1 else ''} instead of {experiment.grid.runs}")
    return "; ".join(parts)
