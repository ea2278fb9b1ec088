"""A bucket values its rows, saves the definition, and applies redefinitions; run without Spark."""

from __future__ import annotations

import json
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tidegate as tg
from tests.importance.per_row import importance_of
from tests.spark import buckets_by_hand as by_hand
from tests.spark.buckets_by_hand import Arrival, Batch, Hand
from tests.spark.join.test_bounds import batches
from tidegate.importance import (
    Categories,
    Combined,
    Definition,
    DefinitionFile,
    DefinitionLike,
    Histogram,
    Sides,
    Source,
)
from tidegate.importance.definition import walk
from tidegate.policies import Importance, Need
from tidegate.spark.bucket.join.bucket import BucketJoin
from tidegate.spark.bucket.join.valuation import Valuation
from tidegate.spark.query.evolution import migrate
from tidegate.types import SIDES, InputError, Side

if TYPE_CHECKING:
    from tidegate.spark.bucket.join.plan import BucketPlan

KINDS = {"key": pa.int64(), "time": pa.timestamp("us", "UTC"), "text": pa.string()}
FIRST = Histogram("key", [0, 1, 2, 3], [1, 4, 2])
SECOND = Sides(Categories("key", {0: 5, 3: 1}, default=0.5), Source(3, 2))
THIRD = Source(1, 1)


def plan(importance: DefinitionLike, **settings: Any) -> BucketPlan:  # noqa: ANN401 - as the plan's
    given = Definition.of(importance)
    names = {side: {name: f"c{i}" for i, name in enumerate(KINDS)} for side in SIDES}
    found = {file: file.read() for file in walk(given) if isinstance(file, DefinitionFile)}
    valuation = Valuation(given, found, names, dict.fromkeys(SIDES, KINDS), {side: {} for side in SIDES})
    return replace(by_hand.plan(**{"policy": Importance()} | settings), valuation=valuation)


def write(path: Path | str, definition: Definition) -> None:
    Path(path).write_text(json.dumps(definition.to_dict()))


def key_of(stream: list[Batch]) -> dict[str, int]:
    return {
        row.text: row.key
        for batch in stream
        for rows in batch.values()
        for row in rows
        if row.key is not None
    }


def importances(bucket: BucketJoin) -> dict[str, float]:
    """The importance of each buffered row, by its text."""
    found: dict[str, float] = {}
    for side, store in bucket.payload.items():
        rows = bucket.operator.buffers[side].rows
        assert rows.importance is not None
        if len(rows):
            texts = store.take(rows.id).column("c2").to_pylist()
            found |= dict(zip(texts, rows.importance.tolist(), strict=True))
    return found


def step(hand: Hand, *rows: tuple[int, int, str], watermark: int = 0) -> None:
    """A micro-batch as the processor runs it: rows (key, time, text) of the side that their text begins with."""
    batch: Batch = {side: [Arrival(*row) for row in rows if row[2].startswith(side)] for side in SIDES}
    hand.step(batch, watermark)
    hand.bucket.valuation.reload_importance()
    hand.restart()


@settings(max_examples=40)
@given(
    batches(),
    st.lists(st.sampled_from([FIRST, SECOND, THIRD, None]), min_size=6, max_size=6),
    st.integers(1, 12),
    st.sampled_from(["rows", "bytes"]),
)
def test_results_are_worth_what_held_and_buffered_rows_what_holds_next(
    stream: list[Batch], files: list[Definition | None], budget: int, unit: str
) -> None:
    keys = key_of(stream)
    with tempfile.TemporaryDirectory() as folder:
        file = DefinitionFile(f"{folder}/importance.json")
        applied: Definition = Histogram("key", [0, 9], [2])
        write(file.path, applied)
        limit = tg.Budget(bytes=60 * budget) if unit == "bytes" else budget
        hand = Hand(plan(Combined("product", [file, 2]), budget=limit, window=(10, 10)))
        total = 0.0
        for number, batch in enumerate(stream):
            before = len(hand.results)
            hand.step(batch, 0)
            for row in hand.results[before:]:
                assert row.left is not None
                assert row.right is not None
                one = importance_of(applied, "left", {"key": keys[row.left]})
                other = importance_of(applied, "right", {"key": keys[row.right]})
                assert one is not None
                assert other is not None
                total += 2 * min(one, other)
            assert hand.bucket.operator.tally.importance == pytest.approx(total)
            written = files[number]
            if written is None:
                Path(file.path).write_text("{")
            else:
                write(file.path, written)
                applied = written
            hand.bucket.valuation.reload_importance()
            hand.restart()
            for text, value in importances(hand.bucket).items():
                side: Side = "left" if text.startswith("left") else "right"
                assert value == 2 * (importance_of(applied, side, {"key": keys[text]}) or 0.0)


