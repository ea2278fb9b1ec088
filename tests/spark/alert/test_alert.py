"""The alarms on Spark are those of the full join, and few rows are kept for them."""

from __future__ import annotations

import base64
import json
import math
import warnings
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pytest
from pyspark.sql import functions as F  # noqa: N812 - its usual name

import tidegate as tg
from tests.alerts.brute_force import best_of_arrivals
from tests.spark import streams
from tests.spark.streams import at
from tidegate.arrow_columns import row_sizes
from tidegate.spark.alert.inspection import _read_counts
from tidegate.spark.bucket.alert.bucket import AlertBucket
from tidegate.spark.bucket.alert.plan import AlertPlan
from tidegate.spark.bucket.alert.saved import SavedAlert
from tidegate.spark.packing.buckets import labels
from tidegate.spark.state.log import StateLog
from tidegate.spark.state.values import DictValueStore

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = pytest.mark.spark

WITHIN = 4_000
NAMES = "abc"
WHEN = {2: "a - b > 2.5", 3: "a - b + c > 4"}
SCHEMA = "k long, g string, ts timestamp, {} double"


@dataclass(frozen=True)
class Row:
    """A reading; its time is in milliseconds."""

    key: int | None
    time: int
    value: float | None


Batches = dict[str, list[list[Row]]]


def readings(names: str, *, seed: int, batches: int = 1, size: int = 40, disorder: int = 0) -> Batches:
    """Readings of three keys, with distinct times unless there is disorder; values are exact as doubles."""
    rng = np.random.default_rng(seed)
    made: Batches = {name: [] for name in names}
    for batch in range(batches):
        times = 10_000 * batch + 100 * rng.permutation(100 * len(names))[: size * len(names)] // len(names)
        times += rng.integers(-disorder, 1, len(times))
        for i, name in enumerate(names):
            own = times[i :: len(names)]
            values = rng.integers(-8, 9, len(own)) / 4
            made[name].append(
                [Row(int(rng.integers(3)), int(t), float(v)) for t, v in zip(own, values, strict=True)]
            )
    return made


def table(name: str, rows: list[Row]) -> pa.Table:
    return pa.table(
        {
            "k": pa.array([row.key for row in rows], pa.int64()),
            "g": pa.array([None if row.key is None else f"g{row.key}" for row in rows], pa.string()),
            "ts": pa.array([at(row.time) for row in rows], pa.timestamp("us", "UTC")),
            name: pa.array([row.value for row in rows], pa.float64()),
        }
    )


def write(folder: Path, made: Batches) -> None:
    for name, batches in made.items():
        streams.write(folder / name, [table(name, rows) for rows in batches])


def streaming(spark: SparkSession, folder: Path, names: str, delay: str) -> dict[str, DataFrame]:
    return {name: streams.read(spark, folder / name, "ts", delay) for name in names}


def batch(spark: SparkSession, made: Batches) -> dict[str, DataFrame]:
    return {
        name: spark.createDataFrame(
            table(name, [row for rows in batches for row in rows]).to_pandas(), SCHEMA.format(name)
        )
        for name, batches in made.items()
    }


def alert(frames: dict[str, Any], **settings: Any) -> DataFrame:  # noqa: ANN401 - as alert's
    chosen: dict[str, Any] = {
        "on": "k",
        "time": "ts",
        "within": f"{WITHIN} milliseconds",
        "when": WHEN[len(frames)],
        "buckets": 2,
    }
    return tg.alert(frames, **chosen | settings)


def arrivals(rows: Iterator[Any] | list[Any], key: str = "k") -> list[tuple[Any, ...]]:
    return sorted((row[key], row["at"], row["stream"], row["margin"]) for row in rows)


Joined = Callable[[Mapping[str, float]], bool]


