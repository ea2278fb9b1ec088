"""Counterexamples to a shape, searched on a grid of points.

The margin is bounded at each point by interval arithmetic. So rounding neither creates nor hides a counterexample:
each is one of the exact function. A counterexample between the points is not found.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import product

import numpy as np

from tidegate.alerts.certification.enclosure import Enclosure
from tidegate.alerts.certification.intervals import Interval
from tidegate.alerts.certification.subdivision import Box, points_between
from tidegate.alerts.expressions.nodes import Node
from tidegate.types import Array

_GRID_SETTINGS = 1500
"""The number of settings of the other inputs on the grid."""
_OTHER_SETTINGS = 256
"""The number of further settings between the grid's."""
_NEAREST, _FARTHEST = 1e-3, 1e6
"""The range of the points on an infinite axis."""


@dataclass(frozen=True)
class Counterexample:
    """Values of one input, with the others fixed, that contradict a shape.

    Two points contradict "increasing" or "decreasing". Three contradict "quasiconvex": the function is higher at the
    middle point than at the other two.
    """

    input: str
    points: tuple[float, ...]
    values: tuple[float, ...]
    others: Mapping[str, float] = field(default_factory=dict)

    def __str__(self) -> str:
        fixed = ", ".join(f"{name} = {value:.6g}" for name, value in self.others.items())
        values = ", ".join(
            f"{value:.6g} at {point:.6g}" for point, value in zip(self.points, self.values, strict=True)
        )
        return f"in {self.input} it is {values}" + (f" (with {fixed})" if fixed else "")


@dataclass(frozen=True)
class GridResult:
    """The result of `search_grid`.

    Attributes
    ----------
    not_increasing, not_decreasing, not_quasiconvex
        A counterexample to the shape, if one was found.
    steps
        The distance between points, by input; empty if the points are not a regular grid.
    """

    not_increasing: Counterexample | None
    not_decreasing: Counterexample | None
    not_quasiconvex: Counterexample | None
    steps: Mapping[str, float]


def search_grid(tree: Node, by: str, box: Box, points: int) -> GridResult:
    """Search counterexamples to the shapes of an expression, on a grid over a box and at some other points.

    Examples
    --------
    >>> from tidegate.alerts.expressions.parsing import parse
    >>> result = search_grid(parse("x * y"), "x", {"x": (0, 2), "y": (-1, 1)}, points=3)
    >>> print(result.not_increasing, "|", result.not_quasiconvex)
    in x it is 0 at 0, -2 at 2 (with y = -1) | None
    """
    others = [name for name in box if name != by]
    per_axis = min(33, max(2, int(_GRID_SETTINGS ** (1 / max(1, len(others))))))
    finite = all(np.isfinite(ends).all() for ends in box.values())
    regular = finite and per_axis ** len(others) <= 2 * _GRID_SETTINGS
    axis = _points_on_axis(*box[by], points)
    settings = _spread_settings(box, others)
    if regular:
        grid = list(product(*(_points_on_axis(*box[name], per_axis) for name in others)))
        settings = np.concatenate([np.array(grid).reshape(len(grid), len(others)), settings])
    columns = {name: settings[:, [k]] for k, name in enumerate(others)} | {by: axis[None, :]}
    bounds = Enclosure({name: Interval.of(column) for name, column in columns.items()}).jet(tree).value
    low, high = (np.broadcast_to(end, (len(settings), len(axis))) for end in (bounds.low, bounds.high))

    def example(found: tuple[int, ...] | None) -> Counterexample | None:
        if found is None:
            return None
        row, *at = found
        middle = low[row, at] / 2 + high[row, at] / 2
        fixed = {name: float(settings[row, k]) for k, name in enumerate(others)}
        return Counterexample(by, tuple(map(float, axis[at])), tuple(map(float, middle)), fixed)

    steps = {
        name: float(ends[1] - ends[0]) / ((points if name == by else per_axis) - 1)
        for name, ends in box.items()
    }
    return GridResult(
        example(_largest_drop(low, high)),
        example(_largest_drop(-high, -low)),
        example(_highest_peak(low, high)),
        steps if regular else {},
    )


def _points_on_axis(low: float, high: float, count: int) -> Array:
    if np.isfinite([low, high]).all():
        return points_between(low, high, np.linspace(0, 1, count)) if low < high else np.array([low])
    distances = np.append(0.0, np.geomspace(_NEAREST, _FARTHEST, count))
    if np.isfinite(low):
        return low + distances
    return high - distances[::-1] if np.isfinite(high) else np.append(-distances[:0:-1], distances)


def _spread_settings(box: Box, others: list[str]) -> Array:
    """Settings that fill the box evenly: multiples of irrational steps, modulo 1 (a low-discrepancy sequence)."""
    dimensions = len(others)
    if not dimensions:
        return np.zeros((1, 0))
    root = 2.0
    for _ in range(50):  # the step of each axis is a power of 1 / root, where root**(d + 1) = root + 1
        root = (1 + root) ** (1 / (dimensions + 1))
    at = (0.5 + np.outer(np.arange(1, _OTHER_SETTINGS + 1), root ** -np.arange(1.0, dimensions + 1))) % 1
    return np.stack([points_between(*box[name], at[:, k]) for k, name in enumerate(others)], axis=1)


def _largest_drop(low: Array, high: Array) -> tuple[int, ...] | None:
    """The largest decrease: its row, and the positions of the higher and the lower point."""
    if low.shape[1] < 2:  # noqa: PLR2004 - two points
        return None
    with np.errstate(invalid="ignore"):
        fall = np.nan_to_num(np.maximum.accumulate(low, axis=1)[:, :-1] - high[:, 1:], nan=-np.inf)
    row, at = np.unravel_index(fall.argmax(), fall.shape)
    return (int(row), int(low[row, : at + 1].argmax()), int(at) + 1) if fall[row, at] > 0 else None


def _highest_peak(low: Array, high: Array) -> tuple[int, ...] | None:
    """The highest point above both an earlier and a later one: its row, and the three positions."""
    if low.shape[1] < 3:  # noqa: PLR2004 - three points
        return None
    before = np.minimum.accumulate(high, axis=1)[:, :-2]
    after = np.minimum.accumulate(high[:, ::-1], axis=1)[:, ::-1][:, 2:]
    with np.errstate(invalid="ignore"):
        above = np.nan_to_num(low[:, 1:-1] - np.maximum(before, after), nan=-np.inf)
    row, at = np.unravel_index(above.argmax(), above.shape)
    if not above[row, at] > 0:
        return None
    earlier, later = high[row, : at + 1].argmin(), at + 2 + high[row, at + 2 :].argmin()
    return int(row), int(earlier), int(at) + 1, int(later)
