"""Streams whose rates rise and fall together."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from tidegate.streams.stream import Pair
from tidegate.streams.trace import Trace
from tidegate.streams.zipf import Zipf
from tidegate.types import InputError

if TYPE_CHECKING:
    from tidegate.types import Array


@dataclass(frozen=True)
class RushHours(Pair):
    """Keys follow Zipf's law, and rows of both sides arrive faster for a part of every period.

    Rows that arrive just before a rush hour have many more matches than those that arrive before a quiet one.

    Parameters
    ----------
    keys, skew
        The number of distinct keys, and the parameter of Zipf's law.
    period
        The time from one rush hour to the next.
    part
        The fraction of a period that is its rush hour.
    factor
        The rate during the rush hour, relative to the rate at other times.
    rate
        Rows per unit of time of either side, on average.

    Examples
    --------
    >>> left, right = RushHours(period=100.0).both(1000)
    >>> len(left), bool((left.time % 100 < 20).mean() > 0.6)
    (1000, True)
    """

    keys: int = 200
    skew: float = 0.8
    period: float = 2000.0
    part: float = 0.2
    factor: float = 10.0
    rate: float = 1.0

    def __post_init__(self) -> None:
        if min(self.keys, self.period, self.factor, self.rate) <= 0 or not 0 < self.part < 1:
            raise InputError(f"{self} is not a stream; give numbers above 0, and a part below 1")

    def _times(self, rng: np.random.Generator, rows: int) -> Array:
        """Times of a Poisson process: even times, mapped to equal expected numbers of rows."""
        even = np.cumsum(rng.exponential(1 / self.rate, rows)) / self.period
        busy = self.factor * self.part / (self.factor * self.part + 1 - self.part)
        periods, passed = np.divmod(even, 1.0)
        rush = passed / busy * self.part
        quiet = self.part + (passed - busy) / (1 - busy) * (1 - self.part)
        times: Array = (periods + np.where(passed < busy, rush, quiet)) * self.period
        return times

    def both(self, rows: int, seed: int = 0) -> tuple[Trace, Trace]:
        """The first `rows` rows of the left, and the right rows until the last of them."""
        rng = np.random.default_rng(seed)
        shares = Zipf(self.keys, self.skew).shares
        left = self._times(rng, rows)
        right = self._times(rng, rows + int(10 * np.sqrt(rows)) + 10)
        right = right[right <= (left[-1] if rows else -1.0)]
        one, other = (
            Trace.of({"key": rng.choice(self.keys, len(times), p=shares), "time": times})
            for times in (left, right)
        )
        return one, other
