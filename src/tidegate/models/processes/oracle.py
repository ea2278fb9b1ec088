"""A stream whose values are known in advance."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Self

import numpy as np

from tidegate.models.processes.process import History, Process, as_integers
from tidegate.types import Array, InputError

if TYPE_CHECKING:
    from numpy.typing import ArrayLike


@dataclass(frozen=True, eq=False)
class Oracle(Process):
    """The whole stream, known in advance: for recorded streams, and as an upper bound of any model.

    Parameters
    ----------
    future
        The values at the times 0, 1, 2 and so on; the stream ends after them.

    Examples
    --------
    >>> Oracle([4, 5, 4]).probability(History(0), np.array([1, 2, 3]), np.array([4]))
    array([[0., 1., 0.]])

    References
    ----------
    On Joining and Caching Stochastic Streams, section 7.1.
    """

    independent: ClassVar[bool] = True

    future: ArrayLike

    def __post_init__(self) -> None:
        values = as_integers(self.future)
        values.setflags(write=False)
        object.__setattr__(self, "future", values)

    @classmethod
    def fit(cls, values: ArrayLike) -> Self:
        """An oracle of these values."""
        return cls(values)

    @property
    def _values(self) -> Array:
        return np.asarray(self.future)

    def probability(self, history: History, ahead: Array, values: Array) -> Array:
        """1 where the value arrives, 0 elsewhere."""
        times = history.now + ahead
        within = (times >= 0) & (times < len(self._values))
        if not within.any():
            return np.zeros((len(values), len(ahead)))
        future = self._values[np.clip(times, 0, len(self._values) - 1)]
        arrives: Array = (values[:, None] == future[None, :]) & within[None, :]
        return arrives.astype(np.float64)

    def sample(self, count: int, rng: np.random.Generator) -> Array:  # noqa: ARG002 - it is not random
        """The first of its values."""
        if count > len(self._values):
            raise InputError(
                f"cannot sample {count} values: the oracle has {len(self._values)}; ask for at most that many"
            )
        return self._values[:count].copy()

    def likely(self, history: History, ahead: Array) -> Array:
        """The values at these steps."""
        times = history.now + ahead
        return np.unique(self._values[times[(times >= 0) & (times < len(self._values))]])

    def ends(self) -> bool:
        """True: it ends with the last value."""
        return True

    def until(self, history: History, values: Array) -> int:  # noqa: ARG002 - the last value is the end
        """The steps until the last value."""
        return max(0, len(self._values) - 1 - history.now)

    def intervals(self, values: Array) -> tuple[Array, Array]:
        """0 or 1, since values are certain."""
        if len(values) > len(self._values):
            raise InputError(
                f"{len(values)} values were observed, but the oracle has {len(self._values)}; give at most that many"
            )
        future = self._values[: len(values)]
        return (values > future).astype(np.float64), (values >= future).astype(np.float64)

    def goodness(self, values: ArrayLike) -> float:
        """1 if all values are as predicted, 0 otherwise."""
        below, upto = self.intervals(as_integers(values))
        return float((below < upto).all())
