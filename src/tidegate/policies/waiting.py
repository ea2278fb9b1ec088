"""How long rows wait for the other side, where their side is ahead, and for how long they can match after that.

A row of a side that is ahead takes memory before the other side reaches its window. Policies that rank by results per
unit of time count this time, too: of two rows with equally frequent keys, the one that the other side reaches first
ranks higher. In a join whose sides are equally far no row waits.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from tidegate.types import SIDES, other_side

if TYPE_CHECKING:
    from tidegate.types import Array, Rows, Side, Time, Window


class JoinableTime(NamedTuple):
    """The time until rows can match arrivals of the other side, and the time in which they can match these."""

    wait: Array
    left: Array


class JoinableSpans:
    """The times at which rows can match arrivals of the other side.

    Parameters
    ----------
    window
        The window of the join, or the spans (left, right) of its two sides. A negative one counts as 0.

    Examples
    --------
    >>> from tidegate.types import Rows
    >>> time = np.array([70, 90, 140])
    >>> rows = Rows("left", key=time, time=time, id=time, matches=time)
    >>> JoinableSpans((50, 20)).joinable(rows, clock=100)
    JoinableTime(wait=array([ 0,  0, 20]), left=array([20, 40, 70]))
    """

    def __init__(self, window: Window | tuple[float, float]) -> None:
        left, right = window if isinstance(window, tuple) else (window.reach(side) for side in SIDES)
        self._spans: dict[Side, Time] = {"left": max(left, 0), "right": max(right, 0)}

    def joinable(self, rows: Rows, clock: Time) -> JoinableTime:
        """The time that rows wait and match, given the other side's clock."""
        span, before = self._spans[rows.side], self._spans[other_side(rows.side)]
        begin = rows.time - before
        wait: Array = np.maximum(begin - clock, 0)
        left: Array = np.maximum(span - (np.maximum(begin, clock) - rows.time), 0)
        return JoinableTime(wait, left)

    def part_joinable(self, rows: Rows, clock: Time) -> Array | float:
        """The part of the time in memory in which a row that waits can match; 1 for all others."""
        if not len(rows) or rows.time.max() - self._spans[other_side(rows.side)] <= clock:
            return 1.0
        wait = self.joinable(rows, clock).wait
        whole = max(sum(self._spans.values()), 1)
        part: Array = whole / (whole + wait)
        return part
