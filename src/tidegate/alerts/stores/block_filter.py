"""Which rows of a stream are bracketed, where intervals contain few rows: compiled loops over blocks of rows.

The stack of `brackets` depends on comparisons whose outcome a processor cannot predict. Here each row of a block is
compared with the sixteen rows before it and the sixteen after it, for the nearest higher and the nearest lower row on
both sides. The same comparisons are made for every row, so the processor compares many rows at once (SIMD).

To compare as many as possible, times and values are rounded down to 16 bits, relative to the range of the block.
Rounding keeps the order. But it may make different values equal, and a rounded distance may be off by one. A row for
which that matters, or whose nearest higher or lower row may be farther away, is uncertain. Uncertain rows are
compared exactly, one neighbour after another.

With ten rows per interval, one row in a hundred is uncertain. With more than about fifteen, or with many equal values
or times, many are; then all rows are left to the stack.
"""

from __future__ import annotations

from typing import Final, TypeAlias

import numpy as np

from tidegate.alerts.stores.brackets import is_within, needed_by_stack, tie_period, tie_rank
from tidegate.compiled import inlined, kernel, unordered
from tidegate.types import Array

_Nearest: TypeAlias = tuple[np.int16, np.int16, np.int16, np.int16, bool]
"""Rounded times of the nearest higher and lower rows before a row, and after it; whether values may be equal."""
_BLOCK: Final = 256
_ROWS_PER_LOOP: Final = 8
"""The rows on either side that one loop compares; with more, the compiler would not unroll it."""
_MARGIN: Final = 2 * _ROWS_PER_LOOP + 1
_TIME_LEVELS, _VALUE_LEVELS = 1 << 14, (1 << 15) - 1
"""The numbers of rounded times and values of a block; 16 bits also hold times just outside of it."""
_BEFORE, _AFTER = np.int16(-(1 << 13)), np.int16(_TIME_LEVELS + (1 << 13) - 1)
"""The rounded times that stand for rows that do not exist."""
_LONGEST_OMEGA: Final = (1 << 13) - 4
"""The longest omega in rounded times; with a longer one, rows that do not exist could be near."""
_MAX_COMPARISONS: Final = 2
"""The exact comparisons per row, on average, beyond which the stack is faster."""


@kernel
def needed_rows(
    times: Array,
    values: Array,
    omega: float,
    strict: bool,  # noqa: FBT001 - a kernel's flags
    up: bool,  # noqa: FBT001
    down: bool,  # noqa: FBT001
) -> Array:
    """For each row, whether it is not above-bracketed (`up`) or not below-bracketed (`down`); times ascend."""
    size, comparisons = len(times), 0
    keep, uncertain = np.empty(size + _BLOCK, np.bool_), np.empty(_BLOCK, np.bool_)
    block_times = np.empty(_BLOCK + 2 * _MARGIN, np.int16)
    block_values = np.empty(_BLOCK + 2 * _MARGIN, np.int16)
    for begin in range(0, size, _BLOCK):
        first, last = max(begin - _MARGIN, 0), min(begin + _BLOCK + _MARGIN, size)
        least, greatest = _range(values[first:last])
        rate = _TIME_LEVELS / float(times[last - 1] - times[first])
        if not (greatest - least < np.inf and omega * rate < _LONGEST_OMEGA):
            return needed_by_stack(times, values, omega, strict, up, down)
        # Rows that do not exist are below all others, and too far away to matter.
        block_values[:], block_times[:_MARGIN], block_times[_MARGIN:] = -1, _BEFORE, _AFTER
        offset = first - begin + _MARGIN
        _round_down(times[first:last], times[first], rate, block_times[offset:])
        _round_down(
            values[first:last], least, _VALUE_LEVELS / max(greatest - least, 1e-300), block_values[offset:]
        )
        _compare_block(block_times, block_values, int(omega * rate), up, down, keep[begin:], uncertain)
        for row in range(begin, min(begin + _BLOCK, size)):
            if uncertain[row - begin]:
                keep[row] = False
                for sign, wanted in ((1.0, up), (-1.0, down)):
                    if wanted and not keep[row]:
                        bracketed, neighbours = _is_bracketed(row, times, values, sign, omega, strict)
                        keep[row] = not bracketed
                        comparisons += _ROWS_PER_LOOP + neighbours
        if comparisons > _MAX_COMPARISONS * last:
            return needed_by_stack(times, values, omega, strict, up, down)
    return keep[:size]


