"""Interval arithmetic: bounds of a formula over whole ranges of its inputs.

An `Interval` holds the lower and the upper ends of many ranges as columns, so that thousands of boxes are bounded at
once. Every result contains all values of the operation for numbers of its operands: ends are rounded outwards. Sums
and products are rounded only where they are not exact, and keep their sign, so that a square is never negative.

Accuracy: + - * / are rounded correctly, and widened by one unit in the last place (ulp). NumPy's functions
(`bound_increasing`) are assumed to be exact to 8 ulp, twice the error that their vectorized loops guarantee.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from tidegate.types import Array

_ULPS = 8
_TINY = 1e-280  # below this, the rounding error itself may underflow
_FAR = 1e8  # beyond this, the phase of a sine is not reliable


@dataclass(frozen=True, slots=True, eq=False)
class Interval:
    """The ranges `low[i] .. high[i]`, with closed ends; infinite ends are not included.

    Examples
    --------
    >>> x = Interval.of(-1, 2)
    >>> x + x, x * x
    (Interval([-2, 4]), Interval([-2, 4]))
    >>> Interval.of(1, 4).reciprocal()
    Interval([0.25, 1])
    """

    low: Array
    high: Array

    @classmethod
    def of(cls, low: float | Array, high: float | Array | None = None) -> Interval:
        """The range between two ends, or a single number."""
        lower = np.asarray(low, dtype=np.float64)
        return cls(lower, lower if high is None else np.asarray(high, dtype=np.float64))

    def __repr__(self) -> str:
        return f"Interval({', '.join(f'[{a:.6g}, {b:.6g}]' for a, b in zip(*self._ends(), strict=True))})"

    def _ends(self) -> tuple[Array, Array]:
        return np.ravel(self.low), np.ravel(self.high)

    def __add__(self, other: Interval) -> Interval:
        return Interval(_sum(self.low, other.low, -np.inf), _sum(self.high, other.high, np.inf))

    def __neg__(self) -> Interval:
        return Interval(-self.high, -self.low)

    def __sub__(self, other: Interval) -> Interval:
        return self + -other

    def __mul__(self, other: Interval) -> Interval:
        pairs = [(a, b) for a in (self.low, self.high) for b in (other.low, other.high)]
        return Interval(
            np.minimum.reduce([product(a, b, -np.inf) for a, b in pairs]),
            np.maximum.reduce([product(a, b, np.inf) for a, b in pairs]),
        )

    def __truediv__(self, other: Interval) -> Interval:
        return self * other.reciprocal()

    def reciprocal(self) -> Interval:
        """1 divided by the interval; unbounded where that contains 0."""
        with np.errstate(divide="ignore", over="ignore"):
            low = np.where(self.high == 0, -np.inf, np.nextafter(1 / self.high, -np.inf))
            high = np.where(self.low == 0, np.inf, np.nextafter(1 / self.low, np.inf))
        inside = (self.low < 0) & (self.high > 0)
        low = np.where(self.low >= 0, np.maximum(low, 0.0), low)
        high = np.where(self.high <= 0, np.minimum(high, 0.0), high)
        both = (self.low == 0) & (self.high == 0)
        return Interval(np.where(inside | both, -np.inf, low), np.where(inside | both, np.inf, high))

    def hull(self, other: Interval) -> Interval:
        """The smallest interval that contains both."""
        return Interval(np.minimum(self.low, other.low), np.maximum(self.high, other.high))

    def where(self, mask: Array, other: Interval) -> Interval:
        """Itself where the mask is true, elsewhere the other."""
        return Interval(np.where(mask, self.low, other.low), np.where(mask, self.high, other.high))

    def clipped(self, least: float, most: float) -> Interval:
        """The ends limited to the possible values of the operation."""
        return Interval(np.clip(self.low, least, most), np.clip(self.high, least, most))


ZERO = Interval.of(0.0)
ONE = Interval.of(1.0)
ANY = Interval.of(-np.inf, np.inf)


def bound_increasing(function: Callable[[Array], Array], u: Interval, root: float | None = None) -> Interval:
    """The range of an increasing NumPy function over `u`; it does not change its sign beyond its root."""
    with np.errstate(all="ignore"):
        low, high = _widen(function(u.low), -np.inf), _widen(function(u.high), np.inf)
    if root is None:
        return Interval(low, high)
    return Interval(
        np.where(u.low >= root, np.maximum(low, 0.0), low),
        np.where(u.high <= root, np.minimum(high, 0.0), high),
    )


def sine(u: Interval) -> Interval:
    """The range of sin."""
    found = bound_increasing(np.sin, Interval(u.low, u.low)).hull(
        bound_increasing(np.sin, Interval(u.high, u.high))
    )
    # An extreme that is missed only by rounding counts as included.
    tolerance = 1e-6
    low, high = u.low - tolerance, u.high + tolerance
    unreliable = ~((abs(u.low) < _FAR) & (abs(u.high) < _FAR))

    def includes(at: float) -> Array:
        """Whether a range contains this angle, up to multiples of 2 pi."""
        with np.errstate(invalid="ignore"):
            periods = np.floor((high - at) / (2 * np.pi)) - np.ceil((low - at) / (2 * np.pi))
        return np.asarray(unreliable | (periods >= 0))

    # It is not negative from 0 to pi, and not positive from -pi to 0.
    least = np.where((u.low >= 0) & (u.high <= np.pi), 0.0, -1.0)
    most = np.where((u.low >= -np.pi) & (u.high <= 0), 0.0, 1.0)
    return Interval(
        np.maximum(np.where(includes(-np.pi / 2), -1.0, found.low), least),
        np.minimum(np.where(includes(np.pi / 2), 1.0, found.high), most),
    )


def _sum(a: Array, b: Array, towards: float) -> Array:
    with np.errstate(invalid="ignore", over="ignore"):
        total = a + b
        part = total - a
        error = (a - (total - part)) + (b - part)  # the exact rounding error
        safe = error >= 0 if towards < 0 else error <= 0
        ends = np.where(safe, total, np.nextafter(total, towards))
    return np.where(np.isnan(total), towards, ends)


def product(a: Array, b: Array, towards: float) -> Array:
    """The product of two columns, rounded towards an infinity unless it is exact; 0 times infinity is 0."""
    with np.errstate(invalid="ignore", over="ignore", under="ignore"):
        whole = a * b
        (a_high, a_low), (b_high, b_low) = _halves(a), _halves(b)
        error = ((a_high * b_high - whole) + a_high * b_low + a_low * b_high) + a_low * b_low
        exact = (error == 0) & (abs(whole) > _TINY)
        ends = np.where(exact, whole, np.nextafter(whole, towards))
    ends = np.where((a > 0) == (b > 0), np.maximum(ends, 0.0), np.minimum(ends, 0.0))
    return np.where((a == 0) | (b == 0), 0.0, ends)


def _halves(a: Array) -> tuple[Array, Array]:
    """Two numbers with half of the digits each that add up to `a`, so that their products are exact."""
    scaled = 134217729.0 * a  # 2**27 + 1
    high = scaled - (scaled - a)
    return high, a - high


def _widen(value: Array, towards: float) -> Array:
    with np.errstate(invalid="ignore", over="ignore"):
        ends = value + np.sign(towards) * _ULPS * np.spacing(np.minimum(abs(value), np.finfo(float).max))
    # An end that overflowed is above the largest float, but not infinite.
    overflowed = np.isinf(value) & (np.sign(value) != np.sign(towards))
    ends = np.where(overflowed, -np.sign(towards) * np.finfo(float).max, ends)
    return np.where(np.isnan(ends), towards, ends)
