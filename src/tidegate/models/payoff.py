"""Stand-in."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Self

import numpy as np

if TYPE_CHECKING:
    from tidegate.types import Array


@dataclass(frozen=True)
class Payoff:
    """Results a unit of time against rows of memory: concave, piecewise linear."""

    memory: Array
    results: Array

    @classmethod
    def from_segments(cls, lengths: Array, slopes: Array) -> Self:
        """Join segments, the steepest first."""
        order = np.argsort(-slopes, kind="stable")
        memory = np.concatenate([[0.0], np.cumsum(lengths[order])])
        return cls(memory, np.concatenate([[0.0], np.cumsum((lengths * slopes)[order])]))

    def at(self, memory: Array) -> Array:
        """Results with this much memory."""
        found: Array = np.interp(memory, self.memory, self.results)
        return found
