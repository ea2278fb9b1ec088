"""Pipeline files: keys, values, errors, and the example."""

from __future__ import annotations

import io
import json
import os
import shutil
import signal
import sys
from pathlib import Path

import pytest
from rich.console import Console

pytest.importorskip("pyspark")

from pyspark.sql import SparkSession
from pyspark.sql import functions as F  # noqa: N812 - its usual name

import tidegate as tg
from tidegate import importance
from tidegate.policies import Fifo, IJoin, Importance, Policy, Prob, Random, Size
from tidegate.spark import pipeline
from tidegate.spark.pipeline.models import JoinConfig
from tidegate.spark.session.spark_errors import root_cause
from tidegate.types import Array, Band, Budget, InputError, Rows, Time

EXAMPLES = Path(__file__).parents[3] / "examples"

SOUND = {
    "checkpoint": "out/checkpoint",
    "left": {"format": "csv", "path": "l", "schema": "k INT, t TIMESTAMP"},
    "right": {"format": "csv", "path": "r", "schema": "k INT, u TIMESTAMP"},
    "join": {
        "on": "k",
        "time": ["t", "u"],
        "lateness": "5 seconds",
        "window": ["1 minute", "0 s"],
        "budget": 9,
    },
    "sink": {"format": "parquet", "path": "out/results"},
}

DEFAULTS = {
    name: field.get_default(call_default_factory=True) for name, field in JoinConfig.model_fields.items()
}
for shared in ("time", "lateness"):
    del DEFAULTS[shared]


def toml(value: object) -> str:
    if isinstance(value, dict):
        return "{" + ", ".join(f"{json.dumps(key)} = {toml(part)}" for key, part in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(toml, value)) + "]"
    return json.dumps(value)


def write(folder: Path, changes: dict[str, object], extra: str = "") -> Path:
    """A valid pipeline with changes by dotted key; None removes a key."""
    values = json.loads(json.dumps(SOUND))
    for name, value in changes.items():
        *tables, key = name.split("/")
        at = values
        for table in tables:
            at = at.setdefault(table, {})
        if value is None:
            at.pop(key)
        else:
            at[key] = value
    path = folder / "p.toml"
    path.write_text("\n".join(f"{key} = {toml(value)}" for key, value in values.items()) + "\n" + extra)
    return path


def refused(folder: Path, changes: dict[str, object]) -> list[str]:
    path = write(folder, changes)
    with pytest.raises(InputError) as raised:
        pipeline.load(path)
    return [line.removeprefix(f"{path}: ") for line in str(raised.value).splitlines()]


def test_a_valid_pipeline_loads_with_paths_from_its_folder(tmp_path: Path) -> None:
    loaded = pipeline.load(write(tmp_path, {"right/path": "s3a://bucket/r", "sink/path": "/out"}))
    assert loaded.left.path == str(tmp_path / "l")
    assert loaded.right.path == "s3a://bucket/r"
    assert loaded.sink.path == "/out"
    assert loaded.checkpoint == str(tmp_path / "out/checkpoint")
    assert (loaded.time("left"), loaded.time("right"), loaded.lateness("left")) == ("t", "u", 5_000_000)
    assert loaded.join.arguments() == DEFAULTS | {
        "on": "k",
        "window": ("1 minute", "0 s"),
        "budget": Budget(rows=9),
    }
    assert str(loaded).startswith("stream of csv and csv, inner join within 9 rows (fifo), to /out")


def test_every_key_of_the_join_is_read(tmp_path: Path) -> None:
    changes: dict[str, object] = {
        "join/on": [["k", "k"]],
        "join/window": ["forever", "1 hour"],
        "join/budget": {"bytes": "64 MB"},
        "join/policy": {"name": "random", "seed": 3},
        "join/how": "left",
        "join/where": "l.a > r.b",
        "join/condition": {"low": -1, "high": 2.5},
        "join/by": ["x", "y"],
        "join/importance": "a",
        "join/combine": "max",
        "join/split": [100, 200],
        "join/buckets": 3,
        "join/suffix": "_r",
        "join/seed": 7,
        "join/step": 10,
    }
    assert pipeline.load(write(tmp_path, changes)).join.arguments() == {
        "on": [("k", "k")],
        "window": (None, "1 hour"),
        "budget": Budget(bytes=64_000_000),
        "policy": Random(seed=3),
        "how": "left",
        "where": "l.a > r.b",
        "condition": Band(-1, 2.5),
        "by": ("x", "y"),
        "importance": importance.Column("a"),
        "combine": "max",
        "split": (100, 200),
        "buckets": 3,
        "suffix": "_r",
        "seed": 7,
        "step": 10,
    }


