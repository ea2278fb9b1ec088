"""A bounded cache of a relation's rows, for references that come in batches."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tidegate.arrow_columns import row_sizes
from tidegate.caching.key_codes import key_codes
from tidegate.caching.policies import CacheRanking, LookupPolicy, start_ranking
from tidegate.caching.store import ENTRY_BYTES, NOT_FOUND, CacheStore, take_rows
from tidegate.policies.selection import best
from tidegate.types import Budget, InputError

if TYPE_CHECKING:
    from tidegate.types import Array

Fetch: TypeAlias = Callable[[pa.Array], pa.Table]
"""Reads the rows of these distinct keys from the relation: the key first, then the other columns."""


class LookupResult(NamedTuple):
    """The answer to each reference.

    Attributes
    ----------
    rows
        The row without its key; nulls if the relation has none.
    found
        Whether the relation has a row.
    hit
        Whether it was cached; null for a null key.
    """

    rows: pa.Table
    found: pa.Array
    hit: pa.Array


class _Fetched(NamedTuple):
    """Fetched keys: their rows, the key first; whether they exist; their codes, last references and bytes."""

    rows: pa.Table
    found: Array
    codes: Array
    last_used: Array
    sizes: Array


class LookupCache:
    """A cache of a relation's rows for a stream of references; a reference matches at most one row.

    References come in batches. Those with cached keys hit. The rows of all others are fetched together, and then
    the policy chooses which rows, cached or fetched, stay within the budget. A key without a row is cached too, and
    counts as a row. The answers do not depend on the cache, as long as the relation does not change.

    Parameters
    ----------
    schema
        The columns of the relation's rows, the key first.
    budget
        The rows or bytes that may be cached after a batch; None caches nothing.
    policy
        The rows that stay, see `tidegate.caching.policies`. Of equal rows the one that was referred to last stays.
    ttl
        Seconds after which a row is fetched again; None: never.
    probabilities
        For "a0": the probability of each key to be referred to; 0 for a key that is not listed.
    seed
        Fixes the draws of "random".

    Examples
    --------
    >>> from tidegate.types import Budget
    >>> relation = pa.table({"id": [1, 2, 3], "name": ["ann", "bob", "cid"]})
    >>> cache = LookupCache(relation.schema, Budget(rows=2), "lru")
    >>> def fetch(keys):
    ...     return relation.filter(pc.is_in(relation["id"], keys))
    >>> cache.resolve(pa.array([1, 3, 9, 3]), fetch, now=0.0).rows["name"].to_pylist()
    ['ann', 'cid', None, 'cid']
    >>> cache.resolve(pa.array([1, 3, 9]), fetch, now=1.0).hit.to_pylist()
    [False, True, True]

    References
    ----------
    On Joining and Caching Stochastic Streams, section 3: the caching problem, in which a fetched row need not be
    cached.

    Deviations
    ----------
    In the paper every reference has a row, and the policy decides after each reference; here it decides after each
    batch. With batches of one reference both are the same.
    """

    def __init__(
        self,
        schema: pa.Schema,
        budget: Budget | None,
        policy: LookupPolicy,
        ttl: float | None = None,
        probabilities: Mapping[Any, float] | None = None,
        seed: int = 0,
    ) -> None:
        self._budget, self._ttl = budget, ttl
        self._ranking = (
            None if budget is None else start_ranking(policy, budget, schema[0].type, probabilities, seed)
        )
        self._references = 0
        self._last_ranking = 0  # the number of references when all rows were last ranked
        self._oldest = np.inf  # no row was fetched before this time
        self._entered = self._evicted = 0
        self._row_references = 0  # summed over references: the rows that were cached
        self._store = CacheStore(schema)
        self._schema = schema

    def __len__(self) -> int:
        """The number of cached keys."""
        return len(self._store)

    @property
    def nbytes(self) -> int:
        """The bytes that count towards a budget."""
        return self._store.nbytes

    def resolve(self, keys: pa.Array, fetch: Fetch, now: float) -> LookupResult:
        """Look up the row of each reference, at the time `now` in seconds."""
        encoded = keys.dictionary_encode()
        names = encoded.dictionary
        # The place after the last name stands for null.
        places = encoded.indices.fill_null(len(names)).to_numpy(zero_copy_only=False)
        codes, store = key_codes(names), self._store
        at = store.find(names, codes)
        at[self._is_stale(store.fetched_at[at], now)] = NOT_FOUND
        missed = np.flatnonzero(at == NOT_FOUND)
        fetched = self._fetch(names.take(pa.array(missed)), codes[missed], fetch)
        # Fetched rows are numbered after all slots.
        rows = np.append(np.where(store.found[at], at, 0), 0)
        rows[missed] = np.where(fetched.found, store.used + np.arange(len(missed)), 0)
        tables, valid = [*store.rows, fetched.rows], places < len(names)
        hit = np.append(at != NOT_FOUND, values=False)[places]
        resolved = LookupResult(
            take_rows([table.select(range(1, table.num_columns)) for table in tables], rows, places),
            pa.array((rows > 0)[places]),
            pa.array(hit, mask=~valid if encoded.null_count else None),
        )
        self._update(at, codes, fetched, places[valid] if encoded.null_count else places, now)
        return resolved

    def _is_stale(self, fetched_at: Array, now: float) -> Array:
        stale: Array = now - fetched_at >= (np.inf if self._ttl is None else self._ttl)
        return stale

    def _fetch(self, names: pa.Array, codes: Array, fetch: Fetch) -> _Fetched:
        schema, none = self._schema, np.zeros(len(names), np.int64)
        if not len(names):
            return _Fetched(schema.empty_table(), none.astype(bool), codes, none, none)
        rows = pa.Table.from_arrays(
            [c.cast(f.type) for c, f in zip(fetch(names).columns, schema, strict=True)], schema=schema
        )
        key = rows.column(0)
        at = pc.index_in(names, key)
        if len(key) != len(key.unique()) and (duplicate := _duplicate(key, names)) is not None:
            raise InputError(
                f"the relation has several rows whose {schema[0].name} is {duplicate!r}, but a lookup returns one; "
                "make the key unique, or look up in a view with one row per key"
            )
        found = at.is_valid().to_numpy(zero_copy_only=False)
        entries = rows.take(at).set_column(0, schema[0], names)
        return _Fetched(entries, found, codes, none, ENTRY_BYTES + row_sizes(entries))

    def _update(self, at: Array, codes: Array, fetched: _Fetched, places: Array, now: float) -> None:
        """Learn from the references, and keep the best of the cached and fetched rows."""
        if self._ranking is None or self._budget is None:
            return
        last = np.zeros(len(at), np.int64)
        last[places] = np.arange(len(places))  # of several references to one key the last counts
        last += self._references
        hits = at != NOT_FOUND
        self._store.last_used[at[hits]] = last[hits]
        self._references += len(places)
        self._row_references += len(self) * len(places)
        if len(places):
            self._ranking.observe(codes, places, self._references)
        if len(fetched.codes):
            self._drop_stale(now)
            self._evict(fetched._replace(last_used=last[~hits]), self._ranking, self._budget, now)

    def _drop_stale(self, now: float) -> None:
        """Drop rows that are older than the time to live, referred to or not."""
        store = self._store
        if not self._is_stale(np.array(self._oldest), now):
            return
        slots = store.slots()
        stale = self._is_stale(store.fetched_at[slots], now)
        self._oldest = store.fetched_at[slots[~stale]].min(initial=np.inf)
        self._evicted += int(stale.sum())
        store.drop(slots[stale])

    def _evict(self, fetched: _Fetched, ranking: CacheRanking, budget: Budget, now: float) -> None:
        """Evict the rows with the lowest scores, cached or fetched, until the others fit.

        Under most policies rows without new references keep their order, so that not all rows need be ranked each
        time. The lowest are marked as evictable, and so is every new row. As long as one evictable row without new
        references stays, all unmarked rows rank above it, and above every row that leaves.
        """
        store, count = self._store, len(fetched.found)
        load = len(store) + count if budget.unit == "rows" else store.nbytes + int(fetched.sizes.sum())
        # A ranking by a process is prepared before the cache is full.
        if load <= budget.limit and ranking.steady:
            self._add(fetched, np.ones(count, bool), now)
            return
        slots = store.slots(evictable=ranking.steady)
        scores, kept = self._rank(slots, fetched, ranking, budget)
        if (
            len(slots) < len(store)
            and not (store.last_used[slots[kept[: len(slots)]]] < self._last_ranking).any()
        ):
            slots = store.slots()
            scores, kept = self._rank(slots, fetched, ranking, budget)
        every, (old, new) = len(slots) == len(store), np.split(kept, [len(slots)])
        self._evicted += int((~old).sum())
        store.drop(slots[~old])
        self._add(fetched, new, now)
        if every and ranking.steady:
            self._mark_evictable(scores[kept], int((~kept).sum()))

    def _add(self, fetched: _Fetched, some: Array, now: float) -> None:
        self._entered += int(some.sum())
        self._oldest = min(self._oldest, now)
        rows = fetched.rows.filter(pa.array(some))
        columns = {name: getattr(fetched, name)[some] for name in ("found", "codes", "last_used", "sizes")}
        self._store.add(rows, fetched_at=now, **columns)

    def _rank(
        self, slots: Array, fetched: _Fetched, ranking: CacheRanking, budget: Budget
    ) -> tuple[Array, Array]:
        """The scores of these rows and of the fetched ones, and which of them stay beside all other rows."""
        store = self._store
        last = np.concatenate([store.last_used[slots], fetched.last_used])
        # Before the first eviction lifetimes are unknown; a row stays about until as many others have come.
        lifetime = (
            self._row_references / self._entered
            if self._evicted
            else float(len(store) + len(fetched.last_used))
        )
        scores = ranking.scores(np.concatenate([store.codes[slots], fetched.codes]), last, lifetime)
        others, sizes = len(store) - len(slots), None
        if budget.unit == "bytes":
            sizes = np.concatenate([store.sizes[slots], fetched.sizes])
            others = store.nbytes - int(store.sizes[slots].sum())
        room = max(1, budget.limit - others)
        return scores, best(scores, [last], sizes, replace(budget, **{budget.unit: room}))

    def _mark_evictable(self, scores: Array, left: int) -> None:
        """Mark the lowest rows, as many as balance the cost of ranking them each time and of ranking all again."""
        store = self._store
        slots = store.slots()
        store.evictable[slots] = True
        count = max(2 * left, math.isqrt(left * len(slots)))
        if 0 < count < len(slots):
            strong = best(scores, [store.last_used[slots]], None, Budget(rows=len(slots) - count))
            store.evictable[slots[strong]] = False
            self._last_ranking = self._references


def _duplicate(key: pa.ChunkedArray, names: pa.Array) -> object:
    """A requested key with two rows, if there is one."""
    counts = pc.value_counts(key.combine_chunks())
    twice = counts.field(0).filter(pc.greater(counts.field(1), 1))
    return next(iter(twice.filter(pc.is_in(twice, names)).to_pylist()), None)
