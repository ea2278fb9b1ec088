"""Explain errors of Spark in a few lines instead of a Java stack trace."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Final

from pyspark.logger import PySparkLogger

from tidegate.spark.session.worker_python import explain_worker_python

if TYPE_CHECKING:
    from pyspark.sql.streaming.query import StreamingQuery

_MAX_LINES: Final = 5
_STACK: Final = re.compile(r"^\s*(at |\.\.\. \d+ more|Driver stacktrace|JVM stacktrace|SQLSTATE)")
_PYTHON_ERROR: Final = re.compile(r"^[A-Za-z_][\w.]*(?:Error|Exception|Interrupt|Iteration)\b(?:: .*)?$")
_OWN_ERROR: Final = re.compile(r"^tidegate\.[\w.]+Error: ")
_CAUSED_BY: Final = re.compile(r"^Caused by: (?:[\w$]+\.)*([\w$]+)(?:: (.*))?$")
_JAVA_CLASS: Final = re.compile(r"^(?:[\w$]+\.)+[\w$]*(?:Exception|Error): ")
_PY4J_PREFIX: Final = re.compile(r"^An error occurred while calling \S+\s+: ")
_STREAM_PREFIX: Final = re.compile(r"^\[STREAM_FAILED\] Query \[.*?\] terminated with exception: ", re.DOTALL)
_TASK_PREFIX: Final = re.compile(r"Job aborted due to stage failure: .*?Lost task [^:]*: ", re.DOTALL)
STATE_UNREADABLE: Final = "the state in the checkpoint cannot be read"
LOG_UNREADABLE: Final = "a log of the checkpoint (in offsets, commits, sources or metadata) cannot be read"
_ROCKSDB_DAMAGE: Final = re.compile(
    r"block checksum mismatch|Bad table magic number|truncated (?:block|record) read|file is too short"
    r"|While open a file for random read|Corruption: [^\n/]*"
)
"""What RocksDB says about a damaged file."""
_ROCKSDB_FILE: Final = re.compile(r"\d+\.(?:sst|log)|MANIFEST-\d+")
_DAMAGED_LOG: Final = re.compile(
    r"Input length = \d+|Unexpected (?:character|end-of-input)|Unrecognized token|\[MALFORMED_LOG_FILE\]"
    r"|Failed to read log file|Incomplete log file"
)
"""How the message begins if Spark cannot parse a file that it wrote itself; such errors come from the driver."""
_WORKER_KILLED: Final = (
    "a Python worker of Spark was killed, most likely because memory ran out (see `dmesg`), or it crashed"
)
_START_TIMED_OUT: Final = (
    "a Python process did not start within the 10 seconds that Spark allows, because the machine was too busy"
)
_PLAN_SUFFIX: Final = re.compile(
    r";?\s*(?:line \d+,? pos \d+;?)?\s*SQLSTATE: \w+.*|; line \d+ pos \d+;?.*$", re.DOTALL
)


class QueryFailedError(RuntimeError):
    """The query started and failed; the message has Spark's root cause."""


def explain_failure(failure: BaseException | StreamingQuery, checkpoint: str | Path | None = None) -> str:
    """Explain in a few plain lines why a query failed, and what to do.

    Parameters
    ----------
    failure
        The exception that `awaitTermination` or a batch action raised, or the streaming query itself.
    checkpoint
        The query's `checkpointLocation`, to name it in the text.

    Returns
    -------
    str
        The cause, then the remedy where one is known. The exception itself keeps Spark's whole report.

    Examples
    --------
    >>> error = RuntimeError("Lost task 0.0: Python worker exited unexpectedly (crashed)")
    >>> print(explain_failure(error, "/checkpoints/bids"))
    a Python worker of Spark was killed, most likely because memory ran out (see `dmesg`), or it crashed
    start the query again with the same checkpointLocation: it continues from '/checkpoints/bids'
    if that happens again, lower the budget, give the machine more memory, or run fewer tasks at once
    """
    error = failure if isinstance(failure, BaseException) else failure.exception()
    if error is None:
        return "the query has not failed"
    return "\n".join(explain_worker_python(str(error)) or [root_cause(error), *remedies(error, checkpoint)])


def remedies(error: BaseException, checkpoint: str | Path | None) -> list[str]:
    """Remedies for a query that failed, one per line; none if they are not known."""
    path = "" if checkpoint is None else f" {str(checkpoint)!r}"
    resume = "start the query again with the same checkpointLocation: it continues from " + (
        path.strip() or "the last micro-batch that was completed"
    )
    if worker_killed(error):
        return [
            resume,
            "if that happens again, lower the budget, give the machine more memory, or run fewer tasks at once",
        ]
    if start_timed_out(error):
        return [resume, "if that happens again, run fewer programs or queries at once"]
    restore = f"restore the checkpoint{path} from a copy, or start with a new one"
    if state_unreadable(error):
        return [restore]
    if log_unreadable(error):
        return [restore, "tidegate.join(..., checkpoint=...) names the damaged file of offsets or commits"]
    return []