def test_every_key_elsewhere_is_read(tmp_path: Path) -> None:
    changes: dict[str, object] = {
        "streaming": True,
        "join/time": None,
        "join/lateness": None,
        "left/time": "t",
        "left/lateness": "1 minute",
        "left/select": ["k", "t"],
        "left/where": "k > 0",
        "left/options": {"header": True, "sep": ";", "a": {"b": 1}},
        "right": {"table": "db.r", "time": "u", "lateness": "2 minutes"},
        "sink": {
            "table": "db.s",
            "partition_by": ["k"],
            "select": ["k"],
            "mode": "append",
            "options": {"x": 1},
        },
        "trigger/processing_time": "10 seconds",
        "spark": {"master": "local[3]", "app": "a", "conf": {"spark": {"x.y": 1.5}}},
    }
    loaded = pipeline.load(write(tmp_path, changes))
    assert loaded.left.options == {"header": "true", "sep": ";", "a.b": "1"}
    assert (loaded.left.select, loaded.left.where, loaded.left.lateness) == (("k", "t"), "k > 0", 60_000_000)
    assert (loaded.right.table, loaded.time("right"), loaded.lateness("right")) == ("db.r", "u", 120_000_000)
    assert (loaded.sink.table, loaded.sink.partition_by, loaded.sink.select) == ("db.s", ("k",), ("k",))
    assert loaded.trigger.processing_time == 10_000_000
    assert loaded.spark.conf == {"spark.x.y": "1.5"}


