"""The caches of a worker are bounded for any number of lookups; without Spark."""

from __future__ import annotations

import sys
import uuid
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa
import pytest

import tidegate as tg
from tidegate.caching.lookup_cache import LookupCache
from tidegate.caching.process_ranking import ProcessRanking
from tidegate.models import AR1
from tidegate.relations import DuckDB, OpenRelation, PostgreSQL, Relation, SQLite, UnreachableError
from tidegate.relations.relation import RelationColumn
from tidegate.spark.lookup import process_slots
from tidegate.spark.lookup import task as lookup_task
from tidegate.spark.lookup.lookup import _columns_of, _name, _tasks_at_once
from tidegate.spark.lookup.task import LookupTask
from tidegate.types import InputError

ID, NAME = RelationColumn("id", pa.int64(), "int64"), RelationColumn("name", pa.string(), "string")


@dataclass(frozen=True)
class Squares(Relation):
    """A relation that lists its connections."""

    opened: ClassVar[list[_OpenSquares]] = []
    power: int = 2

    @property
    def description(self) -> str:
        return "squares"

    def open(self) -> OpenRelation:
        source = _OpenSquares()
        self.opened.append(source)
        return source


class _OpenSquares(OpenRelation):
    """Counts its queries."""

    keep_open: ClassVar[bool] = True

    def __init__(self) -> None:
        self.closed, self.asked = False, 0

    def columns(self) -> list[RelationColumn]:
        return [ID, NAME]

    def rows(self, key: RelationColumn, keys: pa.Array, columns: Sequence[RelationColumn]) -> pa.Table:
        assert (key, list(columns)) == (ID, [NAME])
        self.asked += 1
        return pa.table({"id": keys, "name": [str(k * k) for k in keys.to_pylist()]})

    def close(self) -> None:
        self.closed = True


