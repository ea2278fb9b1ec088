"""Tell at a glance which rows are bracketed, where intervals hold few rows: compiled loops, over rows in order.

A stack (`brackets`) goes from row to row by comparisons that a processor cannot guess. Here each row of a block is
compared with the sixteen rows on either side of it, whatever the outcome, so that many rows are compared at once:
for the nearest above it and the nearest below it, on both sides. To compare as many as can be, times and values are
rounded down to 16 bits, by what the block spans. Rounding keeps the order, but may make values alike, and a distance
is then known but for one more or less. Where that matters, or the nearest may be farther away, the row is in doubt:
its neighbours are looked at one by one, exactly.

With ten rows an interval that is one row in a hundred. With more than some fifteen, or where many values or times are
equal, it is many; as soon as that is seen, all is left to the stack.
"""

from __future__ import annotations

from typing import Final, TypeAlias

import numpy as np

from tidegate.alerts.stores.brackets import favour, near, stacked, stretch_of
from tidegate.compiled import inlined, kernel, unordered
from tidegate.types import Array

_Found: TypeAlias = tuple[np.int16, np.int16, np.int16, np.int16, bool]
"""The ticks of the nearest above and below before a row, and of those after it; whether some are alike."""
_BLOCK: Final = 256
_SOME: Final = 8
"""How many rows on either side a loop looks at: more, and it would not be unrolled."""
_MARGIN: Final = 2 * _SOME + 1
_TICKS, _HEIGHTS = 1 << 14, (1 << 15) - 1
"""Into how many parts a block's times and values are divided: as many as 16 bits hold, with what is near outside."""
_BEFORE, _AFTER = np.int16(-(1 << 13)), np.int16(_TICKS + (1 << 13) - 1)
"""The ticks of rows that were not found or are not there."""
_LONGEST: Final = (1 << 13) - 4
"""Of how many ticks omega may be, for those to be near to none."""
_PATIENCE: Final = 2
"""How many neighbours may be looked at one by one for each row, where to begin with a row counts as some."""


@kernel
def needed(times: Array, values: Array, omega: float, strict: bool, up: bool, down: bool) -> Array:  # noqa: FBT001 - a kernel
    """Of each row, whether it is not above-bracketed (`up`) or not below-bracketed (`down`); times ascend."""
    size, looked = len(times), 0
    keep, doubt = np.empty(size + _BLOCK, np.bool_), np.empty(_BLOCK, np.bool_)
    ticks, heights = np.empty(_BLOCK + 2 * _MARGIN, np.int16), np.empty(_BLOCK + 2 * _MARGIN, np.int16)
    for begin in range(0, size, _BLOCK):
        first, last = max(begin - _MARGIN, 0), min(begin + _BLOCK + _MARGIN, size)
        least, greatest = _ends(values[first:last])
        rate = _TICKS / float(times[last - 1] - times[first])
        if not (greatest - least < np.inf and omega * rate < _LONGEST):
            return stacked(times, values, omega, strict, up, down)
        # A row that is not there is below all, so far away that it makes no difference.
        heights[:], ticks[:_MARGIN], ticks[_MARGIN:] = -1, _BEFORE, _AFTER
        there = first - begin + _MARGIN
        _round(times[first:last], times[first], rate, ticks[there:])
        _round(values[first:last], least, _HEIGHTS / max(greatest - least, 1e-300), heights[there:])
        _glance(ticks, heights, int(omega * rate), up, down, keep[begin:], doubt)
        for row in range(begin, min(begin + _BLOCK, size)):
            if doubt[row - begin]:
                keep[row] = False
                for sign, asked in ((1.0, up), (-1.0, down)):
                    if asked and not keep[row]:
                        bracketed, of = _looked_up(row, times, values, sign, omega, strict)
                        keep[row] = not bracketed
                        looked += _SOME + of
        if looked > _PATIENCE * last:
            return stacked(times, values, omega, strict, up, down)
    return keep[:size]


