"""The scores by which a cache chooses the rows to keep, shared by `simulate_cache` and `LookupCache`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final, Literal, Protocol

import numpy as np
import pyarrow as pa

from tidegate.caching.key_codes import key_codes
from tidegate.caching.process_ranking import ProcessRanking
from tidegate.draws import draws, mix
from tidegate.models.decay import REMEMBERED_WINDOWS
from tidegate.models.frequencies.learned_frequency import LearnedFrequency
from tidegate.types import InputError, check_choice

if TYPE_CHECKING:
    from tidegate.types import Array, Budget

LookupPolicy = Literal["heeb", "lru", "lfu", "a0", "random"]
"""The policies that do not need the future."""

_COUNTED: Final = 65_536
_KEYS_PER_ROW: Final = 4


class ReferenceScore(Protocol):
    """A score that a row gets by a reference and keeps until the next reference to it."""

    def by_reference(self, codes: Array, places: Array) -> Array:
        """The score that each reference gives to its row; `places` are positions in `codes`, the distinct keys."""


class CacheRanking(Protocol):
    """The running policy of a cache: it observes every reference, and scores the rows that may stay."""

    @property
    def steady(self) -> bool:
        """Whether rows without new references keep their order among each other."""

    def observe(self, codes: Array, places: Array, now: int) -> None:
        """Learn from references: their positions in `codes`, the distinct keys, and how many there were so far."""

    def scores(self, codes: Array, last_used: Array, lifetime: float) -> Array:
        """The score of each row; the highest stay.

        Parameters
        ----------
        codes
            The codes of the rows' keys.
        last_used
            The number of the last reference to each row.
        lifetime
            The mean number of references during which rows stay cached.
        """


class Recency:
    """Least recently used leaves first (LRU)."""

    steady: Final = True

    def observe(self, codes: Array, places: Array, now: int) -> None:
        """Nothing to learn."""

    def scores(self, codes: Array, last_used: Array, lifetime: float) -> Array:  # noqa: ARG002 - recency alone
        """The number of the last reference."""
        return last_used

    def by_reference(self, codes: Array, places: Array) -> Array:
        """The number of the reference."""
        return self.scores(codes[places], np.arange(len(places), dtype=np.float64), 0.0)


class ReferenceCount:
    """Least frequently used leaves first (LFU), by all references so far, whether the row was cached then or not."""

    steady: Final = True

    def __init__(self, model: LearnedFrequency) -> None:
        self._learner = model.start()

    def observe(self, codes: Array, places: Array, now: int) -> None:
        """Count the references."""
        self._learner.observe("left", codes, now, np.bincount(places, minlength=len(codes)))

    def scores(self, codes: Array, last_used: Array, lifetime: float) -> Array:  # noqa: ARG002 - decides ties only
        """The share of all references, which ranks rows as their counts do."""
        return self._learner.share("left", codes)

    def by_reference(self, codes: Array, places: Array) -> Array:  # noqa: ARG002 - the places tell keys apart
        """The number of earlier references to the same key."""
        order = np.argsort(places, kind="stable")
        counts = np.empty(len(places))
        counts[order] = np.arange(len(places)) - np.searchsorted(places[order], places[order])
        return counts


class GivenProbability:
    """The least probable leaves first (A0), by given probabilities; a key that is not listed has probability 0.

    Parameters
    ----------
    codes, probabilities
        The listed keys, each once, and their probabilities.
    """

    steady: Final = True

    def __init__(self, codes: Array, probabilities: Array) -> None:
        order = np.argsort(codes, kind="stable")
        # The last entry stands for keys above all listed ones.
        self._codes, self._probabilities = codes[order], np.append(probabilities[order], 0.0)

    @classmethod
    def of(cls, probabilities: Mapping[Any, float], key: pa.DataType) -> GivenProbability:
        """The probabilities of keys of this type."""
        try:
            names = pa.array([*probabilities], key)
        except (pa.ArrowException, OverflowError) as error:
            raise InputError(
                f"probabilities have keys that are not {key} ({error}); use the keys of the relation"
            ) from error
        return cls(key_codes(names), np.array([*probabilities.values()], np.float64))

    def observe(self, codes: Array, places: Array, now: int) -> None:
        """Nothing to learn."""

    def scores(self, codes: Array, last_used: Array, lifetime: float) -> Array:  # noqa: ARG002 - they do not change
        """The given probabilities."""
        at = np.searchsorted(self._codes, codes)
        listed = (np.append(self._codes, 0)[at] == codes) & (at < len(self._codes))
        found: Array = np.where(listed, self._probabilities[at], 0.0)
        return found

    def by_reference(self, codes: Array, places: Array) -> Array:
        """The given probabilities."""
        return self.scores(codes, codes, 0.0)[places]


class NextUse:
    """The row whose next reference is farthest away leaves first (LFD); for recorded references only."""

    def by_reference(self, codes: Array, places: Array) -> Array:  # noqa: ARG002 - the places tell keys apart
        """How soon the next reference to the same key follows: minus its number, or minus infinity."""
        order = np.argsort(places, kind="stable")
        again = np.flatnonzero(places[order][1:] == places[order][:-1])
        following = np.full(len(places), np.inf)
        following[order[again]] = order[again + 1]
        return -following


class RandomOrder:
    """Rows leave at random, all equally likely.

    `simulate_cache` draws one place per miss (`evicted_places`), which is as likely to be any row and costs nothing
    per row; a batch that evicts several rows draws a score for each row (`scores`).
    """

    steady: Final = False

    def __init__(self, seed: int) -> None:
        self._seed, self._now = mix(np.uint64(seed % 2**64)), 0

    def observe(self, codes: Array, places: Array, now: int) -> None:  # noqa: ARG002 - new draws for each batch
        """Start a new set of draws."""
        self._now = now

    def scores(self, codes: Array, last_used: Array, lifetime: float) -> Array:  # noqa: ARG002 - all are alike
        """A draw for each row."""
        return draws(np.arange(len(codes)), int(mix(self._seed ^ np.uint64(self._now)) >> np.uint64(1)))

    def evicted_places(self, references: int, candidates: int) -> Array:
        """For each reference one of the candidates, in case that it misses and the cache is full."""
        drawn = draws(np.arange(references), int(self._seed >> np.uint64(1)))
        places: Array = (drawn * candidates).astype(np.int64)
        return places


def check_probabilities(policy: str, probabilities: Mapping[Any, float] | None) -> None:
    """Refuse probabilities that are missing, not used, or not comparable."""
    if (probabilities is not None) != (policy == "a0"):
        raise InputError(
            f"policy {policy!r} with probabilities={probabilities!r}; give them with policy 'a0' only"
        )
    if np.isnan(np.array([*(probabilities or {}).values()], np.float64)).any():
        raise InputError("a probability is NaN, which cannot be ranked; use 0 for keys that never come")


def start_ranking(
    policy: LookupPolicy,
    budget: Budget,
    key: pa.DataType,
    probabilities: Mapping[Any, float] | None = None,
    seed: int = 0,
) -> CacheRanking:
    """Start a policy for a cache of this size and for keys of this type.

    The idea of "heeb" for independent references: a cached row of probability ``p`` is referred to within ``dt``
    steps with probability ``1 - (1 - p)**dt``. So the more probable row dominates, for any estimate of lifetimes,
    and the rows with the largest share of references stay. The shares are learned, with a half-life of eight times
    as many references as the cache has rows. If keys are whole numbers or dates, and references are found to follow
    a process, the process decides (`tidegate.caching.process_ranking`).

    References
    ----------
    On Joining and Caching Stochastic Streams, sections 2 (A0), 5 (dominance), 7.2 (stationary: the least probable
    leaves) and 8 (LRU, LFU, RAND).

    Deviations
    ----------
    "lfu" and "heeb" count up to 65,536 keys, or four times as many as the cache has rows, one by one. Beyond these a
    sketch finds the frequent ones.
    """
    check_choice(policy, LookupPolicy, "cache policy")
    check_probabilities(policy, probabilities)
    if policy == "lru":
        return Recency()
    if policy == "random":
        return RandomOrder(seed)
    if probabilities is not None:
        return GivenProbability.of(probabilities, key)
    counted = max(_COUNTED, _KEYS_PER_ROW * (budget.rows or 0))
    if policy == "lfu":
        return ReferenceCount(LearnedFrequency(counted, None))
    shares = ReferenceCount(LearnedFrequency(counted, REMEMBERED_WINDOWS * (budget.rows or _COUNTED)))
    return ProcessRanking(shares) if pa.types.is_integer(key) or pa.types.is_date32(key) else shares
