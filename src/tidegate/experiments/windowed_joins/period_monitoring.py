"""Age curves learned from all rows of a period instead of from a sample of rows (section 2.3)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, NamedTuple

import numpy as np

from tidegate.policies import Age, RunningPolicy
from tidegate.policies.age import RunningAge
from tidegate.types import FAR, SIDES, Tuple, other_side

if TYPE_CHECKING:
    from tidegate.types import Array, Rows, Setting, Side, State, Step, Time


@dataclass(frozen=True)
class PeriodAge(Age):
    """`Age` that keeps all rows of a period for their whole window, of one side and then of the other.

    The parameters are those of `Age`.

    References
    ----------
    Memory-Limited Execution of Windowed Stream Joins, section 2.3.
    """

    def start(self, setting: Setting) -> RunningPolicy:
        """Start with the given curves, or learn them."""
        super().start(setting)  # refuses what an `Age` refuses
        return RunningPeriodAge(self, setting)


class RunningPeriodAge(RunningAge):
    """A running `PeriodAge`."""

    state: ClassVar[State] = {**RunningAge.state, "turn": Tuple("_turn_numbers", np.float64)}

    def __init__(self, config: PeriodAge, setting: Setting) -> None:
        super().__init__(config, setting)
        self._turn = MonitoringTurn("right", -FAR, -FAR)

    def observe(self, step: Step) -> None:
        """Learn rates and curves, and give the memory for learning to the other side if it is due."""
        super().observe(step)
        if self._learners:
            self._take_turns()

    def _take_turns(self) -> None:
        """Give the memory for learning to the other side once the windows of this side's rows have ended."""
        if self._clock(other_side(self._turn.side)) < self._turn.end + self._spans[self._turn.side]:
            return
        side = other_side(self._turn.side)
        rate = self._rates.rate(side)
        duration = self._monitoring(side) / rate if rate else 0.0
        self._turn = MonitoringTurn(side, self._clock(side), self._clock(side) + duration)

    def _clock(self, side: Side) -> Time:
        return self._now + min(self._lead[side], 0)

    def _monitored(self, rows: Rows) -> Array:
        turn = self._turn
        in_turn: Array = (rows.time >= turn.begin) & (rows.time < turn.end)
        return in_turn if rows.side == turn.side else np.zeros(len(rows), bool)

    @property
    def _turn_numbers(self) -> tuple[int, Time, Time]:
        return SIDES.index(self._turn.side), self._turn.begin, self._turn.end

    @_turn_numbers.setter
    def _turn_numbers(self, numbers: tuple[float, Time, Time]) -> None:
        self._turn = MonitoringTurn(SIDES[int(numbers[0])], *numbers[1:])


class MonitoringTurn(NamedTuple):
    """The side and the period whose rows are kept for learning."""

    side: Side
    begin: Time
    end: Time
