"""Streams of skewed keys, by Zipf's law."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np

from tidegate.streams.gaps import Gaps, arrival_times, true_rate
from tidegate.streams.stream import Stream
from tidegate.streams.trace import Trace
from tidegate.types import InputError, check_choice

if TYPE_CHECKING:
    from tidegate.types import Array

Hottest = Literal["first", "last", "anywhere"]


@dataclass(frozen=True)
class Zipf(Stream):
    """Independent keys; the share of the i-th most frequent one is proportional to `1 / i**skew`.

    Parameters
    ----------
    keys
        The number of distinct keys, numbered from 0.
    skew
        0 for equal shares; 1 for the classic law.
    rate
        Nominal rows per unit of time; see `true_rate`.
    gaps
        "even", "poisson", or "uniform" (between half and twice `1 / rate`).
    hottest
        The order of keys by frequency, most frequent first: ascending ("first"), descending ("last"), or random
        ("anywhere").
    shuffle
        The seed of the random order, independent of the seed of the trace.

    Examples
    --------
    >>> Zipf(keys=3, skew=1.0).trace(5).time
    array([0., 1., 2., 3., 4.])
    >>> Zipf(keys=2, skew=2.0, hottest="last").shares
    array([0.2, 0.8])
    """

    keys: int
    skew: float = 0.0
    rate: float = 1.0
    gaps: Gaps = "even"
    hottest: Hottest = "first"
    shuffle: int = 0

    def __post_init__(self) -> None:
        check_choice(self.gaps, Gaps, "gaps")
        check_choice(self.hottest, Hottest, "hottest")
        if self.keys < 1 or not self.rate > 0 or not self.skew >= 0:
            raise InputError(f"{self} is not a stream; give keys >= 1, rate > 0 and skew >= 0")

    @property
    def true_rate(self) -> float:
        """Rows per unit of time in the long run."""
        return true_rate(self.gaps, self.rate)

    @property
    def shares(self) -> Array:
        """The probability of each key, by number."""
        shares = np.empty(self.keys)
        shares[self._by_rank()] = self._weights() / self._weights().sum()
        return shares

    def _weights(self) -> Array:
        weights: Array = np.arange(1, self.keys + 1) ** -float(self.skew)
        return weights

    def _by_rank(self) -> Array:
        """The keys, most frequent first."""
        if self.hottest == "anywhere":
            return np.random.default_rng(self.shuffle).permutation(self.keys)
        keys = np.arange(self.keys)
        return keys if self.hottest == "first" else keys[::-1]

    def trace(self, rows: int, seed: int = 0) -> Trace:
        """Generate the first `rows` rows."""
        rng = np.random.default_rng(seed)
        weights = self._weights()
        rank = np.searchsorted(np.cumsum(weights), rng.random(rows) * weights.sum(), side="right")
        time = arrival_times(self.gaps, self.rate, rows, rng)
        return Trace.of({"key": self._by_rank()[rank], "time": time - time[:1]})
