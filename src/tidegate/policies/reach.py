"""How long the other side can still bring a row's key, where keys move along a line."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from tidegate.models import LinearTrend
from tidegate.policies.policy import need_numbers
from tidegate.types import FAR, SIDES, InputError, other_side

if TYPE_CHECKING:
    from tidegate.policies.ranking import Course
    from tidegate.types import Array, Rows, Setting, Side, Step, Time


class Reach:
    """The window of values that each side can bring, which moves: what it has passed never comes again.

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
        """What two trends reach, in a join on whole numbers; None where none were given."""
        if left is None or right is None:
            return None
        need_numbers(setting, "how keys move was given (left=, right=)")
        return cls(left, right)

    def observe(self, step: Step) -> None:
        """Take note of when each side's last row came."""
        for side in SIDES:
            arrived = step.rows[side].time[step.fresh[side] :]
            if len(arrived):
                self._latest[side] = math.floor(arrived[-1])

    def left(self, rows: Rows, now: Time) -> Array:
        """How many more rows the other side brings until it has passed each row; 0 or below, it has."""
        other = other_side(rows.side)
        # In steps of one row, the other side's row of this very time may be still to come.
        since = max(math.floor(now) - 1, self._latest[other])
        return self._trends[other].last(rows.key) - since

    def passes(self, course: Course) -> Array:
        """For each row of a run, when the other side has passed it."""
        return course.merged(
            self._trends["right"].last(course.left.key), self._trends["left"].last(course.right.key)
        )

    def snapshot(self) -> dict[str, Array]:
        """What was observed, as plain arrays."""
        return {"latest": np.array([*self._latest.values()])}

    def restore(self, state: dict[str, Array]) -> None:
        """Take up what `snapshot` gave."""
        self._latest = dict(zip(SIDES, state["latest"].tolist(), strict=True))


def check_trends(left: object, right: object) -> None:
    """Refuse anything but two trends, or none."""
    if left is None and right is None:
        return
    for side, trend in zip(SIDES, (left, right), strict=True):
        if not isinstance(trend, LinearTrend):
            raise InputError(
                f"what moves on the {side} is {trend!r}; give both sides a tidegate.models.LinearTrend, or neither"
            )


def remade(parameters: dict[str, Any]) -> dict[str, Any]:
    """The trends among what a policy told of its parameters, made again."""
    told = {side: parameters.get(side) for side in SIDES}
    return {side: plain and LinearTrend.from_parameters(plain) for side, plain in told.items()}
