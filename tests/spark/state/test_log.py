"""A state that is kept as a log equals the state that was written whole."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.spark import buckets_by_hand as by_hand
from tests.spark.buckets_by_hand import Arrival, Batch
from tidegate.engine.buffer import Buffer
from tidegate.spark.bucket.join.bucket import BucketJoin
from tidegate.spark.bucket.join.saved import SavedBucket
from tidegate.spark.query.evolution import migrate
from tidegate.spark.state import local_files, payload
from tidegate.spark.state import log as logs
from tidegate.spark.state import values as stored_values
from tidegate.spark.state.difference import (
    _narrow_integers,
    apply_difference,
    difference,
    sorted_by_id,
)
from tidegate.spark.state.local_files import LocalFiles
from tidegate.spark.state.log import MANIFEST, Manifest, StateLog
from tidegate.spark.state.payload import PayloadStore
from tidegate.spark.state.values import DamagedStateError, DictValueStore
from tidegate.types import SIDES, Array, InputError

COLUMNS = ("key", "time", "matches", "score")


@st.composite
def states(draw: st.DrawFn) -> dict[str, Array]:
    """Rows of both sides and other arrays; columns, arrays and types vary."""
    state: dict[str, Array] = {}
    for side in SIDES:
        ids = sorted(draw(st.sets(st.integers(0, 30), max_size=12)))
        if draw(st.booleans()):
            state[f"rows.{side}.id"] = np.array(ids, np.int64)
            for name in draw(st.sets(st.sampled_from(COLUMNS))):
                kind = draw(st.sampled_from([np.int64, np.float64]))
                values = draw(st.lists(st.integers(0, 2), min_size=len(ids), max_size=len(ids)))
                column = np.array(values, kind)
                if kind is np.float64 and len(column):
                    column[0] = np.nan
                state[f"rows.{side}.{name}"] = column
    for name in draw(st.sets(st.sampled_from(["tally", "curve", "text"]))):
        state[name] = np.array(draw(st.lists(st.integers(0, 2), max_size=8)), np.int64)
    return state


def same(one: dict[str, Array], other: dict[str, Array]) -> bool:
    return {n: (a.dtype, a.tobytes()) for n, a in one.items()} == {
        n: (a.dtype, a.tobytes()) for n, a in other.items()
    }


@given(states(), states())
@settings(max_examples=300)
def test_a_difference_leads_from_one_state_to_the_other(old: dict[str, Array], new: dict[str, Array]) -> None:
    assert same(apply_difference(old, difference(old, new)), new)


@given(st.permutations(range(6)))
def test_rows_are_saved_in_the_order_of_their_ids(order: list[int]) -> None:
    ids = np.array(order, np.int64)
    state = {"rows.left.id": ids, "rows.left.key": ids * 10, "other": ids}
    ordered = sorted_by_id(state)
    assert ordered["rows.left.key"].tolist() == [0, 10, 20, 30, 40, 50]
    assert ordered["other"] is ids


def test_a_small_change_of_a_large_state_takes_few_bytes() -> None:
    ids = np.arange(100_000)
    old = {"rows.left.id": ids, "rows.left.key": ids * 7, "rows.left.matches": np.zeros(100_000, np.int64)}
    matches = old["rows.left.matches"][10:].copy()
    matches[500] = 3
    new = {"rows.left.id": ids[10:], "rows.left.key": ids[10:] * 7, "rows.left.matches": matches}
    changes = difference(old, new)
    assert sum(values.nbytes for values in changes.values()) < 200
    assert same(apply_difference(old, changes), new)


@pytest.mark.parametrize(
    ("places", "kind"),
    [([], np.int32), ([0, 2**31 - 2], np.int32), ([3, 2**31 - 1], np.int64), ([3, 2**40], np.int64)],
)
def test_positions_take_32_bits_if_they_fit(places: list[int], kind: type) -> None:
    narrow = _narrow_integers(np.array(places, np.int64))
    assert narrow.dtype == kind
    assert narrow.tolist() == places


def test_positions_beyond_32_bits_survive_a_difference(monkeypatch: pytest.MonkeyPatch) -> None:
    """The positions of a change, of rows that left, and of values of buffered rows."""
    monkeypatch.setattr(np, "iinfo", lambda _: SimpleNamespace(max=3))
    ids = np.arange(40)
    old = {"rows.left.id": ids, "rows.left.key": ids * 2, "curve": ids * 3}
    new = {"rows.left.id": ids[:38], "rows.left.key": ids[:38] * 2, "curve": ids * 3}
    new["rows.left.key"][30], new["curve"][20] = 7, 8
    changes = difference(old, new)
    assert {changes[n].dtype for n in ("removed.left", "at.rows.left.key", "at.curve")} == {
        np.dtype(np.int64)
    }
    assert same(apply_difference(old, changes), new)


class TestPayload:
    @given(
        st.lists(st.sets(st.integers(0, 40), max_size=12), min_size=1, max_size=8),
        st.randoms(use_true_random=False),
    )
    def test_rows_are_found_by_id_whatever_was_compacted(self, batches: list[set[int]], rng: Any) -> None:  # noqa: ANN401 - Hypothesis's own
        store = PayloadStore()
        live: list[int] = []
        for number, batch in enumerate(batches):
            ids = np.array(sorted(100 * number + i for i in batch), np.int64)
            store.append(ids, pa.table({"c0": [f"row {i}" for i in ids]}))
            live = sorted(rng.sample(live, len(live) // 2) + ids.tolist())
            if rng.random() < 0.5:
                store.compact(np.array(live, np.int64))
                assert store.rows <= 2 * len(live)
            wanted = rng.choices(live, k=5) if live else []
            if wanted:
                found = store.take(np.array(wanted)).column("c0").to_pylist()
                assert found == [f"row {i}" for i in wanted]
        ranges = [(segment.first, segment.last) for segment in store.segments]
        assert ranges == sorted(ranges)

    def test_many_small_segments_become_one(self) -> None:
        store = PayloadStore()
        for i in range(100):
            store.append(np.array([i]), pa.table({"c0": [i]}))
            store.compact(np.arange(i + 1))
            assert len(store.segments) <= payload._MIN_SMALL_SEGMENTS
        assert store.take(np.arange(100)).column("c0").to_pylist() == list(range(100))

    def test_large_segments_are_not_written_again_while_they_live(self) -> None:
        store = PayloadStore()
        wide = pa.table({"c0": ["x" * 1000] * 2000})
        for i in range(20):
            store.append(np.arange(2000 * i, 2000 * (i + 1)), wide)
        before = list(store.segments)
        store.compact(np.arange(1500, 40_000))
        assert store.segments[1:] == before[1:]
        assert store.segments[0].rows == 500


@pytest.fixture
def local(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The local folder of an executor."""
    monkeypatch.setenv(local_files._LOCAL_FOLDERS, str(tmp_path / "executor"))
    return tmp_path / "executor"


