"""A cache of a relation's rows in front of a stream of references, each of which matches one row of the relation."""

from __future__ import annotations

import heapq
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, Literal

import numpy as np
import pyarrow as pa

from tidegate.compiled import kernel
from tidegate.draws import draws, mix
from tidegate.engine.cache_policies import check_probabilities
from tidegate.engine.foretold import run_foretold
from tidegate.models import Process, Stationary
from tidegate.models.process import whole
from tidegate.policies import Survival
from tidegate.types import InputError, check_choice

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tidegate.types import Array

CachePolicy = Literal["lfd", "lru", "lfu", "a0", "random", "heeb"]


@dataclass(frozen=True)
class CacheReport:
    """What was measured: how many references found their row in the cache, and which."""

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

    A reference hits if its row is cached. Otherwise the row is fetched, and if the cache is full, whichever is ranked
    lowest is left out of what is cached and the row that was fetched.

    Parameters
    ----------
    references
        The keys that are referred to, in order: anything that Arrow can hold, without nulls.
    capacity
        How many rows the cache holds.
    policy
        Who stays: "lfd" (those needed soonest, knowing the future: no policy hits more often), "lru" (those
        referred to last), "lfu" (those referred to most often so far, whether cached at the time or not), "a0"
        (the most probable, by the `probabilities` given), "heeb" (those whose next use may be expected soonest, by
        the `process` given) or "random". Among equals the one referred to last stays.
    probabilities
        For "a0": how probable each key is to be referred to; a key that is not listed has none.
    process
        For "heeb": the process that references follow, one at each time step from 0 on; keys are whole numbers then.
        Without one, keys are taken to come with the shares that they have had so far: the most frequent stay.
    survival
        For "heeb" with a process: how likely a row is still cached after some steps. By default exponential, with an
        alpha of the capacity until the first row has left, and then by how long rows are observed to stay.
    bypass
        Whether a row that was fetched may itself be left out, as the caching of streams allows; the classic problem
        caches it always.
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

    A level that values return to: what is near to it is worth more than what was there last.

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
    shares are those of "lfu". How long rows stay is looked at every 256 references. Benefits are looked up in tables
    that are exact enough for the choices to be those of direct sums; they are rounded to 36 binary digits, so that
    rows which are worth the same are equals.
    """
    check_choice(policy, CachePolicy, "cache policy")
    if isinstance(capacity, bool) or not isinstance(capacity, int | np.integer) or capacity < 1:
        raise InputError(f"a cache of {capacity!r} rows holds nothing; give a whole number, at least 1")
    check_probabilities(policy, probabilities)
    if (process is not None or survival is not None) and policy != "heeb":
        raise InputError(f"policy {policy!r} with process={process!r} and survival={survival!r}; use 'heeb'")
    if survival is not None and process is None:
        raise InputError(f"survival={survival!r} without a process to weigh it by; give process=")
    if hasattr(references, "columns"):
        raise InputError(
            f"references is a {type(references).__name__} with columns; give the one that holds the keys"
        )
    try:
        encoded = pa.array(references).dictionary_encode()
    except pa.ArrowException as error:
        raise InputError(f"references cannot be told apart ({error}); give keys of one plain type") from error
    if encoded.null_count:
        raise InputError(f"{encoded.null_count} references are null and match no row; leave them out")
    keys = encoded.indices.to_numpy(zero_copy_only=False).astype(np.int64)
    names = len(encoded.dictionary)
    values = None if process is None else whole(encoded.dictionary.to_pylist())
    if policy == "random":
        drawn = draws(np.arange(len(keys)), int(mix(np.uint64(seed % 2**64)) >> np.uint64(1)))
        hit = _run_at_random(keys, drawn, names, int(capacity), bypass)
    elif values is not None and process is not None and not isinstance(process, Stationary):
        hit = run_foretold(keys, values, int(capacity), process, survival, bypass=bypass)
    else:
        if isinstance(process, Stationary):
            policy, probabilities = "a0", process.by_value()
        ranks = _ranks(policy, keys, encoded.dictionary.to_pylist(), probabilities)
        hit = _run(keys, ranks, names, int(capacity), bypass)
    hits = int(hit.sum())
    return CacheReport(hits, len(keys) - hits, hit)


def _ranks(
    policy: CachePolicy, keys: Array, names: list[object], probabilities: Mapping[Any, float] | None
) -> Array:
    """How high a row ranks from each reference to it until the next."""
    order = np.argsort(keys, kind="stable")
    again = np.flatnonzero(keys[order][1:] == keys[order][:-1])
    if policy == "lfd":
        following = np.full(len(keys), np.inf)
        following[order[again]] = order[again + 1]
        return -following
    if policy in ("lfu", "heeb"):
        counts = np.empty(len(keys))
        firsts = np.searchsorted(keys[order], keys[order])
        counts[order] = np.arange(len(keys)) - firsts
        return counts
    if policy == "a0":
        given = np.array([(probabilities or {}).get(name, 0.0) for name in names], np.float64)
        return given[keys]
    return np.arange(len(keys), dtype=np.float64)


_NEVER: Final = -1


@kernel
def _run(keys: Array, ranks: Array, names: int, capacity: int, bypass: bool) -> Array:
    """Which references hit, where a key ranks by its last reference.

    An entry of the heap whose reference is not its key's last is out of date, and passed over; a hit leaves one
    behind, so that there are never more entries than references.
    """
    hit = np.zeros(len(keys), np.bool_)
    last, cached, held = np.full(names, _NEVER), np.zeros(names, np.bool_), 0
    lowest = [(0.0, np.int64(0)) for _ in range(0)]
    for i in range(len(keys)):
        key = keys[i]
        hit[i] = cached[key]
        held += not cached[key]
        cached[key], last[key] = True, i
        # Whoever is not in the heap yet cannot be left out.
        if bypass:
            heapq.heappush(lowest, (ranks[i], np.int64(i)))
        while held > capacity:
            at = heapq.heappop(lowest)[1]
            if last[keys[at]] == at:
                cached[keys[at]] = False
                held -= 1
        if not bypass:
            heapq.heappush(lowest, (ranks[i], np.int64(i)))
    return hit


@kernel
def _run_at_random(keys: Array, drawn: Array, names: int, capacity: int, bypass: bool) -> Array:
    """Which references hit, where a draw says who is left out, all equally likely."""
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
            place = int(drawn[i] * (capacity + bypass))
            if place == capacity:
                continue
            cached[rows[place]] = False
        else:
            held += 1
        rows[place], cached[key] = key, True
    return hit
