"""The expected benefit of many rows at once, each within its own window: from tables, not by a sum for each row."""

from __future__ import annotations

import math
from dataclasses import replace
from functools import lru_cache
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

from tidegate.compiled import kernel
from tidegate.models import AR1, History, LinearTrend, Noise, Process, RandomWalk
from tidegate.policies.heeb.incremental import drifting
from tidegate.policies.heeb.precomputed import BenefitSurface, between, h2, is_light, steps_left
from tidegate.policies.heeb.survival import Survival

if TYPE_CHECKING:
    from tidegate.types import Array, Time

_KEPT: Final = 4
_ENTRIES: Final = 1 << 20
"""The maximum number of entries of a table."""
_FINE: Final = 6
"""Control values per standard deviation of normal noise; other noise has a table of all values."""
_BEYOND: Final = 6
"""Control values beyond each end, for the interpolation in the last intervals."""
_DEVIATIONS: Final = 9.0
_AT_ONCE: Final = 1 << 12
"""The number of values whose sums are computed at a time."""


class BenefitSums(NamedTuple):
    """The expected results of control values within 0, 1, 2 and more steps: a row for each, `spacing` apart."""

    first: int
    spacing: int
    sums: Array

    def of(self, values: Array, begins: Array, ends: Array) -> Array:
        """The expected results of each value between two steps."""
        return between(values, self.first, self.spacing, self.sums, begins, ends)


