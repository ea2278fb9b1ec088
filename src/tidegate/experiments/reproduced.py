"""An experiment that was run: a table, pictures, and what the paper says of it, judged."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from tidegate.experiments.claims import Claim
from tidegate.experiments.experiment import Cell, Experiment
from tidegate.experiments.outcomes import Outcome, results_of
from tidegate.experiments.results import Results
from tidegate.types import InputError


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
    word = name.rstrip("0123456789")
    return f"{word.capitalize()} {name[len(word) :]}".strip()


def reproduced(experiment: Experiment, cells: Sequence[Cell], outcomes: Mapping[Cell, Outcome]) -> Reproduced:
    """Make the table and the pictures of an experiment, and judge its claims."""
    ended = [outcomes[cell] for cell in cells if cell in outcomes]
    results = results_of(ended)
    header, rows = experiment.shown.table(results)
    try:
        claims = experiment.claims(results) if len(results) else ()
    except InputError as error:
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
    )
