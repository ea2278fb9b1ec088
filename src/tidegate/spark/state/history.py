"""What a checkpoint's logs say about a query's micro-batches, to compare with its state.

Spark writes `offsets/N` before micro-batch N, and `commits/N` after it. Both have a watermark. If it is later after
the micro-batch than before, and the offsets are others than those of the previous one, rows arrived in it. Each
bucket takes part in a micro-batch in which rows arrive. So its state is not older than the last one of these.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from py4j.protocol import Py4JError  # type: ignore[import-untyped]

from tidegate.spark.state.checkpoint_files import CheckpointFiles, is_classic
from tidegate.types import InputError

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

_OFFSETS: Final = "offsets"
_COMMITS: Final = "commits"
_LONGEST_SEARCH: Final = 50
"""How many micro-batches are read at most, from the last one back."""


@dataclass(frozen=True)
class QueryHistory:
    """The completed micro-batches of a query.

    Parameters
    ----------
    last
        The last one.
    last_arrivals
        The last one in which rows certainly arrived; -1 if none is known.
    sources
        The number of the query's sources.
    """

    last: int
    last_arrivals: int
    sources: int


def read_history(checkpoint: str | Path, session: SparkSession) -> QueryHistory | None:
    """Read the logs of a checkpoint, and refuse damaged ones; None if no micro-batch is complete.

    Through Spark Connect, the driver's file systems cannot be read: None.
    """
    if not is_classic(session):
        return None
    log = _Log(str(checkpoint), session)
    commits, offsets = log.numbers(_COMMITS), log.numbers(_OFFSETS)
    planned = offsets[-1:] if offsets[-1:] > commits[-1:] else []
    for number in planned:
        log.offsets(number, completed=False)
    if not commits:
        return None
    sources = len(log.offsets(commits[-1]).sources)
    arrivals = next(_with_arrivals(log, commits[-_LONGEST_SEARCH:][::-1], set(offsets)), -1)
    return QueryHistory(commits[-1], arrivals, sources)


def _with_arrivals(log: _Log, commits: list[int], offsets: set[int]) -> Iterator[int]:
    """The micro-batches in which rows certainly arrived."""
    for number in commits:
        if {number, number - 1} <= offsets or number == 0:
            before = log.offsets(number)
            moved = log.next_watermark(number) > before.watermark
            if moved and (number == 0 or log.offsets(number - 1).sources != before.sources):
                yield number


@dataclass(frozen=True)
class _Offsets:
    """What Spark plans for a micro-batch: its watermark, and where each source ends."""

    watermark: int
    sources: tuple[str, ...]


class _Log:
    """The logs of a checkpoint in any file system that Spark reads."""

    def __init__(self, checkpoint: str, session: SparkSession) -> None:
        self._checkpoint, self._files = checkpoint, CheckpointFiles(checkpoint, session)

    def numbers(self, log: str) -> list[int]:
        """The micro-batches of a log, in order."""
        return self._files.numbers(log)

    def offsets(self, number: int, *, completed: bool = True) -> _Offsets:
        """What was planned for a micro-batch."""
        lines = self._lines(_OFFSETS, number, completed=completed)
        try:
            return _Offsets(int(json.loads(lines[1])["batchWatermarkMs"]), tuple(lines[2:]))
        except (IndexError, KeyError, TypeError, ValueError):
            raise self._damaged(_OFFSETS, number, completed=completed) from None

    def next_watermark(self, number: int) -> int:
        """The watermark after a micro-batch."""
        lines = self._lines(_COMMITS, number, completed=True)
        try:
            return int(json.loads(lines[1]).get("nextBatchWatermarkMs", 0))
        except (IndexError, AttributeError, TypeError, ValueError):
            raise self._damaged(_COMMITS, number, completed=True) from None

    def _lines(self, log: str, number: int, *, completed: bool) -> list[str]:
        try:
            lines = self._files.read(f"{log}/{number}").decode().splitlines()
        except (Py4JError, UnicodeDecodeError):
            raise self._damaged(log, number, completed=completed) from None
        if not lines or not lines[0].startswith("v"):
            raise self._damaged(log, number, completed=completed)
        return lines

    def _damaged(self, log: str, number: int, *, completed: bool) -> InputError:
        remedy = "restore the checkpoint from a copy, or start with a new checkpointLocation"
        if not completed:
            own = f"{log}/{number} and {log}/.{number}.crc"
            remedy = f"delete {own}, since this micro-batch was not completed, or {remedy}"
        return InputError(
            f"the checkpoint {self._checkpoint!r} is damaged: {log}/{number} is not what Spark wrote there; {remedy}"
        )
