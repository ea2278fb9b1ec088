"""A small budget is never exceeded, every row is accounted for, and every result is a result of the exact join."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from itertools import count
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.strategies import DrawFn, SearchStrategy
from pyspark.sql import functions as F  # noqa: N812 - its usual name

import tidegate as tg
from tests.spark import buckets_by_hand as by_hand
from tests.spark import streams
from tests.spark.buckets_by_hand import Arrival, Batch, Hand
from tidegate.spark.bucket.join.bucket import BucketJoin
from tidegate.types import SIDES, Band, Budget, Condition

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

    from tidegate.spark.bucket.join.plan import How

WINDOWS = [(10, 10), (20, 0), (0, 0), (15, -5), (-5, 15), (None, 10), (None, None)]
POLICIES = ["fifo", "random", "until_expiry"]


@st.composite
def batches(draw: DrawFn, keys: int = 3, size: int = 12) -> list[Batch]:
    """Micro-batches in ascending time, with rows out of order and late rows; a side may be idle, a key null."""
    number = count()
    base, found = 30, []
    key: SearchStrategy[int | None] = st.one_of(st.integers(0, keys), st.none())
    for _ in range(draw(st.integers(1, 6))):
        batch: Batch = {}
        for side in SIDES:
            rows = draw(st.lists(st.tuples(key, st.integers(-25, 25)), max_size=size))
            batch[side] = [Arrival(k, base + offset, f"{side}{next(number)}") for k, offset in rows]
        base += draw(st.integers(0, 30))
        found.append(batch)
    return found


def texts(hand: Hand) -> Counter[tuple[str | None, str | None]]:
    return Counter((row.left, row.right) for row in hand.results)


class TestOneBucket:
    @given(
        batches(), st.sampled_from(WINDOWS), st.sampled_from(POLICIES), st.integers(1, 12), st.integers(0, 20)
    )
    def test_never_more_than_the_budget_is_buffered(
        self,
        stream: list[Batch],
        window: tuple[int | None, int | None],
        policy: str,
        budget: int,
        delay: int,
    ) -> None:
        hand = Hand(by_hand.plan(window, budget, policy))
        for batch, mark in zip(stream, by_hand.watermarks(stream, delay), strict=True):
            hand.step(batch, mark)
            hand.restart()
            assert hand.bucket.operator.rows <= budget
            # A segment is rewritten once most of its rows are dead.
            assert sum(store.rows for store in hand.bucket.payload.values()) <= 2 * hand.bucket.operator.rows
            assert hand.accounted == hand.rows_in
        assert hand.bucket.operator.tally.peak_rows <= budget

    @given(
        batches(), st.sampled_from(WINDOWS), st.sampled_from(POLICIES), st.integers(1, 12), st.integers(0, 20)
    )
    def test_results_are_a_part_of_the_exact_join(
        self,
        stream: list[Batch],
        window: tuple[int | None, int | None],
        policy: str,
        budget: int,
        delay: int,
    ) -> None:
        marks = by_hand.watermarks(stream, delay)
        hand = Hand(by_hand.plan(window, budget, policy))
        for batch, mark in zip(stream, marks, strict=True):
            hand.step(batch, mark)
        exact = Counter(by_hand.pairs(by_hand.timely(stream, marks), window))
        assert not texts(hand) - Counter[tuple[str | None, str | None]](exact)

    @given(batches(), st.sampled_from(WINDOWS), st.integers(0, 20))
    def test_ample_is_exact(
        self, stream: list[Batch], window: tuple[int | None, int | None], delay: int
    ) -> None:
        marks = by_hand.watermarks(stream, delay)
        hand = Hand(by_hand.plan(window))
        for batch, mark in zip(stream, marks, strict=True):
            hand.step(batch, mark)
            hand.restart()
        assert texts(hand) == Counter(by_hand.pairs(by_hand.timely(stream, marks), window))
        assert hand.accounted == hand.rows_in

    @given(
        batches(),
        st.sampled_from(["left", "right", "full", "left_anti"]),
        st.sampled_from(WINDOWS),
        st.sampled_from(["=", "<", "!=", ">=", Band(-1, 1)]),
        st.integers(1, 12),
        st.integers(0, 20),
    )
    def test_a_certain_lack_of_a_match_is_true(
        self,
        stream: list[Batch],
        how: How,
        window: tuple[int | None, int | None],
        condition: Condition,
        budget: int,
        delay: int,
    ) -> None:
        marks = by_hand.watermarks(stream, delay)
        hand = Hand(by_hand.plan(window, budget, "random", how, condition))
        for batch, mark in zip(stream, marks, strict=True):
            hand.step(batch, mark)
            hand.restart()
        hand.step({}, 10_000)
        hand.finish()
        rows = by_hand.timely(stream, marks)
        exact = by_hand.pairs(rows, window, condition)
        matched = {text for pair in exact for text in pair}
        alone = [row for row in hand.results if None in (row.left, row.right)]
        assert not [row for row in alone if not row.uncertain and {row.left, row.right} & matched]
        # Each row of an outer side is emitted: once without a match, or in a pair.
        assert max(Counter(alone).values(), default=1) == 1
        for side in SIDES:
            if how in (side, "full"):
                there = {getattr(row, side) for row in hand.results}
                assert there - {None} == {row.text for row in rows[side]}
        if how == "left_anti":
            assert {row.text for row in rows["left"]} - matched <= {row.left for row in alone}

    @pytest.mark.parametrize(("condition", "other"), [("<", -100), ("!=", 3), (Band(0, 5), -100)])
    def test_a_partner_that_was_shed_makes_a_lack_uncertain_whatever_its_key(
        self, condition: Condition, other: int
    ) -> None:
        hand = Hand(by_hand.plan((10, 10), 1, "fifo", "left", condition))
        hand.step({"right": [Arrival(4, 100, "b")]})
        hand.step({"right": [Arrival(other, 101, "c")]})  # b is evicted
        hand.step({"left": [Arrival(3, 102, "a")]})
        hand.step({}, 10_000)
        assert [row for row in hand.results if row.right is None] == [("a", None, True)]

    @given(batches(), st.sampled_from(WINDOWS), st.integers(0, 20))
    def test_a_semi_join_gives_each_row_once(
        self, stream: list[Batch], window: tuple[int | None, int | None], delay: int
    ) -> None:
        marks = by_hand.watermarks(stream, delay)
        exact = {left for left, _ in by_hand.pairs(by_hand.timely(stream, marks), window)}
        for budget in (None, 3):
            hand = Hand(by_hand.plan(window, budget, how="left_semi"))
            for batch, mark in zip(stream, marks, strict=True):
                hand.step(batch, mark)
                hand.restart()
            got = [row.left for row in hand.results]
            assert len(got) == len(set(got))
            assert set(got) == exact if budget is None else set(got) <= exact

    @given(batches(), st.sampled_from(WINDOWS), st.integers(0, 20))
    def test_a_semi_and_an_anti_join_divide_the_left_rows(
        self, stream: list[Batch], window: tuple[int | None, int | None], delay: int
    ) -> None:
        marks = by_hand.watermarks(stream, delay)
        divided = []
        for how in ("left_semi", "left_anti"):
            hand = Hand(by_hand.plan(window, how=how))
            for batch, mark in zip(stream, marks, strict=True):
                hand.step(batch, mark)
                hand.restart()
            hand.finish()
            assert not any(row.uncertain for row in hand.results)
            divided += [row.left for row in hand.results]
        timely = by_hand.timely(stream, marks)["left"]
        assert Counter(divided) == Counter(row.text for row in timely)

    @given(batches(), st.sampled_from(POLICIES), st.integers(200, 2_000))
    def test_bytes_are_really_held_within_the_budget(
        self, stream: list[Batch], policy: str, budget: int
    ) -> None:
        hand = Hand(by_hand.plan((None, None), Budget(bytes=budget), policy))
        for i, batch in enumerate(stream):
            hand.step({s: [r._replace(text=r.text * (1 + 7 * i)) for r in batch[s]] for s in SIDES})
            assert hand.bucket.operator.nbytes <= budget
            # A string column of Arrow has one offset more than rows.
            assert hand.bytes <= budget + 4 * len(SIDES)

    def test_bytes_count_nested_values_one_by_one(self) -> None:
        # One long list among many short ones: a mean size would count it as a short one.
        plan = by_hand.plan((None, None), Budget(bytes=20_000), "fifo")
        bucket = BucketJoin(plan)
        rows = [Arrival(i, i, "") for i in range(100)]
        lists = [[0] if i < 99 else list(range(100_000)) for i in range(100)]
        nested = by_hand.table(rows).append_column("c3", pa.array(lists, pa.list_(pa.int64())))
        list(bucket.step({"left": nested}, 0))
        assert sum(segment.nbytes for segment in bucket.payload["left"].segments) <= 20_000

    @given(batches(), st.sampled_from(POLICIES), st.permutations(range(12)))
    def test_the_order_within_a_micro_batch_says_nothing(
        self, stream: list[Batch], policy: str, order: list[int]
    ) -> None:
        given, shuffled = (Hand(by_hand.plan((20, 20), 4, policy, "full")) for _ in range(2))
        for batch in stream:
            given.step(batch)
            shuffled.step({s: [batch[s][i] for i in order if i < len(batch[s])] for s in SIDES})
            assert Counter(given.results) == Counter(shuffled.results)
            assert by_hand.content(given.bucket) == by_hand.content(shuffled.bucket)

    @given(batches(), st.sampled_from(POLICIES))
    def test_a_smaller_budget_takes_hold_at_the_next_step(self, stream: list[Batch], policy: str) -> None:
        hand = Hand(by_hand.plan((None, None), 20, policy))
        for batch in stream:
            hand.step(batch)
        hand.restart(by_hand.plan((None, None), 3, "fifo"))
        hand.step({})
        assert hand.bucket.operator.rows <= 3
        assert hand.accounted == hand.rows_in

    def test_another_zone_of_the_session_is_no_other_type(self) -> None:
        hand = Hand(by_hand.plan((10, 10), 5, how="full"))
        hand.step({"left": [Arrival(1, 1, "a"), Arrival(2, 1, "c")]}, zone="UTC")
        hand.restart()
        hand.step({"left": [Arrival(3, 2, "d")], "right": [Arrival(1, 2, "b")]}, zone="America/New_York")
        hand.step({}, 1_000)
        assert texts(hand) == Counter([("a", "b"), ("c", None), ("d", None)])

    def test_an_idle_outer_join_wakes_up_for_the_unmatched_row_that_leaves_first(self) -> None:
        for left, right, first in ((3, 8, 3 + 10), (30, 8, 8 + 20)):
            hand = Hand(by_hand.plan((10, 20), 5, how="full"))
            assert hand.bucket.next_expiry() is None
            hand.step({"left": [Arrival(1, left, "l")], "right": [Arrival(2, right, "r")]})
            assert hand.bucket.next_expiry() == first
            hand.step({}, first)
            assert not hand.results
            hand.step({}, first + 1)
            assert len(hand.results) == 1
            assert (
                hand.bucket.next_expiry()
                == ({3 + 10, 30 + 10, 8 + 20} & {left + 10, right + 20} - {first}).pop()
            )

    def test_another_layout_is_refused(self) -> None:
        hand = Hand(by_hand.plan(layout={"buckets": 2}))
        with pytest.raises(tg.InputError, match=r"(?s)buckets=2.*now has 4.*new checkpointLocation"):
            hand.restart(by_hand.plan(layout={"buckets": 4}))

    def test_one_row_that_matches_very_many_gives_bounded_chunks(self) -> None:
        many = 300_000
        hand = Hand(by_hand.plan((None, None), 10))
        hand.step({"left": [Arrival(1, 1, "one")]})
        wide = by_hand.table([Arrival(1, 2, "x" * 200)]).take(pa.array(np.zeros(many, np.int64)))
        hand.bucket.clock.advance(None, 0)
        sizes = [batch.num_rows for batch in hand.bucket.step({"right": wide}, 0)]
        assert sum(sizes) == many
        assert max(sizes) * 200 <= 16 << 20
        assert hand.bucket.operator.rows <= 10

    def test_a_burst_leaves_no_more_than_the_budget(self) -> None:
        hand = Hand(by_hand.plan((None, None), 50, "random"))
        for i, size in enumerate([20, 20, 2_000, 20]):
            rows = {s: [Arrival(j % 7, 10 * i + j % 10, f"{s}{i}-{j}") for j in range(size)] for s in SIDES}
            hand.step(rows)
            assert hand.bucket.operator.rows <= 50
        assert hand.accounted == hand.rows_in == 2 * 2_060


ROWS = 5


def files(rows: int, batches: int, side: str) -> Iterator[pa.Table]:
    """A hot key, an idle right, and one micro-batch that is a hundred times the usual size."""
    for i in range(batches):
        size = rows * 100 if i == 2 else rows
        if side == "right" and i < 2:
            size = 0
        yield pa.table(
            {
                "k": pa.array([j % 10 if j % 2 else 1 for j in range(size)], pa.int64()),
                "t": pa.array(
                    [streams.at(10_000 * i + j * 10_000 // size) for j in range(size)],
                    pa.timestamp("us", "UTC"),
                ),
                f"{side}_text": pa.array([f"{side}{i}-{j}" for j in range(size)], pa.string()),
            }
        )


@pytest.mark.spark
@pytest.mark.parametrize(("budget", "policy"), [(Budget(rows=16), "random"), (Budget(bytes="2 kB"), "fifo")])
def test_a_query_keeps_its_budget(spark: SparkSession, tmp_path: Path, budget: Budget, policy: str) -> None:
    delay, window = "2 seconds", ("15 seconds", "15 seconds")
    for side in SIDES:
        streams.write(tmp_path / side, list(files(ROWS, 4, side)))
    sides = [streams.read(spark, tmp_path / side, "t", delay) for side in SIDES]
    joined = tg.join(*sides, on="k", time="t", window=window, budget=budget, policy=policy)
    got = Counter(streams.run(joined, tmp_path / "checkpoint"))
    counts = tg.inspect(tmp_path / "checkpoint", "counts", spark=spark).collect()
    assert len(counts) == 2
    assert sum(row.budget for row in counts) == budget.limit
    for row in counts:
        assert (row.peak_rows if budget.unit == "rows" else row.peak_bytes) <= row.budget
        assert row.policy == policy
        left = row.evicted + row.expired + row.buffered + row.late + row.null_keys
        assert left == row.rows_left + row.rows_right
    assert sum(row.rows_left + row.rows_right for row in counts) == ROWS * 103 + ROWS * 101
    assert sum(row.results for row in counts) == got.total()
    buffered = tg.inspect(tmp_path / "checkpoint", spark=spark).collect()
    assert len(buffered) == sum(row.buffered for row in counts)
    if budget.unit == "rows":
        assert len(buffered) == budget.limit
    batch = [spark.read.parquet(str(tmp_path / side)) for side in SIDES]
    condition = "l.k = r.k and r.t between l.t - interval 15 seconds and l.t + interval 15 seconds"
    exact = batch[0].alias("l").join(batch[1].alias("r"), F.expr(condition))
    wanted = Counter(map(tuple, exact.select("l.k", "l.t", "left_text", "r.t", "right_text").collect()))
    assert not got - wanted
    assert 0 < got.total() < wanted.total()
