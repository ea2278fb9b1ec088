"""The contract of a running fit: a process of one class, fitted to rows while they arrive."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

from tidegate.models.decay import half_life
from tidegate.models.processes.noise import Noise
from tidegate.types import Array, InputError, Stateful

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from tidegate.models.processes.process import Process
    from tidegate.types import Time

ROUNDING: Final = 1 / 12
"""The variance that rounding adds."""
MIN_SIGMA: Final = 0.1
"""The smallest sigma that rounded values can show."""


class RecentRows(NamedTuple):
    """The last rows in order of time, for the shape of the noise and the quality of a fit."""

    times: Array
    values: Array


class RunningFit(Stateful, ABC):
    """A process of one class, fitted to a stream while it arrives, in constant memory.

    Times may have any unit and gaps, and several rows may have the same time. The fit is of a rate of change by
    time, so that a part of a stream gives the same result as the whole.

    Parameters
    ----------
    horizon
        The half-life of a row, in units of time; None for no decay.

    Attributes
    ----------
    parameters
        The number of fitted parameters.
    """

    parameters: int

    def __init__(self, horizon: Time | None = None) -> None:
        self._half_life = half_life(horizon)

    @abstractmethod
    def observe(self, times: ArrayLike, values: ArrayLike) -> None:
        """Learn from rows."""

    @abstractmethod
    def process(self, recent: RecentRows, unit: float = 1.0, origin: Time = 0) -> Process | None:
        """The fitted process, in steps of `unit` from `origin` on; None while it is unknown.

        The noise has the shape of the highest likelihood for the `recent` rows: normal or uniform; around a trend
        also bounded normal.
        """

    @abstractmethod
    def intervals(self, recent: RecentRows) -> tuple[Array, Array] | None:
        """Pr{X < v} and Pr{X <= v} of each recent row but the first, given the one before; None while unknown."""

    def _weights(self, ages: Array) -> Array:
        weights: Array = np.exp2(-ages / self._half_life)
        return weights


def columns(times: ArrayLike, values: ArrayLike) -> tuple[Array, Array]:
    """Times and values of rows as arrays of equal length."""
    time, value = np.asarray(times), np.asarray(values)
    if time.ndim != 1 or time.shape != value.shape:
        raise InputError(f"{time.shape} times have {value.shape} values; give two columns of one length")
    return time, value


def fit_noise(
    deviations: Array, variance: float, widest: float = np.inf, *, may_be_bounded: bool = False
) -> Noise:
    """Noise of this variance after rounding, in the shape of the highest likelihood for these deviations.

    The shapes are normal, uniform up to the largest deviation, and normal up to it. The last one has one more
    parameter, and pays twice Schwarz's penalty for it, since the largest deviation from a fitted line is slightly
    too large.
    """
    spread = float(np.sqrt(max(variance - ROUNDING, MIN_SIGMA**2)))
    normal = Noise(sigma=spread)
    bound = float(np.abs(deviations).max(initial=0.0))
    if not len(deviations) or bound > widest:
        return normal
    penalty = {Noise(bound=bound): 0.0, normal: 0.0}
    bounded = Noise.within(bound, spread) if may_be_bounded else None
    if bounded is not None:
        penalty[bounded] = float(np.log(len(deviations)))
    return max(penalty, key=lambda noise: noise.likelihood(deviations) - penalty[noise])
