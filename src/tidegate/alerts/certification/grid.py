"""A shape tried out on points: what contradicts it, and how far apart the points were.

The margin is bounded at each point by interval arithmetic, so that rounding can neither make nor hide a
contradiction: what is found holds of the exact function. What is not found may still lie between the points.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import product

import numpy as np

from tidegate.alerts.certification.enclosure import Enclosure
from tidegate.alerts.certification.intervals import Interval
from tidegate.alerts.certification.subdivision import Box, spread
from tidegate.alerts.expressions.nodes import Node
from tidegate.types import Array

_SETTINGS = 1500  # of the other inputs, on a grid
_BETWEEN = 256  # and off it
_NEAR, _FARTHEST = 1e-3, 1e6  # where an axis without end is looked at


@dataclass(frozen=True)
class Counterexample:
    """Places of one input, the others fixed, at which a shape does not hold.

    Two places contradict a direction; three contradict quasiconvexity: the middle one lies above both others.
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
class Contradictions:
    """What was found: contradictions to each shape, and the step of the grid for each input, if there is one."""

    drop: Counterexample | None
    rise: Counterexample | None
    peak: Counterexample | None
    steps: Mapping[str, float]


def contradictions(tree: Node, by: str, box: Box, points: int) -> Contradictions:
    """Look at an expression on a grid over a box, and at some points off it.

    Examples
    --------
    >>> from tidegate.alerts.expressions.parsing import parse
    >>> found = contradictions(parse("x * y"), "x", {"x": (0, 2), "y": (-1, 1)}, points=3)
    >>> print(found.drop, "|", found.peak)
    in x it is 0 at 0, -2 at 2 (with y = -1) | None
    """
    others = [name for name in box if name != by]
    a_side = min(33, max(2, int(_SETTINGS ** (1 / max(1, len(others))))))
    regular = a_side ** len(others) <= 2 * _SETTINGS and all(np.isfinite(ends).all() for ends in box.values())
    axis = _places(*box[by], points)
    settings = _between(len(others), box, others)
    if regular:
        grid = list(product(*(_places(*box[name], a_side) for name in others)))
        settings = np.concatenate([np.array(grid).reshape(len(grid), len(others)), settings])
    columns = {name: settings[:, [k]] for k, name in enumerate(others)} | {by: axis[None, :]}
    found = Enclosure({name: Interval.of(column) for name, column in columns.items()}).jet(tree).value
    low, high = (np.broadcast_to(end, (len(settings), len(axis))) for end in (found.low, found.high))

    def example(row: int, *at: int) -> Counterexample:
        middle = low[row, list(at)] / 2 + high[row, list(at)] / 2
        fixed = {name: float(settings[row, k]) for k, name in enumerate(others)}
        return Counterexample(by, tuple(map(float, axis[list(at)])), tuple(map(float, middle)), fixed)

    drop, rise = _drop(low, high), _drop(-high, -low)
    peak = _peak(low, high)
    steps = {
        name: float(ends[1] - ends[0]) / ((points if name == by else a_side) - 1)
        for name, ends in box.items()
    }
    return Contradictions(
        example(*drop) if drop else None,
        example(*rise) if rise else None,
        example(*peak) if peak else None,
        steps if regular else {},
    )


def _places(low: float, high: float, count: int) -> Array:
    if np.isfinite([low, high]).all():
        return spread(low, high, np.linspace(0, 1, count)) if low < high else np.array([low])
    far = np.append(0.0, np.geomspace(_NEAR, _FARTHEST, count))
    if np.isfinite(low):
        return low + far
    return high - far[::-1] if np.isfinite(high) else np.append(-far[:0:-1], far)


def _between(dimensions: int, box: Box, others: list[str]) -> Array:
    """Settings that fill the box evenly: multiples of irrational steps, folded back."""
    if not dimensions:
        return np.zeros((1, 0))
    root = 2.0
    for _ in range(50):  # the step of each axis is a power of 1 / root, where root**(d + 1) = root + 1
        root = (1 + root) ** (1 / (dimensions + 1))
    at = (0.5 + np.outer(np.arange(1, _BETWEEN + 1), root ** -np.arange(1.0, dimensions + 1))) % 1
    return np.stack([spread(*box[name], at[:, k]) for k, name in enumerate(others)], axis=1)


def _drop(low: Array, high: Array) -> tuple[int, int, int] | None:
    """Where it falls most: a row, an earlier and a later place."""
    if low.shape[1] < 2:  # noqa: PLR2004 - two places
        return None
    with np.errstate(invalid="ignore"):
        fall = np.nan_to_num(np.maximum.accumulate(low, axis=1)[:, :-1] - high[:, 1:], nan=-np.inf)
    row, at = np.unravel_index(fall.argmax(), fall.shape)
    return (int(row), int(low[row, : at + 1].argmax()), int(at) + 1) if fall[row, at] > 0 else None


def _peak(low: Array, high: Array) -> tuple[int, int, int, int] | None:
    """Where it stands most above an earlier and a later place: a row, and the three places."""
    if low.shape[1] < 3:  # noqa: PLR2004 - three places
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
