"""Random walks and AR(1) processes, fitted while rows arrive, from pairs of consecutive rows."""

from __future__ import annotations

import math
from abc import abstractmethod
from typing import TYPE_CHECKING, ClassVar, Final, NamedTuple

import numpy as np

from tidegate.models.processes._moments import WeightedMoments
from tidegate.models.processes.ar1 import AR1
from tidegate.models.processes.noise import normal
from tidegate.models.processes.random_walk import RandomWalk
from tidegate.models.processes.running_fit import (
    MIN_SIGMA,
    ROUNDING,
    RecentRows,
    RunningFit,
    columns,
    fit_noise,
)
from tidegate.types import ArrayField, Nested, Numbers, TimeOrNone

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from tidegate.models.processes.process import Process
    from tidegate.types import Array, State, Time

_BUCKETS: Final = 128
_PER_OCTAVE: Final = 2
_MIN_EXPONENT: Final = -16
"""Gaps are counted by the half octave, from 2**-16 units of time to 2**48."""
_EQUAL_GAPS: Final = 1e-9
_HALVINGS: Final = 60
_MAX_UNIFORM: Final = 16.0
"""Uniform steps with wider bounds are treated as normal, since their sums soon are."""


class ConsecutiveRows(RunningFit):
    """Each row with the one before: the gap between their times, the earlier value, and the step to the later.

    Rows that arrive out of order are left out. Rows of one time have a gap of 0, in which a walk cannot change its
    value; so several values at one time are evidence against a walk.
    """

    state: ClassVar[State] = {
        "moments": Nested("_moments"),
        "gaps": ArrayField("_gaps", (2, _BUCKETS)),
        "now": TimeOrNone("_now"),
        "last": Numbers(_last=float),
    }

    def __init__(self, horizon: Time | None = None) -> None:
        super().__init__(horizon)
        self._moments = WeightedMoments(3)  # gap, the earlier value from `_last` on, step
        self._gaps = np.zeros((2, _BUCKETS))  # the weight and the sum of the gaps of each bucket
        self._now: Time | None = None
        self._last = 0.0

    @property
    def gap(self) -> float | None:
        """The mean time between rows; None while none has passed."""
        gap = float(self._moments.mean[0])
        return gap if self._moments.weight > 0 and gap > 0 else None

    @property
    def weight(self) -> float:
        """The decayed number of rows."""
        return self._moments.weight

    @property
    def regular(self) -> bool:
        """Whether all gaps are equal."""
        weight, gap = self._moments.weight, self._moments.mean[0]
        return bool(weight > 0 and self._moments.spread[0, 0] <= _EQUAL_GAPS * weight * gap**2)

    def observe(self, times: ArrayLike, values: ArrayLike) -> None:
        """Learn from rows."""
        time, value = columns(times, values)
        if not len(time):
            return
        in_order = time == np.maximum.accumulate(time)
        if self._now is not None:
            in_order &= time >= self._now
        if not in_order.any():
            return
        time, value = time[in_order], value[in_order].astype(np.float64)
        first = self._now is None
        passed = 0.0 if self._now is None else float(time[-1] - self._now)
        before = value[:-1] if first else np.concatenate(([self._last], value[:-1]))
        gaps = np.diff(time if self._now is None else np.concatenate(([self._now], time))).astype(np.float64)
        steps = value[1:] - before if first else value - before
        weights = self._weights((time[-1] - time[first:]).astype(np.float64))
        factor = 2.0 ** (-passed / self._half_life)
        self._moments.decay(factor)
        self._moments.shift_origin(np.array([0.0, value[-1] - self._last, 0.0]))
        self._moments.add(np.column_stack((gaps, before - value[-1], steps)), weights)
        self._gaps *= factor
        buckets = _bucket(gaps)
        self._gaps += [np.bincount(buckets, by, _BUCKETS) for by in (weights, weights * gaps)]
        self._now, self._last = time[-1].item(), float(value[-1])

    @abstractmethod
    def process(self, recent: RecentRows, unit: float = 1.0, origin: Time = 0) -> Process | None:
        """The fitted process, in steps of `unit`."""


class WalkLearner(ConsecutiveRows):
    """Drift and variance per unit of time: the sum of all steps over their total time.

    Examples
    --------
    >>> learner = WalkLearner()
    >>> learner.observe([0, 1, 3], [10, 12, 12])
    >>> learner.drift, round(learner.variance, 9)
    (0.6666666666666666, 1.185185185)

    References
    ----------
    On Joining and Caching Stochastic Streams, sections 6.1 and 7.5.

    Deviations
    ----------
    The mean and the variance of a step grow with its gap. The maximum-likelihood variance is the mean of squared
    steps over their gaps; this one is the sum of squares over the sum of gaps. Both agree if all gaps are equal.
    But if rows are distributed by a hash of their values, the times of the observed rows are stopping times; then, by
    Wald's identities, the quotient of sums is right and the mean is not. Over unequal gaps, steps are assumed to be
    normal.
    """

    parameters = 2

    @property
    def drift(self) -> float:
        """The mean change per unit of time."""
        return float(self._moments.mean[2] / self._moments.mean[0])

    @property
    def variance(self) -> float:
        """The variance per unit of time, including rounding."""
        spread, drift = self._moments.spread, self.drift
        squares = spread[2, 2] - 2 * drift * spread[0, 2] + drift**2 * spread[0, 0]
        return float(max(squares, 0.0) / (self._moments.weight * self._moments.mean[0]))

    def process(self, recent: RecentRows, unit: float = 1.0, origin: Time = 0) -> RandomWalk | None:  # noqa: ARG002 - it has no origin
        """The random walk that continues from the last row."""
        if self.gap is None:
            return None
        steps = np.empty(0)
        if self.regular and abs(unit - self.gap) <= _EQUAL_GAPS * unit:
            steps = np.diff(recent.values).astype(np.float64) - self.drift * unit
        return RandomWalk(self.drift * unit, fit_noise(steps, self.variance * unit, _MAX_UNIFORM))

    def intervals(self, recent: RecentRows) -> tuple[Array, Array] | None:
        """By the noise of each step."""
        walk = self.process(recent, self.gap or 1.0)
        if walk is None:
            return None
        gaps = np.diff(recent.times).astype(np.float64)
        deviations = np.diff(recent.values.astype(np.float64)) - self.drift * gaps
        if walk.step.sigma is None:
            return walk.step.below(deviations - 0.5), walk.step.below(deviations + 0.5)
        sigma = np.sqrt(np.maximum(self.variance * gaps - ROUNDING, MIN_SIGMA**2))
        return normal((deviations - 0.5) / sigma), normal((deviations + 0.5) / sigma)


