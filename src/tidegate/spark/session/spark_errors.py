"""Errors of Spark in a few plain lines instead of a Java stack trace."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Final

from pyspark.logger import PySparkLogger

if TYPE_CHECKING:
    from pyspark.sql.streaming.query import StreamingQuery

_LINES: Final = 5
_STACK: Final = re.compile(r"^\s*(at |\.\.\. \d+ more|Driver stacktrace|JVM stacktrace|SQLSTATE)")
_RAISED: Final = re.compile(r"^[A-Za-z_][\w.]*(?:Error|Exception|Interrupt|Iteration)\b(?:: .*)?$")
_CAUSED: Final = re.compile(r"^Caused by: (?:[\w$]+\.)*([\w$]+)(?:: (.*))?$")
_THROWN: Final = re.compile(r"^(?:[\w$]+\.)+[\w$]*(?:Exception|Error): ")
_CALL: Final = re.compile(r"^An error occurred while calling \S+\s+: ")
_QUERY: Final = re.compile(r"^\[STREAM_FAILED\] Query \[.*?\] terminated with exception: ", re.DOTALL)
_TASK: Final = re.compile(r"Job aborted due to stage failure: .*?Lost task [^:]*: ", re.DOTALL)
UNREADABLE: Final = "the state in the checkpoint cannot be read"
_WORKER_KILLED: Final = (
    "a Python worker of Spark's was killed, most likely because memory ran out (see `dmesg`), or it crashed"
)
_START_TIMED_OUT: Final = (
    "a Python process did not start within the 10 seconds that Spark allows, because the machine was too busy"
)
_PLAN: Final = re.compile(
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
    a Python worker of Spark's was killed, most likely because memory ran out (see `dmesg`), or it crashed
    start the query again with the same checkpointLocation: it goes on from '/checkpoints/bids'
    if that happens again, lower the budget, give the machine more memory, or run fewer tasks at once
    """
    error = failure if isinstance(failure, BaseException) else failure.exception()
    if error is None:
        return "the query has not failed"
    return "\n".join([root_cause(error), *remedies(error, checkpoint)])


def remedies(error: BaseException, checkpoint: str | Path | None) -> list[str]:
    """What to do about a query that failed, a line each; none where that is not known."""
    place = "" if checkpoint is None else f" {str(checkpoint)!r}"
    resume = "start the query again with the same checkpointLocation: it goes on from " + (
        place.strip() or "the last micro-batch that was completed"
    )
    if worker_killed(error):
        return [
            resume,
            "if that happens again, lower the budget, give the machine more memory, or run fewer tasks at once",
        ]
    if start_timed_out(error):
        return [resume, "if that happens again, run fewer programs or queries at once"]
    if state_unreadable(error):
        return [f"restore the checkpoint{place} from a copy, or start with a new one"]
    return []


@contextlib.contextmanager
def error_log_muted() -> Iterator[None]:
    """Keep PySpark from printing the stack trace of an error that is reported in a line."""
    logger = PySparkLogger.getLogger("SQLQueryContextLogger")
    old, logger.disabled = logger.disabled, True
    try:
        yield
    finally:
        logger.disabled = old


def worker_killed(error: BaseException) -> bool:
    """Whether a Python worker ended without a message: killed, most often by the system because memory ran out."""
    return "Python worker exited unexpectedly" in str(error)


def start_timed_out(error: BaseException) -> bool:
    """Whether a Python process did not start in time, so that starting the query again may succeed."""
    return "Python worker failed to connect back" in str(error)


def state_unreadable(error: BaseException) -> bool:
    """Whether Spark could not read the state in a checkpoint."""
    return "CANNOT_LOAD_STATE_STORE" in str(error) or "Failed to load state store" in str(error)


def root_cause(error: BaseException) -> str:
    """The innermost cause of an error that came from Spark.

    An error raised by Python in a worker counts for more than the errors of the JVM that followed from it; of
    those, the last "Caused by" does.

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
    text = _CALL.sub("", _QUERY.sub("", str(error).strip()))
    lines = text.splitlines()
    if worker_killed(error) and not _python(lines):
        return _WORKER_KILLED
    if start_timed_out(error) and not _python(lines):
        return _START_TIMED_OUT
    if state_unreadable(error):
        return f"{UNREADABLE}: {(_caused(lines) or _first(text))[0]}"
    found = _python(lines) or _caused(lines) or _first(text) or [type(error).__name__]
    return "\n".join(found[:_LINES])


def _python(lines: list[str]) -> list[str]:
    """What the last traceback of Python ends with."""
    starts = [i for i, line in enumerate(lines) if "Traceback (most recent call last)" in line]
    if not starts:
        return []
    tail = lines[starts[-1] + 1 :]
    end = next((i for i, line in enumerate(tail) if _RAISED.match(line)), None)
    if end is None:
        return []
    found = [tail[end]]
    for line in tail[end + 1 :]:
        if not line.strip() or _STACK.match(line):
            break
        found.append(line)
    found[0] = found[0].removeprefix("tidegate.types.InputError: ")
    return found


def _caused(lines: list[str]) -> list[str]:
    found = [match for line in lines if (match := _CAUSED.match(line))]
    return [": ".join(part for part in found[-1].groups() if part)] if found else []


def _first(text: str) -> list[str]:
    """The message itself, without where in a plan or a stack it arose."""
    plain = _THROWN.sub("", _PLAN.sub("", _TASK.sub("", text)))
    return [line for line in plain.splitlines() if line.strip() and not _STACK.match(line)]