@pytest.mark.parametrize(
    ("key", "value", "message"),
    [
        ("streaming", "yes", "expected true or false, got 'yes'"),
        ("chekpoint", "c", "not a key here; did you mean checkpoint?"),
        (
            "zebra",
            1,
            "not a key here; the keys here are checkpoint, join, left, right, sink, spark, streaming, trigger",
        ),
        ("left", None, "missing; add a table [left] with what to read"),
        ("left", "csv", "expected a table, got 'csv'"),
        ("join", None, "missing; add a table [join] with on, time, window and budget"),
        ("sink", None, "missing; add a table [sink] with where results go"),
        ("checkpoint", None, "missing; give a folder for the progress of the stream"),
        ("checkpoint", "out/results", "is the same as sink.path; give each a folder of its own"),
        ("left/format", None, 'missing; write format = "parquet"'),
        ("left/format", 3, "expected a string, got 3"),
        ("left/format", "parqet", "'parqet' is not known; did you mean 'parquet'?"),
        ("left/path", None, "missing; csv needs one"),
        ("left/path", "  ", "must not be empty"),
        ("left/path", "out/results", "is the same as sink.path"),
        ("left/schema", None, "missing; a stream of files needs one"),
        ("left/table", "t", None),
        ("left/options", ["a"], "expected a table, got ['a']"),
        ("left/options", {"a": [1]}, "a: expected a string, a number, or true or false, got [1]"),
        ("left/select", "k", 'expected a list like ["a", "b"], got \'k\''),
        ("left/select", [], 'expected a list like ["a", "b"], got []'),
        ("left/time", "t", "conflicts with join.time; keep one of them"),
        ("left/lateness", "5", "'5' is not a duration"),
        ("left/lateness", 5, 'expected a duration like "10 minutes", got 5'),
        ("left/lateness", "-5 seconds", "'-5 seconds' is negative; give 0 seconds or more"),
        ("left/checkpoint", "c", "move checkpoint to the top of the file, above the first [table]"),
        ("left/budget", 5, "not a key here; budget belongs in [join]"),
        ("join/on", None, "missing; name the key"),
        ("join/on", [], "expected a column, or a list"),
        ("join/on", [["a", "b", "c"]], "expected a column, or a list of columns and of pairs"),
        ("join/time", 5, "expected a column, or [left, right], got 5"),
        ("join/window", None, "missing; give how long rows stay joinable"),
        ("join/window", ["1 minute"], "expected [left, right] like"),
        ("join/window", ["1 fortnight", "0 seconds"], "window '1 fortnight' is not a duration"),
        ("join/window", ["1 second", "-2 seconds"], "is empty: left + right must be at least 0"),
        ("join/budget", 0, "a budget of 0 rows holds nothing"),
        ("join/budget", "64 pigs", "budget '64 pigs' is not a size"),
        ("join/budget", 1.5, 'expected a number of rows like 50000, or bytes like "64 MB", got 1.5'),
        ("join/budget", {"row": 5}, "'row' is not a unit"),
        ("join/budget", {"rows": 5, "bytes": 5}, "a budget is in rows or in bytes"),
        ("join/policy", "fifi", "did you mean 'fifo'?"),
        ("join/policy", "offline", "policy 'offline' needs to know what will arrive"),
        ("join/policy", 3, 'expected a name like "fifo"'),
        (
            "join/policy",
            {"name": "random", "sed": 1},
            "policy 'random' has no setting 'sed'; its settings are seed",
        ),
        ("join/policy", {"name": "random", "seed": "a"}, "seed of policy 'random' cannot be 'a'"),
        (
            "join/policy",
            {"name": "fifo", "seed": 1},
            "policy 'fifo' has no setting 'seed' and takes no settings",
        ),
        (
            "join/policy",
            {"name": "age", "curve": {"edges": [0, 1], "rates": [-1]}},
            "a rate of the age curve is -1",
        ),
        ("join/policy", {"name": "age", "curve": {"ages": [0, 1]}}, "policy 'age' does not accept"),
        ("join/how", "cross", "how='cross' is not supported; use 'inner', 'left'"),
        ("join/where", "l.a >", "'l.a >' cannot be parsed"),
        ("join/condition", "~", "condition '~' is not known"),
        ("join/condition", {"low": 1}, "a band is written { low = -5, high = 5 }"),
        ("join/condition", {"low": 2, "high": 1}, "is empty; the lower end comes first"),
        ("join/by", "x", "by='x' needs a condition other than '='"),
        ("join/split", "odd", 'expected "shared", "even", "optimal" or [left, right]'),
        ("join/split", [5, 5], "split (5, 5) adds up to 10, more than the budget of 9 rows"),
        ("join/buckets", 0, "0 is too small; give at least 1"),
        ("join/buckets", 10, "a budget of 9 rows cannot be divided among 10"),
        ("join/seed", True, "expected a whole number, got true"),
        ("join/budgt", 5, "not a key here; did you mean budget?"),
        ("sink/format", "memory", '"memory" is lost when the run ends'),
        ("sink/mode", "update", "'update' is not known; use 'append'"),
        ("sink/mode", "overwrite", "'overwrite' is for batches"),
        ("sink/path", None, "missing; parquet needs one"),
        ("sink/partition_by", "k", "expected a list like"),
        ("trigger/processing_time", "soon", "'soon' is not a duration"),
        ("trigger/once", True, "not a key here; the keys here are available_now, processing_time"),
        ("spark/conf", {"a": [1]}, "a: expected a string, a number, or true or false"),
        ("spark/mastr", "local", "not a key here; did you mean master?"),
    ],
)
def test_a_problem_is_reported_under_its_key(
    tmp_path: Path, key: str, value: object, message: str | None
) -> None:
    found = refused(tmp_path, {key: value})
    if message is None:  # a table replaces format and path, which are reported instead
        assert [line.split(": ")[0] for line in found] == ["left.format", "left.path"]
        return
    assert len(found) == 1
    assert found[0].startswith(f"{key.replace('/', '.')}: ")
    assert message in found[0]


