"""The contract of a generator: a trace from a number of rows and a seed."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tidegate.streams.trace import Trace


class Stream(ABC):
    """A generator of a stream: a frozen dataclass of its parameters."""

    @abstractmethod
    def trace(self, rows: int, seed: int = 0) -> Trace:
        """Generate the first `rows` rows; the same seed gives the same rows on any machine."""


class Pair(Stream):
    """A left stream, and the right stream that it is joined to."""

    def trace(self, rows: int, seed: int = 0) -> Trace:
        """The first `rows` rows of the left."""
        return self.both(rows, seed)[0]

    @abstractmethod
    def both(self, rows: int, seed: int = 0) -> tuple[Trace, Trace]:
        """The first `rows` rows of the left, and the right rows of the same time, each in order of time."""
