"""Reservoirs that hold the results with the lowest random ranks of a whole join."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import ClassVar, NamedTuple, Protocol, TypeAlias

import numpy as np

from tidegate.compiled import kernel
from tidegate.draws import draw_one
from tidegate.models.validation import is_number
from tidegate.sampling.reservoirs.slots import SlotChanges
from tidegate.types import Array, ArrayField, InputError, Numbers, State, Stateful, Time, Unused

Memory: TypeAlias = Callable[[float], float]
"""The number of rows that a join needs to be sampled at a fraction."""


class Demand(NamedTuple):
    """What a reservoir needs from the sampler that fills it.

    Parameters
    ----------
    fraction
        The probability with which each result of the join must be drawn; more is not needed.
    rows
        The budget of the join.
    """

    fraction: float
    rows: int


class RunningJoinReservoir(Protocol):
    """A running reservoir of a join's results: it decides which results are held; the caller keeps them in slots.

    Attributes
    ----------
    grows
        Whether `advance` may let it grow.
    size
        The number of results that it has room for.
    """

    grows: ClassVar[bool]
    size: int

    def __len__(self) -> int: ...

    @property
    def results(self) -> float:
        """The estimated number of results of the join so far."""
        ...

    def demand(self) -> Demand:
        """What the reservoir needs from the sampler from now on."""
        ...

    def offer(
        self, probability: Array, numbers: Array | None = None, lowest: float | None = None
    ) -> SlotChanges:
        """Offer results with these probabilities; see `RankedReservoir.offer`."""
        ...

    def advance(self, now: Time, memory: Memory | None = None) -> SlotChanges:
        """Grow if possible, between steps; `memory` returns the rows that the join needs for a fraction."""
        ...


class RankedReservoir(Stateful):
    """A running `JoinReservoir`: it decides which results are held, and in which slot; the caller keeps them.

    Attributes
    ----------
    grows
        Whether `advance` may let it grow.
    size
        The number of results that it has room for.
    seen
        The number of results that it was offered.
    """

    grows: ClassVar[bool] = False

    state: ClassVar[State] = {
        "counts": Numbers(seen=int, size=int),
        "ranks": ArrayField("_ranks"),
        "lowest": Numbers(_lowest=float),
        "since": Unused(),  # of a reservoir that grows, when its state is only inspected
    }

    def __init__(self, size: int, budget: int, salted: int) -> None:
        self.size, self.budget, self._salt = size, budget, salted
        self.seen = 0
        self._ranks = np.empty(0)
        self._lowest = 1.0

    def __len__(self) -> int:
        return len(self._ranks)

    @property
    def ranks(self) -> Array:
        """The rank of the result in each slot."""
        return self._ranks.copy()

    @property
    def fraction(self) -> float:
        """Only results with ranks below this are still needed."""
        full = len(self._ranks) == self.size
        return float(self._ranks.max()) if full else self._lowest

    @property
    def chance(self) -> float:
        """The probability with which each result of the join is held."""
        return chance_of(self._ranks, self.size, self.fraction)

    @property
    def results(self) -> float:
        """The estimated number of results of the join so far, from the ranks; unbiased."""
        full = len(self._ranks) == self.size
        return (len(self._ranks) - full) / self.fraction

    def demand(self) -> Demand:
        """What the reservoir needs from the sampler from now on."""
        return Demand(self.fraction, self.budget - self.size)

    def advance(self, now: Time, memory: Memory | None = None) -> SlotChanges:  # noqa: ARG002 - it does not grow
        """Grow if possible, between steps: this reservoir keeps its size."""
        return SlotChanges.none()

    def offer(
        self, probability: Array, numbers: Array | None = None, lowest: float | None = None
    ) -> SlotChanges:
        """Offer results; returns which of them are in the reservoir now, and in which slots.

        Parameters
        ----------
        probability
            The probability with which the sampler drew each result.
        numbers
            A unique number for each result, the same if it is offered again; by default in order of offers.
        lowest
            The lowest probability of any result since the last offer, drawn or not; by default that of those offered.
        """
        kept, rows, ranks = self._ranked(probability, numbers, lowest)
        return self._take(rows, ranks, kept)

    def _ranked(
        self, probability: Array, numbers: Array | None, lowest: float | None
    ) -> tuple[Array | None, Array, Array]:
        """Which held results stay (None: all), which offered results have a rank that is needed, and these ranks."""
        offered = check_probabilities(probability)
        bound = min(1.0, float(offered.min(initial=1.0))) if lowest is None else _check_lowest(lowest)
        ids = np.arange(self.seen, self.seen + len(offered)) if numbers is None else np.asarray(numbers)
        if ids.shape != offered.shape:
            raise InputError(
                f"numbers must have one value for each of {len(offered)} results; got {len(ids)} values"
            )
        self.seen += len(offered)
        kept = self._lower(min(self._lowest, bound))
        return kept, *_below(self.fraction, offered, ids.astype(np.int64), self._salt)

    def _lower(self, lowest: float) -> Array | None:
        """Drop results whose ranks further results can no longer have."""
        self._lowest = lowest
        stay = (
            self._ranks <= lowest
        )  # the bound may be the highest rank of a full reservoir, which then stays
        if stay.all():
            return None
        kept = np.flatnonzero(stay)
        self._ranks = self._ranks[kept]
        return kept

    def _take(self, rows: Array, ranks: Array, kept: Array | None) -> SlotChanges:
        held = len(self._ranks)
        both = np.concatenate([self._ranks, ranks])
        if len(both) > self.size:
            lowest = np.sort(np.argpartition(both, self.size - 1)[: self.size])
        else:
            lowest = np.arange(len(both))
        entering = lowest[np.searchsorted(lowest, held) :]
        left = np.ones(held, np.bool_)
        left[lowest[: len(lowest) - len(entering)]] = False
        slots = np.concatenate([np.flatnonzero(left), np.arange(held, len(lowest))])
        self._ranks = np.concatenate([self._ranks, np.empty(len(lowest) - held)])
        self._ranks[slots] = both[entering]
        return SlotChanges(slots, rows[entering - held], kept)


def chance_of(ranks: Array, size: int, bound: float) -> float:
    """The probability with which each result of a join is among these lowest ranks; its inverse is the weight.

    If the sample is full, or its highest rank is the bound, that rank gives an unbiased estimate of the number of
    results, and the weights add up to it. Any other sample has all results with ranks up to the bound.

    Examples
    --------
    >>> chance_of(np.array([0.1, 0.2]), 2, 1.0), chance_of(np.array([0.1]), 2, 0.5)
    (0.4, 0.5)
    """
    held, last = len(ranks), float(ranks.max(initial=0.0))
    if held <= 1 or (held < size and last < bound):
        return bound
    return min(1.0, last * held / (held - 1))


class MergedSample(NamedTuple):
    """One sample of several reservoirs: the positions of its results, by rank, and their probabilities."""

    rows: Array
    chance: Array


def merge_ranked(ranks: Array, bounds: Sequence[float], size: int) -> MergedSample:
    """Merge the reservoirs of disjoint parts of a join into one sample.

    Each holds the lowest ranks of its part, so the lowest of all are those of the whole join. That holds up to the
    lowest bound: a part with this bound misses results with higher ranks.

    Parameters
    ----------
    ranks
        The ranks of all held results, part by part.
    bounds
        The `fraction` of each reservoir, empty ones included.
    size
        The number of results to return; at most what each reservoir has room for.

    Examples
    --------
    >>> merge_ranked(np.array([0.3, 0.1, 0.2, 0.05]), [0.5, 0.25], 2)
    MergedSample(rows=array([3, 1]), chance=array([0.2, 0.2]))
    """
    bound = min(bounds)
    order = np.argsort(ranks, kind="stable")[:size]
    rows = order[ranks[order] <= bound]
    return MergedSample(rows, np.full(len(rows), chance_of(ranks[rows], size, bound)))


def check_probabilities(probability: Array) -> Array:
    """Refuse values that are not probabilities above 0."""
    try:
        values = np.asarray(probability, np.float64)
    except (TypeError, ValueError) as error:
        raise InputError(f"probability must be an array of numbers; got {probability!r}") from error
    bad = ~((values > 0) & (values <= 1))
    if values.ndim != 1 or bad.any():
        value = values[bad][0] if bad.any() else values
        raise InputError(f"each probability must be above 0 and at most 1; got {value}")
    return values


def _check_lowest(value: float) -> float:
    if not is_number(value) or not 0 < value <= 1:
        raise InputError(f"lowest must be a probability above 0 and at most 1; got {value!r}")
    return float(value)


@kernel
def _below(bound: float, probability: Array, numbers: Array, salted: int) -> tuple[Array, Array]:
    """The results whose rank is below a bound, and these ranks."""
    rows, ranks = np.empty(len(probability), np.int64), np.empty(len(probability))
    n = 0
    for i in range(len(probability)):
        rank = probability[i] * draw_one(numbers[i], salted)
        rows[n], ranks[n] = i, rank
        n += rank < bound
    return rows[:n], ranks[:n]
