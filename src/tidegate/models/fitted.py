"""The contract of a running fit: one kind of process, fed with times and values, known at any moment."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Final, NamedTuple, Self

import numpy as np

from tidegate.models.horizon import half_life
from tidegate.models.noise import Noise
from tidegate.types import Array, InputError

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from tidegate.models.process import Process
    from tidegate.types import Time

ROUNDING: Final = 1 / 12
"""The variance that rounding adds."""
LEAST_SIGMA: Final = 0.1
"""Rounded values tell of no scatter that is less."""


class Recent(NamedTuple):
    """The rows that came last, in order of time: what tells the shape of noise, and whether a fit is any good."""

    times: Array
    values: Array


class Fitted(ABC):
    """A process of one kind, fitted to a stream while it arrives, in memory that does not grow.

    Times may be any: units of a simulation or microseconds, with gaps, and several rows at one time. What is learned
    is a rate of change by time, so a stream of which only a part is seen shows the same as the whole would.

    Parameters
    ----------
    horizon
        The half-life of a row, in units of time; None forgets nothing.

    Attributes
    ----------
    parameters
        How many numbers are fitted.
    """

    parameters: int

    def __init__(self, horizon: Time | None = None) -> None:
        self._half_life = half_life(horizon)

    @abstractmethod
    def observe(self, times: ArrayLike, values: ArrayLike) -> None:
        """Learn from rows."""

    @abstractmethod
    def process(self, recent: Recent, unit: float = 1.0, origin: Time = 0) -> Process | None:
        """What was learned, in steps of `unit` from `origin` on; None while that cannot be told.

        Noise has the shape that is likeliest for the `recent` rows: normal, or uniform up to a bound; or around a
        line normal up to a bound.
        """

    @abstractmethod
    def intervals(self, recent: Recent) -> tuple[Array, Array] | None:
        """Pr{X < v} and Pr{X <= v} of each recent row but the first, given the one before; None while unknown."""

    @abstractmethod
    def snapshot(self) -> dict[str, Array]:
        """What was learned, as plain arrays."""

    @abstractmethod
    def restore(self, state: dict[str, Array]) -> Self:
        """Take up what `snapshot` gave."""

    def _weights(self, ages: Array) -> Array:
        weights: Array = np.exp2(-ages / self._half_life)
        return weights


def columns(times: ArrayLike, values: ArrayLike) -> tuple[Array, Array]:
    """Times and values of rows, as many of each."""
    when, what = np.asarray(times), np.asarray(values)
    if when.ndim != 1 or when.shape != what.shape:
        raise InputError(f"{when.shape} times have {what.shape} values; give two columns of one length")
    return when, what


def shaped(deviations: Array, variance: float, widest: float = np.inf, *, may_be_cut: bool = False) -> Noise:
    """Noise of this variance after rounding: of the shapes, that by which these deviations are likeliest.

    Normal, or uniform up to the farthest deviation; or normal up to there, which has a number more to fit and pays
    for it: twice what Schwarz asks for, since the farthest deviation from a line that was fitted is a little too far.
    """
    spread = float(np.sqrt(max(variance - ROUNDING, LEAST_SIGMA**2)))
    normal = Noise(sigma=spread)
    bound = float(np.abs(deviations).max(initial=0.0))
    if not len(deviations) or bound > widest:
        return normal
    price = {Noise(bound=bound): 0.0, normal: 0.0}
    cut = Noise.within(bound, spread) if may_be_cut else None
    if cut is not None:
        price[cut] = float(np.log(len(deviations)))
    return max(price, key=lambda noise: noise.likelihood(deviations) - price[noise])
