"""Models of the rows that arrive next on each side, and of their keys."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, ClassVar, Final

import numpy as np

from tidegate.models import FrequencyLearner, Oracle, Process, Rates, Stationary
from tidegate.models.processes.arrival_forecast import ArrivalForecast
from tidegate.types import SIDES, InputError, Learned, Stateful, Tuple

if TYPE_CHECKING:
    from tidegate.types import Clocks, Side, State, Step

_NOTHING: Final = Oracle(np.empty(0, np.int64))


def check_processes(policy: str, left: object, right: object) -> None:
    """Refuse a process on one side only, and anything else."""
    for side, process in zip(SIDES, (left, right), strict=True):
        if not isinstance(process, Process | None):
            raise InputError(
                f"{policy} was given {side}={process!r}, which is not a process; give one of tidegate.models, "
                "such as LinearTrend(...) or its fit to a recorded stream"
            )
    if (left is None) != (right is None):
        lacking = "left" if left is None else "right"
        raise InputError(f"{policy} has no process on the {lacking}; give both, or neither to learn")


class ArrivalModel(Stateful, ABC):
    """A model of the next rows."""

    def observe(self, step: Step) -> None:
        """Learn from a step's arrivals."""

    @abstractmethod
    def coming(self, clocks: Clocks) -> dict[Side, ArrivalForecast]:
        """The next rows of each side."""

    def rows_each(self, side: Side) -> float:  # noqa: ARG002 - for subclasses
        """The number of rows for each row of `coming`, relative to the other side."""
        return 1.0

    def learned(self) -> list[Learned]:
        """The current estimates, for reports and inspection."""
        return []


class ProcessArrivals(ArrivalModel):
    """A given process for each side, with one row at each time step, or more as observed."""

    state: ClassVar[State] = {"last.{}": Tuple("_last", np.int64).optional()}

    def __init__(self, processes: dict[Side, Process], ahead: int, rates: Rates) -> None:
        self._processes, self._ahead, self._rates = processes, ahead, rates
        self._last: dict[Side, tuple[int, int] | None] = dict.fromkeys(SIDES)  # time and key

    def observe(self, step: Step) -> None:
        """Remember each side's last key."""
        for side in SIDES:
            rows = step.rows[side]
            if len(rows) > step.fresh[side]:
                self._last[side] = math.floor(rows.time[-1]), int(rows.key[-1])

    def coming(self, clocks: Clocks) -> dict[Side, ArrivalForecast]:
        """A row at each time step after the last, or from the side's clock on if that is later."""
        found: dict[Side, ArrivalForecast] = {}
        for side, process in self._processes.items():
            last, now = self._last[side], clocks.of(side)
            end = math.floor(now) + self._ahead + 1
            # In steps of one row, this side's row of the current time may not have arrived yet.
            begin = max(math.floor(now), last[0] + 1) if last else math.floor(now)
            found[side] = ArrivalForecast.after(process, last, np.arange(begin, end))
        return found

    def rows_each(self, side: Side) -> float:
        """By the observed rates: 1 for the faster side."""
        return self._rates.relative(side)


class LearnedArrivals(ArrivalModel):
    """Learned shares of keys, of rows that arrive evenly at the learned rates."""

    def __init__(self, ahead: int, rates: Rates, shares: FrequencyLearner) -> None:
        self._ahead, self._rates, self._shares = ahead, rates, shares

    def coming(self, clocks: Clocks) -> dict[Side, ArrivalForecast]:
        """The next rows: `ahead` of the faster side, and of the other in proportion."""
        rates = {side: self._rates.rate(side) for side in SIDES}
        most = max(rates.values())
        found: dict[Side, ArrivalForecast] = {}
        for side in SIDES:
            rate = rates[side] if most else 1.0
            count = int(self._ahead * (rate / most if most else 1.0))
            times = clocks.of(side) + np.arange(1, count + 1) / (rate or 1.0)
            keys = self._shares.keys(side)
            shares = self._shares.share(side, keys)
            process = Stationary((keys, shares / shares.sum())) if shares.sum() > 0 else _NOTHING
            found[side] = ArrivalForecast.after(process, None, times)
        return found

    def learned(self) -> list[Learned]:
        """The rates."""
        return [Learned("rate", side, self._rates.rate(side)) for side in SIDES]