def stream(seed: int, batches: int, rows: int = 60, keys: int = 9) -> list[Batch]:
    rng = np.random.default_rng(seed)
    return [
        {
            side: [
                Arrival(int(k), int(t), f"{side} {number}-{i}" * int(rng.integers(1, 30)))
                for i, (k, t) in enumerate(
                    zip(
                        rng.integers(0, keys, rows),
                        np.sort(rng.integers(0, 50, rows)) + 50 * number + 1,
                        strict=True,
                    )
                )
            ]
            for side in SIDES
        }
        for number in range(batches)
    ]


def run_batch(plan: Any, values: DictValueStore, batch: Batch, number: int, *, local: bool) -> list[Any]:  # noqa: ANN401
    """One micro-batch as a task runs it; its writes stay, as after Spark's commit."""
    log = StateLog(values, local=local)
    bucket = BucketJoin.load(plan, migrate(SavedBucket.read(log), plan))
    bucket.clock.advance(number, 0)
    tables = {side: by_hand.table(rows) for side, rows in batch.items()}
    results = [row for found in bucket.step(tables, 0) for row in found.to_pylist()]
    bucket.save(log)
    return results


@pytest.mark.parametrize(
    ("policy", "budget"),
    [("fifo", None), ("fifo", "8 KB"), ("random", 40), ("prob", "8 KB"), ("age", 40), ("ijoin", 40)],
)
def test_a_bucket_in_a_log_gives_what_one_in_memory_gives(policy: str, budget: Any, local: Path) -> None:  # noqa: ANN401
    """Some local copies are lost, some tasks are repeated, and some unfinished attempts are dropped."""
    plan = by_hand.plan((120, 120), budget, policy)
    rng = np.random.default_rng(5)
    values = DictValueStore()
    uninterrupted = BucketJoin(plan)
    for number, batch in enumerate(stream(1, 14)):
        uninterrupted.clock.advance(number, 0)
        tables = {side: by_hand.table(rows) for side, rows in batch.items()}
        expected = [row for found in uninterrupted.step(tables, 0) for row in found.to_pylist()]
        if rng.random() < 0.3:  # an attempt that Spark does not commit: another worker has its files
            run_batch(plan, DictValueStore(dict(values.content)), batch, number, local=True)
        if rng.random() < 0.3:  # the task moves to another machine
            shutil.rmtree(local, ignore_errors=True)
        results = run_batch(plan, values, batch, number, local=rng.random() < 0.8)
        assert sorted(map(str, results)) == sorted(map(str, expected))
        state = SavedBucket.read(StateLog(values, local=False))
        assert state is not None
        assert by_hand.content(state) == by_hand.content(uninterrupted)