@pytest.fixture(autouse=True)
def fresh(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(Squares, "opened", [])
    kept: dict[str, lookup_task._WorkerCache] = {}
    monkeypatch.setattr(lookup_task, "_CACHES", kept)
    yield
    for cache in kept.values():
        cache.close()


def a_task(name: str | None = None, **changed: Any) -> LookupTask:  # noqa: ANN401
    name = uuid.uuid4().hex if name is None else name
    task = LookupTask(
        name=name, relation=Squares(), key=ID, columns=(NAME,), key_type=pa.int64(),
        cache=tg.Budget(rows=1_000), tasks=1, policy="lru", ttl=None, probabilities=None, seed=0,
        retry_timeout=1.0, chunk=1_000,
    )  # fmt: skip
    return replace(task, **changed)


def run(task: LookupTask, keys: Sequence[int] = range(1_000)) -> list[str | None]:
    return [n for part in task.run(iter([pa.array(keys)])) for n in part.field("c0").to_pylist()]


def session(app: str = "app-1", partitions: str = "8", **more: object) -> Any:  # noqa: ANN401
    confs = {"spark.app.id": app, "spark.sql.shuffle.partitions": partitions}
    return SimpleNamespace(conf=SimpleNamespace(get=lambda name, *_: confs[name]), **more)


def test_equal_lookups_share_one_cache() -> None:
    """As in a foreachBatch that calls lookup() for each micro-batch."""
    for _ in range(20):
        task = a_task("")
        run(replace(task, name=_name(task, "id", session())))
    assert len(lookup_task._CACHES) == 1
    assert [source.asked for source in Squares.opened] == [1]


def test_lookups_that_differ_do_not_share() -> None:
    task = a_task("")
    with_dsn = [replace(task, relation=PostgreSQL(f"postgresql://{who}@h/d", "t")) for who in ("ann", "bob")]
    others = [
        replace(task, cache=tg.Budget(rows=9)), replace(task, policy="heeb"), replace(task, ttl=1.0),
        replace(task, policy="a0", probabilities={1: 0.5}), replace(task, policy="a0", probabilities={1: 0.6}),
        replace(task, seed=1), replace(task, columns=()), replace(task, key_type=pa.int32()),
        replace(task, relation=Squares(power=3)), *with_dsn,
    ]  # fmt: skip
    names = [_name(each, "id", session()) for each in (task, *others)]
    # One row of a stream may be looked up by two of its columns, by two processes at once.
    names += [_name(task, "other", session()), _name(task, "id", session("app-2"))]
    assert len(set(names)) == len(names)


def test_heeb_learns_a_process_in_a_task_like_in_the_cache_alone() -> None:
    references = pa.array(AR1(56, 0.72, 42.2).sample(1_000, np.random.default_rng(7)))
    task = a_task(policy="heeb", chunk=50, cache=tg.Budget(rows=100))
    hits = [hit for part in task.run(iter([references])) for hit in part.field("hit").to_pylist()]
    alone = LookupCache(task.schema, task.cache, "heeb")
    source = Squares().open()
    expected = [
        hit
        for begin in range(0, len(references), 50)
        for hit in alone.resolve(
            references.slice(begin, 50), lambda keys: source.rows(ID, keys, (NAME,)), 0.0
        ).hit.to_pylist()
    ]
    assert hits == expected
    running = lookup_task._CACHES[task.name].cache._ranking
    assert isinstance(running, ProcessRanking)
    assert running.learned is not None
    assert isinstance(running.learned.process, AR1)


def test_a_worker_keeps_few_caches_and_closes_what_it_drops() -> None:
    first = a_task()
    for _ in range(20):
        run(a_task())
        assert run(first, [3]) == ["9"]
    kept = lookup_task._CACHES
    assert len(kept) == lookup_task._MAX_CACHES
    assert sum(len(cache.cache) for cache in kept.values()) <= 1_000 * lookup_task._MAX_CACHES
    assert sum(not source.closed for source in Squares.opened) == len(kept)
    assert first.name in kept, "it was in use all the time"
    assert not Squares.opened[1].closed


def test_an_idle_cache_is_dropped(monkeypatch: pytest.MonkeyPatch) -> None:
    run(a_task())
    monkeypatch.setattr(lookup_task, "_IDLE_SECONDS", -1.0)
    run(a_task())
    assert [source.closed for source in Squares.opened] == [True, False]


def test_a_worker_without_a_slot_acquires_one_when_it_is_free(monkeypatch: pytest.MonkeyPatch) -> None:
    task = a_task()
    free: list[int | None] = [None, 0]
    monkeypatch.setattr(lookup_task, "acquire_slot", lambda *_: free.pop(0))
    run(task)
    assert len(lookup_task._CACHES[task.name].cache) == 0
    run(task)
    assert len(lookup_task._CACHES[task.name].cache) == 1_000
    run(task)
    assert [source.asked for source in Squares.opened] == [2]


def test_permanent_errors_are_not_retried(monkeypatch: pytest.MonkeyPatch) -> None:
    def rows(self: _OpenSquares, *_: object) -> pa.Table:
        self.asked += 1
        raise InputError("no such column")

    monkeypatch.setattr(_OpenSquares, "rows", rows)
    with pytest.raises(InputError, match="no such column"):
        run(a_task())
    assert [source.asked for source in Squares.opened] == [1]


def test_the_driver_retries_while_the_database_is_down(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """As in a foreachBatch that calls lookup() while another process writes the file."""

    def columns(self: _OpenSquares) -> list[RelationColumn]:
        self.asked += 1
        if self.asked <= 2:
            raise UnreachableError("locked")
        return [ID, NAME]

    monkeypatch.setattr(_OpenSquares, "columns", columns)
    assert _columns_of(Squares(), retry_timeout=60.0) == [ID, NAME]
    with pytest.raises(InputError, match=r"squares cannot be reached, after 1 attempts in \d+ s \(locked\)"):
        _columns_of(Squares(), retry_timeout=0.05)
    assert [(source.asked, source.closed) for source in Squares.opened] == [(3, True), (1, True)]


def test_a_missing_file_is_reported_at_once(tmp_path: Path) -> None:
    for kind in (DuckDB, SQLite):
        with pytest.raises(InputError, match=r"cannot be reached: the file does not exist"):
            _columns_of(kind(str(tmp_path / "nowhere"), "users"), retry_timeout=600.0)


def test_by_default_a_cache_has_as_many_parts_as_tasks_run_at_once() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        here = SimpleNamespace(master="local[2]", defaultParallelism=2)
        assert _tasks_at_once(session(partitions="200", sparkContext=here)) == 2
        assert _tasks_at_once(session(partitions="8")) == 8
        far = SimpleNamespace(master="spark://h:7077", defaultParallelism=2)
        assert _tasks_at_once(session(partitions="8", sparkContext=far)) == 8
    with pytest.warns(UserWarning, match="divided into 200 parts.*give that number as tasks="):
        assert _tasks_at_once(session(partitions="200", sparkContext=far)) == 200


def test_without_locks_every_process_has_a_part_and_a_warning_is_given(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "fcntl", None)
    process_slots._locks.cache_clear()
    try:
        with pytest.warns(RuntimeWarning, match="the number of Python processes .* is not limited"):
            assert process_slots.acquire_slot("a", 4) == 0
        process_slots.release_slot("a", 0)
    finally:
        process_slots._locks.cache_clear()
