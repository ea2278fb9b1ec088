"""The simulation of a cache that keeps the rows of the highest expected benefit, by a given process."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

from tidegate.compiled import kernel
from tidegate.models import AR1, History, Markov, Process, RandomWalk, gains
from tidegate.policies import Exponential, Survival
from tidegate.policies.heeb import h1, h2, over_time
from tidegate.policies.heeb.incremental import drifting
from tidegate.policies.heeb.precomputed import (
    BenefitSurface,
    control_weights,
    first_visits,
    is_fine,
    is_light,
    looked_up,
    rounded_benefit_number,
    steps_left,
)

if TYPE_CHECKING:
    from tidegate.types import Array

_BLOCK: Final = 256
"""References per block: before each block the survival is updated, and benefits are computed for the block."""
_STEPS: Final = 256
"""The steps of a sum that has no end of its own."""


class _BlockBenefits(NamedTuple):
    """The benefit of a row after reference `i` of a block is `curves[curve_of[i]][(place - starts[i]) / spacing]`."""

    places: Array
    curves: Array
    curve_of: Array
    starts: Array
    spacing: int


def run_by_forecast(
    keys: Array, values: Array, capacity: int, process: Process, survival: Survival | None, *, bypass: bool
) -> Array:
    """Which references hit, if the row of the lowest expected benefit is evicted.

    Parameters
    ----------
    keys
        For each reference, the number of its value.
    values
        The distinct values, whole numbers.
    capacity
        The number of rows that fit.
    process
        The process of the references, one per time step from 0 on.
    survival
        The survival of cached rows; None for the observed one, which begins with an alpha of the capacity.
    bypass
        Whether the fetched row itself may be left out.

    References
    ----------
    On Joining and Caching Stochastic Streams, sections 5.3, 6.1 and 7.
    """
    hit = np.zeros(len(keys), np.bool_)
    last, slots = np.full(len(values), -1), np.empty(min(capacity, len(values)), np.int64)
    cached = np.zeros(len(values), np.bool_)
    counts = np.zeros(4, np.int64)  # held, entered, left, and the sum of held over all references
    for start in range(0, len(keys), _BLOCK):
        block = slice(start, min(start + _BLOCK, len(keys)))
        current = survival
        if current is None:
            _, entered, left, row_references = counts.tolist()
            current = (
                Exponential.near_lifetime(1 + row_references / entered)
                if left
                else Exponential(float(capacity))
            )
        candidates = np.union1d(np.flatnonzero(cached), keys[block])
        benefits = _benefits(
            process, current, values, keys[block], start, candidates, given=survival is not None
        )
        weights = control_weights(benefits.spacing)
        _run_block(
            keys, block.start, block.stop, hit, last, cached, slots, counts, bypass, *benefits, weights
        )
    return hit


def _use_surface(level: AR1, survival: Survival, *, given: bool) -> bool:
    """Whether a precomputed surface is exact enough, and either serves for all references or is small."""
    if not isinstance(survival, Exponential):
        return True
    return is_fine(level) if given else is_light(level, survival, survival.negligible_after())


def _benefits(
    process: Process,
    survival: Survival,
    values: Array,
    keys: Array,
    start: int,
    candidates: Array,
    *,
    given: bool,
) -> _BlockBenefits:
    """The benefits of the candidates after each of the references to `keys`."""
    seen, one, each = values[keys], np.zeros(len(keys), np.int64), np.arange(len(keys))
    ahead = None if isinstance(survival, Exponential) else survival.negligible_after() or _STEPS
    if isinstance(process, RandomWalk):
        curve = h1(process, survival, problem="caching", ahead=ahead)
        return _BlockBenefits(values, curve.benefits[None, :], one, seen + curve.first, 1)
    if isinstance(process, AR1) and _use_surface(process, survival, given=given):
        surface = _surface(process, survival, ahead)
        curves = np.array([surface.curve(surface.nearest(value)) for value in seen.tolist()])
        return _BlockBenefits(values, curves, each, one + surface.first, surface.spacing)
    places = np.zeros(len(values), np.int64)
    places[candidates] = np.arange(len(candidates))
    if isinstance(process, AR1):
        lasts, of = np.unique(seen, return_inverse=True)
        return _BlockBenefits(places, _summed_ar1(process, survival, values[candidates], lasts), of, one, 1)
    return _BlockBenefits(
        places, _benefits_by_sums(process, survival, values[candidates], seen, start, ahead), each, one, 1
    )


@lru_cache(maxsize=2)
def _surface(level: AR1, survival: Survival, ahead: int | None) -> BenefitSurface:
    return h2(level, survival, problem="caching", ahead=ahead)


def _summed_ar1(level: AR1, survival: Survival, values: Array, lasts: Array) -> Array:
    """Sums for an AR(1) process: a row for each last value, a column for each value."""
    left, weights = steps_left(level, survival, survival.negligible_after() or _STEPS)
    found = [level.reached(last, left, values[:, None]) @ weights for last in lasts]
    return first_visits(np.array(found), level.reached(values[:, None], left, values[:, None]) @ weights)


def _benefits_by_sums(
    process: Process, survival: Survival, values: Array, seen: Array, start: int, ahead: int | None
) -> Array:
    """Sums for any other process: a row for each time, a column for each value."""
    times = range(start, start + len(seen))
    moving = drifting(process, survival, "caching")
    if moving is not None:
        return np.array([moving.of(now, values) for now in times])
    if isinstance(survival, Exponential) and process.independent:
        return over_time(process, History(start), values, survival, len(times) - 1, problem="caching").T
    steps = ahead or survival.negligible_after() or _STEPS
    weights = survival.at(np.arange(1, steps + 1))
    histories = (History(now, value) for now, value in zip(times, seen.tolist(), strict=True))
    if isinstance(survival, Exponential) and isinstance(process, Markov):
        each = np.arange(1, steps + 1)
        visits = np.array([process.probability(history, each, values) @ weights for history in histories])
        return first_visits(visits, process.returns(each, values) @ weights)
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
    curve_of: Array,
    starts: Array,
    spacing: int,
    weights: Array,
) -> None:
    """Run some references; the arrays from `hit` to `counts` are the state, which is updated."""
    held, entered, left, row_references = counts[0], counts[1], counts[2], counts[3]
    for i in range(start, stop):
        key = keys[i]
        hit[i], last[key] = cached[key], i
        if not cached[key] and held < len(slots):
            slots[held], cached[key] = key, True
            held, entered = held + 1, entered + 1
        elif not cached[key]:
            curve, begin = curves[curve_of[i - start]], starts[i - start]
            least, slot = np.inf, -1
            if bypass:
                least = rounded_benefit_number(looked_up(curve, places[key] - begin, spacing, weights))
            for at in range(held):
                benefits = rounded_benefit_number(
                    looked_up(curve, places[slots[at]] - begin, spacing, weights)
                )
                # Of equal rows the one that was referred to last stays.
                if benefits < least or (
                    benefits == least and (slot < 0 or last[slots[at]] < last[slots[slot]])
                ):
                    least, slot = benefits, at
            if slot >= 0:
                cached[slots[slot]] = False
                slots[slot], cached[key] = key, True
                entered, left = entered + 1, left + 1
        row_references += held
    counts[0], counts[1], counts[2], counts[3] = held, entered, left, row_references
