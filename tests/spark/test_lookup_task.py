"""What a worker keeps for lookups is bounded, however many of them there are; without Spark."""

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
from tidegate.engine.cache_outlook import Foreseeing
from tidegate.engine.lookup_cache import LookupCache
from tidegate.models import AR1
from tidegate.relations import DuckDB, OpenRelation, PostgreSQL, Relation, SQLite, UnreachableError
from tidegate.relations.relation import Column
from tidegate.spark import lookup_task, seats
from tidegate.spark.lookup import _columns_of, _name, _tasks_at_once
from tidegate.spark.lookup_task import LookupTask
from tidegate.types import InputError

ID, NAME = Column("id", pa.int64(), "int64"), Column("name", pa.string(), "string")


@dataclass(frozen=True)
class Squares(Relation):
    """A relation that knows who has it open."""

    opened: ClassVar[list[_OpenSquares]] = []
    power: int = 2

    @property
    def described(self) -> str:
        return "squares"

    def open(self) -> OpenRelation:
        source = _OpenSquares()
        self.opened.append(source)
        return source


class _OpenSquares(OpenRelation):
    """Counts how often it is asked."""

    lasting: ClassVar[bool] = True

    def __init__(self) -> None:
        self.closed, self.asked = False, 0

    def columns(self) -> list[Column]:
        return [ID, NAME]

    def rows(self, key: Column, keys: pa.Array, columns: Sequence[Column]) -> pa.Table:
        assert (key, list(columns)) == (ID, [NAME])
        self.asked += 1
        return pa.table({"id": keys, "name": [str(k * k) for k in keys.to_pylist()]})

    def close(self) -> None:
        self.closed = True


@pytest.fixture(autouse=True)
def fresh(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(Squares, "opened", [])
    kept: dict[str, lookup_task._WorkerCache] = {}
    monkeypatch.setattr(lookup_task, "_KEPT", kept)
    yield
    for cache in kept.values():
        cache.leave()


def a_task(name: str | None = None, **changed: Any) -> LookupTask:  # noqa: ANN401
    name = uuid.uuid4().hex if name is None else name
    task = LookupTask(
        name=name, relation=Squares(), key=ID, columns=(NAME,), key_type=pa.int64(),
        cache=tg.Budget(rows=1_000), tasks=1, policy="lru", ttl=None, probabilities=None, seed=0,
        patience=1.0, chunk=1_000,
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
    assert len(lookup_task._KEPT) == 1
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


def test_heeb_learns_the_process_of_a_task_as_the_cache_alone_does() -> None:
    references = pa.array(AR1(56, 0.72, 42.2).sample(1_000, np.random.default_rng(7)))
    task = a_task(policy="heeb", chunk=50, cache=tg.Budget(rows=100))
    told = [hit for part in task.run(iter([references])) for hit in part.field("hit").to_pylist()]
    alone = LookupCache(task.schema, task.cache, "heeb")
    source = Squares().open()
    hits = [
        hit
        for begin in range(0, len(references), 50)
        for hit in alone.resolve(
            references.slice(begin, 50), lambda keys: source.rows(ID, keys, (NAME,)), 0.0
        ).hit.to_pylist()
    ]
    assert told == hits
    running = lookup_task._KEPT[task.name].cache._ranking
    assert isinstance(running, Foreseeing)
    assert running.belief is not None
    assert isinstance(running.belief.process, AR1)


def test_a_worker_keeps_few_caches_and_closes_what_it_drops() -> None:
    first = a_task()
    for _ in range(20):
        run(a_task())
        assert run(first, [3]) == ["9"]
    kept = lookup_task._KEPT
    assert len(kept) == lookup_task._MOST_CACHES
    assert sum(len(cache.cache) for cache in kept.values()) <= 1_000 * lookup_task._MOST_CACHES
    assert sum(not source.closed for source in Squares.opened) == len(kept)
    assert first.name in kept, "it was in use all the time"
    assert not Squares.opened[1].closed


def test_a_cache_that_nobody_used_for_long_goes(monkeypatch: pytest.MonkeyPatch) -> None:
    run(a_task())
    monkeypatch.setattr(lookup_task, "_FORGOTTEN", -1.0)
    run(a_task())
    assert [source.closed for source in Squares.opened] == [True, False]


def test_a_worker_that_found_no_seat_takes_one_when_it_is_free(monkeypatch: pytest.MonkeyPatch) -> None:
    task = a_task()
    free: list[int | None] = [None, 0]
    monkeypatch.setattr(lookup_task, "take_seat", lambda *_: free.pop(0))
    run(task)
    assert len(lookup_task._KEPT[task.name].cache) == 0
    run(task)
    assert len(lookup_task._KEPT[task.name].cache) == 1_000
    run(task)
    assert [source.asked for source in Squares.opened] == [2]


def test_what_will_never_work_is_not_asked_again(monkeypatch: pytest.MonkeyPatch) -> None:
    def rows(self: _OpenSquares, *_: object) -> pa.Table:
        self.asked += 1
        raise InputError("no such column")

    monkeypatch.setattr(_OpenSquares, "rows", rows)
    with pytest.raises(InputError, match="no such column"):
        run(a_task())
    assert [source.asked for source in Squares.opened] == [1]


def test_a_database_that_is_down_for_a_moment_is_waited_for_before_the_query_starts_too(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """As in a foreachBatch that calls lookup() while somebody writes the file."""

    def columns(self: _OpenSquares) -> list[Column]:
        self.asked += 1
        if self.asked <= 2:
            raise UnreachableError("locked")
        return [ID, NAME]

    monkeypatch.setattr(_OpenSquares, "columns", columns)
    assert _columns_of(Squares(), patience=5.0) == [ID, NAME]
    with pytest.raises(InputError, match=r"squares cannot be reached, asked 1 times in 0 s \(locked\)"):
        _columns_of(Squares(), patience=0.05)
    assert [(source.asked, source.closed) for source in Squares.opened] == [(3, True), (1, True)]


def test_a_file_that_is_not_there_is_told_at_once(tmp_path: Path) -> None:
    for kind in (DuckDB, SQLite):
        with pytest.raises(InputError, match=r"cannot be reached: there is no such file"):
            _columns_of(kind(str(tmp_path / "nowhere"), "users"), patience=600.0)


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


def test_without_locks_every_process_has_a_part_and_says_that_their_number_is_not_bounded(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "fcntl", None)
    seats._locks.cache_clear()
    try:
        with pytest.warns(RuntimeWarning, match="how many Python processes hold a part .* is not bounded"):
            assert seats.take_seat("a", 4) == 0
        seats.leave_seat("a", 0)
    finally:
        seats._locks.cache_clear()
