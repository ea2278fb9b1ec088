"""Which level of probability new draws have: from the budget, and from how memory fares with it.

Theory says what a level should take; the memory that is really held corrects it, upwards and downwards. Should it
overflow all the same, the level is lowered at once, for rows that are held, too. Whatever is decided here is decided
before the draws that it is for, from what is known by then. So every draw has a probability that is known when it
is made, and weights of one over it are right in the mean however often and for whatever reason it changes.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final, Self

import numpy as np

from tidegate.sampling.samplers.memory_model import MemoryModel, needed, safe_mean
from tidegate.sampling.samplers.probability_levels import LOWEST, STEPS

if TYPE_CHECKING:
    from collections.abc import Callable

    from tidegate.types import Array, Time

_RECKONED: Final = 8
"""How often in a window the level is reckoned anew."""
_ROOM: Final = 0.95
"""Which part of the budget an overflow leaves filled, in the mean."""
_STEADY: Final = 2
"""By how many levels new draws may differ while memory is still taken as that of one level."""
_RELIEF: Final = 4
"""By how many levels an overflow is forgotten each time, once it lies a window back."""
_PLAUSIBLE: Final = (1 / 64, 8.0)


class ProbabilityControl:
    """The level of new draws.

    Parameters
    ----------
    highest
        The least level (the highest probability) that there may be.
    overflow
        The chance of overflow, at any moment, that is aimed at.
    """

    def __init__(self, highest: int, overflow: float) -> None:
        self._highest, self._overflow = highest, overflow
        self.level = self._floor = self._steady = highest
        self.lowered = 0
        self._factor = 1.0
        self._now = self._reckoned = self._quiet = self._since = math.nan
        self._filled = 0.0

    def lower(self, held: float, room: float, certain: int) -> None:
        """Lower the probability because what is held exceeds the room for it.

        Down to the level `certain` every held row is so for certain, and nothing would be gained.
        """
        self.level = max(self.level, certain)
        self.level += max(1, math.ceil(STEPS * math.log2(held / (_ROOM * room))))
        # Far enough below the lowest probability that even rows which expect the most matches get to it.
        self.level = min(self.level, 2 * LOWEST)
        self._floor = self.level
        self._quiet = math.nan  # memory overflows within a step, and `settle` knows when that ends
        self.lowered += 1

    def cap(self, level: int) -> None:
        """Let no new draw have a higher probability than that of this level."""
        self._highest = max(self._highest, level)
        self._floor = max(self._floor, level)
        self.level = max(self.level, level)

    def needs(self, rows: float) -> float:
        """The room that must be there for a level to be chosen that takes so many rows by theory."""
        return needed(rows * self._factor, self._overflow)

    def settle(
        self, now: Time, held: float, room: float, span: float, theory: Callable[[], MemoryModel | None]
    ) -> None:
        """Reckon the level anew if it is time to.

        Parameters
        ----------
        now
            The time.
        held, room
            The rows that are held now, and that may be.
        span
            How long a row stays in its window.
        theory
            What each level takes; None where that is not known, or p was given.
        """
        if math.isnan(self._now):
            self._now = self._since = self._reckoned = float(now)
        if math.isnan(self._quiet):
            self._quiet = float(now)
        passed, self._now = now - self._now, float(now)
        if abs(self.level - self._steady) > _STEADY:
            self._steady, self._since, self._filled = self.level, float(now), 0.0
        elif now - self._since > span:
            self._filled += held * passed
        if math.isinf(span) or now - self._reckoned < span / _RECKONED:
            return
        self._reckoned = float(now)
        if now - self._quiet >= span:
            self._floor = max(self._floor - _RELIEF, self._highest)
        taking = theory()
        if taking is not None:
            self._calibrate(span, taking)
            room = safe_mean(room, self._overflow) / self._factor
            self.level = max(taking.level(room, self._highest), self._floor)
        elif self._floor < self.level:
            self.level = self._floor

    def _calibrate(self, span: float, taking: MemoryModel) -> None:
        """Compare what memory really held over a window's time, once all in it is of one level."""
        watched = self._now - self._since - span
        if watched >= span:
            foreseen = taking.rows(self._steady)
            if foreseen > 0:
                self._factor = float(np.clip(self._filled / watched / foreseen, *_PLAUSIBLE))
            self._since, self._filled = self._now - span, 0.0

    def snapshot(self) -> dict[str, Array]:
        """All of this as plain arrays."""
        whole = [self.level, self._floor, self._steady, self.lowered]
        times = [self._now, self._reckoned, self._quiet, self._since]
        return {"levels": np.array(whole), "clock": np.array([self._factor, self._filled, *times])}

    def restore(self, state: dict[str, Array]) -> Self:
        """Take up what `snapshot` gave."""
        self.level, self._floor, self._steady, self.lowered = state["levels"].tolist()
        self._factor, self._filled, *times = state["clock"].tolist()
        self._now, self._reckoned, self._quiet, self._since = times
        return self
