"""Invalid arguments are refused before a query starts; the message names the value and the remedy."""

from __future__ import annotations

import re
import warnings
from collections import Counter
from collections.abc import Callable
from datetime import timedelta
from functools import reduce
from typing import TYPE_CHECKING, Any

import pandas as pd
import pytest
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812 - its usual name

import tidegate as tg
from tests.spark.streams import conf
from tidegate.models import LinearTrend, Noise
from tidegate.policies import FlowExpect, Heeb, Life, Prob, Random
from tidegate.types import Budget, InputError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

LINE = LinearTrend(1, 0, Noise(bound=8))
LINED = (Prob, Life, Random)

Frames = Callable[[bool], tuple["DataFrame", "DataFrame"]]


@pytest.fixture(scope="module")
def frames(spark: SparkSession) -> Frames:
    def made(streaming: bool) -> tuple[DataFrame, DataFrame]:  # noqa: FBT001
        if streaming:
            source = spark.readStream.format("rate").load()
        else:
            source = spark.range(3).selectExpr("timestamp_seconds(id) as timestamp", "id as value")
        left = source.selectExpr("value as k", "timestamp as t", "string(value) as s", "value as a")
        right = source.selectExpr("value as k", "timestamp as u", "string(value) as s", "value as b")
        if streaming:
            return left.withWatermark("t", "5 seconds"), right.withWatermark("u", "5 seconds")
        return left, right

    return made


def refusal(left: object, right: object, **settings: Any) -> str:  # noqa: ANN401 - of join
    with pytest.raises(InputError) as caught:
        tg.join(left, right, **({"on": "k", "time": ("t", "u"), "window": ("5 s", "5 s")} | settings))  # type: ignore[arg-type]
    return str(caught.value)


