"""The expected benefit of many rows at once, each within its own window: looked up, not summed for each row."""

from __future__ import annotations

import math
from functools import lru_cache
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

from tidegate.compiled import kernel
from tidegate.models import AR1, History, LinearTrend, Process, RandomWalk, Stationary
from tidegate.policies.incremental import DriftingBenefit
from tidegate.policies.precomputed import Surface, between, h2
from tidegate.policies.survival import Exponential, Survival

if TYPE_CHECKING:
    from tidegate.types import Array, Time

_KEPT: Final = 4
_LASTING: Final = 1 << 20
_PASSING: Final = 1 << 17
"""How many entries a table may have that serves many steps, and one that is made for a single step."""
_FINE: Final = 4
_DEVIATIONS: Final = 9.0
_AT_ONCE: Final = 1 << 12
"""Of how many values the sums are formed at a time."""


class Sums(NamedTuple):
    """What control values bring within 0, 1, 2 and more steps: a row for each of them, which are `spacing` apart."""

    first: int
    spacing: int
    sums: Array

    def of(self, values: Array, begins: Array, ends: Array) -> Array:
        """What each value brings from one step to another."""
        return between(values, self.first, self.spacing, self.sums, begins, ends)


def expected_within(
    process: Process,
    history: History,
    keys: Array,
    survival: Survival,
    begins: Array,
    ends: Array,
    *,
    ahead: int,
    lag: int = 0,
) -> Array:
    """The results that each row may be expected to bring after one step from now and up to another.

    The same as a sum for each row, at the cost of looking it up. Stationary shares need no table. With a trend of
    whole speed the sum up to a step is what may be expected now less what may be expected then, both by the offset
    from the trend (`DriftingBenefit`). With a walk there is a table by distance and step; with a level one by value
    and last value (`h2`), for rows that outlast all steps. Whatever else moves with every step has a table made for
    it, if that costs less than a sum for each distinct key.

    Parameters
    ----------
    process, history
        What the rows are matched with, and what was observed of it.
    keys
        Of the rows.
    survival
        How long rows are thought to stay, counted from `lag` steps after the history's end.
    begins, ends
        For each row, the step after which it may be matched and the last one; from 0 to `ahead`.
    ahead
        How many steps to look ahead.
    lag
        How many steps ago the history ended.

    Deviations
    ----------
    Tables are exact up to 2**20 entries, or 2**17 where they are made for one step, and for an AR(1) with a standard
    deviation of at most 4. Beyond, control values lie apart and a cubic through four of them is taken in between:
    within a thousandth of the largest for normal noise; the edges of bounded noise are smoothed as far as control
    values are apart.
    """
    if isinstance(process, Stationary):
        kept = np.concatenate([[0.0], np.cumsum(survival.at(np.arange(1, ahead + 1)))])
        found: Array = process.share(keys) * (kept[ends] - kept[begins])
        return found
    if isinstance(process, LinearTrend) and isinstance(survival, Exponential) and process.moves_whole():
        return _drifting(process, survival).within(history.now + lag, keys, begins, ends)
    if isinstance(process, RandomWalk) and history.last is not None:
        table = _walked(process, survival, ahead, lag)
        return table.of(keys - history.last, begins, ends)
    if isinstance(process, AR1) and history.last is not None and not lag:
        outlasting = not begins.any() and bool((ends == ahead).all())
        if outlasting and (surface := _level(process, survival, ahead)).covers(history.last):
            return surface.of(keys, history.last)
    grid = _control_values(process, history, ahead, lag)
    if grid is None or len(grid) >= len(keys):
        return _summed(process, history, keys, survival, begins, ends, ahead, lag)
    sums = _sums(process, history, grid, survival, ahead, lag)
    return Sums(int(grid[0]), int(grid[1] - grid[0]), sums).of(keys, begins, ends)


@lru_cache(maxsize=_KEPT)
def _drifting(trend: LinearTrend, survival: Exponential) -> DriftingBenefit:
    return DriftingBenefit(trend, survival)


