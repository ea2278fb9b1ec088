"""Rows per unit of time on each side, learned while rows arrive."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, ClassVar, Final

import numpy as np

from tidegate.compiled import kernel
from tidegate.models.decay import half_life
from tidegate.types import SIDES, ArrayField, InputError, Side, Stateful, check_choice

if TYPE_CHECKING:
    from tidegate.types import Array, State, Step, Time


_ROUNDING: Final = 1e-9
_LAST, _SPAN, _NOW = 2, 4, 5
"""Positions in the state. Before them are the decayed rows of each side; then the time of each side's last
observation, the decayed time, and the clock."""


class Rates(Stateful):
    """Rows per unit of time on each side, learned while they arrive.

    After one horizon a row counts half, and so does the time that passed. So their quotient is right from the start,
    not only after several horizons. Both sides share one clock: the rate of an idle side falls while the other side
    receives rows. If rates are known, a pair of numbers is used instead of this class.

    Parameters
    ----------
    horizon
        The half-life of an arrival, in units of time; None for no decay.

    Examples
    --------
    >>> rates = Rates(horizon=10)
    >>> for now in range(5):
    ...     rates.observe("left", 3, now)
    >>> round(rates.rate("left"), 1), rates.rate("right")
    (3.0, 0.0)

    Deviations
    ----------
    Rows of the first instant do not count, since the time in which they arrived is unknown. Until time has passed,
    rates are 0.
    """

    part: ClassVar[str] = "rate"
    state: ClassVar[State] = {"rates": ArrayField("_state")}

    def __init__(self, horizon: Time | None = None) -> None:
        self._half_life = half_life(horizon)
        self._state = np.array([0.0, 0.0, math.nan, math.nan, 0.0, math.nan])

    def observe(self, side: Side, count: int, now: Time) -> None:
        """Learn that `count` rows arrived on a side, evenly between its last observation and `now`."""
        if count < 0 or not math.isfinite(now):
            raise InputError(
                f"{count!r} rows at {now!r} cannot be observed; give at least 0 rows at a finite time"
            )
        _observe(self._state, self._half_life, _index(side), float(count), float(now))

    def learn(self, step: Step) -> None:
        """Learn from the arrivals of a step."""
        for side in SIDES:
            self.observe(side, len(step.rows[side]) - step.fresh[side], step.now)

    def follow(self, counts: Array, nows: Array) -> Array:
        """Learn from many steps, given the rows (left, right) of each.

        Returns, after each step, the decayed number of rows of each side and the decayed time, from which
        `rate` and `relative` are computed.
        """
        return _follow(self._state, self._half_life, counts.astype(np.float64), nows.astype(np.float64))

    def rate(self, side: Side) -> float:
        """Rows per unit of time."""
        index = _index(side)
        span = self._state[_SPAN]
        return float(self._state[index] / span) if span > 0 else 0.0

    def expected(self, side: Side) -> float:
        """The expected rows per unit of time; a side without rows counts as if it had had one.

        Until time has passed it is 1 for both sides.
        """
        return float(expected(self._state[:2], self._state[_SPAN])[_index(side)])

    def relative(self, side: Side) -> float:
        """A side's rate relative to that of the faster side; 1 for both while they differ by one row at most.

        If both sides receive a row at each time, one is ahead until the row of the other arrives.
        """
        return float(relative(*self._state[:2].tolist())[_index(side)])


def _index(side: Side) -> int:
    check_choice(side, Side, "side")
    return 0 if side == "left" else 1


def expected(rows: Array, span: Array | float) -> Array:
    """`Rates.expected` for these numbers of rows in this time."""
    passed = np.where(np.greater(span, 0), span, 1.0)
    return np.where(np.greater(span, 0), np.where(rows > 0, rows, 1.0) / passed, 1.0)


def relative(left: Array | float, right: Array | float) -> tuple[Array, Array]:
    """`Rates.relative` of both sides for these numbers of rows."""
    faster, close = (
        np.maximum(np.maximum(left, right), 1.0),
        np.abs(np.subtract(left, right)) <= 1 + _ROUNDING,
    )
    ratios = [np.where(close, 1.0, np.maximum(rows, 1.0) / faster) for rows in (left, right)]
    return ratios[0], ratios[1]


@kernel
def _decayed(length: float, half_life: float) -> float:
    """The decayed length of the last `length` units of time: the integral of the decay."""
    if math.isinf(half_life):
        return length
    return -math.expm1(-math.log(2.0) * length / half_life) * half_life / math.log(2.0)


@kernel
def _observe(state: Array, half_life: float, side: int, count: float, now: float) -> None:
    if math.isnan(state[_NOW]):
        state[_LAST : _LAST + 2] = now
        state[_NOW] = now
    passed = max(0.0, now - state[_NOW])
    factor = 2.0 ** (-passed / half_life)
    state[:2] *= factor
    state[_SPAN] = state[_SPAN] * factor + _decayed(passed, half_life)
    state[_NOW] += passed
    interval = state[_NOW] - state[_LAST + side]
    if state[_SPAN] > 0:
        state[side] += count * (_decayed(interval, half_life) / interval if interval > 0 else 1.0)
    state[_LAST + side] = state[_NOW]


@kernel
def _follow(state: Array, half_life: float, counts: Array, nows: Array) -> Array:
    sums = np.empty((len(nows), 3))
    for i in range(len(nows)):
        for side in range(2):
            _observe(state, half_life, side, counts[i, side], nows[i])
        sums[i, :2] = state[:2]
        sums[i, 2] = state[_SPAN]
    return sums
