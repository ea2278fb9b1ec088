"""How to divide memory between a reservoir and the join that fills it."""

from __future__ import annotations

from functools import cache

from tidegate.allocation import Requirement, sampling_memory
from tidegate.models.joint_payoff import Curves
from tidegate.models.sample_memory import Frequencies, sample_rows
from tidegate.models.validation import at_least_one, positive
from tidegate.sampling.reservoirs.distributions import mean_inverse
from tidegate.sampling.reservoirs.join_reservoir import check_within
from tidegate.types import InputError, Window, WindowSpan

_HALVINGS = 50


def sample_error(
    size: int,
    budget: int,
    model: Curves | Frequencies,
    *,
    rates: tuple[float, float],
    window: Window | tuple[WindowSpan, WindowSpan],
    results: float,
    cv: float = 1.0,
) -> float:
    """The relative standard error of a mean over a join's results, if reservoir and join share a budget.

    The join gets the memory that the reservoir leaves, and is sampled at the fraction `p` that this allows. When the
    sample is used, it has `n` results: a binomial number, but at most the size of the reservoir. The error is
    `cv * sqrt(E[1/n] - 1/results)`.

    Parameters
    ----------
    size
        The number of results that the reservoir holds.
    budget
        The number of rows that join and reservoir hold together; a result counts as one row.
    model, rates, window
        As in `models.sample_rows`.
    results
        The number of results of the join when the sample is used (`expected_results`).
    cv
        The coefficient of variation of the results: standard deviation divided by mean.

    Examples
    --------
    >>> keys = [1 / 50] * 50
    >>> join = {"model": (keys, keys), "rates": (1, 5), "window": (500, 500), "results": 100_000}
    >>> [round(sample_error(size, 1600, **join), 4) for size in (100, 1000, 1300, 1500)]
    [0.0999, 0.0315, 0.028, 0.0505]
    """
    check_within(size, budget)
    count, variation = int(positive(results, "results")), positive(cv, "cv")
    at_least_one(count, "results", "results")
    fraction = _fraction(budget - size, model, rates, window)
    inverse = mean_inverse(size, count, fraction)
    return float(variation * max(0.0, inverse - 1 / count) ** 0.5)


def best_size(
    budget: int,
    model: Curves | Frequencies,
    *,
    rates: tuple[float, float],
    window: Window | tuple[WindowSpan, WindowSpan],
    results: float,
) -> int:
    """The size of a reservoir with the smallest error of a mean; parameters as in `sample_error`.

    A small reservoir has few results. A large one leaves the join so little memory that it is not filled. The best
    one is just filled. It does not depend on the variation of the results.

    Examples
    --------
    >>> keys = [1 / 50] * 50
    >>> best_size(1600, (keys, keys), rates=(1, 5), window=(500, 500), results=100_000)
    1288

    References
    ----------
    Reservoir Sampling over Memory-Limited Stream Joins, section 3: "an interesting future research problem".
    """
    if at_least_one(budget, "budget", "rows") < len(("join", "reservoir")):
        raise InputError(f"budget must be at least 2 rows, for the join and for the reservoir; got {budget}")

    @cache
    def error(size: int) -> float:
        return sample_error(size, budget, model, rates=rates, window=window, results=results)

    # The error falls with the size until the reservoir is no longer filled, then it rises.
    low, high = 1, budget - 1
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if error(middle) <= error(middle + 1) else (middle + 1, high)
    return low


def reservoir_memory(
    model: Curves | Frequencies,
    *,
    rates: tuple[float, float],
    window: Window | tuple[WindowSpan, WindowSpan],
    results: float,
    cv: float,
) -> Requirement:
    """The smallest memory of a join and its reservoir for an error of a mean, for `allocate(metric="error")`.

    Each error needs a sampling fraction (`allocation.sampling_memory`); the reservoir holds that fraction of the
    results. `best_size` returns the part of a query's memory for its reservoir.

    Examples
    --------
    Two queries share 3,000 rows; the results of one vary twice as much:

    >>> import tidegate as tg
    >>> keys = [1 / 50] * 50
    >>> join = {"model": (keys, keys), "rates": (1, 5), "window": (500, 500), "results": 100_000}
    >>> shared = tg.allocate([reservoir_memory(**join, cv=cv) for cv in (1, 2)], total=3000, metric="error")
    >>> shared.memory, [best_size(rows, **join) for rows in shared.memory]
    ([619, 2381], [490, 1937])

    References
    ----------
    Reservoir Sampling over Memory-Limited Stream Joins, section 7 (future work): "the developed algorithm should
    optimally allocate the memory between reservoirs and join buffers of all participating queries".
    """
    join = sampling_memory(model, rates=rates, window=window, results=results, cv=cv)

    def memory(error: float) -> float:
        return join(error) + results / (1 + results * (error / cv) ** 2)

    return memory


def _fraction(
    rows: int,
    model: Curves | Frequencies,
    rates: tuple[float, float],
    window: Window | tuple[WindowSpan, WindowSpan],
) -> float:
    """The largest fraction of a join's results that can be sampled with this number of rows."""
    low, high = 0.0, 1.0
    if sample_rows(model, high, rates=rates, window=window) <= rows:
        return high
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        fits = sample_rows(model, middle, rates=rates, window=window) <= rows
        low, high = (middle, high) if fits else (low, middle)
    return low
