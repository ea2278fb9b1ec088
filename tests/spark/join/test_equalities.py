"""`on=` as Spark's own comparison of columns."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import pytest
from pyspark.sql import functions as F  # noqa: N812 - its usual name

import tidegate as tg
from tidegate.types import InputError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = pytest.mark.spark

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
Given = Callable[["DataFrame", "DataFrame"], Any]

PLAIN: dict[str, tuple[Given, Any]] = {
    "one name": (lambda a, b: a.k == b.k, "k"),
    "by brackets, reversed": (lambda a, b: b["k"] == a["k"], "k"),
    "other names": (lambda a, b: a.x == b.y, [("x", "y")]),
    "other names, reversed": (lambda a, b: b.y == a.x, [("x", "y")]),
    "unbound": (lambda _, __: F.col("x") == F.col("y"), [("x", "y")]),
    "unbound, reversed": (lambda _, __: F.col("y") == F.col("x"), [("x", "y")]),
    "several": (lambda a, b: (a.k == b.k) & (F.col("x") == b.y), ["k", ("x", "y")]),
    "a list": (lambda a, b: [a.k == b.k, a.x == b.y], ["k", ("x", "y")]),
    "a name and a comparison": (lambda a, b: ["k", a.x == b.y], ["k", ("x", "y")]),
    "crosswise": (lambda a, b: a.x == b.k, [("x", "k")]),
    "crosswise, reversed": (lambda a, b: b.x == a.k, [("k", "x")]),
    "a quoted name": (lambda _, __: F.col("`a.b`") == F.col("y"), [("a.b", "y")]),
}


def sides(spark: SparkSession) -> tuple[DataFrame, DataFrame]:
    rows = [(1, 1, 1, NOON), (1, 2, 2, NOON), (2, 1, 3, NOON)]
    left = spark.createDataFrame(rows, "k long, x long, `a.b` long, t timestamp")
    right = spark.createDataFrame(rows, "k long, y long, x long, t timestamp")
    return left, right


def joined(left: DataFrame, right: DataFrame, on: Any) -> list[str]:  # noqa: ANN401 - as join's
    return sorted(map(str, tg.join(left, right, on=on, time="t", window=("1 s", "1 s"), buckets=1).collect()))


@pytest.mark.parametrize("how", PLAIN)
def test_a_comparison_is_what_names_are(spark: SparkSession, how: str) -> None:
    left, right = sides(spark)
    given, names = PLAIN[how]
    found = joined(left, right, given(left, right))
    assert found == joined(left, right, names)
    assert found


def test_aliases_and_derived_frames(spark: SparkSession) -> None:
    left, right = sides(spark)
    by_alias = F.col("one.x") == F.col("two.k")
    expected = joined(left, right, [("x", "k")])
    assert joined(left.alias("one"), right.alias("two"), by_alias) == expected
    assert joined(left.where("k > 0"), right.alias("two"), left.x == F.col("two.k")) == expected
    # Both sides come from one DataFrame: the DataFrame of each reference identifies its side.
    upper, lower = left.where("x > 0"), left.where("k > 0")
    assert joined(upper, lower, upper.k == lower.x) == joined(upper, lower, [("k", "x")])
    assert joined(upper, lower, lower.k == upper.x) == joined(upper, lower, [("x", "k")])


@pytest.mark.parametrize(
    ("given", "why"),
    [
        (lambda a, b: a.k > b.k, "is not an equality of plain columns"),
        (lambda a, b: a.k.eqNullSafe(b.k), "is not an equality of plain columns"),
        (lambda a, b: (a.k == b.k) | (a.x == b.y), "is not an equality of plain columns"),
        (lambda a, b: (a.k == b.k) & (a.x > b.y), "where='l.amount > r.amount'"),
        (lambda a, b: a.k + 1 == b.k, "write left.id == right.id"),
        (lambda a, _: a.k == 5, "is not an equality of plain columns"),
        (lambda a, _: a.k, "is not an equality of plain columns"),
        (lambda a, _: a.k == a.x, "compares two columns of one side"),
        (lambda _, __: F.col("x") == F.col("z"), "names 'z', which is not a column; left has k, x"),
        (lambda _, __: F.col("k") == F.col("x"), "does not state which of 'k' and 'x' is the left's"),
    ],
)
def test_what_is_not_plain_is_refused(spark: SparkSession, given: Given, why: str) -> None:
    left, right = sides(spark)
    with pytest.raises(InputError) as caught:
        joined(left, right, given(left, right))
    assert why in str(caught.value)


def test_an_equality_beside_a_condition_is_refused(spark: SparkSession) -> None:
    left, right = sides(spark)
    with pytest.raises(InputError, match="compares by ==, and condition='<'"):
        tg.join(left, right, on=left.k == right.k, time="t", window=("1 s", "1 s"), condition="<", by="x")


SPELLINGS = {
    "inner": ["INNER"],
    "left": ["LEFT", "left_outer", "leftouter", "LeftOuter"],
    "right": ["right_outer", "rightouter"],
    "full": ["outer", "full_outer", "fullouter", "FULL"],
    "left_semi": ["semi", "leftsemi", "Left_Semi"],
    "left_anti": ["anti", "leftanti", "LEFT_ANTI"],
}


@pytest.mark.parametrize("how", SPELLINGS)
def test_every_spelling_of_spark(spark: SparkSession, how: str) -> None:
    left, right = sides(spark)
    plain = tg.join(left, right, on="k", time="t", window=("1 s", "1 s"), how=how)
    for spelled in SPELLINGS[how]:
        # Spark accepts it, too.
        assert left.join(right, "k", spelled).columns
        other = tg.join(left, right, on="k", time="t", window=("1 s", "1 s"), how=spelled)
        assert other.schema == plain.schema
    assert sorted(map(str, other.collect())) == sorted(map(str, plain.collect()))


def test_a_join_inside_a_chain_is_the_same(spark: SparkSession) -> None:
    left, right = sides(spark)
    settings: dict[str, Any] = {"on": "k", "time": "t", "window": ("1 s", "1 s"), "budget": 10}
    chained = left.where("x < 3").transform(tg.joining(right, **settings))
    plain = tg.join(left.where("x < 3"), right, **settings)
    assert chained.schema == plain.schema
    assert sorted(map(str, chained.collect())) == sorted(map(str, plain.collect()))


@pytest.mark.parametrize("wrong", [{"windows": ("1 s", "1 s")}, {"time": "t"}])
def test_arguments_of_a_chained_join_are_checked_at_once(spark: SparkSession, wrong: dict[str, Any]) -> None:
    right = sides(spark)[1]
    with pytest.raises(TypeError, match=r"windows|missing a required"):
        tg.joining(right, on="k", **wrong)
