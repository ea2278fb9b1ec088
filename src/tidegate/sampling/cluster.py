"""What cluster samplers have in common: a row is taken up or not, and with it go all its matches."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from tidegate.sampling.ladder import LOWEST, chances, coins, narrow
from tidegate.sampling.sampler import Owners, Sampling

if TYPE_CHECKING:
    from tidegate.types import Array, Rows


class ClusterSampling(Sampling):
    """A cluster sampler at work.

    One draw a row decides for all time: the row is held while the draw is below its probability, which is only ever
    lowered. Of a draw that has been below all probabilities so far nothing more is known, so it is below a lower one
    with the chance that the two have to each other, and thinning needs no other draw.
    """

    @abstractmethod
    def offsets(self, rows: Rows) -> Array | int:
        """By how many levels the probability of each row lies above that of new draws, as far as 1."""

    def _levels(self, rows: Rows) -> Array:
        levels = np.full(len(rows), self.control.level) - self.offsets(rows)
        return np.clip(levels, 0, LOWEST)

    def _held(self, rows: Rows, levels: Array) -> Array:
        held: Array = coins(self.salt, rows.id, np.zeros(len(rows), np.int64)) < chances(self.base, levels)
        return held

    def admitted(self, rows: Rows) -> tuple[Rows, Array]:
        """Draw for each arrival whether it is taken up."""
        levels = self._levels(rows)
        return replace(rows, level=narrow(levels)), ~self._held(rows, levels)

    def thinned(self, rows: Rows) -> tuple[Rows, Array]:
        """Let go of rows whose draw lies above the lower probability."""
        assert rows.level is not None, "rows of a sampler have their level"  # noqa: S101 - an invariant
        levels = np.maximum(rows.level, self._levels(rows))
        return replace(rows, level=narrow(levels)), ~self._held(rows, levels)

    def begin(self, rows: Rows, *, buffered: bool) -> Owners:
        """Take all matches of those that were taken up."""
        assert rows.level is not None, "rows of a sampler have their level"  # noqa: S101 - an invariant
        held = np.ones(len(rows), bool) if buffered else self._held(rows, rows.level)
        return _Clusters(rows.level, held)


class _Clusters(Owners):
    def __init__(self, level: Array, held: Array) -> None:
        self._level, self._held = level, held

    def picked(self, owner: Array) -> tuple[Array, Array]:
        leaving = np.flatnonzero(self._held[owner])
        return leaving, self._level[owner[leaving]]

    def ended(self) -> tuple[dict[str, Array], Array]:
        return {}, ~self._held
