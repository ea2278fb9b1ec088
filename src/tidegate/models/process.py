"""The contract of a stochastic process: what a stream brings next, given what it brought."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any, ClassVar, Final, NamedTuple, Self

import numpy as np

from tidegate.models.numbers import ByValue
from tidegate.types import Array, InputError

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

_TERMS: Final = 100
_SURE: Final = 0.2
"""Below this the Kolmogorov distribution is 0 to the last digit, but its series does not converge there."""
_OWN_DRAWS: Final = 0x676F6F646E657373
"""A seed that nobody draws values with: draws that made the values would not be independent of them."""


class History(NamedTuple):
    """What was observed of a stream by now, as far as a process asks for it.

    Parameters
    ----------
    now
        The present time; the first value came at time 0.
    last
        The value that came now; None before the first.

    Examples
    --------
    >>> History.of([3, 1, 4])
    History(now=2, last=4)
    """

    now: int
    last: int | None = None

    @classmethod
    def of(cls, values: ArrayLike) -> Self:
        """The history after these values, which came at the times 0, 1, 2 and so on."""
        seen = whole(values)
        return cls(len(seen) - 1, int(seen[-1]) if len(seen) else None)


class Process(ByValue, ABC):
    """A stream that brings one whole number at each time step 0, 1, 2 and so on.

    A process says how likely each value is at each time to come. It is fitted to observed values by maximum
    likelihood, and `goodness` tells whether they look as if they came from it.

    Attributes
    ----------
    independent
        Whether the values of different times are independent of each other, so that nothing observed meanwhile
        changes what is to be expected later.

    References
    ----------
    On Joining and Caching Stochastic Streams, section 3.

    Deviations
    ----------
    Every process here looks back at most one value, so a history is the time and the last value.
    """

    independent: ClassVar[bool]

    @abstractmethod
    def probability(self, history: History, ahead: Array, values: Array) -> Array:
        """Pr{X_{now + d} = v | history}, a row for each of `values` and a column for each of `ahead` (1 and up)."""

    @classmethod
    @abstractmethod
    def fit(cls, values: ArrayLike) -> Self:
        """The process of this kind under which these values, from time 0 on, are most likely."""

    @abstractmethod
    def intervals(self, values: Array) -> tuple[Array, Array]:
        """Pr{X_t < v} and Pr{X_t <= v} of each value given those before it; of the first, if it can be told."""

    def likely(self, history: History, ahead: Array) -> Array:  # noqa: ARG002 - for those that can tell
        """The values, each once, that come at these steps ahead with a probability that matters."""
        raise InputError(
            f"{self!r} does not say which values may come; give it a method likely(history, ahead)"
        )

    def ends(self) -> bool:
        """Whether every value comes with probability 0 from some time on."""
        return False

    def until(self, history: History, values: Array) -> int | None:  # noqa: ARG002 - most go on for ever
        """After how many steps none of these values comes any more; None if that cannot be told."""
        return None

    def goodness(self, values: ArrayLike) -> float:
        """How well these values, from time 0 on, agree with the process: a p-value; near 0 they do not.

        Where a value falls in its own distribution is uniform and independent of the others, if the process is
        the true one. Kolmogorov's test looks at the first, the correlation of neighbours at the second.
        Parameters that were fitted to the same values make it milder.
        """
        below, upto = self.intervals(whole(values))
        if len(below) == 0:
            raise InputError("goodness of no values cannot be told; give some")
        return agreement(below, upto)

    def plain(self) -> dict[str, Any]:
        """What makes it again, as values that JSON can hold."""
        return {"process": type(self).__name__, **super().plain()}  # type: ignore[misc]

    @classmethod
    def made_of(cls, plain: dict[str, Any]) -> Process:
        """Make the process again that `plain` told of."""
        kinds = {kind.__name__: kind for kind in _kinds(Process)}  # type: ignore[type-abstract]
        rest = dict(plain)
        name = rest.pop("process", None)
        if name not in kinds:
            raise InputError(f"process {name!r} is not known; use one of {', '.join(sorted(kinds))}")
        return kinds[name].remade(rest)

    @classmethod
    def remade(cls, plain: dict[str, Any]) -> Self:
        """Make one of this kind from its fields, as `plain` told them."""
        return cls(**plain)


class Markov(Process):
    """A process in which the next value depends on the last one, and on no time."""

    independent: ClassVar[bool] = False

    @abstractmethod
    def returns(self, ahead: Array, values: Array) -> Array:
        """Pr{X_{t + d} = v | X_t = v}, a row for each of `values` and a column for each of `ahead`."""


def whole(values: ArrayLike) -> Array:
    """Values of a stream as a column of 64-bit integers."""
    found = np.asarray(values)
    if found.ndim != 1:
        raise InputError(f"values of a stream have the shape {found.shape}; give a list of whole numbers")
    if len(found) and found.dtype.kind not in "biufO":
        raise InputError(f"values are not numbers, such as {found[0]!s:.80}; give whole numbers")
    with np.errstate(invalid="ignore"):
        try:
            copy = found.astype(np.int64)
        except (TypeError, ValueError, OverflowError) as error:
            raise InputError(
                f"values are not all numbers of 64 bits ({error!s:.80}); give whole numbers"
            ) from error
    if not np.array_equal(copy, found):
        raise InputError(f"values contain {found[copy != found][0]}; give whole numbers, such as by rounding")
    return copy


def known(history: History, kind: Process) -> int:
    """The last value of a history that has one."""
    if history.last is None:
        raise InputError(
            f"{kind!r} starts from an observed value, and none was; give History(now, last) with one"
        )
    return history.last


def agreement(below: Array, upto: Array) -> float:
    """How well values agree with the probabilities to be below, and to be at most, each of them: a p-value."""
    if (upto <= below).any():
        return 0.0
    # A discrete distribution has steps; a draw within each makes the ranks uniform, the same at every call.
    ranks = below + np.random.default_rng(_OWN_DRAWS).random(len(below)) * (upto - below)
    return min(1.0, 2 * min(_uniform(ranks), _uncorrelated(ranks)))


def _kinds(cls: type[Process]) -> list[type[Process]]:
    below = cls.__subclasses__()
    return below + [deeper for kind in below for deeper in _kinds(kind)]


def _uniform(ranks: Array) -> float:
    """The chance of uniform numbers to lie as unevenly as these (Kolmogorov, with Stephens' correction)."""
    count = len(ranks)
    ordered, places = np.sort(ranks), np.arange(count)
    apart = max((ordered - places / count).max(), ((places + 1) / count - ordered).max())
    scaled = apart * (math.sqrt(count) + 0.12 + 0.11 / math.sqrt(count))
    if scaled < _SURE:
        return 1.0
    term = np.arange(1, _TERMS + 1)
    return float(np.clip(2 * np.sum((-1.0) ** (term - 1) * np.exp(-2 * (term * scaled) ** 2)), 0, 1))


def _uncorrelated(ranks: Array) -> float:
    """The chance of independent uniform numbers to have neighbours as alike, or as unlike, as these."""
    if len(ranks) < 2:  # noqa: PLR2004 - one has no neighbour
        return 1.0
    centred = (ranks - 0.5) * math.sqrt(12)
    score = float(centred[1:] @ centred[:-1]) / math.sqrt(len(ranks) - 1)
    return math.erfc(abs(score) / math.sqrt(2))
