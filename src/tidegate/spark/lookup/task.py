"""The part of a lookup that runs in Spark's Python processes: resolve keys by the cache, then by the relation."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeVar

import pyarrow as pa

from tidegate._version import __version__
from tidegate.caching.lookup_cache import LookupCache, LookupResult
from tidegate.caching.policies import LookupPolicy
from tidegate.relations.relation import OpenRelation, Relation, RelationColumn, UnreachableError
from tidegate.spark.lookup.process_slots import acquire_slot, release_slot
from tidegate.spark.session.task import check_release
from tidegate.types import Budget

T = TypeVar("T")

FOUND: Final = "found"
HIT: Final = "hit"

_IDLE_SECONDS: Final = 600.0
"""After this time without a task a process drops the cache of a lookup."""
_MAX_CACHES: Final = 8
"""How many caches a process keeps; beyond that it drops the least recently used one."""
_FIRST_WAIT: Final = 0.1
_LONGEST_WAIT: Final = 5.0


class LookupFailedError(RuntimeError):
    """The relation did not answer within the retry timeout."""


@dataclass(frozen=True)
class LookupTask:
    """A lookup as Spark sends it to the processes that run it.

    Parameters
    ----------
    name
        Identifies its cache; equal lookups of one application have equal names.
    relation
        The relation that holds the rows.
    key, columns
        The relation's key, and the columns to add.
    key_type
        The type in which keys are compared: the stream's.
    cache, tasks
        The budget of the whole cache, and into how many parts it is divided.
    policy, ttl, probabilities, seed
        As in `LookupCache`.
    retry_timeout
        The seconds for which a query is retried if the relation does not answer.
    chunk
        The number of rows of the stream that share a query.
    flags
        The flags of each row beside its columns: `FOUND`, `HIT`, both or neither.
    release
        The release of Tidegate on the driver.
    """

    name: str
    relation: Relation
    key: RelationColumn
    columns: tuple[RelationColumn, ...]
    key_type: pa.DataType
    cache: Budget
    tasks: int
    policy: LookupPolicy
    ttl: float | None
    probabilities: Mapping[Any, float] | None
    seed: int
    retry_timeout: float
    chunk: int
    flags: tuple[str, ...] = (FOUND, HIT)
    release: str = __version__

    def run(self, batches: Iterator[pa.Array]) -> Iterator[pa.Array]:
        """Find the rows for the keys of one partition, in the order of the keys."""
        check_release(self.release)
        worker = _worker_cache(self)
        try:
            for keys in chunked(batches, self.chunk):
                found = worker.cache.resolve(keys.cast(self.key_type), worker.fetch, time.monotonic())
                yield from _as_structs(found, self.flags)
        finally:
            worker.used = time.monotonic()
            worker.close_idle()

    @property
    def schema(self) -> pa.Schema:
        """The schema of the cached rows."""
        fields = [pa.field(self.key.name, self.key_type)]
        return pa.schema([*fields, *(pa.field(f"c{i}", c.type) for i, c in enumerate(self.columns))])


class _WorkerCache:
    """The cache and the connection that a process keeps for one lookup between tasks."""

    def __init__(self, task: LookupTask) -> None:
        self.task, self.used = task, time.monotonic()
        self._slot: int | None = None
        self._relation: OpenRelation = task.relation.open()
        self.acquire_share()

    def acquire_share(self) -> None:
        """Acquire a part of the budget, unless the process has one or none is free."""
        if self._slot is None:
            task = self.task
            self._slot = acquire_slot(task.name, task.tasks)
            share = None if self._slot is None else task.cache.divided(task.tasks)[self._slot]
            self.cache = LookupCache(task.schema, share, task.policy, task.ttl, task.probabilities, task.seed)

    def fetch(self, keys: pa.Array) -> pa.Table:
        """Fetch rows from the relation; retry if it does not answer."""
        task = self.task
        try:
            return retry(lambda: self._relation.rows(task.key, keys, task.columns), task.retry_timeout)
        except UnreachableError as error:
            raise LookupFailedError(
                f"{task.relation.description} did not answer, {error}; nothing of this micro-batch was written. "
                "Start the query again from its checkpoint when the database answers; give a longer retry_timeout= "
                "if this happens often"
            ) from None

    def close_idle(self) -> None:
        """Close a connection that must not stay open between tasks."""
        if not self._relation.keep_open:
            self._relation.close()

    def close(self) -> None:
        """Close the connection and release the part of the budget."""
        self._relation.close()
        if self._slot is not None:
            release_slot(self.task.name, self._slot)


def retry(query: Callable[[], T], timeout: float) -> T:
    """Call `query` until the relation answers, at growing intervals, for at most `timeout` seconds."""
    begin, wait, tries = time.monotonic(), _FIRST_WAIT, 0
    while True:
        tries += 1
        try:
            return query()
        except UnreachableError as error:
            waited = time.monotonic() - begin
            if waited + wait > timeout:
                raise UnreachableError(f"after {tries} attempts in {waited:.0f} s ({error})") from None
        time.sleep(wait)
        wait = min(2 * wait, _LONGEST_WAIT)


_CACHES: Final[dict[str, _WorkerCache]] = {}
"""The caches of this process by name, the most recently used one last."""


def _worker_cache(task: LookupTask) -> _WorkerCache:
    found = _CACHES.pop(task.name, None)
    now = time.monotonic()
    for name, other in list(_CACHES.items()):
        if len(_CACHES) >= _MAX_CACHES or now - other.used > _IDLE_SECONDS:
            _CACHES.pop(name).close()
    if found is None:
        found = _WorkerCache(task)
    else:
        found.acquire_share()
    _CACHES[task.name] = found
    return found


def chunked(batches: Iterator[pa.Array], rows: int) -> Iterator[pa.Array]:
    """Rearrange values into arrays of `rows` values; the last may be shorter.

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


def _as_structs(found: LookupResult, flags: Sequence[str]) -> Iterator[pa.Array]:
    """Flags and columns as arrays of structs, one for each chunk of the rows."""
    flagged = pa.table({name: getattr(found, name) for name in flags})
    rows = pa.Table.from_arrays([*flagged.columns, *found.rows.columns], [*flags, *found.rows.column_names])
    return (batch.to_struct_array() for batch in rows.to_batches())
