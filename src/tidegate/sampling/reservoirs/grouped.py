"""A reservoir with enough rows of every group."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from tidegate.draws import draws
from tidegate.models.validation import at_least_one
from tidegate.sampling.reservoirs.ranked import check_probabilities
from tidegate.sampling.reservoirs.reservoir import salt_of
from tidegate.sampling.reservoirs.slots import SlotChanges, Slots, length_of
from tidegate.types import Array, ArrayField, InputError, Nested, Numbers, State, Stateful

_OWN = "group", "draw", "shown"  # the reservoir's own columns of each row


@dataclass(frozen=True)
class GroupedSample:
    """A sample with rows of every group, and their probabilities.

    Parameters
    ----------
    columns
        The rows.
    group
        The group of each row.
    probability
        The inclusion probability of each row. Its inverse is the weight of the row in sums over all rows.
    """

    columns: Mapping[str, Array]
    group: Array
    probability: Array

    def __len__(self) -> int:
        return len(self.group)


@dataclass(frozen=True)
class GroupedReservoir:
    """A reservoir for queries with groups: equal numbers of rows of each group.

    A uniform sample has few rows of a small group, so that estimates for it are poor. Here each group has the same
    quota, the largest at which all groups together fit; groups with fewer rows are held whole. Within each group the
    sample is uniform. As rows and groups arrive, the quota falls, and random rows are removed. The sample does not
    depend on how rows are divided into offers.

    Parameters
    ----------
    size
        The number of rows to hold, of all groups together; never more.
    min_per_group
        The number of rows that each group has in the sample, if it has that many. More groups than fit are refused
        with an error.

    Examples
    --------
    >>> running = GroupedReservoir(size=100, min_per_group=10).start()
    >>> groups = np.repeat([7, 8, 9], [10_000, 1000, 20])
    >>> running.offer({"x": np.arange(len(groups))}, groups)
    >>> sample = running.sample()
    >>> np.unique(sample.group, return_counts=True)
    (array([7, 8, 9]), array([40, 40, 20]))
    >>> float((1 / sample.probability).sum())
    11020.0

    References
    ----------
    Reservoir Sampling over Memory-Limited Stream Joins, section 7 (future work): a sample that is biased "to collect
    an equal number of tuples as possible from each group".
    """

    size: int
    min_per_group: int = 1

    def __post_init__(self) -> None:
        at_least_one(self.size, "size", "rows")
        at_least_one(self.min_per_group, "min_per_group", "rows")
        if self.min_per_group > self.size:
            raise InputError(
                f"min_per_group must be at most size, which is {self.size}; got {self.min_per_group}"
            )

    def start(self, seed: int = 0, partition: int = 0) -> RunningGroups:
        """Return an empty reservoir; seed and partition fix its draws."""
        return RunningGroups(self, salt_of(seed, partition))


class RunningGroups(Stateful):
    """A running `GroupedReservoir`.

    The draw of a row is a hash of its number. Each group holds its rows with the lowest draws.

    Attributes
    ----------
    seen
        The number of rows that it was offered.
    quota
        The largest number of rows that a group holds.
    """

    state: ClassVar[State] = {
        "groups": ArrayField("_groups"),
        "counts": ArrayField("_counts"),
        "highest": ArrayField("_highest"),
        "seen": Numbers(seen=int, quota=int),
        "row.": Nested("_slots"),
    }

    def __init__(self, config: GroupedReservoir, salted: int) -> None:
        self.config, self._salt = config, salted
        self.seen, self.quota = 0, config.size
        self._groups: Array = np.empty(0, np.int64)
        self._counts: Array = np.empty(0, np.int64)
        self._highest: Array = np.empty(0)  # the highest draw that each group still accepts
        self._slots = Slots()

    def __len__(self) -> int:
        return self._slots.filled

    def offer(self, rows: Mapping[str, Array], group: Array, probability: Array | None = None) -> None:
        """Offer rows, as columns.

        Parameters
        ----------
        rows
            Columns of any names.
        group
            The group of each row: whole numbers, or anything that can be sorted.
        probability
            The inclusion probability of each row, if the rows are a sample themselves; by default 1.
        """
        count = length_of(rows)
        groups = np.asarray(group)
        shown = np.ones(count) if probability is None else check_probabilities(probability)
        if groups.shape != (count,) or len(shown) != count:
            raise InputError(
                f"group and probability need one value for each of {count} rows; got {len(groups)} and {len(shown)}"
            )
        if reserved := set(_OWN) & rows.keys():
            raise InputError(f"column names {sorted(reserved)} are reserved; rename these columns")
        if not count:
            return
        drawn = draws(np.arange(self.seen, self.seen + count), self._salt)
        block = dict(rows) | dict(zip(_OWN, (groups, drawn, shown), strict=True))
        self._slots.check(block)
        places = self._add_groups(groups)
        counts = self._counts + np.bincount(places, minlength=len(self._counts))
        self.seen += count
        self._counts, self.quota = counts, quota_of(counts, self.config.size)
        new = np.flatnonzero(drawn < self._highest[places])
        held = np.arange(self._slots.filled, self._slots.filled + len(new))
        self._slots.put(block, SlotChanges(held, new))
        self._apply_quota()

    def _add_groups(self, groups: Array) -> Array:
        """Add new groups; returns the position of each row's group."""
        places = np.minimum(np.searchsorted(self._groups, groups), max(0, len(self._groups) - 1))
        fresh = self._groups[places] != groups if len(self._groups) else np.ones(len(groups), np.bool_)
        if not fresh.any():
            return places
        new = np.unique(groups[fresh])
        if (len(self._groups) + len(new)) * self.config.min_per_group > self.config.size:
            raise InputError(
                f"{len(self._groups) + len(new)} groups of at least {self.config.min_per_group} rows do not fit into "
                f"size {self.config.size}; set a larger size or a smaller min_per_group"
            )
        at = np.searchsorted(self._groups, new)
        wide = np.promote_types(self._groups.dtype, new.dtype) if len(self._groups) else new.dtype
        self._groups = np.insert(self._groups.astype(wide, copy=False), at, new)
        self._counts = np.insert(self._counts, at, 0)
        self._highest = np.insert(self._highest, at, 1.0)
        return np.searchsorted(self._groups, groups)

    def _apply_quota(self) -> None:
        """Remove the rows beyond the quota of each group."""
        columns = self._slots.columns()
        places = np.searchsorted(self._groups, columns["group"])
        order = np.lexsort((columns["draw"], places))
        sizes = np.bincount(places, minlength=len(self._groups))
        rank = np.arange(len(order)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
        self._slots.keep(order[rank < self.quota])
        last = order[rank == self.quota - 1]
        self._highest[places[last]] = columns["draw"][last]

    def sample(self) -> GroupedSample:
        """The held rows, with their probabilities."""
        columns = self._slots.columns()
        group, _, shown = (columns.pop(name, np.empty(0)) for name in _OWN)
        of_group = self._counts[np.searchsorted(self._groups, group)] if len(group) else np.empty(0)
        return GroupedSample(columns, group, shown * np.minimum(1.0, self.quota / of_group))


def quota_of(counts: Array, size: int) -> int:
    """The largest quota per group with which all groups together have at most `size` rows."""
    ascending = np.sort(counts)
    before = np.cumsum(ascending) - ascending
    # If the i smallest groups are held whole, the others share the rest.
    shares = (size - before) // np.arange(len(counts), 0, -1)
    short = np.flatnonzero(ascending > shares)
    return int(shares[short[0]]) if len(short) else size
