"""Reservoirs over joins as the paper prints them, for its figures."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Self

import numpy as np

from tidegate.compiled import kernel
from tidegate.draws import apart, drawn, draws
from tidegate.sampling.merge import at_random
from tidegate.sampling.ranks import RankedReservoir, checked
from tidegate.sampling.reservoir import places
from tidegate.sampling.slots import Taken
from tidegate.sampling.uniformity import retained, uniformity_confidence
from tidegate.types import Array, InputError


class PrintedJoinReservoir(RankedReservoir):
    """Algorithm 4, and lines 25 to 29 of algorithm 5.

    Attributes
    ----------
    confidence
        The uniformity confidence that a growth aimed at; 1 before.

    References
    ----------
    Reservoir Sampling over Memory-Limited Stream Joins, algorithms 4 and 5.

    Deviations
    ----------
    The listing adds results to the reservoir while `k <= r`, the text until it is full. Both are the same, since the
    probability `r / (k + 1) / p1` is above 1 until about then. Numbers of results are not used: draws follow the
    order in which they are shown.
    """

    def __init__(self, size: int, budget: int, salted: int) -> None:
        super().__init__(size, budget, salted)
        self.confidence = 1.0
        self._count = 0.0
        self._filled = 0
        self._kept = self._refilled = self._refill = 0

    def __len__(self) -> int:
        return self._filled

    @property
    def ranks(self) -> Array:
        """None: results are not ranked here."""
        raise InputError("a reservoir as printed has no ranks; make it with printed=False")

    @property
    def fraction(self) -> float:
        """The probability with which the next result should be in the reservoir (line 10 of algorithm 5)."""
        return min(self._least, self.size / (self._count + 1)) if not self.refilling else self._least

    @property
    def results(self) -> float:
        """How many results the join has had: the paper's `k`."""
        return self._count

    @property
    def refilling(self) -> int:
        """How many more results only refill what has grown."""
        return self._refill - self._refilled

    def offer(self, probability: Array, numbers: Array | None = None, least: float | None = None) -> Taken:  # noqa: ARG002 - of no use here
        """Show results; returns who of them is in the reservoir now, and where."""
        shown = checked(probability)
        part = min(self.refilling, len(shown))
        slots, rows = places(self._refilled, part, max(1, self.size - self._kept), apart(self._salt, 1))
        slots += self._kept
        self._filled = max(self._filled, 1 + int(slots.max(initial=-1)))
        self._refilled += part
        self._count += float((1 / shown[:part]).sum())
        more, later, self._filled, self._count = _offered(
            shown[part:], self.seen + part, self.size, self._filled, self._count, self._salt
        )
        self.seen += len(shown)
        return Taken.last(np.concatenate([slots, more]), np.concatenate([rows, later + part]))

    def grow(self, delta: int, refill: int, fraction: float) -> Taken:
        """Make room for `delta` more results, to be refilled from the next `refill`."""
        salted = apart(self._salt, 2)
        draw = float(draws(np.array([0]), apart(salted, 0))[0])
        seen = round(self._count)
        self._kept = retained(seen, self.size, delta, refill, draw)
        self.confidence = uniformity_confidence(seen, self.size, delta, refill)
        kept = at_random(self._filled, self._kept, apart(salted, 1))
        self.size += delta
        self._filled, self._refilled, self._refill, self._least = len(kept), 0, refill, fraction
        return Taken.nobody(kept)

    def snapshot(self) -> dict[str, Array]:
        """How far it is."""
        counts = [self.seen, self.size, self._filled, self._kept, self._refilled, self._refill]
        return {
            "counts": np.array(counts),
            "estimates": np.array([self._count, self._least, self.confidence]),
        }

    def restore(self, state: Mapping[str, Array]) -> Self:
        """Take up what `snapshot` gave."""
        counts: list[int] = state["counts"].tolist()
        self.seen, self.size, self._filled, self._kept, self._refilled, self._refill = counts
        self._count, self._least, self.confidence = state["estimates"].tolist()
        return self


@kernel
def _offered(
    probability: Array, seen: int, size: int, filled: int, count: float, salted: int
) -> tuple[Array, Array, int, float]:
    slots, rows = np.empty(len(probability), np.int64), np.empty(len(probability), np.int64)
    n = 0
    for i in range(len(probability)):
        sampled = drawn(2 * (seen + i), salted) < size / (count + 1) / probability[i]
        if count <= size or sampled:
            slots[n], rows[n] = int(drawn(2 * (seen + i) + 1, salted) * size), i
            if filled < size:
                slots[n] = filled
                filled += 1
            n += 1
        count += 1 / probability[i]
    return slots[:n], rows[:n], filled, count
