"""Which rows of a stream are bracketed: compiled loops, over rows in order of time.

A row is above-bracketed if the last earlier row above it and the first later row above it are no more than omega
apart: whatever interval of length omega holds the row holds one of those two. A row of the same time is both
earlier and later. A stack of rows, each above the next, finds both neighbours of all rows in one pass; where
intervals hold few rows, a `glance` is faster.

Of equal values one counts as the more extreme, by its time alone, so that what is kept does not depend on the order
of arrival. Time is cut into stretches of length omega and those into parts; the parts are ranked at random, in all
stretches alike, and in a part the earlier row counts more. A constant stream then keeps one or two rows an interval,
as a rule, and a few where it begins.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from tidegate.compiled import inlined, kernel
from tidegate.draws import hash64
from tidegate.types import FAR, Array

_PARTS: Final = 1024
_BLOCK: Final = 1024
# Places are unsigned in the loop that matters: a signed one is looked at for being negative each time.
_ONE, _BASE = np.uint64(1), np.uint64(2)


@kernel
def near(early: float, late: float, omega: float, strict: bool) -> bool:  # noqa: FBT001 - a kernel's flag
    """Whether the two times are at most omega apart (less than that, if strict), without an error of rounding."""
    apart = late - early
    shift = apart - late
    rest = (late - (apart - shift)) - (early + shift)
    return (apart < omega) | ((apart == omega) & ((rest < 0) | ((rest == 0) & (not strict))))


@kernel
def stretch_of(omega: float) -> float:
    """How long the stretches are: where no two times are near, any length will do."""
    return omega if omega > 0 else omega + 1


@kernel
def favour(time: float, stretch: float) -> np.uint64:
    """What decides between rows of one value: a number for each part of a stretch, the same in all stretches."""
    into = time / stretch
    return hash64(int((into - np.floor(into)) * _PARTS))


@inlined
def _passed(
    row: np.uint64,
    top: np.uint64,
    times: Array,
    values: Array,
    sign: float,
    omega: float,
    strict: bool,  # noqa: FBT001 - a kernel's flag
    stretch: float,
    moments: Array,
    heights: Array,
    places: Array,
    keep: Array,
) -> tuple[np.uint64, np.uint64]:
    """Let a row pass up to two of the stack, and push it once it has passed all that are lower; tell what comes next.

    A processor cannot guess which of random values is higher, so this has no branches but for rows of one time or one
    value: what is marked of a row that was not passed is marked anew when it is.
    """
    now, value = times[row], sign * values[row]
    if (value == heights[top]) | (value == heights[top - _ONE]) | (now == moments[top]):
        if now == moments[top]:
            if value <= heights[top]:
                return row + _ONE, top
            keep[places[top]] = False
            top -= _ONE
        mine = favour(now, stretch)
        while top > _BASE and (
            heights[top] < value or (heights[top] == value and favour(moments[top], stretch) < mine)
        ):
            keep[places[top]] = not near(moments[top - _ONE], now, omega, strict)
            top -= _ONE
        top += _ONE
        moments[top], heights[top], places[top] = now, value, row
        return row + _ONE, top
    keep[places[top]] = not near(moments[top - _ONE], now, omega, strict)
    keep[places[top - _ONE]] = not near(moments[top - _BASE], now, omega, strict)
    first = value > heights[top]
    second = first & (value > heights[top - _ONE])
    top -= np.uint64(first) + np.uint64(second)
    above, pushed = top + _ONE, np.uint64(not second)
    moments[above], heights[above], places[above] = now, value, row
    return row + pushed, top + pushed


@kernel
def _stack(times: Array) -> tuple[Array, Array, Array]:
    """An empty stack: at its bottom are three that no row passes and that are near to none."""
    size = len(times) + 4
    moments, heights, places = np.empty(size, times.dtype), np.empty(size), np.empty(size, np.uint64)
    moments[:3], heights[:3], places[:3] = -2 * FAR, np.inf, len(times)
    return moments, heights, places


@kernel
def _settled(
    now: float,
    top: np.uint64,
    omega: float,
    strict: bool,  # noqa: FBT001 - a kernel's flag
    moments: Array,
    heights: Array,
    places: Array,
    keep: Array,
) -> np.uint64:
    """Take from the bottom of the stack what is too old to be bracketed, so that it stays small."""
    gone = np.uint64(0)
    while gone < top - _BASE and not near(moments[_BASE + _ONE + gone], now, omega, strict):
        gone += _ONE
        keep[places[_BASE + gone]] = True
    for place in range(_BASE + _ONE, top + _ONE - gone):
        moments[place] = moments[place + gone]
        heights[place] = heights[place + gone]
        places[place] = places[place + gone]
    return top - gone


@kernel
def stacked(times: Array, values: Array, omega: float, strict: bool, up: bool, down: bool) -> Array:  # noqa: FBT001 - a kernel
    """Of each row, whether it is not above-bracketed (`up`) or not below-bracketed (`down`); times ascend.

    Both stacks are worked on in turns, so that the processor need not wait for either.
    """
    size, stretch = len(times), stretch_of(omega)
    high, low = np.zeros(size + 1, np.bool_), np.zeros(size + 1, np.bool_)
    moments, heights, places = _stack(times)
    instants, depths, spots = _stack(times)
    climber = np.uint64(0 if up else size)
    diver = np.uint64(0 if down else size)
    top = bottom = _BASE
    for begin in range(0, size, _BLOCK):
        end, now = np.uint64(min(begin + _BLOCK, size)), times[begin]
        top = _settled(now, top, omega, strict, moments, heights, places, high)
        bottom = _settled(now, bottom, omega, strict, instants, depths, spots, low)
        while climber < end or diver < end:
            if climber < end:
                climber, top = _passed(
                    climber, top, times, values, 1.0, omega, strict, stretch, moments, heights, places, high
                )
            if diver < end:
                diver, bottom = _passed(
                    diver, bottom, times, values, -1.0, omega, strict, stretch, instants, depths, spots, low
                )
    high[places[3 : top + _ONE]] = True
    low[spots[3 : bottom + _ONE]] = True
    return (high | low)[:size]


@kernel
def reigns(times: Array, values: Array, omega: float) -> Array:
    """For how long a sliding interval of length omega has each row as its highest: 0 for a bracketed one.

    Times ascend.
    """
    size = len(times)
    found = np.empty(size)
    stack = np.empty(size, np.int64)
    top = -1
    begins = np.empty(size)
    for row in range(size):
        while top >= 0 and values[stack[top]] <= values[row]:
            passed = stack[top]
            found[passed] = min(times[passed], times[row] - omega) - begins[passed]
            top -= 1
        begins[row] = times[row] - omega
        if top >= 0:
            begins[row] = max(begins[row], times[stack[top]])
        top += 1
        stack[top] = row
    for place in range(top + 1):
        found[stack[place]] = times[stack[place]] - begins[stack[place]]
    return np.maximum(found, 0.0)


BRACKETED, OPEN, FREE = 2, 1, 0


@kernel
def standing(times: Array, values: Array, keys: Array, omega: float, mark: float) -> Array:
    """Tell of each row whether it is above-bracketed, may yet be, or never will be if all before `mark` have come.

    Rows are in order of their keys, and of time for each; a row is bracketed by rows of its own key only.
    """
    size, strict = len(times), False
    found = np.full(size, BRACKETED, np.int8)
    stretch = stretch_of(omega)
    stack = np.empty(size, np.int64)
    top = -1
    start = 0
    while start < size:
        if start and keys[start] != keys[start - 1]:
            top = -1
        now = times[start]
        high = start
        end = start + 1
        while end < size and times[end] == now and keys[end] == keys[start]:
            if values[end] > values[high]:
                high = end
            end += 1
        start = end
        value = values[high]
        while top >= 0:
            passed = stack[top]
            if values[passed] > value:
                break
            if values[passed] == value and favour(times[passed], stretch) >= favour(now, stretch):
                break
            top -= 1
            if top >= 0 and near(times[stack[top]], now, omega, strict):
                found[passed] = BRACKETED
        waits = now >= mark or (top >= 0 and near(times[stack[top]], mark, omega, strict))
        found[high] = OPEN if waits else FREE
        top += 1
        stack[top] = high
    return found
