"""The observed lifetime of rows in memory."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from tidegate.models.decay import half_life
from tidegate.types import SIDES, Numbers, Stateful

if TYPE_CHECKING:
    from tidegate.types import State, Step, Time


class Lifetime(Stateful):
    """The mean time that a buffered row stays in memory.

    By Little's law that is the number of rows in memory over the number of rows buffered per unit of time. So no
    arrival or departure of a single row is stored.

    Parameters
    ----------
    horizon
        The half-life of an observation; None for no decay.
    """

    part: ClassVar[str] = "lifetime"
    state: ClassVar[State] = {
        "spent": Numbers(_held=float, _entered=float, _now=float),
        "rows": Numbers(_before=int, _latest=int),
    }

    def __init__(self, horizon: Time | None = None) -> None:
        self._half_life = half_life(horizon)
        self._held = 0.0  # rows times their time in memory, decayed
        self._entered = 0.0
        self._now = math.nan
        self._before, self._latest = -1, -1  # the highest row number before the last step, and at its end

    def learn(self, step: Step) -> None:
        """Learn how many of the last step's arrivals are still buffered, and how many rows were in memory since."""
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
        """The mean lifetime; None before any was observed."""
        return self._held / self._entered if self._entered > 0 and self._held > 0 else None
