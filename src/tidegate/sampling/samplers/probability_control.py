"""The sampling probability of new draws, as a level: from the budget, and from the memory that is really used.

A memory model gives the memory that each level should need. The memory that is really used corrects that, upwards and
downwards. If memory overflows nevertheless, the probability is lowered at once, also for buffered rows. Each decision
is made before the draws that it affects, from what is known by then. So every draw has a probability that is known
when it is made, and weights of one over it are unbiased, however often and for whatever reason the probability
changes.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, ClassVar, Final

import numpy as np

from tidegate.sampling.samplers.memory_model import MemoryModel, needed, safe_mean
from tidegate.sampling.samplers.probability_levels import LOWEST, STEPS
from tidegate.types import Numbers, Stateful

if TYPE_CHECKING:
    from collections.abc import Callable

    from tidegate.types import State, Time

_UPDATES_PER_WINDOW: Final = 8
"""How often the level is recomputed in the time of a window."""
_FILL_AFTER_OVERFLOW: Final = 0.95
"""The part of the budget that is filled after an overflow, on average."""
_STEADY: Final = 2
"""Levels that differ by at most this count as one level when memory is measured."""
_RECOVERY: Final = 4
"""The levels by which the limit of an overflow is raised at each update, one window after the overflow."""
_PLAUSIBLE: Final = (1 / 64, 8.0)
"""The range of the ratio of measured to modelled memory."""


class ProbabilityControl(Stateful):
    """The level of the probability of new draws. A higher level is a lower probability.

    Parameters
    ----------
    highest
        The level of the highest allowed probability.
    overflow
        The accepted probability of a memory overflow at any moment.
    """

    state: ClassVar[State] = {
        "levels": Numbers(level=int, _floor=int, _steady=int, lowered=int),
        "clock": Numbers(
            _factor=float, _row_time=float, _now=float, _updated=float, _overflowed=float, _since=float
        ),
    }

    def __init__(self, highest: int, overflow: float) -> None:
        self._highest, self._overflow = highest, overflow
        self.level = self._floor = self._steady = highest
        self.lowered = 0
        self._factor = 1.0
        self._now = self._updated = self._overflowed = self._since = math.nan
        self._row_time = 0.0

    def lower(self, held: float, room: float, certain: int) -> None:
        """Lower the probability because the held rows exceed the room for them.

        Down to the level `certain` all held rows have probability 1, so that no row would be removed.
        """
        self.level = max(self.level, certain)
        self.level += max(1, math.ceil(STEPS * math.log2(held / (_FILL_AFTER_OVERFLOW * room))))
        # Beyond the lowest probability, so that rows with the most expected matches reach it too.
        self.level = min(self.level, 2 * LOWEST)
        self._floor = self.level
        self._overflowed = math.nan  # memory overflows within a step; `update` sets the time of its end
        self.lowered += 1

    def limit(self, level: int) -> None:
        """Allow no new draw a higher probability than that of this level."""
        self._highest = max(self._highest, level)
        self._floor = max(self._floor, level)
        self.level = max(self.level, level)

    def required_budget(self, rows: float) -> float:
        """The budget at which a level is chosen that needs this number of rows according to the memory model."""
        return needed(rows * self._factor, self._overflow)

    def update(
        self, now: Time, held: float, room: float, span: float, model: Callable[[], MemoryModel | None]
    ) -> None:
        """At the end of a step, recompute the level if it is due.

        Parameters
        ----------
        now
            The time.
        held, room
            The number of rows that are held, and that may be held.
        span
            How long a row stays in its window.
        model
            Returns the memory that each level needs; None if that is unknown, or if the probability is given.
        """
        if math.isnan(self._now):
            self._now = self._since = self._updated = float(now)
        if math.isnan(self._overflowed):
            self._overflowed = float(now)
        passed, self._now = now - self._now, float(now)
        if abs(self.level - self._steady) > _STEADY:
            self._steady, self._since, self._row_time = self.level, float(now), 0.0
        elif now - self._since > span:
            self._row_time += held * passed
        if math.isinf(span) or now - self._updated < span / _UPDATES_PER_WINDOW:
            return
        self._updated = float(now)
        if now - self._overflowed >= span:
            self._floor = max(self._floor - _RECOVERY, self._highest)
        needs = model()
        if needs is not None:
            self._calibrate(span, needs)
            room = safe_mean(room, self._overflow) / self._factor
            self.level = max(needs.level(room, self._highest), self._floor)
        elif self._floor < self.level:
            self.level = self._floor

    def _calibrate(self, span: float, model: MemoryModel) -> None:
        """Compare measured with modelled memory, once all rows of a window were drawn at one level."""
        measured_time = self._now - self._since - span
        if measured_time >= span:
            modelled = model.rows(self._steady)
            if modelled > 0:
                self._factor = float(np.clip(self._row_time / measured_time / modelled, *_PLAUSIBLE))
            self._since, self._row_time = self._now - span, 0.0
