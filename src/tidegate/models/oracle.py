"""Values that are known in advance."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Self

import numpy as np

from tidegate.models.process import History, Process, whole
from tidegate.types import Array, InputError

if TYPE_CHECKING:
    from numpy.typing import ArrayLike


@dataclass(frozen=True, eq=False)
class Oracle(Process):
    """The whole stream, known beforehand: for recorded streams, and as the best that any model can do.

    Parameters
    ----------
    future
        The values at the times 0, 1, 2 and so on; nothing comes after them.

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
        values = whole(self.future)
        values.setflags(write=False)
        object.__setattr__(self, "future", values)

    @classmethod
    def fit(cls, values: ArrayLike) -> Self:
        """These values and nothing else."""
        return cls(values)

    @property
    def _values(self) -> Array:
        return np.asarray(self.future)

    def probability(self, history: History, ahead: Array, values: Array) -> Array:
        """1 where the value comes, 0 elsewhere."""
        times = history.now + ahead
        within = (times >= 0) & (times < len(self._values))
        if not within.any():
            return np.zeros((len(values), len(ahead)))
        coming = self._values[np.clip(times, 0, len(self._values) - 1)]
        met: Array = (values[:, None] == coming[None, :]) & within[None, :]
        return met.astype(np.float64)

    def sample(self, count: int, rng: np.random.Generator) -> Array:  # noqa: ARG002 - nothing is left to chance
        """The first of its values."""
        if count > len(self._values):
            raise InputError(
                f"{count} values are wanted, but {len(self._values)} are foreseen; ask for no more"
            )
        return self._values[:count].copy()

    def likely(self, history: History, ahead: Array) -> Array:
        """The values that come at these steps."""
        times = history.now + ahead
        return np.unique(self._values[times[(times >= 0) & (times < len(self._values))]])

    def ends(self) -> bool:
        """It does, with the last value."""
        return True

    def until(self, history: History, values: Array) -> int:  # noqa: ARG002 - none comes after the last
        """By the last value that is foreseen."""
        return max(0, len(self._values) - 1 - history.now)

    def intervals(self, values: Array) -> tuple[Array, Array]:
        """All or nothing."""
        if len(values) > len(self._values):
            raise InputError(
                f"{len(values)} values were observed, but {len(self._values)} are foreseen; give no more"
            )
        coming = self._values[: len(values)]
        return (values > coming).astype(np.float64), (values >= coming).astype(np.float64)

    def goodness(self, values: ArrayLike) -> float:
        """1 if all came as foreseen, 0 otherwise."""
        below, upto = self.intervals(whole(values))
        return float((below < upto).all())
