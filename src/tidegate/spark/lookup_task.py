"""What a Python process of Spark does for a lookup: take keys in chunks, ask the cache, ask the relation."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeVar

import pyarrow as pa

from tidegate.engine.cache_policies import Retention
from tidegate.engine.lookup_cache import LookupCache, Resolved
from tidegate.relations.relation import Column, OpenRelation, Relation, UnreachableError
from tidegate.spark.seats import leave_seat, take_seat
from tidegate.types import Budget

T = TypeVar("T")

FOUND: Final = "found"
HIT: Final = "hit"

_FORGOTTEN: Final = 600.0
"""Seconds after which a process drops the cache of a lookup that no longer gives it tasks."""
_MOST_CACHES: Final = 8
"""How many a process keeps; then the one goes that was used least recently."""
_FIRST_WAIT: Final = 0.1
_LONGEST_WAIT: Final = 5.0


class LookupFailedError(RuntimeError):
    """The relation did not answer for as long as the query is patient."""


@dataclass(frozen=True)
class LookupTask:
    """A lookup as it travels to the processes that run it.

    Parameters
    ----------
    name
        Tells its cache from those of other lookups; equal lookups of one application have equal names.
    relation
        Where the rows are.
    key, columns
        The relation's key, and the columns that are wanted.
    key_type
        The type in which keys are compared: the stream's.
    cache, tasks
        What may be cached in all, and in how many parts.
    policy, ttl, probabilities, seed
        As `LookupCache` has them.
    patience
        For how many seconds a relation that does not answer is asked again.
    chunk
        How many rows of the stream share a query.
    tells
        What is said of each row beside its columns: `FOUND`, `HIT`, both or neither.
    """

    name: str
    relation: Relation
    key: Column
    columns: tuple[Column, ...]
    key_type: pa.DataType
    cache: Budget
    tasks: int
    policy: Retention
    ttl: float | None
    probabilities: Mapping[Any, float] | None
    seed: int
    patience: float
    chunk: int
    tells: tuple[str, ...] = (FOUND, HIT)

    def run(self, batches: Iterator[pa.Array]) -> Iterator[pa.Array]:
        """Give the keys of one partition their rows, in their order."""
        held = _worker_cache(self)
        try:
            for keys in chunked(batches, self.chunk):
                found = held.cache.resolve(keys.cast(self.key_type), held.fetch, time.monotonic())
                yield from _as_structs(found, self.tells)
        finally:
            held.used = time.monotonic()
            held.rest()

    @property
    def schema(self) -> pa.Schema:
        """Of the cached rows."""
        fields = [pa.field(self.key.name, self.key_type)]
        return pa.schema([*fields, *(pa.field(f"c{i}", c.type) for i, c in enumerate(self.columns))])


class _WorkerCache:
    """What a process keeps of one lookup between tasks."""

    def __init__(self, task: LookupTask) -> None:
        self.task, self.used = task, time.monotonic()
        self._seat: int | None = None
        self._relation: OpenRelation = task.relation.open()
        self.take_part()

    def take_part(self) -> None:
        """Take a part of the budget, unless it has one or none is free."""
        if self._seat is None:
            task = self.task
            self._seat = take_seat(task.name, task.tasks)
            share = None if self._seat is None else task.cache.divided(task.tasks)[self._seat]
            self.cache = LookupCache(task.schema, share, task.policy, task.ttl, task.probabilities, task.seed)

    def fetch(self, keys: pa.Array) -> pa.Table:
        """Ask the relation, again and again if it does not answer."""
        task = self.task
        try:
            return patiently(lambda: self._relation.rows(task.key, keys, task.columns), task.patience)
        except UnreachableError as error:
            raise LookupFailedError(
                f"{task.relation.described} did not answer, {error}; nothing of this micro-batch was written: start "
                "the query again from its checkpoint when the database is back, and give it more patience= if this "
                "happens often"
            ) from None

    def rest(self) -> None:
        """Let go of what should not stay open between tasks."""
        if not self._relation.lasting:
            self._relation.close()

    def leave(self) -> None:
        """Let go of everything."""
        self._relation.close()
        if self._seat is not None:
            leave_seat(self.task.name, self._seat)


def patiently(ask: Callable[[], T], patience: float) -> T:
    """What a relation answers, asked again, ever less often, for so many seconds as long as it does not."""
    begin, wait, tries = time.monotonic(), _FIRST_WAIT, 0
    while True:
        tries += 1
        try:
            return ask()
        except UnreachableError as error:
            waited = time.monotonic() - begin
            if waited + wait > patience:
                raise UnreachableError(f"asked {tries} times in {waited:.0f} s ({error})") from None
        time.sleep(wait)
        wait = min(2 * wait, _LONGEST_WAIT)


_KEPT: Final[dict[str, _WorkerCache]] = {}
"""By name, the one used last at the end."""


def _worker_cache(task: LookupTask) -> _WorkerCache:
    mine = _KEPT.pop(task.name, None)
    now = time.monotonic()
    for name, other in list(_KEPT.items()):
        if len(_KEPT) >= _MOST_CACHES or now - other.used > _FORGOTTEN:
            _KEPT.pop(name).leave()
    if mine is None:
        mine = _WorkerCache(task)
    else:
        mine.take_part()
    _KEPT[task.name] = mine
    return mine


def chunked(batches: Iterator[pa.Array], rows: int) -> Iterator[pa.Array]:
    """The same values in arrays of at most so many, and no fewer than need be.

    Examples
    --------
    >>> [a.to_pylist() for a in chunked(iter([pa.array([1]), pa.array([2, 3, 4]), pa.array([5, 6, 7])]), 3)]
    [[1, 2, 3], [4, 5, 6], [7]]
    """
    waiting: list[pa.Array] = []
    count = 0
    for batch in batches:
        begin = 0
        while begin < len(batch):
            part = batch.slice(begin, rows - count)
            waiting.append(part)
            count += len(part)
            begin += len(part)
            if count == rows:
                yield pa.concat_arrays(waiting)
                waiting, count = [], 0
    if waiting:
        yield pa.concat_arrays(waiting)


def _as_structs(found: Resolved, tells: Sequence[str]) -> Iterator[pa.Array]:
    """In one array, or in as many as the rows have chunks."""
    told = pa.table({name: getattr(found, name) for name in tells})
    rows = pa.Table.from_arrays([*told.columns, *found.rows.columns], [*tells, *found.rows.column_names])
    return (batch.to_struct_array() for batch in rows.to_batches())
