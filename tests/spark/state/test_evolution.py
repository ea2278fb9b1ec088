"""What a query may change when it continues from a checkpoint: rows are converted, or differences are listed."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql.types import (
    DataType,
    DateType,
    DecimalType,
    DoubleType,
    IntegerType,
    LongType,
    StringType,
    TimestampNTZType,
    TimestampType,
)

from tests.spark import buckets_by_hand as by_hand
from tests.spark.buckets_by_hand import Arrival, Hand
from tidegate.spark.bucket.join.plan import BucketPlan
from tidegate.spark.query.evolution import check_restart, differences
from tidegate.types import SIDES, InputError, Side

Columns = list[tuple[str, DataType]]

BASE: Columns = [("key", LongType()), ("time", TimestampType()), ("text", StringType())]


def layout(columns: Columns = BASE, **other: Any) -> dict[str, Any]:  # noqa: ANN401 - a layout's own
    described = [[name, kind.json()] for name, kind in columns]
    return {"how": "inner", **{f"{side} columns": described for side in SIDES}} | other


def plan(columns: Columns, *, how: str = "inner", **other: Any) -> BucketPlan:  # noqa: ANN401
    made = by_hand.plan((100, 100), None, layout=layout(columns, how=how, **other))
    at = {name: f"c{i}" for i, (name, _) in enumerate(columns)}
    outputs = tuple(
        replace(out, **{side: at[name] if getattr(out, side) else None for side in SIDES})
        for out, name in zip(made.output, ("key", "time", "text", "time", "text"), strict=True)
    )
    sides = replace(made.left, names=tuple(at.values()), time=at["time"])
    return replace(made, output=outputs, left=sides, right=sides)


def arrivals(columns: Columns, rows: list[Arrival], price: pa.Array | None = None) -> pa.Table:
    """Rows as a bucket receives them, with the columns of a query."""
    base = by_hand.table(rows)
    own = {"key": base.column("c0"), "time": base.column("c1"), "text": base.column("c2"), "price": price}
    table = base.select(["k", "h"])
    for i, (name, _) in enumerate(columns):
        table = table.append_column(f"c{i}", own[name])
    return table


def stored(hand: Hand, side: Side, column: str) -> pa.ChunkedArray:
    return hand.bucket.payload[side].take(hand.bucket.operator.buffers[side].rows.id).column(column)


def text_pairs(hand: Hand, tables: dict[Any, pa.Table], text: int) -> set[tuple[Any, ...]]:
    hand.bucket.clock.advance(None, 0)
    found = pa.Table.from_batches(list(hand.bucket.step(tables, 0)))
    return set(zip(found.column("o2").to_pylist(), found.column(f"o{text}").to_pylist(), strict=True))


def test_reordered_and_new_columns_of_buffered_rows() -> None:
    hand = Hand(plan(BASE))
    hand.bucket.clock.advance(None, 0)
    list(hand.bucket.step({"left": arrivals(BASE, [Arrival(1, 10, "old")])}, 0))
    changed: Columns = [
        ("price", IntegerType()),
        ("text", StringType()),
        ("time", TimestampType()),
        ("key", LongType()),
    ]
    hand.restart(plan(changed))
    tables = {"right": arrivals(changed, [Arrival(1, 12, "new")], price=pa.array([7], pa.int32()))}
    assert text_pairs(hand, tables, 4) == {("old", "new")}
    assert stored(hand, "left", "c0").to_pylist() == [None]
    hand.restart()
    assert stored(hand, "left", "c1").to_pylist() == ["old"]
    assert stored(hand, "right", "c0").to_pylist() == [7]


def test_buffered_rows_get_a_wider_type() -> None:
    narrow: Columns = [*BASE, ("price", IntegerType())]
    wide: Columns = [*BASE, ("price", LongType())]
    hand = Hand(plan(narrow))
    hand.bucket.clock.advance(None, 0)
    price = pa.array([3], pa.int32())
    list(hand.bucket.step({"left": arrivals(narrow, [Arrival(1, 10, "old")], price=price)}, 0))
    hand.restart(plan(wide))
    large = pa.array([1 << 40], pa.int64())
    list(hand.bucket.step({"left": arrivals(wide, [Arrival(2, 11, "new")], price=large)}, 0))
    hand.restart()
    prices = stored(hand, "left", "c3")
    assert prices.type == pa.int64()
    assert prices.to_pylist() == [3, 1 << 40]


@pytest.mark.parametrize(
    ("saved", "wanted", "words"),
    [
        (layout(), layout(how="left"), ["how='inner'", "'left'"]),
        (layout(), layout(BASE[:2]), ["left column 'text'", "is missing", "right column 'text'"]),
        (
            layout(),
            layout([*BASE, ("n", LongType())], **{"left required": ["n"]}),
            ["'n' that is never null"],
        ),
        (
            layout([*BASE, ("n", LongType())]),
            layout([*BASE, ("n", IntegerType())]),
            ["'n' was of type bigint and is now int, which is not wider"],
        ),
        (
            layout([*BASE, ("n", DecimalType(9, 2))]),
            layout([*BASE, ("n", DecimalType(9, 4))]),
            ["decimal(9,2)", "decimal(9,4)"],
        ),
        (
            layout([("key", DateType()), *BASE[1:]]),
            layout([("key", TimestampNTZType()), *BASE[1:]], **{"left keys": ["key"]}),
            ["left key 'key' was of type date and is now timestamp_ntz", "only integers may be widened"],
        ),
        (
            layout([("key", IntegerType()), *BASE[1:]]),
            layout([("key", DoubleType()), *BASE[1:]], **{"right keys": ["key"]}),
            ["right key 'key' was of type int and is now double, so it would not match buffered rows"],
        ),
        (
            layout(where=[{"w0": "`text`"}, {"w0": "`text`"}, ""]),
            layout(where=[{"w0": "upper(`text`)"}, {"w0": "`text`"}, ""]),
            ["where uses the left expression 'upper(`text`)'"],
        ),
        (
            layout(),
            layout(importance={"left": {"`key` * 2": "v0"}, "right": {}}),
            ["importance uses the left expression"],
        ),
    ],
)
def test_what_cannot_follow_is_listed(
    saved: dict[str, Any], wanted: dict[str, Any], words: list[str]
) -> None:
    with pytest.raises(InputError, match="cannot continue from the checkpoint") as caught:
        check_restart(saved, wanted)
    for word in words:
        assert word in str(caught.value)


def test_all_differences_are_listed_at_once() -> None:
    assert len(list(differences(layout(buckets=2), layout(BASE[:2], how="left", buckets=4)))) == 4


@pytest.mark.parametrize(
    "wanted",
    [
        layout(where=[{"w0": "upper(`text`)", "w1": "`key`"}, {}, "another tree"]),
        layout(where=None),
        layout(name="another"),
        layout([*BASE, ("new", StringType())]),
        layout(BASE[::-1]),
        layout([("key", LongType()), *BASE[1:]], **{"left keys": ["key"]}),
    ],
)
def test_what_may_change(wanted: dict[str, Any]) -> None:
    saved = layout([("key", IntegerType()), *BASE[1:]], where=[{"w0": "upper(`text`)"}, {}, "tree"])
    check_restart(saved, wanted)


def test_expressions_of_where_are_found_again_under_other_names() -> None:
    hand = Hand(replace(plan(BASE), layout=layout(where=[{"w0": "upper(`text`)"}, {}, ""])))
    table = arrivals(BASE, [Arrival(1, 10, "old")]).append_column("w0", pa.array(["OLD"]))
    hand.bucket.clock.advance(None, 0)
    list(hand.bucket.step({"left": table}, 0))
    hand.restart(replace(plan(BASE), layout=layout(where=[{"w0": "`text`", "w1": "upper(`text`)"}, {}, ""])))
    assert stored(hand, "left", "w0").to_pylist() == ["old"]
    assert stored(hand, "left", "w1").to_pylist() == ["OLD"]


def test_new_expressions_of_columns_and_constants_are_computed_for_buffered_rows() -> None:
    hand = Hand(replace(plan(BASE), layout=layout(where=[{"w0": "`key` + 800"}, {}, ""])))
    table = arrivals(BASE, [Arrival(1, 10, "old"), Arrival(7, 11, "older")])
    hand.bucket.clock.advance(None, 0)
    list(hand.bucket.step({"left": table.append_column("w0", pa.array([801, 807]))}, 0))
    wider: Columns = [("extra", DoubleType()), *BASE]
    form = ["add_checked", ["column", "c1"], ["value", 500, "int64"]]
    extra = ["multiply_checked", ["column", "c0"], ["value", 2.0, "double"]]
    wanted = layout(
        wider,
        where=[{"w0": "`key` + 500", "w1": "`extra` * 2", "w2": "`key` + 800"}, {}, ""],
        computable={"where": {"left": {"`key` + 500": form, "`extra` * 2": extra}}},
    )
    hand.restart(replace(plan(wider), layout=wanted))
    found = {name: stored(hand, "left", name).to_pylist() for name in ("w0", "w1", "w2")}
    assert found == {"w0": [501, 507], "w1": [None, None], "w2": [801, 807]}
