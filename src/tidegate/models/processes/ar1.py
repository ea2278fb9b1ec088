"""Values that return to their mean: the AR(1) process."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Self

import numpy as np

from tidegate.compiled import kernel
from tidegate.models.processes.noise import REACH, normal
from tidegate.models.processes.process import History, Markov, as_integers, last_value
from tidegate.models.validation import finite, is_number, positive
from tidegate.types import Array, InputError

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

_EXACT: Final = 1e-12
"""Noise below this fraction of the values is a rounding error of the regression."""
_FORGOTTEN: Final = 1e-16
"""A smaller fraction of the last value does not matter."""


@dataclass(frozen=True, eq=False)
class AR1(Markov):
    """X_t = phi0 + phi1 * X_{t-1} + normal noise: temperatures, loads, and other values that return to a level.

    Parameters
    ----------
    phi0
        The constant of each step; the mean is `phi0 / (1 - phi1)`.
    phi1
        The fraction of a value that remains after a step, between -1 and 1.
    sigma
        The standard deviation of the noise.

    Examples
    --------
    >>> level = AR1(phi0=5.59, phi1=0.72, sigma=4.22)
    >>> round(level.mean, 2)
    19.96
    >>> level.probability(History(0, last=30), np.array([1, 100]), np.array([20, 27])).round(3)
    array([[0.022, 0.066],
           [0.094, 0.034]])

    References
    ----------
    On Joining and Caching Stochastic Streams, sections 6.1 and 8 (REAL).

    Deviations
    ----------
    The process is continuous and its observations are rounded; the last value is assumed to be exact.
    `fit` is conditional on the first value. Section 8 calls 4.22 a standard deviation, which is correct.
    """

    phi0: float
    phi1: float
    sigma: float

    def __post_init__(self) -> None:
        positive(self.sigma, "sigma")
        finite(self.phi0, "phi0")
        if not is_number(self.phi1) or not abs(self.phi1) < 1:
            raise InputError(f"phi1 is {self.phi1!r}; give one between -1 and 1, or use RandomWalk for 1")

    @classmethod
    def fit(cls, values: ArrayLike) -> Self:
        """The regression of each value on the one before."""
        observed = as_integers(values)
        if len(np.unique(observed[:-1])) < 2:  # noqa: PLR2004 - a line needs two points
            raise InputError(f"values {observed[:3].tolist()}... do not vary; use Stationary")
        phi1, phi0 = np.polyfit(observed[:-1], observed[1:], 1).tolist()
        if not abs(phi1) < 1:
            raise InputError(
                f"no AR1 fits these {len(observed)} values: phi1 would be {phi1:.6g}, so they do not return to a "
                "mean; fit a RandomWalk or a LinearTrend instead"
            )
        sigma = float(np.sqrt(np.mean((observed[1:] - phi0 - phi1 * observed[:-1]) ** 2)))
        if not sigma > _EXACT * np.abs(observed).max():
            raise InputError(
                f"no AR1 fits these {len(observed)} values: each follows from the one before without noise; "
                "give more of them, or use Oracle"
            )
        return cls(phi0, phi1, sigma)

    @property
    def mean(self) -> float:
        """The mean that values return to."""
        return self.phi0 / (1 - self.phi1)

    def forgotten_after(self) -> int:
        """The number of steps after which the last value does not matter."""
        return math.ceil(math.log(_FORGOTTEN) / math.log(abs(self.phi1))) if self.phi1 else 1

    def reached(self, start: Array | int, remaining: Array, values: Array) -> Array:
        """The probability of values when the fraction `remaining` of `start` is left; shapes are broadcast."""
        spread = self.sigma * np.sqrt((1 - remaining**2) / (1 - self.phi1**2))
        near = -np.abs(values - self.mean - remaining * (start - self.mean))
        return normal((near + 0.5) / spread) - normal((near - 0.5) / spread)

    def probability(self, history: History, ahead: Array, values: Array) -> Array:
        """By the distance from the expected value."""
        return self.reached(last_value(history, self), self.phi1 ** ahead[None, :], values[:, None])

    def sample(self, count: int, rng: np.random.Generator) -> Array:
        """The first value is drawn from the stationary distribution."""
        noise = rng.normal(0.0, self.sigma, count)
        noise[:1] /= math.sqrt(1 - self.phi1**2)
        return np.rint(self.mean + _autoregressive(noise, self.phi1)).astype(np.int64)

    def likely(self, history: History, ahead: Array) -> Array:
        """The values within some standard deviations of the expected value."""
        remaining = self.phi1**ahead
        centres = self.mean + remaining * (last_value(history, self) - self.mean)
        reach = REACH * self.sigma / math.sqrt(1 - self.phi1**2) + 1
        return np.arange(math.floor(centres.min() - reach), math.ceil(centres.max() + reach) + 1)

    def in_strides(self, rows: int) -> AR1:
        """The fraction that remains after several steps, and their noise together."""
        if rows == 1:
            return self
        remaining = self.phi1**rows
        spread = math.sqrt((1 - remaining**2) / (1 - self.phi1**2))
        return AR1(self.mean * (1 - remaining), remaining, self.sigma * spread)

    def returns(self, ahead: Array, values: Array) -> Array:
        """By the distance of the value from the mean."""
        return self.reached(values[:, None], self.phi1 ** ahead[None, :], values[:, None])

    def intervals(self, values: Array) -> tuple[Array, Array]:
        """By the noise of each step; the first value is left out."""
        noise = values[1:] - self.phi0 - self.phi1 * values[:-1]
        return normal((noise - 0.5) / self.sigma), normal((noise + 0.5) / self.sigma)


@kernel
def _autoregressive(noise: Array, phi1: float) -> Array:
    """The distance from the mean: at each step the fraction `phi1` remains and noise is added."""
    distance = noise.copy()
    for i in range(1, len(distance)):
        distance[i] += phi1 * distance[i - 1]
    return distance