@contextlib.contextmanager
def error_log_muted() -> Iterator[None]:
    """Prevent PySpark from printing the stack trace of an error that is explained."""
    logger = PySparkLogger.getLogger("SQLQueryContextLogger")
    old, logger.disabled = logger.disabled, True
    try:
        yield
    finally:
        logger.disabled = old


def worker_killed(error: BaseException) -> bool:
    """Whether a Python worker ended without a message, most often because memory ran out and the system killed it."""
    return "Python worker exited unexpectedly" in str(error)


def start_timed_out(error: BaseException) -> bool:
    """Whether a Python process did not start in time, so that starting the query again may succeed."""
    return "Python worker failed to connect back" in str(error)


def state_unreadable(error: BaseException) -> bool:
    """Whether Spark could not read the state in a checkpoint."""
    text = str(error)
    return (
        "CANNOT_LOAD_STATE_STORE" in text
        or "Failed to load state store" in text
        or _rocksdb_damage(text) is not None
    )


def log_unreadable(error: BaseException) -> bool:
    """Whether Spark could not read a log in a checkpoint."""
    text = str(error).strip()
    is_query = _STREAM_PREFIX.match(text) or "StreamMetadata" in text or "MetadataLog" in text
    return bool(is_query) and _DAMAGED_LOG.match(_message(text)) is not None


def _rocksdb_damage(text: str) -> str | None:
    """What RocksDB says about a damaged file, without the local path."""
    line = next((line for line in text.splitlines() if _ROCKSDB_DAMAGE.search(line)), None)
    if line is None or not ("StateStoreId" in text or "rocksdb" in text.lower()):
        return None
    found, file = _ROCKSDB_DAMAGE.search(line), _ROCKSDB_FILE.search(line)
    return f"RocksDB: {found[0] if found else ''}{f' in {file[0]}' if file else ''}"


def root_cause(error: BaseException) -> str:
    """The innermost cause of an error that came from Spark.

    An error that Python raised in a worker is returned in preference to the JVM's errors that followed from it.
    Among those, the last "Caused by" is returned.

    Examples
    --------
    >>> root_cause(ValueError("[STREAM_FAILED] Query [id = 1, runId = 2] terminated with exception: disk full"))
    'disk full'
    >>> print(root_cause(ValueError('''Job aborted due to stage failure: Task 0 failed; Lost task 0.0 (host): x
    ... Traceback (most recent call last):
    ...   File "a.py", line 1, in b
    ... ZeroDivisionError: division by zero
    ...
    ...     at org.apache.spark.api.python.Runner.run(Runner.scala:1)''')))
    ZeroDivisionError: division by zero
    """
    text = _message(str(error).strip())
    lines = text.splitlines()
    if worker_killed(error) and not _python_error(lines):
        return _WORKER_KILLED
    if start_timed_out(error) and not _python_error(lines):
        return _START_TIMED_OUT
    if state_unreadable(error):
        return (
            f"{STATE_UNREADABLE}: {_rocksdb_damage(text) or (_last_cause(lines) or _message_lines(text))[0]}"
        )
    if log_unreadable(error):
        return f"{LOG_UNREADABLE}: {_message_lines(text)[0]}"
    cause = _python_error(lines) or _last_cause(lines) or _message_lines(text) or [type(error).__name__]
    return "\n".join(cause[:_MAX_LINES])


def _message(text: str) -> str:
    """The text of an error from where Spark's own message begins."""
    return _JAVA_CLASS.sub("", _PY4J_PREFIX.sub("", _STREAM_PREFIX.sub("", text)))


def _python_error(lines: list[str]) -> list[str]:
    """The error at the end of the last Python traceback."""
    starts = [i for i, line in enumerate(lines) if "Traceback (most recent call last)" in line]
    if not starts:
        return []
    tail = lines[starts[-1] + 1 :]
    end = next((i for i, line in enumerate(tail) if _PYTHON_ERROR.match(line)), None)
    if end is None:
        return []
    message = [tail[end]]
    for line in tail[end + 1 :]:
        if not line.strip() or _STACK.match(line):
            break
        message.append(line)
    message[0] = _OWN_ERROR.sub("", message[0])
    return message


def _last_cause(lines: list[str]) -> list[str]:
    causes = [match for line in lines if (match := _CAUSED_BY.match(line))]
    return [": ".join(part for part in causes[-1].groups() if part)] if causes else []


def _message_lines(text: str) -> list[str]:
    """The message, without its place in a plan or a stack."""
    plain = _JAVA_CLASS.sub("", _PLAN_SUFFIX.sub("", _TASK_PREFIX.sub("", text)))
    return [line for line in plain.splitlines() if line.strip() and not _STACK.match(line)]
