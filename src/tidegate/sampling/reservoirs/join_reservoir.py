"""A reservoir of a join's results: a uniform sample of fixed size."""

from __future__ import annotations

from dataclasses import dataclass

from tidegate.models.validation import at_least_one
from tidegate.sampling.reservoirs.ranked import RankedReservoir
from tidegate.sampling.reservoirs.reservoir import salt_of
from tidegate.types import InputError


@dataclass(frozen=True)
class JoinReservoir:
    """Reservoir join-sampling (RJS): hold `size` results of a join, all equally likely.

    A sampler draws each result of the join with some probability. Every result, drawn or not, has a random
    rank from 0 to 1, and those with a rank below their probability are drawn. So a drawn result has a random rank
    from 0 to its probability. The reservoir holds the lowest ranks. Ranks do not depend on the result or its time, so
    the sample is uniform as long as all results with lower ranks were drawn: ranks stay below every probability.

    Once the reservoir is full, its highest rank is the fraction of the join's results that is still needed. It falls
    as results arrive. The sampler may lower its probability to it, and hold fewer rows, without loss.

    Parameters
    ----------
    size
        The number of results to hold.
    budget
        The number of rows that join and reservoir may hold together; a result counts as one row.

    Examples
    --------
    Of 10,000 results, half are drawn:

    >>> import numpy as np
    >>> running = JoinReservoir(size=100, budget=1000).start()
    >>> changes = running.offer(np.full(5000, 0.5))
    >>> len(changes.rows), running.demand().rows
    (100, 900)

    The estimated number of results, and the part of them that must be drawn from now on:

    >>> round(running.results), round(running.demand().fraction, 4)
    (10046, 0.0099)

    References
    ----------
    Reservoir Sampling over Memory-Limited Stream Joins, section 4.2 (algorithm 4).

    Deviations
    ----------
    The paper counts `1/p1` results of the join for each drawn one, and lets the next one replace a random one with
    probability `r / (k + 1) / p1`. That `k` is an estimate from the sample itself, so that the sample is only
    approximately uniform. Ranks need no estimate.

    If probabilities fall below the highest rank, or before the reservoir is full, results with higher ranks are
    removed. The sample is then uniform but smaller than `size`.
    """

    size: int
    budget: int

    def __post_init__(self) -> None:
        check_within(self.size, self.budget)

    def start(self, seed: int = 0, partition: int = 0) -> RankedReservoir:
        """Return an empty reservoir; seed and partition fix its draws."""
        return RankedReservoir(self.size, self.budget, salt_of(seed, partition))


def check_within(size: int, budget: int) -> None:
    """Refuse a reservoir that leaves the join no memory."""
    at_least_one(size, "size", "rows")
    at_least_one(budget, "budget", "rows")
    if size >= budget:
        raise InputError(
            f"size must be below the budget of join and reservoir, which is {budget}, to leave the join at least one "
            f"row; got {size}"
        )
