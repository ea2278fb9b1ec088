# ruff: noqa: E501 - a value is one line
"""Every Spark type passes through unchanged: matched, unmatched on either side, in a stream and in a batch."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest
from pyspark.sql import functions as F  # noqa: N812 - its usual name
from pyspark.sql.types import (
    ArrayType,
    CalendarIntervalType,
    DataType,
    MapType,
    StringType,
    StructField,
    StructType,
    UserDefinedType,
    YearMonthIntervalType,
)

import tidegate as tg
from tests.spark import streams
from tests.spark.streams import conf, texts
from tidegate.types import SIDES, InputError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = pytest.mark.spark

POINT = "X'0101000000000000000000F03F0000000000000040'"
LINE = "X'010200000002000000000000000000000000000000000000000000000000000840000000000000F0BF'"

VALUES: dict[str, list[str]] = {
    "bigint": ["9007199254740993L", "-9223372036854775808L", "9223372036854775807L"],
    "int": ["2147483647", "int('-2147483648')"],
    "smallint": ["32767S", "-1S"],
    "tinyint": ["127Y", "-1Y"],
    "boolean": ["true", "false"],
    "double": ["double('NaN')", "double('-0.0')", "double('Infinity')", "double('4.9E-324')", "0.1D"],
    "float": ["float('NaN')", "float('-0.0')", "float('-Infinity')", "float('1.4E-45')"],
    "dec": ["cast('99999999999999999999.999999999999999999' as decimal(38,18))", "cast('-0.000000000000000001' as decimal(38,18))"],
    "small_dec": ["cast('-9.99' as decimal(3,2))", "cast('0' as decimal(3,2))"],
    "wide_dec": ["cast('99999999999999999999999999999999999999' as decimal(38,0))", "cast(1 as decimal(38,0))"],
    "string": ["''", "'a\\\\0b'", "'\U0001f600 e\u0301 \u00e9 \u202e\uffff'", "repeat('x', 5000)", "'line\\nbreak'"],
    "binary": ["X''", "X'00FF00'", "X'80'"],
    "date": ["date'0001-01-01'", "date'9999-12-31'", "date'1582-10-15'"],
    "ts": ["timestamp'0001-01-01 00:00:00Z'", "timestamp'9999-12-31 12:59:59.999999Z'", "timestamp'1883-11-18 12:03:57.000001Z'", "timestamp'2026-11-01 06:30:00Z'"],
    "ntz": ["timestamp_ntz'0001-01-01 00:00:00'", "timestamp_ntz'9999-12-31 23:59:59.999999'", "timestamp_ntz'2026-03-08 02:30:00'"],
    "day_time": ["interval '-106751991 04:00:54.775808' day to second", "interval '1 02:03:04.000005' day to second"],
    "hours": ["interval '5' hour", "interval '-5' hour"],
    "year_month": ["interval '178956970-7' year to month", "interval '-1-1' year to month"],
    "years": ["interval '3' year", "interval '-3' year"],
    "calendar": ["make_interval(1, -2, 3, -4, 5, -6, 7.000008)", "make_interval(0, 0, 0, 0, 0, 0, -0.000001)", "make_interval(178956970, 7, 0, 2147483647)"],
    "array": ["array(1, null, 3)", "cast(array() as array<int>)"],
    "nested": ["array(array('a', null), null, array())", "array(array(''))"],
    "map": ["map('b', 1, 'a', null)", "cast(map() as map<string,int>)"],
    "struct": [
        "named_struct('x', 9007199254740993L, 'y', cast(null as string), 'z', array(double('NaN'), null))",
        "named_struct('x', 0L, 'y', '', 'z', cast(null as array<double>))",
    ],
    "deep": [
        "map(1, named_struct('t', timestamp'2026-07-01 00:00:00.000001Z', 'm', map(date'0001-01-01', array(timestamp_ntz'9999-01-01 00:00:00'))))",
        "map(2, named_struct('t', cast(null as timestamp), 'm', cast(null as map<date,array<timestamp_ntz>>)))",
    ],
    "decimals": ["array(cast('1.5' as decimal(38,18)), null)", "array(cast('-1.5' as decimal(38,18)))"],
    "variant": ["parse_json('{\"a\": [1, null, 9007199254740993], \"b\": \"\u00e9\"}')", "parse_json('null')", "to_variant_object(named_struct('d', date'2026-01-01'))"],
    "months": ["array(interval '1-2' year to month, null, interval '-178956970-8' year to month)", "cast(array() as array<interval year to month>)"],
    "all_months": ["array(interval '7' year, interval '-7' year)"],
    "months_in": [
        "named_struct('a.b', interval '1' month, 'a b', 1, 'tick`', array(named_struct('f0', interval '2' year, 'a.b', null)))",
        "named_struct('a.b', cast(null as interval month), 'a b', 2, 'tick`', cast(array(null) as array<struct<f0:interval year,`a.b`:void>>))",
        "named_struct('a.b', interval '-1' month, 'a b', 3, 'tick`', cast(null as array<struct<f0:interval year,`a.b`:void>>))",
    ],
    "month_keys": ["map(interval '2' month, 'b', interval '1' month, null)", "cast(map() as map<interval month,string>)"],
    "calendars": ["array(make_interval(1, -2, 3, -4, 5, -6, 7.000008), null, make_interval())", "cast(array() as array<interval>)", "cast(array(null) as array<interval>)"],
    "all_calendars": ["array(make_interval(1), make_interval(0, 2))"],
    "calendar_in": [
        "named_struct('a.b', make_interval(1), 'A.B', 1, '', named_struct('tick`', cast(null as interval), 'n', null))",
        "named_struct('a.b', make_interval(0, 0, 0, 3), 'A.B', 2, '', cast(null as struct<`tick```:interval,n:void>))",
    ],
    "calendar_keys": ["map(make_interval(2), 'b', make_interval(1), null)", "cast(map() as map<interval,string>)"],
    "calendar_values": ["cast(map('-0.0', make_interval(2), '-1', null, 'NaN', make_interval(1)) as map<double,interval>)"],
    "named_keys": ["map(named_struct('x y', interval '1' month), make_interval(1), named_struct('x y', interval '0' month), null)"],
    "three_deep": [
        "map('b', array(named_struct('i', array(make_interval(1), null), 'm', map(interval '1' year, make_interval(2)), 'k', 1), null), 'a', array())",
        "map('b', cast(null as array<struct<i:array<interval>,m:map<interval year,interval>,k:int>>), 'c', array(named_struct('i', null, 'm', null, 'k', 2)))",
    ],
    "doubled": ["named_struct('x', 1, 'x', 'b', 'X', array(named_struct('y', 1, 'y', interval '1' month)))"],
    "geometry": [f"st_geomfromwkb({POINT})", f"st_geomfromwkb({LINE})"],
    "geometry_4326": [f"st_geomfromwkb({POINT}, 4326)"],
    "geometries": [f"cast(st_geomfromwkb({POINT}, 3857) as geometry(any))", f"cast(st_geomfromwkb({LINE}, 4326) as geometry(any))"],
    "geography": [f"st_geogfromwkb({POINT})", f"st_geogfromwkb({LINE})"],
    "nothing": ["null"],
    "char": ["cast('ab' as char(4))"],
    "collated": ["'Ab' collate UTF8_LCASE", "'' collate UTF8_LCASE"],
}  # fmt: skip


def columns(side: str) -> list[str]:
    """Each type as a column that may be null and, under its name with an `!`, as one that may not."""
    found = []
    for name, values in VALUES.items():
        if name == "nothing":
            found.append(f"null as `{side}_{name}`")
            continue
        whens = " ".join(f"when {i} then {value}" for i, value in enumerate(values))
        found.append(f"case k % {len(values) + 1} {whens} end as `{side}_{name}`")
        found.append(f"coalesce(case k % {len(values)} {whens} end, {values[0]}) as `{side}_{name}!`")
    return found


RANGES = {"left": (1, 13), "right": (7, 19)}
"""The keys of each side: some match, some do not."""


def tables(spark: SparkSession) -> tuple[DataFrame, DataFrame]:
    left, right = (
        spark.range(*RANGES[side], 1, 2)
        .selectExpr("id as k", f"timestamp_seconds(id) as `{side} t`")
        .selectExpr("*", *columns(side))
        for side in SIDES
    )
    return left, right


def assert_equal(
    got: Counter[tuple[str | None, ...]], wanted: Counter[tuple[str | None, ...]], names: list[str]
) -> None:
    """Assert equality, and name the first column that differs."""
    assert [row[0] for row in sorted(got, key=str)] == [row[0] for row in sorted(wanted, key=str)]
    for name, *columns in zip(names, *sorted(got, key=str), strict=True):
        theirs = [row[names.index(name)] for row in sorted(wanted, key=str)]
        assert (name, list(columns)) == (name, theirs)
    assert got == wanted


@pytest.mark.parametrize("zone", ["UTC", "America/New_York"])
def test_batch(spark: SparkSession, zone: str) -> None:
    with conf(spark, spark__sql__session__timeZone=zone):
        left, right = tables(spark)
        joined = tg.join(
            left, right, on="k", time=("left t", "right t"), window=("0 s", "0 s"), how="full"
        ).drop("uncertain")
        own = left.join(right, "k", "full")
        assert joined.columns == own.columns
        assert [f.dataType for f in joined.schema.fields] == [f.dataType for f in own.schema.fields]
        assert_equal(texts(joined), texts(own), own.columns)
        inner = tg.join(left, right, on="k", time=("left t", "right t"), window=("0 s", "0 s"))
        assert [f.nullable for f in inner.schema.fields] == [
            f.nullable for f in left.join(right, "k").schema.fields
        ]


@pytest.mark.parametrize("zone", [pytest.param("UTC", marks=pytest.mark.slow), "America/New_York"])
def test_stream(spark: SparkSession, tmp_path: Path, zone: str) -> None:
    """Also through state, timers and `inspect`: rows arrive in two micro-batches, then unmatched rows are emitted."""
    with conf(spark, spark__sql__session__timeZone=zone):
        sides = []
        for side in SIDES:
            first, last = RANGES[side]
            parts = [range(first, 9), range(9, last), [FAR], [FAR + 1]]
            tables_ = [keys(part if side == "left" else reversed(list(part))) for part in parts]
            source = streams.read(spark, streams.write(tmp_path / side, tables_), "t", "0 seconds")
            sides.append(source.withColumnRenamed("t", f"{side} t").selectExpr("*", *columns(side)))
        joined = tg.join(*sides, on="k", time=("left t", "right t"), window=("3 s", "3 s"), how="full")
        got = streams.Running.start(joined.drop("uncertain"), tmp_path / "checkpoint").table()
        own = tables(spark)[0].join(tables(spark)[1], "k", "full")
        assert got.columns == own.columns
        assert [f.dataType for f in got.schema.fields] == [f.dataType for f in own.schema.fields]
        assert_equal(texts(got.where(f"k < {FAR}")), texts(own), own.columns)
        inside = tg.inspect(tmp_path / "checkpoint", spark=spark).where("side = 'left'").select("left.*")
        assert [f.dataType for f in inside.schema.fields] == [f.dataType for f in sides[0].schema.fields]
        assert inside.where("k < 9000").count() == 0
        assert inside.count() > 0


FAR = 100_000


def keys(values: Iterable[int]) -> pa.Table:
    """Keys and times; a key is its time in seconds, as in `tables`."""
    found = list(values)
    times = pa.array([value * 1_000_000 for value in found], pa.int64()).cast(pa.timestamp("us", "UTC"))
    return pa.table({"k": pa.array(found, pa.int64()), "t": times})


def test_time_of_day(spark: SparkSession) -> None:
    with conf(spark, spark__sql__timeType__enabled="true"):
        frame = spark.sql(
            "select k, timestamp_seconds(1) t, if(k = 1, null, time'23:59:59.999999') a, time'00:00:00' b "
            "from values (1), (2) as v(k)"
        )
        other = frame.selectExpr("k + 1 as k", "t as u", "a as c", "b as d")
        joined = tg.join(frame, other, on="k", time=("t", "u"), window=("0 s", "0 s"), how="full").drop(
            "uncertain"
        )
        own = frame.join(other, "k", "full")
        assert joined.schema.simpleString() == own.schema.simpleString()
        assert texts(joined) == texts(own)
        by_time = tg.join(frame, other, on=[("a", "c")], time=("t", "u"), window=("0 s", "0 s"))
        assert by_time.count() == 1


NO_KEYS = [
    name
    for name, values in VALUES.items()
    if name in ("deep", "variant") or values[0].startswith(("map(", "make_", "cast(map", "st_", "cast(st_"))
] + ["calendars", "all_calendars", "calendar_in"]


@pytest.mark.parametrize("name", [n for n in VALUES if n not in [*NO_KEYS, "collated", "nothing"]])
def test_a_type_as_the_key(spark: SparkSession, name: str) -> None:
    """All values of a type, each with a different key; null is not a key."""
    values = [*VALUES[name], VALUES[name][0]]
    rows = " union all ".join(f"select {value} as k, {i} as i" for i, value in enumerate(values))
    left = spark.sql(f"select *, timestamp_seconds(1) t from ({rows} union all select null, -1)")  # noqa: S608 - our own values
    right = left.withColumnsRenamed({"t": "u", "i": "j"})
    joined = tg.join(left, right, on="k", time=("t", "u"), window=("0 s", "0 s"))
    own = left.join(right, "k")
    # Equal keys may be written in two ways (0.0 and -0.0), and either side's may come with a result.
    got, wanted = (texts(frame.select("k", "t", "i", "u", "j")) for frame in (joined, own))
    for part in (slice(1), slice(1, None)):
        assert Counter(row[part] for row in got.elements()) == Counter(row[part] for row in wanted.elements())


@pytest.mark.parametrize("name", NO_KEYS)
def test_a_type_that_cannot_be_the_key(spark: SparkSession, name: str) -> None:
    left = spark.sql(f"select {VALUES[name][0]} as k, timestamp_seconds(1) t")
    with pytest.raises(InputError, match="cannot be a key: Spark defines no equality for it"):
        tg.join(left, left, on="k", time="t", window=("0 s", "0 s"))


def test_a_collated_key_is_refused(spark: SparkSession) -> None:
    left = spark.sql(f"select {VALUES['collated'][0]} as k, timestamp_seconds(1) t")
    with pytest.raises(InputError, match="keys compare by their bytes"):
        tg.join(left, left, on="k", time="t", window=("0 s", "0 s"))


class Span(UserDefinedType):
    """A user-defined type whose values Spark stores as intervals."""

    @classmethod
    def sqlType(cls) -> DataType:  # noqa: N802 - Spark's name
        return ArrayType(YearMonthIntervalType())

    @classmethod
    def module(cls) -> str:
        return __name__


@pytest.mark.parametrize(
    "kind",
    [
        Span(),
        MapType(StringType(), Span()),
        ArrayType(MapType(StructType().add("i", CalendarIntervalType()), StringType())),
    ],
)
def test_what_cannot_travel_is_refused(spark: SparkSession, kind: DataType) -> None:
    left = spark.createDataFrame([], StructType().add("k", "integer").add("z", kind).add("t", "timestamp"))
    with pytest.raises(InputError, match=r"column 'left.z' is of type .*; convert them to strings or"):
        tg.join(left, left, on="k", time="t", window=("0 s", "0 s"))


def test_what_is_noted_of_inner_fields_is_kept(spark: SparkSession) -> None:
    with_metadata = StructType(
        [
            StructField("i", CalendarIntervalType(), nullable=True, metadata={"unit": "span"}),
            StructField("m", YearMonthIntervalType(), nullable=False, metadata={"unit": "months"}),
        ]
    )
    frame = spark.sql(
        "select 1 k, timestamp_seconds(1) t, named_struct('i', make_interval(1), 'm', interval '1-1' year to month) z"
    )
    left = frame.withColumn("z", F.array(F.col("z").cast(with_metadata)))
    joined = tg.join(left, left, on="k", time="t", window=("0 s", "0 s"))
    assert joined.schema["z"].jsonValue() == left.schema["z"].jsonValue()


def test_geometries_inside_others(spark: SparkSession) -> None:
    sql = (
        f"array(st_geomfromwkb({POINT}), null) a, map('b', named_struct('g', st_geogfromwkb({LINE}), "
        "'i', make_interval(1)), 'a', null) m"
    )
    left = spark.sql(f"select 1 k, timestamp_seconds(1) t, {sql}")
    joined = tg.join(
        left, left.select("k", F.col("t").alias("u")), on="k", time=("t", "u"), window=("0 s", "0 s")
    )
    assert joined.schema["a"] == left.schema["a"]
    assert joined.schema["m"] == left.schema["m"]
    columns = ["a", "transform_values(m, (k, v) -> v.g)", "cast(map_values(m).i as string)"]
    assert str(joined.selectExpr(*columns).collect()) == str(left.selectExpr(*columns).collect())
