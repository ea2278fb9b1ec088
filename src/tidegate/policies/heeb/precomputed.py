"""Precomputed expected benefits by the last value: a curve for a walk, a surface for a level."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import TYPE_CHECKING, Final, TypeVar

import numpy as np

from tidegate.compiled import inlined, kernel
from tidegate.models import AR1, History, Problem, RandomWalk, gains
from tidegate.models.processes.process import as_integers
from tidegate.models.validation import at_least_one
from tidegate.policies.heeb.survival import Exponential, Survival
from tidegate.types import Array, InputError, check_choice

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

_DEVIATIONS: Final = 9.0
_LASTS: Final = 8.0
"""The range of values, and of last values, in standard deviations from the mean."""
_FINE: Final = 6
_MOST: Final = 512
"""The number of control points per standard deviation of the noise, and the maximum number on an axis."""
_ROUNDING: Final = 2.0**-46
_SPLIT: Final = 2.0**17 + 1
_REMEMBERED: Final = 1 << 22
_KEPT: Final = 4
_WIDTH: Final = 12
"""The number of neighbouring control points that a polynomial interpolates."""
_BEYOND: Final = _WIDTH // 2
"""Control points beyond each end, for the interpolation in the last intervals."""
_EACH_STEP: Final = 32
_NODES: Final = 20
"""Steps of a level that are summed one by one; the next 32, 64 and so on are integrated with this many nodes."""


@dataclass(frozen=True, eq=False)
class BenefitCurve:
    """The expected benefit by the distance of a value from the last value of the stream."""

    first: int
    benefits: Array = field(repr=False)

    def nearest(self, last: int) -> int:
        """The same value: a curve serves for all."""
        return last

    def of(self, values: ArrayLike, last: int = 0) -> Array:
        """The expected benefit of these values, after `last`."""
        return interpolated(as_integers(values), self.first + last, 1, self.benefits)


def h1(
    walk: RandomWalk, survival: Survival, *, problem: Problem = "joining", ahead: int | None = None
) -> BenefitCurve:
    """The expected benefits with a random walk, which depend on the distance from its last value only.

    Parameters
    ----------
    walk
        The stream that rows are matched with.
    survival
        The probability that rows stay in memory.
    problem
        "joining" or "caching".
    ahead
        The number of steps in the sum; by default all that are not negligible.

    Examples
    --------
    With steps of standard deviation 1 and no drift, the nearest values are best; with a drift, those ahead.

    >>> from tidegate.models import Noise
    >>> still, drifting = (h1(RandomWalk(drift, Noise(sigma=1.0)), Exponential(10)) for drift in (0, 2))
    >>> still.of([-4, -2, 0, 2, 4]).round(2), drifting.of([-4, -2, 0, 2, 4]).round(2)
    (array([0.39, 0.91, 1.6 , 0.91, 0.39]), array([0.  , 0.  , 0.06, 0.45, 0.39]))

    References
    ----------
    On Joining and Caching Stochastic Streams, Theorem 3, section 7.5 and Figure 6.

    Deviations
    ----------
    The paper refers to a report for the construction. With an exponential survival the sum is a geometric series of
    the Fourier transform of a step, and is computed there. All visits of a value are its first one and returns from
    it; so in caching the benefit is that in joining divided by one plus that of distance 0. Without drift, values at
    the same distance above and below the last one have exactly the same benefit.
    """
    check_choice(problem, Problem, "problem")
    if not isinstance(walk, RandomWalk):
        raise InputError(f"h1 is the curve of a RandomWalk, not of {walk!r}; use h2 for an AR1")
    if not isinstance(survival, Exponential) or ahead is not None:
        steps = _steps(survival, ahead)
        low, high = walk.span(steps)
        found = gains(walk, History(0, 0), np.arange(low, high + 1), steps, problem=problem)
        return BenefitCurve(low, found @ survival.at(np.arange(1, steps + 1)))
    low, benefits = _geometric(replace(walk, drift=abs(walk.drift)), survival)
    if walk.drift < 0:
        low, benefits = 1 - low - len(benefits), benefits[::-1]
    if problem == "caching":
        benefits = first_visits(benefits, benefits[-low])
    return BenefitCurve(low, benefits)


def first_visits(visits: Array, returns: Array | float) -> Array:
    """The benefit of values in caching, given their benefit in joining and that of a value after itself.

    All visits are a first one and the returns after it. An exponential weight of a later visit is the product of
    the weights until the first visit and from there on.
    """
    first: Array = visits / (1 + returns)
    return first


def _geometric(walk: RandomWalk, survival: Exponential) -> tuple[int, Array]:
    """The lowest distance, and the sum over all steps for it and the next ones, by a Fourier transform."""
    least, one = walk.single_step
    steps = survival.negligible_after()
    places = least + np.arange(len(one))
    drift = float(one @ places)
    spread = _DEVIATIONS * math.sqrt(steps * float(one @ (places - drift) ** 2)) + len(one)
    low = math.floor(min(drift * steps, 0.0) - spread)
    size = 1 << (math.ceil(max(drift * steps, 0.0) + spread) - low).bit_length()
    step = np.zeros(size)
    step[places % size] = one
    moved = math.exp(-1 / survival.alpha) * np.fft.rfft(step)
    benefits = np.fft.irfft(moved / (1 - moved), size)
    if walk.drift == 0:
        # Both directions are equally likely; the rounding of the transform is not symmetric.
        benefits = (benefits + np.roll(benefits[::-1], 1)) / 2
    benefits = np.roll(benefits, -low)
    # Rounding makes equal benefits equal, and benefits of 0 exactly 0, in spite of the transform's errors.
    unit = _ROUNDING * benefits.max()
    benefits = np.round(benefits / unit) * unit
    matters = np.flatnonzero(benefits)
    # Distance 0 is included even if the walk never returns to it.
    begin, end = min(int(matters[0]), -low), max(int(matters[-1]), -low) + 1
    return low + begin, benefits[begin:end]


@dataclass(frozen=True, eq=False)
class BenefitSurface:
    """The expected benefit by a value and the last value, from control points on a grid.

    Parameters
    ----------
    first, first_last
        The first control point on each axis.
    spacing
        The distance between control points, on both axes.
    benefits
        At the control points: a row for each last value, a column for each value.
    """

    first: int
    first_last: int
    spacing: int
    benefits: Array = field(repr=False)

    def covers(self, last: int) -> bool:
        """Whether that last value lies between control points."""
        return self.nearest(last) == last

    def nearest(self, last: int) -> int:
        """The nearest last value that can be interpolated."""
        end = self.first_last + (len(self.benefits) - 1) * self.spacing
        beyond = (_BEYOND - 1) * self.spacing
        return min(max(last, self.first_last + beyond), end - beyond)

    def curve(self, last: int) -> Array:
        """The benefits of the control points after this last value."""
        if not self.covers(last):
            raise InputError(
                f"the surface does not cover a last value of {last}; use expected_benefit for it"
            )
        place, part = divmod(last - self.first_last, self.spacing)
        if not part:
            row: Array = self.benefits[place]
            return row.copy()
        some = self.benefits[place - _BEYOND + 1 : place + _BEYOND + 1]
        found: Array = control_weights(self.spacing)[part] @ some
        return found

    def of(self, values: ArrayLike, last: int) -> Array:
        """The expected benefit of these values, after `last`."""
        return interpolated(as_integers(values), self.first, self.spacing, self.curve(last))


def h2(
    level: AR1,
    survival: Survival,
    *,
    problem: Problem = "joining",
    ahead: int | None = None,
    points: int | None = None,
) -> BenefitSurface:
    """The expected benefits with an AR(1) process, which depend on the value and the last one: a surface.

    It is computed at control points and interpolated between them, by polynomials along both axes.

    Parameters
    ----------
    level
        The stream that rows are matched with.
    survival
        The probability that rows stay in memory.
    problem
        "joining" or "caching".
    ahead
        The number of steps in the sum; by default all that are not negligible.
    points
        The maximum number of control points on an axis; by default six for each standard deviation of the noise, and
        512 at most. If the control points are consecutive whole numbers, there is no error. Otherwise it is below
        1e-9 of the largest benefit up to a `phi1` of 0.95. Where the default is limited by 512 it grows: to 3e-8 at
        a `phi1` of 0.99 and 1e-3 at 0.999, with an alpha of 6; with an alpha of 50, a third of that.

    Examples
    --------
    >>> level = AR1(phi0=56, phi1=0.72, sigma=42.2)
    >>> surface = h2(level, Exponential(50))
    >>> surface.benefits.shape
    (153, 223)
    >>> surface.of([150, 200, 300], 310).round(4)
    array([0.2148, 0.3155, 0.1011])
    >>> from tidegate.policies.heeb import expected_benefit
    >>> expected_benefit(level, History(0, 310), [150, 200, 300], Exponential(50)).round(4)
    array([0.2148, 0.3155, 0.1011])

    References
    ----------
    On Joining and Caching Stochastic Streams, Theorem 3 and section 8 (REAL).

    Deviations
    ----------
    The paper uses 25 control points in all. Here their number depends on the noise; the interpolation goes through
    twelve neighbours on an axis. Far steps are interpolated from some of them, since the influence of the last value
    falls smoothly. Once the process has forgotten it, the rest of the sum is that of its stationary distribution. In
    caching the benefit of a value is that in joining over one plus that after itself.
    """
    check_choice(problem, Problem, "problem")
    if not isinstance(level, AR1):
        raise InputError(f"h2 is the surface of an AR1, not of {level!r}; use h1 for a RandomWalk")
    if points is not None:
        at_least_one(points, "points", of="control points")
    spacing = _spacing(level, points)
    values, lasts = _control_points(level, spacing)
    if problem == "caching" and not (isinstance(survival, Exponential) and ahead is None):
        steps = _steps(survival, ahead)
        counts = survival.at(np.arange(1, steps + 1))
        first = (gains(level, History(0, last), values, steps, problem=problem) for last in lasts.tolist())
        benefits = np.array([chances @ counts for chances in first])
        return BenefitSurface(int(values[0]), int(lasts[0]), spacing, benefits)
    left, weights = steps_left(level, survival, _steps(survival, ahead))
    benefits = np.array([chances @ weights for chances in _chances(level, spacing, left)])
    if problem == "caching":
        benefits = first_visits(benefits, level.reached(values[:, None], left, values[:, None]) @ weights)
    return BenefitSurface(int(values[0]), int(lasts[0]), spacing, benefits)


def _spacing(level: AR1, points: int | None) -> int:
    """How far control points are to be apart."""
    widest = 2 * _reaches(level)[0]
    if points is not None:
        return max(1, math.ceil(widest / points))
    # A value comes back to itself by 1 - phi1 of its distance from the mean, which varies faster if phi1 is below 0.
    fine = level.sigma / (_FINE * max(1.0, 1 - level.phi1))
    return max(1, int(fine), math.ceil(widest / _MOST))


def is_light(level: AR1, survival: Survival, ahead: int) -> bool:
    """Whether `h2` is both fine and so small that the next one, for another survival, takes little."""
    points = math.prod(map(len, _control_points(level, _spacing(level, None))))
    return is_fine(level) and points * len(steps_left(level, survival, ahead)[0]) <= _REMEMBERED


def is_fine(level: AR1) -> bool:
    """Whether `h2` has control points so near to each other that hardly any two values change their order."""
    return _spacing(level, None) <= max(1.0, 1.5 * level.sigma / (_FINE * max(1.0, 1 - level.phi1)))


def _steps(survival: Survival, ahead: int | None) -> int:
    Survival.check(survival)
    steps = survival.negligible_after() if ahead is None else at_least_one(ahead, "ahead")
    if steps is None:
        raise InputError(f"{survival!r} has no end; give the number of steps to sum over as ahead=")
    return steps


def _until_forgotten(level: AR1, ahead: int, survival: Survival) -> Array:
    """What each step counts until the process has forgotten its last value; the last one for all that follow."""
    forgotten = level.forgotten_after()
    weights = survival.at(np.arange(1, ahead + 1))
    if ahead > forgotten:
        weights[forgotten - 1] = weights[forgotten - 1 :].sum()
    return weights[:forgotten]


def steps_left(level: AR1, survival: Survival, ahead: int) -> tuple[Array, Array]:
    """The remaining part of the last value at each step of a sum, and the weight of that step.

    Near steps stand for themselves, far ones for several.
    """
    weights = _until_forgotten(level, ahead, survival)
    rounded = 1 << (len(weights) - 1).bit_length()
    left, parts = _merged(level.phi1, rounded)
    return left, weights @ parts[: len(weights)]


@lru_cache(maxsize=_KEPT)
def _merged(phi1: float, steps: int) -> tuple[Array, Array]:
    """What is left of a last value at each node; and for each of the steps, how much of it falls to each node.

    A sum over many steps of what depends smoothly on the step is one over few, as an integral is: each step's term is
    the polynomial's through the nodes. Where `phi1` is below 0, even and odd steps are apart.
    """
    exact = min(steps, _EACH_STEP)
    every = np.arange(1, steps + 1)
    nodes, parts = [every[:exact].astype(np.float64)], [np.eye(steps)[:, :exact]]
    signs = [np.where(every[:exact] % 2, np.sign(phi1), 1.0)]
    begin = exact
    while begin < steps:
        panel = every[begin : 2 * begin]
        for some in (panel,) if phi1 >= 0 else (panel[::2], panel[1::2]):
            at, share = (
                _on_nodes(some) if len(some) > _NODES else (some.astype(np.float64), np.eye(len(some)))
            )
            of = np.zeros((steps, len(at)))
            of[some - 1] = share
            nodes.append(at)
            parts.append(of)
            signs.append(np.full(len(at), np.sign(phi1) if some[0] % 2 else 1.0))
        begin *= 2
    return np.concatenate(signs) * abs(phi1) ** np.concatenate(nodes), np.concatenate(parts, axis=1)


def _on_nodes(steps: Array) -> tuple[Array, Array]:
    """Chebyshev nodes within these steps, and the weight of each node in the interpolated value at each step."""
    angles = (2 * np.arange(_NODES) + 1) * np.pi / (2 * _NODES)
    middle, half = (steps[0] + steps[-1]) / 2, (steps[-1] - steps[0]) / 2
    nodes = middle + half * np.cos(angles)
    apart = steps[:, None] - nodes
    # At a node, the interpolated value is that of the node.
    apart[apart == 0] = np.finfo(np.float64).tiny
    shares = (-1.0) ** np.arange(_NODES) * np.sin(angles) / apart
    return nodes, shares / shares.sum(axis=1, keepdims=True)


def _chances(level: AR1, spacing: int, left: Array) -> Iterable[Array]:
    """For each last value, the probability of each value, given the share of the last value that remains: `left`."""
    values, lasts = _control_points(level, spacing)
    if len(values) * len(lasts) * len(left) <= _REMEMBERED:
        return _kept_chances(level, spacing, tuple(left.tolist()))
    return (level.reached(last, left[None, :], values[:, None]) for last in lasts)


@lru_cache(maxsize=_KEPT)
def _kept_chances(level: AR1, spacing: int, left: tuple[float, ...]) -> Array:
    """The same as one table, which serves any survival."""
    values, lasts = _control_points(level, spacing)
    return np.array([level.reached(last, np.array(left)[None, :], values[:, None]) for last in lasts])


def _control_points(level: AR1, spacing: int) -> tuple[Array, Array]:
    """Values and last values on the grid."""
    reach, lasts = _reaches(level)
    return _grid(level.mean, reach, spacing), _grid(level.mean, lasts, spacing)


def _reaches(level: AR1) -> tuple[float, float]:
    """How far from the mean values matter, and last values."""
    deviation = level.sigma / math.sqrt(1 - level.phi1**2)
    next_one = _LASTS * abs(level.phi1) * deviation + _DEVIATIONS * level.sigma
    return max(_DEVIATIONS * deviation, next_one), _LASTS * deviation


def _grid(middle: float, reach: float, spacing: int) -> Array:
    """Control points around the middle, and those beyond either end that the last intervals need."""
    count = math.ceil(reach / spacing) + _BEYOND
    return round(middle) + spacing * np.arange(-count, count + 1)


def interpolated(values: Array, first: int, spacing: int, benefits: Array) -> Array:
    """The benefit of each value from those of control points; beyond them 0."""
    return between(values, first, spacing, benefits[:, None], *np.zeros((2, len(values)), np.int64))


def between(values: Array, first: int, spacing: int, sums: Array, begins: Array, ends: Array) -> Array:
    """For each value the sum at its end minus that at its beginning, interpolated from the sums of control points.

    A row of `sums` for each control point. A beginning in the first column counts as 0.
    """
    return _between(values, first, spacing, sums, begins, ends, control_weights(spacing))


@kernel
def _between(
    values: Array, first: int, spacing: int, sums: Array, begins: Array, ends: Array, weights: Array
) -> Array:
    found = np.zeros(len(values))
    for i in range(len(values)):
        place = (values[i] - first) // spacing
        part = values[i] - first - place * spacing
        if part == 0:
            if 0 <= place < len(sums):
                found[i] = sums[place, ends[i]]
                if begins[i]:
                    found[i] -= sums[place, begins[i]]
        elif _BEYOND - 1 <= place < len(sums) - _BEYOND:
            for at in range(_WIDTH):
                row = sums[place - _BEYOND + 1 + at]
                found[i] += weights[part, at] * (row[ends[i]] - (row[begins[i]] if begins[i] else 0.0))
        found[i] = max(found[i], 0.0)
    return found


@inlined
def looked_up(curve: Array, distance: int, spacing: int, weights: Array) -> float:
    """The value of a curve of control points at a distance from the first; beyond them 0."""
    place = distance // spacing
    part = distance - place * spacing
    if part == 0:
        return curve[place] if 0 <= place < len(curve) else 0.0
    found = 0.0
    if _BEYOND - 1 <= place < len(curve) - _BEYOND:
        for at in range(_WIDTH):
            found += weights[part, at] * curve[place - _BEYOND + 1 + at]
    return max(found, 0.0)


@lru_cache(maxsize=_KEPT)
def control_weights(spacing: int) -> Array:
    """The weight of each neighbouring control point, for each whole distance from the one before the middle."""
    nodes = np.arange(1 - _BEYOND, _BEYOND + 1)
    parts = np.arange(spacing)[:, None] / spacing
    weights = np.ones((spacing, _WIDTH))
    for at, node in enumerate(nodes):
        others = np.delete(nodes, at)
        weights[:, at] = ((parts - others) / (node - others)).prod(axis=1)
    return weights


Benefit = TypeVar("Benefit", float, Array)


def rounded_benefit(benefit: Benefit) -> Benefit:
    """Round to 36 binary digits, which is coarser than the error of a sum or a table.

    So rows with the same expected results have equal scores though they were summed in another order; except in the
    rare case that a boundary lies between them. Rounding errors then do not decide which of them stays.
    """
    # Dekker's split of a number: the larger part has this many digits.
    large = benefit * _SPLIT
    found: Benefit = large - (large - benefit)
    return found


rounded_benefit_number = inlined(rounded_benefit)
