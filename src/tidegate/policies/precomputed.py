"""Expected benefits by the last value, reckoned beforehand: a curve for a walk, a surface for a level."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import lru_cache
from typing import TYPE_CHECKING, Final

import numpy as np

from tidegate.compiled import inlined, kernel
from tidegate.models import AR1, History, Problem, RandomWalk, gains
from tidegate.models.numbers import at_least_one
from tidegate.models.process import whole
from tidegate.policies.survival import Exponential, Survival
from tidegate.types import Array, InputError, check_choice

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

_DEVIATIONS: Final = 9.0
_LASTS: Final = 8.0
"""How many standard deviations from the mean values, and last values, are told of."""
_FINE: Final = 4
_MOST: Final = 128
"""Control points: so many a standard deviation of the noise, but at most so many on an axis."""
_ROUNDING: Final = 2.0**-46
_FORGOTTEN: Final = 1e-16
_REMEMBERED: Final = 1 << 22
_KEPT: Final = 4
_BEYOND: Final = 2
"""Control points beyond either end, which the last intervals are interpolated with."""


@dataclass(frozen=True, eq=False)
class Curve:
    """The expected benefit by the distance of a value from the last one that the stream brought."""

    first: int
    benefits: Array = field(repr=False)

    def of(self, values: ArrayLike, last: int = 0) -> Array:
        """The expected benefit of these values, after `last`."""
        return interpolated(whole(values), self.first + last, 1, self.benefits)


def h1(
    walk: RandomWalk, survival: Survival, *, problem: Problem = "joining", ahead: int | None = None
) -> Curve:
    """The expected benefits with a random walk, which depend on the distance from its last value only.

    Parameters
    ----------
    walk
        The stream that rows are matched with.
    survival
        How long rows are thought to stay.
    problem
        "joining" or "caching".
    ahead
        How many steps to sum over; by default all that matter.

    Examples
    --------
    With steps that vary by 1 and no drift, the nearest is the best to keep; with a drift, what lies ahead.

    >>> from tidegate.models import Noise
    >>> still, drifting = (h1(RandomWalk(drift, Noise(sigma=1.0)), Exponential(10)) for drift in (0, 2))
    >>> still.of([-4, -2, 0, 2, 4]).round(2), drifting.of([-4, -2, 0, 2, 4]).round(2)
    (array([0.39, 0.91, 1.6 , 0.91, 0.39]), array([0.  , 0.  , 0.06, 0.45, 0.39]))

    References
    ----------
    On Joining and Caching Stochastic Streams, Theorem 3, section 7.5 and Figure 6.

    Deviations
    ----------
    The construction is in a report that is not at hand. With an exponential survival the sum is a geometric series
    in the transform of a step, and is formed there. All visits of a value are its first one and returns from it, so
    that in caching the benefit is that in joining over one plus that of distance 0.
    """
    check_choice(problem, Problem, "problem")
    if not isinstance(walk, RandomWalk):
        raise InputError(f"h1 is the curve of a RandomWalk, not of {walk!r}; use h2 for an AR1")
    if not isinstance(survival, Exponential) or ahead is not None:
        steps = _steps(survival, ahead)
        low, high = walk.span(steps)
        found = gains(walk, History(0, 0), np.arange(low, high + 1), steps, problem=problem)
        return Curve(low, found @ survival.at(np.arange(1, steps + 1)))
    low, benefits = _geometric(walk, survival)
    if problem == "caching":
        benefits = benefits / (1 + benefits[-low])
    return Curve(low, benefits)


def _geometric(walk: RandomWalk, survival: Exponential) -> tuple[int, Array]:
    """The least distance, and the sum over all steps for it and the next ones, in the transform's domain."""
    least, one = walk.one
    steps = survival.reach()
    places = least + np.arange(len(one))
    drift = float(one @ places)
    spread = _DEVIATIONS * math.sqrt(steps * float(one @ (places - drift) ** 2)) + len(one)
    low = math.floor(min(drift * steps, 0.0) - spread)
    size = 1 << (math.ceil(max(drift * steps, 0.0) + spread) - low).bit_length()
    step = np.zeros(size)
    step[places % size] = one
    moved = math.exp(-1 / survival.alpha) * np.fft.rfft(step)
    benefits = np.roll(np.fft.irfft(moved / (1 - moved), size), -low)
    # Distances of equal benefit are to be equal, and those of none to have none, whatever the transform's rounding.
    unit = _ROUNDING * benefits.max()
    benefits = np.round(benefits / unit) * unit
    matters = np.flatnonzero(benefits)
    # Distance 0 is told of even where a walk never returns to it.
    begin, end = min(int(matters[0]), -low), max(int(matters[-1]), -low) + 1
    return low + begin, benefits[begin:end]


