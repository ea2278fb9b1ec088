"""Values that move along a line."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Final, Self

import numpy as np

from tidegate.models.noise import Noise
from tidegate.models.numbers import finite
from tidegate.models.process import History, Process, whole
from tidegate.types import FAR, Array, InputError

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

_HALVINGS: Final = 200


@dataclass(frozen=True, eq=False)
class LinearTrend(Process):
    """X_t = speed * t + offset + noise: timestamps on their way, counters, anything that drifts steadily.

    Parameters
    ----------
    speed
        How far the centre moves in a time step.
    offset
        Where the centre is at time 0; a stream that lags by `k` steps has `-k * speed`.
    noise
        What values scatter by: uniform up to a bound, or normal, bounded or not.

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
    `fit` takes the likelier of normal noise around the line of least squares and uniform noise around the line
    that is nowhere far from the values. The noise is the likeliest around its line; the lines themselves do
    not allow for the rounding.
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
        """The likeliest line and noise."""
        seen = whole(values)
        if len(seen) < 2:  # noqa: PLR2004 - through two points goes a line
            raise InputError(f"{len(seen)} values show no trend; give at least 2")
        times = np.arange(len(seen))
        speed, offset = np.polyfit(times, seen, 1).tolist()
        normal = cls(speed, offset, Noise.fit(seen - speed * times - offset))
        uniform = cls._narrowest(times, seen)
        return max(uniform, normal, key=lambda trend: trend.noise.likelihood(seen - trend.centre(times)))

    @classmethod
    def _narrowest(cls, times: Array, values: Array) -> Self:
        """The line whose farthest value is nearest: the width of the band around it is convex in its speed."""
        steps = np.diff(values)
        low, high = float(steps.min()), float(steps.max())
        for _ in range(_HALVINGS):
            third = (high - low) / 3
            if np.ptp(values - (low + third) * times) <= np.ptp(values - (high - third) * times):
                high -= third
            else:
                low += third
        # Most trends that are exact have a whole speed, which thirds only come close to.
        near = [(low + high) / 2, float(round((low + high) / 2))]
        speed = min(near, key=lambda at: round(float(np.ptp(values - at * times)), 9))
        apart = values - speed * times
        return cls(speed, float(apart.max() + apart.min()) / 2, Noise(bound=float(np.ptp(apart)) / 2))

    @classmethod
    def remade(cls, plain: dict[str, Any]) -> Self:
        """Make it from its fields, as `plain` told them."""
        return cls(**plain | {"noise": Noise(**plain["noise"])})

    def centre(self, times: Array | int) -> Array:
        """Where the line is at these times."""
        return np.asarray(self.speed * times + self.offset)

    def moves_whole(self) -> bool:
        """Whether each step takes it a whole distance on, so that a value's future depends on its offset only."""
        return self.speed != 0 and float(self.speed).is_integer()

    def probability(self, history: History, ahead: Array, values: Array) -> Array:
        """By each value's distance from the line."""
        return self.noise.mass(values[:, None] - self.centre(history.now + ahead)[None, :])

    def sample(self, count: int, rng: np.random.Generator) -> Array:
        """The line, and noise around it."""
        values: Array = np.rint(self.centre(np.arange(count)) + self.noise.sample(count, rng))
        return values.astype(np.int64)

    def likely(self, history: History, ahead: Array) -> Array:
        """The values within reach of the line at any of these steps."""
        reach = math.ceil(self.noise.reach) + 1
        centres = np.rint(self.centre(history.now + ahead)).astype(np.int64)
        return np.unique(centres[:, None] + np.arange(-reach, reach + 1))

    def last(self, values: Array) -> Array:
        """The last time before all that may come has passed each of these values: inf without end, -inf for never."""
        if self.noise.bound is None:
            return np.full(len(values), np.inf)
        # Values as far away as this, after rounding, no longer come.
        edge = self.noise.bound + 1
        if self.speed == 0:
            return np.where(np.abs(values - self.offset) < edge, np.inf, -np.inf)
        ahead = (values - self.offset) * np.sign(self.speed) + edge
        last: Array = np.ceil(ahead / abs(self.speed)) - 1
        return last

    def ends(self) -> bool:
        """It does if it moves and its noise is bounded."""
        return self.speed != 0 and self.noise.bound is not None

    def until(self, history: History, values: Array) -> int | None:
        """When its noise has passed the last of them."""
        if self.speed == 0 or not len(values):
            return None
        farthest = values.max() if self.speed > 0 else values.min()
        passed = abs(self.noise.reach / self.speed) + (float(farthest) - self.offset) / self.speed
        return max(0, math.ceil(passed - history.now)) if passed < FAR else None

    def intervals(self, values: Array) -> tuple[Array, Array]:
        """By the noise around the line."""
        apart = values - self.centre(np.arange(len(values)))
        return self.noise.below(apart - 0.5), self.noise.below(apart + 0.5)
