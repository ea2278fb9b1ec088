"""The experiments of the papers, with this code. Each paper has a package.

=======  ==========================================================================================================
declare  `experiment` (grids of cells), `plots` and `table_layout` (what is shown), `datasets` (recorded streams),
         `figure_text` (what is written about a figure)
run      `cells` (runs cells and keeps their results), `runner` (in one process or on Spark)
judge    `results` (selects measurements), `claims` (declared claims and verdicts), `summary` (all of an experiment)
write    `charts` (draws), `pages` (HTML), `document` (Markdown), `reproduce` (the command)
=======  ==========================================================================================================

`EXPERIMENTS` holds all experiments by name. To add one, declare an `Experiment` in the `figures` module of its
paper. A new paper also needs an entry in `PAPERS`.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, NamedTuple

from tidegate.experiments import (
    ijoin,
    reservoir_joins,
    stochastic_streams,
    threshold_functions,
    tournament,
    windowed_joins,
)
from tidegate.experiments.experiment import Experiment
from tidegate.types import InputError


class Paper(NamedTuple):
    """A paper: its title, its authors, and its experiments."""

    title: str
    authors: str
    experiments: tuple[Experiment, ...]


PAPERS: Final = {
    "windowed-joins": Paper(
        "Memory-Limited Execution of Windowed Stream Joins", "Srivastava, Widom", windowed_joins.EXPERIMENTS
    ),
    "ijoin": Paper(
        "iJoin: Importance-aware Join Approximation over Data Streams",
        "Kulkarni, Ravishankar",
        ijoin.EXPERIMENTS,
    ),
    "stochastic-streams": Paper(
        "On Joining and Caching Stochastic Streams", "Xie, Yang, Chen", stochastic_streams.EXPERIMENTS
    ),
    "reservoir-joins": Paper(
        "Reservoir Sampling over Memory-Limited Stream Joins",
        "Al-Kateb, Lee, Wang",
        reservoir_joins.EXPERIMENTS,
    ),
    "threshold-functions": Paper(
        "Optimization of Threshold Functions over Streams",
        "Cai, Wu, Bernstein, Chandramouli",
        threshold_functions.EXPERIMENTS,
    ),
    "tournament": Paper("Beyond the papers: a tournament", "Tidegate", tournament.EXPERIMENTS),
}
EXPERIMENTS: Final[dict[str, Experiment]] = {
    one.name: one for paper in PAPERS.values() for one in paper.experiments
}
"""All experiments by name."""


def find_paper(text: str) -> str:
    """The short name of a paper, found by a part of its name, title or authors.

    Examples
    --------
    >>> find_paper("xie"), find_paper("ijoin"), find_paper("alkateb")
    ('stochastic-streams', 'ijoin', 'reservoir-joins')
    """
    lowered = text.lower().strip()
    plain = lowered.replace("-", "")
    matching = [
        name
        for name, paper in PAPERS.items()
        if plain and plain in f"{name} {paper.authors} {paper.title}".lower().replace("-", "")
    ]
    exact = [name for name in matching if name == lowered]
    if len(exact or matching) != 1:
        listed = "; ".join(f"{name} ({paper.authors})" for name, paper in PAPERS.items())
        raise InputError(f"{text!r} does not name one paper; use one of: {listed}")
    return (exact or matching)[0]


def find(names: Iterable[str], paper: str | None = None) -> list[Experiment]:
    """Experiments by their names, such as "fig8". Without names, all experiments of a paper.

    Examples
    --------
    >>> [one.name for one in find(["fig8", "ijoin/table2"], "xie")]
    ['stochastic-streams/figure8', 'ijoin/table2']
    """
    short_name = find_paper(paper) if paper is not None else None
    chosen = list(names)
    if not chosen:
        return [one for one in EXPERIMENTS.values() if short_name in (None, one.paper)]
    return [_find_one(name, short_name) for name in chosen]


def _find_one(name: str, paper: str | None) -> Experiment:
    if name in EXPERIMENTS:
        return EXPERIMENTS[name]
    prefix, slash, short = name.rpartition("/")
    short = short.lower().replace(" ", "")
    if short.startswith("fig") and not short.startswith("figure"):
        short = "figure" + short[3:].lstrip(".")
    if slash:
        paper = find_paper(prefix)
    matching = [
        one for one in EXPERIMENTS.values() if paper in (None, one.paper) and one.name.endswith(f"/{short}")
    ]
    if len(matching) > 1:
        raise InputError(
            f"several papers have {name!r}; use --paper, or one of {', '.join(one.name for one in matching)}"
        )
    if not matching:
        known = [one.name for one in EXPERIMENTS.values() if paper in (None, one.paper)]
        raise InputError(f"unknown experiment {name!r}; use one of {', '.join(known)}")
    return matching[0]


__all__ = ["EXPERIMENTS", "PAPERS", "Paper", "find", "find_paper"]
