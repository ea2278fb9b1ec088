"""Which rows of a stream are bracketed: compiled loops over rows in order of time.

A row is above-bracketed if the last earlier row above it and the first later row above it are at most omega apart.
Then every interval of length omega that contains the row contains one of those two. A row of the same time is both
earlier and later. A stack of rows, each above the next, finds both neighbours of all rows in one pass. Where
intervals contain few rows, `block_filter` is faster.

Of rows with equal values one counts as higher (`tie_rank`). It is chosen by its time alone, so that the kept rows do
not depend on the order of arrival. Time is divided into periods of length omega, and each period into parts. The
parts are ranked at random, with the same ranks in all periods. Within a part the earlier row counts as higher. So a
constant stream usually keeps one or two rows per interval, and a few more at its begin.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from tidegate.compiled import inlined, kernel
from tidegate.draws import hash64
from tidegate.types import FAR, Array

_PARTS: Final = 1024
_BLOCK: Final = 1024
# Positions in the stack are unsigned: for a signed index the hot loop would test for negative values.
_ONE, _BASE = np.uint64(1), np.uint64(2)


@kernel
def is_within(early: float, late: float, omega: float, strict: bool) -> bool:  # noqa: FBT001 - a kernel's flag
    """Whether two times are at most omega apart (less than omega, if strict), exact in spite of rounding."""
    difference = late - early
    shift = difference - late
    rounding_error = (late - (difference - shift)) - (early + shift)
    return (difference < omega) | (
        (difference == omega) & ((rounding_error < 0) | ((rounding_error == 0) & (not strict)))
    )


@kernel
def tie_period(omega: float) -> float:
    """The length of the periods of `tie_rank`; any length will do if omega is 0."""
    return omega if omega > 0 else omega + 1


@kernel
def tie_rank(time: float, period: float) -> np.uint64:
    """The rank of a row among rows of equal value: that of its part of the period."""
    phase = time / period
    return hash64(int((phase - np.floor(phase)) * _PARTS))


@inlined
def _push_row(
    row: np.uint64,
    top: np.uint64,
    times: Array,
    values: Array,
    sign: float,
    omega: float,
    strict: bool,  # noqa: FBT001 - a kernel's flag
    period: float,
    stack_times: Array,
    stack_values: Array,
    stack_rows: Array,
    keep: Array,
) -> tuple[np.uint64, np.uint64]:
    """Pop up to two lower rows from the stack, and push this row once no lower row is left.

    Returns the row to process next, which is the same one if it was not pushed, and the new top. A processor cannot
    predict which of two random values is higher. So there are no branches, except for rows of equal times or values.
    An entry of `keep` that is written too early is written again when its row is popped.
    """
    now, value = times[row], sign * values[row]
    if (value == stack_values[top]) | (value == stack_values[top - _ONE]) | (now == stack_times[top]):
        if now == stack_times[top]:
            if value <= stack_values[top]:
                return row + _ONE, top
            keep[stack_rows[top]] = False
            top -= _ONE
        rank = tie_rank(now, period)
        while top > _BASE and (
            stack_values[top] < value
            or (stack_values[top] == value and tie_rank(stack_times[top], period) < rank)
        ):
            keep[stack_rows[top]] = not is_within(stack_times[top - _ONE], now, omega, strict)
            top -= _ONE
        top += _ONE
        stack_times[top], stack_values[top], stack_rows[top] = now, value, row
        return row + _ONE, top
    keep[stack_rows[top]] = not is_within(stack_times[top - _ONE], now, omega, strict)
    keep[stack_rows[top - _ONE]] = not is_within(stack_times[top - _BASE], now, omega, strict)
    first = value > stack_values[top]
    second = first & (value > stack_values[top - _ONE])
    top -= np.uint64(first) + np.uint64(second)
    above, pushed = top + _ONE, np.uint64(not second)
    stack_times[above], stack_values[above], stack_rows[above] = now, value, row
    return row + pushed, top + pushed


@kernel
def _new_stack(times: Array) -> tuple[Array, Array, Array]:
    """An empty stack. At its bottom are three sentinels, above all rows and far from all times."""
    size = len(times) + 4
    stack_times, stack_values = np.empty(size, times.dtype), np.empty(size)
    stack_rows = np.empty(size, np.uint64)
    stack_times[:3], stack_values[:3], stack_rows[:3] = -2 * FAR, np.inf, len(times)
    return stack_times, stack_values, stack_rows


@kernel
def _remove_old_rows(
    now: float,
    top: np.uint64,
    omega: float,
    strict: bool,  # noqa: FBT001 - a kernel's flag
    stack_times: Array,
    stack_values: Array,
    stack_rows: Array,
    keep: Array,
) -> np.uint64:
    """Remove rows from the bottom that are too old to be bracketed, so that the stack stays small; keep them."""
    removed = np.uint64(0)
    while removed < top - _BASE and not is_within(stack_times[_BASE + _ONE + removed], now, omega, strict):
        removed += _ONE
        keep[stack_rows[_BASE + removed]] = True
    for place in range(_BASE + _ONE, top + _ONE - removed):
        stack_times[place] = stack_times[place + removed]
        stack_values[place] = stack_values[place + removed]
        stack_rows[place] = stack_rows[place + removed]
    return top - removed


@kernel
def needed_by_stack(
    times: Array,
    values: Array,
    omega: float,
    strict: bool,  # noqa: FBT001 - a kernel's flags
    up: bool,  # noqa: FBT001
    down: bool,  # noqa: FBT001
) -> Array:
    """For each row, whether it is not above-bracketed (`up`) or not below-bracketed (`down`); times ascend.

    Two stacks, one for either direction, are processed in turns, so that the processor can work on both at once.
    """
    size, period = len(times), tie_period(omega)
    high, low = np.zeros(size + 1, np.bool_), np.zeros(size + 1, np.bool_)
    up_times, up_values, up_rows = _new_stack(times)
    down_times, down_values, down_rows = _new_stack(times)
    up_row = np.uint64(0 if up else size)
    down_row = np.uint64(0 if down else size)
    up_top = down_top = _BASE
    for begin in range(0, size, _BLOCK):
        end, now = np.uint64(min(begin + _BLOCK, size)), times[begin]
        up_top = _remove_old_rows(now, up_top, omega, strict, up_times, up_values, up_rows, high)
        down_top = _remove_old_rows(now, down_top, omega, strict, down_times, down_values, down_rows, low)
        while up_row < end or down_row < end:
            if up_row < end:
                up_row, up_top = _push_row(
                    up_row,
                    up_top,
                    times,
                    values,
                    1.0,
                    omega,
                    strict,
                    period,
                    up_times,
                    up_values,
                    up_rows,
                    high,
                )
            if down_row < end:
                down_row, down_top = _push_row(
                    down_row,
                    down_top,
                    times,
                    values,
                    -1.0,
                    omega,
                    strict,
                    period,
                    down_times,
                    down_values,
                    down_rows,
                    low,
                )
    high[up_rows[3 : up_top + _ONE]] = True
    low[down_rows[3 : down_top + _ONE]] = True
    return (high | low)[:size]


@kernel
def extreme_durations(times: Array, values: Array, omega: float) -> Array:
    """For how long a sliding interval of length omega has each row as its highest; 0 for a bracketed row.

    Times ascend.
    """
    size = len(times)
    durations = np.empty(size)
    stack = np.empty(size, np.int64)
    top = -1
    begins = np.empty(size)
    for row in range(size):
        while top >= 0 and values[stack[top]] <= values[row]:
            lower = stack[top]
            durations[lower] = min(times[lower], times[row] - omega) - begins[lower]
            top -= 1
        begins[row] = times[row] - omega
        if top >= 0:
            begins[row] = max(begins[row], times[stack[top]])
        top += 1
        stack[top] = row
    for place in range(top + 1):
        durations[stack[place]] = times[stack[place]] - begins[stack[place]]
    return np.maximum(durations, 0.0)


BRACKETED, UNDECIDED, NEEDED = 2, 1, 0


@kernel
def bracket_states(times: Array, values: Array, keys: Array, omega: float, complete_until: float) -> Array:
    """For each row, whether it is above-bracketed, may still become so, or never will be (`NEEDED`).

    All rows before `complete_until` have arrived. Rows are in order of their keys, and for each key in order of
    time. A row is bracketed by rows of its own key only.
    """
    size, strict = len(times), False
    states = np.full(size, BRACKETED, np.int8)
    period = tie_period(omega)
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
            lower = stack[top]
            if values[lower] > value:
                break
            if values[lower] == value and tie_rank(times[lower], period) >= tie_rank(now, period):
                break
            top -= 1
            if top >= 0 and is_within(times[stack[top]], now, omega, strict):
                states[lower] = BRACKETED
        may_be_bracketed = now >= complete_until or (
            top >= 0 and is_within(times[stack[top]], complete_until, omega, strict)
        )
        states[high] = UNDECIDED if may_be_bracketed else NEEDED
        top += 1
        stack[top] = high
    return states
