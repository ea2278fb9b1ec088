"""Which rows of a stream are bracketed: the compiled loops, over rows in order of time.

A row is above-bracketed if the last earlier row above it and the first later row above it are no more than omega
apart: whatever interval of length omega holds the row holds one of those two. A row of the same time is both
earlier and later. A stack of rows, each above the next, finds both neighbours of all rows in one pass.

Of equal values one counts as the more extreme, by its time alone, so that what is kept does not depend on the order
of arrival. Time is cut into stretches of length omega and those into parts; the parts are ranked at random, in all
stretches alike, and in a part the earlier row counts more. A constant stream then keeps one or two rows an interval,
as a rule, and a few where it begins.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from tidegate.compiled import kernel
from tidegate.draws import scattered
from tidegate.types import Array

_PARTS: Final = 1024


@kernel
def near(early: float, late: float, omega: float, strict: bool) -> bool:  # noqa: FBT001 - a kernel's flag
    """Whether the two times are at most omega apart (less than that, if strict), without an error of rounding."""
    apart = late - early
    if apart != omega:
        return apart < omega
    shift = apart - late
    rest = (late - (apart - shift)) - (early + shift)
    return rest < 0 or (rest == 0 and not strict)


@kernel
def favour(time: float, stretch: float) -> np.uint64:
    """What decides between rows of one value: a number for each part of a stretch, the same in all stretches."""
    into = time / stretch
    return scattered(int((into - np.floor(into)) * _PARTS))


@kernel
def needed(times: Array, values: Array, omega: float, strict: bool, up: bool, down: bool) -> Array:  # noqa: FBT001, C901, PLR0912 - a kernel
    """Mark the rows that are not above-bracketed (`up`) or not below-bracketed (`down`); times ascend."""
    size = len(times)
    keep = np.zeros(size, np.bool_)
    stretch = omega if omega > 0 else omega + 1
    tops = np.empty(size, np.int64)
    bottoms = np.empty(size, np.int64)
    top = bottom = -1
    start = 0
    while start < size:
        now = times[start]
        high = low = start
        end = start + 1
        while end < size and times[end] == now:
            if values[end] > values[high]:
                high = end
            if values[end] < values[low]:
                low = end
            end += 1
        start = end
        if up:
            value = values[high]
            while top >= 0:
                passed = tops[top]
                if values[passed] > value:
                    break
                if values[passed] == value and favour(times[passed], stretch) >= favour(now, stretch):
                    break
                top -= 1
                if top < 0 or not near(times[tops[top]], now, omega, strict):
                    keep[passed] = True
            top += 1
            tops[top] = high
        if down:
            value = values[low]
            while bottom >= 0:
                passed = bottoms[bottom]
                if values[passed] < value:
                    break
                if values[passed] == value and favour(times[passed], stretch) >= favour(now, stretch):
                    break
                bottom -= 1
                if bottom < 0 or not near(times[bottoms[bottom]], now, omega, strict):
                    keep[passed] = True
            bottom += 1
            bottoms[bottom] = low
    for place in range(top + 1):
        keep[tops[place]] = True
    for place in range(bottom + 1):
        keep[bottoms[place]] = True
    return keep


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
    stretch = omega if omega > 0 else omega + 1
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