def expected(
    made: Batches,
    *,
    within: int = WITHIN,
    joined: Joined | None = None,
    late: Callable[[int, Row], bool] = lambda batch, row: False,  # noqa: ARG005 - one of its kind
) -> list[tuple[Any, ...]]:
    """The alarms without omission: for each key separately, batch by batch, in order of time."""
    names = list(made)
    signs = {"a": 1, "b": -1, "c": 1}
    threshold = 2.5 if len(names) == 2 else 4
    found = []
    for key in range(3):
        came = [
            (name, row.time, row.value or 0.0)
            for batch in range(max(map(len, made.values())))
            for row, name in sorted(
                (
                    (row, name)
                    for name in names
                    for row in (made[name][batch] if batch < len(made[name]) else [])
                    if row.key == key and row.value is not None and not math.isnan(row.value)
                    if not late(batch, row)
                ),
                key=lambda of: (of[0].time, names.index(of[1]), of[0].value),
            )
        ]
        best = best_of_arrivals(
            came,
            names,
            joined or (lambda times: max(times.values()) - min(times.values()) <= within),
            lambda *values: sum(signs[n] * v for n, v in zip(names, values, strict=True)) - threshold,
        )
        found += [
            (key, at(time).replace(tzinfo=None), name, level)
            for (name, time, _), level in zip(came, best, strict=True)
            if level is not None and level > 0
        ]
    return sorted(found)


def counts(spark: SparkSession, checkpoint: Path) -> dict[str, dict[str, int]]:
    """The counts of each stream, over all buckets."""
    frame = tg.inspect(checkpoint, "counts", spark=spark)
    numbers = [name for name in frame.columns if name not in ("bucket", "stream")]
    summed = frame.groupBy("stream").agg(*(F.sum(name).alias(name) for name in numbers))
    return {row["stream"]: row.asDict() for row in summed.collect()}


@pytest.mark.parametrize("hop", [None, 1_500])
@pytest.mark.parametrize("names", ["ab", "abc"])
def test_a_batch_raises_the_alarms_of_a_sql_join(spark: SparkSession, names: str, hop: int | None) -> None:
    made = readings(names, seed=len(names), batches=2)
    frames = batch(spark, made)
    renamed = {
        name: frame.select("g", F.col("ts").alias(f"{name}_time"), name) for name, frame in frames.items()
    }
    times = [f"{name}_time" for name in names]
    first, last = f"least({', '.join(times)})", f"greatest({', '.join(times)})"
    close = f"unix_millis({last}) - unix_millis({first}) <= {WITHIN}"
    if hop is not None:
        close = f"unix_millis({last}) < floor(unix_millis({first}) / {hop}) * {hop} + {WITHIN}"
    joined = renamed["a"]
    for name in names[1:]:
        joined = joined.join(renamed[name], "g")
    left, right = WHEN[len(names)].split(" > ")
    own = "case " + " ".join(f"when {last} = {name}_time then '{name}'" for name in names) + " end"
    wanted = (
        joined.where(f"{close} and {WHEN[len(names)]}")
        .selectExpr("g", f"{last} as at", f"{own} as stream", f"{left} - {right} as margin")
        .groupBy("g", "at", "stream")
        .agg(F.max("margin").alias("margin"))
    )
    windows = {} if hop is None else {"hop": f"{hop} milliseconds"}
    found = alert(frames, on="g", **windows).collect()
    assert arrivals(found, "g") == arrivals(wanted.collect(), "g")
    assert len(found) > 10
    for row in found:
        gone = [row[time] for time in times]
        assert row["at"] == row[f"{row['stream']}_time"] == max(gone)
        assert max(gone) - min(gone) <= timedelta(milliseconds=WITHIN)