@settings(max_examples=40)
@given(batches(), st.sampled_from([FIRST, SECOND]), st.integers(1, 10), st.sampled_from(["min", "sum"]))
def test_a_batch_of_one_bucket_is_a_simulation(
    stream: list[Batch],
    definition: Definition,
    budget: int,
    combine: Any,  # noqa: ANN401
) -> None:
    rows = {side: [row for batch in stream for row in batch[side] if row.key is not None] for side in SIDES}
    for side in SIDES:
        # Rows of a side have different times, in order: rows of equal score are evicted by their number.
        rows[side] = sorted({row.time: row for row in rows[side]}.values(), key=lambda row: row.time)
    made = plan(definition, budget=budget, window=(20, 10))
    hand = Hand(replace(made, join=replace(made.join, combine=combine)))
    for tables in hand.bucket.intake.divide_into_steps(
        {side: by_hand.table(rows[side]) for side in SIDES}, 1
    ):
        hand._keep(hand.bucket.step(tables, None))
    sides = [
        {
            "key": np.array([r.key for r in rows[side]], np.int64),
            "time": np.array([r.time for r in rows[side]], np.int64),
        }
        for side in SIDES
    ]
    report = tg.simulate(
        *sides,
        window=(20, 10),
        budget=budget,
        policy=Importance(),
        step="instant",
        importance=definition,
        combine=combine,
        collect=True,
    )
    assert hand.bucket.operator.tally.importance == pytest.approx(report.importance)
    assert report.pairs is not None
    expected = sorted(
        (rows["left"][i].text, rows["right"][j].text) for i, j in zip(*report.pairs, strict=True)
    )
    assert sorted((row.left, row.right) for row in hand.results) == expected


@pytest.fixture
def file(tmp_path: Path) -> DefinitionFile:
    file = DefinitionFile(tmp_path / "importance.json")
    write(file.path, FIRST)
    return file


def test_a_redefinition_revalues_what_is_buffered_and_changes_who_stays(file: DefinitionFile) -> None:
    hand = Hand(plan(file, budget=2))
    step(hand, (0, 10, "left a"), (1, 10, "left b"), (2, 10, "left c"))
    assert importances(hand.bucket) == {"left b": 4.0, "left c": 2.0}
    write(file.path, Categories("key", {2: 9}, default=1))
    step(hand, (1, 11, "right d"))
    # That step still used the old definition: it kept the new row and the most important old row.
    assert importances(hand.bucket) == {"left b": 1.0, "right d": 1.0}
    assert hand.bucket.operator.tally.importance == 4.0
    step(hand, (2, 12, "right e"), (1, 12, "right f"))
    assert importances(hand.bucket) == {"right e": 9.0, "right f": 1.0}
    assert hand.bucket.operator.tally.importance == 4.0 + 1.0
    assert hand.bucket.valuation.state.redefined == 1


def test_a_micro_batch_that_is_run_again_does_the_same_whatever_the_file_says(file: DefinitionFile) -> None:
    made = plan(file, budget=3)
    hand = Hand(made)
    step(hand, (0, 10, "left a"), (1, 10, "left b"), (2, 10, "left c"))
    state = by_hand.saved(hand.bucket)
    arrivals: Batch = {"right": [Arrival(k, 11, f"right {k}") for k in range(3)]}
    seen = []
    for definition in (FIRST, SECOND, None):
        if definition is None:
            Path(file.path).unlink()
        else:
            write(file.path, definition)
        again = Hand(made)
        again.bucket = BucketJoin.load(made, migrate(state, made))
        again.step(arrivals, 0)
        seen.append((again.results, again.bucket.operator.tally, importances(again.bucket)))
    assert seen[0] == seen[1] == seen[2]
    assert seen[0][1].importance == 1 + 4 + 2


