"""The contract of a stochastic process: the probabilities of future values, given the past."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, ClassVar, Final, NamedTuple, Self

import numpy as np

from tidegate.models.value_object import ValueObject
from tidegate.types import Array, InputError

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

_TERMS: Final = 100
_MIN_SCALED: Final = 0.2
"""Below this the Kolmogorov distribution is 0 to the last digit, but its series does not converge there."""
_SEED: Final = 0x676F6F646E657373
"""A separate seed, since these random numbers must be independent of those of the values."""


class History(NamedTuple):
    """The observed past of a stream, as far as processes need it.

    Parameters
    ----------
    now
        The present time; the first value arrived at time 0.
    last
        The value that arrived now; None before the first.

    Examples
    --------
    >>> History.of([3, 1, 4])
    History(now=2, last=4)
    """

    now: int
    last: int | None = None

    @classmethod
    def of(cls, values: ArrayLike) -> Self:
        """The history after these values, which arrived at the times 0, 1, 2 and so on."""
        column = as_integers(values)
        return cls(len(column) - 1, int(column[-1]) if len(column) else None)


class Process(ValueObject, ABC):
    """A stream of one whole number at each time step 0, 1, 2 and so on.

    A process gives the probability of each value at each future time. It is fitted to observed values by maximum
    likelihood, and `goodness` tests whether values agree with it.

    Attributes
    ----------
    independent
        Whether the values of different times are independent, so that later observations do not change the forecast.

    References
    ----------
    On Joining and Caching Stochastic Streams, section 3.

    Deviations
    ----------
    No process here depends on more than one earlier value, so a history is the time and the last value.
    """

    independent: ClassVar[bool]

    family: ClassVar[str] = "process"

    @abstractmethod
    def probability(self, history: History, ahead: Array, values: Array) -> Array:
        """Pr{X_{now + d} = v | history}, a row for each of `values` and a column for each of `ahead` (1 and up)."""

    @classmethod
    @abstractmethod
    def fit(cls, values: ArrayLike) -> Self:
        """The process of this class with the highest likelihood for these values, from time 0 on."""

    @abstractmethod
    def intervals(self, values: Array) -> tuple[Array, Array]:
        """Pr{X_t < v} and Pr{X_t <= v} of each value given those before; of the first only if it is defined."""

    def likely(self, history: History, ahead: Array) -> Array:  # noqa: ARG002 - for subclasses
        """The distinct values with a probability that matters at these steps ahead."""
        raise InputError(f"{self!r} has no list of likely values; give it a method likely(history, ahead)")

    def share(self, values: Array) -> Array | None:  # noqa: ARG002 - for subclasses
        """The probability of each of these values, if it is the same at all times; None if not."""
        return None

    def in_strides(self, rows: int) -> Process:  # noqa: ARG002 - for subclasses
        """One value from each stride of `rows` steps, at any time within it."""
        return self

    def ends(self) -> bool:
        """Whether every value has probability 0 from some time on."""
        return False

    def until(self, history: History, values: Array) -> int | None:  # noqa: ARG002 - most have no end
        """The number of steps after which none of these values can arrive; None if unknown."""
        return None

    def goodness(self, values: ArrayLike) -> float:
        """The agreement of these values, from time 0 on, with the process: a p-value, near 0 for none.

        If the process is the true one, the ranks of values in their distributions are uniform and independent.
        Kolmogorov's test checks the first, the correlation of neighbours the second. Parameters that were fitted to
        the same values make the test weaker.
        """
        below, upto = self.intervals(as_integers(values))
        if len(below) == 0:
            raise InputError("goodness needs at least one value; got none")
        return agreement(below, upto)


class Markov(Process):
    """A process in which the next value depends on the last one only, not on time."""

    independent: ClassVar[bool] = False

    @abstractmethod
    def returns(self, ahead: Array, values: Array) -> Array:
        """Pr{X_{t + d} = v | X_t = v}, a row for each of `values` and a column for each of `ahead`."""


def as_integers(values: ArrayLike) -> Array:
    """Values of a stream as a column of 64-bit integers."""
    array = np.asarray(values)
    if array.ndim != 1:
        raise InputError(f"values of a stream have the shape {array.shape}; give a list of whole numbers")
    if len(array) and array.dtype.kind not in "biufO":
        raise InputError(f"values are not numbers, such as {array[0]!s:.80}; give whole numbers")
    with np.errstate(invalid="ignore"):
        try:
            copy = array.astype(np.int64)
        except (TypeError, ValueError, OverflowError) as error:
            raise InputError(
                f"values are not all numbers of 64 bits ({error!s:.80}); give whole numbers"
            ) from error
    if not np.array_equal(copy, array):
        raise InputError(
            f"values contain {array[copy != array][0]}; give whole numbers, for example by rounding"
        )
    return copy


def last_value(history: History, kind: Process) -> int:
    """The last value of a history; an error if it has none."""
    if history.last is None:
        raise InputError(f"{kind!r} needs the last observed value; give History(now, last)")
    return history.last


def agreement(below: Array, upto: Array) -> float:
    """A p-value for the agreement of values with their probabilities to be below, and at most, each of them."""
    if (upto <= below).any():
        return 0.0
    # A random number within each step of a discrete distribution makes the ranks uniform; the same at every call.
    ranks = below + np.random.default_rng(_SEED).random(len(below)) * (upto - below)
    return min(1.0, 2 * min(_uniform(ranks), _uncorrelated(ranks)))


def _uniform(ranks: Array) -> float:
    """The p-value of Kolmogorov's test for uniform numbers, with Stephens' correction."""
    count = len(ranks)
    ordered, places = np.sort(ranks), np.arange(count)
    distance = max((ordered - places / count).max(), ((places + 1) / count - ordered).max())
    scaled = distance * (math.sqrt(count) + 0.12 + 0.11 / math.sqrt(count))
    if scaled < _MIN_SCALED:
        return 1.0
    term = np.arange(1, _TERMS + 1)
    return float(np.clip(2 * np.sum((-1.0) ** (term - 1) * np.exp(-2 * (term * scaled) ** 2)), 0, 1))


def _uncorrelated(ranks: Array) -> float:
    """The p-value of a test for uncorrelated neighbours."""
    if len(ranks) < 2:  # noqa: PLR2004 - one has no neighbour
        return 1.0
    centred = (ranks - 0.5) * math.sqrt(12)
    score = float(centred[1:] @ centred[:-1]) / math.sqrt(len(ranks) - 1)
    return math.erfc(abs(score) / math.sqrt(2))
