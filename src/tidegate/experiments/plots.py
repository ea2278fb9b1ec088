"""What an experiment plots, declared by its axes and numbers; `charts` draws it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from tidegate.experiments.claims import MeanInterval
from tidegate.experiments.results import Results

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from tidegate.experiments.charts import Point


@dataclass(frozen=True)
class LinePlot:
    """A line for each value of an axis, over another axis: means over the runs, with their intervals.

    Parameters
    ----------
    x, y, by
        The axis that goes across, the number that goes up, and the axis that has a line for each value.
    panel
        An axis that has a chart for each value.
    predicted
        A number that is drawn as an additional dashed line.
    labels
        Labels of the axes and of the dashed lines, if not their names: `{"x": "memory in rows"}`.
    markers
        Whether points are marked.
    include
        Which values of `by` are drawn. All by default.
    log2_x
        Whether the x axis is logarithmic, with a tick at each power of two.

    Examples
    --------
    >>> runs = {(1, "age"): [3, 5], (2, "age"): [6, 7]}
    >>> results = Results.from_runs(runs, axes=("memory", "policy"), number="results")
    >>> [(_, chart)] = LinePlot("memory", "results", "policy").draw("t", results)
    >>> chart.axes[0].get_lines()[0].get_ydata().tolist()
    [4.0, 6.5]
    """

    x: str
    y: str
    by: str
    panel: str | None = None
    predicted: str | None = None
    labels: Mapping[str, str] = field(default_factory=dict)
    markers: bool = True
    include: tuple[Any, ...] = ()
    log2_x: bool = False

    def draw(self, title: str, results: Results) -> Iterator[tuple[str, Figure]]:
        """The charts, each with the label of its panel."""
        from tidegate.experiments.charts import line_chart  # noqa: PLC0415 - Matplotlib is needed here only

        for name, panel, part in _panels(title, self.panel, results):
            solid = self._series(part, self.y)
            dashed = self._series(part, self.predicted) if self.predicted else {}
            if solid:
                yield (
                    panel,
                    line_chart(
                        name,
                        self.labels.get("x", self.x),
                        self.labels.get("y", self.y),
                        solid,
                        dashed=dashed,
                        dashed_label=self.labels.get("dashed", "predicted"),
                        markers=self.markers,
                        log2_x=self.log2_x,
                    ),
                )

    def _series(self, results: Results, number: str) -> dict[str, list[Point]]:
        means = _means(results, self.by, self.x, number)
        return {
            _label(self.by, name): sorted(
                ((float(x), mean) for x, mean in line.items()), key=lambda point: point[0]
            )
            for name, line in means.items()
            if not self.include or name in self.include
        }


@dataclass(frozen=True)
class BarPlot:
    """A group of bars for each value of an axis, with a bar for each value of another: means over the runs."""

    group: str
    y: str
    by: str
    panel: str | None = None
    labels: Mapping[str, str] = field(default_factory=dict)

    def draw(self, title: str, results: Results) -> Iterator[tuple[str, Figure]]:
        """The charts, each with the label of its panel."""
        from tidegate.experiments.charts import bar_chart  # noqa: PLC0415 - Matplotlib is needed here only

        for name, panel, part in _panels(title, self.panel, results):
            groups = {
                str(group): {_label(self.by, by): mean for by, mean in row.items()}
                for group, row in _means(part, self.group, self.by, self.y).items()
            }
            if groups:
                x, y = self.labels.get("x", self.group), self.labels.get("y", self.y)
                yield panel, bar_chart(name, x, y, groups)


@dataclass(frozen=True)
class ScatterPlot:
    """A point for each value of an axis, by two numbers: those in `single` alone, the others as a line."""

    x: str
    y: str
    by: str
    single: tuple[str, ...]
    line: str
    panel: str | None = None
    labels: Mapping[str, str] = field(default_factory=dict)

    def draw(self, title: str, results: Results) -> Iterator[tuple[str, Figure]]:
        """The charts, each with the label of its panel."""
        from tidegate.experiments.charts import line_chart  # noqa: PLC0415 - Matplotlib is needed here only

        for name, panel, part in _panels(title, self.panel, results):
            points = {
                str(value): (
                    float(part.runs(self.x, **{self.by: value}).mean()),
                    float(part.runs(self.y, **{self.by: value}).mean()),
                )
                for value in part.values(self.by)
            }
            line = [point for value, point in points.items() if value not in self.single]
            single = {value: points[value] for value in self.single if value in points}
            axes = self.labels.get("x", self.x), self.labels.get("y", self.y)
            yield panel, line_chart(name, *axes, {self.line: line}, single=single)


@dataclass(frozen=True)
class HeatMap:
    """A table of a number by two axes, as a share of that of a reference: a value of the second axis.

    Examples
    --------
    >>> runs = {("INC", "age"): [3, 5], ("INC", "offline"): [5, 5]}
    >>> results = Results.from_runs(runs, axes=("on", "policy"), number="n")
    >>> [(_, chart)] = HeatMap("on", "policy", "n", "offline").draw("t", results)
    >>> [text.get_text() for text in chart.axes[0].texts]
    ['age', 'INC', '0.80']
    """

    rows: str
    columns: str
    number: str
    reference: str
    panel: str | None = None

    def draw(self, title: str, results: Results) -> Iterator[tuple[str, Figure]]:
        """The charts, each with the label of its panel."""
        from tidegate.experiments.charts import heat_map  # noqa: PLC0415 - Matplotlib is needed here only

        for name, panel, part in _panels(title, self.panel, results):
            means = _means(part, self.rows, self.columns, self.number)
            cells = {
                str(row): {
                    str(column): mean.mean / best for column, mean in line.items() if column != self.reference
                }
                for row, line in means.items()
                if self.reference in line and (best := line[self.reference].mean) > 0
            }
            if cells:
                yield panel, heat_map(f"{name}, of {self.reference}", self.columns, self.rows, cells)


def _panels(title: str, panel: str | None, results: Results) -> Iterator[tuple[str, str, Results]]:
    if panel is None:
        yield title, "", results
        return
    for value in results.values(panel):
        label = _label(panel, value)
        yield f"{title}: {label}", label, results.where(**{panel: value})


def _label(axis: str, value: Any) -> str:  # noqa: ANN401 - a setting
    return value if isinstance(value, str) else f"{axis} {value:g}"


def _means(results: Results, outer: str, inner: str, number: str) -> dict[Any, dict[Any, MeanInterval]]:
    """The mean of a number by two axes."""
    runs: dict[Any, dict[Any, list[float]]] = {}
    for row in results.rows:
        if number in row and outer in row and inner in row:
            runs.setdefault(row[outer], {}).setdefault(row[inner], []).append(float(row[number]))
    return {
        name: {place: MeanInterval.of(values) for place, values in line.items()}
        for name, line in runs.items()
    }
