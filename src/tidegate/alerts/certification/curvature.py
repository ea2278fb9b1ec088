"""Shapes by composition: what is known of the parts of an expression says what the whole is in one input.

Rising plus rising is rising, the square of something linear is convex, a rising function of something quasiconvex
is quasiconvex, and so is the greatest of several. These are the rules of disciplined (quasi)convex programming,
applied to one input while all others stand anywhere in their range. They see what bounds of derivatives cannot,
such as a distance at the point where it is 0, or a range without end.

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
from tidegate.alerts.expressions.nodes import Call, Node, names


@dataclass(frozen=True)
class Curve:
    """What is known of an expression as a function of one input, wherever the others stand.

    Unknown is False. A constant is all of these; something linear is convex and concave; what is quasiconvex and
    quasiconcave is monotone for each value of the others, not always in the same direction.
    """

    rises: bool = False
    falls: bool = False
    convex: bool = False
    concave: bool = False
    quasiconvex: bool = False
    quasiconcave: bool = False

    def __post_init__(self) -> None:
        monotone = self.rises or self.falls
        object.__setattr__(self, "quasiconvex", self.quasiconvex or self.convex or monotone)
        object.__setattr__(self, "quasiconcave", self.quasiconcave or self.concave or monotone)

    @property
    def linear(self) -> bool:
        """Whether it is a straight line for each value of the others."""
        return self.convex and self.concave

    @property
    def monotone(self) -> bool:
        """Whether it is monotone for each value of the others, perhaps not in the same direction."""
        return self.quasiconvex and self.quasiconcave

    def __neg__(self) -> Curve:
        return Curve(self.falls, self.rises, self.concave, self.convex, self.quasiconcave, self.quasiconvex)

    def __and__(self, other: Curve) -> Curve:
        mine, theirs = vars(self), vars(other)
        return Curve(**{name: mine[name] and theirs[name] for name in mine})

    def __or__(self, other: Curve) -> Curve:
        mine, theirs = vars(self), vars(other)
        return Curve(**{name: mine[name] or theirs[name] for name in mine})


CONSTANT = Curve(*[True] * 6)
UNKNOWN = Curve()


def curve(tree: Node, by: str, box: Mapping[str, Interval]) -> Curve:
    """What the rules say of an expression in the input `by`, over a box on which it is defined.

    Examples
    --------
    >>> box = {"x": Interval.of(-np.inf, np.inf), "y": Interval.of(0, 1)}
    >>> from tidegate.alerts.expressions.parsing import parse
    >>> curve(parse("sqrt(pow(x - y, 2) + 1)"), "x", box).quasiconvex
    True
    >>> curve(parse("x * y"), "x", box).rises
    True
    """
    if not isinstance(tree, Call) or by not in names(tree):
        return replace(CONSTANT, falls=by not in names(tree))
    if (function := as_function(tree)) is not None:
        return _composed(function, curve(tree.arguments[0], by, box), _range(tree.arguments[0], box))
    if tree.function == "pow":
        return _power(tree, by, box)
    curves = [curve(part, by, box) for part in tree.arguments]
    if tree.function in {"*", "/"}:
        ranges = [_range(part, box) for part in tree.arguments]
        return (_product if tree.function == "*" else _quotient)(tree, by, curves, ranges)
    varying = sum(by in names(part) for part in tree.arguments)
    return _COMBINED[tree.function](curves, varying)


def _range(tree: Node, box: Mapping[str, Interval]) -> Interval:
    return Enclosure(box).jet(tree).value


def _sum(curves: list[Curve], varying: int) -> Curve:
    both = reduce(and_, curves)
    # Quasiconvex parts need not have a quasiconvex sum, unless all but one are constants.
    return both if varying == 1 else Curve(both.rises, both.falls, both.convex, both.concave)


def _composed(function: Function, u: Curve, over: Interval) -> Curve:
    slope, bend = function.slope(over), function.bend(over)
    up, down = bool(np.all(slope.low >= 0)), bool(np.all(slope.high <= 0))
    convex, concave = bool(np.all(bend.low >= 0)), bool(np.all(bend.high <= 0))
    return Curve(
        rises=(up and u.rises) or (down and u.falls),
        falls=(up and u.falls) or (down and u.rises),
        convex=convex and (u.linear or (up and u.convex) or (down and u.concave)),
        concave=concave and (u.linear or (up and u.concave) or (down and u.convex)),
        quasiconvex=(up and u.quasiconvex) or (down and u.quasiconcave) or (convex and u.monotone),
        quasiconcave=(up and u.quasiconcave) or (down and u.quasiconvex) or (concave and u.monotone),
    )


def _scaled(u: Curve, by: Interval) -> Curve:
    """Times something that does not depend on the input."""
    if np.all(by.low >= 0):
        return u
    if np.all(by.high <= 0):
        return -u
    return Curve(convex=u.linear, concave=u.linear, quasiconvex=u.monotone, quasiconcave=u.monotone)


def _product(tree: Call, by: str, curves: list[Curve], ranges: list[Interval]) -> Curve:
    for at in (0, 1):
        if by not in names(tree.arguments[at]):
            return _scaled(curves[1 - at], ranges[at])
    return _times(curves, ranges)


def _times(curves: list[Curve], ranges: list[Interval]) -> Curve:
    (u, v), (over_u, over_v) = curves, ranges
    # The slope is u'v + uv': both terms are judged by sign.
    rises = _scaled(u, over_v).rises and _scaled(v, over_u).rises
    falls = _scaled(u, over_v).falls and _scaled(v, over_u).falls
    if np.all(over_u.high <= 0) and np.all(over_v.high <= 0):
        u, v, over_u, over_v = -u, -v, -over_u, -over_v
    positive = bool(np.all(over_u.low >= 0) and np.all(over_v.low >= 0))
    same = (u.rises and v.rises) or (u.falls and v.falls)
    return Curve(rises, falls, convex=positive and same and u.convex and v.convex)


def _quotient(tree: Call, by: str, curves: list[Curve], ranges: list[Interval]) -> Curve:
    (u, v), (over_u, over_v) = curves, ranges
    inverse = _composed(RECIPROCAL, v, over_v)
    if by not in names(tree.arguments[0]):
        return _scaled(inverse, over_u)
    if by not in names(tree.arguments[1]):
        return _scaled(u, over_v)
    if np.all(over_v.high < 0):
        u, v, over_u, over_v = -u, -v, -over_u, -over_v
    if not np.all(over_v.low > 0):
        return UNKNOWN
    # u/v <= t iff u - tv <= 0, which is convex in the input when u is and tv is concave.
    positive, negative = bool(np.all(over_u.low >= 0)), bool(np.all(over_u.high <= 0))
    return _times([u, _composed(RECIPROCAL, v, over_v)], [over_u, over_v.reciprocal()]) | Curve(
        quasiconvex=u.convex and (v.linear or (positive and v.concave) or (negative and v.convex)),
        quasiconcave=u.concave and (v.linear or (positive and v.convex) or (negative and v.concave)),
    )


def _power(tree: Call, by: str, box: Mapping[str, Interval]) -> Curve:
    """`u` to a power that varies: exp(v ln u)."""
    base, exponent = tree.arguments
    product = Call("*", (exponent, Call("ln", (base,))))
    return _composed(FUNCTIONS["exp"], curve(product, by, box), _range(product, box))


def _greatest(curves: list[Curve], varying: int) -> Curve:
    found = reduce(and_, curves)
    # With constants beside it, one curve is only cut off from below.
    return replace(found, concave=False, quasiconcave=found.quasiconcave and varying == 1)


_COMBINED: Final[dict[str, Callable[[list[Curve], int], Curve]]] = {
    "+": _sum,
    "-": lambda curves, varying: _sum([curves[0], -curves[1]], varying),
    "negate": lambda curves, _: -curves[0],
    "greatest": _greatest,
    "least": lambda curves, varying: -_greatest([-each for each in curves], varying),
}
