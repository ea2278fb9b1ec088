"""A linear trend, fitted while rows arrive."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, ClassVar, Final

import numpy as np

from tidegate.models.processes._moments import WeightedMoments
from tidegate.models.processes.linear_trend import LinearTrend
from tidegate.models.processes.running_fit import RecentRows, RunningFit, columns, fit_noise
from tidegate.types import Nested, Numbers, Time

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from tidegate.models.processes.noise import Noise
    from tidegate.types import Array, State

_MIN_ROWS: Final = 3
"""Any two rows fit a line, so at least three are needed."""


class TrendLearner(RunningFit):
    """The least-squares line through all rows so far, weighted by decay, and the noise around it.

    Both axes begin at the newest row, so that large times and values lose no digits. Rows out of order have the
    weight of their age.

    Parameters
    ----------
    horizon
        The half-life of a row, in units of time; None for no decay.
    level
        Whether to fit a constant.

    Examples
    --------
    >>> learner = TrendLearner()
    >>> learner.observe([0, 1, 2, 4], [5, 7, 9, 13])
    >>> learner.process(RecentRows(np.array([2, 4]), np.array([9, 13])))
    LinearTrend(speed=2.0, offset=5.0, noise=Noise(bound=0.0, sigma=None))

    References
    ----------
    On Joining and Caching Stochastic Streams, sections 6.1, 7.3 and 7.4.

    Deviations
    ----------
    The least-squares line is used for uniform noise, too; the bound is the largest distance of the recent rows. A
    bound of normal noise is detected only if it cuts off a considerable part: at two standard deviations, not at
    three. A sample of a stream, at random or by a hash of its values, has the same line and noise.
    """

    state: ClassVar[State] = {
        "moments": Nested("_moments"),
        "now": Numbers(_now=Time),
        "at": Numbers(_last=float),
    }

    def __init__(self, horizon: Time | None = None, *, level: bool = False) -> None:
        super().__init__(horizon)
        self._level = level
        self.parameters = 2 if level else 3
        self._moments = WeightedMoments(2)  # time and value, relative to `_now` and `_last`
        self._now: Time = 0
        self._last = 0.0

    def observe(self, times: ArrayLike, values: ArrayLike) -> None:
        """Learn from rows."""
        time, value = columns(times, values)
        if not len(time):
            return
        newest, last = time.max().item(), float(value[-1])
        if self._moments.weight:
            newest = max(newest, self._now)
            passed = float(newest - self._now)
            self._moments.decay(2.0 ** (-passed / self._half_life))
            self._moments.shift_origin(np.array([passed, last - self._last]))
        self._now, self._last = newest, last
        ages = (newest - time).astype(np.float64)
        self._moments.add(np.column_stack((-ages, value.astype(np.float64) - last)), self._weights(ages))

    def line(self) -> tuple[float, float, float] | None:
        """The speed per unit of time, the line at the newest row, and the variance around it."""
        moments = self._moments
        (time_spread, covariance), (_, value_spread) = moments.spread
        if moments.weight <= 0 or not (self._level or time_spread > 0):
            return None
        speed = 0.0 if self._level else covariance / time_spread
        variance = max(value_spread - speed * covariance, 0.0) / moments.weight
        return speed, moments.mean[1] - speed * moments.mean[0], variance

    def _noise(self, recent: RecentRows) -> tuple[Array, Noise] | None:
        """The distances of recent rows from the line, and the noise that fits them."""
        line = self.line()
        if line is None or len(recent.times) < _MIN_ROWS - 1:
            return None
        speed, level, variance = line
        deviations = (
            recent.values.astype(np.float64) - self._last - level - speed * (recent.times - self._now)
        )
        return deviations, fit_noise(deviations, variance, may_be_bounded=True)

    def process(self, recent: RecentRows, unit: float = 1.0, origin: Time = 0) -> LinearTrend | None:
        """The line and its noise."""
        line, noise = self.line(), self._noise(recent)
        if line is None or noise is None:
            return None
        speed, level, _ = line
        offset = self._last + level - speed * (self._now - origin)
        return LinearTrend(float(speed * unit), float(offset), noise[1]) if math.isfinite(offset) else None

    def intervals(self, recent: RecentRows) -> tuple[Array, Array] | None:
        """By the noise around the line."""
        fitted = self._noise(recent)
        if fitted is None:
            return None
        deviations, noise = fitted[0][1:], fitted[1]
        return noise.below(deviations - 0.5), noise.below(deviations + 0.5)
