"""A uniform sample of a join's results, of fixed size, from a sampler whose fraction falls."""

from __future__ import annotations

from dataclasses import dataclass

from tidegate.models.numbers import at_least_one
from tidegate.sampling.printed_join import PrintedJoinReservoir
from tidegate.sampling.ranks import RankedReservoir
from tidegate.sampling.reservoir import salt_of
from tidegate.types import InputError


@dataclass(frozen=True)
class JoinReservoir:
    """Reservoir join-sampling (RJS): hold `size` results of a join, any as likely as any others.

    The sampler below shows each result of the join with some probability. Give every result of the join, shown
    or not, a rank at random from 0 to 1, and say that those whose rank is below their probability are shown: a
    shown result then has a rank at random from 0 to its probability. The reservoir holds the lowest ranks. Ranks
    have nothing to do with what a result is or when it came, so that the sample is uniform, as long as no result
    with a rank below the highest that is held could have stayed hidden: ranks stay below every probability so far.

    Once the reservoir is full, its highest rank is the fraction of the join's results that is still of use. It
    falls as results come, and the sampler below may lower its probability to it, and hold fewer rows, without loss.

    Parameters
    ----------
    size
        Results to hold.
    budget
        Rows that join and reservoir may hold together; a result counts as one row.
    printed
        Sample as in the paper's listing, to compare: see Deviations.

    Examples
    --------
    Of 10,000 results, half are shown:

    >>> import numpy as np
    >>> running = JoinReservoir(size=100, budget=1000).start()
    >>> taken = running.offer(np.full(5000, 0.5))
    >>> len(taken.rows), running.wants().rows
    (100, 900)

    So many results are believed to have been there, and this part of them need be shown from now on:

    >>> round(running.results), round(running.wants().fraction, 4)
    (10046, 0.0099)

    References
    ----------
    Reservoir Sampling over Memory-Limited Stream Joins, section 4.2 (algorithm 4).

    Deviations
    ----------
    The paper counts `1/p1` results of the join for each that is shown, and lets the next take a random one's place
    with probability `r / (k + 1) / p1`. That `k` is an estimate, made of the sample itself, so that the sample is
    uniform only about. Ranks need no estimate. With `printed=True` it is done as in the paper.

    If probabilities fall below the highest rank held, or before the reservoir is full, results with ranks above
    must leave, and it holds fewer than it could: the sample is uniform, but of the size that such a fraction gives.
    """

    size: int
    budget: int
    printed: bool = False

    def __post_init__(self) -> None:
        check_within(self.size, self.budget)

    def start(self, seed: int = 0, partition: int = 0) -> RankedReservoir:
        """An empty reservoir; seed and partition fix its draws."""
        if self.printed:
            return PrintedJoinReservoir(self.size, self.budget, salt_of(seed, partition))
        return RankedReservoir(self.size, self.budget, salt_of(seed, partition))


def check_within(size: int, budget: int) -> None:
    """Refuse a reservoir that leaves the join no memory."""
    at_least_one(size, "size", "rows")
    at_least_one(budget, "budget", "rows")
    if size >= budget:
        raise InputError(
            f"size is {size}, but the budget of join and reservoir is {budget}; leave the join at least one row"
        )
