"""On batch DataFrames, a join with a sufficient budget equals Spark's: every key type, condition and join type.

Many small generated tables run as one job: each has a number, which is a key as well.
"""

from __future__ import annotations

import random
from datetime import date, timedelta
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import pytest
from pyspark.sql import functions as F  # noqa: N812 - its usual name

import tidegate as tg
from tests.spark.streams import HOWS, conf, texts
from tidegate.spark.bucket.join.plan import LEFT_ONLY
from tidegate.types import Band

if TYPE_CHECKING:
    from collections import Counter
    from collections.abc import Iterator

    from pyspark.sql import DataFrame, SparkSession

    from tidegate.spark.bucket.join.plan import How
    from tidegate.types import Condition

pytestmark = pytest.mark.spark

NAN, INF = float("nan"), float("inf")
DOMAINS: dict[str, list[Any]] = {
    "bigint": [0, 1, -1, 2**53 + 1, 2**53, 2**63 - 1, -(2**63)],
    "tinyint": [0, 1, -128, 127],
    "double": [0.0, -0.0, NAN, INF, -INF, 1.5, 5e-324],
    "float": [0.0, -0.0, NAN, INF, 1.5],
    "decimal(38,18)": [
        Decimal("1.000000000000000001"),
        Decimal(1),
        Decimal("99999999999999999999.5"),
        Decimal(-1),
    ],
    "decimal(5,2)": [Decimal("1.10"), Decimal("1.01"), Decimal("-1.10")],
    "date": [date(1, 1, 1), date(1970, 1, 1), date(9999, 12, 31), date(2026, 3, 8)],
    "string": ["", "a", "A", "é", "e\u0301", "\U0001f600", "a\0b", " a"],
    "binary": [b"", b"\0", b"\0\0", b"a", b"\xff"],
    "boolean": [True, False],
    "timestamp_ntz": [
        "2026-03-08 02:30:00",
        "2026-03-08 03:30:00",
        "2026-11-01 01:30:00",
        "0001-01-01 00:00:00",
    ],
    "timestamp": [
        "2026-03-08 01:30:00",
        "2026-03-08 03:30:00",
        "1883-11-18 12:03:57",
        "9999-12-31 23:59:59.999999",
    ],
    "array<int>": [[], [1], [1, 2], [None], [2, 1]],
    "struct<x:double,y:string>": [(0.0, "a"), (-0.0, "a"), (NAN, None), (1.0, "a"), (None, "a")],
    "interval day to second": [timedelta(0), timedelta(days=1), timedelta(days=-1, microseconds=1)],
}
ORDERED = ("bigint", "tinyint", "double", "float", "date", "timestamp", "timestamp_ntz")
BANDS = {
    "bigint": Band(-1, 2),
    "tinyint": Band(0, 127),
    "double": Band(-1.5, 0.0),
    "float": Band(0, 1.5),
    "date": Band(0, 30_000),
}


def tables(spark: SparkSession, kind: str, seed: int, cases: int = 12) -> tuple[DataFrame, DataFrame]:
    """Both sides: the number of the case, a key of the type, a time, and a unique number."""
    rng = random.Random(seed)  # noqa: S311 - not for secrets
    domain = [*DOMAINS[kind], None]
    frames = []
    sent = "string" if kind.startswith("timestamp") else kind
    for side in ("left", "right"):
        rows = [
            (
                case,
                rng.choice(domain),
                rng.randint(0, 20) if rng.random() < 0.97 else None,
                f"{side}{case}-{i}",
            )
            for case in range(cases)
            for i in range(rng.randint(0, 7))
        ]
        frame = spark.createDataFrame(rows, f"c int, k {sent}, s int, {side} string")
        time = "t" if side == "left" else "u"
        frames.append(
            frame.selectExpr("c", f"cast(k as {kind}) as k", f"timestamp_seconds(s) as {time}", side)
        )
    return frames[0], frames[1]


def own(left: DataFrame, right: DataFrame, condition: str, how: How) -> DataFrame:
    window = "r.u >= l.t - interval 3 seconds and r.u <= l.t + interval 8 seconds"
    joined = left.alias("l").join(right.alias("r"), F.expr(f"{condition} and {window}"), how)
    if how in LEFT_ONLY:
        return joined
    return joined.select(F.col("l.t"), "left", F.col("r.u"), "right")


def ours(left: DataFrame, right: DataFrame, how: How, **settings: Any) -> DataFrame:  # noqa: ANN401 - of join
    return tg.join(left, right, time=("t", "u"), window=("8 seconds", "3 seconds"), how=how, **settings)


def assert_equal(got: Counter[Any], wanted: Counter[Any]) -> None:
    assert not got - wanted
    assert not wanted - got


@pytest.fixture
def planned_once(spark: SparkSession) -> Iterator[None]:
    """No adaptive execution, which plans a union of many joins again after each of its stages."""
    with conf(spark, spark__sql__adaptive__enabled="false"):
        yield


