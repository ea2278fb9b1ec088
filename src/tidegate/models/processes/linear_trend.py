"""Values along a line."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, ClassVar, Final, Self

import numpy as np

from tidegate.models.processes.noise import Noise
from tidegate.models.processes.process import History, Process, as_integers
from tidegate.models.validation import finite
from tidegate.types import FAR, Array, InputError

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

_HALVINGS: Final = 200
_WHOLE: Final = 1e-9
"""A computed speed as close as this to a whole number is that number, but for rounding."""


@dataclass(frozen=True, eq=False)
class LinearTrend(Process):
    """X_t = speed * t + offset + noise: timestamps, counters, and other values that drift steadily.

    Parameters
    ----------
    speed
        The distance that the centre moves in a time step.
    offset
        The centre at time 0; a stream that lags by `k` steps has `-k * speed`.
    noise
        The noise around the centre: uniform up to a bound, or normal, bounded or not.

    Examples
    --------
    >>> trend = LinearTrend(speed=1, offset=0, noise=Noise(bound=2))
    >>> trend.probability(History(10), np.array([1, 2, 8]), np.array([10]))
    array([[0.2, 0.2, 0. ]])

    References
    ----------
    On Joining and Caching Stochastic Streams, sections 6.1, 7.3 and 7.4.

    Deviations
    ----------
    `fit` chooses between normal noise around the least-squares line and uniform noise around
    the line with the smallest maximum distance, by likelihood. The noise is fitted by maximum likelihood; the lines
    themselves ignore rounding.
    """

    independent: ClassVar[bool] = True

    speed: float
    offset: float
    noise: Noise

    def __post_init__(self) -> None:
        finite(self.speed, "speed of the trend")
        finite(self.offset, "offset of the trend")
        Noise.check(self.noise, "noise of the trend")

    @classmethod
    def fit(cls, values: ArrayLike) -> Self:
        """The line and the noise of the highest likelihood."""
        observed = as_integers(values)
        if len(observed) < 2:  # noqa: PLR2004 - two points define a line
            raise InputError(f"{len(observed)} values show no trend; give at least 2")
        times = np.arange(len(observed))
        speed, offset = np.polyfit(times, observed, 1).tolist()
        if abs(speed - round(speed)) < _WHOLE:
            speed = float(round(speed))
            offset = float(np.mean(observed - speed * times))
        normal = cls(speed, offset, Noise.fit(observed - speed * times - offset))
        uniform = cls._minimax_line(times, observed)
        return max(uniform, normal, key=lambda trend: trend.noise.likelihood(observed - trend.centre(times)))

    @classmethod
    def _minimax_line(cls, times: Array, values: Array) -> Self:
        """The line with the smallest maximum distance, which is convex in its speed."""
        steps = np.diff(values)
        low, high = float(steps.min()), float(steps.max())
        for _ in range(_HALVINGS):
            third = (high - low) / 3
            if np.ptp(values - (low + third) * times) <= np.ptp(values - (high - third) * times):
                high -= third
            else:
                low += third
        # Most exact trends have a whole speed, which the search only approximates. Of equals, the first is chosen.
        found = (low + high) / 2
        near = [float(round(found)), found]
        speed = min(near, key=lambda at: round(float(np.ptp(values - at * times)), 9))
        residuals = values - speed * times
        middle = float(residuals.max() + residuals.min()) / 2
        return cls(speed, middle, Noise(bound=float(np.ptp(residuals)) / 2))

    def centre(self, times: Array | int) -> Array:
        """The line at these times."""
        return np.asarray(self.speed * times + self.offset)

    def moves_whole(self) -> bool:
        """Whether the speed is a whole number, so that the future of a value depends on its distance only."""
        return self.speed != 0 and float(self.speed).is_integer()

    def probability(self, history: History, ahead: Array, values: Array) -> Array:
        """By each value's distance from the line."""
        return self.noise.mass(values[:, None] - self.centre(history.now + ahead)[None, :])

    def sample(self, count: int, rng: np.random.Generator) -> Array:
        """The line plus noise."""
        values: Array = np.rint(self.centre(np.arange(count)) + self.noise.sample(count, rng))
        return values.astype(np.int64)

    def likely(self, history: History, ahead: Array) -> Array:
        """The values within reach of the line at any of these steps."""
        reach = math.ceil(self.noise.reach) + 1
        centres = np.rint(self.centre(history.now + ahead)).astype(np.int64)
        return np.unique(centres[:, None] + np.arange(-reach, reach + 1))

    def share(self, values: Array) -> Array | None:
        """By the distance from the line, unless it moves."""
        return None if self.speed else self.noise.mass(values - self.offset)

    def in_strides(self, rows: int) -> LinearTrend:
        """The line moves within a stride, also within a single step, which widens the noise."""
        speed = self.speed * rows
        return replace(self, speed=speed, noise=self.noise.widened(abs(speed)))

    def last(self, values: Array) -> Array:
        """The last time at which each of these values can arrive: inf without end, -inf for never."""
        if self.noise.bound is None:
            return np.full(len(values), np.inf)
        # After rounding, values at this distance cannot arrive.
        edge = self.noise.bound + 1
        if self.speed == 0:
            return np.where(np.abs(values - self.offset) < edge, np.inf, -np.inf)
        ahead = (values - self.offset) * np.sign(self.speed) + edge
        last: Array = np.ceil(ahead / abs(self.speed)) - 1
        return last

    def ends(self) -> bool:
        """True if it moves and its noise is bounded."""
        return self.speed != 0 and self.noise.bound is not None

    def until(self, history: History, values: Array) -> int | None:
        """The step when the noise has passed the last of them."""
        if self.speed == 0 or not len(values):
            return None
        farthest = values.max() if self.speed > 0 else values.min()
        passed = abs(self.noise.reach / self.speed) + (float(farthest) - self.offset) / self.speed
        return max(0, math.ceil(passed - history.now)) if passed < FAR else None

    def intervals(self, values: Array) -> tuple[Array, Array]:
        """By the noise around the line."""
        deviations = values - self.centre(np.arange(len(values)))
        return self.noise.below(deviations - 0.5), self.noise.below(deviations + 0.5)
