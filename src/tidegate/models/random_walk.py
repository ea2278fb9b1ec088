"""Values that wander step by step."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from tidegate.models.noise import Noise
from tidegate.models.process import History, Markov, known, whole
from tidegate.types import Array, InputError

if TYPE_CHECKING:
    from numpy.typing import ArrayLike


@dataclass(frozen=True, eq=False)
class RandomWalk(Markov):
    """X_t = X_{t-1} + drift + step, rounded: prices, positions, levels.

    Parameters
    ----------
    drift
        How far a step goes in the mean; it need not be whole.
    step
        What steps scatter by around the drift.

    Examples
    --------
    >>> walk = RandomWalk(drift=0, step=Noise(bound=1))
    >>> walk.probability(History(5, last=7), np.array([1, 2]), np.array([7, 9])) * 9
    array([[3., 3.],
           [0., 1.]])

    References
    ----------
    On Joining and Caching Stochastic Streams, section 7.5.

    Deviations
    ----------
    `fit` takes the likelier of normal steps around their mean and uniform steps around their middle; the
    scatter is the likeliest around these, which themselves do not allow for the rounding. Normal
    steps without bound are cut where no sum would notice, at nine standard deviations.
    """

    drift: float
    step: Noise

    def __post_init__(self) -> None:
        if not math.isfinite(self.drift):
            raise InputError(f"drift {self.drift!r} goes nowhere; give a finite number")

    @classmethod
    def fit(cls, values: ArrayLike) -> Self:
        """The likeliest drift and steps."""
        seen = whole(values)
        if len(seen) < 2:  # noqa: PLR2004 - two values make a step
            raise InputError(f"{len(seen)} values show no step; give at least 2")
        steps = np.diff(seen)
        mean, middle = float(steps.mean()), (int(steps.max()) + int(steps.min())) / 2
        normal = cls(mean, Noise.fit(steps - mean))
        uniform = cls(middle, Noise(bound=float(np.ptp(steps)) / 2))
        return max(uniform, normal, key=lambda walk: walk.step.likelihood(steps - walk.drift))

    @classmethod
    def remade(cls, plain: dict[str, Any]) -> Self:
        """Make it from its fields, as `plain` told them."""
        return cls(**plain | {"step": Noise(**plain["step"])})

    @cached_property
    def _one(self) -> tuple[int, Array]:
        """The least step, and the probabilities of it and the next ones."""
        low, high = math.floor(self.drift - self.step.reach), math.ceil(self.drift + self.step.reach)
        return low, self.step.mass(np.arange(low, high + 1) - self.drift)

    @cached_property
    def _sums(self) -> list[Array]:
        """The probabilities of the sums of 0, 1, 2 and more steps, as far as they were asked for."""
        return [np.ones(1)]

    def moves(self, ahead: Array, distances: Array) -> Array:
        """The probability to be so far away after so many steps, both of the same shape after broadcasting."""
        low, one = self._one
        sums = self._sums
        while len(sums) <= ahead.max(initial=0):
            sums.append(np.convolve(sums[-1], one))
        far, away = np.broadcast_arrays(ahead, distances)
        found = np.zeros(far.shape)
        for steps in np.unique(ahead).tolist():
            mass = sums[steps]
            place = away[far == steps] - steps * low
            there = (place >= 0) & (place < len(mass))
            found[far == steps] = np.where(there, mass[np.clip(place, 0, len(mass) - 1)], 0.0)
        return found

    def probability(self, history: History, ahead: Array, values: Array) -> Array:
        """By the distance from the last value."""
        return self.moves(ahead[None, :], (values - known(history, self))[:, None])

    def returns(self, ahead: Array, values: Array) -> Array:
        """The same from every value."""
        back = self.moves(ahead, np.zeros(1, np.int64))
        return np.repeat(back[None, :], len(values), axis=0)

    def intervals(self, values: Array) -> tuple[Array, Array]:
        """By the steps; the first value tells nothing."""
        apart = np.diff(values) - self.drift
        return self.step.below(apart - 0.5), self.step.below(apart + 0.5)
