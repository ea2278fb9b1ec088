"""How many rows arrive a unit of time."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final, Self

import numpy as np

from tidegate.models.horizon import half_life
from tidegate.types import SIDES, InputError, Side, check_choice

if TYPE_CHECKING:
    from collections.abc import Callable

    from tidegate.types import Array, Time


_ROUNDING: Final = 1e-9


class Rates:
    """Rows a unit of time on each side, learned while they arrive.

    A row counts half after one horizon, and the time that passed counts likewise: their quotient is right from
    the start, not only once several horizons went by. The clock is one for both sides, so the rate of a side that
    falls silent sinks while the other goes on. Rates that are known need none of this: a pair of numbers will do.

    Parameters
    ----------
    horizon
        The half-life of an arrival, in units of time; None forgets nothing.

    Examples
    --------
    >>> rates = Rates(horizon=10)
    >>> for now in range(5):
    ...     rates.observe("left", 3, now)
    >>> round(rates.rate("left"), 1), rates.rate("right")
    (3.0, 0.0)

    Deviations
    ----------
    Rows of the very first instant do not count: nobody knows how long it took for them to arrive. Until time has
    passed, rates are 0.
    """

    def __init__(self, horizon: Time | None = None) -> None:
        self._half_life = half_life(horizon)
        self._rows = dict.fromkeys(SIDES, 0.0)  # decayed to `_now`, as is `_span`
        self._seen = dict.fromkeys(SIDES, math.nan)  # when each side was last observed
        self._span = 0.0
        self._now = math.nan

    def observe(self, side: Side, count: int, now: Time) -> None:
        """Learn that `count` rows arrived on a side, evenly since it was last observed, up to `now`."""
        check_choice(side, Side, "side")
        if count < 0 or not math.isfinite(now):
            raise InputError(f"{count!r} rows at {now!r} cannot be; give at least 0, at a finite time")
        if math.isnan(self._now):
            self._now = float(now)
            self._seen = dict.fromkeys(SIDES, self._now)
        passed = max(0.0, now - self._now)
        kept = 2.0 ** (-passed / self._half_life)
        self._rows = {which: rows * kept for which, rows in self._rows.items()}
        self._span = self._span * kept + self._decayed(passed)
        self._now += passed
        took = self._now - self._seen[side]
        if self._span > 0:
            self._rows[side] += count * (self._decayed(took) / took if took > 0 else 1.0)
        self._seen[side] = self._now

    def follow(self, counts: Array, nows: Array) -> Array:
        """Learn from many steps, of which each brings so many rows (left, right); returns both rates after each."""
        return self._followed(counts, nows, self.rate)

    def follow_relative(self, counts: Array, nows: Array) -> Array:
        """The same; returns both relative rates after each."""
        return self._followed(counts, nows, self.relative)

    def _followed(self, counts: Array, nows: Array, told: Callable[[Side], float]) -> Array:
        found = np.empty((len(nows), len(SIDES)))
        for i, (now, some) in enumerate(zip(nows.tolist(), counts.tolist(), strict=True)):
            for side, count in zip(SIDES, some, strict=True):
                self.observe(side, count, now)
            found[i] = [told(side) for side in SIDES]
        return found

    def _decayed(self, length: float) -> float:
        """What the last `length` units of time count: the integral of the decay."""
        if math.isinf(self._half_life):
            return length
        return -math.expm1(-math.log(2) * length / self._half_life) * self._half_life / math.log(2)

    def rate(self, side: Side) -> float:
        """Rows a unit of time."""
        check_choice(side, Side, "side")
        return self._rows[side] / self._span if self._span > 0 else 0.0

    def relative(self, side: Side) -> float:
        """A side's rate beside that of the faster one; 1 for both as long as they are no more than a row apart.

        Where both bring a row at each time, one is ahead while the other's is still to come.
        """
        check_choice(side, Side, "side")
        slower, faster = sorted(self._rows.values())
        if faster - slower <= 1 + _ROUNDING:
            return 1.0
        return max(self._rows[side], 1.0) / faster

    def snapshot(self) -> dict[str, Array]:
        """What was learned, as plain arrays."""
        return {"rates": np.array([*self._rows.values(), *self._seen.values(), self._span, self._now])}

    def restore(self, state: dict[str, Array]) -> Self:
        """Take up what `snapshot` gave."""
        *sides, self._span, self._now = state["rates"].tolist()
        self._rows = dict(zip(SIDES, sides[:2], strict=True))
        self._seen = dict(zip(SIDES, sides[2:], strict=True))
        return self
