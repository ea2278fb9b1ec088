"""Keys with hot ones among them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from tidegate.streams.stream import Stream
from tidegate.streams.trace import Trace
from tidegate.types import InputError, check_choice

Gaps = Literal["even", "poisson"]


@dataclass(frozen=True)
class Zipf(Stream):
    """Independent keys of which the i-th most frequent has a share proportional to `1 / i**skew`.

    Parameters
    ----------
    keys
        How many distinct keys, numbered from 0.
    skew
        0 makes all alike; 1 is the classic law.
    rate
        Rows a unit of time.
    gaps
        "even", or "poisson" for arrivals at random.
    hottest_last
        Whether the highest number is the most frequent key instead of 0; two streams that differ in this
        share few hot keys.

    Examples
    --------
    >>> Zipf(keys=3, skew=1.0).trace(5).time
    array([0., 1., 2., 3., 4.])
    """

    keys: int
    skew: float = 0.0
    rate: float = 1.0
    gaps: Gaps = "even"
    hottest_last: bool = False

    def __post_init__(self) -> None:
        check_choice(self.gaps, Gaps, "gaps")
        if self.keys < 1 or not self.rate > 0 or not self.skew >= 0:
            raise InputError(f"{self} is not a stream; give keys >= 1, rate > 0 and skew >= 0")

    def trace(self, rows: int, seed: int = 0) -> Trace:
        """Make the first `rows` rows."""
        rng = np.random.default_rng(seed)
        shares = np.arange(1, self.keys + 1) ** -float(self.skew)
        key = np.searchsorted(np.cumsum(shares), rng.random(rows) * shares.sum(), side="right")
        gaps = np.full(rows, 1.0) if self.gaps == "even" else rng.exponential(1.0, rows)
        time = (np.cumsum(gaps) - gaps[:1]) / self.rate
        return Trace.of({"key": self.keys - 1 - key if self.hottest_last else key, "time": time})
