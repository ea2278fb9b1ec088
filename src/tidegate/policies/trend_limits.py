"""For how long the other side can still bring a row's key, where keys follow a trend."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Final, Self

import numpy as np

from tidegate.models import LinearTrend
from tidegate.policies.policy import check_numeric
from tidegate.types import FAR, SIDES, InputError, other_side

if TYPE_CHECKING:
    from tidegate.policies.ranking import RecordedRun
    from tidegate.types import Array, Rows, Setting, Side, Step, Time

UNREACHABLE: Final = -1.0
"""The score of a row whose key can no longer arrive, below that of a key that never arrived yet."""


class TrendLimits:
    """The keys that each side can still bring: noise is bounded, so a key below all of it never arrives again.

    Parameters
    ----------
    left, right
        The line that each side's keys follow, with bounded noise, one row at each time step.

    References
    ----------
    On Joining and Caching Stochastic Streams, section 8: the bound on the noise as a window.
    """

    def __init__(self, left: LinearTrend, right: LinearTrend) -> None:
        self._trends: dict[Side, LinearTrend] = {"left": left, "right": right}
        self._latest: dict[Side, float] = dict.fromkeys(SIDES, -float(FAR))

    @classmethod
    def of(cls, left: LinearTrend | None, right: LinearTrend | None, setting: Setting) -> Self | None:
        """The limits of two trends, in a join on whole numbers; None if no trends are given."""
        if left is None or right is None:
            return None
        check_numeric(setting, "how keys move was given (left=, right=)")
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
        # In steps of one row, the other side's row of the current time may not have arrived yet.
        since = max(math.floor(now) - 1, self._latest[other])
        return self._trends[other].last(rows.key) - since

    def last_times(self, run: RecordedRun) -> Array:
        """For each row of a run, the last time at which the other side can bring its key."""
        return run.merged(self._trends["right"].last(run.left.key), self._trends["left"].last(run.right.key))

    def snapshot(self) -> dict[str, Array]:
        """What was observed, as named arrays."""
        return {"latest": np.array([*self._latest.values()])}

    def restore(self, state: dict[str, Array]) -> None:
        """Continue from what `snapshot` returned."""
        self._latest = dict(zip(SIDES, state["latest"].tolist(), strict=True))


def check_trends(left: object, right: object) -> None:
    """Refuse anything but two trends, or none."""
    if left is None and right is None:
        return
    for side, trend in zip(SIDES, (left, right), strict=True):
        if not isinstance(trend, LinearTrend):
            raise InputError(
                f"{side}={trend!r} is not a trend; give both sides a tidegate.models.LinearTrend, or neither"
            )


def trends_from(parameters: dict[str, Any]) -> dict[str, Any]:
    """The trends among the parameters of a policy."""
    given = {side: parameters.get(side) for side in SIDES}
    return {side: plain and LinearTrend.from_parameters(plain) for side, plain in given.items()}
