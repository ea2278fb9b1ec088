"""The result's columns: order, names, types and nullability, for any names of the input."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest
from pyspark.sql import functions as F  # noqa: N812 - its usual name

import tidegate as tg
from tests.spark import streams
from tests.spark.streams import HOWS
from tidegate.spark.frames.explained_plan import analyzed_plan
from tidegate.types import InputError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from tidegate.spark.bucket.join.plan import How

pytestmark = pytest.mark.spark

WINDOW = ("1 hour", "1 hour")
ODD = [
    "a b",
    "tick`tick",
    "dot.ted",
    "c0",
    "c1",
    "h",
    "x",
    "bucket",
    "side",
    "payload",
    "o0",
    "w0",
    "{}",
    "naïve \U0001f600",
    "'q'",
    "select",
    "i",
]


@pytest.fixture(scope="module")
def frames(spark: SparkSession) -> tuple[DataFrame, DataFrame]:
    """Columns that are never null, and others."""
    base = spark.range(4).selectExpr("id as k", "timestamp_seconds(id) as t", "id as a", "nullif(id, 1) as n")
    left = base.select("k", "t", "a", "n")
    right = base.selectExpr("k + 1 as k", "t as u", "a as a", "n as b")
    return left, right


def test_order_and_names(frames: tuple[DataFrame, DataFrame]) -> None:
    left, right = frames
    times = {"time": ("t", "u"), "window": WINDOW}
    assert tg.join(left, right, on="k", **times).columns == ["k", "t", "a", "n", "u", "a_right", "b"]  # type: ignore[arg-type]
    assert tg.join(left, right, on="k", suffix="_r", **times).columns == ["k", "t", "a", "n", "u", "a_r", "b"]  # type: ignore[arg-type]
    assert tg.join(left, right, on=["k", "a"], **times).columns == ["k", "t", "a", "n", "u", "b"]  # type: ignore[arg-type]
    assert tg.join(left, right, on=[("a", "b")], **times).columns == [  # type: ignore[arg-type]
        *("k", "t", "a", "n"),
        *("k_right", "u", "a_right", "b"),
    ]
    assert tg.join(left, right, on="k", how="left_semi", **times).columns == ["k", "t", "a", "n"]  # type: ignore[arg-type]
    outer = tg.join(left, right, on="k", how="full", **times)  # type: ignore[arg-type]
    assert outer.columns == ["k", "t", "a", "n", "u", "a_right", "b", "uncertain"]
    with pytest.warns(UserWarning, match="by="):
        compared = tg.join(left, right, on="k", condition="<", **times)  # type: ignore[arg-type]
    assert compared.columns == ["k", "t", "a", "n", "k_right", "u", "a_right", "b"]


def test_what_a_suffix_cannot_resolve_is_refused(frames: tuple[DataFrame, DataFrame]) -> None:
    left, right = frames
    with_conflict = right.withColumnRenamed("b", "a_right")
    for suffix in ("_right", ""):
        with pytest.raises(InputError, match=r"would have two columns 'a.*'; rename one before the join"):
            tg.join(
                left,
                with_conflict if suffix else right,
                on="k",
                time=("t", "u"),
                window=WINDOW,
                suffix=suffix,
            )
    also = left.withColumnRenamed("n", "a_right")
    with pytest.raises(InputError, match="two columns 'a_right'"):
        tg.join(also, right, on="k", time=("t", "u"), window=WINDOW)


def test_a_column_called_uncertain(frames: tuple[DataFrame, DataFrame]) -> None:
    left, right = frames
    named = right.withColumnRenamed("b", "uncertain")
    assert "uncertain" in tg.join(left, named, on="k", time=("t", "u"), window=WINDOW).columns
    with pytest.raises(InputError, match="'uncertain', which the result adds; rename it first"):
        tg.join(left, named, on="k", time=("t", "u"), window=WINDOW, how="left")


def test_names_that_differ_in_case_only_get_the_suffix(frames: tuple[DataFrame, DataFrame]) -> None:
    left, right = frames
    joined = tg.join(left, right.withColumnRenamed("a", "A"), on="k", time=("t", "u"), window=WINDOW)
    assert joined.select("a").columns == ["a"]
    assert joined.columns == ["k", "t", "a", "n", "u", "A_right", "b"]


@pytest.mark.parametrize("how", HOWS)
def test_nullability_and_types_are_sparks(frames: tuple[DataFrame, DataFrame], how: How) -> None:
    left, right = frames
    joined = tg.join(left, right, on="k", time=("t", "u"), window=WINDOW, how=how)
    own = left.join(right.withColumnRenamed("a", "a_right"), "k", how)
    got = {f.name: f for f in joined.schema.fields}
    wanted = {f.name: f for f in own.schema.fields}
    flagged = how in ("left", "right", "full", "left_anti")
    assert list(got) == [
        *left.columns,
        *([] if how in ("left_semi", "left_anti") else ["u", "a_right", "b"]),
        *(["uncertain"] if flagged else []),
    ]
    for name, field in wanted.items():
        assert got[name].dataType == field.dataType
        # In Spark, the key of a full join is nullable, although that of neither side is.
        assert got[name].nullable == (field.nullable and not (name == "k" and how == "full"))
    if flagged:
        assert not got["uncertain"].nullable
    rows = joined.collect()
    for name, field in got.items():
        assert field.nullable or all(row[name] is not None for row in rows)


@pytest.mark.parametrize("how", ["right", "full", "inner", "left"])
def test_a_key_has_the_wider_type(spark: SparkSession, how: How) -> None:
    left = spark.sql("select int(1) k, timestamp_seconds(1) t")
    right = spark.sql("select k, timestamp_seconds(1) u from values (1L), (1099511627776L) as v(k)")
    joined = tg.join(left, right, on="k", time=("t", "u"), window=WINDOW, how=how)
    own = left.join(right, "k", how)
    assert sorted(row.k for row in joined.collect()) == sorted(row.k for row in own.collect())


@pytest.mark.parametrize("how", ["inner", "full"])
def test_odd_names(spark: SparkSession, how: How) -> None:
    values = ", ".join(f"{i} as `{name.replace('`', '``')}`" for i, name in enumerate(ODD))
    left = spark.sql(
        f"select 1 as `k.k`, timestamp_seconds(1) as `t t`, {values}, interval 1 month as `m``.{{}}`"
    )
    right = spark.sql(
        f"select 1 as `k.k`, timestamp_seconds(1) as `u.u`, {values}, interval 1 month as `m``.{{}}`"
    )
    joined = tg.join(
        left,
        right,
        on="k.k",
        time=("t t", "u.u"),
        window=WINDOW,
        how=how,
        where="l.`a b` = r.`a b` and l.`tick``tick` < r.`dot.ted` and l.`{}` <= r.`{}`",
    )
    expected = ["k.k", "t t", *ODD, "m`.{}", "u.u", *(f"{name}_right" for name in [*ODD, "m`.{}"])]
    assert joined.columns == [*expected, *(["uncertain"] if how == "full" else [])]
    (row,) = streams.texts(joined)
    assert row[2 : 2 + len(ODD)] == tuple(map(str, range(len(ODD))))
    assert row[4 + len(ODD) : 4 + 2 * len(ODD)] == tuple(map(str, range(len(ODD))))


def test_odd_names_in_a_stream_and_its_checkpoint(spark: SparkSession, tmp_path: Path) -> None:
    """With `lateness=` and `inspect`; the result has no watermark."""
    names = [name for name in ODD if name != "{}"]
    for side in ("left", "right"):
        columns = {
            "k.k": pa.array([1, 2]),
            f"{side}.t": pa.array([streams.at(0), streams.at(1)], pa.timestamp("us", "UTC")),
        }
        streams.write(tmp_path / side, [pa.table(columns | {name: pa.array([1, 2]) for name in names})])
    left, right = (
        spark.readStream.schema(spark.read.parquet(str(tmp_path / side)).schema)
        .parquet(str(tmp_path / side))
        .selectExpr("*", "make_ym_interval(0, `k.k`) as `m m`")
        for side in ("left", "right")
    )
    joined = tg.join(
        left, right, on="k.k", time=("left.t", "right.t"), window=("1 s", "1 s"), lateness="1 minute"
    )
    assert all("spark.watermarkDelayMs" not in field.metadata for field in joined.schema.fields)
    assert len(streams.run(joined.drop("m m", "m m_right"), tmp_path / "checkpoint")) == 2
    inside = tg.inspect(tmp_path / "checkpoint", spark=spark)
    assert inside.select("left.*").columns == ["k.k", "left.t", *names, "m m"]
    assert inside.count() == 4


def test_user_metadata_is_kept(spark: SparkSession) -> None:
    left = spark.range(1).select("id", F.timestamp_seconds("id").alias("t", metadata={"unit": "s"}))
    joined = tg.join(left, left, on="id", time="t", window=WINDOW)
    assert joined.schema["t"].metadata == {"unit": "s"}
    assert joined.columns == ["id", "t", "t_right"]


@pytest.mark.parametrize(("kind", "functions"), [("string", 2), ("array<int>", 3)])
def test_only_nested_results_are_unpacked_by_another_function(
    spark: SparkSession, kind: str, functions: int
) -> None:
    schema = f"k long, t timestamp, v {kind}"
    left, right = (spark.createDataFrame([], schema) for _ in range(2))
    joined = tg.join(left, right, on="k", time="t", window=WINDOW)
    assert analyzed_plan(joined).count("MapInArrow") == functions
