"""Rows that an optimal policy may discard, because all others have at least their benefit (Theorem 1)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

import numpy as np

from tidegate.models import gains
from tidegate.types import Array, InputError

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from tidegate.models import History, Problem, Process


def cumulative_benefit(
    process: Process,
    history: History,
    values: ArrayLike,
    ahead: int,
    *,
    problem: Problem = "joining",
    lasting: ArrayLike | None = None,
) -> Array:
    """The expected results of each row within 1, 2, ... `ahead` steps: B_x.

    Parameters are those of `gains`.

    Examples
    --------
    >>> from tidegate.models import History, LinearTrend, Noise
    >>> window = LinearTrend(speed=1, offset=0, noise=Noise(bound=2))
    >>> cumulative_benefit(window, History(10), [10, 9], 4)
    array([[0.2, 0.4, 0.4, 0.4],
           [0.2, 0.2, 0.2, 0.2]])

    References
    ----------
    On Joining and Caching Stochastic Streams, Lemma 1 and Corollary 1.

    Deviations
    ----------
    Section 7.3 lets the caching benefit of a moving window grow for one step too long; this follows the corollary.
    """
    return np.cumsum(gains(process, history, values, ahead, problem=problem, lasting=lasting), axis=1)


def dominates(benefit: Array, other: Array, *, strongly: bool = False) -> bool:
    """Whether one row's cumulative benefit is never less than another's; strongly, always more.

    Examples
    --------
    >>> dominates(np.array([1, 2]), np.array([1, 1])), dominates(np.array([1, 2]), np.array([1, 1]), strongly=True)
    (True, False)
    """
    return bool((benefit > other).all() if strongly else (benefit >= other).all())


def safe_to_discard(benefits: Array, room: int, processes: Iterable[Process]) -> Array:
    """Mark rows that an optimal policy may discard: the largest dominated subset that need not stay.

    Rows are dominated if each of the remaining rows has at least their expected benefit within any number of steps.
    Benefits are compared for the steps that are given; they should reach to the end of the windows, or to the last
    step with any benefit.

    Parameters
    ----------
    benefits
        The cumulative benefits of the candidates of both sides, one row each (`cumulative_benefit`).
    room
        The number of rows that may stay.
    processes
        The processes of all streams. They must be independent: if later observations change the forecast, a row
        that is dominated now may still be the best one to keep.

    Returns
    -------
    Array
        True for each row that may be discarded: at most the excess over `room`, often fewer.

    Examples
    --------
    Of four candidates the last is above all, the second below all; the others cross.

    >>> from tidegate.models import Stationary
    >>> benefits = np.array([[2, 2, 2], [0, 1, 2], [1, 2, 4], [2, 4, 6]])
    >>> still = [Stationary({1: 1.0})]
    >>> safe_to_discard(benefits, 1, still), safe_to_discard(benefits, 2, still)
    (array([ True,  True,  True, False]), array([False,  True, False, False]))

    References
    ----------
    On Joining and Caching Stochastic Streams, Theorem 1 and Corollary 2.

    Deviations
    ----------
    The theorem is stated for all processes but holds for independent ones only: its proof
    lets two policies differ in one row only, while a policy may decide by later observations when to discard a row.
    """
    streams = list(processes)
    if not streams:
        raise InputError(
            f"safe_to_discard needs the processes of all streams to judge {len(benefits)} rows; give processes"
        )
    for process in streams:
        if not process.independent:
            raise InputError(
                f"{process!r} is not independent, so dominance does not apply; rank by expected benefit, "
                "such as with policy 'heeb'"
            )
    count = len(benefits)
    discarded = np.zeros(count, bool)
    excess = min(count - room, count)
    if excess <= 0:
        return discarded
    # In lexical order a row comes after all rows that it dominates, so a dominated subset is a prefix.
    order = np.lexsort(benefits.T[::-1])
    ranked = benefits[order]
    most = np.maximum.accumulate(ranked, axis=0)
    least = np.minimum.accumulate(ranked[::-1], axis=0)[::-1]
    separated = np.append((least[1:] >= most[:-1]).all(axis=1), True)
    ends = np.flatnonzero(separated[:excess])
    if len(ends):
        discarded[order[: ends[-1] + 1]] = True
    return discarded