def test_a_stream_raises_the_alarms_of_the_full_join(spark: SparkSession, tmp_path: Path) -> None:
    made = readings("abc", seed=5, batches=5, disorder=2_000)
    for rows in made["a"]:
        rows[0], rows[1] = Row(rows[0].key, rows[0].time, math.nan), Row(rows[1].key, rows[1].time, None)
        rows[2] = Row(None, rows[2].time, 50.0)
    # Two batches later all of the first is late.
    made["b"][3].append(Row(0, 500, -50.0))
    write(tmp_path, made)
    query = alert(streaming(spark, tmp_path, "abc", "3 seconds"))
    found = [
        dict(zip(query.columns, row, strict=True)) for row in streams.run(query, tmp_path / "checkpoint")
    ]
    assert arrivals(found) == expected(made, late=lambda batch, row: batch == 3 and row.time == 500)
    counted = counts(spark, tmp_path / "checkpoint")
    assert counted["b"]["late"] == 1
    assert counted["a"]["nan"] == 10
    assert counted["a"]["null"] == 5
    assert sum(of["alarms"] for of in counted.values()) == len(found) > 20
    kept = tg.inspect(tmp_path / "checkpoint", spark=spark).collect()
    for name, of in counted.items():
        assert of["arrived"] == sum(map(len, made[name]))
        removed = sum(of[part] for part in ("late", "null", "nan", "omitted", "evicted", "expired"))
        assert of["kept"] == of["arrived"] - removed == sum(row["stream"] == name for row in kept)
        assert of["omitted"] > 0
    assert {row["key"]["k"] for row in kept} <= {0, 1, 2}
    with pytest.raises(tg.InputError, match="has no model"):
        tg.inspect(tmp_path / "checkpoint", "model", spark=spark)


def in_a_window(times: Mapping[str, float]) -> bool:
    """Windows begin at multiples of 1,500 ms after the epoch."""
    return max(times.values()) < min(times.values()) // 1_500 * 1_500 + WITHIN


def in_a_chain(times: Mapping[str, float]) -> bool:
    return max(abs(times["a"] - times["b"]), abs(times["b"] - times["c"])) <= WITHIN


@pytest.mark.slow
@pytest.mark.parametrize(
    ("settings", "joined"),
    [
        ({"hop": "1500 milliseconds"}, in_a_window),
        ({"topology": [("a", "b"), ("b", "c")], "carry": "g"}, in_a_chain),
    ],
)
@pytest.mark.filterwarnings("ignore:every row of 'b' is kept")
def test_a_stream_raises_the_alarms_of_the_full_join_with_windows_and_a_chain(
    spark: SparkSession, tmp_path: Path, settings: dict[str, Any], joined: Joined
) -> None:
    made = readings("abc", seed=7, batches=3, disorder=2_000)
    write(tmp_path, made)
    query = alert(streaming(spark, tmp_path, "abc", "3 seconds"), **settings)
    found = [
        dict(zip(query.columns, row, strict=True)) for row in streams.run(query, tmp_path / "checkpoint")
    ]
    wanted = expected(made, joined=joined)
    if "carry" in settings:
        assert all(row[f"{name}_g"] == f"g{row['k']}" for row in found for name in "abc")
    assert arrivals(found) == wanted != expected(made)
    assert len(wanted) > 20
    counted = counts(spark, tmp_path / "checkpoint")
    assert [counted[name]["omitted"] > 0 for name in "abc"] == [True, "hop" in settings, True]


