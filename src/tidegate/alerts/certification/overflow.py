"""Where an expression can be computed in 64-bit floats: no part of it is beyond what they hold.

What overflows becomes infinite, and then infinity minus infinity, or times 0, is NaN, which raises no alarm. So a
row that was kept in place of another could lose the other's alarm, although the exact margin has the shape that was
proven. Bounds of every part of the expression show over which ranges of the inputs this cannot happen. They are
rounded outwards, so they hold for what floats give, too.

The limit is 2**1000, not the largest float, 2**1024: sums of terms that are within it do not overflow in any order.
Underflow needs nothing of the kind: it is a rounding, and a divisor or the argument of a logarithm that could be
rounded to 0 counts as not defined.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, NamedTuple

import numpy as np

from tidegate.alerts.certification.enclosure import Enclosure, Jet
from tidegate.alerts.certification.intervals import Interval
from tidegate.alerts.certification.subdivision import Box, Settled, settle
from tidegate.alerts.expressions.nodes import Call, Node, Number, names, sql
from tidegate.types import Array

LARGEST: Final = 2.0**1000
_EXPONENTS: Final = (-10, 1000)
_MOST: Final = 5_000
_FEW: Final = 512
_MOST_INPUTS: Final = 8


class Limits(NamedTuple):
    """Between which ends inputs may lie; or what overflows, and over which range, if there are none such."""

    box: dict[str, tuple[float, float]]
    problem: str = ""


def limits(tree: Node, box: Box) -> Limits:
    """The ranges of the inputs of an expression for which it does not overflow.

    Finite ends stay as they are. Infinite ends are moved to powers of 2, as far out as possible: first all to the
    same, and then each farther.

    Examples
    --------
    >>> from tidegate.alerts.expressions.parsing import parse
    >>> limits(parse("exp(x) * y"), {"x": (0, np.inf), "y": (-1, 1)}).box
    {'x': (0, 512.0), 'y': (-1, 1)}
    >>> limits(parse("exp(x) * y"), {"x": (0, 800), "y": (-1, 1)}).problem
    'overflows: exp(x) can be beyond 1e+301 with x in 0 .. 800'
    """
    open_ends = [name for name, ends in box.items() if np.isinf(ends).any()]
    if not open_ends:
        found = _settled(tree, box, _MOST)
        return Limits(dict(box), "" if found.holds else _problem(tree, box, found.stuck))
    least, most = _EXPONENTS
    nearest = {name: _nearest(box[name], least) for name in open_ends}

    def within(exponents: dict[str, int]) -> dict[str, tuple[float, float]]:
        moved = {name: _cut(box[name], 2.0 ** max(at, nearest[name])) for name, at in exponents.items()}
        return {**box, **moved}

    def fits(exponents: dict[str, int]) -> bool:
        cut = within(exponents)
        return not _beyond(tree, cut) and _settled(tree, cut, _FEW).holds

    start = _greatest(lambda at: fits(dict.fromkeys(open_ends, at)), least, most)
    if start is None:
        found = _settled(tree, within(dict.fromkeys(open_ends, least)), _MOST)
        return Limits(dict(box), _problem(tree, box, found.stuck or dict(box)))
    chosen = dict.fromkeys(open_ends, start)
    for name in open_ends if start < most else ():

        def alone(at: int, name: str = name) -> bool:
            return fits({**chosen, name: at})

        chosen[name] = _greatest(alone, start, most) or start
    return Limits(within(chosen))


class _Watched(Enclosure):
    """Bounds that note where a part is beyond the limit."""

    def jet(self, tree: Node) -> Jet:
        found = super().jet(tree)
        if not isinstance(tree, Number):
            self._note(sql(tree), (found.value.low >= -LARGEST) & (found.value.high <= LARGEST))
        return found


def _beyond(tree: Node, box: Box) -> bool:
    """Whether it overflows at one of some points: ends, and places in the middle."""
    if len(box) > _MOST_INPUTS:
        return False
    places = [np.unique([low, min(max(0.0, low), high), high]) for low, high in box.values()]
    points = [axis.ravel() for axis in np.meshgrid(*places)]
    bounds = _Watched({name: Interval.of(column) for name, column in zip(box, points, strict=True)})
    bounds.jet(tree)
    return bool(bounds.gaps)


def _settled(tree: Node, box: Box, most: int) -> Settled:
    def fits(piece: dict[str, Interval]) -> Array:
        bounds = _Watched(piece)
        bounds.jet(tree)
        shape = np.broadcast_shapes(*(ends.low.shape for ends in piece.values()))
        sound = np.ones(shape, bool)
        for gap in bounds.gaps:
            sound &= ~np.broadcast_to(gap.boxes, shape)
        return sound

    return settle(box, fits, most)


def _problem(tree: Node, box: Box, stuck: Box) -> str:
    """Which part overflows first, and over which ranges of its inputs."""
    bounds = _Watched({name: Interval.of(*ends) for name, ends in stuck.items()})
    bounds.jet(tree)
    what = bounds.gaps[0].what if bounds.gaps else sql(tree)
    inputs = [name for name in names(tree) if name in _inputs(tree, what)] or list(names(tree))
    ranges = ", ".join(f"{name} in {box[name][0]:g} .. {box[name][1]:g}" for name in inputs)
    return f"overflows: {what} can be beyond {LARGEST:.0e} with {ranges}"


def _inputs(tree: Node, what: str) -> tuple[str, ...]:
    """The inputs of the part that is written so."""
    if sql(tree) == what:
        return names(tree)
    parts = tree.arguments if isinstance(tree, Call) else ()
    return next((found for part in parts if (found := _inputs(part, what))), ())


def _nearest(ends: tuple[float, float], least: int) -> int:
    """The least power of 2 that is beyond the finite end, if there is one."""
    finite = [abs(end) for end in ends if np.isfinite(end) and end]
    return max([least, *(int(np.frexp(end)[1]) for end in finite)])


def _cut(ends: tuple[float, float], bound: float) -> tuple[float, float]:
    low, high = ends
    return (-bound if low == -np.inf else low), (bound if high == np.inf else high)


def _greatest(holds: Callable[[int], bool], least: int, most: int) -> int | None:
    """The greatest number for which it holds, if it holds for all below; None if for none."""
    if holds(most):
        return most
    if not holds(least):
        return None
    while most - least > 1:
        middle = (least + most) // 2
        least, most = (middle, most) if holds(middle) else (least, middle)
    return least
