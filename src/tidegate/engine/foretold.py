"""A cache that keeps the rows whose next use is worth most, by a process that the references follow."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

from tidegate.compiled import kernel
from tidegate.models import AR1, History, LinearTrend, Markov, Process, RandomWalk, gains
from tidegate.policies import DriftingBenefit, Exponential, Survival, h1, h2, over_time
from tidegate.policies.precomputed import (
    Surface,
    control_weights,
    evened_number,
    is_fine,
    is_light,
    looked_up,
    steps_left,
)

if TYPE_CHECKING:
    from tidegate.types import Array

_BLOCK: Final = 256
"""After so many references it is looked how long rows stay, and what they are worth is found for as many ahead."""
_AHEAD: Final = 256
"""How many steps a sum goes over that has no end of its own."""


class _Worth(NamedTuple):
    """What a row is worth after each of some references: `curves[of[i]]` at `(place - starts[i]) / spacing`."""

    places: Array
    curves: Array
    of: Array
    starts: Array
    spacing: int


def run_foretold(
    keys: Array, values: Array, capacity: int, process: Process, survival: Survival | None, *, bypass: bool
) -> Array:
    """Which references hit, where the row whose expected benefit is lowest is left out.

    Parameters
    ----------
    keys
        For each reference, which of the values it is to.
    values
        The distinct values, whole numbers.
    capacity
        How many rows the cache holds.
    process
        What the references follow, one a time step from 0 on.
    survival
        How long rows are thought to stay; None for what is observed, and at first for an alpha of the capacity.
    bypass
        Whether a row that was fetched may itself be left out.

    References
    ----------
    On Joining and Caching Stochastic Streams, sections 5.3, 6.1 and 7.
    """
    hit = np.zeros(len(keys), np.bool_)
    last, slots = np.full(len(values), -1), np.empty(min(capacity, len(values)), np.int64)
    cached = np.zeros(len(values), np.bool_)
    counts = np.zeros(4, np.int64)  # held, entered, left, and all that was held after each reference
    for start in range(0, len(keys), _BLOCK):
        block = slice(start, min(start + _BLOCK, len(keys)))
        thought = survival
        if thought is None:
            _, entered, left, spent = counts.tolist()
            thought = Exponential.about(1 + spent / entered) if left else Exponential(float(capacity))
        candidates = np.union1d(np.flatnonzero(cached), keys[block])
        reused = isinstance(process, AR1) and _reused(process, survival, thought)
        worth = _worth(process, thought, values, keys[block], block.start, candidates, reused=reused)
        weights = control_weights(worth.spacing)
        _run_block(keys, block.start, block.stop, hit, last, cached, slots, counts, bypass, *worth, weights)
    return hit


def _reused(level: AR1, given: Survival | None, thought: Survival) -> bool:
    """Whether a surface is exact enough, and serves for all references or is small."""
    if given is not None or not isinstance(thought, Exponential):
        return is_fine(level) or not isinstance(thought, Exponential)
    return is_light(level, thought, thought.reach())


def _worth(
    process: Process,
    survival: Survival,
    values: Array,
    keys: Array,
    start: int,
    candidates: Array,
    *,
    reused: bool,
) -> _Worth:
    """What the candidates are worth after each of the references to `keys`; of a level, by a surface if `reused`."""
    came, one, each = values[keys], np.zeros(len(keys), np.int64), np.arange(len(keys))
    ahead = None if isinstance(survival, Exponential) else survival.reach() or _AHEAD
    if isinstance(process, RandomWalk):
        curve = h1(process, survival, problem="caching", ahead=ahead)
        return _Worth(values, curve.benefits[None, :], one, came + curve.first, 1)
    if isinstance(process, AR1) and reused:
        surface = _surface(process, survival, ahead)
        curves = np.array([surface.curve(surface.nearest(value)) for value in came.tolist()])
        return _Worth(values, curves, each, one + surface.first, surface.spacing)
    places = np.zeros(len(values), np.int64)
    places[candidates] = np.arange(len(candidates))
    if isinstance(process, AR1):
        lasts, of = np.unique(came, return_inverse=True)
        return _Worth(places, _after(process, survival, values[candidates], lasts), of, one, 1)
    return _Worth(places, _summed(process, survival, values[candidates], came, start, ahead), each, one, 1)


@lru_cache(maxsize=2)
def _surface(level: AR1, survival: Survival, ahead: int | None) -> Surface:
    return h2(level, survival, problem="caching", ahead=ahead)


def _after(level: AR1, survival: Survival, values: Array, lasts: Array) -> Array:
    """By a sum for each value and last value: a row for each of the last ones."""
    left, weights = steps_left(level, survival, survival.reach() or _AHEAD)
    found = [level.reached(last, left, values[:, None]) @ weights for last in lasts]
    # All visits are a first one and returns from it, each as much less likely to be seen as it is later.
    first: Array = np.array(found) / (1 + level.reached(values[:, None], left, values[:, None]) @ weights)
    return first


def _summed(
    process: Process, survival: Survival, values: Array, came: Array, start: int, ahead: int | None
) -> Array:
    """By sums, or by one where the others follow from it: a row for each time, a column for each value."""
    times = range(start, start + len(came))
    if isinstance(survival, Exponential) and process.independent:
        if isinstance(process, LinearTrend) and process.moves_whole():
            drifting = DriftingBenefit(process, survival, "caching")
            return np.array([drifting.of(now, values) for now in times])
        return over_time(process, History(start), values, survival, len(times) - 1, problem="caching").T
    steps = ahead or survival.reach() or _AHEAD
    weights = survival.at(np.arange(1, steps + 1))
    histories = (History(now, value) for now, value in zip(times, came.tolist(), strict=True))
    if isinstance(survival, Exponential) and isinstance(process, Markov):
        # All visits are a first one and returns from it, each as much less likely to be seen as it is later.
        each = np.arange(1, steps + 1)
        visits = np.array([process.probability(history, each, values) @ weights for history in histories])
        first: Array = visits / (1 + process.returns(each, values) @ weights)
        return first
    return np.array(
        [gains(process, history, values, steps, problem="caching") @ weights for history in histories]
    )


@kernel
def _run_block(
    keys: Array,
    start: int,
    stop: int,
    hit: Array,
    last: Array,
    cached: Array,
    slots: Array,
    counts: Array,
    bypass: bool,
    places: Array,
    curves: Array,
    of: Array,
    starts: Array,
    spacing: int,
    weights: Array,
) -> None:
    """Some references; the arrays from `hit` to `counts` go on from where the ones before left them."""
    held, entered, left, spent = counts[0], counts[1], counts[2], counts[3]
    for i in range(start, stop):
        key = keys[i]
        hit[i], last[key] = cached[key], i
        if not cached[key] and held < len(slots):
            slots[held], cached[key] = key, True
            held, entered = held + 1, entered + 1
        elif not cached[key]:
            curve, begin = curves[of[i - start]], starts[i - start]
            least, slot = np.inf, -1
            if bypass:
                least = evened_number(looked_up(curve, places[key] - begin, spacing, weights))
            for at in range(held):
                worth = evened_number(looked_up(curve, places[slots[at]] - begin, spacing, weights))
                # Among equals the one referred to last stays.
                if worth < least or (worth == least and (slot < 0 or last[slots[at]] < last[slots[slot]])):
                    least, slot = worth, at
            if slot >= 0:
                cached[slots[slot]] = False
                slots[slot], cached[key] = key, True
                entered, left = entered + 1, left + 1
        spent += held
    counts[0], counts[1], counts[2], counts[3] = held, entered, left, spent
