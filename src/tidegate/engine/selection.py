"""Which rows fit a budget: the best by score, and among equals the newest."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from tidegate.engine.compiled import kernel

if TYPE_CHECKING:
    from tidegate.types import Array, Budget


def best(scores: Array, ids: Array, sizes: Array | None, budget: Budget) -> Array:
    """Mark the rows that stay.

    Parameters
    ----------
    scores
        Higher stays.
    ids
        Row numbers; of equal scores the higher number stays.
    sizes
        Bytes of each row, where the budget is in bytes. A row that no longer fits is passed over, and
        smaller ones that follow it may still stay.
    budget
        What may stay.

    Examples
    --------
    >>> from tidegate.types import Budget
    >>> best(np.array([1.0, 3.0, 1.0, 0.0]), np.arange(4), None, Budget(rows=2))
    array([False,  True,  True, False])
    """
    if sizes is not None:
        return _greedy(np.lexsort((-ids, -scores)), sizes, budget.limit)
    room = budget.limit
    if len(scores) <= room:
        return np.ones(len(scores), bool)
    if room == 0:
        return np.zeros(len(scores), bool)
    cut = len(scores) - room
    least = _smallest(scores, cut)
    keep: Array = scores > least
    tied = np.flatnonzero(scores == least)
    wanted = room - int(np.count_nonzero(keep))
    if wanted < len(tied):
        newest = np.argpartition(ids[tied], len(tied) - wanted)[len(tied) - wanted :]
        tied = tied[newest]
    keep[tied] = True
    return keep


_SAMPLE: Final = 1024


def _smallest(scores: Array, k: int) -> float:
    """The k-th smallest score, counting from 0.

    A sample brackets it first, so that only the few scores inside the bracket have to be partitioned;
    where the bracket misses, all of them are.
    """
    if len(scores) > 4 * _SAMPLE:
        sample = np.sort(scores[:: len(scores) // _SAMPLE])
        share = k / len(scores)
        middle, margin = int(share * len(sample)), 2 + int(4 * (share * (1 - share) * len(sample)) ** 0.5)
        low, high = sample[max(0, middle - margin)], sample[min(len(sample) - 1, middle + margin)]
        below = int(np.count_nonzero(scores < low)) if middle > margin else 0
        inside = scores[(scores >= low) & (scores <= high)] if middle > margin else scores[scores <= high]
        if below <= k < below + len(inside):
            return float(np.partition(inside, k - below)[k - below])
    return float(np.partition(scores, k)[k])


@kernel
def _greedy(order: Array, sizes: Array, limit: int) -> Array:
    keep = np.zeros(len(order), np.bool_)
    used = 0
    for i in order:
        if used + sizes[i] <= limit:
            used += sizes[i]
            keep[i] = True
    return keep