def test_a_rollback_returns_to_the_state_of_its_micro_batch(local: Path) -> None:
    plan, batches = by_hand.plan((120, 120), 40, "prob"), stream(2, 12)
    values, versions, seen = DictValueStore(), [], []
    for number, batch in enumerate(batches):
        versions.append(dict(values.content))
        seen.append(run_batch(plan, values, batch, number, local=True))
    for number in (3, 7, 2, 11):
        again = DictValueStore(dict(versions[number]))
        assert run_batch(plan, again, batches[number], number, local=True) == seen[number]
    assert local.exists()


def test_a_micro_batch_writes_what_it_admits_and_not_the_state(local: Path) -> None:  # noqa: ARG001 - used by the log
    class Counting(DictValueStore):
        written = 0

        def put(self, name: str, value: bytes) -> None:
            self.written += len(value)
            super().put(name, value)

    plan = by_hand.plan((None, None), None)
    values = Counting()
    sizes = []
    for number, batch in enumerate(stream(3, 60, rows=200, keys=10**6)):
        before = values.written
        run_batch(plan, values, batch, number, local=True)
        sizes.append(values.written - before)
    total = sum(map(len, values.content.values()))
    # Small segments are merged, and the base is rewritten, about each time the state doubles.
    assert sum(sizes) < 6 * total
    assert np.median(sizes[40:]) < 1.5 * np.median(sizes[5:20])