@pytest.mark.parametrize(
    ("settings", "named", "remedy"),
    [
        ({"on": "key"}, "left has no column 'key'", "it has k, t, s, a"),
        (
            {"policy": "offline"},
            "policy 'offline' needs to know what will arrive",
            "use it in tidegate.simulate",
        ),
        *(
            (
                {"policy": policy},
                f"policy {policy.name!r} was given processes",
                "omit processes: 'heeb' learns",
            )
            for policy in (
                Heeb(LINE, LINE),
                FlowExpect(LINE, LINE),
                *(kind(left=LINE, right=LINE) for kind in LINED),
            )
        ),
        ({"on": [("k", "key")]}, "right has no column 'key'", "it has k, u, s, b"),
        ({"on": "K"}, "left has no column 'K'", "did you mean 'k'? Names are compared with their case"),
        ({"on": []}, "on= names no column", "write on='key'"),
        ({"on": 5}, "5", "write on='key'"),
        ({"on": [("k", "s")]}, "'k' is bigint, the right one 's' is string", "cast one"),
        ({"time": "t"}, "right has no column 't'", "it has k, u, s, b"),
        ({"time": ("a", "u")}, "left.a is of type bigint", "to_timestamp"),
        ({"time": ("s", "u")}, "left.s is of type string", "left.withColumn('s', F.to_timestamp('s'))"),
        ({"time": ("t",)}, "('t',)", "time="),
        ({"time": ("t", "u", "u")}, "('t', 'u', 'u')", "time="),
        ({"window": 5}, "5", "write window=('10 minutes', '0 seconds')"),
        ({"window": (5, 5)}, "5 has no unit", "'10 minutes'"),
        ({"window": ("1 month", "0 s")}, "'1 month'", "'10 minutes'"),
        ({"window": ("1 s", "-2 s")}, "window ('1 s', '-2 s') is empty", "at least 0"),
        (
            {"window": [timedelta(0), timedelta(seconds=-2)]},
            "(datetime.timedelta(0), datetime.timedelta(",
            "at least 0",
        ),
        ({"window": ("10 minutes", None), "policy": "life"}, "the window ('10 minutes', None)", "give"),
        (
            {"window": ("10 minutes", None), "policy": "ijoin", "importance": 1},
            "('10 minutes', None)",
            "unpro",
        ),
        (
            {"how": "cross"},
            "how='cross' is not supported; use 'inner', 'left', 'right', 'full', 'left_semi', 'left_anti',",
            "join on a column with the same value",
        ),
        ({"how": "iner"}, "how='iner' is not supported", "did you mean 'inner'?"),
        ({"how": None}, "how=None is not supported", "'left_semi'"),
        ({"policy": "fifi"}, "'fifi'", "did you mean 'fifo'?"),
        ({"policy": Life}, "policy is the class Life", "call it: Life()"),
        ({"budget": 1, "buckets": 2}, "a budget of 1 rows", "at least 2"),
        ({"budget": "64 parsecs"}, "'64 parsecs'", "'64 MB'"),
        ({"budget": 0}, "a budget of 0 rows", "at least 1"),
        ({"budget": 3, "buckets": 2, "split": "even"}, "a budget of 3 rows", "at least 4"),
        ({"budget": 10, "split": (8, 8)}, "(8, 8)", "budget of 10"),
        ({"buckets": 0}, "buckets=0", "give an integer from 1 to"),
        ({"buckets": -4}, "buckets=-4", "give an integer from 1 to"),
        ({"buckets": 1.5}, "buckets=1.5", "give an integer from 1 to"),
        ({"buckets": True}, "buckets=True", "give an integer from 1 to"),
        ({"condition": "=="}, "'=='", "'='"),
        ({"condition": "<", "on": ["k", ("a", "b")], "by": "s"}, "'<'", "name one with on="),
        ({"condition": "<", "on": "s", "by": "k"}, "'s' is string", "cast it to double or bigint"),
        ({"condition": "<", "buckets": 4}, "buckets=4", "by="),
        ({"condition": "<", "by": "nothing"}, "'nothing'", "it has"),
        ({"by": "s"}, "by='s'", "add it to on="),
        ({"where": "l.missing > 1"}, "l.missing", "there are l.k, l.t"),
        ({"where": "l.a >"}, "'l.a >'", "parse"),
        ({"where": "s > 'x'"}, "'s' is on both sides", "write l.s or r.s"),
        ({"where": "l.a % r.b = 0", "how": "left"}, "`l`.`a` % `r`.`b`", "use comparisons"),
        ({"where": "l.a + r.b"}, "l.a + r.b", "true or false"),
        ({"where": "l.a"}, "l.a", "true or false"),
        ({"where": "l.s = r.b", "how": "left"}, "l.s = r.b", "cast"),
        ({"step": 0}, "0", "at least 1"),
        ({"lateness": 5}, "lateness 5", "'10 minutes'"),
        ({"lateness": "-5 seconds"}, "-5 seconds", "lateness"),
    ],
    ids=str,
)
@pytest.mark.filterwarnings("ignore:a condition without equality")
def test_a_bad_setting(frames: Frames, settings: dict[str, Any], named: str, remedy: str) -> None:
    streaming = "lateness" in settings
    left, right = frames(streaming)
    message = refusal(left, right, **settings)
    assert named in message
    assert remedy in message


def test_what_is_no_dataframe(frames: Frames) -> None:
    left, _ = frames(False)  # noqa: FBT003
    assert "right is a dict; give a Spark DataFrame" in refusal(left, {"k": [1]})


def test_a_frame_of_another_library_is_refused_with_a_hint(frames: Frames) -> None:
    left, _ = frames(False)  # noqa: FBT003
    frame = pd.DataFrame({"k": [1]})
    message = "is a pandas DataFrame; give spark.createDataFrame(right), or use tidegate.simulate"
    assert f"right {message}" in refusal(left, frame)
    with pytest.raises(InputError, match=r"stream 'a' is a pandas DataFrame; give spark.createDataFrame"):
        tg.alert({"a": frame, "b": left}, on="k", time="t", within="1 s", when="a > b")
    with pytest.raises(InputError, match="stream is a pandas DataFrame"):
        tg.lookup(frame, "x.db", table="t", on="k", cache=3)
    with pytest.raises(InputError, match="sample is a pandas DataFrame"):
        tg.estimate(frame, "count(*)")


def test_streaming_and_batch_do_not_mix(frames: Frames) -> None:
    (stream, _), (_, batch) = frames(True), frames(False)  # noqa: FBT003
    message = refusal(stream, batch)
    assert "left is streaming and right is not" in message
    assert "spark.readStream" in message
    assert "right is streaming and left is not" in refusal(batch, stream, time=("u", "t"))