@pytest.mark.usefixtures("planned_once")
@pytest.mark.parametrize("kind", DOMAINS)
def test_keys_of_every_type(spark: SparkSession, kind: str) -> None:
    """One job for all hows: their results, each with its name, in one DataFrame."""
    left, right = (frame.cache() for frame in tables(spark, kind, seed=1))
    got, wanted = [], []
    for how in HOWS:
        condition = "l.c = r.c and l.k = r.k"
        theirs, mine = own(left, right, condition, how), ours(left, right, how, on=["c", "k"], step=10)
        if how in LEFT_ONLY:
            columns = (f"'{how}' as how", "t", "left", "null as u", "null as right")
            got.append(mine.selectExpr(*columns))
            wanted.append(theirs.selectExpr(*columns))
        else:
            got.append(mine.selectExpr(f"'{how}' as how", "t", "left", "u", "right"))
            wanted.append(theirs.selectExpr(f"'{how}' as how", "t", "left", "u", "right"))
    assert_equal(texts(union(got)), texts(union(wanted)))


def union(frames: list[DataFrame]) -> DataFrame:
    whole = frames[0]
    for frame in frames[1:]:
        whole = whole.unionByName(frame)
    return whole


@pytest.mark.parametrize("kind", ["bigint", "date", "timestamp_ntz", "timestamp", "boolean"])
@pytest.mark.parametrize("zone", ["UTC", "America/New_York"])
def test_one_key_that_is_an_integer_inside(spark: SparkSession, kind: str, zone: str) -> None:
    """Such a key is not confirmed by a hash, so different values must have different numbers."""
    with conf(spark, spark__sql__session__timeZone=zone):
        left, right = (frame.where("c < 3").drop("c") for frame in tables(spark, kind, seed=2))
        mine = ours(left, right, "full", on="k").drop("uncertain")
        theirs = left.alias("l").join(
            right.alias("r"),
            F.expr("l.k = r.k and r.u >= l.t - interval 3 seconds and r.u <= l.t + interval 8 seconds"),
            "full",
        )
        wanted = theirs.select(F.coalesce("l.k", "r.k").alias("k"), "t", "left", "u", "right")
        assert_equal(texts(mine), texts(wanted))


@pytest.mark.usefixtures("planned_once")
@pytest.mark.parametrize("kind", ORDERED)
def test_comparisons_and_bands(spark: SparkSession, kind: str) -> None:
    left, right = (frame.cache() for frame in tables(spark, kind, seed=3, cases=6))
    conditions: list[tuple[Condition, str]] = [(c, f"l.k {c} r.k") for c in ("<", "<=", "!=", ">", ">=")]
    if kind in BANDS:
        band = BANDS[kind]
        difference = "datediff(r.k, l.k)" if kind == "date" else "try_subtract(r.k, l.k)"
        if kind in ("bigint", "tinyint"):
            difference = "cast(r.k as decimal(38,0)) - cast(l.k as decimal(38,0))"
        conditions.append((band, f"{difference} between {band.low} and {band.high}"))
    if kind == "bigint":
        left, right = (
            frame.where("abs(k / 2) < 4000000000000000000 or k is null") for frame in (left, right)
        )
    got, wanted = [], []
    for i, (condition, sql) in enumerate(conditions):
        how: How = HOWS[i % 4]
        mine = ours(left, right, how, on="k", condition=condition, by="c", step=10)
        got.append(mine.selectExpr(f"'{sql}' as how", "t", "left", "u", "right"))
        theirs = own(left, right, f"l.c = r.c and {sql}", how)
        wanted.append(theirs.selectExpr(f"'{sql}' as how", "t", "left", "u", "right"))
    assert_equal(texts(union(got)), texts(union(wanted)))


@pytest.mark.filterwarnings("ignore:a condition without equality")
@pytest.mark.parametrize("condition", ["<", Band(-1, 1)], ids=str)
def test_a_condition_without_by(spark: SparkSession, condition: Condition) -> None:
    left, right = (frame.where("c < 3").drop("c") for frame in tables(spark, "tinyint", seed=4))
    sql = "l.k < r.k" if condition == "<" else "int(r.k) - int(l.k) between -1 and 1"
    mine = ours(left, right, "full", on="k", condition=condition, step=5).select("t", "left", "u", "right")
    assert_equal(texts(mine), texts(own(left, right, sql, "full")))


