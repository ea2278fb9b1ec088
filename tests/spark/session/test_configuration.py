"""The number of partitions of a session, and the warning about a stream with too many."""

from __future__ import annotations

import logging
import subprocess
import sys
import warnings
from typing import TYPE_CHECKING, Any

import pytest

import tidegate as tg
from tests.spark.streams import conf
from tidegate.spark.session import configuration as session
from tidegate.spark.session.configuration import PARTITIONS

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

BYTES = "spark.sql.execution.arrow.maxBytesPerBatch"


class FakeConf(dict[str, str]):
    """Settings as Spark has them: with a second argument, its default replaces Spark's own."""

    def get(self, name: str, *default: str | None) -> str | None:  # type: ignore[override]
        if name in self or default:
            return super().get(name, *default)
        return {PARTITIONS: "200"}[name]

    def set(self, name: str, value: str) -> None:
        self[name] = value


class FakeSession:
    """A session of any kind of Spark: with `context` a classic one, with `job` one of Connect."""

    def __init__(
        self, settings: dict[str, str], *, context: int | None = None, job: int | None = None
    ) -> None:
        self.conf = FakeConf(settings)
        self.job = job
        if context is not None:
            self.sparkContext = type(
                "Context", (), {"defaultParallelism": context, "pythonExec": sys.executable}
            )()

    def range(self, end: int) -> FakeSession:
        assert self.job is not None, "a job was run"
        self.end = end
        return self

    def selectExpr(self, expression: str) -> FakeSession:  # noqa: N802 - Spark's name
        assert expression == "spark_partition_id() AS partition"
        return self

    def collect(self) -> list[object]:
        assert self.job is not None
        # As Spark divides a range: partition i has the rows from i * end // job on.
        ids = [
            i
            for i in range(self.job)
            for _ in range(i * self.end // self.job, (i + 1) * self.end // self.job)
        ]
        return [type("Row", (), {"partition": i})() for i in ids]


@pytest.mark.parametrize(
    ("settings", "kinds", "chosen"),
    [
        ({"spark.master": "local"}, {"context": 1}, 1),
        ({"spark.master": "local[3]"}, {"context": 3}, 3),
        ({"spark.master": "local[3, 2]"}, {}, 3),
        ({"spark.master": "local[*]"}, {"context": 12}, 12),
        ({"spark.master": "local[*]"}, {"job": 6}, 6),
        ({"spark.master": "local[96]"}, {"context": 96}, 64),
        ({"spark.master": "yarn"}, {"context": 2}, 8),
        ({"spark.master": "yarn"}, {"context": 24}, 24),
        ({"spark.master": "yarn"}, {"job": 24}, 24),
        ({"spark.master": "yarn"}, {"job": 1000}, 64),
        ({"spark.master": "local-cluster[2,1,1024]"}, {"context": 2}, 8),
        ({}, {"job": 16}, 16),
        (
            {"spark.master": "k8s://x", "spark.executor.instances": "5", "spark.executor.cores": "4"},
            {"context": 2},
            20,
        ),
    ],
    ids=str,
)
def test_partitions_follow_the_cores(settings: dict[str, str], kinds: dict[str, int], chosen: int) -> None:
    spark = FakeSession(settings, **kinds)
    assert tg.configure(spark) is spark  # type: ignore[type-var]
    assert spark.conf[PARTITIONS] == str(chosen)


@pytest.mark.parametrize("number", ["1", "200", "500"])
def test_a_number_that_is_set_is_kept(number: str, caplog: pytest.LogCaptureFixture) -> None:
    spark = FakeSession({"spark.master": "local[2]", PARTITIONS: number})
    with caplog.at_level(logging.INFO, "tidegate"):
        tg.configure(spark)  # type: ignore[type-var]
    assert spark.conf[PARTITIONS] == number
    assert not caplog.records
    tg.configure(spark, partitions=7)  # type: ignore[type-var]
    assert spark.conf[PARTITIONS] == "7"


@pytest.mark.parametrize(("given", "used"), [({}, "16m"), ({BYTES: "2147483647"}, "2147483647")])
def test_a_limit_of_bytes_that_is_set_is_kept(given: dict[str, str], used: str) -> None:
    spark = FakeSession({"spark.master": "local[2]"} | given)
    tg.configure(spark)  # type: ignore[type-var]
    assert spark.conf[BYTES] == used


def test_the_choice_is_logged_once(caplog: pytest.LogCaptureFixture) -> None:
    spark = FakeSession({"spark.master": "local[3]"})
    with caplog.at_level(logging.INFO, "tidegate"):
        tg.configure(tg.configure(spark))  # type: ignore[type-var]
    [record] = caplog.records
    assert record.levelno == logging.INFO
    for word in (PARTITIONS, "is now 3", "3 cores", "200", "partitions=..."):
        assert word in record.getMessage()


def test_the_choice_is_printed_without_logging() -> None:
    program = "from tidegate.spark.session.configuration import _report; _report('8 partitions')"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)  # noqa: S603
    assert done.stderr == "8 partitions\n"