@pytest.mark.parametrize(
    ("content", "word"),
    [
        (None, "cannot be read"),
        ("{", "is not a definition"),
        ('"prize"', "no column 'prize'"),
        ('"text"', "left.text is of type string"),
        (json.dumps(Histogram("key", [5, 6], [1]).to_dict()), "key is 1, outside of the edges 5 to 6"),
    ],
)
def test_a_file_that_cannot_be_used_changes_nothing_and_is_reported(
    file: DefinitionFile, content: str | None, word: str
) -> None:
    hand = Hand(plan(file, budget=2))
    step(hand, (1, 10, "left b"))
    if content is None:
        Path(file.path).unlink()
    else:
        Path(file.path).write_text(content)
    for _ in range(2):
        step(hand, (1, 11, "right d"))
    assert set(importances(hand.bucket).values()) == {4.0}
    saved = by_hand.saved(hand.bucket).importance
    assert saved is not None
    assert (saved.redefined, saved.refused) == (0, 2)
    assert word in (saved.refusal or "")
    write(file.path, THIRD)
    step(hand)
    assert set(importances(hand.bucket).values()) == {1.0}


def test_arrivals_that_cannot_be_valued_stop_the_query_until_the_file_is_repaired(
    file: DefinitionFile,
) -> None:
    hand = Hand(plan(file, budget=9))
    step(hand, (1, 10, "left b"))
    state = by_hand.saved(hand.bucket)
    for _ in range(2):
        with pytest.raises(InputError, match=r"right.key is 7, outside of the edges 0 to 3"):
            hand.step({"right": [Arrival(7, 11, "right x")]}, 0)
        hand.bucket = BucketJoin.load(hand.plan, migrate(state, hand.plan))
    write(file.path, Categories("key", {7: 6}, default=2))
    step(hand, (7, 11, "right x"))
    assert importances(hand.bucket) == {"left b": 2.0, "right x": 6.0}


def test_a_restart_with_another_definition_revalues_at_once() -> None:
    hand = Hand(plan(FIRST, budget=4))
    step(hand, (0, 10, "left a"), (1, 10, "left b"))
    hand.restart(plan(SECOND, budget=4))
    assert importances(hand.bucket) == {"left a": 5.0, "left b": 0.5}
    hand.restart(by_hand.plan(budget=4))
    step(hand, (1, 11, "right c"))
    assert hand.bucket.operator.buffers["left"].rows.importance is None
    assert by_hand.saved(hand.bucket).importance is None
    hand.restart(plan(FIRST, budget="1 KB"))
    assert importances(hand.bucket) == {"left a": 1.0, "left b": 4.0, "right c": 4.0}
    step(hand, (1, 12, "left d"))
    with pytest.raises(InputError, match=r"left.key is"):
        hand.restart(plan(Histogram("key", [5, 6], [1]), budget=4))


def test_a_restart_with_the_same_file_goes_on_with_what_held(file: DefinitionFile) -> None:
    hand = Hand(plan(file, budget=4))
    step(hand, (1, 10, "left b"))
    write(file.path, THIRD)
    hand.restart(plan(file, budget=4))
    assert importances(hand.bucket) == {"left b": 4.0}
    step(hand)
    assert importances(hand.bucket) == {"left b": 1.0}


def test_null_keys_and_late_rows_need_no_importance() -> None:
    hand = Hand(plan(FIRST, how="full"))
    hand.step({"left": [Arrival(None, 10, "left a"), Arrival(1, 10, "left b")]}, 5)
    hand.step({"left": [Arrival(8, 4, "left late")]}, 5)
    assert importances(hand.bucket) == {"left b": 4.0}
    assert hand.bucket.intake.counts.late == 1


class Demanding(Importance):
    """A user's policy that needs importance."""

    needs: ClassVar[frozenset[Need]] = frozenset({"importance"})


def test_a_look_with_a_policy_that_needs_importance_where_there_is_none() -> None:
    hand = Hand(by_hand.plan(budget=4))
    step(hand, (1, 10, "left b"))
    with pytest.raises(InputError, match="needs the importance of each row"):
        by_hand.saved(hand.bucket).restore_policy(Demanding())
    assert by_hand.saved(hand.bucket).restore_policy(Importance())
