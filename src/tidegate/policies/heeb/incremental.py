"""Incremental expected benefits for the exponential survival: each follows from another instead of a sum."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, Final

import numpy as np

from tidegate.compiled import inlined, kernel
from tidegate.models import History, LinearTrend, Problem, Process
from tidegate.models.processes.process import as_integers
from tidegate.models.validation import is_number
from tidegate.policies.heeb.survival import Exponential, Survival, expected_benefit
from tidegate.types import Array, InputError, check_choice

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

_ROUNDING: Final = 1e-14
_KEPT: Final = 4


def earlier(benefit: Array, probability: Array, alpha: float, *, problem: Problem = "joining") -> Array:
    """The expected benefit one step earlier: the recursion backwards, which reduces every error.

    Parameters
    ----------
    benefit
        The expected benefit of each row, for an independent process.
    probability
        The probability of each row's value at the step between.
    alpha
        Of the exponential survival; infinity for rows that stay forever, in caching.
    problem
        "joining" or "caching".

    References
    ----------
    On Joining and Caching Stochastic Streams, Corollaries 3 and 4.
    """
    check_choice(problem, Problem, "problem")
    check_alpha(alpha)
    missed = 1.0 if problem == "joining" else 1 - np.asarray(probability)
    before: Array = math.exp(-1 / alpha) * (missed * np.asarray(benefit) + probability)
    return before


def over_time(
    process: Process,
    history: History,
    values: ArrayLike,
    survival: Exponential,
    steps: int,
    *,
    problem: Problem = "joining",
) -> Array:
    """The expected benefits now and at each of the next steps: a sum at the last, the others backwards from it.

    Returns
    -------
    Array
        A row for each of `values`, a column for each of the steps 0 to `steps` from now.

    Examples
    --------
    >>> from tidegate.models import Noise
    >>> trend = LinearTrend(1, 0, Noise(1))
    >>> over_time(trend, History(0), [3], Exponential(5), 5).round(3)
    array([[0.556, 0.679, 0.496, 0.273, 0.   , 0.   ]])

    References
    ----------
    On Joining and Caching Stochastic Streams, section 6.1 (time-incremental computation).

    Deviations
    ----------
    Backwards in time, so that it is as exact as the sum; needs an independent process, as the corollaries do.
    """
    _independent(process)
    _exponential(survival)
    if isinstance(steps, bool) or not isinstance(steps, int | np.integer) or steps < 0:
        raise InputError(f"steps is {steps!r}; give a whole number of steps, at least 0")
    rows = as_integers(values)
    table = np.empty((len(rows), steps + 1))
    table[:, steps] = expected_benefit(process, History(history.now + steps), rows, survival, problem=problem)
    if steps:
        coming = process.probability(history, np.arange(1, steps + 1), rows)
    for step in range(steps, 0, -1):
        table[:, step - 1] = earlier(table[:, step], coming[:, step - 1], survival.alpha, problem=problem)
    return table


@dataclass(frozen=True)
class DriftingBenefit:
    """The expected benefit of every value at every time, for a trend of whole speed: one table for all.

    Two rows at the same offset from the trend have the same future. So a row's benefit is that of another row some
    steps earlier or later. The table is filled from the offsets that the trend has passed; each entry follows from
    the one that is a step's drift behind it.

    Parameters
    ----------
    trend
        With a speed that is whole and not 0.
    survival
        The probability that rows stay in memory.
    problem
        "joining" or "caching".

    Examples
    --------
    >>> from tidegate.models import Noise
    >>> table = DriftingBenefit(LinearTrend(1, 0, Noise(1)), Exponential(5))
    >>> table.of(0, [3, 2, 103]).round(3), table.of(100, [103]).round(3)
    (array([0.556, 0.679, 0.   ]), array([0.556]))

    References
    ----------
    On Joining and Caching Stochastic Streams, Corollary 5.

    Deviations
    ----------
    The corollary uses a time `t + (v' - v) / a` that need not be whole; here `a` is whole and entries are a whole
    number of steps apart. They are filled in the direction that reduces errors.
    """

    trend: LinearTrend
    survival: Exponential
    problem: Problem = "joining"

    def __post_init__(self) -> None:
        check_choice(self.problem, Problem, "problem")
        _exponential(self.survival)
        if not isinstance(self.trend, LinearTrend):
            raise InputError(f"trend is {self.trend!r}; give a LinearTrend, or use over_time")
        if not self.trend.moves_whole():
            raise InputError(
                f"the trend's speed is {self.trend.speed!r}; give a whole one other than 0, or use over_time"
            )

    @cached_property
    def _table(self) -> tuple[int, Array]:
        """The first offset `v - speed * t`, and the benefits of it and of the next ones ahead.

        Ahead is up for a rising trend and down for a falling one. The first entries, one drift, are 0: keys that
        cannot arrive any more.
        """
        first, chances = _passing(self.trend)
        drift = abs(int(self.trend.speed))
        return first, _filled(chances, drift, self.survival.alpha, self.problem == "caching")

    def of(self, now: int, values: ArrayLike) -> Array:
        """The expected benefit of these values now."""
        first, benefits = self._table
        rows = as_integers(values)
        return _drifted(rows, now, int(self.trend.speed), first, benefits, self.survival.alpha)

    def within(self, now: int, values: Array, begins: Array, ends: Array) -> Array:
        """In joining, the part of the expected benefit after one step from now and up to another.

        A row that is still in memory after some steps has the same future as one that arrived then.
        """
        first, benefits = self._table
        return _drifted_within(
            values, now, begins, ends, int(self.trend.speed), first, benefits, self.survival.alpha
        )


_drifting = lru_cache(maxsize=_KEPT)(DriftingBenefit)


def drifting(process: Process, survival: Survival, problem: Problem = "joining") -> DriftingBenefit | None:
    """The table of a trend of whole speed with an exponential survival; None for any other process or survival."""
    if isinstance(process, LinearTrend) and isinstance(survival, Exponential) and process.moves_whole():
        return _drifting(process, survival, problem)
    return None


@lru_cache(maxsize=_KEPT)
def _passing(trend: LinearTrend) -> tuple[int, Array]:
    """The first offset, and the probability of it and of the next ones at a single time."""
    drift, ahead = abs(int(trend.speed)), int(np.sign(trend.speed))
    reach = math.ceil(trend.noise.reach) + 1
    first = round(trend.offset) - ahead * (reach + drift)
    offsets = first + ahead * np.arange(2 * (reach + drift))
    return first, trend.noise.mass(offsets - trend.offset)


@kernel
def _filled(chances: Array, drift: int, alpha: float, caching: bool) -> Array:  # noqa: FBT001 - a kernel's flag
    """The recursion of `earlier`: each entry follows from the one that is a step's drift behind."""
    benefits, kept = np.zeros(len(chances)), math.exp(-1 / alpha)
    for at in range(drift, len(chances)):
        behind, chance = benefits[at - drift], chances[at - drift]
        benefits[at] = kept * ((1 - chance if caching else 1.0) * behind + chance)
    return benefits