@pytest.mark.parametrize(
    ("changes", "messages"),
    [
        ({"join/time": None}, ["left.time: missing", "right.time: missing"]),
        ({"join/lateness": None}, ["left.lateness: missing", "right.lateness: missing"]),
        (
            {"join/budget": -1, "join/how": "x"},
            ["join.budget: a budget of -1", "join.how: how='x' is not supported"],
        ),
        (
            {"left/select": ["k", 3, ""], "right/tabel": 1, "join/budget": 0, "sink": 5, "streaming": 1},
            [
                "left.select[1]: expected a string, got 3",
                "left.select[2]: must not be empty",
                "right.tabel: not a key here; did you mean table?",
                "join.budget: a budget of 0 rows",
                "sink: expected a table, got 5",
                "streaming: expected true or false, got 1",
            ],
        ),
        (
            {"join/condition": "<", "join/on": ["a", "b"]},
            ["join.on: the condition '<' compares one column"],
        ),
        ({"join/condition": "<", "join/buckets": 2}, ["join.buckets: buckets=2 needs by="]),
        ({"spark/master": "local", "spark/remote": "sc://h"}, ["spark.remote: conflicts with spark.master"]),
        (
            {"trigger/available_now": True, "trigger/processing_time": "1 s"},
            ["trigger.processing_time: conflicts with trigger.available_now"],
        ),
        ({"left": {"format": "rate", "path": "x"}}, ["left.path: rate takes no path"]),
        ({"left": {"format": "rate", "schema": "k INT"}}, ["left.schema: rate has a schema of its own"]),
        ({"left": {"format": "rate"}, "streaming": False}, ["left.format: rate is a stream only"]),
        (
            {"left": {"format": "socket"}},
            ["left.options: socket needs host", "left.options: socket needs port"],
        ),
        (
            {"left": {"format": "kafka"}},
            [
                "left.options: kafka needs kafka.bootstrap.servers",
                "left.options: kafka needs one of subscribe",
            ],
        ),
        (
            {"sink": {"format": "kafka", "options": {"kafka.bootstrap.servers": "h:1"}}},
            ["sink.select: missing; kafka writes a column value"],
        ),
    ],
)
def test_all_problems_are_reported_at_once(
    tmp_path: Path, changes: dict[str, object], messages: list[str]
) -> None:
    found = refused(tmp_path, changes)
    assert len(found) == len(messages)
    assert all(line.startswith(message) for line, message in zip(found, messages, strict=True))


@pytest.mark.parametrize(
    "changes",
    [
        {"streaming": False, "checkpoint": None, "join/lateness": None, "left/schema": None},
        {"sink": {"format": "console"}, "checkpoint": None},
        {"left": {"format": "com.example.Source"}},
        {"left": {"format": "delta", "path": "x"}},
        {"left/schema": None, "spark/conf": {"spark.sql.streaming.schemaInference": True}},
        {"left": {"format": "text", "path": "x", "select": ["cast(value as timestamp) as t", "1 as k"]}},
        {"left": {"format": "kafka", "options": {"kafka": {"bootstrap.servers": "h:1"}, "subscribe": "a"}}},
        {"join/budget": None},
    ],
)
def test_valid_variants_load(tmp_path: Path, changes: dict[str, object]) -> None:
    loaded = pipeline.load(write(tmp_path, changes))
    assert loaded.streaming == changes.get("streaming", True)


@pytest.mark.parametrize(
    ("changes", "key"),
    [
        ({"left/where": "reflect('java.lang.System', 'exit', 1) = 'a'"}, "left.where"),
        ({"right/select": ["k", "u", "`Reflect`('a') AS b"]}, "right.select[2]"),
        ({"join/where": "l.k > 0 AND reflect(r.k) = 'a'"}, "join.where"),
        ({"sink/select": ["k", "reflect('a')"]}, "sink.select[1]"),
        ({"join/importance": {"kind": "expression", "sql": "reflect('a')"}}, "join.importance"),
        (
            {
                "join/importance": [
                    {"kind": "expression", "sql": "k"},
                    {"kind": "expression", "sql": "reflect('a')"},
                ]
            },
            "join.importance",
        ),
    ],
)
def test_no_expression_has_effects_outside_of_the_rows(
    tmp_path: Path, changes: dict[str, object], key: str
) -> None:
    (note,) = refused(tmp_path, changes)
    assert note.startswith(f"{key}: reflect may not be called in a pipeline file: it runs code outside")


def test_a_condition_nested_too_deep_is_refused(tmp_path: Path) -> None:
    (note,) = refused(tmp_path, {"join/where": "NOT " * 9_000 + "l.k > 0"})
    assert note.startswith("join.where: where='NOT NOT ")
    assert note.endswith("is nested too deep to be parsed; simplify it")


