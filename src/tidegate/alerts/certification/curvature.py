"""Shapes by composition: the shapes of the parts of an expression imply its own shape in one input.

The sum of increasing functions is increasing. The square of a linear function is convex. An increasing function of a
quasiconvex one is quasiconvex, and so is the greatest of several. These are the rules of disciplined (quasi)convex
programming, applied to one input, for all values of the others in their ranges. They prove cases that bounds of
derivatives cannot, such as a distance at the point where it is 0, or an infinite range.

References
----------
Optimization of Threshold Functions over Streams, sections 2.2 and 5.
Agrawal and Boyd, Disciplined Quasiconvex Programming, section 3 (the rules).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import reduce
from operator import and_
from typing import Final

import numpy as np

from tidegate.alerts.certification.enclosure import RECIPROCAL, Enclosure, as_function
from tidegate.alerts.certification.functions import FUNCTIONS, Function
from tidegate.alerts.certification.intervals import Interval
from tidegate.alerts.expressions.nodes import Call, Node, input_names


@dataclass(frozen=True)
class CurveShape:
    """The known properties of an expression as a function of one input, for all values of the others.

    A property is False if it is unknown. A constant has all of them; a linear function is convex and concave. A
    function that is quasiconvex and quasiconcave is monotone for all values of the others, but perhaps not always in
    the same direction.
    """

    increasing: bool = False
    decreasing: bool = False
    convex: bool = False
    concave: bool = False
    quasiconvex: bool = False
    quasiconcave: bool = False

    def __post_init__(self) -> None:
        monotone = self.increasing or self.decreasing
        object.__setattr__(self, "quasiconvex", self.quasiconvex or self.convex or monotone)
        object.__setattr__(self, "quasiconcave", self.quasiconcave or self.concave or monotone)

    @property
    def linear(self) -> bool:
        """Whether it is linear for all values of the others."""
        return self.convex and self.concave

    @property
    def monotone(self) -> bool:
        """Whether it is monotone for all values of the others, perhaps not in the same direction."""
        return self.quasiconvex and self.quasiconcave

    def __neg__(self) -> CurveShape:
        return CurveShape(
            self.decreasing, self.increasing, self.concave, self.convex, self.quasiconcave, self.quasiconvex
        )

    def __and__(self, other: CurveShape) -> CurveShape:
        mine, theirs = vars(self), vars(other)
        return CurveShape(**{name: mine[name] and theirs[name] for name in mine})

    def __or__(self, other: CurveShape) -> CurveShape:
        mine, theirs = vars(self), vars(other)
        return CurveShape(**{name: mine[name] or theirs[name] for name in mine})


CONSTANT = CurveShape(*[True] * 6)
UNKNOWN = CurveShape()


def curve_shape(tree: Node, by: str, box: Mapping[str, Interval]) -> CurveShape:
    """The shape of an expression in the input `by`, by the rules, over a box on which it is defined.

    Examples
    --------
    >>> box = {"x": Interval.of(-np.inf, np.inf), "y": Interval.of(0, 1)}
    >>> from tidegate.alerts.expressions.parsing import parse
    >>> curve_shape(parse("sqrt(pow(x - y, 2) + 1)"), "x", box).quasiconvex
    True
    >>> curve_shape(parse("x * y"), "x", box).increasing
    True
    """
    if not isinstance(tree, Call) or by not in input_names(tree):
        return replace(CONSTANT, decreasing=by not in input_names(tree))
    if (function := as_function(tree)) is not None:
        return _compose(function, curve_shape(tree.arguments[0], by, box), _range(tree.arguments[0], box))
    if tree.function == "pow":
        return _power(tree, by, box)
    curves = [curve_shape(part, by, box) for part in tree.arguments]
    if tree.function in {"*", "/"}:
        ranges = [_range(part, box) for part in tree.arguments]
        return (_product if tree.function == "*" else _quotient)(tree, by, curves, ranges)
    varying = sum(by in input_names(part) for part in tree.arguments)
    return _COMBINED[tree.function](curves, varying)


def _range(tree: Node, box: Mapping[str, Interval]) -> Interval:
    return Enclosure(box).jet(tree).value


def _sum(curves: list[CurveShape], varying: int) -> CurveShape:
    both = reduce(and_, curves)
    # A sum of quasiconvex parts is not always quasiconvex, unless all but one are constants.
    return both if varying == 1 else CurveShape(both.increasing, both.decreasing, both.convex, both.concave)


def _compose(function: Function, u: CurveShape, over: Interval) -> CurveShape:
    """A function of an expression whose values lie in the range `over`."""
    slope, bend = function.slope(over), function.bend(over)
    up, down = bool(np.all(slope.low >= 0)), bool(np.all(slope.high <= 0))
    convex, concave = bool(np.all(bend.low >= 0)), bool(np.all(bend.high <= 0))
    return CurveShape(
        increasing=(up and u.increasing) or (down and u.decreasing),
        decreasing=(up and u.decreasing) or (down and u.increasing),
        convex=convex and (u.linear or (up and u.convex) or (down and u.concave)),
        concave=concave and (u.linear or (up and u.concave) or (down and u.convex)),
        quasiconvex=(up and u.quasiconvex) or (down and u.quasiconcave) or (convex and u.monotone),
        quasiconcave=(up and u.quasiconcave) or (down and u.quasiconvex) or (concave and u.monotone),
    )


def _scale(u: CurveShape, factor: Interval) -> CurveShape:
    """An expression times a factor that does not depend on the input."""
    if np.all(factor.low >= 0):
        return u
    if np.all(factor.high <= 0):
        return -u
    return CurveShape(convex=u.linear, concave=u.linear, quasiconvex=u.monotone, quasiconcave=u.monotone)


def _product(tree: Call, by: str, curves: list[CurveShape], ranges: list[Interval]) -> CurveShape:
    for at in (0, 1):
        if by not in input_names(tree.arguments[at]):
            return _scale(curves[1 - at], ranges[at])
    return _times(curves, ranges)


def _times(curves: list[CurveShape], ranges: list[Interval]) -> CurveShape:
    (u, v), (over_u, over_v) = curves, ranges
    # The slope is u'v + uv', whose sign follows if both terms have the same sign.
    increasing = _scale(u, over_v).increasing and _scale(v, over_u).increasing
    decreasing = _scale(u, over_v).decreasing and _scale(v, over_u).decreasing
    if np.all(over_u.high <= 0) and np.all(over_v.high <= 0):
        u, v, over_u, over_v = -u, -v, -over_u, -over_v
    positive = bool(np.all(over_u.low >= 0) and np.all(over_v.low >= 0))
    same = (u.increasing and v.increasing) or (u.decreasing and v.decreasing)
    return CurveShape(increasing, decreasing, convex=positive and same and u.convex and v.convex)


def _quotient(tree: Call, by: str, curves: list[CurveShape], ranges: list[Interval]) -> CurveShape:
    (u, v), (over_u, over_v) = curves, ranges
    inverse = _compose(RECIPROCAL, v, over_v)
    if by not in input_names(tree.arguments[0]):
        return _scale(inverse, over_u)
    if by not in input_names(tree.arguments[1]):
        return _scale(u, over_v)
    if np.all(over_v.high < 0):
        u, v, over_u, over_v = -u, -v, -over_u, -over_v
    if not np.all(over_v.low > 0):
        return UNKNOWN
    # u/v <= t iff u - tv <= 0, which is convex in the input when u is and tv is concave.
    positive, negative = bool(np.all(over_u.low >= 0)), bool(np.all(over_u.high <= 0))
    return _times([u, _compose(RECIPROCAL, v, over_v)], [over_u, over_v.reciprocal()]) | CurveShape(
        quasiconvex=u.convex and (v.linear or (positive and v.concave) or (negative and v.convex)),
        quasiconcave=u.concave and (v.linear or (positive and v.convex) or (negative and v.concave)),
    )


def _power(tree: Call, by: str, box: Mapping[str, Interval]) -> CurveShape:
    """`u` to a power that is not constant: exp(v ln u)."""
    base, exponent = tree.arguments
    product = Call("*", (exponent, Call("ln", (base,))))
    return _compose(FUNCTIONS["exp"], curve_shape(product, by, box), _range(product, box))


def _greatest(curves: list[CurveShape], varying: int) -> CurveShape:
    found = reduce(and_, curves)
    # If the other parts are constants, the curve is only cut off from below.
    return replace(found, concave=False, quasiconcave=found.quasiconcave and varying == 1)


_COMBINED: Final[dict[str, Callable[[list[CurveShape], int], CurveShape]]] = {
    "+": _sum,
    "-": lambda curves, varying: _sum([curves[0], -curves[1]], varying),
    "negate": lambda curves, _: -curves[0],
    "greatest": _greatest,
    "least": lambda curves, varying: -_greatest([-each for each in curves], varying),
}