@pytest.mark.parametrize("side", ["left", "right"])
def test_a_missing_watermark(spark: SparkSession, frames: Frames, side: str) -> None:
    left, right = frames(True)  # noqa: FBT003
    bare = spark.readStream.format("rate").load().toDF("t" if side == "left" else "u", "k")
    message = refusal(*((bare, right) if side == "left" else (left, bare)))
    time = "t" if side == "left" else "u"
    assert f"{side} has no watermark on '{time}'" in message
    assert f'{side}.withWatermark("{time}", "10 minutes")' in message
    assert 'lateness="10 minutes"' in message


def test_lateness_sets_the_watermark(spark: SparkSession) -> None:
    left, right = (spark.readStream.format("rate").load().toDF(time, "k") for time in "tu")
    joined = tg.join(left, right, on="k", time=("t", "u"), window=("5 s", "5 s"), lateness="5 seconds")
    plan = joined._jdf.queryExecution().analyzed().toString()
    assert re.findall(r"EventTimeWatermark .*?\b([tu])#\d+.*?\b5 seconds", plan) == ["t", "u"], plan


def test_a_watermark_stays_with_a_renamed_column_and_not_with_a_derived_one(frames: Frames) -> None:
    left, right = frames(True)  # noqa: FBT003
    renamed = left.selectExpr("k", "t as at")
    tg.join(renamed, right, on="k", time=("at", "u"), window=("5 s", "5 s"))
    derived = left.selectExpr("k", "t - interval 1 hour as t")
    message = refusal(derived, right)
    assert "left has no watermark on 't'" in message
    assert "derived" in message


@pytest.mark.parametrize("way", ["join", "watermark", "lateness", "sample", "alert", "alias"])
def test_a_stream_behind_a_join_is_refused(frames: Frames, way: str) -> None:
    left, right = frames(True)  # noqa: FBT003
    settings: dict[str, Any] = {"on": "k", "time": ("t", "u"), "window": ("5 s", "5 s")}
    first = (tg.sample if way == "sample" else tg.join)(left, right, **settings).drop("u", "s_right", "b")
    if way == "watermark":
        first = first.withWatermark("t", "5 seconds")
    if way == "lateness":
        settings |= {"lateness": "5 seconds"}
        right = right.sparkSession.readStream.format("rate").load().toDF("u", "k")
    if way == "alias":
        first = first.select("k", "t").where("k > 2").alias("x").withWatermark("t", "5 seconds")
    calls: dict[str, Callable[[], object]] = {
        "alert": lambda: tg.alert(
            {"a": first, "b": right.withColumnRenamed("u", "t")},
            on="k",
            time="t",
            within="5 s",
            when="a + b > 3",
        ),
        "sample": lambda: tg.estimate(first, "count(*)", window="1 minute", time="t", lateness="1 s"),
    }
    with pytest.raises(InputError) as caught:
        calls.get(way, lambda: tg.join(first, right, **settings))()
    message = str(caught.value)
    assert "is the result of a tidegate join, sample or alarm in the same query" in message
    assert "read that back with spark.readStream, or use foreachBatch" in message


def test_a_batch_behind_a_join_is_not_refused(frames: Frames) -> None:
    left, right = frames(False)  # noqa: FBT003
    settings: dict[str, Any] = {"on": "k", "time": ("t", "u"), "window": ("5 s", "5 s")}
    first = tg.join(left, right, **settings).drop("u", "s_right", "b")
    assert tg.join(first, right, **settings).count() == 3


def test_a_timestamp_without_zone_cannot_have_a_watermark(frames: Frames) -> None:
    left, right = frames(True)  # noqa: FBT003
    message = refusal(left.selectExpr("k", "cast(t as timestamp_ntz) as t"), right)
    assert "timestamp_ntz" in message
    assert "cast" in message


def test_times_with_and_without_zone_do_not_mix(frames: Frames) -> None:
    left, right = frames(False)  # noqa: FBT003
    message = refusal(left.withColumn("t", left["t"].cast("timestamp_ntz")), right)
    assert "timestamp_ntz" in message
    assert "cast" in message


def test_a_very_long_watermark_warns(frames: Frames) -> None:
    left, right = frames(True)  # noqa: FBT003
    long = left.withColumnRenamed("t", "t2").selectExpr("k", "t2")
    with pytest.warns(UserWarning, match=r"left watermark waits 36000 s, far longer than the window of 5 s"):
        tg.join(
            _rate(long).withWatermark("t2", "10 hours"),
            right,
            on="k",
            time=("t2", "u"),
            window=("5 s", "5 s"),
        )
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        tg.join(left, right, on="k", time=("t", "u"), window=("5 s", "5 s"))


