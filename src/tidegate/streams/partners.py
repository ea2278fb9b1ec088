"""Left rows with unique keys: at most one partner each, or a heavy-tailed number of partners."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from tidegate.streams.stream import Pair
from tidegate.streams.trace import Trace
from tidegate.types import InputError

if TYPE_CHECKING:
    from tidegate.types import Array


def _traces(left: Array, partners: Array, delays: Array) -> tuple[Trace, Trace]:
    """Left rows with a key each, and the right rows with these keys in order of time."""
    key = np.repeat(np.arange(len(left)), partners)
    time = left[key] + delays
    order = np.argsort(time, kind="stable")
    one = Trace.of({"key": np.arange(len(left)), "time": left})
    return one, Trace.of({"key": key[order], "time": time[order]})


@dataclass(frozen=True)
class OneToOne(Pair):
    """Each left row has a unique key and at most one partner, such as an order and its delivery.

    Parameters
    ----------
    delay
        The mean time from a left row to its partner (exponential).
    matched
        The fraction of left rows that have a partner.
    rate
        Left rows per unit of time.

    Examples
    --------
    >>> orders, deliveries = OneToOne(matched=0.9).both(1000)
    >>> len(orders), 850 < len(deliveries) < 950
    (1000, True)
    """

    delay: float = 120.0
    matched: float = 1.0
    rate: float = 1.0

    def __post_init__(self) -> None:
        if min(self.delay, self.rate) <= 0 or not 0 < self.matched <= 1:
            raise InputError(f"{self} is not a stream; give numbers above 0, and at most 1 for matched")

    def both(self, rows: int, seed: int = 0) -> tuple[Trace, Trace]:
        """The first `rows` rows of the left, and their partners in order of time."""
        rng = np.random.default_rng(seed)
        left = np.cumsum(rng.exponential(1 / self.rate, rows))
        partners = (rng.random(rows) < self.matched).astype(np.int64)
        return _traces(left, partners, rng.exponential(self.delay, partners.sum()))


@dataclass(frozen=True)
class HeavyTails(Pair):
    """Each left row has a unique key, and a number of partners that follows Pareto's law.

    Parameters
    ----------
    partners
        The mean number of partners of a left row.
    tail
        The exponent of Pareto's law, above 1: the smaller, the more unequal the numbers.
    length
        Partners arrive evenly within this time after the left row.
    rate
        Left rows per unit of time.

    Examples
    --------
    >>> left, right = HeavyTails(partners=4.0).both(2000)
    >>> many = np.sort(np.bincount(right.keys[0]))[::-1]
    >>> bool(many[:20].sum() > 0.1 * many.sum())
    True
    """

    partners: float = 4.0
    tail: float = 1.5
    length: float = 400.0
    rate: float = 1.0

    def __post_init__(self) -> None:
        if min(self.partners, self.length, self.rate) <= 0 or self.tail <= 1:
            raise InputError(f"{self} is not a stream; give numbers above 0, and a tail above 1")

    def both(self, rows: int, seed: int = 0) -> tuple[Trace, Trace]:
        """The first `rows` rows of the left, and their partners in order of time."""
        rng = np.random.default_rng(seed)
        left = np.cumsum(rng.exponential(1 / self.rate, rows))
        mean = (1 + rng.pareto(self.tail, rows)) * self.partners * (self.tail - 1) / self.tail
        partners = rng.poisson(mean)
        return _traces(left, partners, rng.uniform(0, self.length, partners.sum()))