def test_a_file_that_is_not_toml_is_refused(tmp_path: Path) -> None:
    path = write(tmp_path, {}, extra="a = = 1\n")
    with pytest.raises(InputError, match=r"p\.toml: not TOML: .*line"):
        pipeline.load(path)
    with pytest.raises(InputError, match=r"none\.toml: cannot be read: No such file"):
        pipeline.load(tmp_path / "none.toml")


def test_hostile_files_are_refused_soon_and_in_a_few_lines(tmp_path: Path) -> None:
    path = tmp_path / "p.toml"
    for data, message in [
        (b"a" * (1 << 20) + b"a", "is larger than 1 MiB"),
        (b"a = \xff", "not TOML: .*save it as UTF-8"),
        (b"a = " + b"[" * 50_000, "line 1: nested more than 64 deep"),
        (b".".join([b"a"] * 50_000) + b" = 1", "line 1: a key of more than 64 parts"),
        (b"\n".join(b"k%d = 1" % i for i in range(9_000)), r"p.toml: and 8,984 more problems"),
        (
            b"left.select = [" + b"1," * 500_000 + b"]",
            r"left\.select: has 500,000 entries; give at most 10,000",
        ),
        (b"sink.format = 7\nsink.mode = '" + b"x" * 900_000 + b"'\n", r"sink\.mode: .*xxx\.\.\."),
    ]:
        path.write_bytes(data)
        with pytest.raises(InputError, match=message) as raised:
            pipeline.load(path)
        assert len(str(raised.value)) < 20_000


def test_check_looks_for_input_paths_where_spark_sees_them(tmp_path: Path) -> None:
    path = write(tmp_path, {})
    with pytest.raises(InputError, match=r"left\.path: .*/l does not exist; a relative path starts from"):
        pipeline.check(path)
    (tmp_path / "l").mkdir()
    (tmp_path / "r").touch()
    with pytest.raises(InputError, match=r"right\.path: .*/r is a file; a stream of files reads a folder"):
        pipeline.check(path)
    pipeline.check(write(tmp_path, {"right/path": "r*"}))
    pipeline.check(write(tmp_path, {"spark/master": "spark://host:7077"}))


def test_examples_are_valid() -> None:
    for path in sorted(EXAMPLES.glob("*.toml")):
        assert pipeline.check(path).file == path


@pytest.mark.parametrize(
    ("text", "cause"),
    [
        (
            (
                "[STREAM_FAILED] Query [id = a, runId = b] terminated with exception: "
                "Job aborted due to stage failure: Task 0 in stage 1.0 failed 1 times, most recent failure: "
                "Lost task 0.0 in stage 1.0 (TID 2) (host executor driver): "
                "org.apache.spark.api.python.PythonException: Traceback (most recent call last):\n"
                '  File "worker.py", line 1, in main\n    process()\n'
                "tidegate.InputError: the checkpoint has 2 buckets\nand the query 5\n\n"
                "\tat org.apache.spark.api.python.BasePythonRunner.x(PythonRunner.scala:1)\nDriver stacktrace:"
            ),
            "the checkpoint has 2 buckets\nand the query 5",
        ),
        (
            (
                "An error occurred while calling o1.load.\n: java.lang.RuntimeException: no\n\tat a.b(C.java:1)\n"
                "Caused by: java.io.IOException: disk full\n\tat d.e(F.java:2)\n\t... 14 more\n"
            ),
            "IOException: disk full",
        ),
        (
            "[X] Cannot resolve `a`. SQLSTATE: 42703; line 1 pos 0;\n'Project ['a]\n+- Y",
            "[X] Cannot resolve `a`.",
        ),
        (
            (
                "Job aborted due to stage failure: Task 0 in stage 2.0 failed 1 times, most recent failure: Lost "
                "task 0.0 in stage 2.0 (TID 1) (host executor driver): org.apache.spark.SparkException: Python "
                "worker exited unexpectedly (crashed). Consider setting 'spark.python.worker.faulthandler.enabled'\n"
                "\tat a.b(C.scala:1)\nCaused by: java.io.IOException: Broken pipe\n\tat d.e(F.java:2)\n"
            ),
            "a Python worker of Spark was killed, most likely because memory ran out (see `dmesg`), or it crashed",
        ),
        (
            (
                "[STREAM_FAILED] Query [id = a, runId = b] terminated with exception: Job aborted due to stage "
                "failure: Lost task 0.0 (host): org.apache.spark.SparkException: [CANNOT_LOAD_STATE_STORE.X] x\n"
                "\tat a.b(C.scala:1)\nCaused by: java.io.EOFException: Stream ended prematurely\n\tat d.e(F.java:2)\n"
            ),
            "the state in the checkpoint cannot be read: EOFException: Stream ended prematurely",
        ),
        ("", "ValueError"),
    ],
)
def test_root_cause_is_a_few_lines(text: str, cause: str) -> None:
    assert root_cause(ValueError(text)) == cause


