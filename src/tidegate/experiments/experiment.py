"""An experiment: a grid of cells, the function that measures a cell, a table, charts, and the claims that it tests.

A cell is one independent run of one configuration. It calls the core only, so it can run in any process.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, TypeAlias

from tidegate.experiments.claims import Claim
from tidegate.experiments.figure_text import FigureText
from tidegate.experiments.results import Results
from tidegate.experiments.table_layout import TableLayout
from tidegate.types import InputError

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Value: TypeAlias = str | int | float | bool
Settings: TypeAlias = Mapping[str, Value]
Measurement: TypeAlias = Mapping[str, Any] | Sequence[Mapping[str, Any]]
"""What a cell measures: numbers and words by name, or several rows of them, such as a curve."""


class Plot(Protocol):
    """Draws charts of results, each with the label of its panel; see `plots`."""

    def draw(self, title: str, results: Results) -> Iterator[tuple[str, Figure]]: ...  # noqa: D102 - see the class


@dataclass(frozen=True)
class Grid:
    """All combinations of some values, each run several times.

    Parameters
    ----------
    axes
        The values of each setting; one that does not vary has a single value.
    runs
        How often each combination runs, with the seeds 0, 1, ...
    quick
        Axes that have other values in a quick run.
    quick_runs
        How often each combination runs in a quick run.
    include
        Which combinations are part of the grid. All by default.

    Examples
    --------
    >>> grid = Grid({"policy": ("age", "fifo"), "rows": (5000,)}, runs=50, quick={"rows": (100,)}, quick_runs=1)
    >>> list(grid.cells(quick=True))
    [({'policy': 'age', 'rows': 100}, 0), ({'policy': 'fifo', 'rows': 100}, 0)]
    >>> sum(1 for _ in grid.cells()), sum(1 for _ in grid.cells(max_runs=5))
    (100, 10)
    """

    axes: Mapping[str, Sequence[Value]]
    runs: int = 1
    quick: Mapping[str, Sequence[Value]] = field(default_factory=dict)
    quick_runs: int = 1
    include: Callable[[Settings], bool] = lambda _: True

    def __post_init__(self) -> None:
        if unknown := set(self.quick) - set(self.axes):
            raise InputError(
                f"quick names unknown axes {sorted(unknown)}; the axes are {', '.join(self.axes)}"
            )

    def cells(
        self, *, quick: bool = False, max_runs: int | None = None
    ) -> Iterator[tuple[dict[str, Value], int]]:
        """All configurations with the first seed, then all with the second seed, and so on."""
        axes = {name: self.quick.get(name, values) if quick else values for name, values in self.axes.items()}
        runs = self.quick_runs if quick else self.runs
        for seed in range(runs if max_runs is None else min(runs, max_runs)):
            for combination in itertools.product(*axes.values()):
                settings = dict(zip(axes, combination, strict=True))
                if self.include(settings):
                    yield settings, seed


@dataclass(frozen=True)
class Experiment:
    """A figure or table of a paper.

    Parameters
    ----------
    text
        Its name, and what is written about it.
    grid
        Its cells.
    measure
        Runs one cell. Takes the settings and `seed` by name, and `data`, the folder of recorded streams, if
        `needs_data`. A function of a module, so that Spark's workers can import it.
    table
        The layout of the table.
    plots
        The charts.
    claims
        What the paper claims about it.
    needs_data
        Whether it needs recorded streams.
    """

    text: FigureText
    grid: Grid
    measure: Callable[..., Measurement]
    table: TableLayout
    plots: tuple[Plot, ...] = ()
    claims: tuple[Claim, ...] = ()
    needs_data: bool = False

    @property
    def name(self) -> str:
        """The paper and the figure: "ijoin/figure2"."""
        return self.text.name

    @property
    def measure_name(self) -> str:
        """The name of the measure. Experiments with the same measure share their cells."""
        return f"{self.measure.__module__}.{self.measure.__qualname__}".removeprefix("tidegate.experiments.")

    @property
    def paper(self) -> str:
        """The paper's short name."""
        return self.name.partition("/")[0]

    def cells(self, *, quick: bool = False, max_runs: int | None = None) -> list[Cell]:
        """The cells, with at most `max_runs` runs of each configuration."""
        return [
            Cell(self.measure_name, json.dumps(settings), seed)
            for settings, seed in self.grid.cells(quick=quick, max_runs=max_runs)
        ]


class Cell(NamedTuple):
    """One run of one configuration: the name of the measure, the settings as JSON, and the seed."""

    measure: str
    settings: str
    seed: int

    @property
    def description(self) -> str:
        """The cell in words, for messages."""
        settings = ", ".join(f"{name} {value}" for name, value in json.loads(self.settings).items())
        return f"{self.measure}: {settings}, seed {self.seed}"
