"""A bounded cache of a relation's rows, by columns and in batches."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tidegate.engine.cache_policies import Ranking, Retention, ranking
from tidegate.engine.cache_store import NOTED, NOWHERE, CacheStore, taken
from tidegate.engine.key_codes import key_codes
from tidegate.engine.row_sizes import row_sizes
from tidegate.policies.selection import best
from tidegate.types import Budget, InputError

if TYPE_CHECKING:
    from tidegate.types import Array

Fetch: TypeAlias = Callable[[pa.Array], pa.Table]
"""Asks the relation for the rows of these keys, all different: their key first, then the other columns."""


class Resolved(NamedTuple):
    """For each reference its row, key aside (nulls where there is none), if there is one, and if it was cached.

    A reference whose key is null has no row, and of it nobody can say whether it was cached: null.
    """

    rows: pa.Table
    found: pa.Array
    hit: pa.Array


class _Fetched(NamedTuple):
    """What the relation said of keys: their rows, the key first; whether it has them; codes, references and bytes."""

    rows: pa.Table
    found: Array
    codes: Array
    last: Array
    sizes: Array


class LookupCache:
    """Rows of a relation in front of a stream of references, each of which matches at most one.

    References come in batches. Those whose keys are cached hit; the rows of all others are fetched together, and then
    the policy says which of all rows at hand stay within the budget. That a key has no row is cached as well, and
    takes the place of a row. What comes out never depends on what is cached, as long as the relation does not change.

    Parameters
    ----------
    schema
        The columns of the relation's rows, the key first.
    budget
        What may be cached after a batch; None caches nothing.
    policy
        Who stays; see `tidegate.engine.cache_policies`. Among equals the one referred to last.
    ttl
        After how many seconds a row is fetched anew; None: never.
    probabilities
        For "a0": how probable each key is to be referred to; a key that is not listed has none.
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
    On Joining and Caching Stochastic Streams, section 3: the caching problem, in which a row that was fetched
    need not be cached.

    Deviations
    ----------
    In the paper every reference has a row, and the policy decides after each reference; here after each batch. With
    batches of one reference it is the same.
    """

    def __init__(
        self,
        schema: pa.Schema,
        budget: Budget | None,
        policy: Retention,
        ttl: float | None = None,
        probabilities: Mapping[Any, float] | None = None,
        seed: int = 0,
    ) -> None:
        self._budget, self._ttl = budget, ttl
        self._ranking = (
            None if budget is None else ranking(policy, budget, schema[0].type, probabilities, seed)
        )
        self._seen = 0
        self._ranked = 0  # how many references there were when all rows were ranked last
        self._oldest = np.inf  # no row was fetched before
        self._entered = self._left = self._spent = 0  # rows, and the references during which rows were cached
        self._store = CacheStore(schema)
        self._schema = schema

    def __len__(self) -> int:
        """How many keys are cached."""
        return len(self._store)

    @property
    def nbytes(self) -> int:
        """What a budget of bytes counts."""
        return self._store.nbytes

    def resolve(self, keys: pa.Array, fetch: Fetch, now: float) -> Resolved:
        """Give each reference its row; `now` in seconds, for the time to live."""
        encoded = keys.dictionary_encode()
        names = encoded.dictionary
        # Behind the last name stands that of a null.
        places = encoded.indices.fill_null(len(names)).to_numpy(zero_copy_only=False)
        codes, store = key_codes(names), self._store
        at = store.find(names, codes)
        at[self._is_stale(store.since[at], now)] = NOWHERE
        missed = np.flatnonzero(at == NOWHERE)
        fetched = self._fetched(names.take(pa.array(missed)), codes[missed], fetch)
        # Those that were fetched stand behind all slots.
        rows = np.append(np.where(store.found[at], at, 0), 0)
        rows[missed] = np.where(fetched.found, store.used + np.arange(len(missed)), 0)
        tables, valid = [*store.rows, fetched.rows], places < len(names)
        hit = np.append(at != NOWHERE, values=False)[places]
        resolved = Resolved(
            taken([table.select(range(1, table.num_columns)) for table in tables], rows, places),
            pa.array((rows > 0)[places]),
            pa.array(hit, mask=~valid if encoded.null_count else None),
        )
        self._remember(at, codes, fetched, places[valid] if encoded.null_count else places, now)
        return resolved

    def _is_stale(self, since: Array, now: float) -> Array:
        stale: Array = now - since >= (np.inf if self._ttl is None else self._ttl)
        return stale

    def _fetched(self, names: pa.Array, codes: Array, fetch: Fetch) -> _Fetched:
        schema, none = self._schema, np.zeros(len(names), np.int64)
        if not len(names):
            return _Fetched(schema.empty_table(), none.astype(bool), codes, none, none)
        rows = pa.Table.from_arrays(
            [c.cast(f.type) for c, f in zip(fetch(names).columns, schema, strict=True)], schema=schema
        )
        key = rows.column(0)
        at = pc.index_in(names, key)
        if len(key) != len(key.unique()) and (double := _double(key, names)) is not None:
            raise InputError(
                f"the relation has several rows whose {schema[0].name} is {double!r}, and a lookup gives one: make "
                "the key unique, or look up in a view that chooses"
            )
        found = at.is_valid().to_numpy(zero_copy_only=False)
        entries = rows.take(at).set_column(0, schema[0], names)
        return _Fetched(entries, found, codes, none, NOTED + row_sizes(entries))

    def _remember(self, at: Array, codes: Array, fetched: _Fetched, places: Array, now: float) -> None:
        """Learn from the references, and keep the best of all that is at hand."""
        if self._ranking is None or self._budget is None:
            return
        last = np.zeros(len(at), np.int64)
        last[places] = np.arange(len(places))  # of several to one key the last stays
        last += self._seen
        hits = at != NOWHERE
        self._store.last[at[hits]] = last[hits]
        self._seen += len(places)
        self._spent += len(self) * len(places)
        if len(places):
            self._ranking.observe(codes, places, self._seen)
        if len(fetched.codes):
            self._drop_stale(now)
            self._keep(fetched._replace(last=last[~hits]), self._ranking, self._budget, now)

    def _drop_stale(self, now: float) -> None:
        """What is too old makes room, asked for again or not."""
        store = self._store
        if not self._is_stale(np.array(self._oldest), now):
            return
        slots = store.slots()
        stale = self._is_stale(store.since[slots], now)
        self._oldest = store.since[slots[~stale]].min(initial=np.inf)
        self._left += int(stale.sum())
        store.drop(slots[stale])

    def _keep(self, fetched: _Fetched, ranking: Ranking, budget: Budget, now: float) -> None:
        """Keep the best of what is cached and what was fetched.

        Under most policies rows that nobody refers to keep their order, so that not all need be ranked each time. The
        lowest are marked as weak; so is whoever comes. As long as one of the weak to which nobody referred since is
        among those that stay, all others rank above it, and above whoever goes.
        """
        store, count = self._store, len(fetched.found)
        load = len(store) + count if budget.unit == "rows" else store.nbytes + int(fetched.sizes.sum())
        # A process is looked at for the first time while there is room.
        if load <= budget.limit and ranking.steady:
            self._add(fetched, np.ones(count, bool), now)
            return
        slots = store.slots(weak=ranking.steady)
        scores, kept = self._best(slots, fetched, ranking, budget)
        if len(slots) < len(store) and not (store.last[slots[kept[: len(slots)]]] < self._ranked).any():
            slots = store.slots()
            scores, kept = self._best(slots, fetched, ranking, budget)
        every, (old, new) = len(slots) == len(store), np.split(kept, [len(slots)])
        self._left += int((~old).sum())
        store.drop(slots[~old])
        self._add(fetched, new, now)
        if every and ranking.steady:
            self._mark(scores[kept], int((~kept).sum()))

    def _add(self, fetched: _Fetched, some: Array, now: float) -> None:
        self._entered += int(some.sum())
        self._oldest = min(self._oldest, now)
        rows = fetched.rows.filter(pa.array(some))
        noted = {name: getattr(fetched, name)[some] for name in ("found", "codes", "last", "sizes")}
        self._store.add(rows, since=now, **noted)

    def _best(self, slots: Array, fetched: _Fetched, ranking: Ranking, budget: Budget) -> tuple[Array, Array]:
        """Scores of these rows and of those fetched, and which of them stay beside the others."""
        store = self._store
        last = np.concatenate([store.last[slots], fetched.last])
        # Until a row has left nobody knows for how long they stay: about until so many others have come.
        lifetime = self._spent / self._entered if self._left else float(len(store) + len(fetched.last))
        scores = ranking.scores(np.concatenate([store.codes[slots], fetched.codes]), last, lifetime)
        others, sizes = len(store) - len(slots), None
        if budget.unit == "bytes":
            sizes = np.concatenate([store.sizes[slots], fetched.sizes])
            others = store.nbytes - int(store.sizes[slots].sum())
        room = max(1, budget.limit - others)
        return scores, best(scores, [last], sizes, replace(budget, **{budget.unit: room}))

    def _mark(self, scores: Array, left: int) -> None:
        """Mark the weak, as many that to rank them each time, and all when they are used up, costs about the same."""
        store = self._store
        slots = store.slots()
        store.weak[slots] = True
        count = max(2 * left, math.isqrt(left * len(slots)))
        if 0 < count < len(slots):
            strong = best(scores, [store.last[slots]], None, Budget(rows=len(slots) - count))
            store.weak[slots[strong]] = False
            self._ranked = self._seen


def _double(key: pa.ChunkedArray, names: pa.Array) -> object:
    """A key that was asked for and came twice."""
    counts = pc.value_counts(key.combine_chunks())
    twice = counts.field(0).filter(pc.greater(counts.field(1), 1))
    return next(iter(twice.filter(pc.is_in(twice, names)).to_pylist()), None)
