"""Who stays and who leaves, while a step makes up its mind."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, TypeAlias

import numpy as np

if TYPE_CHECKING:
    from tidegate.types import Array, Side

Places: TypeAlias = "slice | Array"
"""Where rows stand among the candidates of their side."""

_NONE: Final = np.empty(0, np.int64)


class Fates:
    """Who stays and who leaves among the candidates of one step; nothing is moved before the step's end.

    Parameters
    ----------
    sizes
        How many candidates each side has.

    Examples
    --------
    >>> fates = Fates({"left": 4, "right": 2})
    >>> fates.expire("left", np.array([0]))
    >>> fates.evict("left", np.array([2]))
    >>> fates.staying("left"), fates.staying("right")
    (array([1, 3]), array([0, 1]))
    """

    def __init__(self, sizes: dict[Side, int]) -> None:
        self._sizes = sizes
        self.expired = dict.fromkeys(sizes, _NONE)
        self.evicted = dict.fromkeys(sizes, _NONE)

    def whole(self, side: Side) -> bool:
        """Whether all of a side stay."""
        return not len(self.expired[side]) and not len(self.evicted[side])

    def gone(self, side: Side) -> Array:
        """Where those stand that leave."""
        if not len(self.evicted[side]):
            return self.expired[side]
        if not len(self.expired[side]):
            return self.evicted[side]
        leaves = np.zeros(self._sizes[side], bool)
        leaves[self.expired[side]] = True
        leaves[self.evicted[side]] = True
        return np.flatnonzero(leaves)

    def shed(self) -> int:
        """How many leave for want of room."""
        return sum(map(len, self.evicted.values()))

    def size(self, side: Side) -> int:
        """How many of a side stay."""
        return self._sizes[side] - len(self.expired[side]) - len(self.evicted[side])

    def staying(self, side: Side) -> Array:
        """Where those stand that stay."""
        if self.whole(side):
            return np.arange(self._sizes[side])
        stays = np.ones(self._sizes[side], bool)
        stays[self.gone(side)] = False
        return np.flatnonzero(stays)

    def parted(self, side: Side, fresh: int) -> tuple[Places, Places]:
        """Where the staying rows are that were buffered before, and the arrivals, which begin at `fresh`."""
        if self.whole(side):
            return slice(0, fresh), slice(fresh, self._sizes[side])
        places = self.staying(side)
        first = int(np.searchsorted(places, fresh))
        return places[:first], places[first:]

    def expire(self, side: Side, places: Array) -> None:
        """Let rows go that can match no more, unless they leave anyway."""
        if not self.whole(side):
            places = np.setdiff1d(places, self.gone(side), assume_unique=True)
        self.expired[side] = np.union1d(self.expired[side], places) if len(self.expired[side]) else places

    def evict(self, side: Side, places: Array) -> None:
        """Let rows go for want of room."""
        self.evicted[side] = np.union1d(self.evicted[side], places) if len(self.evicted[side]) else places