def test_a_silent_stream_costs_few_rows_and_misses_no_alarm(spark: SparkSession, tmp_path: Path) -> None:
    rng = np.random.default_rng(8)
    hours, pace = 6, 5_000

    def made_for(scale: float, times: range) -> list[Row]:
        return [
            Row(0, t, round(float(v)) / 4)
            for t, v in zip(times, rng.normal(0, scale, len(times)), strict=True)
        ]

    whole = range(0, hours * 3_600_000, pace)
    first: Batches = {
        "a": [made_for(4, whole[: len(whole) // 2]), made_for(4, whole[len(whole) // 2 :])],
        "b": [made_for(4, range(1_000, 20_000, pace)), []],
    }
    within = 120_000
    query = {"within": f"{within} milliseconds", "buckets": 1}
    write(tmp_path, first)
    out, checkpoint = tmp_path / "out", tmp_path / "checkpoint"
    streams.run_to_files(alert(streaming(spark, tmp_path, "ab", "0 seconds"), **query), checkpoint, out)
    silent = counts(spark, checkpoint)["a"]
    assert silent["expired"] == 0
    # Of the 49 readings of a bracket, usually the two or three highest are kept.
    assert silent["kept"] < silent["arrived"] / 8
    late: Batches = {"a": [], "b": [made_for(4, range(1_000, hours * 3_600_000, 300_000))]}
    write(tmp_path, late)
    streams.run_to_files(alert(streaming(spark, tmp_path, "ab", "0 seconds"), **query), checkpoint, out)
    both: Batches = {"a": [*first["a"], []], "b": [*first["b"], *late["b"]]}
    # The first readings of b after the silence are before the watermark of its last ones.
    wanted = expected(both, within=within, late=lambda batch, row: batch == 2 and row.time <= 16_000)
    found = spark.read.parquet(*sorted(str(f) for f in out.glob("batch=*"))).collect()
    assert arrivals(found) == wanted
    assert sum(stream == "b" for _, _, stream, _ in wanted) > 20


def test_a_restart_continues_and_a_repeated_batch_is_the_same(spark: SparkSession, tmp_path: Path) -> None:
    made = readings("ab", seed=11, batches=4, disorder=2_000)
    write(tmp_path, {name: batches[:2] for name, batches in made.items()})
    out, checkpoint = tmp_path / "out", tmp_path / "checkpoint"

    def go() -> None:
        streams.run_to_files(alert(streaming(spark, tmp_path, "ab", "3 seconds")), checkpoint, out)

    go()
    write(tmp_path, {name: batches[2:] for name, batches in made.items()})
    go()
    found = arrivals(spark.read.parquet(*sorted(str(f) for f in out.glob("batch=*"))).collect())
    assert found == expected(made)
    rows, before = streams.rows_of(spark, out), counts(spark, checkpoint)
    last = max(int(file.name) for file in (checkpoint / "commits").glob("[0-9]*"))
    for file in (checkpoint / "commits").glob(f"*{last}*"):
        file.unlink()
    go()
    assert streams.rows_of(spark, out) == rows
    assert counts(spark, checkpoint) == before


def test_keys_of_several_or_no_columns_and_values_by_expressions(spark: SparkSession) -> None:
    when: datetime = at(0)
    one = spark.createDataFrame(
        [(1, "x", when, 3), (2, "x", when, 3)], "k int, g string, ts timestamp, n int"
    )
    two = spark.createDataFrame(
        [(1, "x", when, 1), (1, "y", when, 1), (None, "x", when, 1)], "k long, g string, ts timestamp, b int"
    )
    frames = {"a": (one, "n * 2"), "b": two}
    both = alert(frames, on=["k", "g"])
    assert both.columns == ["k", "g", "at", "stream", "margin", "a_time", "a", "b_time", "b"]
    assert [(row.k, row.g, row.stream, row.a, row.margin) for row in both.collect()] == [
        (1, "x", "b", 6.0, 2.5)
    ]
    # All belong together: each of b comes after both of a.
    alone = alert(frames, on=None, buckets=None)
    assert alone.columns[0] == "at"
    assert alone.count() == 3


@pytest.mark.parametrize("order", ["ab", "ba"])
def test_integer_keys_of_different_sizes_match(spark: SparkSession, order: str) -> None:
    small = spark.createDataFrame([(7, at(0), 9.0)], "k int, ts timestamp, a double")
    large = spark.createDataFrame([(7, at(1), 1.0), (2**40, at(1), 1.0)], "k long, ts timestamp, b double")
    frames = {"a": small, "b": large}
    found = alert({name: frames[name] for name in order})
    assert [row.k for row in found.collect()] == [7]
    assert found.schema["k"].dataType.simpleString() == "bigint"


def test_alarms_contain_carried_columns(spark: SparkSession) -> None:
    hour = timedelta(hours=1)
    one = spark.createDataFrame(
        [(1, at(0), 9.0, "a1", at(0) - hour), (1, at(1), 5.0, "a2", None), (1, at(2), 6.0, None, None)],
        "k int, ts timestamp, a double, sensor string, made timestamp",
    )
    two = spark.createDataFrame([(1, at(3), 1.0, "b1")], "k long, ts timestamp, b double, sensor string")
    found = alert({"a": one, "b": two}, carry=["sensor", "made"])
    assert found.columns[4:] == ["a_time", "a", "a_sensor", "a_made", "b_time", "b", "b_sensor"]
    assert [tuple(row)[5:] for row in found.collect()] == [
        (9.0, "a1", (at(0) - hour).replace(tzinfo=None), at(3).replace(tzinfo=None), 1.0, "b1")
    ]
    with pytest.raises(
        tg.InputError, match="carry has 'x', which is not a column of any stream: 'a' has k, ts"
    ):
        alert({"a": one, "b": two}, carry="x")
    with pytest.raises(tg.InputError, match="two columns 'a_time'"):
        alert({"a": one.withColumnRenamed("made", "time"), "b": two}, carry="time")


def test_inspect_shows_carried_columns_of_kept_rows(spark: SparkSession, tmp_path: Path) -> None:
    made = readings("abc", seed=6)
    write(tmp_path, made)
    frames = streaming(spark, tmp_path, "abc", "3 seconds")
    frames = {"a": frames["a"], "b": frames["b"].drop("g"), "c": frames["c"].withColumn("made", F.col("ts"))}
    streams.run(alert(frames, carry=["g", "made"]), tmp_path / "checkpoint")
    kept = tg.inspect(tmp_path / "checkpoint", spark=spark)
    assert kept.schema["carried"].dataType.simpleString() == "struct<a_g:string,c_g:string,c_made:timestamp>"
    rows = kept.collect()
    assert {row.stream for row in rows} == {"a", "b", "c"}
    for row in rows:
        group = f"g{row.key.k}"
        expected_values = {"a": (group, None, None), "b": (None, None, None), "c": (None, group, row.time)}
        assert tuple(row.carried) == expected_values[row.stream]


def test_streams_that_are_not_certified_are_kept_with_a_warning(spark: SparkSession) -> None:
    frames = batch(spark, readings("abc", seed=1, size=2))
    with pytest.warns(UserWarning, match="every row of 'a' is kept: pow") as caught:
        alert(frames, when="pow(a, 3) - a + b + c > 1", domain=dict.fromkeys("abc", (-2, 2)))
    assert len(caught) == 1
    with pytest.warns(UserWarning, match="every row of 'b' is kept: its partners a and c are not joined"):
        alert(frames, topology=[("a", "b"), ("b", "c")])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        alert(frames)
        alert(
            frames,
            when="sin(a) + b + c > 1",
            domain=dict.fromkeys("abc", (0, 0.5)),
            assume_shape={"a": "increasing"},
        )


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"within": "0 seconds"}, "within must be a positive duration, e.g. '10 seconds'; got '0 seconds'"),
        ({"within": 5}, "within 5 has no unit"),
        ({"hop": "-1 seconds"}, "hop must be a positive duration"),
        ({"when": "a - d > 0"}, "uses 'd', which is not a stream; the streams are: a, b, c"),
        ({"when": "a - b > 0"}, "stream 'c' does not occur in when='a - b > 0'; leave it out"),
        ({"when": "a - b + c"}, "is a number, not a condition; write a comparison"),
        ({"when": "a ^ b > c"}, "bitwise operation"),
        ({"when": "__import__('os').system('x') > a + b + c"}, "at character"),
        ({"topology": [("a", "b")]}, "topology has no pair with 'c'; add one, e.g. \\('a', 'c'\\)"),
        ({"topology": [("a", "d")]}, "topology has 'd', which is not a stream"),
        ({"topology": [("a", "b"), ("b", "c")], "hop": "1 second"}, "hop needs all streams to be joined"),
        ({"topology": "ab"}, "is not a list of pairs"),
        ({"on": "z"}, "stream 'a' has no column 'z'; it has k, g, ts, a"),
        ({"on": []}, "on=\\[\\] names no column"),
        ({"on": None, "buckets": 2}, "buckets=2 needs a key"),
        ({"time": "k"}, "a.k is of type bigint; give a timestamp"),
        ({"domain": {"a": (0, 1)}}, "domain has no entry for 'b'"),
        ({"assume_shape": {"z": "increasing"}}, "assume_shape has 'z'"),
        (
            {"budget": 5},
            "a budget of 5 rows is too small for 2 buckets and 3 streams; give at least 6",
        ),
        (
            {"budget": "200 B"},
            "a budget of 200 bytes is too small for 2 buckets and 3 streams; give at least 240",
        ),
        ({"buckets": 0}, "buckets=0 is not a number of buckets"),
    ],
)
def test_invalid_arguments_are_refused_before_the_query_starts(
    spark: SparkSession, settings: dict[str, Any], message: str
) -> None:
    frames = {name: spark.createDataFrame([], SCHEMA.format(name)) for name in NAMES}
    with pytest.raises(tg.InputError, match=message):
        alert(frames, **settings)


