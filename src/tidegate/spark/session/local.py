"""Spark sessions on this machine, for the command line, the demo, experiments and tests.

All of them use `LOCAL_SETTINGS`. Its time-outs are long because a busy machine is slow but not broken. With more
processes than cores, a Python worker may take many seconds to start, and the JVM may miss heartbeats.

One limit of Spark cannot be raised. Before a query with a stateful Python operator runs, Spark starts a Python
process next to the driver, which must connect within 10 seconds. (Workers of tasks are forked by Spark's daemon and
have 60 seconds.) If the machine is too busy for that, the query fails before it has read a row, and can be
started again: see `start_timed_out` in `spark_errors`.
"""

from __future__ import annotations

import contextlib
import logging
import os
import socket
import sys
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from pyspark.errors import PySparkException

from tidegate.spark.session.configuration import configure
from tidegate.spark.session.daemon import MODULE as DAEMON
from tidegate.spark.session.daemon import SETTING as DAEMON_SETTING
from tidegate.types import InputError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

LOCAL_SETTINGS: Final = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.sql.session.timeZone": "UTC",
    # Driver and executor are one process here: a missed heartbeat means that the machine is busy.
    "spark.network.timeout": "1800s",
    "spark.executor.heartbeatInterval": "120s",
    # How long a Python worker and the JVM wait for each other's password (15 seconds by default).
    "spark.python.authenticate.socketTimeout": "300s",
    "spark.sql.broadcastTimeout": "1800s",
    # Workers start with the join already imported.
    DAEMON_SETTING: DAEMON,
    # How long a task waits for the state that another thread uses (a minute by default).
    "spark.sql.streaming.stateStore.rocksdb.lockAcquireTimeoutMs": "1800000",
}
"""Settings of Spark for a session on this machine."""

SHORT_LIVED: Final = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
"""Java options for a session of a minute or two, where thorough compilation takes longer than it saves."""


def local_session(
    app: str,
    *,
    cores: int | None = None,
    memory: str = "2g",
    java: str = "",
    settings: Mapping[str, str] = MappingProxyType({}),
    log: Path | None = None,
) -> SparkSession:
    """Start a quiet Spark on this machine, configured for streaming joins.

    Parameters
    ----------
    app
        The name of the application.
    cores
        The number of cores; all by default. Spark starts up to two Python workers for each.
    memory
        The memory of Spark's Java process.
    java
        Options for it; `SHORT_LIVED` for a session of a minute or two.
    settings
        More settings of Spark, for this session.
    log
        File for Spark's log; none by default.
    """
    from pyspark.sql import SparkSession  # noqa: PLC0415 - starting a session is what needs it

    count = cores or os.cpu_count() or 1
    builder = SparkSession.builder.master(f"local[{count}]").appName(app)
    confs = LOCAL_SETTINGS | {
        "spark.driver.memory": memory,
        "spark.driver.extraJavaOptions": java,
        **settings,
    }
    for name, value in confs.items():
        builder = builder.config(name, value)
    spark = start_session(builder, log, local=True)
    spark.sparkContext.setLogLevel("ERROR" if log else "OFF")
    return configure(spark, partitions=count)


def start_session(builder: SparkSession.Builder, log: Path | None, *, local: bool) -> SparkSession:
    """Start Spark without its output on the terminal; if it does not start, the error has the reason and the remedy.

    Parameters
    ----------
    builder
        The session's master and settings.
    log
        File for Spark's log; None for no log.
    local
        Whether Spark runs on this machine only.
    """
    from tidegate.spark.session.java import explain_java, java_ended  # noqa: PLC0415 - for sessions only

    # Workers run the same Python as this process.
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    logging.getLogger("py4j").setLevel(logging.ERROR)
    if local:
        _replace_unknown_host_name()
    try:
        with output_redirected(log):
            return builder.getOrCreate()
    except (PySparkException, RuntimeError) as error:
        if not java_ended(error):
            raise
    # Its output was discarded, or is somewhere in the log: start it once more to read it.
    with tempfile.TemporaryDirectory(prefix="tidegate-") as folder:
        output = Path(folder) / "output"
        try:
            with output_redirected(output):
                return builder.getOrCreate()
        except (PySparkException, RuntimeError) as error:
            if not java_ended(error):
                raise
            raise InputError(explain_java(output.read_text(errors="replace"))) from None


def _replace_unknown_host_name() -> None:
    """Give Spark the address of this machine if its host name does not resolve, which is usual in containers.

    Otherwise Spark ends when it starts: it looks the name up before it reads `spark.driver.host`.
    """
    if {"SPARK_LOCAL_HOSTNAME", "SPARK_LOCAL_IP"} & os.environ.keys():
        return
    try:
        socket.gethostbyname(socket.gethostname())
    except OSError:
        os.environ["SPARK_LOCAL_IP"] = "127.0.0.1"


@contextlib.contextmanager
def output_redirected(log: Path | None) -> Iterator[None]:
    """Redirect the output of programs that are started to a file, or discard it; they keep it for their lifetime."""
    sys.stdout.flush()
    sys.stderr.flush()
    saved = [os.dup(stream) for stream in (1, 2)]
    target = os.open(log or os.devnull, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
    try:
        for stream in (1, 2):
            os.dup2(target, stream)
        yield
    finally:
        for stream, old in zip((1, 2), saved, strict=True):
            os.dup2(old, stream)
            os.close(old)
        os.close(target)