@pytest.mark.spark
def test_example_runs_and_equals_spark_s_own_join(spark: SparkSession, tmp_path: Path) -> None:
    shutil.copytree(EXAMPLES, tmp_path / "examples")
    printed = io.StringIO()
    path = tmp_path / "examples" / "auctions.toml"
    policy = 'policy = "until_expiry"\n'
    importance = 'importance = ["reserve", { kind = "expression", sql = "price * 2" }]\ncombine = "sum"\n'
    path.write_text(path.read_text().replace(policy, policy + importance))
    outcome = pipeline.run(path, spark=spark, console=Console(file=printed, width=200))

    loaded = pipeline.load(path)
    auctions, bids = (
        spark.read.csv(str(side.path), schema=str(side.ddl), header=True)
        for side in (loaded.left, loaded.right)
    )
    exact = auctions.join(bids, "auction").where(
        (F.col("placed_at") - F.col("opened_at")).between(
            F.expr("INTERVAL '0' SECOND"), F.expr("INTERVAL '2' MINUTE")
        )
        & (F.col("price") >= F.col("reserve"))
    )
    written = spark.read.parquet(str(loaded.sink.path))
    assert sorted(written.collect()) == sorted(exact.select(*written.columns).collect())
    assert (outcome.batches, outcome.rows, outcome.results) == (1, 1222, written.count())
    assert f"-> {tmp_path}/build/auctions/results" in printed.getvalue()
    counts = tg.inspect(loaded.checkpoint or "", "counts", spark=spark).collect()
    assert sum(row.importance for row in counts) == sum(
        row.reserve + 2 * row.price for row in written.collect()
    )


class TestImportance:
    @pytest.mark.parametrize(
        ("written", "meant"),
        [
            ("price", importance.Column("price")),
            (2, importance.Source(2, 2)),
            (["price", 1.5], importance.Sides("price", 1.5)),
            (
                {"kind": "categories", "column": "k", "values": [[1, 5], [2, 3]], "default": 1},
                importance.Categories("k", {1: 5, 2: 3}, default=1),
            ),
            (
                {
                    "kind": "combined",
                    "how": "sum",
                    "definitions": ["a", {"kind": "expression", "sql": "b * 2"}],
                },
                importance.Combined("sum", ["a", importance.Expression("b * 2")]),
            ),
        ],
    )
    def test_written(self, tmp_path: Path, written: object, meant: importance.Definition) -> None:
        joining = pipeline.load(write(tmp_path, {"join/importance": written, "join/combine": "sum"})).join
        assert (joining.importance, joining.combine) == (meant, "sum")

    def test_paths_start_from_the_folder_of_the_file(self, tmp_path: Path) -> None:
        topics = {"kind": "file", "path": "topics.csv", "column": "topic"}
        elsewhere = {"kind": "file", "path": "s3://bucket/prices.json"}
        loaded = pipeline.load(write(tmp_path, {"join/importance": [topics, elsewhere]}))
        assert loaded.join.importance == importance.Sides(
            importance.DefinitionFile(tmp_path / "topics.csv", column="topic"),
            importance.DefinitionFile("s3://bucket/prices.json"),
        )

    @pytest.mark.parametrize(
        ("changes", "note"),
        [
            (
                {"join/importance": {"kind": "categorie"}},
                "join.importance: importance of kind 'categorie' is not known",
            ),
            (
                {"join/importance": {"kind": "column", "nam": "x"}},
                "join.importance: importance of kind 'column' has no",
            ),
            ({"join/importance": -1}, "join.importance: the importance of the left is -1"),
            ({"join/importance": True}, "join.importance: importance True is not a definition"),
            ({"join/combine": "average"}, "join.combine: 'average' is not known"),
        ],
    )
    def test_refused(self, tmp_path: Path, changes: dict[str, object], note: str) -> None:
        [found] = refused(tmp_path, changes)
        assert found.startswith(note)

    @pytest.mark.parametrize(
        ("written", "policy"),
        [
            ("importance", Importance()),
            ("ijoin", IJoin()),
            (
                {"name": "ijoin", "immature": "arrival", "penalty_rate": 2},
                IJoin(immature="arrival", penalty_rate=2),
            ),
            ({"name": "size", "counts": "matches"}, Size(counts="matches")),
            ({"name": "prob", "rates": [1, 2.5]}, Prob(rates=(1, 2.5))),
        ],
    )
    def test_policies_load_with_their_settings(self, tmp_path: Path, written: object, policy: Policy) -> None:
        assert pipeline.load(write(tmp_path, {"join/policy": written})).join.policy == policy

    def test_a_policy_that_needs_it_is_refused_without(self, tmp_path: Path) -> None:
        class ByWorth(Fifo):
            name = "by_worth"
            needs = frozenset({"importance"})

        try:
            [found] = refused(tmp_path, {"join/policy": "by_worth"})
            assert found.startswith("join.importance: policy 'by_worth' needs the importance of rows")
            pipeline.load(write(tmp_path, {"join/policy": "by_worth", "join/importance": 1}))
        finally:
            del ByWorth.name