def test_invalid_streams_are_refused_before_the_query_starts(spark: SparkSession) -> None:
    one, two = (spark.createDataFrame([], SCHEMA.format(name)) for name in "ab")
    rate = spark.readStream.format("rate").load().selectExpr("value as k", "timestamp as ts", "1.0 as b")
    bad: list[tuple[dict[str, Any], str]] = [
        ({"a": one}, "give at least two DataFrames by name"),
        ({"a": one, "b": 3}, "stream 'b' is a int; give a Spark DataFrame"),
        ({"a": one, "b": rate}, "'b' is streaming and 'a' is not"),
        ({"a": rate.withColumnRenamed("b", "a"), "b": rate}, "a has no watermark on 'ts'"),
        ({"a": one, "b": one}, "the value of stream 'b', `b`: "),
        ({"a": (one, "g"), "b": two}, "of type string; give a number"),
        (
            {"a": one, "b": two.withColumn("k", F.col("k").cast("string"))},
            "'k' is bigint in 'a', string in 'b'",
        ),
        (
            {"a": one, "b": two.withColumn("ts", F.col("ts").cast("timestamp_ntz"))},
            "'ts' is timestamp in 'a'",
        ),
    ]
    for frames, message in bad:
        with pytest.raises(tg.InputError, match=message):
            tg.alert(frames, on="k", time="ts", within="1 second", when="a - b > 0")
    with pytest.raises(tg.InputError, match="two columns 'at'"):
        tg.alert({"at": (one, "a"), "b": two}, on="k", time="ts", within="1 second", when="at - b > 0")