WHERES = [
    "l.a > r.b",
    "l.a + r.b > 5",
    "not (l.a < r.b) or l.d = r.d",
    "l.d <= r.d",
    "l.a < r.d",
    "l.d != r.b",
    "abs(l.a - r.b) <= 1 and coalesce(l.d, 0) >= 0",
    "l.a between r.b - 1 and r.b + 1",
    "upper(l.left) > r.right or r.b is null",
    "l.t <= r.u - interval 1 second",
    "l.a * r.b > 3 or l.a is null",
    "l.left < r.right and length(l.left) > 6",
    "l.a <> 0 and r.b > 6 / l.a",
    "l.e = r.e",
    "l.e > r.b",
    "true",
    "l.a > 2",
    "l.a % 2 = r.b % 2",
    "l.a div 2 == r.b div 2",
    "l.a / 4 = r.b / 4",
    "cast(l.a as double) / 2 >= r.b::bigint",
    "l.a <=> null and r.b <=> 2",
    "l.t > timestamp '1970-01-01 00:00:05' and l.t <= r.u + interval '1' minute - interval 61 seconds",
    "l.a > r.b -- or true\n",
    "l.a > /* ' */ r.b /* or true */",
    r"l.left rlike r'^left\d$' and l.a > r.b",
    r"l.left = concat(\"left\", '1', '''', 'it\'s') or r.b > 5".replace('\\"', '"'),
    "exists(array(l.a, 7), a -> a > 5) and size(filter(array(r.b), x -> x > 1)) > 0",
    "if(nullif(l.a, 2) is null, -1, nvl2(l.a, nvl(l.a, 1), 0)) > r.b",
    "l.t < timestamp_ntz'1970-01-02' and date_sub(l.t, 1) < date'1970-01-01' and substr(l.left, 1, 1) < r.right",
]


@pytest.mark.usefixtures("planned_once")
@pytest.mark.parametrize(
    "how", [how if how in ("inner", "full") else pytest.param(how, marks=pytest.mark.slow) for how in HOWS]
)
def test_where(spark: SparkSession, how: How) -> None:
    """Nulls, NaN, mixed numbers, expressions of one side, and guarded division."""
    rng = random.Random(5)  # noqa: S311 - not for secrets
    numbers, floats = [0, 1, 2, 3, 6, None], [0.0, -0.0, 1.0, NAN, INF, None]
    exact = [Decimal("1.00"), Decimal("2.50"), None]
    frames = []
    for side, value, time in (("left", "a", "t"), ("right", "b", "u")):
        rows = [
            (
                rng.randint(0, 3),
                rng.randint(0, 12),
                rng.choice(numbers),
                rng.choice(floats),
                rng.choice(exact),
                f"{side}{i}",
            )
            for i in range(40)
        ]
        frame = spark.createDataFrame(
            rows, f"k int, s int, {value} int, d double, e decimal(6,2), {side} string"
        )
        frames.append(frame.withColumn(time, F.timestamp_seconds("s")).drop("s").cache())
    left, right = frames
    got, wanted = [], []
    for i, where in enumerate(WHERES):
        mine, theirs = (
            ours(left, right, how, on="k", where=where, step=17),
            own(left, right, f"l.k = r.k and ({where})", how),
        )
        columns = ["t", "left"] if how in LEFT_ONLY else ["t", "left", "u", "right"]
        got.append(mine.selectExpr(f"{i} as i", *columns))
        wanted.append(theirs.selectExpr(f"{i} as i", *columns))
    assert_equal(texts(union(got)), texts(union(wanted)))


def test_an_inner_join_takes_any_expression(spark: SparkSession) -> None:
    left, right = tables(spark, "string", seed=6, cases=4)
    for where in ("concat(l.left, r.right) > 'left1' and l.k <=> r.k", "hash(l.k, r.k) % 2 = 0"):
        mine = ours(left, right, "inner", on="c", where=where).select("t", "left", "u", "right")
        assert_equal(texts(mine), texts(own(left, right, f"l.c = r.c and {where}", "inner")))


def test_sides_without_rows(spark: SparkSession) -> None:
    left, right = tables(spark, "bigint", seed=7, cases=4)
    for a, b in (
        (left, right.where("false")),
        (left.where("false"), right),
        (left.where("false"), right.where("false")),
    ):
        mine = ours(a, b, "full", on=["c", "k"]).select("t", "left", "u", "right")
        assert_equal(texts(mine), texts(own(a, b, "l.c = r.c and l.k = r.k", "full")))


def test_one_key_in_many_buckets(spark: SparkSession) -> None:
    left, right = (frame.where("c = 1") for frame in tables(spark, "boolean", seed=8))
    mine = ours(left, right, "left", on="c", buckets=7).select("t", "left", "u", "right")
    assert_equal(texts(mine), texts(own(left, right, "l.c = r.c", "left")))


@pytest.mark.parametrize("split", ["shared", "even", (60, 40)], ids=str)
def test_a_small_budget_gives_a_part(spark: SparkSession, split: Any) -> None:  # noqa: ANN401 - a Split
    left, right = tables(spark, "boolean", seed=9, cases=60)
    mine = texts(
        ours(left, right, "inner", on=["c", "k"], budget=100, split=split, step=20).select(
            "t", "left", "u", "right"
        )
    )
    assert not mine - texts(own(left, right, "l.c = r.c and l.k = r.k", "inner"))


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(10))
@pytest.mark.parametrize("kind", DOMAINS)
def test_more_tables(spark: SparkSession, kind: str, seed: int) -> None:
    left, right = (frame.cache() for frame in tables(spark, kind, seed=100 + seed, cases=30))
    how = HOWS[seed % 4]
    mine = ours(left, right, how, on=["c", "k"], step=7, buckets=1 + seed % 3).select(
        "t", "left", "u", "right"
    )
    assert_equal(texts(mine), texts(own(left, right, "l.c = r.c and l.k = r.k", how)))
