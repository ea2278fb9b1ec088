"""The merge of the reservoirs of several buckets, as it runs on Spark."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pyarrow as pa
import pytest

from tests.sampling.chi_square import deviations
from tidegate.sampling import GroupedJoinReservoir, JoinReservoir, ProgressiveJoinReservoir
from tidegate.spark.bucket.join.reservoir import BucketReservoir, merge_buckets
from tidegate.spark.packing.arrow_bytes import from_bytes, to_bytes
from tidegate.spark.state.log import StateLog
from tidegate.spark.state.payload import PayloadStore
from tidegate.spark.state.values import DictValueStore
from tidegate.types import Array

RUNS, SIZE = 400, 6
BUCKETS = (30, 1.0), (9, 0.7), (0, 0.4)
"""The number of results of each bucket, and its sampling probability; the last has only a bound."""
RESULTS = sum(count for count, _ in BUCKETS)


def results(numbers: Array, fraction: float) -> pa.RecordBatch:
    """Results of a bucket, with the columns of a sample."""
    chance = np.full(len(numbers), fraction)
    columns = {"o0": numbers, "probability": chance, "weight": 1 / chance, "owner": numbers // 2}
    columns["shown"] = chance
    return pa.record_batch({name: pa.array(column) for name, column in columns.items()})


def packed_bucket(number: int, seed: int, size: int = SIZE) -> pa.Table:
    """The packed reservoir of a bucket after two micro-batches."""
    held = BucketReservoir(JoinReservoir(size, 1000).start(seed, number))
    first = sum(count for count, _ in BUCKETS[:number])
    count, fraction = BUCKETS[number]
    for part in np.array_split(np.arange(first, first + count), 2):
        shown = part[np.random.default_rng([seed, *part]).random(len(part)) < fraction]
        if len(shown):
            held.offer(results(shown, fraction), np.full(len(shown), fraction), shown)
        held.reservoir.offer(np.empty(0), lowest=fraction)
    return from_bytes(to_bytes(held.packed(1)))


def test_all_results_of_all_buckets_are_equally_likely() -> None:
    counts, totals, full = np.zeros(RESULTS), [], 0
    for seed in range(RUNS, 2 * RUNS):
        (sample,) = merge_buckets([packed_bucket(number, seed) for number in range(3)])
        totals.append(sum(sample.column("weight").to_pylist()))
        if sample.num_rows == SIZE:
            counts[sample.column("o0").to_numpy()] += 1
            full += 1
    assert full > 0.9 * RUNS
    # Drawn without replacement, counts vary less than independent ones would.
    due = counts.mean() + (counts - counts.mean()) / np.sqrt(1 - SIZE / RESULTS)
    assert abs(deviations(due, counts.mean())) < 4
    assert np.mean(totals) == pytest.approx(RESULTS, abs=2 * float(np.std(totals)) / RUNS**0.5)


def test_a_bucket_without_results_bounds_the_others() -> None:
    (sample,) = merge_buckets([packed_bucket(0, 1, 50), packed_bucket(2, 1, 50)])
    assert set(sample.column("probability").to_pylist()) == {0.4}
    (alone,) = merge_buckets([packed_bucket(0, 1, 50)])
    assert 0 < sample.num_rows < alone.num_rows == 30


def test_the_order_of_buckets_has_no_effect() -> None:
    buckets = [packed_bucket(number, 7) for number in range(3)]
    (one,), (other,) = merge_buckets(buckets), merge_buckets(buckets[::-1])
    assert one.equals(other)
    assert one.schema.names == ["o0", "probability", "weight", "owner", "shown", "batch"]
    assert one.column("batch").to_pylist() == [1] * SIZE


def test_groups_are_identified_by_their_values_and_saved() -> None:
    cities = np.array(["Oslo", "Rome", None], object)
    buckets = []
    for number in range(2):
        held = BucketReservoir(GroupedJoinReservoir(24, 1000, 5).start(3, number), ("o1",))
        for ids in np.array_split(np.arange(1000 * number, 1000 * number + 900), 3):
            batch = results(ids, 1.0)
            names = pa.array(cities[np.minimum(ids % 100 // 49, 2)])
            columns = [batch.column(0), names, *batch.columns[1:]]
            shown = pa.record_batch(columns, ["o0", "o1", *batch.schema.names[1:]])
            held.offer(shown, np.ones(len(ids)), ids)
            assert held.rows is not None
            assert held.rows.num_rows == len(held.reservoir) <= 24
        saved = BucketReservoir.of(held.snapshot(), held.payload())
        assert saved is not None
        assert saved.packed(1).equals(held.packed(1), check_metadata=True)
        buckets.append(from_bytes(to_bytes(held.packed(1))))
    (sample,), (other,) = merge_buckets(buckets), merge_buckets(buckets[::-1])
    assert sample.equals(other)
    counts = Counter(sample.column("o1").to_pylist())
    assert set(counts) == {"Oslo", "Rome", None}
    assert min(counts.values()) >= 5
    assert sample.num_rows <= 24
    assert sample.schema.names == ["o0", "o1", "probability", "weight", "owner", "shown", "batch"]


def test_buckets_without_results_have_no_sample() -> None:
    assert not list(merge_buckets([packed_bucket(2, 0)]))
    assert not list(merge_buckets([]))


class CountingStore(DictValueStore):
    """Counts the bytes that are written."""

    written = 0

    def put(self, name: str, value: bytes) -> None:
        self.written += len(value)
        super().put(name, value)


def wide_results(numbers: Array) -> pa.RecordBatch:
    notes = pa.array([np.random.default_rng(number).bytes(150).hex() for number in numbers])
    return results(numbers, 1.0).append_column("note", notes)


def test_a_micro_batch_writes_the_results_that_entered() -> None:
    """Whatever is read back, dropped or merged: the reservoir is that of one that stayed in memory."""
    values, sizes = CountingStore(), []
    in_memory = BucketReservoir(JoinReservoir(1000, 5000).start(3, 0))
    for number in range(60):
        ids = 500 * number + np.arange(500)
        log = StateLog(values, local=False)
        saved = log.read()
        held = BucketReservoir(JoinReservoir(1000, 5000).start(3, 0))
        if saved is not None:
            held.restore(saved, log.payload("reservoir"))
        for reservoir in (held, in_memory):
            reservoir.offer(wide_results(ids), np.ones(len(ids)), ids)
        assert held.packed(1).equals(in_memory.packed(1))
        before = values.written
        log.write(held.snapshot(), {"reservoir": held.payload()})
        sizes.append(values.written - before)
    assert np.mean(sizes[40:]) < 0.2 * max(sizes)
    assert sum(map(len, values.content.values())) < 3 * max(sizes)


def test_a_reservoir_of_the_first_layout_is_read() -> None:
    ids = np.arange(60)
    former = BucketReservoir(JoinReservoir(20, 1000).start(3, 0))
    former.offer(wide_results(ids), np.ones(60), ids)
    state = {
        name: array for name, array in former.snapshot().items() if "ids" not in name and "next" not in name
    }
    state["reservoir rows"] = np.frombuffer(to_bytes(former.rows), np.uint8)
    held = BucketReservoir(JoinReservoir(20, 1000).start(3, 0)).restore(state, PayloadStore())
    assert held.packed(1).equals(former.packed(1))
    again = BucketReservoir(JoinReservoir(20, 1000).start(3, 0)).restore(held.snapshot(), held.payload())
    assert again.packed(1).equals(former.packed(1))


@pytest.mark.parametrize(
    "config",
    [
        JoinReservoir(20, 1000),
        ProgressiveJoinReservoir(20, 1000, use_at=500),
        GroupedJoinReservoir(24, 1000, 5),
    ],
    ids=lambda config: type(config).__name__,
)
def test_every_reservoir_can_be_inspected_without_its_query(
    config: JoinReservoir | ProgressiveJoinReservoir | GroupedJoinReservoir,
) -> None:
    held = BucketReservoir(config.start(3, 0), ("o0",) if isinstance(config, GroupedJoinReservoir) else ())
    ids = np.arange(12)
    held.offer(wide_results(ids), np.ones(12), ids)
    held.reservoir.advance(100)
    saved = BucketReservoir.of(held.snapshot(), held.payload())
    assert saved is not None
    assert saved.packed(1).equals(held.packed(1))
