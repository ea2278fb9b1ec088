"""The two sides of a join, their clocks, and which rows of both match: windows and conditions."""

from __future__ import annotations

import math
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Self, TypeAlias, get_args

import numpy as np

from tidegate.types.errors import InputError, refuse_class

if TYPE_CHECKING:
    from numpy.typing import NDArray

Array: TypeAlias = "NDArray[Any]"
Side = Literal["left", "right"]
Time: TypeAlias = int | float
Comparison = Literal["=", "<", "<=", "!=", ">", ">="]
Order = Literal["probe-first", "shed-first"]
StepSize: TypeAlias = int | Literal["instant"]
Combine = Literal["min", "max", "sum", "product", "mean"]

SIDES: tuple[Side, Side] = get_args(Side)

FAR = 2**61
"""Times lie between `-FAR` and `FAR`, so that no difference of two can overflow 64 bits."""

FOREVER = 2 * FAR
"""A window this long never closes: no two times are further apart."""


def other_side(side: Side) -> Side:
    """The side that rows of this one are matched with."""
    return "right" if side == "left" else "left"


class Clocks(NamedTuple):
    """The largest event time that each side has reached.

    The age of a row is measured by the other side's clock. It is negative while the row waits for a side that is
    behind.

    Examples
    --------
    >>> clocks = Clocks(left=80, right=50)
    >>> clocks.now, clocks.of("right"), clocks.lead("left")
    (80, 50, 30)
    """

    left: Time
    right: Time

    @classmethod
    def both(cls, time: Time) -> Self:
        """The same time on both sides."""
        return cls(time, time)

    @property
    def now(self) -> Time:
        """The larger of both."""
        return max(self)

    def of(self, side: Side) -> Time:
        """The clock of one side."""
        return self.left if side == "left" else self.right

    def lead(self, side: Side) -> Time:
        """How far a side is ahead of the other; negative if it is behind."""
        return self.of(side) - self.of(other_side(side))


@dataclass(frozen=True)
class Last:
    """A tuple-based window: a row stays joinable while it is among the last `rows` rows of its side.

    Counted in arrival order (time, left before right at equal times), so it does not depend on the step.
    """

    rows: int

    def __post_init__(self) -> None:
        if isinstance(self.rows, bool) or not isinstance(self.rows, int) or self.rows < 1:
            raise InputError(f"Last({self.rows!r}) is not a window; give a whole number of rows, at least 1")


WindowSpan: TypeAlias = Time | timedelta | Last | None


@dataclass(frozen=True)
class Window:
    """How long a row of each side stays joinable.

    `l` and `r` join iff their keys match and `-right <= r.time - l.time <= left`, both ends closed. None is
    without end, a `Last` counts rows instead of time, and one of the two may be negative as long as the
    interval is not empty.

    Examples
    --------
    >>> Window.of((10, -5))
    Window(left=10, right=-5)
    >>> Window.of((10, -20))
    Traceback (most recent call last):
    tidegate.InputError: window (10, -20) is empty: left + right must be at least 0
    """

    left: Time | Last | None
    right: Time | Last | None

    @classmethod
    def of(cls, value: Window | tuple[WindowSpan, WindowSpan]) -> Window:
        """Make a window from the user's input."""
        if isinstance(value, Window):
            return value
        refuse_class(value, "window")
        if not isinstance(value, tuple | list) or len(value) != len(SIDES):
            raise InputError(
                f"window {value!r} is not a pair; write window=(left, right), e.g. window=(500, 0)"
            )
        return cls(_span(value[0], "left"), _span(value[1], "right"))

    def __post_init__(self) -> None:
        left, right = (_span(self.left, "left"), _span(self.right, "right"))
        object.__setattr__(self, "left", left)
        object.__setattr__(self, "right", right)
        if isinstance(left, Last) or isinstance(right, Last):
            negative = [
                span for span in (left, right) if not isinstance(span, Last) and span is not None and span < 0
            ]
            if negative:
                raise InputError(
                    f"window {(left, right)} mixes Last with a negative end; use 0 or more beside Last"
                )
        elif left is not None and right is not None and left + right < 0:
            raise InputError(f"window {(left, right)} is empty: left + right must be at least 0")

    @property
    def counted(self) -> bool:
        """Whether either end counts rows."""
        return isinstance(self.left, Last) or isinstance(self.right, Last)

    def whole(self) -> Window:
        """The same window over whole times: `r.time - l.time <= 2.5` is `<= 2` there."""
        left, right = (math.floor(s) if isinstance(s, float) else s for s in (self.left, self.right))
        return Window(left, right) if (left, right) != (self.left, self.right) else self

    def reach(self, side: Side) -> Time:
        """The window of one side on its own axis: time, or rows after the first for a `Last`."""
        span = self.left if side == "left" else self.right
        if span is None:
            return FOREVER
        return span.rows - 1 if isinstance(span, Last) else span

    def lifetimes(self) -> dict[Side, Time]:
        """How long a row of each side stays joinable, in time: without end where rows are counted."""
        counted = {"left": isinstance(self.left, Last), "right": isinstance(self.right, Last)}
        return {side: FOREVER if counted[side] else self.reach(side) for side in SIDES}


def _span(value: WindowSpan, side: Side) -> Time | Last | None:
    if isinstance(value, timedelta):
        return value // timedelta(microseconds=1)
    if value is None or isinstance(value, Last):
        return value
    if isinstance(value, bool) or not isinstance(value, int | float | np.integer | np.floating):
        raise InputError(
            f"window on the {side} is {value!r}; give a number, a timedelta, tidegate.Last(rows) or None"
        )
    plain = value.item() if isinstance(value, np.generic) else value
    if not math.isfinite(plain):
        raise InputError(f"window on the {side} is {plain!r}; give a finite number, or None for no end")
    if abs(plain) >= FAR:
        raise InputError(f"window on the {side} is {plain!r}, beyond 2**61; use None for no end")
    return plain


@dataclass(frozen=True)
class Band:
    """The condition `low <= r.key - l.key <= high`, both ends closed."""

    low: Time
    high: Time

    def __post_init__(self) -> None:
        if not all(isinstance(end, int | float) for end in (self.low, self.high)):
            raise InputError(f"Band({self.low!r}, {self.high!r}) is not between numbers; give two")
        if not (math.isfinite(self.low) and math.isfinite(self.high)):
            raise InputError(
                f"Band({self.low!r}, {self.high!r}) is not finite; use a comparison like '<' for an open end"
            )
        if self.low > self.high:
            raise InputError(f"Band({self.low!r}, {self.high!r}) is empty; the lower end comes first")


Condition: TypeAlias = Comparison | Band