@unordered
def _range(values: Array) -> tuple[float, float]:
    """The least and the greatest value."""
    least = greatest = values[0]
    for value in values:
        least, greatest = min(least, value), max(greatest, value)
    return least, greatest


@kernel
def _round_down(column: Array, least: float, scale: float, rounded: Array) -> None:
    """Round the scaled differences to the least value down; this keeps their order."""
    for row in range(len(column)):
        rounded[row] = np.int16(float(column[row] - least) * scale)


@kernel
def _compare_block(
    times: Array,
    values: Array,
    omega: int,
    up: bool,  # noqa: FBT001 - a kernel's flags
    down: bool,  # noqa: FBT001
    keep: Array,
    uncertain: Array,
) -> None:
    """Mark the rows of a block that are certainly needed, and those for which the rounded columns do not suffice."""
    surely_within, surely_beyond = np.int16(omega - 2), np.int16(omega + 3)
    for place in range(_BLOCK):
        row = place + _MARGIN
        # A row of the same time is both earlier and later, which the loops do not consider.
        equal = (times[row] == times[row - 1]) | (times[row] == times[row + 1])
        nothing = (_BEFORE, _BEFORE, _AFTER, _AFTER, equal)
        far = _find_nearest(row, 2 * _ROWS_PER_LOOP, times, values, nothing)
        above, below, above_later, below_later, equal = _find_nearest(row, _ROWS_PER_LOOP, times, values, far)
        above_bracketed = np.int16(above_later - above) <= surely_within
        below_bracketed = np.int16(below_later - below) <= surely_within
        # If no row was found, the first row beyond the margin may be one.
        early, late = times[row - _MARGIN], times[row + _MARGIN]
        high = np.int16(min(above_later, late) - max(above, early)) >= surely_beyond
        low = np.int16(min(below_later, late) - max(below, early)) >= surely_beyond
        needed = ((high & up) | (low & down)) & (not equal)
        keep[place] = needed
        uncertain[place] = not (needed | ((above_bracketed | (not up)) & (below_bracketed | (not down))))


@inlined
def _find_nearest(row: int, distance: int, times: Array, values: Array, found: _Nearest) -> _Nearest:
    """Compare some rows on either side, from `distance` rows away to nearer ones, which replace those found."""
    above, below, above_later, below_later, equal = found
    value = values[row]
    for nearer in range(_ROWS_PER_LOOP):
        before, after = row - distance + nearer, row + distance - nearer
        # All are read, needed or not: few processors can vectorize conditional reads.
        early, early_value, late, late_value = times[before], values[before], times[after], values[after]
        above = early if early_value > value else above
        below = early if early_value < value else below
        above_later = late if late_value > value else above_later
        below_later = late if late_value < value else below_later
        equal |= (early_value == value) | (late_value == value)
    return above, below, above_later, below_later, equal


@kernel
def _is_bracketed(
    row: int,
    times: Array,
    values: Array,
    sign: float,
    omega: float,
    strict: bool,  # noqa: FBT001 - a kernel's flag
) -> tuple[bool, int]:
    """Whether a row is bracketed, by exact comparisons; and the number of neighbours that were compared."""
    now, early, late = times[row], row - 1, row + 1
    while (
        early >= 0
        and is_within(times[early], now, omega, strict)
        and not _is_above(early, row, times, values, sign, omega)
    ):
        early -= 1
    if early >= 0 and times[early] == now:
        return True, late - early
    while late < len(times) and (
        times[late] == now or (early >= 0 and is_within(times[early], times[late], omega, strict))
    ):
        if _is_above(late, row, times, values, sign, omega):
            return True, late - early
        late += 1
    return False, late - early


@kernel
def _is_above(other: int, row: int, times: Array, values: Array, sign: float, omega: float) -> bool:
    """Whether the other row is above this one, or equal to it and of higher rank."""
    if values[other] != values[row]:
        return bool(sign * values[other] > sign * values[row])
    other_rank, rank = tie_rank(times[other], tie_period(omega)), tie_rank(times[row], tie_period(omega))
    return bool(other_rank > rank or (other_rank == rank and other < row))
