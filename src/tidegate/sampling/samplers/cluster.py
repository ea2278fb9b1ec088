"""The common part of cluster samplers: a row is drawn or not, with all its matches."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import replace
from typing import TYPE_CHECKING, Final

import numpy as np

from tidegate.compiled import kernel
from tidegate.sampling.samplers.probability_levels import LOWEST, narrowest, probabilities_at, uniform_draw
from tidegate.sampling.samplers.sampler import SPREAD, DrawnMatches, Owners, RunningSampler

if TYPE_CHECKING:
    from tidegate.types import Array, Rows, Side

_ALL: Final = np.arange(LOWEST + 1)
"""All levels of probability."""


@kernel
def _are_held(salt: int, ids: Array, levels: Array, probability_of_level: Array) -> Array:
    """A mask of rows whose draws are below the probabilities of these levels."""
    held = np.empty(len(ids), np.bool_)
    for i in range(len(ids)):
        held[i] = uniform_draw(salt, ids[i], 0) < probability_of_level[levels[i]]
    return held


class RunningCluster(RunningSampler):
    """A running cluster sampler.

    One draw decides for a row: it is held while the draw is below its probability, which is only ever lowered. All
    that is known of such a draw is that it is below all probabilities so far. So it is below a lower one with the
    ratio of the two as probability, and thinning needs no further draw.

    When and how far the probability is lowered depends on which rows are held, and so on draws. But it depends on
    each draw only through whether it was below the probabilities so far, which is known by then. One over the
    probability of a row while it is held, and 0 afterwards, is a martingale. Its mean is 1 at any time, also at the
    time of a match.
    """

    def _level(self, fraction: float) -> int:
        """The level of a higher probability than this, or a reservoir would hold all results of few rows."""
        return super()._level(min(self.base, SPREAD * fraction))

    @abstractmethod
    def offsets(self, rows: Rows) -> Array | int:
        """The number of levels by which the probability of each row is above that of new draws, up to 1."""

    def _levels(self, offsets: Array | int, count: int) -> Array:
        return np.broadcast_to(np.clip(self.control.level - offsets, 0, LOWEST), count)

    def _draw_rows(self, rows: Rows, levels: Array) -> _ClusterOwners:
        level = narrowest(levels)
        held = _are_held(self.salt, rows.id, level, probabilities_at(self.base, _ALL))
        return _ClusterOwners(self.base, level, held)

    def admit(self, rows: Rows) -> tuple[Rows, Owners]:
        """Draw which arrivals are held."""
        owners = self._draw_rows(rows, self._levels(self.offsets(rows), len(rows)))
        return replace(rows, policy_columns={"level": owners.level}), owners

    def thin(self, rows: dict[Side, Rows], held: float, room: float, *, lower: bool) -> dict[Side, Owners]:
        """Drop rows whose draw is above the lower probability."""
        offsets = {side: self.offsets(some) for side, some in rows.items()}
        if lower:
            self.control.lower(held, room, min(int(np.min(o)) for s, o in offsets.items() if len(rows[s])))
        return {
            side: self._draw_rows(some, np.maximum(_level(some), self._levels(offsets[side], len(some))))
            for side, some in rows.items()
        }

    def owners_of(self, rows: Rows) -> Owners:
        """Return `Owners` that draw all matches of these buffered rows."""
        return _ClusterOwners(self.base, _level(rows), np.ones(len(rows), bool))


class _ClusterOwners(Owners):
    def __init__(self, base: float, level: Array, held: Array) -> None:
        self._base, self.level, self._held = base, level, held

    def draw(self, owner: Array) -> DrawnMatches:
        drawn = np.flatnonzero(self._held[owner])
        probability = probabilities_at(self._base, self.level[owner[drawn]])
        return DrawnMatches(drawn, probability, probability)

    def exhausted(self) -> Array:
        return ~self._held

    def policy_columns(self) -> dict[str, Array]:
        return {"level": self.level}


def _level(rows: Rows) -> Array:
    return rows.policy_columns["level"]
