"""Which rows fit a budget: those with the highest scores, and among equal scores the newest."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from tidegate.compiled import inlined, kernel
from tidegate.types import InputError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tidegate.types import Array, Budget


def best(scores: Array, ids: Sequence[Array], sizes: Array | None, budget: Budget) -> Array:
    """Mark the rows that stay.

    Parameters
    ----------
    scores
        Rows with higher scores stay.
    ids
        Row numbers, in one part or two; among equal scores the higher number stays.
    sizes
        Bytes of each row, if the budget is in bytes. A row that does not fit is skipped; smaller rows with lower
        scores may still stay.
    budget
        The budget.

    Examples
    --------
    >>> from tidegate.types import Budget
    >>> best(np.array([1.0, 3.0, 1.0, 0.0]), [np.arange(4)], None, Budget(rows=2))
    array([False,  True,  True, False])
    """
    if sizes is not None:
        return _greedy(np.lexsort((-np.concatenate(ids), -scores)), sizes, budget.limit)
    keep = np.ones(len(scores), bool)
    excess = len(scores) - budget.limit
    if excess <= 0:
        return keep
    below, tied = _apart(scores, _smallest(scores, excess - 1))
    wanted = excess - len(below)
    if not 1 <= wanted <= len(tied):
        raise InputError(
            "a policy's scores contain NaN, which cannot be ranked; use -inf for rows that should be evicted"
        )
    if wanted < len(tied):
        numbers = _of_parts(ids[0], ids[-1], tied)
        tied = tied[numbers <= _smallest(numbers, wanted - 1)]
    keep[below] = False
    keep[tied] = False
    return keep


@inlined
def leaves_first(score: float, number: int, other_score: float, other_number: int) -> bool:
    """Whether a row is evicted before another one: the order that `best` follows, for compiled loops."""
    return score < other_score or (score == other_score and number < other_number)


@kernel
def _of_parts(first: Array, second: Array, places: Array) -> Array:
    """The values at these positions of two concatenated arrays, or of one, without concatenating them."""
    found = np.empty(len(places), first.dtype)
    for i in range(len(places)):
        at = places[i]
        found[i] = first[at] if at < len(first) else second[at - len(first)]
    return found


_SAMPLE: Final = 1024


def _smallest(scores: Array, k: int) -> float:
    """The k-th smallest score, counting from 0.

    A sample gives bounds first, so that only the few scores between them have to be partitioned. If the bounds are
    wrong, all scores are.
    """
    if len(scores) > 4 * _SAMPLE:
        sample = np.sort(scores[:: len(scores) // _SAMPLE])
        share = k / len(scores)
        middle, margin = int(share * len(sample)), 2 + int(4 * (share * (1 - share) * len(sample)) ** 0.5)
        low = sample[middle - margin] if middle > margin else _least_of(scores.dtype)
        high = sample[min(len(sample) - 1, middle + margin)]
        below, lowest, inside, highest = _between(scores, low, high)
        rank = k - below - lowest
        if -lowest <= rank < 0:
            return float(low)
        if 0 <= rank < len(inside):
            return float(np.partition(inside, rank)[rank])
        if 0 <= rank - len(inside) < highest:
            return float(high)
    return float(np.partition(scores, k)[k])


def _least_of(dtype: np.dtype[np.generic]) -> float:
    return -np.inf if dtype.kind == "f" else np.iinfo(np.dtype(dtype.str)).min


# Both loops write every row and advance only past those that count: a branch would be mispredicted too often.


@kernel
def _between(scores: Array, low: float, high: float) -> tuple[int, int, Array, int]:
    """The number of scores below `low` and equal to it, the scores between it and `high`, and the number at `high`.

    Many scores may be equal to a bound, and those need no partitioning.
    """
    below, lowest, n, highest = 0, 0, 0, 0
    inside = np.empty(len(scores), scores.dtype)
    for score in scores:
        inside[n] = score
        below += score < low
        lowest += score == low
        n += (score > low) & (score < high)
        highest += (score == high) & (high > low)
    return below, lowest, inside[:n], highest


@kernel
def _apart(scores: Array, least: float) -> tuple[Array, Array]:
    """The positions of the scores below `least`, and of those equal to it."""
    below, tied = np.empty(len(scores), np.int32), np.empty(len(scores), np.int32)
    n, ties = 0, 0
    for i in range(len(scores)):
        below[n] = i
        tied[ties] = i
        n += scores[i] < least
        ties += scores[i] == least
    return below[:n], tied[:ties]


@kernel
def _greedy(order: Array, sizes: Array, limit: int) -> Array:
    keep = np.zeros(len(order), np.bool_)
    used = 0
    for i in order:
        if used + sizes[i] <= limit:
            used += sizes[i]
            keep[i] = True
    return keep
