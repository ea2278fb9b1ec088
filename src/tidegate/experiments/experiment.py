"""An experiment is data: a grid of cells, what a cell measures, what is shown of it, and the claims that it tests.

Each cell is one run of one configuration, by itself: it calls the core, and knows nothing of where it runs.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol, TypeAlias

from tidegate.experiments.claims import Claim
from tidegate.experiments.results import Results
from tidegate.experiments.shown import Shown
from tidegate.types import InputError

Value: TypeAlias = str | int | float | bool
Settings: TypeAlias = Mapping[str, Value]
Found: TypeAlias = Mapping[str, Any] | Sequence[Mapping[str, Any]]
"""What a cell measures: numbers and words by name, or several rows of them (a curve, say)."""


class Plot(Protocol):
    """Draws pictures of results: each with a name and as SVG; see `plots`."""

    def drawn(self, title: str, results: Results) -> Iterator[tuple[str, str]]: ...  # noqa: D102 - said above


@dataclass(frozen=True)
class Grid:
    """All combinations of some values, each run several times.

    Parameters
    ----------
    axes
        The values of each setting; one that does not vary has a single value.
    runs
        How often each combination runs, with the seeds 0, 1, ...: the same for all.
    quick
        Axes that are shorter in a quick run.
    quick_runs
        How often each combination runs in a quick run.
    only
        Which combinations there are; by default all.

    Examples
    --------
    >>> grid = Grid({"policy": ("age", "fifo"), "rows": (5000,)}, runs=50, quick={"rows": (100,)}, quick_runs=1)
    >>> list(grid.cells(quick=True))
    [({'policy': 'age', 'rows': 100}, 0), ({'policy': 'fifo', 'rows': 100}, 0)]
    >>> sum(1 for _ in grid.cells()), sum(1 for _ in grid.cells(most=5))
    (100, 10)
    """

    axes: Mapping[str, Sequence[Value]]
    runs: int = 1
    quick: Mapping[str, Sequence[Value]] = field(default_factory=dict)
    quick_runs: int = 1
    only: Callable[[Settings], bool] = lambda _: True

    def __post_init__(self) -> None:
        if unknown := set(self.quick) - set(self.axes):
            raise InputError(f"{sorted(unknown)} are no axes of the grid; there is {', '.join(self.axes)}")

    def cells(
        self, *, quick: bool = False, most: int | None = None
    ) -> Iterator[tuple[dict[str, Value], int]]:
        """Every configuration and seed, at most so many of these; the runs of all configurations side by side."""
        axes = {name: self.quick.get(name, values) if quick else values for name, values in self.axes.items()}
        runs = self.quick_runs if quick else self.runs
        for seed in range(runs if most is None else min(runs, most)):
            for combination in itertools.product(*axes.values()):
                settings = dict(zip(axes, combination, strict=True))
                if self.only(settings):
                    yield settings, seed


@dataclass(frozen=True)
class Experiment:
    """A figure or table of a paper.

    Parameters
    ----------
    name
        The paper and the figure: "ijoin/figure2".
    title
        What is measured.
    says
        What the paper says of it, in a line.
    grid
        Its cells.
    measure
        Runs one cell: takes the settings and `seed` by name, and `data`, the folder of recorded streams, if
        `recorded`. A function of a module, so that Spark's workers find it.
    shown
        The table.
    plots
        The pictures.
    claims
        Judges what the paper says by the results.
    chosen
        What the paper leaves open and was chosen here, and what deviates.
    deviates
        Why a claim of the paper does not hold here, where it does not.
    recorded
        Whether it needs recorded streams.
    """

    name: str
    title: str
    says: str
    grid: Grid
    measure: Callable[..., Found]
    shown: Shown
    plots: tuple[Plot, ...] = ()
    claims: Callable[[Results], tuple[Claim, ...]] = lambda _: ()
    chosen: str = ""
    deviates: str = ""
    recorded: bool = False

    @property
    def runs_as(self) -> str:
        """By which name its cells are known: that of the measure, so that experiments share the cells of one."""
        return f"{self.measure.__module__}.{self.measure.__qualname__}".removeprefix("tidegate.experiments.")

    @property
    def paper(self) -> str:
        """The paper, as its folder is called."""
        return self.name.partition("/")[0]

    def cells(self, *, quick: bool = False, most: int | None = None) -> list[Cell]:
        """The cells, as they are kept; each configuration with at most so many runs."""
        return [
            Cell(self.runs_as, json.dumps(settings), seed)
            for settings, seed in self.grid.cells(quick=quick, most=most)
        ]


class Cell(NamedTuple):
    """One run of one configuration (JSON) by some measure, by which it is known in the output."""

    measure: str
    settings: str
    seed: int

    @property
    def told(self) -> str:
        """The cell in words."""
        settings = ", ".join(f"{name} {value}" for name, value in json.loads(self.settings).items())
        return f"{self.measure}: {settings}, seed {self.seed}"
