"""The failure of a query is explained in a few lines, also if users start it themselves."""

from __future__ import annotations

import os
import signal
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest
from pyspark.errors import StreamingQueryException

import tidegate as tg
from tests.spark import streams
from tidegate.policies import Fifo
from tidegate.spark.session.spark_errors import start_timed_out

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

    from tidegate.types import Array, Rows, Time

TIMED_OUT = (
    "[STREAM_FAILED] Query [id = a, runId = b] terminated with exception: Python worker failed to connect back.\n"
    "\tat org.apache.spark.X.y(Z.scala:1)\nCaused by: java.net.SocketTimeoutException: Timed out while waiting for "
    "the Python worker to connect back\n\tat a.b(C.java:2)\n"
)


class KillsOwnWorker(Fifo):
    """Kills its process, as the system does when memory runs out. It has no name of its own, so it is not listed."""

    def scores(self, rows: Rows, now: Time) -> Array:
        os.kill(os.getpid(), signal.SIGKILL)
        return rows.id


def test_a_process_that_starts_too_late_is_recognised() -> None:
    error = ValueError(TIMED_OUT)
    assert start_timed_out(error)
    cause, *remedies = tg.explain_failure(error).splitlines()
    assert cause.startswith("a Python process did not start within the 10 seconds that Spark allows")
    assert remedies[0].startswith("start the query again with the same checkpointLocation")


def test_an_error_without_a_known_remedy_shows_its_cause() -> None:
    error = ValueError(
        "An error occurred while calling o1.load.\n: java.io.IOException: no\n\tat a.b(C.java:1)\n"
    )
    assert tg.explain_failure(error) == "no"


STREAM = "[STREAM_FAILED] Query [id = a, runId = b] terminated with exception: "


@pytest.mark.parametrize(
    ("text", "cause"),
    [
        (
            (
                f"{STREAM}Job aborted\nTraceback (most recent call last):\n  File 'a.py', line 1, in b\n"
                "pyspark.errors.exceptions.base.PySparkRuntimeError: Error getting value: block checksum mismatch: "
                "stored = 1, computed = 2, type = 4  in /tmp/x/StateStoreId(opId=0,partId=1)/000012.sst offset 9\n"
            ),
            "the state in the checkpoint cannot be read: RocksDB: block checksum mismatch in 000012.sst",
        ),
        (
            f"{STREAM}Bad table magic number: expected 9, found 0 in /tmp/StateStoreId(opId=0)/000008.sst\n",
            "the state in the checkpoint cannot be read: RocksDB: Bad table magic number in 000008.sst",
        ),
        *(
            (
                f"{STREAM}{message} SQLSTATE: XXKST\n=== Streaming Query ===\n",
                f"a log of the checkpoint (in offsets, commits, sources or metadata) cannot be read: {message}",
            )
            for message in (
                "Input length = 1",
                "Failed to read log file file:/cp/offsets/7. Incomplete log file",
                "Unexpected character ('n' (code 110)): was expecting double-quote to start field name",
                "[MALFORMED_LOG_FILE] Log file was malformed: failed to read correct log version from x.",
            )
        ),
        (
            (
                "An error occurred while calling o3286.start.\n: com.fasterxml.jackson.core.JsonParseException: "
                "Unrecognized token 'garbage': was expecting (JSON String)\n\tat a.StreamMetadata$.read(S.scala:6)\n"
            ),
            (
                "a log of the checkpoint (in offsets, commits, sources or metadata) cannot be read: "
                "Unrecognized token 'garbage': was expecting (JSON String)"
            ),
        ),
    ],
)
def test_a_damaged_checkpoint_is_explained(text: str, cause: str) -> None:
    found, remedy, *_ = tg.explain_failure(ValueError(text), "/cp").splitlines()
    assert found == cause
    assert remedy == "restore the checkpoint '/cp' from a copy, or start with a new one"


def test_an_error_of_the_user_is_not_blamed_on_the_checkpoint() -> None:
    text = (
        f"{STREAM}[FOREACH_BATCH_USER_FUNCTION_ERROR] Traceback (most recent call last):\n  File 'a.py', line 1\n"
        "ValueError: Unexpected character in my data\n"
    )
    assert tg.explain_failure(ValueError(text)) == "ValueError: Unexpected character in my data"


def table(rows: int) -> pa.Table:
    times = pa.array([streams.at(1000 * i) for i in range(rows)], pa.timestamp("us", "UTC"))
    return pa.table({"id": pa.array(range(rows), pa.int64()), "at": times})


@pytest.mark.spark
def test_a_killed_worker_is_explained_for_a_query_of_the_user(spark: SparkSession, tmp_path: Path) -> None:
    for side in ("left", "right"):
        streams.write(tmp_path / side, [table(20)])

    def join(policy: Fifo) -> DataFrame:
        left, right = (streams.read(spark, tmp_path / side, "at", "0 seconds") for side in ("left", "right"))
        window = ("1 minute", "1 minute")
        return tg.join(left, right, on="id", time="at", window=window, budget=10, policy=policy)

    def start(policy: Fifo) -> StreamingQuery:
        writer = join(policy).writeStream.format("parquet").option("path", str(tmp_path / "results"))
        writer = writer.option("checkpointLocation", str(tmp_path / "checkpoint"))
        return writer.trigger(availableNow=True).start()

    query = start(KillsOwnWorker())
    with pytest.raises(StreamingQueryException) as raised:
        query.awaitTermination()
    for failure in (raised.value, query):
        lines = tg.explain_failure(failure, tmp_path / "checkpoint").splitlines()
        assert lines[0].startswith("a Python worker of Spark was killed")
        assert f"it continues from {str(tmp_path / 'checkpoint')!r}" in lines[1]
        assert len(lines) == 3
        assert not any("org.apache" in line or "\tat " in line for line in lines)
    again = streams.run_to_end(lambda: start(Fifo()))
    assert spark.read.parquet(str(tmp_path / "results")).count() == 20
    assert tg.explain_failure(again) == "the query has not failed"