@unordered
def _ends(values: Array) -> tuple[float, float]:
    """The least and the greatest."""
    least = greatest = values[0]
    for value in values:
        least, greatest = min(least, value), max(greatest, value)
    return least, greatest


@kernel
def _round(column: Array, least: float, scale: float, rounded: Array) -> None:
    """By how many whole parts each is above the least; what is less is never more."""
    for row in range(len(column)):
        rounded[row] = np.int16(float(column[row] - least) * scale)


@kernel
def _glance(
    ticks: Array,
    heights: Array,
    omega: int,
    up: bool,  # noqa: FBT001 - a kernel's flags
    down: bool,  # noqa: FBT001
    keep: Array,
    doubt: Array,
) -> None:
    """Tell of a block's rows which are needed for sure, and of which that is in doubt."""
    near_for_sure, far_for_sure = np.int16(omega - 2), np.int16(omega + 3)
    for place in range(_BLOCK):
        row = place + _MARGIN
        # A row of the same time is both earlier and later, which is not looked at here.
        alike = (ticks[row] == ticks[row - 1]) | (ticks[row] == ticks[row + 1])
        found = _nearest(row, 2 * _SOME, ticks, heights, (_BEFORE, _BEFORE, _AFTER, _AFTER, alike))
        above, below, above_later, below_later, alike = _nearest(row, _SOME, ticks, heights, found)
        covered = np.int16(above_later - above) <= near_for_sure
        carried = np.int16(below_later - below) <= near_for_sure
        # What was not found may be the first that was not looked at.
        early, late = ticks[row - _MARGIN], ticks[row + _MARGIN]
        high = np.int16(min(above_later, late) - max(above, early)) >= far_for_sure
        low = np.int16(min(below_later, late) - max(below, early)) >= far_for_sure
        sure = ((high & up) | (low & down)) & (not alike)
        keep[place] = sure
        doubt[place] = not (sure | ((covered | (not up)) & (carried | (not down))))


@inlined
def _nearest(row: int, far: int, ticks: Array, heights: Array, found: _Found) -> _Found:
    """Look at some rows on either side, from this far on to nearer ones, which take the place of what was found."""
    above, below, above_later, below_later, alike = found
    height = heights[row]
    for nearer in range(_SOME):
        before, after = row - far + nearer, row + far - nearer
        # All are read, whatever is chosen: few processors can read many only where needed.
        early, early_height, late, late_height = ticks[before], heights[before], ticks[after], heights[after]
        above = early if early_height > height else above
        below = early if early_height < height else below
        above_later = late if late_height > height else above_later
        below_later = late if late_height < height else below_later
        alike |= (early_height == height) | (late_height == height)
    return above, below, above_later, below_later, alike


@kernel
def _looked_up(
    row: int,
    times: Array,
    values: Array,
    sign: float,
    omega: float,
    strict: bool,  # noqa: FBT001 - a kernel's flag
) -> tuple[bool, int]:
    """Whether a row is bracketed, and how many neighbours it took to tell."""
    now, early, late = times[row], row - 1, row + 1
    while (
        early >= 0
        and near(times[early], now, omega, strict)
        and not _above(early, row, times, values, sign, omega)
    ):
        early -= 1
    if early >= 0 and times[early] == now:
        return True, late - early
    while late < len(times) and (
        times[late] == now or (early >= 0 and near(times[early], times[late], omega, strict))
    ):
        if _above(late, row, times, values, sign, omega):
            return True, late - early
        late += 1
    return False, late - early


@kernel
def _above(other: int, row: int, times: Array, values: Array, sign: float, omega: float) -> bool:
    """Whether the other row is above this one, or counts as if it were."""
    if values[other] != values[row]:
        return bool(sign * values[other] > sign * values[row])
    its, mine = favour(times[other], stretch_of(omega)), favour(times[row], stretch_of(omega))
    return bool(its > mine or (its == mine and other < row))
