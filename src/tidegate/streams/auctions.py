"""Auctions and their bids: a join whose matches arrive late in a row's window."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tidegate.streams.stream import Pair
from tidegate.streams.trace import Trace
from tidegate.types import InputError


@dataclass(frozen=True)
class Auctions(Pair):
    """Auctions open at random times and are open equally long; most bids are placed near their end.

    A bid is placed after the fraction `1 - u**lateness` of the auction's length, where `u` is uniform: evenly with a
    lateness of 1, and later with more.

    Parameters
    ----------
    length
        How long an auction is open.
    bids
        The mean number of bids on an auction (Poisson).
    rate
        Auctions opened per unit of time.
    lateness
        How strongly bids concentrate near the end.

    Examples
    --------
    >>> opened, bids = Auctions(length=100.0).both(1000)
    >>> len(opened), len(bids)
    (1000, 4916)

    References
    ----------
    Memory-Limited Execution of Windowed Stream Joins, section 2.2 (the OpenAuction and Bid streams).
    """

    length: float = 600.0
    bids: float = 5.0
    rate: float = 1.0
    lateness: float = 2.0

    def __post_init__(self) -> None:
        if min(self.length, self.bids, self.rate, self.lateness) <= 0:
            raise InputError(f"{self} is not a stream; give numbers above 0")

    def both(self, rows: int, seed: int = 0) -> tuple[Trace, Trace]:
        """The first `rows` openings, and all bids on them in order of time."""
        rng = np.random.default_rng(seed)
        opened = np.cumsum(rng.exponential(1 / self.rate, rows))
        auction = np.repeat(np.arange(rows), rng.poisson(self.bids, rows))
        placed = opened[auction] + self.length * (1 - rng.random(len(auction)) ** self.lateness)
        order = np.argsort(placed, kind="stable")
        price = np.round(np.exp(rng.normal(3.0, 1.0, len(auction))), 2)
        left = Trace.of({"key": np.arange(rows), "time": opened})
        return left, Trace.of({"key": auction[order], "time": placed[order], "value": price[order]})
