"""A simulation of a cache over recorded references; each reference matches one row of a relation."""

from __future__ import annotations

import heapq
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, Literal

import numpy as np
import pyarrow as pa

from tidegate.caching.forecast import run_by_forecast
from tidegate.caching.policies import (
    GivenProbability,
    NextUse,
    RandomOrder,
    Recency,
    ReferenceCount,
    ReferenceScore,
    check_probabilities,
)
from tidegate.compiled import kernel
from tidegate.models import LearnedFrequency, Process, Stationary
from tidegate.models.processes.process import as_integers
from tidegate.policies import Survival
from tidegate.types import InputError, check_choice

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tidegate.types import Array

CachePolicy = Literal["lfd", "lru", "lfu", "a0", "random", "heeb"]


@dataclass(frozen=True)
class CacheReport:
    """Hits and misses of a simulated cache, and which references hit."""

    hits: int
    misses: int
    hit: Array = field(repr=False)

    @property
    def hit_rate(self) -> float:
        """The fraction of references that hit; 1 when there were none."""
        return self.hits / len(self.hit) if len(self.hit) else 1.0


def simulate_cache(
    references: object,
    capacity: int,
    policy: CachePolicy = "lru",
    *,
    probabilities: Mapping[Any, float] | None = None,
    process: Process | None = None,
    survival: Survival | None = None,
    bypass: bool = True,
    seed: int = 0,
) -> CacheReport:
    """Run a stream of references against a cache of a relation's rows, and report hits and misses.

    A reference hits if its row is cached. Otherwise the row is fetched. If the cache is full, the row with the
    lowest score leaves: one of the cached rows or the fetched one.

    Parameters
    ----------
    references
        The keys that are referred to, in order: anything that Arrow can hold, without nulls.
    capacity
        How many rows the cache holds.
    policy
        The rows that stay. Of equal rows the one that was referred to last stays.

        | policy | keeps the rows that |
        |---|---|
        | "lfd" | are needed soonest; it knows the future, and no policy hits more often |
        | "lru" | were referred to last |
        | "lfu" | were referred to most often so far, whether cached at the time or not |
        | "a0" | are most probable, by `probabilities` |
        | "heeb" | have the highest expected benefit, by `process` |
        | "random" | are drawn at random |
    probabilities
        For "a0": the probability of each key to be referred to; 0 for a key that is not listed.
    process
        For "heeb": the process that references follow, one at each time step from 0 on; keys must be whole numbers.
        Without a process the shares of references so far decide: the most frequent rows stay.
    survival
        For "heeb" with a process: the probability that a row is still cached after some steps. By default
        exponential, with an alpha of the capacity until the first row has left, and then by the observed lifetimes.
    bypass
        Whether the fetched row itself may be left out, as in the caching of streams; the classic problem always
        caches it.
    seed
        Fixes the draws of "random".

    Examples
    --------
    >>> import tidegate as tg
    >>> pages = [7, 0, 1, 2, 0, 3, 0, 4, 2, 3, 0, 3, 2, 1, 2, 0, 1, 7, 0, 1]
    >>> [tg.simulate_cache(pages, 3, policy, bypass=False).misses for policy in ("lfd", "lru")]
    [9, 12]
    >>> tg.simulate_cache(pages, 3, "lfd").misses
    8

    Values that return to a level: rows near the level are better than the most recent ones.

    >>> import numpy as np
    >>> noise, level = np.random.default_rng(1).normal(scale=42, size=3650), [200.0]
    >>> for step in noise:
    ...     level.append(56 + 0.72 * level[-1] + step)
    >>> days = np.round(level).astype(int)
    >>> by_level = tg.simulate_cache(days, 100, "heeb", process=tg.models.AR1.fit(days)).hits
    >>> by_level, tg.simulate_cache(days, 100, "lru").hits, tg.simulate_cache(days, 100, "lfu").hits
    (2160, 1651, 2040)

    References
    ----------
    On Joining and Caching Stochastic Streams, sections 2 (LFD, A0), 3 (the caching problem), 5.3
    (HEEB) and 8 (LRU, LFU, RAND).

    Deviations
    ----------
    With a stationary process "heeb" ranks by the shares themselves, as section 7.2 shows that it would, and learned
    shares are those of "lfu". Lifetimes are updated every 256 references. Benefits come from tables that are exact
    enough for the choices to be those of direct sums. They are rounded to 36 binary digits, so that rows of equal
    benefit are ties.
    """
    check_choice(policy, CachePolicy, "cache policy")
    if isinstance(capacity, bool) or not isinstance(capacity, int | np.integer) or capacity < 1:
        raise InputError(f"capacity must be a positive whole number of rows; got {capacity!r}")
    check_probabilities(policy, probabilities)
    if (process is not None or survival is not None) and policy != "heeb":
        raise InputError(f"policy {policy!r} with process={process!r} and survival={survival!r}; use 'heeb'")
    if survival is not None and process is None:
        raise InputError(f"survival={survival!r} needs a process; give process=")
    encoded = _encoded(references)
    keys = encoded.indices.to_numpy(zero_copy_only=False).astype(np.int64)
    names = encoded.dictionary.to_pylist()
    if policy == "random":
        places = RandomOrder(seed).evicted_places(len(keys), int(capacity) + bypass)
        hit = _run_at_random(keys, places, len(names), int(capacity))
        return _report(hit)
    if process is not None:
        values = as_integers(names)
        if not isinstance(process, Stationary):
            return _report(run_by_forecast(keys, values, int(capacity), process, survival, bypass=bypass))
        policy, probabilities = "a0", process.by_value()
    scores = _score(policy, names, probabilities).by_reference(np.arange(len(names)), keys)
    return _report(_run(keys, scores, len(names), int(capacity), bypass))


