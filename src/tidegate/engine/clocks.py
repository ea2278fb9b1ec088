"""The clocks of both sides of a stream, from the rows that arrive."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Self

from tidegate.types import FAR, SIDES, Clocks

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tidegate.types import Side

_USUAL_GAPS: Final = 4
"""A side that is silent for more usual gaps than this has stopped."""
_SMOOTHING: Final = 8
"""The usual gap is an exponential mean over about this number of gaps."""
_UNKNOWN: Final = -FAR


class SideClocks:
    """How far each side has come in event time.

    A side's clock is the largest event time among its rows. While a side is silent, its clock follows the other one
    at the distance of its last rows, for some of its usual gaps between rows. So rows of a slow side do not seem new
    for longer than they are, and a side that has stopped keeps its time until it goes on. A clock never goes back. A
    side without any row has the time of the other.

    Times are whole numbers, such as microseconds.

    Examples
    --------
    >>> clocks = SideClocks()
    >>> clocks.advance({"left": 500, "right": 0})
    Clocks(left=500, right=0)
    >>> clocks.advance({"left": 510, "right": 10})
    Clocks(left=510, right=10)
    >>> [clocks.advance({"left": time}).right for time in (530, 550, 900)]
    [30, 50, 50]
    """

    def __init__(self) -> None:
        self._latest: dict[Side, int] = dict.fromkeys(SIDES, _UNKNOWN)
        self._clock: dict[Side, int] = dict.fromkeys(SIDES, _UNKNOWN)
        self._lag: dict[Side, int] = dict.fromkeys(SIDES, 0)
        self._gap: dict[Side, int] = dict.fromkeys(SIDES, 0)

    @property
    def now(self) -> Clocks:
        """The clocks after the last step; far in the past before the first row."""
        latest = max(self._latest.values())
        known = {side: clock if clock > _UNKNOWN else latest for side, clock in self._clock.items()}
        return Clocks(known["left"], known["right"])

    def advance(self, newest: Mapping[Side, int]) -> Clocks:
        """Advance to the newest times of the sides that have arrivals, and return the clocks."""
        for side, time in newest.items():
            before, self._latest[side] = self._latest[side], max(self._latest[side], time)
            if before > _UNKNOWN:
                gap, usual = self._latest[side] - before, self._gap[side]
                self._gap[side] = usual + (gap - usual) // _SMOOTHING if usual else gap
        now = max(self._latest.values())
        for side in newest:
            self._lag[side] = now - self._latest[side]
        for side, latest in self._latest.items():
            if latest > _UNKNOWN:
                silent = min(now - self._lag[side], latest + _USUAL_GAPS * self._gap[side])
                self._clock[side] = max(self._clock[side], latest, silent)
        return self.now

    def to_dict(self) -> dict[str, dict[Side, int]]:
        """The values for a state; the keys are part of its layout."""
        return {"latest": self._latest, "clock": self._clock, "lag": self._lag, "gap": self._gap}

    @classmethod
    def from_dict(cls, saved: Mapping[str, Mapping[Side, int]]) -> Self:
        """Read what `to_dict` wrote."""
        clocks = cls()
        clocks._latest, clocks._clock = dict(saved["latest"]), dict(saved["clock"])
        clocks._lag, clocks._gap = dict(saved["lag"]), dict(saved["gap"])
        return clocks

    @classmethod
    def starting_at(cls, now: int) -> Self:
        """Both sides at the same time, for states that have no clocks of sides."""
        clocks = cls()
        clocks._latest, clocks._clock = dict.fromkeys(SIDES, now), dict.fromkeys(SIDES, now)
        return clocks
