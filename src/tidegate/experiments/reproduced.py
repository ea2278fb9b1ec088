"""An experiment that was run: a table, pictures, and what the paper says of it, judged."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from tidegate.experiments.claims import Claim
from tidegate.experiments.experiment import Cell, Experiment
from tidegate.experiments.outcomes import Outcome, results_of
from tidegate.experiments.results import Results


class Reproduced(NamedTuple):
    """What `tidegate reproduce` prints, and what pages show."""

    experiment: Experiment
    results: Results
    header: tuple[str, ...]
    rows: list[tuple[str, ...]]
    claims: tuple[Claim, ...]
    pictures: list[tuple[str, str]]
    """Each with a name, which may be empty, and as SVG."""
    failed: list[Outcome]
    seconds: float
    """Of all cells together."""
    runs: int
    shorter: str
    """What is less than in the full grid, in words; empty if nothing is."""

    @property
    def figure(self) -> str:
        """What the paper calls it: "Figure 8"."""
        return figure(self.experiment)


def figure(experiment: Experiment) -> str:
    """What a paper calls the experiment, or what we do.

    Examples
    --------
    >>> from tidegate.experiments import EXPERIMENTS
    >>> figure(EXPERIMENTS["ijoin/figure2"]), figure(EXPERIMENTS["ijoin/frontier"])
    ('Figure 2', 'Frontier')
    """
    name = experiment.name.partition("/")[2]
    numbered = re.fullmatch(r"([a-z]+)(\d+)(?:-(\w+))?", name)
    if numbered is None:
        return name.capitalize()
    word, number, beside = numbered.groups()
    return f"{word.capitalize()} {number}" + (f" ({beside})" if beside else "")


def reproduced(experiment: Experiment, cells: Sequence[Cell], outcomes: Mapping[Cell, Outcome]) -> Reproduced:
    """Make the table and the pictures of an experiment, and judge its claims."""
    ended = [outcomes[cell] for cell in cells if cell in outcomes]
    results = results_of(ended)
    header, rows = experiment.shown.table(results)
    try:
        claims = experiment.claims(results) if len(results) else ()
    except (
        LookupError,
        ValueError,
    ) as error:  # where cells failed, runs may be too few, or without their like
        claims = (Claim("what the paper says cannot be judged", "open", str(error)),)
    pictures = [
        (name, svg)
        for plot in experiment.plots
        for name, svg in plot.drawn(f"{figure(experiment)}: {experiment.title}", results)
    ]
    return Reproduced(
        experiment,
        results,
        header,
        rows,
        claims,
        pictures,
        [one for one in ended if one.error is not None],
        sum(one.seconds for one in ended),
        len({cell.seed for cell in cells}),
        _shorter(experiment, cells),
    )


def _shorter(experiment: Experiment, cells: Sequence[Cell]) -> str:
    """How the cells are fewer than all.

    Examples
    --------
    >>> from tidegate.experiments import EXPERIMENTS
    >>> table6 = EXPERIMENTS["ijoin/table6"]
    >>> _shorter(table6, table6.cells(quick=True))
    'seconds 50 instead of 100; 3 runs instead of 10'
    """
    settings = [json.loads(cell.settings) for cell in cells]
    parts = []
    for axis, full in experiment.grid.axes.items():
        here = list(dict.fromkeys(one[axis] for one in settings))
        if set(here) != set(full):
            told, all_ = (
                ", ".join(f"{v:g}" if isinstance(v, float) else str(v) for v in some) for some in (here, full)
            )
            parts.append(f"{axis} {told} instead of {all_}")
    runs = len({cell.seed for cell in cells})
    if runs != experiment.grid.runs:
        parts.append(f"{runs} run{'s' if runs > 1 else ''} instead of {experiment.grid.runs}")
    return "; ".join(parts)
