"""Bounds of the functions that an expression may call: of their value, first derivative and second derivative.

For a range of its argument, each function gives the range of its value, of its first derivative (slope) and of its
second derivative (bend). Kinks and jumps are included: the bend of abs is unbounded above at 0 but never negative,
and so is the slope of floor. So a slope of 0 or more means increasing, and a bend of 0 or more means convex.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

import numpy as np

from tidegate.alerts.certification.intervals import ANY, ONE, ZERO, Interval, bound_increasing, product, sine
from tidegate.types import Array


def _everywhere(u: Interval) -> Array:
    return np.ones(np.shape(u.low), dtype=bool)


@dataclass(frozen=True)
class Function:
    """A function of one argument.

    Parameters
    ----------
    bounds, slope, bend
        The ranges of its value and its two derivatives, for ranges of its argument.
    defined
        Whether it is defined on the whole of a range.
    needs
        The condition on its argument for that, in words.
    """

    bounds: Callable[[Interval], Interval]
    slope: Callable[[Interval], Interval]
    bend: Callable[[Interval], Interval]
    defined: Callable[[Interval], Array] = _everywhere
    needs: str = ""


def constant_power(exponent: float) -> Function:
    """`u` to a constant power: with a whole exponent for all numbers, else for numbers that are not negative."""
    whole = exponent.is_integer()
    # Fractional powers of negative numbers, and negative powers of 0, are not defined.
    needs = ("" if whole else "0 or more") if exponent >= 0 else ("other than 0" if whole else "above 0")

    def defined(u: Interval) -> Array:
        if not whole:
            return u.low >= 0 if exponent > 0 else u.low > 0
        return _everywhere(u) if exponent >= 0 else (u.low > 0) | (u.high < 0)

    return Function(
        lambda u: _power(u, exponent),
        lambda u: Interval.of(exponent) * _power(u, exponent - 1) if exponent else ZERO,
        lambda u: _bend_of_power(u, exponent),
        defined,
        needs,
    )


def _bend_of_power(u: Interval, exponent: float) -> Interval:
    factor = Interval.of(exponent) * Interval.of(exponent - 1)
    return ZERO if exponent in {0.0, 1.0} else factor * _power(u, exponent - 2)


def _power(u: Interval, exponent: float) -> Interval:
    if exponent == 0:
        return Interval(np.ones_like(u.low), np.ones_like(u.high))
    if exponent == 1:
        return u
    if exponent < 0:
        return _power(u, -exponent).reciprocal()
    if exponent.is_integer() and exponent % 2:
        return bound_increasing(lambda x: np.power(x, exponent), u, root=0.0)
    # Even or fractional: a power of |u|, which for a fractional exponent is u wherever it is defined.
    size = _absolute(u)
    if exponent == 2:  # noqa: PLR2004 - squares are exact where they can be
        return Interval(product(size.low, size.low, -np.inf), product(size.high, size.high, np.inf))
    return bound_increasing(lambda x: np.power(x, exponent), size).clipped(0.0, np.inf)


def _logarithm(function: Callable[[Array], Array], base: float) -> Function:
    scale = Interval.of(*np.nextafter(np.log(base), [-np.inf, np.inf])) if base != np.e else ONE

    return Function(
        lambda u: bound_increasing(function, u.clipped(0.0, np.inf), root=1.0),
        lambda u: (u.clipped(0.0, np.inf) * scale).reciprocal(),
        lambda u: -(_power(u.clipped(0.0, np.inf), 2.0) * scale).reciprocal(),
        lambda u: u.low > 0,
        "above 0",
    )


def _exponential(u: Interval) -> Interval:
    return bound_increasing(np.exp, u).clipped(0.0, np.inf)


def _tanh(u: Interval) -> Interval:
    return bound_increasing(np.tanh, u, root=0.0).clipped(-1.0, 1.0)


def _tanh_slope(u: Interval) -> Interval:
    return (ONE - _power(_tanh(u), 2.0)).clipped(0.0, 1.0)


def _sign(u: Interval) -> Interval:
    return Interval(np.sign(u.low), np.sign(u.high))


def _floors(u: Interval) -> Interval:
    return Interval(np.floor(u.low), np.floor(u.high))


def _ceilings(u: Interval) -> Interval:
    return Interval(np.ceil(u.low), np.ceil(u.high))


def _derivative_of_steps(
    bounds: Callable[[Interval], Interval], at_jump: Interval
) -> Callable[[Interval], Interval]:
    """A derivative of a step function: 0, or `at_jump` if the range contains a jump."""

    def derivative(u: Interval) -> Interval:
        steps = bounds(u)
        return ZERO.where(steps.low == steps.high, at_jump)

    return derivative


_NOT_NEGATIVE = Interval.of(0.0, np.inf)
_QUARTER_TURN = Interval.of(np.nextafter(np.pi / 2, 0), np.nextafter(np.pi / 2, 2))


def _cosine(u: Interval) -> Interval:
    return sine(u + _QUARTER_TURN)


def _absolute(u: Interval) -> Interval:
    inside = (u.low <= 0) & (u.high >= 0)
    ends = abs(u.low), abs(u.high)
    return Interval(np.where(inside, 0.0, np.minimum(*ends)), np.maximum(*ends))


def _slope_of_absolute(u: Interval) -> Interval:
    return Interval(np.where(u.low >= 0, 1.0, -1.0), np.where(u.high <= 0, -1.0, 1.0))


_ROOT = constant_power(0.5)


FUNCTIONS: Final[dict[str, Function]] = {
    "ln": _logarithm(np.log, np.e),
    "log10": _logarithm(np.log10, 10.0),
    "log2": _logarithm(np.log2, 2.0),
    "exp": Function(_exponential, _exponential, _exponential),
    "sqrt": Function(
        lambda u: bound_increasing(np.sqrt, u.clipped(0.0, np.inf)).clipped(0.0, np.inf),
        lambda u: _ROOT.slope(u.clipped(0.0, np.inf)),
        lambda u: _ROOT.bend(u.clipped(0.0, np.inf)),
        lambda u: u.low >= 0,
        "0 or more",
    ),
    "abs": Function(
        _absolute, _slope_of_absolute, lambda u: ZERO.where((u.low >= 0) | (u.high <= 0), _NOT_NEGATIVE)
    ),
    "sin": Function(sine, _cosine, lambda u: -sine(u)),
    "cos": Function(_cosine, lambda u: -sine(u), lambda u: -_cosine(u)),
    "tanh": Function(_tanh, _tanh_slope, lambda u: Interval.of(-2.0) * _tanh(u) * _tanh_slope(u)),
    "atan": Function(
        lambda u: bound_increasing(np.arctan, u, root=0.0),
        lambda u: (ONE + _power(u, 2.0)).reciprocal(),
        lambda u: Interval.of(-2.0) * u * _power(ONE + _power(u, 2.0), 2.0).reciprocal(),
    ),
    "sign": Function(_sign, _derivative_of_steps(_sign, _NOT_NEGATIVE), _derivative_of_steps(_sign, ANY)),
    "floor": Function(
        _floors, _derivative_of_steps(_floors, _NOT_NEGATIVE), _derivative_of_steps(_floors, ANY)
    ),
    "ceil": Function(
        _ceilings, _derivative_of_steps(_ceilings, _NOT_NEGATIVE), _derivative_of_steps(_ceilings, ANY)
    ),
}
"""The functions by their name in the syntax tree; the same names as in `evaluation.FUNCTIONS`."""
