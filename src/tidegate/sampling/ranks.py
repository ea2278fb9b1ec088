"""The results of lowest rank among all of a join, shown or not."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple, Self

import numpy as np

from tidegate.compiled import kernel
from tidegate.draws import drawn
from tidegate.models.numbers import is_number
from tidegate.sampling.slots import Taken
from tidegate.types import Array, InputError


class Wants(NamedTuple):
    """What a reservoir asks of the sampler below it.

    Parameters
    ----------
    fraction
        The chance that each result of the join needs to have to be sampled; more is of no use.
    rows
        The budget of the join.
    """

    fraction: float
    rows: int


class RankedReservoir:
    """A `JoinReservoir` at work. It tells who comes to which slot; whoever calls keeps the results.

    Attributes
    ----------
    size
        Results that it has room for.
    seen
        How many results it was shown.
    """

    def __init__(self, size: int, budget: int, salted: int) -> None:
        self.size, self.budget, self._salt = size, budget, salted
        self.seen = 0
        self._ranks = np.empty(0)
        self._least = 1.0

    def __len__(self) -> int:
        return len(self._ranks)

    @property
    def ranks(self) -> Array:
        """The rank of the result in each slot."""
        return self._ranks.copy()

    @property
    def fraction(self) -> float:
        """The ranks that are still of use are below this."""
        full = len(self._ranks) == self.size
        return float(self._ranks.max()) if full else self._least

    @property
    def chance(self) -> float:
        """With what probability each result of the join is held."""
        return chance_of(self._ranks, self.size, self.fraction)

    @property
    def results(self) -> float:
        """How many results the join has had, as far as ranks tell: an estimate without bias."""
        full = len(self._ranks) == self.size
        return (len(self._ranks) - full) / self.fraction

    def wants(self) -> Wants:
        """What the sampler below should do from now on."""
        return Wants(self.fraction, self.budget - self.size)

    def offer(self, probability: Array, numbers: Array | None = None, least: float | None = None) -> Taken:
        """Show results; returns who of them is in the reservoir now, and where.

        Parameters
        ----------
        probability
            With which each was shown.
        numbers
            A number for each that no other has, and the same when it is shown again; by default they are numbered
            as they come.
        least
            The least probability that any result since the last offer had, shown or not; by default that of those
            shown.
        """
        kept, rows, ranks = self._ranked(probability, numbers, least)
        return self._take(rows, ranks, kept)

    def _ranked(
        self, probability: Array, numbers: Array | None, least: float | None
    ) -> tuple[Array | None, Array, Array]:
        """Who stays, who of those shown has a rank that is of use, and these ranks."""
        shown = checked(probability)
        lowest = min(1.0, float(shown.min(initial=1.0))) if least is None else _fraction(least)
        names = np.arange(self.seen, self.seen + len(shown)) if numbers is None else np.asarray(numbers)
        if names.shape != shown.shape:
            raise InputError(f"{len(names)} numbers for {len(shown)} results; give one each")
        self.seen += len(shown)
        kept = self._lower(min(self._least, lowest))
        return kept, *_below(self.fraction, shown, names.astype(np.int64), self._salt)

    def _lower(self, least: float) -> Array | None:
        """Let go of ranks that others like them no longer reach."""
        self._least = least
        stay = self._ranks <= least  # at its own highest rank, a full reservoir misses nothing
        if stay.all():
            return None
        kept = np.flatnonzero(stay)
        self._ranks = self._ranks[kept]
        return kept

    def _take(self, rows: Array, ranks: Array, kept: Array | None) -> Taken:
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
        return Taken(slots, rows[entering - held], kept)

    def snapshot(self) -> dict[str, Array]:
        """The ranks of the results it holds, by slot, and what bounds them."""
        return {
            "counts": np.array([self.seen, self.size]),
            "ranks": self._ranks,
            "least": np.array([self._least]),
        }

    def restore(self, state: Mapping[str, Array]) -> Self:
        """Take up what `snapshot` gave."""
        self.seen, self.size = state["counts"].tolist()
        self._ranks, self._least = state["ranks"].copy(), float(state["least"][0])
        return self


def chance_of(ranks: Array, size: int, bound: float) -> float:
    """With what probability each result of a join is among those of these lowest ranks; one over it is its weight.

    A sample that is full, or ends with the rank that bounds it, tells by its highest rank how many results there are,
    as an estimate without bias; weights add up to that. Any other holds all ranks up to the bound.

    Examples
    --------
    >>> chance_of(np.array([0.1, 0.2]), 2, 1.0), chance_of(np.array([0.1]), 2, 0.5)
    (0.4, 0.5)
    """
    held, last = len(ranks), float(ranks.max(initial=0.0))
    if held <= 1 or (held < size and last < bound):
        return bound
    return min(1.0, last * held / (held - 1))


class Merged(NamedTuple):
    """One reservoir out of several: which of all their results it has, by rank, and with what probability each."""

    rows: Array
    chance: Array


def merged(ranks: Array, bounds: Sequence[float], size: int) -> Merged:
    """Make one reservoir of those of disjoint parts of a join.

    Each holds the lowest ranks of its part, so that the lowest of all are those of the whole: up to the least bound,
    since a part that could not take higher ones any more misses some that are like those of the others.

    Parameters
    ----------
    ranks
        Those of all results that are held, wherever.
    bounds
        The `fraction` of each reservoir, be it empty or not.
    size
        How many results are wanted; no more than any reservoir has room for.

    Examples
    --------
    >>> merged(np.array([0.3, 0.1, 0.2, 0.05]), [0.5, 0.25], 2)
    Merged(rows=array([3, 1]), chance=array([0.2, 0.2]))
    """
    bound = min(bounds)
    order = np.argsort(ranks, kind="stable")[:size]
    rows = order[ranks[order] <= bound]
    return Merged(rows, np.full(len(rows), chance_of(ranks[rows], size, bound)))


def checked(probability: Array) -> Array:
    """Refuse what are not probabilities of results that were shown."""
    try:
        shown = np.asarray(probability, np.float64)
    except (TypeError, ValueError) as error:
        raise InputError(f"probabilities {probability!r} are not numbers; give an array of them") from error
    bad = ~((shown > 0) & (shown <= 1))
    if shown.ndim != 1 or bad.any():
        value = shown[bad][0] if bad.any() else shown
        raise InputError(f"a result was shown with probability {value}; give one above 0 and up to 1 each")
    return shown


def _fraction(value: float) -> float:
    if not is_number(value) or not 0 < value <= 1:
        raise InputError(f"least is {value!r}; give a probability above 0 and up to 1")
    return float(value)


@kernel
def _below(bound: float, probability: Array, numbers: Array, salted: int) -> tuple[Array, Array]:
    """The results whose rank is below a bound, and these ranks."""
    rows, ranks = np.empty(len(probability), np.int64), np.empty(len(probability))
    n = 0
    for i in range(len(probability)):
        rank = probability[i] * drawn(numbers[i], salted)
        rows[n], ranks[n] = i, rank
        n += rank < bound
    return rows[:n], ranks[:n]