class KillsWorker(Fifo):
    """Kills its process, as the system does when memory runs out. It has no name of its own, so it is not listed."""

    def scores(self, rows: Rows, now: Time) -> Array:
        os.kill(os.getpid(), signal.SIGKILL)
        return rows.id


def failed(loaded: pipeline.Pipeline, spark: SparkSession) -> str:
    with pytest.raises(pipeline.QueryFailedError) as caught:
        pipeline.run(loaded, spark=spark, console=Console(file=io.StringIO()))
    return str(caught.value)


def test_the_handler_of_spark_does_not_replace_that_of_the_interrupt(monkeypatch: pytest.MonkeyPatch) -> None:
    class Session:
        def stop(self) -> None:
            pass

    def start(*_: object) -> Session:
        signal.signal(signal.SIGINT, lambda *_: None)
        return Session()

    running = sys.modules[pipeline.run.__module__]  # the function hides its module
    usual, found = signal.getsignal(signal.SIGINT), list[object]()
    monkeypatch.setattr(running, "_session", start)
    monkeypatch.setattr(running, "_run", lambda *_: found.append(signal.getsignal(signal.SIGINT)))
    try:
        pipeline.run(EXAMPLES / "auctions.toml", console=Console(file=io.StringIO()))
    finally:
        after = signal.signal(signal.SIGINT, usual)
    assert found == [usual]
    assert after == usual


@pytest.mark.spark
def test_a_killed_worker_and_a_damaged_checkpoint_are_reported_in_a_few_lines(
    spark: SparkSession, tmp_path: Path
) -> None:
    shutil.copytree(EXAMPLES, tmp_path / "examples")
    loaded = pipeline.load(tmp_path / "examples" / "auctions.toml")
    killed = loaded.model_copy(update={"join": loaded.join.model_copy(update={"policy": KillsWorker()})})
    message = failed(killed, spark)
    assert "a Python worker of Spark was killed" in message
    assert f"the same checkpointLocation: it continues from {loaded.checkpoint!r}" in message
    assert len(message.splitlines()) == 3
    pipeline.run(loaded, spark=spark, console=Console(file=io.StringIO()))
    state = Path(str(loaded.checkpoint)) / "state"
    damaged = [*state.rglob("*.changelog"), *state.rglob("*.zip"), *state.rglob("*.crc")]
    for path in damaged:
        path.unlink()
    assert damaged
    for folder in (loaded.left.path, loaded.right.path):
        for path in Path(str(folder)).glob("*.csv"):
            shutil.copy(path, path.with_name(f"again-{path.name}"))
    with pytest.raises(InputError, match=r"cannot be read.*restore the checkpoint") as refused_before_start:
        pipeline.run(loaded, spark=spark, console=Console(file=io.StringIO()))
    assert len(str(refused_before_start.value).splitlines()) == 1
