"""Values with the same probabilities at all times."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Final, Self

import numpy as np

from tidegate.models.processes.process import History, Process, as_integers
from tidegate.models.validation import column
from tidegate.types import Array, InputError

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

_TOLERANCE: Final = 1e-6


@dataclass(frozen=True, eq=False)
class Stationary(Process):
    """Independent values, each with a fixed share of the stream.

    Parameters
    ----------
    shares
        The shares, which add up to one: a mapping from value to share, or a pair (values, shares). They are
        stored as such a pair, in the order of values.

    Examples
    --------
    >>> coin = Stationary({0: 0.25, 1: 0.75})
    >>> coin.probability(History(0), np.array([1, 2]), np.array([1, 5]))
    array([[0.75, 0.75],
           [0.  , 0.  ]])
    >>> Stationary.fit([1, 1, 0, 1]) == coin
    True

    References
    ----------
    On Joining and Caching Stochastic Streams, section 7.2.
    """

    independent: ClassVar[bool] = True

    shares: Mapping[int, float] | tuple[ArrayLike, ArrayLike]

    def __post_init__(self) -> None:
        argument = self.shares
        pair = (list(argument), list(argument.values())) if isinstance(argument, Mapping) else argument
        if not isinstance(pair, tuple | list) or len(pair) != 2:  # noqa: PLR2004 - a pair
            raise InputError(f"shares {argument!r} must be a mapping or a pair (values, shares)")
        values, shares = as_integers(pair[0]), column(pair[1], "shares")
        if len(values) != len(shares):
            raise InputError(f"{len(values)} values have {len(shares)} shares; give one each")
        order = np.argsort(values, kind="stable")
        values, shares = values[order], shares[order]
        if (values[1:] == values[:-1]).any():
            raise InputError(
                f"shares name {values[:-1][values[1:] == values[:-1]][0]} twice; add up its shares"
            )
        if shares.min() < 0 or abs(shares.sum() - 1) > _TOLERANCE:
            raise InputError(
                f"shares from {shares.min():g} add up to {shares.sum():g}; they must be at least 0 and add up to 1"
            )
        object.__setattr__(self, "shares", (values, shares))

    @classmethod
    def fit(cls, values: ArrayLike) -> Self:
        """The shares that were observed."""
        distinct, counts = np.unique(as_integers(values), return_counts=True)
        return cls((distinct, counts / max(counts.sum(), 1)))

    def probability(self, history: History, ahead: Array, values: Array) -> Array:  # noqa: ARG002 - not needed here
        """Each value's share, at all times."""
        return np.repeat(self.share(values)[:, None], len(ahead), axis=1)

    def sample(self, count: int, rng: np.random.Generator) -> Array:
        """Values drawn by their shares."""
        values, shares = self._columns
        upto = np.cumsum(shares)
        sample: Array = values[np.searchsorted(upto, rng.random(count) * upto[-1], side="right")]
        return sample

    def likely(self, history: History, ahead: Array) -> Array:  # noqa: ARG002 - not needed here
        """All values that have a share."""
        return self._columns[0]

    def share(self, values: Array) -> Array:
        """The share of each of these values, at any time."""
        place, there = self._places(values)
        return np.where(there, self._columns[1][place], 0.0)

    def by_value(self) -> dict[int, float]:
        """The shares as a mapping from value to share."""
        values, shares = self._columns
        return dict(zip(values.tolist(), shares.tolist(), strict=True))

    def intervals(self, values: Array) -> tuple[Array, Array]:
        """By the shares of all lower values."""
        upto = np.cumsum(self._columns[1])
        place, there = self._places(values)
        return upto[place] - self.share(values), np.where(there, upto[place], -1.0)

    @property
    def _columns(self) -> tuple[Array, Array]:
        values, shares = self.shares
        return np.asarray(values), np.asarray(shares)

    def _places(self, values: Array) -> tuple[Array, Array]:
        known = self._columns[0]
        place = np.minimum(np.searchsorted(known, values), len(known) - 1)
        return place, known[place] == values
