"""Who stays in a cache that is filled in batches: the policies of `simulate_cache` that need no future."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Literal, Protocol

import numpy as np

from tidegate.draws import draws, mix
from tidegate.models.horizon import REMEMBERED_WINDOWS
from tidegate.models.learned_frequency import LearnedFrequency
from tidegate.types import check_choice

if TYPE_CHECKING:
    from tidegate.types import Array, Budget

Retention = Literal["heeb", "lru", "lfu", "random"]

_COUNTED: Final = 65_536
_KEYS_A_ROW: Final = 4


class Ranking(Protocol):
    """What ranks the rows of a cache: it is shown every reference, and scores whoever may stay."""

    def observe(self, codes: Array, now: int) -> None:
        """See references to keys, of which there were `now` so far."""

    def scores(self, codes: Array, last: Array) -> Array:
        """Higher stays, by the codes of keys and the number of the last reference to each."""


def ranking(policy: Retention, budget: Budget, seed: int = 0) -> Ranking:
    """Start a policy for a cache of this size.

    The idea of "heeb" where references are independent draws: what a cached row will bring in ``dt`` steps is
    ``1 - (1 - p)**dt``, so one row dominates another if it is more probable, whatever the estimate of its lifetime,
    and the rows with the greatest share of references stay. The shares are learned, and references of long ago
    fade, with a half-life of so many references as eight caches have rows.

    References
    ----------
    On Joining and Caching Stochastic Streams, sections 5 (dominance), 7.2 (stationary: the least probable goes) and 8
    (LRU, LFU, RAND).

    Deviations
    ----------
    "lfu" and "heeb" count up to 65,536 keys, or four times as many as the cache has rows, one by one; beyond these a
    sketch finds those that are frequent.
    """
    check_choice(policy, Retention, "cache policy")
    if policy == "lru":
        return _Recency()
    if policy == "random":
        return _Chance(seed)
    counted = max(_COUNTED, _KEYS_A_ROW * (budget.rows or 0))
    rows = budget.rows or _COUNTED
    return _Share(LearnedFrequency(counted, REMEMBERED_WINDOWS * rows if policy == "heeb" else None))


class _Recency:
    """Who was referred to last."""

    def observe(self, codes: Array, now: int) -> None:
        pass

    def scores(self, codes: Array, last: Array) -> Array:  # noqa: ARG002 - no need of who it is
        return last


class _Share:
    """Who has the greatest share of all references."""

    def __init__(self, model: LearnedFrequency) -> None:
        self._learner = model.start()

    def observe(self, codes: Array, now: int) -> None:
        self._learner.observe("left", codes, now)

    def scores(self, codes: Array, last: Array) -> Array:  # noqa: ARG002 - decides among equals only
        return self._learner.share("left", codes)


class _Chance:
    """Whoever is drawn, each time anew."""

    def __init__(self, seed: int) -> None:
        self._seed, self._now = np.uint64(seed % 2**64), 0

    def observe(self, codes: Array, now: int) -> None:  # noqa: ARG002 - no need of who it was
        self._now = now

    def scores(self, codes: Array, last: Array) -> Array:  # noqa: ARG002 - all are alike
        salt = int(mix(mix(self._seed) ^ np.uint64(self._now)) >> np.uint64(1))
        return draws(np.arange(len(codes)), salt)