def _rate(frame: DataFrame) -> DataFrame:
    return frame.sparkSession.readStream.format("rate").load().toDF("t2", "k")


def test_a_condition_without_by_warns_of_scale(frames: Frames) -> None:
    left, right = frames(False)  # noqa: FBT003
    with pytest.warns(UserWarning, match=r"runs in one bucket, on one core; name a column with by="):
        tg.join(left, right, on="k", time=("t", "u"), window=("5 s", "5 s"), condition="<")


def test_the_wrong_state_store(spark: SparkSession, frames: Frames) -> None:
    left, right = frames(True)  # noqa: FBT003
    hdfs = "org.apache.spark.sql.execution.streaming.state.HDFSBackedStateStoreProvider"
    with conf(spark, spark__sql__streaming__stateStore__providerClass=hdfs):
        message = refusal(left, right)
        assert hdfs in message
        assert "tidegate.configure(spark)" in message
        batch = frames(False)  # noqa: FBT003
        assert tg.join(*batch, on="k", time=("t", "u"), window=("5 s", "5 s")).count() == 3


def test_two_columns_of_one_name(frames: Frames) -> None:
    left, right = frames(False)  # noqa: FBT003
    double = left.selectExpr("k", "t", "a", "s as a")
    message = refusal(double, right)
    assert "left has two columns 'a'" in message
    assert "rename one" in message


def test_names_that_differ_in_case_only(frames: Frames) -> None:
    left, right = frames(False)  # noqa: FBT003
    message = refusal(left.selectExpr("k", "t", "a", "s as A"), right)
    assert re.search(r"'[aA]'", message)
    assert "rename" in message


@pytest.mark.parametrize(
    "sql",
    [
        "map(k, 1)",
        "parse_json('1')",
        "make_interval(0, 1, 0, 2)",
        "array(map(k, 1))",
        "struct(map(k, 1) as m)",
    ],
)
def test_what_cannot_be_a_key(frames: Frames, sql: str) -> None:
    left, right = (frame.selectExpr("*", f"{sql} as z") for frame in frames(False))  # noqa: FBT003
    message = refusal(left, right, on="z")
    assert "'z' of type" in message
    assert "cannot be a key" in message
    assert "use a column derived from it" in message


def test_keys_of_other_types(frames: Frames) -> None:
    left, right = frames(False)  # noqa: FBT003
    message = refusal(
        left.selectExpr("cast(k as decimal(10,2)) k", "t"),
        right.selectExpr("cast(k as decimal(12,2)) k", "u"),
    )
    assert "decimal(10,2)" in message
    assert "decimal(12,2)" in message
    assert "cast" in message


def test_integers_of_any_width_are_one_key_type(frames: Frames) -> None:
    left, right = frames(False)  # noqa: FBT003
    joined = tg.join(
        left.selectExpr("cast(k as tinyint) k", "t"),
        right.selectExpr("k", "u"),
        on="k",
        time=("t", "u"),
        window=("0 s", "0 s"),
    )
    assert joined.count() == 3


def test_an_unknown_checkpoint(spark: SparkSession, tmp_path: str) -> None:
    with pytest.raises(InputError, match="give the checkpointLocation of a query that has run"):
        tg.inspect(tmp_path, spark=spark)
    with pytest.raises(InputError, match=r"'row' is not known; use one of 'rows', 'counts'"):
        tg.inspect(tmp_path, "row", spark=spark)  # type: ignore[arg-type]


def test_a_budget_of_the_library_is_taken_as_it_is(frames: Frames) -> None:
    left, right = (frame.withColumn("k", F.lit(0)) for frame in frames(False))  # noqa: FBT003
    settings: dict[str, Any] = {
        "on": "k",
        "time": ("t", "u"),
        "window": ("5 s", "5 s"),
        "buckets": 1,
        "step": 1,
    }
    budgets = (None, 10, "1 MB", Budget(rows=10), 1, Budget(rows=1))
    joined = [
        tg.join(left, right, budget=budget, **settings).select(F.lit(number).alias("number"))
        for number, budget in enumerate(budgets)
    ]
    results = Counter(row.number for row in reduce(DataFrame.unionAll, joined).collect())
    assert [results[number] for number in range(4)] == [9, 9, 9, 9]
    assert results[4] == results[5] < 9
