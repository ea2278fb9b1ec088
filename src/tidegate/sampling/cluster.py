"""What cluster samplers have in common: a row is taken up or not, and with it go all its matches."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import replace
from typing import TYPE_CHECKING, Final

import numpy as np

from tidegate.compiled import kernel
from tidegate.sampling.ladder import LOWEST, chances, coin, narrow
from tidegate.sampling.sampler import SPREAD, Owners, Picked, Sampling

if TYPE_CHECKING:
    from tidegate.types import Array, Rows, Side

_ALL: Final = np.arange(LOWEST + 1)
"""Every level that a row may have."""


@kernel
def _held(salt: int, ids: Array, levels: Array, chance_of: Array) -> Array:
    """Which rows' draws lie below the probabilities of these levels."""
    held = np.empty(len(ids), np.bool_)
    for i in range(len(ids)):
        held[i] = coin(salt, ids[i], 0) < chance_of[levels[i]]
    return held


class ClusterSampling(Sampling):
    """A cluster sampler at work.

    One draw a row decides for all time: the row is held while the draw is below its probability, which is only ever
    lowered. Of a draw that has been below all probabilities so far nothing more is known, so it is below a lower one
    with the chance that the two have to each other, and thinning needs no other draw.

    When and how far it is lowered depends on which rows are held, this one included, and so on draws: but on each
    only through whether it was below the probabilities so far, which is known by then. One over the probability of a
    row while it is held, and 0 from when it is not, is a martingale: its mean is 1 at any time, that of a match
    included, however memory fares.
    """

    def _level(self, fraction: float) -> int:
        """That of a higher probability, or a reservoir with room for results of many rows would hold all of few."""
        return super()._level(min(self.base, SPREAD * fraction))

    @abstractmethod
    def offsets(self, rows: Rows) -> Array | int:
        """By how many levels the probability of each row lies above that of new draws, as far as 1."""

    def _levels(self, offsets: Array | int, count: int) -> Array:
        return np.broadcast_to(np.clip(self.control.level - offsets, 0, LOWEST), count)

    def _taken(self, rows: Rows, levels: Array) -> _Clusters:
        level = narrow(levels)
        return _Clusters(self.base, level, _held(self.salt, rows.id, level, chances(self.base, _ALL)))

    def admitted(self, rows: Rows) -> tuple[Rows, Owners]:
        """Draw for each arrival whether it is taken up."""
        levels = self._levels(self.offsets(rows), len(rows))
        taken = self._taken(rows, levels)
        return replace(rows, level=taken.level), taken

    def thinned(self, rows: dict[Side, Rows], held: float, room: float, *, lower: bool) -> dict[Side, Owners]:
        """Let go of rows whose draw lies above the lower probability."""
        offsets = {side: self.offsets(some) for side, some in rows.items()}
        if lower:
            self.control.lower(held, room, min(int(np.min(o)) for s, o in offsets.items() if len(rows[s])))
        return {
            side: self._taken(some, np.maximum(_level(some), self._levels(offsets[side], len(some))))
            for side, some in rows.items()
        }

    def begin(self, rows: Rows) -> Owners:
        """Take all matches of those that were taken up."""
        return _Clusters(self.base, _level(rows), np.ones(len(rows), bool))


class _Clusters(Owners):
    def __init__(self, base: float, level: Array, held: Array) -> None:
        self._base, self.level, self._held = base, level, held

    def picked(self, owner: Array) -> Picked:
        leaving = np.flatnonzero(self._held[owner])
        probability = chances(self._base, self.level[owner[leaving]])
        return Picked(leaving, probability, probability)

    def useless(self) -> Array:
        return ~self._held

    def noted(self) -> dict[str, Array]:
        return {"level": self.level}


def _level(rows: Rows) -> Array:
    assert rows.level is not None, "rows of a sampler have their level"  # noqa: S101 - an invariant
    return rows.level