class _ContinuousAR1(NamedTuple):
    """An AR(1) process in continuous time: mean, stationary variance, slope per row and rate of decay."""

    mean: float
    variance: float
    slope: float
    rate: float

    def remaining(self, gaps: Array, regular: float | None) -> Array:
        """The fraction of a value that remains after these gaps."""
        fraction: Array = np.exp(-self.rate * gaps)
        return fraction if regular is None else fraction * np.sign(self.slope) ** np.round(gaps / regular)


class AR1Learner(ConsecutiveRows):
    """The regression of each value on the one before, and the rate of decay per unit of time.

    Examples
    --------
    >>> learner = AR1Learner()
    >>> times, values = np.arange(8), np.array([10, 14, 11, 8, 9, 11, 14, 12])
    >>> learner.observe(times, values)
    >>> learner.process(RecentRows(times, values))
    AR1(phi0=9.2232..., phi1=0.1875, sigma=2.0806...)
    >>> AR1.fit(values)
    AR1(phi0=9.2232..., phi1=0.187..., sigma=2.0806...)

    References
    ----------
    On Joining and Caching Stochastic Streams, sections 6.1 and 8 (REAL).

    Deviations
    ----------
    With unequal gaps the slope of the regression is the mean over the gaps of the fraction that remains; the rate of
    decay is solved for. This is right if rows are missing at random. It is biased if the observed rows depend on
    the values: a part of a stream with few of its values varies less than the whole. A slope below 0 is possible with
    equal gaps only.
    """

    parameters = 3

    def _level(self) -> _ContinuousAR1 | None:
        moments, gap = self._moments, self.gap
        (_, _, _), (_, value_spread, covariance), (_, _, step_spread) = moments.spread
        if gap is None or value_spread <= 0:
            return None
        slope = 1 + covariance / value_spread
        least = -1.0 if self.regular else 0.0
        if not least < slope < 1 or slope == 0:
            return None
        mean = self._last + moments.mean[1] + moments.mean[2] / (1 - slope)
        residual = max(step_spread - covariance**2 / value_spread, 0.0) / moments.weight
        return _ContinuousAR1(mean, residual / (1 - slope**2), slope, self._decay_rate(abs(slope), gap))

    def _decay_rate(self, slope: float, gap: float) -> float:
        if self.regular:
            return -math.log(slope) / gap
        used = self._gaps[0] > 0
        weights = self._gaps[0, used] / self._gaps[0, used].sum()
        gaps = self._gaps[1, used] / self._gaps[0, used]
        if weights[gaps <= 0].sum() >= slope:
            return math.inf
        # The remaining fraction falls with the rate; by convexity the mean gap alone gives a rate that is too low.
        low, high = 0.0, -math.log(slope) / gap
        while float(weights @ np.exp(-high * gaps)) > slope:
            low, high = high, 2 * high
        for _ in range(_HALVINGS):
            middle = (low + high) / 2
            if float(weights @ np.exp(-middle * gaps)) > slope:
                low = middle
            else:
                high = middle
        return high

    def _after(self, level: _ContinuousAR1, gaps: Array) -> tuple[Array, Array]:
        """The fraction of a value that remains after these gaps, and the variance that was added."""
        remaining = level.remaining(gaps, self.gap if self.regular else None)
        return remaining, level.variance * (1 - remaining**2)

    def process(self, recent: RecentRows, unit: float = 1.0, origin: Time = 0) -> AR1 | None:  # noqa: ARG002 - it has no origin
        """The AR(1) process that continues from the last row."""
        level = self._level()
        if level is None or not math.isfinite(level.rate):
            return None
        remaining, variance = (float(part[0]) for part in self._after(level, np.array([unit])))
        if not abs(remaining) < 1 or variance <= 0:
            return None
        return AR1(float(level.mean * (1 - remaining)), remaining, math.sqrt(variance))

    def intervals(self, recent: RecentRows) -> tuple[Array, Array] | None:
        """By the noise of each step."""
        level = self._level()
        if level is None or not math.isfinite(level.rate):
            return None
        values = recent.values.astype(np.float64)
        remaining, variance = self._after(level, np.diff(recent.times).astype(np.float64))
        deviations = values[1:] - level.mean - remaining * (values[:-1] - level.mean)
        sigma = np.sqrt(np.maximum(variance, MIN_SIGMA**2))
        return normal((deviations - 0.5) / sigma), normal((deviations + 0.5) / sigma)


def _bucket(gaps: Array) -> Array:
    with np.errstate(divide="ignore"):
        bucket = np.floor((np.log2(gaps) - _MIN_EXPONENT) * _PER_OCTAVE) + 1
    clipped: Array = np.clip(bucket, 0, _BUCKETS - 1).astype(np.int64)
    return clipped
