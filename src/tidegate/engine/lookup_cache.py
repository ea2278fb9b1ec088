"""A bounded cache of a relation's rows, by columns and in batches."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Self, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tidegate.engine.cache_policies import Retention, ranking
from tidegate.engine.key_codes import key_codes
from tidegate.engine.row_sizes import row_sizes
from tidegate.policies.selection import best
from tidegate.types import InputError

if TYPE_CHECKING:
    from tidegate.types import Array, Budget

Fetch: TypeAlias = Callable[[pa.Array], pa.Table]
"""Asks the relation for the rows of these keys, all different: their key first, then the other columns."""

_NOWHERE: Final = -1


class Resolved(NamedTuple):
    """For each reference its row, key aside (nulls where there is none), if there is one, and if it was cached.

    A reference whose key is null has no row, and of it nobody can say whether it was cached: null.
    """

    rows: pa.Table
    found: pa.Array
    hit: pa.Array


@dataclass(frozen=True)
class _Entries:
    """What is known of some keys: their rows, the key first; whether the relation has them; since when; codes."""

    rows: pa.Table
    found: Array
    since: Array
    last: Array
    codes: Array

    def take(self, places: Array) -> Self:
        columns = (self.found, self.since, self.last, self.codes)
        return type(self)(self.rows.take(pa.array(places)).combine_chunks(), *(c[places] for c in columns))

    def __add__(self, other: Self) -> Self:
        return type(self)(
            pa.concat_tables([self.rows, other.rows]).combine_chunks(),
            *(
                np.concatenate([getattr(self, name), getattr(other, name)])
                for name in ("found", "since", "last", "codes")
            ),
        )


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
        self._entered = self._left = self._spent = 0  # rows, and the references during which rows were cached
        nothing = pa.Table.from_arrays([pa.nulls(1, field.type) for field in schema], schema=schema)
        # The first entry is of no key: where references without a row find their nulls.
        self._held = _Entries(nothing, *(np.zeros(1, kind) for kind in (bool, float, np.int64, np.int64)))

    def __len__(self) -> int:
        """How many keys are cached."""
        return len(self._held.found) - 1

    @property
    def nbytes(self) -> int:
        """What a budget of bytes counts."""
        return int(_sizes(self._held)[1:].sum())

    def resolve(self, keys: pa.Array, fetch: Fetch, now: float) -> Resolved:
        """Give each reference its row; `now` in seconds, for the time to live."""
        encoded = keys.dictionary_encode()
        names = encoded.dictionary
        # Behind the last name stands that of a null.
        places = encoded.indices.fill_null(len(names)).to_numpy(zero_copy_only=False)
        at = self._places(names, now)
        missed = np.flatnonzero(at == _NOWHERE)
        hit = np.append(at != _NOWHERE, values=False)
        codes = key_codes(names) if self._ranking else np.zeros(len(names), np.int64)
        held = self._held
        if len(missed):
            at[missed] = len(held.found) + np.arange(len(missed))
            held += self._fetched(names.take(pa.array(missed)), codes[missed], fetch, now)
        rows = np.append(np.where(held.found[at], at, 0), 0)
        valid = places < len(names)
        known = places[valid] if encoded.null_count else places
        self._remember(held, at, codes, known, now, changed=bool(len(missed)))
        chosen = rows.take(places)
        columns = held.rows.select(range(1, held.rows.num_columns))
        return Resolved(
            columns.take(pa.array(chosen)),
            pa.array(chosen > 0),
            pa.array(hit[places], mask=~valid if encoded.null_count else None),
        )

    def _places(self, names: pa.Array, now: float) -> Array:
        """Where each key is cached, if it still counts."""
        at: Array = (
            pc.index_in(names, self._held.rows.column(0).combine_chunks(), skip_nulls=True)
            .fill_null(_NOWHERE)
            .to_numpy(zero_copy_only=False)
            .astype(np.int64)
        )
        at[self._stale(self._held, now)[at]] = _NOWHERE
        return at

    def _stale(self, entries: _Entries, now: float) -> Array:
        stale: Array = now - entries.since >= (np.inf if self._ttl is None else self._ttl)
        return stale

    def _fetched(self, names: pa.Array, codes: Array, fetch: Fetch, now: float) -> _Entries:
        schema = self._held.rows.schema
        rows = pa.Table.from_arrays(
            [c.cast(f.type) for c, f in zip(fetch(names).columns, schema, strict=True)], schema=schema
        ).combine_chunks()
        key = rows.column(0)
        at = pc.index_in(names, key)
        if len(key) != len(key.unique()) and (double := _double(key, names)) is not None:
            raise InputError(
                f"the relation has several rows whose {schema[0].name} is {double!r}, and a lookup gives one: make "
                "the key unique, or look up in a view that chooses"
            )
        found = at.is_valid().to_numpy(zero_copy_only=False)
        entries = rows.take(at).set_column(0, schema[0], names)
        return _Entries(entries, found, np.full(len(names), now), np.zeros(len(names), np.int64), codes)

    def _remember(
        self, held: _Entries, at: Array, codes: Array, places: Array, now: float, *, changed: bool
    ) -> None:
        """Learn from the references, and keep the best of all that is at hand."""
        if self._ranking is None or self._budget is None:
            return
        last = np.zeros(len(at), np.int64)
        last[places] = np.arange(len(places))  # of several to one key the last stays
        held.last[at] = self._seen + last
        self._seen += len(places)
        self._spent += len(self) * len(places)
        if len(places):
            self._ranking.observe(codes, places, self._seen)
        if not changed:
            return
        here = 1 + np.flatnonzero(~self._stale(held, now)[1:])
        # Until a row has left nobody knows for how long they stay: about until so many others have come.
        lifetime = self._spent / self._entered if self._left else float(len(here))
        scores = self._ranking.scores(held.codes[here], held.last[here], lifetime)
        sizes = _sizes(held)[here] if self._budget.unit == "bytes" else None
        kept = here[best(scores, [held.last[here]], sizes, self._budget)]
        stayed = int((kept <= len(self)).sum())
        self._entered += len(kept) - stayed
        self._left += len(self) - stayed
        self._held = held.take(np.insert(kept, 0, 0))


def _sizes(entries: _Entries) -> Array:
    """Bytes of each entry, what is noted of it included."""
    noted = sum(c.itemsize for c in (entries.found, entries.since, entries.last, entries.codes))
    sizes: Array = row_sizes(entries.rows) + noted
    return sizes


def _double(key: pa.ChunkedArray, names: pa.Array) -> object:
    """A key that was asked for and came twice."""
    counts = pc.value_counts(key.combine_chunks())
    twice = counts.field(0).filter(pc.greater(counts.field(1), 1))
    return next(iter(twice.filter(pc.is_in(twice, names)).to_pylist()), None)
