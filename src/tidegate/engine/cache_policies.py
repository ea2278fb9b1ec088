"""Who stays in a cache that is filled in batches: the policies of `simulate_cache` that need no future."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final, Literal, Protocol

import numpy as np
import pyarrow as pa

from tidegate.draws import draws, mix
from tidegate.engine.cache_outlook import Foreseeing
from tidegate.engine.key_codes import key_codes
from tidegate.models.horizon import REMEMBERED_WINDOWS
from tidegate.models.learned_frequency import LearnedFrequency
from tidegate.types import InputError, check_choice

if TYPE_CHECKING:
    from tidegate.types import Array, Budget

Retention = Literal["heeb", "lru", "lfu", "a0", "random"]

_COUNTED: Final = 65_536
_KEYS_A_ROW: Final = 4


class Ranking(Protocol):
    """What ranks the rows of a cache: it is shown every reference, and scores whoever may stay."""

    @property
    def steady(self) -> bool:
        """Whether rows that nobody refers to keep their order, and are never above one that was above them."""

    def observe(self, codes: Array, places: Array, now: int) -> None:
        """See references, of which there were `now` so far: the codes of the keys, and to which of them each was."""

    def scores(self, codes: Array, last: Array, lifetime: float) -> Array:
        """Higher stays.

        By the codes of keys, the number of the last reference to each, and for how many references rows stay.
        """


def check_probabilities(policy: str, probabilities: Mapping[Any, float] | None) -> None:
    """Refuse them where they are missing, of no use, or cannot be ranked."""
    if (probabilities is not None) != (policy == "a0"):
        raise InputError(
            f"policy {policy!r} with probabilities={probabilities!r}; give them with 'a0' and with no other"
        )
    if np.isnan(np.array([*(probabilities or {}).values()], np.float64)).any():
        raise InputError("a probability is NaN, which cannot be ranked; use 0 for what never comes")


def ranking(
    policy: Retention,
    budget: Budget,
    key: pa.DataType,
    probabilities: Mapping[Any, float] | None = None,
    seed: int = 0,
) -> Ranking:
    """Start a policy for a cache of this size, and of keys of this type.

    The idea of "heeb" where references are independent draws: what a cached row will bring in ``dt`` steps is
    ``1 - (1 - p)**dt``, so one row dominates another if it is more probable, whatever the estimate of its lifetime,
    and the rows with the greatest share of references stay. The shares are learned, and references of long ago
    fade, with a half-life of so many references as eight caches have rows. Where keys are whole numbers or dates,
    and references are found to follow a process, it is by the process (`tidegate.engine.cache_outlook`).

    References
    ----------
    On Joining and Caching Stochastic Streams, sections 2 (A0), 5 (dominance), 7.2 (stationary: the least probable
    goes) and 8 (LRU, LFU, RAND).

    Deviations
    ----------
    "lfu" and "heeb" count up to 65,536 keys, or four times as many as the cache has rows, one by one; beyond these a
    sketch finds those that are frequent.
    """
    check_choice(policy, Retention, "cache policy")
    check_probabilities(policy, probabilities)
    if policy == "lru":
        return _Recency()
    if policy == "random":
        return _Chance(seed)
    if probabilities is not None:
        return _Given(probabilities, key)
    counted = max(_COUNTED, _KEYS_A_ROW * (budget.rows or 0))
    rows = budget.rows or _COUNTED
    if policy == "lfu":
        return _Share(LearnedFrequency(counted, None))
    shares = _Share(LearnedFrequency(counted, REMEMBERED_WINDOWS * rows))
    return Foreseeing(shares) if pa.types.is_integer(key) or pa.types.is_date32(key) else shares


class _Recency:
    """Who was referred to last."""

    steady: Final = True

    def observe(self, codes: Array, places: Array, now: int) -> None:
        pass

    def scores(self, codes: Array, last: Array, lifetime: float) -> Array:  # noqa: ARG002 - no need of who it is
        return last


class _Share:
    """Who has the greatest share of all references."""

    steady: Final = True

    def __init__(self, model: LearnedFrequency) -> None:
        self._learner = model.start()

    def observe(self, codes: Array, places: Array, now: int) -> None:
        times = np.bincount(places, minlength=len(codes))
        self._learner.observe("left", codes, now, times)

    def scores(self, codes: Array, last: Array, lifetime: float) -> Array:  # noqa: ARG002 - decides among equals only
        return self._learner.share("left", codes)


class _Given:
    """Who is most probable, by what was said; a key that is not listed is not."""

    steady: Final = True

    def __init__(self, probabilities: Mapping[Any, float], key: pa.DataType) -> None:
        try:
            names = pa.array([*probabilities], key)
        except (pa.ArrowException, OverflowError) as error:
            raise InputError(
                f"probabilities have keys that are no {key} ({error}); give them by the keys of the relation"
            ) from error
        codes = key_codes(names)
        order = np.argsort(codes, kind="stable")
        # Behind the last stands what no key has.
        self._codes = codes[order]
        self._shares = np.append(np.array([*probabilities.values()], np.float64)[order], 0.0)

    def observe(self, codes: Array, places: Array, now: int) -> None:
        pass

    def scores(self, codes: Array, last: Array, lifetime: float) -> Array:  # noqa: ARG002 - the shares are given
        at = np.searchsorted(self._codes, codes)
        listed = np.append(self._codes, 0)[at] == codes
        shares: Array = np.where(listed & (at < len(self._codes)), self._shares[at], 0.0)
        return shares


class _Chance:
    """Whoever is drawn, each time anew."""

    steady: Final = False

    def __init__(self, seed: int) -> None:
        self._seed, self._now = np.uint64(seed % 2**64), 0

    def observe(self, codes: Array, places: Array, now: int) -> None:  # noqa: ARG002 - no need of who it was
        self._now = now

    def scores(self, codes: Array, last: Array, lifetime: float) -> Array:  # noqa: ARG002 - all are alike
        salt = int(mix(mix(self._seed) ^ np.uint64(self._now)) >> np.uint64(1))
        return draws(np.arange(len(codes)), salt)
