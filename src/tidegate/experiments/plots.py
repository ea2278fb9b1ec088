"""What is plotted of an experiment, said in terms of its axes and numbers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from tidegate.experiments import picture
from tidegate.experiments.claims import Interval
from tidegate.experiments.results import Results


@dataclass(frozen=True)
class Lines:
    """A line for each value of an axis, over another axis; means over the runs, with their intervals.

    Parameters
    ----------
    x, y, by
        The axis that goes across, the number that goes up, and the axis whose values are lines.
    panel
        An axis for each of whose values there is a picture.
    predicted
        A number that is drawn dashed beside the other, where there is one.
    says
        What the axes and dashed lines say, where names are not enough: `{"x": "memory in rows"}`.
    dots
        Whether points are marked.
    only
        Which values of `by` are drawn; by default all.
    doubling
        Whether the axis that goes across doubles from place to place.

    Examples
    --------
    >>> results = Results.of({(1, "age"): [3, 5], (2, "age"): [6, 7]}, axes=("memory", "policy"), number="results")
    >>> [(_, svg)] = Lines("memory", "results", "policy").drawn("t", results)
    >>> svg.count("<circle"), svg.count("<polyline")
    (2, 1)
    """

    x: str
    y: str
    by: str
    panel: str | None = None
    predicted: str | None = None
    says: Mapping[str, str] = field(default_factory=dict)
    dots: bool = True
    only: tuple[Any, ...] = ()
    doubling: bool = False

    def drawn(self, title: str, results: Results) -> Iterator[tuple[str, str]]:
        """The pictures."""
        for name, panel, part in _panels(title, self.panel, results):
            solid = self._series(part, self.y)
            dashed = self._series(part, self.predicted) if self.predicted else {}
            if solid:
                yield (
                    panel,
                    picture.lines(
                        name,
                        self.says.get("x", self.x),
                        self.says.get("y", self.y),
                        solid,
                        dashed=dashed,
                        beside_is=self.says.get("dashed", "predicted"),
                        dots=self.dots,
                        doubling=self.doubling,
                    ),
                )

    def _series(self, results: Results, number: str) -> dict[str, list[picture.Point]]:
        found = _gathered(results, self.by, self.x, number)
        return {
            _label(self.by, name): sorted(
                ((float(x), over) for x, over in line.items()), key=lambda point: point[0]
            )
            for name, line in found.items()
            if not self.only or name in self.only
        }


@dataclass(frozen=True)
class Bars:
    """A group of bars for each value of an axis, with a bar for each value of another; means over the runs."""

    group: str
    y: str
    by: str
    panel: str | None = None
    says: Mapping[str, str] = field(default_factory=dict)

    def drawn(self, title: str, results: Results) -> Iterator[tuple[str, str]]:
        """The pictures."""
        for name, panel, part in _panels(title, self.panel, results):
            groups = _gathered(part, self.group, self.by, self.y)
            if groups:
                told = {
                    str(group): {_label(self.by, by): over for by, over in row.items()}
                    for group, row in groups.items()
                }
                yield (
                    panel,
                    picture.bars(name, self.says.get("x", self.group), self.says.get("y", self.y), told),
                )


@dataclass(frozen=True)
class Scatter:
    """A place for each value of an axis, by two numbers: those in `alone` by themselves, the others as a line."""

    x: str
    y: str
    by: str
    alone: tuple[str, ...]
    line: str
    panel: str | None = None
    says: Mapping[str, str] = field(default_factory=dict)

    def drawn(self, title: str, results: Results) -> Iterator[tuple[str, str]]:
        """The pictures."""
        for name, panel, part in _panels(title, self.panel, results):
            places = {
                str(value): (
                    float(part.runs(self.x, **{self.by: value}).mean()),
                    float(part.runs(self.y, **{self.by: value}).mean()),
                )
                for value in part.values(self.by)
            }
            ours = [place for value, place in places.items() if value not in self.alone]
            rivals = {value: places[value] for value in self.alone if value in places}
            axes = self.says.get("x", self.x), self.says.get("y", self.y)
            yield panel, picture.lines(name, *axes, {self.line: ours}, marked=rivals)


@dataclass(frozen=True)
class Heat:
    """A map of a number by two axes, as a part of what the best that can be gets (a value of the second axis).

    Examples
    --------
    >>> found = Results.of({("INC", "age"): [3, 5], ("INC", "offline"): [5, 5]}, axes=("on", "policy"), number="n")
    >>> [(_, svg)] = Heat("on", "policy", "n", "offline").drawn("t", found)
    >>> ">0.80<" in svg, ">1.00<" in svg
    (True, False)
    """

    down: str
    across: str
    number: str
    of: str
    panel: str | None = None

    def drawn(self, title: str, results: Results) -> Iterator[tuple[str, str]]:
        """The pictures."""
        for name, panel, part in _panels(title, self.panel, results):
            means = _gathered(part, self.down, self.across, self.number)
            cells = {
                str(row): {
                    str(column): over.mean / best for column, over in line.items() if column != self.of
                }
                for row, line in means.items()
                if self.of in line and (best := line[self.of].mean) > 0
            }
            if cells:
                yield panel, picture.heat(f"{name}, of {self.of}", self.across, self.down, cells)


def _panels(title: str, panel: str | None, results: Results) -> Iterator[tuple[str, str, Results]]:
    if panel is None:
        yield title, "", results
        return
    for value in results.values(panel):
        told = _label(panel, value)
        yield f"{title}: {told}", told, results.where(**{panel: value})


def _label(axis: str, value: Any) -> str:  # noqa: ANN401 - a setting
    return value if isinstance(value, str) else f"{axis} {value:g}"


def _gathered(results: Results, outer: str, inner: str, number: str) -> dict[Any, dict[Any, Interval]]:
    """The mean of a number by two axes."""
    runs: dict[Any, dict[Any, list[float]]] = {}
    for row in results.rows:
        if number in row and outer in row and inner in row:
            runs.setdefault(row[outer], {}).setdefault(row[inner], []).append(float(row[number]))
    return {
        name: {place: Interval.of(values) for place, values in line.items()} for name, line in runs.items()
    }
