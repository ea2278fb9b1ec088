"""Keep the rows whose keys are frequent on the other side and whose windows are still long."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, ClassVar, cast

import numpy as np

from tidegate.compiled import inlined, kernel
from tidegate.policies.prob import Prob, RunningProb, expected_results_number
from tidegate.types import FAR, SIDES, InputError

if TYPE_CHECKING:
    from collections.abc import Callable

    from tidegate.policies.policy import RunningPolicy
    from tidegate.policies.prob import ShareRanking
    from tidegate.types import Array, Rows, Setting, Time


@dataclass(frozen=True)
class Life(Prob):
    """Score a row by the results that it can still produce: its key's rate on the other side times its time left.

    `prob` scores by results per unit of time, this policy by all remaining results. It evicts old rows of frequent
    keys earlier than `prob`. So it does better with short windows and much skew. With memory for little more than the
    most frequent keys `prob` does better. The window needs an end.

    Parameters
    ----------
    window
        The spans (left, right) by which the time left is measured; by default those of the join.
    left, right
        For keys that move, as for `prob`. The time left then ends when the other side cannot bring the key any more,
        if that is before the window ends. So the window needs no end.
    model, capacity, horizon
        As for `prob`.

    Examples
    --------
    >>> import tidegate as tg
    >>> actions, errors = tg.streams.Correlated("direct", skew=1.0).both(4_000, seed=1)
    >>> one_side = dict(window=(500, 0), budget=80, split=(80, 0), step=10)
    >>> [round(tg.simulate(actions, errors, policy=name, **one_side).recall, 2) for name in ("life", "fifo")]
    [0.49, 0.21]

    References
    ----------
    On Joining and Caching Stochastic Streams, sections 1 and 8 (LIFE).

    Deviations
    ----------
    As for `prob`.
    """

    name: ClassVar[str] = "life"
    use_when: ClassVar[str] = (
        "As prob, where windows differ or rows near the end of their window should leave first."
    )

    window: tuple[float, float] | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.window is not None:
            spans = tuple(self.window)
            if len(spans) != len(SIDES) or not all(
                isinstance(span, int | float) and span >= 0 for span in spans
            ):
                raise InputError(
                    f"window {self.window!r} is not a pair of spans; give two numbers (left, right)"
                )
            object.__setattr__(self, "window", spans)

    def start(self, setting: Setting) -> RunningPolicy:
        """Measure the time left by the join's window unless another was given."""
        # No row of a side with a negative limit can match a later one.
        spans = [max(setting.window.reach(side), 0) for side in SIDES]
        if self.window is None:
            endless = setting.window.counted or max(spans) >= FAR
            if endless and self.left and self.right and self.left.ends() and self.right.ends():
                return RunningProb(replace(self, window=(math.inf, math.inf)), setting)
            if endless:
                raise InputError(
                    f"life needs the time that rows have left, and the window {setting.window} has no end in time; "
                    "use prob, or give window=(left, right) in time, or left= and right= that move and are bounded"
                )
            return RunningProb(replace(self, window=(spans[0], spans[1])), setting)
        return RunningProb(self, setting)

    def weight(self, rows: Rows, clock: Time, remaining: Array | None = None) -> Array:
        """The time that each row has left in which it can match."""
        spans = self.window or (0.0, 0.0)
        span, before = spans if rows.side == "left" else spans[::-1]
        # A row of a side that is ahead may match earlier rows of the other side, before its age is 0.
        age = np.maximum(clock - rows.time, -before)
        return time_left(span, age, math.inf if remaining is None else remaining)

    def lifetimes(self) -> Array:
        """The spans of the window."""
        return np.array(self.window, np.float64)


def time_left(span: float, age: Array, remaining: Array | float) -> Array:
    """The time left of rows of this age: in their window, and until their key arrives for the last time."""
    left: Array = np.maximum(np.minimum(span - age, remaining), 0.0)
    return left


_time_left_number = cast("Callable[[float, float, float], float]", inlined(time_left))


@kernel
def weigh_by_time_left(
    ranking: ShareRanking,
    shares: Array,
    rows: Array,
    on_right: Array,
    step: int,
    now: Time,
    times: Array,
    remaining: Array,
) -> None:
    """Turn the shares of rows of both sides after a step into scores."""
    spans, rates = ranking.spans, ranking.rates[step]
    for i in range(len(rows)):
        row, side = rows[i], on_right[rows[i]]
        left = _time_left_number(spans[side], np.float64(now - times[row]), remaining[i])
        shares[i] = expected_results_number(shares[i], rates[1 - side], left)
