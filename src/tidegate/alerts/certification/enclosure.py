"""Bounds of an expression over boxes: of its value, and of its first two derivatives by one input.

Derivatives are computed forward through the tree by the rules for sums, products and chains, on intervals. So they
hold for every point of a box. They include kinks and jumps (see `functions`), so a slope that is 0 or more means
increasing across these, too. Boxes on which an operation may not be defined are recorded.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import reduce
from typing import Final, NamedTuple

import numpy as np

from tidegate.alerts.certification.functions import FUNCTIONS, Function, constant_power
from tidegate.alerts.certification.intervals import ONE, ZERO, Interval
from tidegate.alerts.expressions.evaluation import evaluate
from tidegate.alerts.expressions.nodes import Call, Name, Node, Number, input_names, to_sql
from tidegate.types import Array

_TWO = Interval.of(2.0)


class Jet(NamedTuple):
    """A value and its first two derivatives by one input; None if it does not depend on the input."""

    value: Interval
    slope: Interval | None = None
    bend: Interval | None = None


class UnmetRequirement(NamedTuple):
    """A requirement of a part of an expression, and the boxes on which it may not be met."""

    text: str
    boxes: Array


class Enclosure:
    """Bounds of expressions over boxes.

    Parameters
    ----------
    box
        The range of each input, as columns with one entry per box.
    by
        The input of the derivatives, if any.

    Examples
    --------
    >>> from tidegate.alerts.expressions.parsing import parse
    >>> Enclosure({"x": Interval.of(1, 2)}, by="x").jet(parse("x * x - 3"))
    Jet(value=Interval([-2, 1]), slope=Interval([2, 4]), bend=Interval([2, 2]))
    """

    def __init__(self, box: Mapping[str, Interval], by: str | None = None) -> None:
        self.box = box
        self.by = by
        self.unmet: list[UnmetRequirement] = []

    def jet(self, tree: Node) -> Jet:
        """The bounds of an expression; requirements that may not be met are added to `unmet`."""
        if isinstance(tree, Number):
            return Jet(Interval.of(tree.value))
        if isinstance(tree, Name):
            return Jet(self.box[tree.name], *((ONE, ZERO) if tree.name == self.by else ()))
        if (function := as_function(tree)) is not None:
            return self._chain(function, tree.arguments[0], to_sql(tree))
        if tree.function == "pow":
            return self._general_power(tree)
        jets = [self.jet(part) for part in tree.arguments]
        if tree.function == "/":
            divisor = jets[1].value
            self._require(
                f"the divisor {to_sql(tree.arguments[1])} must not be 0",
                (divisor.low > 0) | (divisor.high < 0),
            )
        return reduce(_OPERATORS[tree.function], jets) if len(jets) > 1 else _negative(jets[0])

    def _chain(self, function: Function, argument: Node, text: str) -> Jet:
        inner = self.jet(argument)
        self._require(f"{text} needs {to_sql(argument)} {function.needs}", function.defined(inner.value))
        return apply_function(function, inner)

    def _general_power(self, tree: Call) -> Jet:
        """`u` to a power that is not constant: exp(v ln u)."""
        base, exponent = tree.arguments
        inner = self._chain(FUNCTIONS["ln"], base, to_sql(tree))
        return apply_function(FUNCTIONS["exp"], _product(self.jet(exponent), inner))

    def _require(self, text: str, met: Array) -> None:
        if not np.all(met):
            self.unmet.append(UnmetRequirement(text, ~met))


RECIPROCAL = constant_power(-1.0)


def as_function(tree: Call) -> Function | None:
    """The function of one argument that a call is, such as ln(u), pow(u, 3) or u * u; None if it is not one."""
    if tree.function in FUNCTIONS:
        return FUNCTIONS[tree.function]
    if tree.function == "*" and tree.arguments[0] == tree.arguments[1]:
        return constant_power(2.0)
    if tree.function != "pow":
        return None
    exponent = tree.arguments[1]
    if input_names(exponent) or not np.isfinite(fixed := float(evaluate(exponent, {}))):
        return None
    return constant_power(fixed)


def apply_function(function: Function, inner: Jet) -> Jet:
    """The bounds of a function of an expression, by the chain rule."""
    value = function.bounds(inner.value)
    if inner.slope is None or inner.bend is None:
        return Jet(value)
    slope, bend = function.slope(inner.value), function.bend(inner.value)
    square = constant_power(2.0).bounds(inner.slope)
    return Jet(value, slope * inner.slope, bend * square + slope * inner.bend)


def _sum(u: Jet, v: Jet) -> Jet:
    return Jet(u.value + v.value, _add(u.slope, v.slope), _add(u.bend, v.bend))


def _negative(u: Jet) -> Jet:
    return Jet(-u.value, *(None if part is None else -part for part in u[1:]))


def _difference(u: Jet, v: Jet) -> Jet:
    return _sum(u, _negative(v))


def _product(u: Jet, v: Jet) -> Jet:
    slope = _add(_times(u.slope, v.value), _times(v.slope, u.value))
    bend = _add(_times(u.bend, v.value), _times(v.bend, u.value))
    if u.slope is not None and v.slope is not None:
        bend = _add(bend, _TWO * u.slope * v.slope)
    return Jet(u.value * v.value, slope, bend)


def _add(u: Interval | None, v: Interval | None) -> Interval | None:
    return u if v is None else v if u is None else u + v


def _times(u: Interval | None, v: Interval) -> Interval | None:
    return None if u is None else u * v


def _greatest(u: Jet, v: Jet) -> Jet:
    value = Interval(np.maximum(u.value.low, v.value.low), np.maximum(u.value.high, v.value.high))
    if u.slope is None and v.slope is None:
        return Jet(value)
    first, second = u.value.low >= v.value.high, v.value.low >= u.value.high
    slopes, bends = (u.slope or ZERO, v.slope or ZERO), (u.bend or ZERO, v.bend or ZERO)
    # Where the two cross there is a kink, with an unbounded positive second derivative.
    crossing = bends[0].hull(bends[1])
    crossing = Interval(crossing.low, np.full_like(crossing.high, np.inf))
    return Jet(
        value,
        slopes[0].where(first, slopes[1].where(second, slopes[0].hull(slopes[1]))),
        bends[0].where(first, bends[1].where(second, crossing)),
    )


def _least(u: Jet, v: Jet) -> Jet:
    return _negative(_greatest(_negative(u), _negative(v)))


_OPERATORS: Final[dict[str, Callable[[Jet, Jet], Jet]]] = {
    "+": _sum,
    "-": _difference,
    "*": _product,
    "/": lambda u, v: _product(u, apply_function(RECIPROCAL, v)),
    "greatest": _greatest,
    "least": _least,
}