def _encoded(references: object) -> pa.DictionaryArray:
    """The references as numbers of their distinct keys."""
    if hasattr(references, "columns"):
        raise InputError(
            f"references is a {type(references).__name__} with columns; give the column of the keys"
        )
    try:
        encoded = pa.array(references).dictionary_encode()
    except pa.ArrowException as error:
        raise InputError(
            f"references cannot be compared with each other ({error}); give keys of one plain type"
        ) from error
    if encoded.null_count:
        raise InputError(f"{encoded.null_count} references are null and match no row; leave them out")
    return encoded


def _report(hit: Array) -> CacheReport:
    hits = int(hit.sum())
    return CacheReport(hits, len(hit) - hits, hit)


def _score(
    policy: CachePolicy, names: list[object], probabilities: Mapping[Any, float] | None
) -> ReferenceScore:
    """The score of a policy for keys that are numbered in the order of `names`."""
    if policy == "lfd":
        return NextUse()
    if policy == "lru":
        return Recency()
    if probabilities is not None:
        given = np.array([probabilities.get(name, 0.0) for name in names], np.float64)
        return GivenProbability(np.arange(len(names)), given)
    return ReferenceCount(LearnedFrequency(horizon=None))


_NEVER: Final = -1


@kernel
def _run(keys: Array, scores: Array, names: int, capacity: int, bypass: bool) -> Array:
    """Which references hit, if a key has the score of its last reference.

    An entry of the heap is out of date unless its reference is the last one to its key, and is then skipped. There
    are never more entries than references.
    """
    hit = np.zeros(len(keys), np.bool_)
    last, cached, held = np.full(names, _NEVER), np.zeros(names, np.bool_), 0
    lowest = [(0.0, np.int64(0)) for _ in range(0)]
    for i in range(len(keys)):
        key = keys[i]
        hit[i] = cached[key]
        held += not cached[key]
        cached[key], last[key] = True, i
        # A row that is not in the heap yet cannot be evicted.
        if bypass:
            heapq.heappush(lowest, (scores[i], np.int64(i)))
        while held > capacity:
            at = heapq.heappop(lowest)[1]
            if last[keys[at]] == at:
                cached[keys[at]] = False
                held -= 1
        if not bypass:
            heapq.heappush(lowest, (scores[i], np.int64(i)))
    return hit


@kernel
def _run_at_random(keys: Array, places: Array, names: int, capacity: int) -> Array:
    """Which references hit, if a miss evicts the row at its place; the place after the last is the fetched row."""
    hit = np.zeros(len(keys), np.bool_)
    cached, held = np.zeros(names, np.bool_), 0
    rows = np.empty(min(capacity, names), np.int64)
    for i in range(len(keys)):
        key = keys[i]
        hit[i] = cached[key]
        if cached[key]:
            continue
        place = held
        if held == capacity:
            place = places[i]
            if place == capacity:
                continue
            cached[rows[place]] = False
        else:
            held += 1
        rows[place], cached[key] = key, True
    return hit
