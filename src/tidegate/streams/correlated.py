"""Two streams over the same keys, whose frequencies are correlated directly, inversely, or not at all."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal

import numpy as np

from tidegate.streams.gaps import Gaps, row_count
from tidegate.streams.stream import Pair
from tidegate.streams.trace import Trace
from tidegate.streams.zipf import Hottest, Zipf
from tidegate.types import check_choice

if TYPE_CHECKING:
    from tidegate.types import Array

Correlation = Literal["direct", "inverse", "uncorrelated"]

HOTTEST_RIGHT: Final[dict[Correlation, Hottest]] = {
    "direct": "first",
    "inverse": "last",
    "uncorrelated": "anywhere",
}


@dataclass(frozen=True)
class Correlated(Pair):
    """Two streams of independent keys by Zipf's law; on the left, key 0 is the most frequent.

    Parameters
    ----------
    correlation
        The order of keys by frequency on the right: as on the left ("direct"), reversed ("inverse"), or random
        ("uncorrelated").
    skew
        The parameter of Zipf's law on both sides.
    keys
        The number of distinct keys, numbered from 0.
    rate_left, rate_right
        Nominal rows per unit of time; see `true_rates`.
    gaps
        "uniform" (between half and twice `1 / rate`), "even" or "poisson".
    shuffle
        The seed of the random order of "uncorrelated", independent of the seed of the trace.

    Examples
    --------
    >>> pair = Correlated("inverse", skew=1.0, keys=3)
    >>> [shares.round(2).tolist() for shares in pair.shares]
    [[0.55, 0.27, 0.18], [0.18, 0.27, 0.55]]
    >>> left, right = pair.both(1000)
    >>> len(left), len(right)
    (1000, 4840)

    References
    ----------
    Memory-Limited Execution of Windowed Stream Joins, section 6.2.3 (DC, IC and UC).

    Deviations
    ----------
    The difficulty of an uncorrelated pair depends on its random order, more with more skew; average over several
    values of `shuffle`.
    """

    correlation: Correlation = "direct"
    skew: float = 2.0
    keys: int = 50
    rate_left: float = 1.0
    rate_right: float = 5.0
    gaps: Gaps = "uniform"
    shuffle: int = 0

    def __post_init__(self) -> None:
        check_choice(self.correlation, Correlation, "correlation")
        self.left, self.right  # noqa: B018 - each checks its parameters

    @property
    def left(self) -> Zipf:
        """The left stream alone."""
        return Zipf(self.keys, self.skew, self.rate_left, self.gaps)

    @property
    def right(self) -> Zipf:
        """The right stream alone."""
        hottest = HOTTEST_RIGHT[self.correlation]
        return Zipf(self.keys, self.skew, self.rate_right, self.gaps, hottest, self.shuffle)

    @property
    def true_rates(self) -> tuple[float, float]:
        """Left and right rows per unit of time in the long run."""
        return self.left.true_rate, self.right.true_rate

    @property
    def shares(self) -> tuple[Array, Array]:
        """The probability of each key, by number, on the left and on the right."""
        return self.left.shares, self.right.shares

    def both(self, rows: int, seed: int = 0) -> tuple[Trace, Trace]:
        """The first `rows` rows of the left, and the right rows until the last of them."""
        seeds = np.random.SeedSequence(seed).generate_state(2).tolist()
        left = self.left.trace(rows, seeds[0])
        end = left.time[-1] if rows else -1.0
        right = self.right.trace(row_count(self.rate_right, max(end, 0.0)), seeds[1])
        arrived = int(np.searchsorted(right.time, end, side="right"))
        return left, Trace.of({"key": right.keys[0][:arrived], "time": right.time[:arrived]})
