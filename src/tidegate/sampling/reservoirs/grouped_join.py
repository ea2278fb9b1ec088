"""A reservoir of a join's results with enough of every group."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np

from tidegate.models.validation import at_least_one
from tidegate.sampling.reservoirs.grouped import quota_of
from tidegate.sampling.reservoirs.join_reservoir import check_within
from tidegate.sampling.reservoirs.ranked import MergedSample, RankedReservoir
from tidegate.sampling.reservoirs.reservoir import salt_of
from tidegate.sampling.reservoirs.slots import SlotChanges
from tidegate.types import Array, ArrayField, InputError, Numbers, State


@dataclass(frozen=True)
class GroupedJoinReservoir:
    """A reservoir of join results: equal numbers of each group.

    Every result has a random rank, as in `JoinReservoir`, and each group holds its lowest ranks, up to a quota. The
    quota is the largest at which all groups together fit; small groups hold all that they have. The highest rank of a
    group that is cut off is the part of its results that is held below it, so their weight is one over that rank.
    The result with that rank is not part of the sample.

    Groups have their own place as long as `min_per_group` results of each fit. Groups that come later share one
    place. Their weights are right, but the number of results held of each is random.

    Parameters
    ----------
    size
        The number of results to hold, of all groups together; never more.
    budget
        The number of rows that join and reservoir may hold together; a result counts as one row.
    min_per_group
        The number of results that each group with its own place has in the sample, if it has that many.

    Examples
    --------
    >>> running = GroupedJoinReservoir(size=100, budget=1000, min_per_group=10).start()
    >>> groups = np.repeat([0, 1, 2], [10_000, 1000, 20])
    >>> held = running.offer(np.ones(len(groups)), groups=(np.empty(0, int), groups))
    >>> np.bincount(groups[held.rows])
    array([40, 40, 20])

    References
    ----------
    Reservoir Sampling over Memory-Limited Stream Joins, section 7 (future work); see `GroupedReservoir`.
    """

    size: int
    budget: int
    min_per_group: int = 10

    def __post_init__(self) -> None:
        check_within(self.size, self.budget)
        at_least_one(self.min_per_group, "min_per_group", "results")
        if not _places(self.size, self.min_per_group):
            raise InputError(
                f"size must be at least {2 * (self.min_per_group + 1)} for min_per_group={self.min_per_group}; "
                f"got {self.size}"
            )

    def start(self, seed: int = 0, partition: int = 0) -> RankedGroups:
        """Return an empty reservoir; seed and partition fix its draws."""
        return RankedGroups(self.size, self.budget, salt_of(seed, partition), self.min_per_group)


class RankedGroups(RankedReservoir):
    """A running `GroupedJoinReservoir`.

    Attributes
    ----------
    min_per_group
        The smallest number of results of a group with its own place, if it has that many.
    quota
        The most results that a group holds; it only ever falls, so that a group which holds fewer has lost none.
    pools
        Whether there have been groups that share a place. From then on all new ones do, even if a place becomes free:
        they may have been there before.
    """

    state: ClassVar[State] = {
        **RankedReservoir.state,
        "pooled": ArrayField("_pooled"),
        "quota": Numbers(min_per_group=int, quota=int, pools=bool),
    }

    def __init__(self, size: int, budget: int, salted: int, min_per_group: int) -> None:
        super().__init__(size, budget, salted)
        self.min_per_group, self.quota, self.pools = min_per_group, size, False
        self._pooled = np.empty(0, np.bool_)

    @property
    def fraction(self) -> float:
        """All ranks are needed: a new group may have any."""
        return self._lowest

    @property
    def pooled(self) -> Array:
        """Whether the result in each slot is of a group that shares a place."""
        return self._pooled.copy()

    @property
    def results(self) -> float:
        """Not available: the weights of each group add up to the number of its results."""
        raise InputError("a reservoir with groups has no total count; use the sum of the weights")

    @property
    def sharing(self) -> float:
        """The estimated number of results so far of groups that share a place."""
        ranks = self._ranks[self._pooled]
        bound = float(ranks.max()) if len(ranks) == self.quota else self._lowest
        return float((ranks < bound).sum() / bound)

    @property
    def part(self) -> GroupedPart:
        """The numbers that a merge needs."""
        return GroupedPart(len(self), self._lowest, self.quota)

    def offer(
        self,
        probability: Array,
        numbers: Array | None = None,
        lowest: float | None = None,
        groups: tuple[Array, Array] | None = None,
    ) -> SlotChanges:
        """Offer results; returns which of them are in the reservoir now, and in which slots.

        Parameters
        ----------
        probability, numbers, lowest
            As for `RankedReservoir`.
        groups
            The group of the result in each slot, and of each that is offered, as numbers from 0, valid for this
            call only.
        """
        kept, rows, ranks = self._ranked(probability, numbers, lowest)
        stay = np.arange(len(self._pooled)) if kept is None else kept
        self._pooled = self._pooled[stay]
        if groups is None or not len(rows):
            return SlotChanges.none(kept)
        both = np.concatenate([groups[0][stay], groups[1][rows]])
        all_ranks, pooled = np.concatenate([self._ranks, ranks]), self._assign_places(both)
        strata = np.where(pooled, both.max() + 1, both)
        sizes = np.bincount(strata)
        self.quota = min(self.quota, quota_of(sizes[sizes > 0], self.size))
        remain = np.flatnonzero(_position(strata, all_ranks) < self.quota)
        self._ranks, self._pooled = all_ranks[remain], pooled[remain]
        held = int(np.searchsorted(remain, len(stay)))
        return SlotChanges(np.arange(held, len(remain)), rows[remain[held:] - len(stay)], stay[remain[:held]])

    def _assign_places(self, groups: Array) -> Array:
        """A mask of results of groups that share a place: those held, then those offered."""
        held = len(self._pooled)
        shares, owns = np.zeros((2, groups.max() + 1), np.bool_)
        shares[groups[:held][self._pooled]] = True
        owns[groups[:held][~self._pooled]] = True
        first = np.unique(groups, return_index=True)[1]
        new = groups[np.sort(first)]
        new = new[~(shares | owns)[new]]
        beyond = new[0 if self.pools else max(0, _places(self.size, self.min_per_group) - int(owns.sum())) :]
        shares[beyond] = True
        self.pools = self.pools or len(beyond) > 0
        pooled: Array = shares[groups]
        return pooled


class GroupedPart(NamedTuple):
    """One of several reservoirs with groups: the number of held results, the bound of their ranks, and the quota."""

    held: int
    bound: float
    quota: int


def merge_groups(
    ranks: Array, groups: Array, pooled: Array, parts: Sequence[GroupedPart], size: int, min_per_group: int
) -> MergedSample:
    """Merge the reservoirs with groups of disjoint parts of a join into one sample.

    It has the results of each group with the lowest ranks, up to a quota. The probability of a result is the first
    rank beyond the quota, or the bound of its own part if that is lower. So results of one group may have different
    probabilities.

    Parameters
    ----------
    ranks, groups, pooled
        For all held results, part by part: the rank, the group as a number from 0, and whether the group shares a
        place there.
    parts
        The reservoirs, empty ones included.
    size
        The number of results to return; more if `min_per_group` of each group are more.
    min_per_group
        The number of results that each group keeps, if it has that many.
    """
    starts = np.cumsum([0, *(part.held for part in parts)])
    bounds = np.empty(len(ranks))
    for part, begin, end in zip(parts, starts, starts[1:], strict=False):
        some = slice(begin, end)
        bounds[some] = _bounds(ranks[some], groups[some], pooled[some], part)
    below = np.flatnonzero(ranks < bounds)
    sizes = np.bincount(groups[below], minlength=1)
    quota = max(min_per_group, quota_of(sizes[sizes > 0], size))
    position = _position(groups[below], ranks[below])
    ends, ending = np.ones(len(sizes)), below[position == quota]
    ends[groups[ending]] = ranks[ending]
    rows = below[position < quota]
    rows = rows[np.argsort(ranks[rows], kind="stable")]
    return MergedSample(rows, np.minimum(bounds[rows], ends[groups[rows]]))


def _bounds(ranks: Array, groups: Array, pooled: Array, part: GroupedPart) -> Array:
    """For each result, the rank below which its part holds all results of the same place."""
    places = np.where(pooled, groups.max(initial=0) + 1, groups)
    last = np.zeros(places.max(initial=0) + 1)
    np.maximum.at(last, places, ranks)
    full = np.bincount(places, minlength=len(last)) >= part.quota
    bounds: Array = np.where(full, last, part.bound)[places]
    return bounds


def _places(size: int, min_per_group: int) -> int:
    """The number of groups with their own place; a place has one result more than is returned, and one is shared."""
    return max(0, size // (min_per_group + 1) - 1)


def _position(strata: Array, ranks: Array) -> Array:
    """The position of each result among those of its stratum, by rank, from 0."""
    order = np.lexsort((ranks, strata))
    sizes = np.bincount(strata)
    position = np.empty(len(order), np.int64)
    position[order] = np.arange(len(order)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    return position