@dataclass(frozen=True, eq=False)
class Surface:
    """The expected benefit by a value and the last one, between control points on a grid.

    Parameters
    ----------
    first, first_last
        The first control point on either axis.
    spacing
        How far control points are apart, on both.
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
        """The nearest last value that lies between control points, of which the first and the last are beyond."""
        low, high = self.first_last + self.spacing, self.first_last + (len(self.benefits) - 2) * self.spacing
        return min(max(last, low), high)

    def curve(self, last: int) -> Array:
        """The benefits of the control points after this last value."""
        if not self.covers(last):
            raise InputError(
                f"the surface does not reach to a last value of {last}; use expected_benefit for it"
            )
        return _blended(self.benefits, last, self.first_last, self.spacing)

    def of(self, values: ArrayLike, last: int) -> Array:
        """The expected benefit of these values, after `last`."""
        return interpolated(whole(values), self.first, self.spacing, self.curve(last))


def h2(
    level: AR1,
    survival: Survival,
    *,
    problem: Problem = "joining",
    ahead: int | None = None,
    points: int | None = None,
) -> Surface:
    """The expected benefits with an AR(1) process, which depend on the value and the last one: a surface.

    It is reckoned at control points and interpolated in between, by cubics along both axes.

    Parameters
    ----------
    level
        The stream that rows are matched with.
    survival
        How long rows are thought to stay.
    problem
        "joining" or "caching".
    ahead
        How many steps to sum over; by default all that matter.
    points
        How many control points there are on an axis at most; by default four a standard deviation of the noise, and
        128 at most. Where that makes them whole numbers next to each other, there is no error. Else it is below a
        thousandth of the largest benefit as long as the default is not cut short at 128 (`phi1` up to 0.85). Beyond,
        it grows as control points are farther apart, the more the shorter rows stay: with an alpha of 6 it is 0.3 %
        at 0.95, 3 % at 0.99 and 17 % at 0.999; with one of 50, about half of that or less.

    Examples
    --------
    >>> level = AR1(phi0=56, phi1=0.72, sigma=42.2)
    >>> surface = h2(level, Exponential(50))
    >>> surface.benefits.shape
    (87, 127)
    >>> surface.of([150, 200, 300], 310).round(4)
    array([0.2148, 0.3155, 0.1012])
    >>> from tidegate.policies import expected_benefit
    >>> expected_benefit(level, History(0, 310), [150, 200, 300], Exponential(50)).round(4)
    array([0.2148, 0.3155, 0.1011])

    References
    ----------
    On Joining and Caching Stochastic Streams, Theorem 3 and section 8 (REAL).

    Deviations
    ----------
    The paper takes 25 control points in all. Here as many as the noise asks for; the interpolation goes through
    four neighbours on an axis. Once the process has forgotten its last value, the rest of the sum is that of its
    stationary distribution. In caching the benefit of a value is that in joining over one plus that after itself.
    """
    check_choice(problem, Problem, "problem")
    if not isinstance(level, AR1):
        raise InputError(f"h2 is the surface of an AR1, not of {level!r}; use h1 for a RandomWalk")
    if points is not None:
        at_least_one(points, "points", of="control points")
    widest = 2 * _reaches(level)[0]
    fine = max(widest / _MOST, level.sigma / _FINE) if points is None else widest / points
    spacing = max(1, math.ceil(fine))
    values, lasts = _control_points(level, spacing)
    if problem == "caching" and not (isinstance(survival, Exponential) and ahead is None):
        steps = _steps(survival, ahead)
        counts = survival.at(np.arange(1, steps + 1))
        first = (gains(level, History(0, last), values, steps, problem=problem) for last in lasts.tolist())
        benefits = np.array([chances @ counts for chances in first])
        return Surface(int(values[0]), int(lasts[0]), spacing, benefits)
    weights = _until_forgotten(level, _steps(survival, ahead), survival)
    benefits = np.array([chances @ weights for chances in _chances(level, spacing, len(weights))])
    if problem == "caching":
        benefits /= 1 + level.returns(np.arange(1, len(weights) + 1), values) @ weights
    return Surface(int(values[0]), int(lasts[0]), spacing, benefits)


def _steps(survival: Survival, ahead: int | None) -> int:
    Survival.check(survival)
    steps = survival.reach() if ahead is None else at_least_one(ahead, "ahead")
    if steps is None:
        raise InputError(f"{survival!r} has no end; say how many steps ahead= to sum over")
    return steps


def _until_forgotten(level: AR1, ahead: int, survival: Survival) -> Array:
    """What each step counts until the process has forgotten its last value; the last one for all that follow."""
    forgotten = math.ceil(math.log(_FORGOTTEN) / math.log(abs(level.phi1))) if level.phi1 else 1
    weights = survival.at(np.arange(1, ahead + 1))
    if ahead > forgotten:
        weights[forgotten - 1] = weights[forgotten - 1 :].sum()
    return weights[:forgotten]


def _chances(level: AR1, spacing: int, steps: int) -> Iterable[Array]:
    """For each last value, how likely each value comes at each step."""
    values, lasts = _control_points(level, spacing)
    rounded = 1 << (steps - 1).bit_length()
    if len(values) * len(lasts) * rounded <= _REMEMBERED:
        return _kept_chances(level, spacing, rounded)[:, :, :steps]
    ahead = np.arange(1, steps + 1)
    return (level.probability(History(0, last), ahead, values) for last in lasts.tolist())


@lru_cache(maxsize=_KEPT)
def _kept_chances(level: AR1, spacing: int, steps: int) -> Array:
    """The same as one table: it does not depend on how long rows stay, which may change time and again."""
    values, lasts = _control_points(level, spacing)
    ahead = np.arange(1, steps + 1)
    return np.array([level.probability(History(0, last), ahead, values) for last in lasts.tolist()])


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


@kernel
def between(values: Array, first: int, spacing: int, sums: Array, begins: Array, ends: Array) -> Array:
    """For each value the sum at its end less that at its beginning, where the sums are told of control points.

    A row of `sums` for each control point. A beginning in the first column counts as 0.
    """
    found = np.zeros(len(values))
    for i in range(len(values)):
        place = (values[i] - first) // spacing
        part = (values[i] - first - place * spacing) / spacing
        if part == 0.0:
            if 0 <= place < len(sums):
                found[i] = sums[place, ends[i]]
                if begins[i]:
                    found[i] -= sums[place, begins[i]]
        elif 1 <= place < len(sums) - 2:
            weights = cubic(part)
            for at in range(4):
                row = sums[place - 1 + at]
                found[i] += weights[at] * (row[ends[i]] - (row[begins[i]] if begins[i] else 0.0))
        found[i] = max(found[i], 0.0)
    return found


@kernel
def _blended(rows: Array, value: int, first: int, spacing: int) -> Array:
    """The row that lies between control rows, where this value lies between theirs."""
    place = (value - first) // spacing
    part = (value - first - place * spacing) / spacing
    if part == 0.0:
        return rows[place].copy()  # type: ignore[no-any-return]
    w = cubic(part)
    found: Array = (
        w[0] * rows[place - 1] + w[1] * rows[place] + w[2] * rows[place + 1] + w[3] * rows[place + 2]
    )
    return found


@inlined
def cubic(part: float) -> tuple[float, float, float, float]:
    """What four neighbours in a row count, this far from the second to the third."""
    before, after, beyond = part + 1.0, part - 1.0, part - 2.0
    return (
        -part * after * beyond / 6.0,
        before * after * beyond / 2.0,
        -before * part * beyond / 2.0,
        before * part * after / 6.0,
    )
