"""For how long the other side can still bring a row's key, where keys follow a trend."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, ClassVar, Final, NamedTuple, Self

import numpy as np

from tidegate.compiled import kernel
from tidegate.models import LinearTrend
from tidegate.policies.policy import check_integer_keys
from tidegate.policies.ranking import NO_NUMBERS, NO_STEPS, last_complete
from tidegate.types import FAR, SIDES, InputError, Numbers, Stateful, other_side

if TYPE_CHECKING:
    from tidegate.policies.ranking import RecordedRun
    from tidegate.types import Array, Rows, Setting, Side, State, Step, Time

UNREACHABLE: Final = -1.0
"""The score of a row whose key can no longer arrive, below that of a key that never arrived yet."""


class TrendLimits(Stateful):
    """The keys that each side can still bring: noise is bounded, so a key below all of it never arrives again.

    Parameters
    ----------
    left, right
        The line that each side's keys follow, with bounded noise, one row at each time step.

    References
    ----------
    On Joining and Caching Stochastic Streams, section 8: the bound on the noise as a window.
    """

    state: ClassVar[State] = {"latest": Numbers(_latest=dict)}

    def __init__(self, left: LinearTrend, right: LinearTrend) -> None:
        self._trends: dict[Side, LinearTrend] = {"left": left, "right": right}
        self._latest: dict[Side, float] = dict.fromkeys(SIDES, -float(FAR))

    @classmethod
    def of(cls, left: LinearTrend | None, right: LinearTrend | None, setting: Setting) -> Self | None:
        """The limits of two trends, in a join on whole numbers; None if no trends are given."""
        if left is None or right is None:
            return None
        check_integer_keys(setting, "how keys move was given (left=, right=)")
        return cls(left, right)

    def observe(self, step: Step) -> None:
        """Remember the time of each side's last row."""
        for side in SIDES:
            arrived = step.rows[side].time[step.fresh[side] :]
            if len(arrived):
                self._latest[side] = math.floor(arrived[-1])

    def remaining(self, rows: Rows, now: Time) -> Array:
        """The number of time steps in which the other side can still bring each row's key; 0 or less if none."""
        other = other_side(rows.side)
        remaining: Array = self._trends[other].last(rows.key) - last_complete(now, self._latest[other])
        return remaining

    def throughout(self, run: RecordedRun) -> RunLimits:
        """The limits of all rows in a run."""
        last = run.merged(self._trends["right"].last(run.left.key), self._trends["left"].last(run.right.key))
        return RunLimits(last.astype(np.float64), run.since())


class RunLimits(NamedTuple):
    """For how long keys can still arrive, throughout a run; empty without trends.

    Parameters
    ----------
    last_times
        For each row number, the last time at which the other side can bring the row's key.
    since
        For each step, the time after which the next rows of each side arrive.
    """

    last_times: Array = NO_NUMBERS
    since: Array = NO_STEPS


@kernel
def remaining_times(limits: RunLimits, rows: Array, on_right: Array, step: int) -> Array:
    """`TrendLimits.remaining` for rows of both sides after a step; infinite without trends."""
    remaining = np.full(len(rows), np.inf)
    if len(limits.last_times) > 0:
        last, since = limits.last_times, limits.since[step]
        for i in range(len(rows)):
            remaining[i] = last[rows[i]] - since[1 - on_right[rows[i]]]
    return remaining


@kernel
def lower_unreachable(scores: Array, remaining: Array) -> None:
    """Rank rows whose key cannot arrive any more last."""
    for i in range(len(scores)):
        if remaining[i] <= 0:
            scores[i] = UNREACHABLE


def check_trends(left: object, right: object) -> None:
    """Refuse anything but two trends, or none."""
    if left is None and right is None:
        return
    for side, trend in zip(SIDES, (left, right), strict=True):
        if not isinstance(trend, LinearTrend):
            raise InputError(
                f"{side}={trend!r} is not a trend; give both sides a tidegate.models.LinearTrend, or neither"
            )