@pytest.mark.parametrize(
    ("partitions", "buckets", "master", "words"),
    [
        (200, 64, "yarn", ["200 partitions", "64 buckets", "partitions=64"]),
        (200, 64, "local[2]", ["200 partitions", "64 buckets", "partitions=2"]),
        (9, 9, "local[2]", ["9 partitions", "2 cores", "partitions=2"]),
        (4, 1, "local[4]", ["4 partitions", "1 buckets", "partitions=1"]),
        (8, 8, "local[2]", []),
        (64, 64, "yarn", []),
        (2, 1, "local[2]", []),
        (2, 64, "local[2]", []),
    ],
)
def test_too_many_partitions(partitions: int, buckets: int, master: str, words: list[str]) -> None:
    spark = FakeSession({"spark.master": master, PARTITIONS: str(partitions)})
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        session.warn_about_partitions(spark, buckets, stacklevel=1)  # type: ignore[arg-type]
    assert len(caught) == bool(words)
    for word in words:
        assert word in str(caught[0].message)
    assert all(warning.filename == __file__ for warning in caught)


@pytest.fixture
def unset(spark: SparkSession) -> SparkSession:
    """A session without a number of partitions."""
    new = spark.newSession()
    assert new.conf.get(PARTITIONS) == "200"
    return new


@pytest.mark.spark
def test_a_real_session(unset: SparkSession) -> None:
    assert tg.configure(unset).conf.get(PARTITIONS) == "2"
    unset.conf.set(PARTITIONS, "200")
    assert tg.configure(unset).conf.get(PARTITIONS) == "200"


def _streams(spark: SparkSession) -> tuple[DataFrame, DataFrame]:
    rate = spark.readStream.format("rate").load().withWatermark("timestamp", "1 minute")
    return rate.selectExpr("value AS k", "timestamp AS t", "1.0 AS a"), rate.selectExpr(
        "value AS k", "timestamp AS t", "2.0 AS b"
    )


@pytest.mark.spark
@pytest.mark.parametrize("what", ["join", "sample", "alert"])
def test_every_stateful_query_warns(spark: SparkSession, what: str) -> None:
    left, right = _streams(spark)
    options: dict[str, Any] = {"on": "k", "time": "t"}
    joined: dict[str, Any] = {"window": ("10 s", "0 s"), "budget": 1000}
    with conf(spark, spark__sql__shuffle__partitions="200"), warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        if what == "alert":
            tg.alert({"a": left, "b": right}, within="10 seconds", when="a - b > 1", **options)
        else:
            getattr(tg, what)(left, right, **options, **joined)
    found = [warning for warning in caught if "200 partitions for 64 buckets" in str(warning.message)]
    assert [warning.filename for warning in found] == [__file__]
