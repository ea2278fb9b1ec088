"""Values that change by independent steps: the random walk."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, Final, NamedTuple, Self

import numpy as np

from tidegate.models.processes.noise import Noise, normal
from tidegate.models.processes.process import History, Markov, as_integers, last_value
from tidegate.models.validation import finite
from tidegate.types import Array, InputError

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

_DEVIATIONS: Final = 9.0
_FAR_DEVIATIONS: Final = 21.0
_NEGLIGIBLE: Final = 1e-100
"""Sums of steps with a lower probability, or more standard deviations away, are left out; else their number would
grow with the steps. Far values keep a probability, so that the nearer of two values is more likely."""
_CACHED_WALKS: Final = 16
_MIN_NORMAL: Final = 8.0
"""For normal steps with a larger sigma, rounding hardly matters: sums are normal to eight digits, without a table."""


@dataclass(frozen=True, eq=False)
class RandomWalk(Markov):
    """X_t = X_{t-1} + drift + step, rounded: prices, positions, levels.

    Parameters
    ----------
    drift
        The mean of a step; it need not be whole.
    step
        The noise of steps around the drift.

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
    `fit` chooses between normal steps around their mean and uniform steps around their
    middle, by likelihood. The noise is fitted by maximum likelihood; mean and middle ignore rounding. Normal steps
    without bound are cut at nine standard deviations, where no sum changes.
    """

    drift: float
    step: Noise

    def __post_init__(self) -> None:
        finite(self.drift, "drift of the walk")
        Noise.check(self.step, "step of the walk")

    @classmethod
    def fit(cls, values: ArrayLike) -> Self:
        """The drift and the steps of the highest likelihood."""
        observed = as_integers(values)
        if len(observed) < 2:  # noqa: PLR2004 - a step needs two values
            raise InputError(f"{len(observed)} values show no step; give at least 2")
        steps = np.diff(observed)
        mean, middle = float(steps.mean()), (int(steps.max()) + int(steps.min())) / 2
        normal_steps = cls(mean, Noise.fit(steps - mean))
        uniform = cls(middle, Noise(bound=float(np.ptp(steps)) / 2))
        return max(uniform, normal_steps, key=lambda walk: walk.step.likelihood(steps - walk.drift))

    @cached_property
    def single_step(self) -> tuple[int, Array]:
        """The smallest step, and the probabilities from it on."""
        low, high = math.floor(self.drift - self.step.reach), math.ceil(self.drift + self.step.reach)
        return low, self.step.mass(np.arange(low, high + 1) - self.drift)

    def moves(self, ahead: Array, distances: Array) -> Array:
        """The probability of each distance after each number of steps; shapes are broadcast.

        Without drift, `d` and `-d` have the same probability to the last digit. So have `d` with a drift and `-d`
        with the opposite drift.
        """
        spread = self._spread(ahead)
        if spread is not None:
            near = -np.abs(distances - self.drift * ahead)
            return normal((near + 0.5) / spread) - normal((near - 0.5) / spread)
        sums = self._sums(int(ahead.max(initial=1)))
        place = self._upward(distances) - sums.lows[ahead]
        in_range = (place >= 0) & (place < sums.lengths[ahead])
        probabilities: Array = np.where(
            in_range, sums.probabilities[np.where(in_range, sums.starts[ahead] + place, 0)], 0.0
        )
        return probabilities

    def _spread(self, ahead: Array) -> Array | None:
        """The standard deviation after each number of steps; None if rounding matters."""
        if self.step.bound is not None or self.step.sigma is None or self.step.sigma <= _MIN_NORMAL:
            return None
        # The last rounding is that of the distance.
        spread: Array = np.sqrt(self.step.sigma**2 * ahead + (ahead - 1) / 12)
        return spread

    def _upward(self, distances: Array) -> Array:
        """Distances in the walk that drifts up: mirrored for a downward drift; negative without drift."""
        if self.drift == 0:
            return -np.abs(distances)
        return distances if self.drift > 0 else -distances

    def _sums(self, ahead: int) -> _StepSums:
        """The sums of steps of the walk that drifts up."""
        upward = self if self.drift >= 0 else RandomWalk(-self.drift, self.step)
        return _sums(upward, 1 << (ahead - 1).bit_length())

    def span(self, ahead: int, *, far: bool = True) -> tuple[int, int]:
        """The smallest and the largest distance after any of the next `ahead` steps.

        With `far=False` only distances that change a sum of ordinary size.
        """
        steps = np.arange(1, ahead + 1)
        spread = self._spread(steps)
        if spread is not None:
            return _within(self.drift * steps, (_FAR_DEVIATIONS if far else _DEVIATIONS) * spread)
        sums = self._sums(ahead)
        lows, lengths = sums.lows[1 : ahead + 1], sums.lengths[1 : ahead + 1]
        low, high = int(lows.min()), int((lows + lengths).max()) - 1
        if self.drift <= 0:
            low, high = (low, -low) if self.drift == 0 else (-high, -low)
        if not far:
            least, one = self.single_step
            places = least + np.arange(len(one))
            mean = float(one @ places)
            reach = _DEVIATIONS * np.sqrt(steps * float(one @ (places - mean) ** 2)) + len(one)
            near = _within(mean * steps, reach)
            low, high = max(low, near[0]), min(high, near[1])
        return low, high

    def probability(self, history: History, ahead: Array, values: Array) -> Array:
        """By the distance from the last value."""
        return self.moves(ahead[None, :], (values - last_value(history, self))[:, None])

    def sample(self, count: int, rng: np.random.Generator) -> Array:
        """From 0 on, step by step."""
        steps = np.rint(self.drift + self.step.sample(max(count - 1, 0), rng)).astype(np.int64)
        return np.cumsum(np.append(0, steps))[:count]

    def likely(self, history: History, ahead: Array) -> Array:
        """The values that it can reach within these steps."""
        low, high = self.span(int(ahead.max(initial=1)), far=False)
        return last_value(history, self) + np.arange(low, high + 1)

    def in_strides(self, rows: int) -> RandomWalk:
        """The sum of several steps, which is nearly normal."""
        if rows == 1:
            return self
        return RandomWalk(self.drift * rows, Noise(sigma=math.sqrt(rows * self.step.variance)))

    def returns(self, ahead: Array, values: Array) -> Array:
        """The same from every value."""
        back = self.moves(ahead, np.zeros(1, np.int64))
        return np.repeat(back[None, :], len(values), axis=0)

    def intervals(self, values: Array) -> tuple[Array, Array]:
        """By the steps; the first value is left out."""
        noise = np.diff(values) - self.drift
        return self.step.below(noise - 0.5), self.step.below(noise + 0.5)


def _within(centres: Array, reaches: Array) -> tuple[int, int]:
    """The smallest and the largest whole number within reach of any of these centres."""
    return math.floor((centres - reaches).min()), math.ceil((centres + reaches).max())


class _StepSums(NamedTuple):
    """The probabilities of the sums of 0, 1, 2 and more steps, one after the other; each begins at its least sum."""

    probabilities: Array
    starts: Array
    lengths: Array
    lows: Array


@lru_cache(maxsize=_CACHED_WALKS)
def _sums(walk: RandomWalk, most: int) -> _StepSums:
    least, one = walk.single_step
    low, lows, sums = 0, [0], [np.ones(1)]
    for _ in range(most):
        probabilities = np.convolve(sums[-1], one)
        matters = np.flatnonzero(probabilities > _NEGLIGIBLE)
        low += least + int(matters[0])
        lows.append(low)
        sums.append(probabilities[matters[0] : matters[-1] + 1])
    lengths = np.array([len(one) for one in sums])
    return _StepSums(np.concatenate(sums), np.cumsum(lengths) - lengths, lengths, np.array(lows))
