"""The contract of every generator: rows and a seed in, a trace out."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tidegate.streams.trace import Trace


class Stream(ABC):
    """A stream that can be made at will. What the user writes is a frozen dataclass of its parameters."""

    @abstractmethod
    def trace(self, rows: int, seed: int = 0) -> Trace:
        """Make the first `rows` rows; the same seed makes the same rows, on any machine."""


class Pair(Stream):
    """A left stream that comes with the right stream it is joined to."""

    def trace(self, rows: int, seed: int = 0) -> Trace:
        """The first `rows` rows of the left."""
        return self.both(rows, seed)[0]

    @abstractmethod
    def both(self, rows: int, seed: int = 0) -> tuple[Trace, Trace]:
        """The first `rows` rows of the left, and the right rows that go with them, each in order of time."""
