"""User sessions: keys that are active for a limited time, with very different rates."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from tidegate.streams.stream import Pair
from tidegate.streams.trace import Trace
from tidegate.types import InputError

if TYPE_CHECKING:
    from tidegate.types import Array


@dataclass(frozen=True)
class Sessions(Pair):
    """Keys begin at random and are active for an exponential time; while active, a key appears on both sides.

    The rate of an active key follows Pareto's law, so that few keys have most of the rows. Learned frequencies of
    keys do not help much, because keys end and new ones begin.

    Parameters
    ----------
    keys
        Keys that begin per unit of time.
    length
        The mean time for which a key is active.
    tail
        The exponent of Pareto's law, above 1: the smaller, the more unequal keys are.
    rate
        Rows per unit of time of either side, on average.

    Examples
    --------
    >>> left, right = Sessions().both(1000)
    >>> len(left), 800 < len(right) < 1200
    (1000, True)
    """

    keys: float = 0.15
    length: float = 300.0
    tail: float = 1.5
    rate: float = 1.0

    def __post_init__(self) -> None:
        if min(self.keys, self.length, self.rate) <= 0 or self.tail <= 1:
            raise InputError(f"{self} is not a stream; give numbers above 0, and a tail above 1")

    def both(self, rows: int, seed: int = 0) -> tuple[Trace, Trace]:
        """The first `rows` rows of the left, and the right rows until the last of them."""
        end = 2 * (rows + 1) / self.rate
        (key, time), right = self._until(end, seed)
        while len(key) < rows:
            end *= 2
            (key, time), right = self._until(end, seed)
        arrived = right[1] <= (time[rows - 1] if rows else -1.0)
        left = Trace.of({"key": key[:rows], "time": time[:rows]})
        return left, Trace.of({"key": right[0][arrived], "time": right[1][arrived]})

    def _until(self, end: float, seed: int) -> tuple[tuple[Array, Array], tuple[Array, Array]]:
        """Keys and times of all rows from time 0 to the end, left and right."""
        rng = np.random.default_rng(seed)
        begin = -10 * self.length
        started = rng.uniform(begin, end, rng.poisson(self.keys * (end - begin)))
        ended = started + rng.exponential(self.length, len(started))
        # Pareto's law from 1 on has the mean tail / (tail - 1).
        popularity = (1 + rng.pareto(self.tail, len(started))) * (self.tail - 1) / self.tail
        first, last = np.maximum(started, 0.0), np.minimum(ended, end)
        expected = popularity * np.maximum(last - first, 0.0) * self.rate / (self.keys * self.length)

        def side() -> tuple[Array, Array]:
            key = np.repeat(np.arange(len(started)), rng.poisson(expected))
            time = rng.uniform(first[key], last[key])
            order = np.argsort(time, kind="stable")
            return key[order], time[order]

        return side(), side()