class TestDamage:
    @pytest.fixture
    def values(self) -> DictValueStore:
        plan, values = by_hand.plan((200, 200), 50, "random"), DictValueStore()
        for number, batch in enumerate(stream(4, 5)):
            run_batch(plan, values, batch, number, local=False)
        return values

    def read(self, values: DictValueStore) -> None:
        state = SavedBucket.read(StateLog(values, local=False))
        assert state is not None
        by_hand.content(state)

    def test_every_changed_byte_is_found(self, values: DictValueStore) -> None:
        for name, value in values.content.items():
            for at in {0, 3, len(value) // 2, len(value) - 1}:
                damaged = bytearray(value)
                damaged[at] ^= 4
                with pytest.raises(DamagedStateError, match="damaged"):
                    self.read(DictValueStore(values.content | {name: bytes(damaged)}))

    def test_every_missing_or_truncated_value_is_found(self, values: DictValueStore) -> None:
        for name, value in values.content.items():
            without = {n: v for n, v in values.content.items() if n != name}
            if name != MANIFEST:
                with pytest.raises(DamagedStateError, match="1 of its 1 chunks are missing"):
                    self.read(DictValueStore(without))
            with pytest.raises(DamagedStateError, match="damaged"):
                self.read(DictValueStore(without | {name: value[:-1]}))

    def test_values_of_two_micro_batches_do_not_mix(self, values: DictValueStore) -> None:
        newer = DictValueStore(dict(values.content))
        run_batch(by_hand.plan((200, 200), 50, "random"), newer, stream(4, 6)[5], 5, local=False)
        with pytest.raises(DamagedStateError, match="chunks are missing"):
            self.read(DictValueStore(newer.content | {MANIFEST: values.content[MANIFEST]}))
        with pytest.raises(DamagedStateError, match="chunks are missing"):
            self.read(DictValueStore(values.content | {MANIFEST: newer.content[MANIFEST]}))

    def test_a_state_of_a_later_version_is_refused(
        self, values: DictValueStore, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        manifest = Manifest.of(values.content[MANIFEST])
        monkeypatch.setattr(logs, "VERSION", 7)
        values.put(MANIFEST, manifest.to_bytes())
        monkeypatch.undo()
        with pytest.raises(InputError, match="the state has version 7, and this release reads version 1"):
            self.read(values)

    def test_damaged_local_copies_are_not_used(self, local: Path) -> None:
        """Whatever bit of whatever copy has changed: the answer is right, and so is what is stored afterwards."""
        plan, values, batches = by_hand.plan((200, 200), None, "fifo"), DictValueStore(), stream(6, 12)
        for number, batch in enumerate(batches[:3]):
            run_batch(plan, values, batch, number, local=True)
        undamaged = DictValueStore(dict(values.content))
        for number, batch in enumerate(batches[3:], start=3):
            for at, file in enumerate(sorted(local.rglob("*-*"))):
                content = bytearray(file.read_bytes())
                content[(number * 7919 + at * 104729) % len(content)] ^= 1 << number % 8
                file.write_bytes(content)
            results = run_batch(plan, values, batch, number, local=True)
            assert results == run_batch(plan, undamaged, batch, number, local=False)
        states = [SavedBucket.read(StateLog(of, local=False)) for of in (values, undamaged)]
        assert by_hand.content(states[0]) == by_hand.content(states[1])  # type: ignore[arg-type]

    def test_what_is_compacted_is_checked_although_it_was_checked_before(
        self, local: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """A damage that leaves the file's time as it was, as that of a disk does."""
        plan, values, batches = by_hand.plan((60, 60), None, "fifo"), DictValueStore(), stream(6, 8)
        for number, batch in enumerate(batches[:4]):
            run_batch(plan, values, batch, number, local=True)
        for file in local.rglob("segment-*"):
            monkeypatch.setitem(local_files._checked, file, identity(file))
            status, content = file.stat(), bytearray(file.read_bytes())
            at = content.index(b"-", len(content) // 2)  # in a text: the table can still be read
            content[at] ^= 1
            file.write_bytes(content)
            os.utime(file, ns=(status.st_atime_ns, status.st_mtime_ns))
            assert local_files._checked[file] == identity(file)
        undamaged = DictValueStore(dict(values.content))
        log = StateLog(values, local=True)
        bucket = BucketJoin.load(plan, migrate(SavedBucket.read(log), plan))
        for side in SIDES:  # all of its segments are mostly dead
            rows = bucket.operator.buffers[side].rows
            bucket.operator.buffers[side] = Buffer.of(rows.take(np.arange(0, len(rows), 3)))
        bucket.save(log)
        other = StateLog(undamaged, local=False)
        bucket = BucketJoin.load(plan, migrate(SavedBucket.read(other), plan))
        for side in SIDES:
            rows = bucket.operator.buffers[side].rows
            bucket.operator.buffers[side] = Buffer.of(rows.take(np.arange(0, len(rows), 3)))
        bucket.save(other)
        assert segments(values) == segments(undamaged)


def identity(file: Path) -> tuple[int, ...]:
    status = file.stat()
    return status.st_ino, status.st_size, status.st_mtime_ns


def segments(values: DictValueStore) -> set[bytes]:
    return {value for name, value in values.content.items() if name.startswith("segment-")}


def test_a_folder_that_cannot_be_written_costs_no_answer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    blocked = tmp_path / "file"
    blocked.write_text("not a folder")
    monkeypatch.setenv(local_files._LOCAL_FOLDERS, str(blocked))
    plan, values = by_hand.plan((200, 200), 50, "fifo"), DictValueStore()
    with_copies = [run_batch(plan, values, batch, n, local=True) for n, batch in enumerate(stream(7, 4))]
    other = DictValueStore()
    assert with_copies == [
        run_batch(plan, other, batch, n, local=False) for n, batch in enumerate(stream(7, 4))
    ]


def test_old_copies_are_deleted(local: Path) -> None:
    plan, values = by_hand.plan((100, 100), 50, "fifo"), DictValueStore()
    for number, batch in enumerate(stream(8, 20)):
        run_batch(plan, values, batch, number, local=True)
    manifest = Manifest.of(values.content[MANIFEST])
    files = LocalFiles.of_bucket(manifest.store).folder
    assert len([file for file in files.iterdir() if file.name.startswith("arrays-")]) == 2
    assert len(list(files.iterdir())) < 10
    assert local in files.parents


@pytest.mark.parametrize("with_copies", [False, True])
def test_a_large_segment_is_written_in_small_chunks_and_read_as_one(
    local: Path,  # noqa: ARG001 - used by the log
    monkeypatch: pytest.MonkeyPatch,
    *,
    with_copies: bool,
) -> None:
    monkeypatch.setattr(logs, "CHUNK_BYTES", 1_000)
    monkeypatch.setattr(stored_values, "CHUNK_BYTES", 1_000)
    values, rows = DictValueStore(), pa.table({"c0": [f"{n:x}" * 9 for n in range(2_000)]})
    store = PayloadStore()
    store.append(np.arange(2_000), rows)
    StateLog(values, local=with_copies).write({}, {"left": store})
    chunks = [len(value) for name, value in values.content.items() if name.startswith("segment")]
    assert len(chunks) > 10
    assert max(chunks) == 1_000
    for _ in range(2):
        log = StateLog(values, local=with_copies)
        log.read()
        [segment] = log.payload("left").segments
        assert segment.take(np.arange(2_000)).equals(rows)
        assert segment.table.column("c0").num_chunks == 1


def test_a_process_does_not_read_again_what_it_wrote(local: Path, monkeypatch: pytest.MonkeyPatch) -> None:  # noqa: ARG001
    files = LocalFiles.of_bucket("bucket")
    files.write("copy", lambda file: file.write(b"content"))
    # Blocks of no bytes: whatever is checked is damaged.
    monkeypatch.setattr(local_files, "_BLOCK_BYTES", 0)
    written = files.read("copy", anew=False)
    assert written is not None
    assert written.to_pybytes() == b"content"
    assert files.read("copy") is None
