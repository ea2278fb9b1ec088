"""How long rows stay in memory, as observed."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Self

import numpy as np

from tidegate.models.decay import half_life
from tidegate.types import SIDES

if TYPE_CHECKING:
    from tidegate.types import Array, Step, Time


class Lifetime:
    """The mean time that a row spends in memory once it was let in, learned while they come and go.

    By Little's law that is the rows in memory over the rows let in a unit of time, so nobody's arrival or departure
    need be remembered.

    Parameters
    ----------
    horizon
        The time in which what was observed loses half its weight; None forgets nothing.
    """

    def __init__(self, horizon: Time | None = None) -> None:
        self._half_life = half_life(horizon)
        self._held = 0.0  # rows times the time that they were in memory
        self._entered = 0.0
        self._now = math.nan
        self._before, self._latest = -1, -1  # the last row before the last step, and of it

    def observe(self, step: Step) -> None:
        """Learn who is still there of the last step's arrivals, and how much memory was in use since."""
        passed = 0.0 if math.isnan(self._now) else max(0.0, step.now - self._now)
        kept = 2.0 ** (-passed / self._half_life)
        buffered = [step.rows[side].id[: step.fresh[side]] for side in SIDES]
        entered = sum(np.count_nonzero(ids > self._before) for ids in buffered)
        self._held = self._held * kept + passed * sum(map(len, buffered))
        self._entered = self._entered * kept + entered
        self._now = float(step.now) if math.isnan(self._now) else self._now + passed
        arrived = (step.rows[side].id[step.fresh[side] :].max(initial=-1) for side in SIDES)
        self._before, self._latest = self._latest, int(max(self._latest, *arrived))

    def mean(self) -> float | None:
        """The mean time; None before any was spent."""
        return self._held / self._entered if self._entered > 0 and self._held > 0 else None

    def snapshot(self) -> dict[str, Array]:
        """What was learned, as plain arrays."""
        return {
            "spent": np.array([self._held, self._entered, self._now]),
            "rows": np.array([self._before, self._latest], np.int64),
        }

    def restore(self, state: dict[str, Array]) -> Self:
        """Take up what `snapshot` gave."""
        self._held, self._entered, self._now = state["spent"].tolist()
        self._before, self._latest = state["rows"].tolist()
        return self