def plan(when: str, budget: int | str | None = None) -> AlertPlan:
    """A plan for two streams."""
    topology = tg.alerts.Topology.clique("ab", 1_000 * WITHIN)
    stamp = pa.timestamp("us", "UTC")
    certificate = tg.alerts.certify(when)
    carried = {"a": (), "b": (pa.string(),)}
    return AlertPlan(
        certificate,
        topology,
        None,
        ("a", "b"),
        (pa.int64(),),
        stamp,
        carried,
        tg.Budget.of(budget),
        {"buckets": 1},
    )


def packed(name: str, rows: list[Row]) -> pa.Table:
    """Rows with internal columns; the key is its own hash."""
    sent = table(name, rows).select(["k", "ts", name]).rename_columns(["k", "t", "v"])
    named = pa.array([f"{name} at {row.time}" for row in rows])
    return sent.append_column("x", sent["k"]).append_column("c0", sent["k"]).append_column("p0", named)


def again(bucket: AlertBucket, other: AlertPlan | None = None) -> AlertBucket:
    """The bucket, saved and loaded."""
    values = DictValueStore()
    bucket.save(StateLog(values, local=False))
    return AlertBucket.load(other or bucket.plan, SavedAlert.read(StateLog(values, local=False)))


def test_a_bucket_keeps_its_keys_after_others_are_dropped() -> None:
    bucket = AlertBucket(plan(WHEN[2]))
    first = [Row(9, 0, 5.0), Row(5, 0, 5.0), Row(7, 60_000, 4.0), Row(8, 60_000, 3.0)]
    assert not list(bucket.step({"a": packed("a", first)}, _micros(60_000)))
    assert bucket.keys["c0"].to_pylist() == [7, 8]
    bucket = again(bucket)
    second = [Row(5, 61_000, 0.0), Row(7, 61_000, 0.0), Row(8, 61_000, 0.0), Row(6, 61_000, 0.0)]
    (alarms,) = bucket.step({"b": packed("b", second)}, _micros(60_000))
    assert [alarms.column(i).to_pylist() for i in (0, 2, 3, 5)] == [
        [7, 8],
        ["b", "b"],
        [1.5, 0.5],
        [4.0, 3.0],
    ]
    assert bucket.keys["c0"].to_pylist() == [7, 8, 5, 6]


