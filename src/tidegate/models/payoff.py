"""Results per unit of time as a function of memory."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Self, overload

import numpy as np

from tidegate.models.validation import ascending, column, like
from tidegate.models.value_object import ValueObject
from tidegate.types import Array, InputError

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

_EQUAL = 1e-9  # slopes are differences of rounded sums: within this fraction of the steepest they are equal
_SCALE = 2.0**900  # a power of two, so that it rounds nothing


@dataclass(frozen=True, eq=False, init=False)
class Payoff(ValueObject):
    """Results per unit of time as a function of memory: piecewise linear, never falling, concave.

    Memory is used in the best way first, so each further row adds at most as many results as the one before. To
    divide memory, the next row goes to the side that gains most.

    Parameters
    ----------
    memory
        Rows of memory at the breakpoints: ascending, from 0.
    results
        Results per unit of time there, from 0. They are linear between breakpoints, and constant
        after the last.

    Examples
    --------
    >>> payoff = Payoff(memory=[0, 1, 3], results=[0, 3, 5])
    >>> payoff.at(2), payoff.needed(4), payoff.recall(1)
    (4.0, 2.0, 0.6)

    A second side with 2.5 results per row, for up to two rows, lies between the two segments of the first:

    >>> other = Payoff([0, 2], [0, 5])
    >>> payoff.shared(other)
    Payoff(memory=array([0., 1., 3., 5.]), results=array([ 0.,  3.,  8., 10.]))
    >>> payoff.split(2.5, other)
    (1.0, 1.5)

    References
    ----------
    Memory-Limited Execution of Windowed Stream Joins, sections 3.2.2 and 3.3: the relation of memory to
    results, which divides memory between the sides of a join and, in section 5, among joins.
    """

    memory: Array
    results: Array

    def __init__(self, memory: ArrayLike, results: ArrayLike) -> None:
        object.__setattr__(self, "memory", column(memory, "the payoff's memory"))
        object.__setattr__(self, "results", column(results, "the payoff's results"))
        if len(self.memory) != len(self.results):
            raise InputError(
                f"{len(self.memory)} breakpoints of memory have {len(self.results)} results; give one each"
            )
        ascending(self.memory, "the payoff's memory")
        if self.results[0] != 0:
            raise InputError(f"without memory the payoff is {self.results[0]:g}; it must be 0")
        if len(fall := np.flatnonzero(np.diff(self.results) < 0)):
            raise InputError(
                f"the payoff falls after memory {self.memory[fall[0]]:g}; more memory must not give fewer results"
            )
        slack = _EQUAL * max(self.full, np.finfo(float).tiny)
        rise = np.diff(self.slopes) * np.minimum(self.lengths[:-1], self.lengths[1:])
        if len(rising := np.flatnonzero(rise > slack)):
            raise InputError(
                f"the payoff grows faster after memory {self.memory[rising[0] + 1]:g}; it must be concave: "
                "build it with Payoff.from_segments, which sorts segments by slope"
            )

    @classmethod
    def from_segments(cls, lengths: ArrayLike, slopes: ArrayLike) -> Self:
        """Build a payoff from segments in any order; the steepest comes first.

        Segment `i` is `lengths[i]` rows of memory, each with `slopes[i]` results per unit of time.

        Examples
        --------
        >>> Payoff.from_segments([2, 0, 1], [1, 9, 3])
        Payoff(memory=array([0., 1., 3.]), results=array([0., 3., 5.]))
        """
        sizes, rises = column(lengths, "lengths of segments"), column(slopes, "slopes of segments")
        if len(sizes) != len(rises):
            raise InputError(f"{len(sizes)} lengths have {len(rises)} slopes; give one each")
        if min(sizes.min(), rises.min()) < 0:
            raise InputError(
                f"a segment has {min(sizes.min(), rises.min()):g}; lengths and slopes are 0 or more"
            )
        order = np.argsort(-rises, kind="stable")
        order = order[sizes[order] > 0]
        memory, results = np.cumsum(sizes[order]), np.cumsum(sizes[order] * rises[order])
        return cls(np.append(0.0, memory), np.append(0.0, results))

    @cached_property
    def lengths(self) -> Array:
        """Memory of each segment."""
        return np.diff(self.memory)

    @cached_property
    def slopes(self) -> Array:
        """Results per row of each segment."""
        return np.diff(self.results) / self.lengths

    @property
    def full(self) -> float:
        """Results per unit of time with ample memory."""
        return float(self.results[-1])

    @cached_property
    def ample(self) -> float:
        """The least memory with full results."""
        return float(self.memory[np.searchsorted(self.results, self.full)])

    @cached_property
    def _scaled(self) -> Array:
        """The results in a unit in which fractions of them are not rounded to subnormal numbers."""
        return self.results * _SCALE if self.full < 1 / _SCALE else self.results

    @overload
    def at(self, memory: float) -> float: ...
    @overload
    def at(self, memory: Array) -> Array: ...
    def at(self, memory: float | Array) -> float | Array:
        """Results per unit of time with this much memory."""
        return like(memory, np.interp(memory, self.memory, self.results))

    @overload
    def needed(self, results: float) -> float: ...
    @overload
    def needed(self, results: Array) -> Array: ...
    def needed(self, results: float | Array) -> float | Array:
        """The least memory that gives these results; infinite beyond `full`."""
        growing = self.memory <= self.ample
        return like(results, np.interp(results, self.results[growing], self.memory[growing], right=np.inf))

    @overload
    def recall(self, memory: float) -> float: ...
    @overload
    def recall(self, memory: Array) -> Array: ...
    def recall(self, memory: float | Array) -> float | Array:
        """The fraction of the full results; 1 if there are none."""
        if not self.full:
            return like(memory, np.ones(np.shape(memory)))
        results = self._scaled
        return like(memory, np.interp(memory, self.memory, results) / results[-1])

    @overload
    def memory_for(self, recall: float) -> float: ...
    @overload
    def memory_for(self, recall: Array) -> Array: ...
    def memory_for(self, recall: float | Array) -> float | Array:
        """The least memory with this recall; infinite above 1."""
        growing, results = self.memory <= self.ample, self._scaled
        least = np.interp(np.asarray(recall) * results[-1], results[growing], self.memory[growing])
        return like(recall, np.where(np.asarray(recall) > 1, np.inf, least))

    def shared(self, other: Payoff) -> Payoff:
        """The payoff of one memory for both, where each row of memory goes to the side that gains most."""
        lengths = np.concatenate([self.lengths, other.lengths])
        if not len(lengths):
            return self
        return Payoff.from_segments(lengths, np.concatenate([self.slopes, other.slopes]))

    def coarse(self, segments: int) -> Payoff:
        """An approximation with fewer segments: never above this payoff, and equal at its corners.

        Examples
        --------
        >>> Payoff([0, 1, 2, 4, 8], [0, 8, 12, 14, 15]).coarse(2).memory
        array([0., 1., 8.])
        """
        if len(self.memory) <= segments + 1:
            return self
        # Corners at even steps of results: finer where memory gains much.
        steps = np.linspace(0, self.full, segments + 1)[1:-1]
        corners = np.unique([0, *np.searchsorted(self.results, steps), len(self.memory) - 1])
        return Payoff(self.memory[corners], self.results[corners])

    def split(self, memory: float, other: Payoff) -> tuple[float, float]:
        """The division of `memory` between this and the other that yields the most.

        Segments of equal slope fill in proportion to their lengths. Memory beyond the ample memory of both is
        divided in proportion to it (evenly if neither needs any).
        """
        if not 0 <= memory < np.inf:
            raise InputError(f"memory to split is {memory!r}; give a finite number, at least 0")
        sides = (self, other)
        ample = np.array([side.ample for side in sides])
        if memory >= ample.sum():
            shares = ample / ample.sum() if ample.any() else np.array([0.5, 0.5])
            mine = ample[0] + (memory - ample.sum()) * shares[0]
        else:
            both = self.shared(other)
            last = np.searchsorted(both.memory[1:-1], memory)
            margin, slack = both.slopes[last], _EQUAL * both.slopes[last]
            better = np.array([side.lengths[side.slopes > margin + slack].sum() for side in sides])
            equal = np.array([side.lengths[abs(side.slopes - margin) <= slack].sum() for side in sides])
            mine = better[0] + (memory - better.sum()) * equal[0] / equal.sum()
        return float(mine), float(memory - mine)
