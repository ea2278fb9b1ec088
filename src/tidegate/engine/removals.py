"""The rows that a step removes, while that is being decided."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, TypeAlias

import numpy as np

if TYPE_CHECKING:
    from tidegate.types import Array, Side

Places: TypeAlias = "slice | Array"
"""Positions of rows among the candidates of their side."""

_NONE: Final = np.empty(0, np.int64)


class StepRemovals:
    """The candidates of one step that are removed at its end; until then no row is moved.

    Parameters
    ----------
    sizes
        The number of candidates of each side.

    Examples
    --------
    >>> removals = StepRemovals({"left": 4, "right": 2})
    >>> removals.expire("left", np.array([0]))
    >>> removals.evict("left", np.array([2]))
    >>> removals.staying("left"), removals.staying("right")
    (array([1, 3]), array([0, 1]))
    """

    def __init__(self, sizes: dict[Side, int]) -> None:
        self._sizes = sizes
        self.expired = dict.fromkeys(sizes, _NONE)
        self.evicted = dict.fromkeys(sizes, _NONE)

    def keeps_all(self, side: Side) -> bool:
        """Whether all rows of a side stay."""
        return not len(self.expired[side]) and not len(self.evicted[side])

    def leaving(self, side: Side) -> Array:
        """The positions of the rows that leave."""
        if not len(self.evicted[side]):
            return self.expired[side]
        if not len(self.expired[side]):
            return self.evicted[side]
        leaves = np.zeros(self._sizes[side], bool)
        leaves[self.expired[side]] = True
        leaves[self.evicted[side]] = True
        return np.flatnonzero(leaves)

    def evicted_rows(self) -> int:
        """The number of rows that leave because the budget is full."""
        return sum(map(len, self.evicted.values()))

    def size(self, side: Side) -> int:
        """The number of rows of a side that stay."""
        return self._sizes[side] - len(self.expired[side]) - len(self.evicted[side])

    def staying(self, side: Side) -> Array:
        """The positions of the rows that stay."""
        if self.keeps_all(side):
            return np.arange(self._sizes[side])
        stays = np.ones(self._sizes[side], bool)
        stays[self.leaving(side)] = False
        return np.flatnonzero(stays)

    def split_staying(self, side: Side, fresh: int) -> tuple[Places, Places]:
        """The positions of staying rows: those buffered before the step, and the arrivals, which begin at `fresh`."""
        if self.keeps_all(side):
            return slice(0, fresh), slice(fresh, self._sizes[side])
        places = self.staying(side)
        first = int(np.searchsorted(places, fresh))
        return places[:first], places[first:]

    def expire(self, side: Side, places: Array) -> None:
        """Remove rows that can match no more, unless they leave anyway."""
        if not self.keeps_all(side):
            places = np.setdiff1d(places, self.leaving(side), assume_unique=True)
        self.expired[side] = np.union1d(self.expired[side], places) if len(self.expired[side]) else places

    def evict(self, side: Side, places: Array) -> None:
        """Remove rows because the budget is full."""
        self.evicted[side] = np.union1d(self.evicted[side], places) if len(self.evicted[side]) else places