def benefit_within(
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
    """The expected results of each row after one step from now and up to another.

    It equals a sum for each row, at the cost of a lookup. Stationary shares and trends of speed 0 need no table.
    With a trend of whole speed the sum up to a step is the expected benefit now minus that at the step, both by the
    offset from the trend (`DriftingBenefit`). With a walk there is a table by distance for rows that outlast all
    steps, and one by distance and step for others. With a level there is one by value and last value (`h2`) for rows
    that outlast all steps. For any other process a table is made for the current step, if that costs less than a sum
    for each distinct key.

    Rows at the same distance above and below the last value of a walk without drift have exactly the same result.

    Parameters
    ----------
    process, history
        The stream that rows are matched with, and what was observed of it.
    keys
        Of the rows.
    survival
        The probability that rows stay in memory, counted from `lag` steps after the history's end.
    begins, ends
        For each row, the step after which it may be matched and the last one; from 0 to `ahead`.
    ahead
        The number of steps to look ahead.
    lag
        The number of steps since the history ended.

    Deviations
    ----------
    With normal noise whose standard deviation is 16 or more, tables have eight control values for each deviation, and
    a polynomial through twelve of them is used between them: within 1e-10 of the largest.
    """
    shares = process.share(keys)
    if shares is not None:
        kept = np.concatenate([[0.0], np.cumsum(survival.at(np.arange(1, ahead + 1)))])
        found: Array = shares * (kept[ends] - kept[begins])
        return found
    moving = drifting(process, survival)
    if moving is not None:
        return moving.within(history.now + lag, keys, begins, ends)
    outlasting = not begins.any() and bool((ends == ahead).all())
    if isinstance(process, RandomWalk) and history.last is not None:
        # A walk that drifts down is the mirror of one that drifts up: both have the same table.
        upward = replace(process, drift=abs(process.drift))
        table = (_by_distance if outlasting else _by_distance_and_step)(upward, survival, ahead, lag)
        if table is not None:
            distances = keys - history.last if process.drift > 0 else history.last - keys
            ends = np.zeros_like(ends) if outlasting else ends
            return table.of(distances if process.drift else np.abs(distances), begins, ends)
    if isinstance(process, AR1) and history.last is not None and outlasting and not lag:
        return _by_level(process, history.last, keys, survival, ahead)
    grid = _control_values(process, history, ahead, lag)
    if grid is None or len(grid) >= len(keys) or len(grid) * (ahead + 1) > _ENTRIES:
        return _benefits_by_sums(process, history, keys, survival, begins, ends, ahead, lag)
    return _table(grid, _sums(process, history, grid, survival, ahead, lag)).of(keys, begins, ends)


@lru_cache(maxsize=_KEPT)
def _by_distance_and_step(walk: RandomWalk, survival: Survival, ahead: int, lag: int) -> BenefitSums | None:
    """A table by distance from the last value and step; None if it is too large."""
    grid = _spaced(*walk.span(lag + ahead, far=False), _apart(walk.step))
    if len(grid) * (ahead + 1) > _ENTRIES:
        return None
    return _table(grid, _sums(walk, History(0, 0), grid, survival, ahead, lag))


@lru_cache(maxsize=_KEPT)
def _by_distance(walk: RandomWalk, survival: Survival, ahead: int, lag: int) -> BenefitSums:
    """A table of sums over all steps, by distance from the last value: for too many distances for a table by step."""
    grid = _spaced(*walk.span(lag + ahead), _apart(walk.step))
    found = np.empty((len(grid), 1))
    for start in range(0, len(grid), _AT_ONCE):
        some = slice(start, start + _AT_ONCE)
        found[some] = _sums(walk, History(0, 0), grid[some], survival, ahead, lag)[:, -1:]
    return _table(grid, found)


@lru_cache(maxsize=_KEPT)
def _level(level: AR1, survival: Survival, ahead: int) -> BenefitSurface:
    return h2(level, survival, ahead=ahead)


def _by_level(level: AR1, last: int, keys: Array, survival: Survival, ahead: int) -> Array:
    """By `h2` if it is small, else by a sum for each distinct key or for control values."""
    if is_light(level, survival, ahead) and (surface := _level(level, survival, ahead)).covers(last):
        return surface.of(keys, last)
    left, weights = steps_left(level, survival, ahead)

    def summed(values: Array) -> Array:
        parts = (values[start : start + _AT_ONCE, None] for start in range(0, len(values), _AT_ONCE))
        return np.concatenate([np.empty(0), *(level.reached(last, left, some) @ weights for some in parts)])

    values, place = np.unique(keys, return_inverse=True)
    grid = _control_values(level, History(0, last), ahead, 0)
    if grid is None or len(grid) >= len(values):
        return summed(values)[place]
    none = np.zeros_like(place)
    return _table(grid, summed(grid)[:, None]).of(values, none, none)[place]


def _control_values(process: Process, history: History, ahead: int, lag: int) -> Array | None:
    """Control values for all keys that may arrive within these steps; None for other processes."""
    if isinstance(process, LinearTrend):
        ends = process.centre(history.now + lag + np.array([1, ahead]))
        reach = process.noise.reach
        return _spaced(math.floor(ends.min() - reach), math.ceil(ends.max() + reach), _apart(process.noise))
    if isinstance(process, AR1) and history.last is not None:
        reach = abs(process.phi1) ** (lag + 1) * abs(history.last - process.mean)
        reach += _DEVIATIONS * process.sigma / math.sqrt(1 - process.phi1**2)
        low, high = math.floor(process.mean - reach), math.ceil(process.mean + reach)
        return _spaced(low, high, max(1, int(process.sigma / _FINE)))
    return None


def _apart(noise: Noise) -> int:
    """The distance between control values: more than 1 only for smooth noise."""
    smooth = noise.sigma is not None and (noise.bound is None or noise.bound >= _DEVIATIONS * noise.sigma)
    return max(1, int(noise.sigma / _FINE)) if smooth and noise.sigma is not None else 1


def _spaced(low: int, high: int, spacing: int) -> Array:
    """Control values in a range: multiples of the spacing, so that two tables have the same ones."""
    return spacing * np.arange(low // spacing - _BEYOND, -(-high // spacing) + _BEYOND + 1)


def _table(grid: Array, sums: Array) -> BenefitSums:
    return BenefitSums(int(grid[0]), int(grid[1] - grid[0]), sums)


def _sums(
    process: Process, history: History, values: Array, survival: Survival, ahead: int, lag: int
) -> Array:
    return _accumulated(process.probability(history, lag + np.arange(1, ahead + 1), values), survival)


def _accumulated(chances: Array, survival: Survival) -> Array:
    """The sums over no steps, the first step, the first two steps and so on."""
    sums = np.zeros((len(chances), chances.shape[1] + 1))
    np.cumsum(chances * survival.at(np.arange(1, sums.shape[1])), axis=1, out=sums[:, 1:])
    return sums


def _benefits_by_sums(
    process: Process,
    history: History,
    keys: Array,
    survival: Survival,
    begins: Array,
    ends: Array,
    ahead: int,
    lag: int,
) -> Array:
    """A sum for each distinct key."""
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
def step_ranges(times: Array, since: Time, span: Time, delay: Time, ahead: int) -> tuple[Array, Array]:
    """For each row, the number of the next steps before it can match, and the number up to its last one.

    A row can match from `delay` after its own time to `span` after it; the steps are the times after `since`.
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
