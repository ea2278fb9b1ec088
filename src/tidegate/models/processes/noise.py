"""Noise around 0, uniform or normal, bounded or not."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from tidegate.compiled import kernel
from tidegate.models.validation import is_number, positive
from tidegate.models.value_object import ValueObject
from tidegate.types import Array, InputError

if TYPE_CHECKING:
    from typing import Self

REACH: Final = 9.0
"""Standard deviations beyond which the mass of a normal distribution does not change any sum."""
_MIN_SIGMA: Final = 0.1
_FACTOR: Final = 10.0
"""The maximum-likelihood sigma lies within this factor of the sample's, which is taken as at least `_MIN_SIGMA`."""
_PRECISION: Final = 1e-4
_HALVINGS: Final = 60


@dataclass(frozen=True, eq=False)
class Noise(ValueObject):
    """Uniform or normal noise that is added to a centre, the sum being rounded to a whole number.

    Around a whole centre, uniform noise gives each of the whole numbers up to `bound` away the same probability.

    Parameters
    ----------
    bound
        The largest distance from a whole centre; None for normal noise without bound.
    sigma
        The standard deviation of normal noise, before it is bounded; None for uniform noise.

    Examples
    --------
    >>> Noise(bound=2).mass(np.array([-3, -2, 0, 2]))
    array([0. , 0.2, 0.2, 0.2])
    >>> Noise(bound=1, sigma=1.0).mass(np.array([-1, 0, 1])).round(3)
    array([0.279, 0.442, 0.279])

    References
    ----------
    On Joining and Caching Stochastic Streams, sections 7.3, 7.4 and 8.

    Deviations
    ----------
    The centres of the paper are whole numbers, and it does not describe its discretisation. Here noise is continuous
    up to half a step beyond the bound, so that centres need not be whole.
    """

    bound: float | None = None
    sigma: float | None = None

    def __post_init__(self) -> None:
        if self.bound is None and self.sigma is None:
            raise InputError(
                "noise needs a bound or a sigma; give bound= for uniform, sigma= for normal noise"
            )
        if self.bound is not None and not (is_number(self.bound) and 0 <= self.bound < math.inf):
            raise InputError(
                f"bound of the noise is {self.bound!r}; give a finite number, at least 0, or None"
            )
        if self.sigma is not None:
            positive(self.sigma, "sigma of the noise")

    @staticmethod
    def check(value: object, what: str) -> None:
        """Refuse a value that is not a `Noise`, such as a bound."""
        if not isinstance(value, Noise):
            raise InputError(
                f"{what} is {value!r}; give a Noise: Noise(bound=...) for uniform, Noise(sigma=...) for normal"
            )

    @classmethod
    def fit(cls, deviations: Array) -> Self:
        """The maximum-likelihood normal noise around 0, bounded by the largest deviation."""
        bound = float(np.abs(deviations).max())
        usual = math.log(max(float(np.sqrt(np.mean(deviations**2))), _MIN_SIGMA))
        low, high = usual - math.log(_FACTOR), usual + math.log(_FACTOR)
        while high - low > _PRECISION:
            third = (high - low) / 3
            ends = (cls(bound, math.exp(end)).likelihood(deviations) for end in (low + third, high - third))
            if next(ends) > next(ends):
                high -= third
            else:
                low += third
        return cls(bound, math.exp((low + high) / 2))

    @classmethod
    def within(cls, bound: float, deviation: float) -> Self | None:
        """Normal noise with this standard deviation after bounding; None if that is impossible.

        Examples
        --------
        >>> narrow = Noise.within(15, 7.5)
        >>> round(narrow.sigma, 2)
        9.64
        >>> deviations = np.arange(-15, 16)
        >>> np.sqrt(narrow.mass(deviations) @ deviations**2).round(1)
        np.float64(7.5)
        """
        edge = bound + 0.5
        low, high = deviation, _FACTOR * edge
        if _bounded_deviation(high, edge) <= deviation:
            return None
        while high - low > _PRECISION * low:
            middle = (low + high) / 2
            low, high = (middle, high) if _bounded_deviation(middle, edge) < deviation else (low, middle)
        return cls(bound, high)

    @property
    def reach(self) -> float:
        """The largest distance from the centre with a probability that matters."""
        edges = [math.inf if self.bound is None else self.bound + 0.5]
        edges += [] if self.sigma is None else [REACH * self.sigma]
        return min(edges) + 0.5

    @property
    def variance(self) -> float:
        """The variance of unbounded normal noise, or of uniform noise."""
        return self.sigma**2 if self.sigma is not None else ((self.bound or 0.0) + 0.5) ** 2 / 3

    def widened(self, moves: float) -> Noise:
        """The noise around a centre that is uniform over a distance of `moves`."""
        bound = None if self.bound is None else self.bound + moves / 2
        return Noise(bound, None if self.sigma is None else math.sqrt(self.sigma**2 + moves**2 / 12))

    def mass(self, deviations: Array) -> Array:
        """The probability of the whole number that lies this far from the centre."""
        if self.sigma is None and self.bound is not None:
            # Equal to the last digit at equal distances, so that rows of equal benefit are ties.
            within: Array = np.clip(self.bound + 1 - np.abs(deviations), 0.0, 1.0) / (2 * self.bound + 1)
            return within
        # In the lower tail the distribution function is near 0, so that differences keep their digits.
        near = -np.abs(deviations)
        return self.below(near + 0.5) - self.below(near - 0.5)

    def below(self, deviations: Array) -> Array:
        """The probability of noise below this, before rounding."""
        edge = math.inf if self.bound is None else self.bound + 0.5
        cut = np.clip(np.asarray(deviations, np.float64), -edge, edge)
        if self.sigma is None:
            return (cut + edge) / (2 * edge)
        low = normal(np.array([-edge / self.sigma]))
        probability: Array = (normal(cut / self.sigma) - low) / (1 - 2 * low)
        return probability

    def sample(self, count: int, rng: np.random.Generator) -> Array:
        """Draw `count` values before rounding, by inverting the distribution function."""
        uniform = rng.random(count)
        low, high = np.full(count, -self.reach), np.full(count, self.reach)
        for _ in range(_HALVINGS):
            middle = (low + high) / 2
            short = self.below(middle) < uniform
            low, high = np.where(short, middle, low), np.where(short, high, middle)
        return high

    def likelihood(self, deviations: Array) -> float:
        """The logarithm of the probability of all these deviations."""
        mass = self.mass(deviations)
        return float(np.log(mass).sum()) if mass.all() else -math.inf


def _bounded_deviation(sigma: float, edge: float) -> float:
    """The standard deviation of normal noise that is truncated at both edges."""
    at = edge / sigma
    density = math.exp(-(at**2) / 2) / math.sqrt(2 * math.pi)
    return sigma * math.sqrt(max(0.0, 1 - 2 * at * density / math.erf(at / math.sqrt(2))))


def normal(scores: Array) -> Array:
    """The standard normal distribution function."""
    flat = np.ascontiguousarray(scores, np.float64)
    return _normal(flat.ravel()).reshape(flat.shape)


@kernel
def _normal(scores: Array) -> Array:
    result = np.empty(len(scores))
    for i in range(len(scores)):
        result[i] = 0.5 * math.erfc(-scores[i] / math.sqrt(2.0))
    return result