def test_a_bucket_keeps_the_carried_columns_of_kept_rows_only() -> None:
    made = readings("ab", seed=3, batches=4, size=60)
    bucket, raised = AlertBucket(plan(WHEN[2])), 0
    for batch in range(4):
        sent = {name: packed(name, made[name][batch]) for name in "ab"}
        for alarms in bucket.step(sent, _micros(10_000 * batch)):
            times = alarms.column(6).cast(pa.int64()).to_numpy() - _micros(0)
            assert alarms.column(8).to_pylist() == [f"b at {time // 1000}" for time in times.tolist()]
            raised += len(times)
        bucket = again(bucket)
        assert bucket.carried["b"].num_rows == len(bucket.finder.rows["b"].key) < 60
    assert list(bucket.carried) == ["b"]
    assert raised > 20


def _micros(milliseconds: int) -> int:
    return int(at(milliseconds).timestamp()) * 1_000_000


@pytest.mark.filterwarnings("ignore:the budget of 1200 bytes")
def test_a_budget_of_bytes_includes_keys_and_carried_columns() -> None:
    bucket = AlertBucket(plan("abs(a - b) > 3.5", budget="1200 B"))
    made = readings("ab", seed=4, batches=4, size=80)

    def kept(carried: str | None = None) -> list[int]:
        arrived = {name: packed(name, made[name].pop()) for name in "ab"}
        if carried:
            place = arrived["b"].schema.get_field_index("p0")
            names = pa.array([carried] * arrived["b"].num_rows)
            arrived["b"] = arrived["b"].set_column(place, "p0", names)
        list(bucket.step(arrived, watermark=-(10**15)))
        rows = [len(bucket.finder.rows[name].key) for name in "ab"]
        kept_bytes = 24 * sum(rows) + row_sizes(bucket.carried["b"]).sum() + row_sizes(bucket.keys).sum()
        assert kept_bytes <= 2 * 1200
        return rows

    # A row is 24 bytes, its name up to 14, its key 24.
    assert kept() == [19, 19]
    bucket = again(bucket)
    assert kept() == [19, 19]
    assert kept("b" * 1000) == [1, 1]
    assert kept("b" * 2000) == [0, 0]


def test_a_bucket_keeps_its_budget_and_refuses_another_layout() -> None:
    bucket = AlertBucket(plan("abs(a - b) > 3.5", budget=12))
    made = readings("ab", seed=2, size=90)
    for name in "ab":
        with pytest.warns(
            UserWarning, match=f"12 rows per bucket and stream is too small for {name}: rows are evicted"
        ):
            alarms = list(bucket.step({name: packed(name, made[name][0])}, watermark=-(10**15)))
        bucket = again(bucket)
    assert alarms
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        list(bucket.step({"a": packed("a", made["a"][0][:1])}, watermark=-(10**15)))  # warned already
    for name in "ab":
        counted = bucket.finder.counts[name]
        assert len(bucket.finder.rows[name].key) == 12
        assert counted["evicted"] > 0
        assert counted["evicted"] + counted["omitted"] == bucket.counts[name]["arrived"] - 12
    layout = {"buckets": 1, "streams": ["a", "b"], "topology": [["a", "b"]], "on": []}
    bucket.plan = replace(bucket.plan, layout=layout)
    values = DictValueStore()
    bucket.save(StateLog(values, local=False))
    row = {"bucket": labels(1)[0], "values": [{"name": n, "payload": p} for n, p in values.content.items()]}
    (counts,) = _read_counts(iter([pa.RecordBatch.from_pylist([row])]))
    probabilities = counts.column(counts.num_columns - 1).to_pylist()
    assert all(0 < probability < 1 for probability in probabilities)
    assert 1 - bucket.finder.miss_probability == pytest.approx(
        math.prod(1 - probability for probability in probabilities)
    )
    bucket.plan = replace(bucket.plan, layout={"buckets": 1})
    other = replace(bucket.plan, layout={"buckets": 1, "within": 5})
    with pytest.raises(tg.InputError, match="written with within=None, the query now has 5; change it back"):
        again(bucket, other)


