"""The expected results of a row, by the process of the stream that it is matched with."""

from __future__ import annotations

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
