"""Divide memory among joins, sides and keys, and predict the recall.

Models give the results by memory (`tidegate.models.Payoff`, which also divides memory between the sides of a join).
This module uses them to divide memory among groups of a join's keys (`optimal_division`), to predict the recall
(`predict_recall`), and to divide memory among joins so that the lowest recall is as high as possible (`allocate`).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Literal, NamedTuple, TypeAlias

import numpy as np

from tidegate.models.joint_payoff import Curves, JoinModel, joint_payoff
from tidegate.models.payoff import Payoff
from tidegate.models.sample_memory import Frequencies, sample_rows
from tidegate.models.validation import positive
from tidegate.types import InputError, Window, WindowSpan, check_choice

Metric = Literal["recall", "error"]
Scheme = Literal["alloc", "prop"]
Requirement: TypeAlias = Callable[[float], float]
"""The memory needed for a level: a recall (never falling, from 0 to 1) or an error (never rising)."""

_HALVINGS = 100  # beyond the precision of a float
_ROUNDING = 1e-9  # rounding errors of computed requirements, in rows
_EQUAL_SLOPES = 0.05  # learned slopes are never exactly equal; within this factor they count as equal


@dataclass(frozen=True)
class Allocation:
    """The division of a memory among joins.

    Parameters
    ----------
    memory
        Whole rows for each join.
    level
        The lowest recall (or the largest error) of all joins, in units of its weight.
    achieved
        The expected recall (or error) of each join.
    """

    memory: list[int]
    level: float
    achieved: list[float]


def allocate(
    joins: Sequence[Payoff | Requirement],
    total: int,
    weights: Sequence[float] | None = None,
    metric: Metric = "recall",
    scheme: Scheme = "alloc",
) -> Allocation:
    """Divide a memory among joins so that the lowest recall is as high as possible.

    If one join had a higher recall than another, it could give up memory to the other and the lowest recall would
    rise. So all get the same recall, the highest for which the memory suffices, found by bisection. With weights,
    recalls are in their proportion, except that none exceeds 1.

    Every join gets at least one row. Rows are whole, so that a few remain: the joins of the lowest level get one
    more each. If every join has all that it can use, the remaining rows are divided in proportion to that.

    Parameters
    ----------
    joins
        The payoff of each (`models.Payoff`; `models.joint_payoff` makes one from a model), or a function that gives
        the memory needed for a recall, or, if the metric is "error", for an error (`sampling_memory`).
    total
        Rows to divide.
    weights
        The importance of each join; by default equal. For errors, a larger weight admits a larger error.
    metric
        "recall" maximises the lowest recall; "error" minimises the largest error.
    scheme
        "alloc", or "prop" for the baseline: in proportion to the memory that each join needs for a recall of 1,
        regardless of weights.

    Examples
    --------
    >>> easy, hard = Payoff([0, 10, 100], [0, 90, 100]), Payoff([0, 100], [0, 100])
    >>> allocate([easy, hard], total=88)
    Allocation(memory=[9, 79], level=0.79, achieved=[0.81, 0.79])
    >>> allocate([easy, hard], total=88, scheme="prop")
    Allocation(memory=[44, 44], level=0.44, achieved=[0.937..., 0.44])

    References
    ----------
    Memory-Limited Execution of Windowed Stream Joins, section 5 (theorem 5.1, ALLOC) and section 6.2.5
    (PROP).

    Deviations
    ----------
    The paper divides memory in fractions of rows. Here the bisection counts whole rows, so that the result is the
    best in whole rows, never worse than "prop".
    """
    check_choice(metric, Metric, "metric")
    check_choice(scheme, Scheme, "scheme")
    _check_total(joins, total)
    factors = _weights(weights, len(joins))
    requirements = [_requirements(join, metric) for join in joins]
    if scheme == "prop":
        lossless = 1.0 if metric == "recall" else 0.0
        memory = in_proportion([join.needs(lossless) for join in requirements], total)
    else:
        memory = _equal_levels(requirements, total, factors, metric)
    achieved = [join.reaches(rows) for join, rows in zip(requirements, memory, strict=True)]
    levels = [reached / weight for reached, weight in zip(achieved, factors, strict=True)]
    return Allocation(memory, min(levels) if metric == "recall" else max(levels), achieved)


def optimal_division(parts: Sequence[Payoff], memory: int) -> list[int]:
    """Divide the rows of one join among groups of its keys so that it has the most results.

    The group that gains most gets the next row, and every group gets at least one. Groups of nearly equal gain fill
    in proportion to what they can use, so that equal groups get equal shares. Rows that no group can use are
    divided in the same proportion.

    Examples
    --------
    >>> hot, cold = Payoff([0, 50], [0, 500]), Payoff([0, 50], [0, 5])
    >>> optimal_division([cold, hot, cold], memory=60)
    [5, 50, 5]

    References
    ----------
    Memory-Limited Execution of Windowed Stream Joins, sections 3.2.2 and 3.3, which divide between two sides.

    Deviations
    ----------
    Rates of gain within a twentieth of each other count as equal, which costs at most that fraction of the results.
    """
    _check_total(parts, memory)
    ample = np.array([part.ample for part in parts])
    if memory >= ample.sum():
        return in_proportion(ample.tolist(), memory)
    owner = np.repeat(np.arange(len(parts)), [len(part.lengths) for part in parts])
    lengths = np.concatenate([part.lengths for part in parts])
    slopes = np.concatenate([part.slopes for part in parts])
    steepest = np.argsort(-slopes, kind="stable")
    ends = np.cumsum(lengths[steepest])
    margin = slopes[steepest[min(int(np.searchsorted(ends, memory)), len(ends) - 1)]]
    better, equal = slopes > margin * (1 + _EQUAL_SLOPES), abs(slopes - margin) <= margin * _EQUAL_SLOPES
    certain = np.bincount(owner[better], lengths[better], minlength=len(parts))
    shared = np.bincount(owner[equal], lengths[equal], minlength=len(parts))
    return in_proportion((certain + shared * (memory - certain.sum()) / shared.sum()).tolist(), memory)


def predict_recall(
    model: JoinModel,
    memory: float,
    *,
    rates: tuple[float, float],
    window: Window | tuple[WindowSpan, WindowSpan],
) -> float:
    """The expected recall of a join with this memory, if it is used in the best way by the model.

    Parameters are those of `models.joint_payoff`; memory is in rows of both sides together.

    Examples
    --------
    >>> from tidegate.models import AgeCurve
    >>> predict_recall(AgeCurve([0, 1, 2, 3], [3, 0, 2]), 2, rates=(1, 1), window=(3, 0))
    0.8

    References
    ----------
    Memory-Limited Execution of Windowed Stream Joins, sections 3.2.2 and 3.3 (the recall of a join).

    Deviations
    ----------
    Results whose partners arrive together need no memory and are not counted, as in the paper.
    """
    return joint_payoff(model, rates=rates, window=window).recall(memory)


def sampling_memory(
    model: Curves | Frequencies,
    *,
    rates: tuple[float, float],
    window: Window | tuple[WindowSpan, WindowSpan],
    results: float,
    cv: float,
) -> Requirement:
    """The memory needed for an error of a mean over a sampled join, for `allocate(metric="error")`.

    Of `results` results, each in the sample with probability p, the mean has the relative standard error
    `cv * sqrt((1 - p) / (p * results))`; the memory is that of `models.sample_rows` for the p with this error.

    Parameters
    ----------
    model, rates, window
        As in `models.sample_rows`.
    results
        The number of results in an aggregate.
    cv
        Their coefficient of variation: standard deviation over mean.

    Examples
    --------
    >>> from tidegate.models import AgeCurve
    >>> memory = sampling_memory(
    ...     AgeCurve([0, 100], [2]), rates=(1, 1), window=(100, 0), results=400, cv=1.0
    ... )
    >>> memory(0.05), memory(0.0)
    (62.5, 100.0)

    References
    ----------
    Memory-Limited Execution of Windowed Stream Joins, section 5.

    Deviations
    ----------
    Those of `models.sample_rows`: the memory is overestimated under random arrivals.
    """
    count, variation = positive(results, "results"), positive(cv, "cv")
    sample_rows(model, 1.0, rates=rates, window=window)  # refuses bad arguments early

    def memory_for(error: float) -> float:
        fraction = 1 / (1 + count * (error / variation) ** 2)
        return sample_rows(model, fraction, rates=rates, window=window)

    return memory_for


def _check_total(joins: Sequence[object], total: int) -> None:
    if not len(joins):
        raise InputError("no joins to allocate memory to; give at least one")
    if isinstance(total, bool) or not isinstance(total, int | np.integer):
        raise InputError(f"total is {total!r}; give a whole number of rows")
    if total < len(joins):
        raise InputError(f"total is {total}, too little for {len(joins)} joins; give each at least one row")


def _weights(weights: Sequence[float] | None, joins: int) -> list[float]:
    if weights is None:
        return [1.0] * joins
    if len(weights) != joins:
        raise InputError(f"{len(weights)} weights for {joins} joins; give one each")
    return [positive(weight, "a weight") for weight in weights]


class _JoinRequirements(NamedTuple):
    """The memory that a level needs, and the level that a whole number of rows reaches."""

    needs: Requirement
    reaches: Callable[[int], float]


def _requirements(join: Payoff | Requirement, metric: Metric) -> _JoinRequirements:
    if isinstance(join, Payoff):
        if metric == "error":
            raise InputError(
                "a Payoff gives the recall, not the error of a sample; give sampling_memory(...)"
            )
        return _JoinRequirements(join.memory_for, join.recall)
    if not callable(join):
        raise InputError(f"{join!r} is not a payoff; give a Payoff or a function of the level")
    return _JoinRequirements(join, partial(_best_level_for, join, metric))


def _best_level_for(needs: Requirement, metric: Metric, rows: int) -> float:
    return _best_level(lambda level: needs(level) <= rows, metric, 1.0)


def _best_level(holds: Callable[[float], bool], metric: Metric, highest: float) -> float:
    """The best level that holds: the largest recall up to `highest`, or the smallest error."""
    good, bad = (0.0, highest) if metric == "recall" else (_sufficient_error(holds), 0.0)
    if holds(bad):
        return bad
    for _ in range(_HALVINGS):
        middle = (good + bad) / 2
        good, bad = (middle, bad) if holds(middle) else (good, middle)
    return good


def _sufficient_error(holds: Callable[[float], bool]) -> float:
    """An error that is large enough for the memory."""
    error = 1.0
    while not holds(error):
        error *= 2
        if math.isinf(error):
            raise InputError("no error is large enough for this memory; give a larger total")
    return error


def _whole_rows(memory: float) -> float:
    """Whole rows, at least one; infinite if no memory suffices."""
    if math.isnan(memory):
        raise InputError("the memory for a level is NaN; each join's function must return a number of rows")
    return max(1.0, float(np.ceil(memory - _ROUNDING)))


def _equal_levels(
    joins: list[_JoinRequirements], total: int, weights: list[float], metric: Metric
) -> list[int]:
    """The memory of each join with which all reach the best possible common level."""
    cap = 1.0 if metric == "recall" else math.inf

    def rows(level: float) -> list[float]:
        pairs = zip(joins, weights, strict=True)
        return [_whole_rows(join.needs(min(cap, weight * level))) for join, weight in pairs]

    def holds(level: float) -> bool:
        return sum(rows(level)) <= total

    if metric == "recall" and not holds(0.0):
        raise InputError(
            f"total is {total}, but recall 0 alone needs {sum(rows(0.0)):g} rows; give at least that many"
        )
    memory = [int(count) for count in rows(_best_level(holds, metric, 1 / min(weights)))]
    return _distribute_rest(memory, joins, total, weights, metric)


def _distribute_rest(
    memory: list[int], joins: list[_JoinRequirements], total: int, weights: list[float], metric: Metric
) -> list[int]:
    """Distribute the remaining rows: one each for the joins of the lowest level, then in proportion."""
    reached = [join.reaches(rows) for join, rows in zip(joins, memory, strict=True)]
    best, sign = (1.0, 1.0) if metric == "recall" else (0.0, -1.0)
    lacking = [i for i, level in enumerate(reached) if level != best]
    worst_first = sorted(lacking, key=lambda i: sign * reached[i] / weights[i])
    for i in worst_first[: total - sum(memory)]:
        memory[i] += 1
    return in_proportion([float(rows) for rows in memory], total)


def in_proportion(shares: Sequence[float], total: int) -> list[int]:
    """Whole rows in proportion to the shares, at least one each; the largest remainders are rounded up."""
    parts = np.array(shares) if any(shares) else np.ones(len(shares))
    exact = total * parts / parts.sum()
    rows = np.maximum(1, np.floor(exact)).astype(np.int64)
    for _ in range(rows.sum() - total):  # the largest shares give up the rows that were rounded up to 1
        rows[np.argmax(rows)] -= 1
    spare = total - rows.sum()
    rows[np.argsort(rows - exact, kind="stable")[:spare]] += 1
    return [int(count) for count in rows]
