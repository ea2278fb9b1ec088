"""The expected results of a row, by the process of the stream that it is matched with."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Literal

import numpy as np

from tidegate.models.processes.process import Markov, as_integers
from tidegate.models.validation import at_least_one
from tidegate.types import Array, InputError, check_choice

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from tidegate.models.processes.process import History, Process

Problem = Literal["joining", "caching"]
"""Two streams, where a row may match several times; or a stream and a cached relation, where only the next use
counts, because a row that is used is fetched again anyway."""


def gains(
    process: Process,
    history: History,
    values: ArrayLike,
    ahead: int,
    *,
    problem: Problem = "joining",
    lasting: ArrayLike | None = None,
) -> Array:
    """The expected results of each row at each of the next time steps.

    Parameters
    ----------
    process
        The process of the stream that the rows are matched with, one value per time step.
    history
        The observed history of that stream.
    values
        The join value of each row.
    ahead
        The number of time steps to look ahead.
    problem
        "joining": the probability that the value arrives then. "caching": that it arrives then for the first time.
    lasting
        The number of further steps for which each row stays in its window; by default for all.

    Returns
    -------
    Array
        A row for each of `values`, a column for each of the steps 1 to `ahead`.

    Examples
    --------
    >>> from tidegate.models import History, Stationary
    >>> coin = Stationary({0: 0.5, 1: 0.5})
    >>> gains(coin, History(0), [1], 3)
    array([[0.5, 0.5, 0.5]])
    >>> gains(coin, History(0), [1], 3, problem="caching")
    array([[0.5  , 0.25 , 0.125]])
    >>> gains(coin, History(0), [1, 0], 3, lasting=[2, 0])
    array([[0.5, 0.5, 0. ],
           [0. , 0. , 0. ]])

    References
    ----------
    On Joining and Caching Stochastic Streams, section 5.1: the increments of Lemma 1 and Corollary 1.

    Deviations
    ----------
    The paper does not compute first uses for processes that are not independent. Here they
    follow from the probabilities of visits and of returns, since every visit is the first or a return after it.
    This is exact for a Markov process such as a random walk; for an AR(1) process it is exact up to rounding.
    """
    check_choice(problem, Problem, "problem")
    at_least_one(ahead, "ahead")
    rows, steps = as_integers(values), np.arange(1, ahead + 1)
    expected = process.probability(history, steps, rows)
    if problem == "caching":
        expected = _first_uses(process, rows, steps, expected)
    if lasting is not None:
        expected = np.where(steps[None, :] <= np.asarray(lasting)[:, None], expected, 0.0)
    return expected


def _first_uses(process: Process, values: Array, steps: Array, visits: Array) -> Array:
    if process.independent:
        missed = np.cumprod(1 - visits, axis=1)
        first: Array = visits * np.concatenate([np.ones((len(values), 1)), missed[:, :-1]], axis=1)
        return first
    if not isinstance(process, Markov):
        raise InputError(
            f"{process!r} is neither independent nor Markov; derive it from Markov to use it for caching"
        )
    returns = process.returns(steps, values)
    first = visits.copy()
    for step in range(1, len(steps)):
        first[:, step] -= np.einsum("ij,ij->i", first[:, :step], returns[:, step - 1 :: -1])
    # Values below 0 or above the visits are rounding errors.
    return np.clip(first, 0.0, visits)


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
