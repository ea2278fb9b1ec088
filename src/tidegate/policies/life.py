"""Keep the rows whose keys are frequent on the other side and which have long to live."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from tidegate.policies.prob import Foreseeing, Prob
from tidegate.types import FAR, SIDES, InputError

if TYPE_CHECKING:
    from tidegate.policies.policy import Policy
    from tidegate.types import Array, Rows, Setting, Time


@dataclass(frozen=True)
class Life(Prob):
    """A row is worth the results that it can still produce: its key's rate on the other side times its time left.

    `prob` asks how soon a row pays, this one how much. It spares memory that `prob` gives to old rows of hot
    keys, and so does better with short windows and much skew; with memory for little more than the hottest
    keys `prob` is the better. Needs a window with an end.

    Parameters
    ----------
    window
        The spans (left, right) that remaining lifetimes are measured by; by default those of the join.
    left, right
        For keys that move, as for `prob`. A row then lives until the other side has passed its key for good, if
        that is before its window ends; so that the window needs no end.
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
                raise InputError(f"window {self.window!r} tells no lifetimes; give two numbers (left, right)")
            object.__setattr__(self, "window", spans)

    def is_fixed(self) -> bool:
        """Never: lives run out."""
        return False

    def start(self, setting: Setting) -> Policy:
        """Measure lives by the join's window unless another was given."""
        spans = [setting.window.length(side) for side in SIDES]
        if self.window is None:
            endless = setting.window.counted or max(spans) >= FAR
            if endless and self.left and self.right and self.left.ends() and self.right.ends():
                return Foreseeing(replace(self, window=(math.inf, math.inf)), setting)
            if endless:
                raise InputError(
                    f"life needs to know how long rows have to live, and the window {setting.window} does not say; "
                    "use prob, or give window=(left, right) in time, or left= and right= that move and are bounded"
                )
            return Foreseeing(replace(self, window=(spans[0], spans[1])), setting)
        return Foreseeing(self, setting)

    def weight(self, rows: Rows, now: Time, reach: Array | None = None) -> Array:
        """The time that each row has left."""
        left, right = self.window or (0.0, 0.0)
        left_to_live: Array = np.maximum((left if rows.side == "left" else right) - (now - rows.time), 0)
        return left_to_live if reach is None else np.maximum(np.minimum(left_to_live, reach), 0)

    def lives(self) -> Array:
        """As the window has it."""
        return np.array(self.window, np.float64)