@inlined
def _there(value: int, now: int, speed: int, first: int, benefits: Array, alpha: float) -> float:
    drift = abs(speed)
    place = (value - speed * now - first) * (1 if speed > 0 else -1)
    if place < 0:
        return 0.0
    # Beyond the table nothing matches until the trend arrives: only survival counts.
    waits = max(-((len(benefits) - 1 - place) // drift), 0)
    return benefits[place - waits * drift] * (math.exp(-waits / alpha) if waits else 1.0)  # type: ignore[no-any-return]


@kernel
def _drifted(values: Array, now: int, speed: int, first: int, benefits: Array, alpha: float) -> Array:
    found = np.empty(len(values))
    for i in range(len(values)):
        found[i] = _there(values[i], now, speed, first, benefits, alpha)
    return found


@kernel
def _drifted_within(
    values: Array,
    now: int,
    begins: Array,
    ends: Array,
    speed: int,
    first: int,
    benefits: Array,
    alpha: float,
) -> Array:
    found = np.zeros(len(values))
    for i in range(len(values)):
        begin, end = begins[i], ends[i]
        before = _there(values[i], now + begin, speed, first, benefits, alpha)
        if end > begin and before > 0.0:
            after = math.exp(-(end - begin) / alpha) * _there(
                values[i], now + end, speed, first, benefits, alpha
            )
            # The difference of equal terms is a rounding error.
            if before - after > _ROUNDING * before:
                found[i] = (before - after) * (math.exp(-begin / alpha) if begin else 1.0)
    return found


def check_alpha(alpha: float) -> None:
    """Refuse anything but a number above 0, or infinity."""
    if not is_number(alpha) or not alpha > 0:
        raise InputError(f"alpha is {alpha!r}; give a number above 0, or infinity for rows that stay forever")


def _exponential(survival: object) -> None:
    if not isinstance(survival, Exponential):
        raise InputError(
            f"survival is {survival!r}; incremental benefits need Exponential(alpha): give that, "
            "or use expected_benefit"
        )


def _independent(process: Process) -> None:
    if not process.independent:
        raise InputError(
            f"{process!r} is not independent; compute the sum at each step with expected_benefit"
        )