@lru_cache(maxsize=_KEPT)
def _walked(walk: RandomWalk, survival: Survival, ahead: int, lag: int) -> Sums:
    """By distance from the last value."""
    grid, chances = _strides(walk, 1 << (ahead - 1).bit_length(), lag)
    return Sums(int(grid[0]), int(grid[1] - grid[0]), _accumulated(chances[:, :ahead], survival))


@lru_cache(maxsize=_KEPT)
def _strides(walk: RandomWalk, ahead: int, lag: int) -> tuple[Array, Array]:
    """Distances, and how likely each is at each step: whatever is thought of how long rows stay."""
    grid = _spaced(*walk.span(lag + ahead), 1, ahead, _LASTING)
    return grid, walk.probability(History(0, 0), lag + np.arange(1, ahead + 1), grid)


@lru_cache(maxsize=_KEPT)
def _level(level: AR1, survival: Survival, ahead: int) -> Surface:
    return h2(level, survival, ahead=ahead)


def _control_values(process: Process, history: History, ahead: int, lag: int) -> Array | None:
    """Values that tell of all that may come within these steps; None of a process that cannot tell."""
    if isinstance(process, LinearTrend):
        ends = process.centre(history.now + lag + np.array([1, ahead]))
        reach = process.noise.reach
        return _spaced(math.floor(ends.min() - reach), math.ceil(ends.max() + reach), 1, ahead, _PASSING)
    if isinstance(process, AR1) and history.last is not None:
        reach = abs(process.phi1) ** (lag + 1) * abs(history.last - process.mean)
        reach += _DEVIATIONS * process.sigma / math.sqrt(1 - process.phi1**2)
        low, high = math.floor(process.mean - reach), math.ceil(process.mean + reach)
        return _spaced(low, high, math.ceil(process.sigma / _FINE), ahead, _PASSING)
    return None


def _spaced(low: int, high: int, spacing: int, ahead: int, most: int) -> Array:
    """Control values from one to another, this far apart or as far as a table of most entries asks for."""
    apart = max(spacing, math.ceil((high - low + 1) * (ahead + 1) / most))
    # Two beyond either end: the last intervals are interpolated, too.
    return np.arange(low - 2 * apart, high + 2 * apart + 1, apart)


def _sums(
    process: Process, history: History, values: Array, survival: Survival, ahead: int, lag: int
) -> Array:
    return _accumulated(process.probability(history, lag + np.arange(1, ahead + 1), values), survival)


def _accumulated(chances: Array, survival: Survival) -> Array:
    """The sums over no step, the first, the first two and so on."""
    sums = np.zeros((len(chances), chances.shape[1] + 1))
    np.cumsum(chances * survival.at(np.arange(1, sums.shape[1])), axis=1, out=sums[:, 1:])
    return sums


def _summed(
    process: Process,
    history: History,
    keys: Array,
    survival: Survival,
    begins: Array,
    ends: Array,
    ahead: int,
    lag: int,
) -> Array:
    """By a sum for each distinct key."""
    values, place = np.unique(keys, return_inverse=True)
    found = np.empty(len(keys))
    for start in range(0, len(values), _AT_ONCE):
        sums = _sums(process, history, values[start : start + _AT_ONCE], survival, ahead, lag)
        at = (
            slice(None) if len(values) <= _AT_ONCE else np.flatnonzero(place // _AT_ONCE == start // _AT_ONCE)
        )
        rows = place[at] - start
        found[at] = np.maximum(sums[rows, ends[at]] - sums[rows, begins[at]], 0.0)
    return found


@kernel
def stretches(times: Array, since: Time, span: Time, delay: Time, ahead: int) -> tuple[Array, Array]:
    """For each row, how many of the next steps go by before it may be matched, and by its last one.

    A row may be matched from `delay` after its own time to `span` after it; the steps are the times after `since`.
    """
    begins, ends = np.empty(len(times), np.int64), np.empty(len(times), np.int64)
    for i in range(len(times)):
        left = times[i] + span - since
        ends[i] = 0 if left <= 0 else (ahead if left >= ahead else int(left))
        wait = times[i] + delay - since
        if wait <= 1:
            begins[i] = 0
        elif wait > ahead:
            begins[i] = ahead
        else:
            whole = int(wait)
            begins[i] = whole - 1 if whole == wait else whole
    return begins, ends
