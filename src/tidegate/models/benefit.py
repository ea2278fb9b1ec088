"""What a row may be expected to bring, by a process of the stream that it is matched with."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Literal

import numpy as np

from tidegate.models.numbers import at_least_one
from tidegate.models.process import Markov, whole
from tidegate.types import Array, InputError, check_choice

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from tidegate.models.process import History, Process

Problem = Literal["joining", "caching"]
"""Two streams, where a row may match again and again; or one stream against a relation, where only the next use
counts, because a relation's row that is used is at hand again."""


def gains(
    process: Process,
    history: History,
    values: ArrayLike,
    ahead: int,
    *,
    problem: Problem = "joining",
    lasting: ArrayLike | None = None,
) -> Array:
    """The results that each row may be expected to bring at each of the next time steps.

    Parameters
    ----------
    process
        The stream that the rows are matched with, one value a time step.
    history
        What was observed of that stream.
    values
        The join value of each row.
    ahead
        How many time steps to look ahead.
    problem
        "joining": the probability that the value comes then. "caching": that it comes then for the first time.
    lasting
        For how many more steps each row stays in its window; by default for all.

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
    For a first use of a process that is not independent the paper gives no way to reckon. Here it follows from the
    probabilities of coming and of coming back, by taking apart every visit into the first and a return: exact for
    a Markov process, and so for walks; for an AR(1) as near as its rounding allows.
    """
    check_choice(problem, Problem, "problem")
    at_least_one(ahead, "ahead")
    rows, steps = whole(values), np.arange(1, ahead + 1)
    found = process.probability(history, steps, rows)
    if problem == "caching":
        found = _first(process, rows, steps, found)
    if lasting is not None:
        found = np.where(steps[None, :] <= np.asarray(lasting)[:, None], found, 0.0)
    return found


def _first(process: Process, values: Array, steps: Array, visits: Array) -> Array:
    if process.independent:
        missed = np.cumprod(1 - visits, axis=1)
        first: Array = visits * np.concatenate([np.ones((len(values), 1)), missed[:, :-1]], axis=1)
        return first
    if not isinstance(process, Markov):
        raise InputError(
            f"{process!r} is neither independent nor Markov; derive it from Markov to cache by it"
        )
    returns = process.returns(steps, values)
    first = visits.copy()
    for step in range(1, len(steps)):
        first[:, step] -= np.einsum("ij,ij->i", first[:, :step], returns[:, step - 1 :: -1])
    # What is rounded below 0, or above what is left, is rounding.
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
    """The results that each row may be expected to bring within 1, 2, ... `ahead` steps: B_x.

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
    Section 7.3 lets the caching benefit of a moving window grow for one step too long; this is by the corollary.
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
    """Mark rows that an optimal policy may discard: the largest dominated subset that is to go.

    Rows are dominated if each that would stay is expected to bring at least as much as each of them, within any
    number of steps. Benefits are compared as far as they are given: let them reach to the end of the windows, or to
    where nothing more can come.

    Parameters
    ----------
    benefits
        The cumulative benefits of all candidates, a row each (`cumulative_benefit`), whichever stream they are of.
    room
        How many of them may stay.
    processes
        The processes of all streams concerned. They must be independent: where what is observed meanwhile tells more
        of the future, a row that is dominated now may still be the one to keep.

    Returns
    -------
    Array
        True for each row that may go: at most as many as have no room, often fewer.

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
    The theorem is stated for all processes but holds for independent ones only: its proof lets two policies differ in
    one row and nothing else, while a policy may choose when to give up a row by what it has seen since.
    """
    concerned = list(processes)
    if not concerned:
        raise InputError(
            f"safe_to_discard was given no processes to judge {len(benefits)} rows by; give those of all streams "
            "concerned: where one is not independent, dominance does not tell who may go"
        )
    for process in concerned:
        if not process.independent:
            raise InputError(
                f"{process!r} is not independent, so dominance does not tell who may go; rank by expected benefit, "
                "such as with policy 'heeb'"
            )
    count = len(benefits)
    chosen = np.zeros(count, bool)
    leaving = min(count - room, count)
    if leaving <= 0:
        return chosen
    # In lexical order a row comes after all that it dominates, so a dominated subset is a beginning of it.
    order = np.lexsort(benefits.T[::-1])
    ranked = benefits[order]
    most = np.maximum.accumulate(ranked, axis=0)
    least = np.minimum.accumulate(ranked[::-1], axis=0)[::-1]
    parted = np.append((least[1:] >= most[:-1]).all(axis=1), True)
    ends = np.flatnonzero(parted[:leaving])
    if len(ends):
        chosen[order[: ends[-1] + 1]] = True
    return chosen