class CountingStore(DictValueStore):
    """Counts the bytes that are written."""

    written = 0

    def put(self, name: str, value: bytes) -> None:
        self.written += len(value)
        super().put(name, value)


def test_a_log_gives_the_alarms_of_a_bucket_that_stays_in_memory() -> None:
    """Keys appear and leave, rows come late, and some tasks read their state from the store."""
    made = readings("ab", seed=8, batches=14, size=60, disorder=900)
    chosen, values = plan(WHEN[2]), DictValueStore()
    in_memory, raised = AlertBucket(chosen), 0
    for batch in range(14):
        sent = {
            name: packed(name, [replace(row, key=(row.key or 0) + batch // 3) for row in made[name][batch]])
            for name in "ab"
        }
        log = StateLog(values, local=False)
        bucket = AlertBucket.load(chosen, SavedAlert.read(log))
        found = [list(of.step(sent, _micros(10_000 * batch))) for of in (bucket, in_memory)]
        assert found[0] == found[1]
        raised += sum(alarms.num_rows for alarms in found[0])
        assert bucket.counts == in_memory.counts
        assert bucket.finder.counts == in_memory.finder.counts
        bucket.save(log)
    assert raised > 100


def test_a_micro_batch_writes_the_rows_that_it_keeps() -> None:
    """With a function without a certified shape all rows are kept for the whole window."""
    values, sizes = CountingStore(), []
    chosen = plan("abs(a - b) > 1000")
    for batch in range(40):
        log = StateLog(values, local=False)
        bucket = AlertBucket.load(chosen, SavedAlert.read(log))
        times = [Row(1000 * batch + i, 10 * batch, float(i)) for i in range(200)]
        assert not list(bucket.step({"b": packed("b", times)}, watermark=-(10**15)))
        before = values.written
        bucket.save(log)
        sizes.append(values.written - before)
    assert len(bucket.finder.rows["b"].key) == 8000
    assert sum(map(len, values.content.values())) > 15 * np.median(sizes)
    assert np.median(sizes[30:]) < 1.3 * np.median(sizes[:10])


@pytest.mark.parametrize(
    "file", sorted((Path(__file__).parent / "saved").glob("*.json")), ids=lambda f: f.stem
)
def test_a_saved_state_opens_and_continues(file: Path) -> None:
    stored = json.loads(file.read_text())
    values = DictValueStore({name: base64.b64decode(value) for name, value in stored["values"].items()})
    log = StateLog(values, local=False)
    bucket = AlertBucket.load(plan(WHEN[2]), SavedAlert.read(log))
    made = readings("ab", seed=3, batches=4, size=60)
    found = bucket.step({name: packed(name, made[name][3]) for name in "ab"}, _micros(30_000))
    assert [str(row) for alarms in found for row in alarms.to_pylist()] == stored["alarms"]
    counts = {name: [*counts.values()] for name, counts in bucket.finder.counts.items()}
    assert counts == {name: [*counts.values()] for name, counts in stored["counts"].items()}
    bucket.save(log)
    after = AlertBucket.load(plan(WHEN[2]), SavedAlert.read(StateLog(values, local=False)))
    assert after.finder.counts == bucket.finder.counts
    assert after.carried["b"].to_pylist() == bucket.carried["b"].to_pylist()
    assert after.keys.to_pylist() == bucket.keys.to_pylist()
