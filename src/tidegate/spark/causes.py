"""What went wrong, in a few lines instead of a stack of the JVM."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator
from typing import Final

from pyspark.logger import PySparkLogger

_LINES: Final = 5
_STACK: Final = re.compile(r"^\s*(at |\.\.\. \d+ more|Driver stacktrace|JVM stacktrace|SQLSTATE)")
_RAISED: Final = re.compile(r"^[A-Za-z_][\w.]*(?:Error|Exception|Interrupt|Iteration)\b(?:: .*)?$")
_CAUSED: Final = re.compile(r"^Caused by: (?:[\w$]+\.)*([\w$]+)(?:: (.*))?$")
_THROWN: Final = re.compile(r"^(?:[\w$]+\.)+[\w$]*(?:Exception|Error): ")
_CALL: Final = re.compile(r"^An error occurred while calling \S+\s+: ")
_QUERY: Final = re.compile(r"^\[STREAM_FAILED\] Query \[.*?\] terminated with exception: ", re.DOTALL)
_TASK: Final = re.compile(r"Job aborted due to stage failure: .*?Lost task [^:]*: ", re.DOTALL)
UNREADABLE: Final = "the state in the checkpoint cannot be read"
_DIED: Final = (
    "a Python worker of Spark's was killed, most likely because memory ran out (see `dmesg`), or it crashed"
)
_PLAN: Final = re.compile(
    r";?\s*(?:line \d+,? pos \d+;?)?\s*SQLSTATE: \w+.*|; line \d+ pos \d+;?.*$", re.DOTALL
)


class QueryFailedError(RuntimeError):
    """The query began and failed; the message is Spark's root cause."""


@contextlib.contextmanager
def hushed() -> Iterator[None]:
    """Keep PySpark from printing the stack of an error that is told here in a line."""
    logger = PySparkLogger.getLogger("SQLQueryContextLogger")
    old, logger.disabled = logger.disabled, True
    try:
        yield
    finally:
        logger.disabled = old


def worker_died(error: BaseException) -> bool:
    """Whether a Python worker ended without a message: killed, most often by the system because memory ran out."""
    return "Python worker exited unexpectedly" in str(error)


def state_unreadable(error: BaseException) -> bool:
    """Whether Spark could not read the state in a checkpoint."""
    return "CANNOT_LOAD_STATE_STORE" in str(error) or "Failed to load state store" in str(error)


def remedy(error: BaseException, checkpoint: str | None) -> str:
    """What to do about a streaming query that failed, as the end of a message; nothing where that is not known."""
    if worker_died(error):
        again = (
            f"run it again: it goes on from {checkpoint}"
            if checkpoint
            else "it has no checkpoint to go on from"
        )
        return f"; {again}; if it is killed again, lower the budget, or give it more memory or fewer cores"
    if state_unreadable(error):
        return f"; restore the checkpoint {checkpoint or ''} from a copy, or start with a new one".replace(
            "  ", " "
        )
    return ""


def root_cause(error: BaseException) -> str:
    """The innermost cause of an error that came from Spark.

    An error raised by Python in a worker counts for more than the errors of the JVM that followed from it; of
    those, the last "Caused by" does.

    Examples
    --------
    >>> root_cause(ValueError("[STREAM_FAILED] Query [id = 1, runId = 2] terminated with exception: no room"))
    'no room'
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
    if worker_died(error) and not _python(lines):
        return _DIED
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
    told = [tail[end]]
    for line in tail[end + 1 :]:
        if not line.strip() or _STACK.match(line):
            break
        told.append(line)
    told[0] = told[0].removeprefix("tidegate.types.InputError: ")
    return told


def _caused(lines: list[str]) -> list[str]:
    found = [match for line in lines if (match := _CAUSED.match(line))]
    return [": ".join(part for part in found[-1].groups() if part)] if found else []


def _first(text: str) -> list[str]:
    """The message itself, without where in a plan or a stack it arose."""
    plain = _THROWN.sub("", _PLAN.sub("", _TASK.sub("", text)))
    return [line for line in plain.splitlines() if line.strip() and not _STACK.match(line)]
