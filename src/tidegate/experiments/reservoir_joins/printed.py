"""RJS and PRJS as the paper prints them, for its figures.

References
----------
Reservoir Sampling over Memory-Limited Stream Joins, algorithms 4 and 5.

Deviations
----------
The listing adds results to the reservoir while `k <= r`, the text until it is full. Both are the same, since the
probability `r / (k + 1) / p1` is above 1 until about then. Growth uses equation 3 normalised. Draws follow the order
in which results are offered.

RJS keeps the `p1` for which the memory suffices. Algorithm 4 has no line that changes it, and section 4.3 names its
decrease to `r / (k + 1)`, line 10 of algorithm 5, as the difference of PRJS from RJS. Here the sampler corrects that
`p1` by the memory that is really used.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from tidegate.compiled import kernel
from tidegate.draws import derive_salt, draw_one, draws
from tidegate.engine.reservoir_join import ReservoirJoin
from tidegate.models.validation import positive
from tidegate.sampling import Demand, SlotChanges, refill_confidence, uniformity_confidence
from tidegate.sampling.reservoirs.join_reservoir import check_within
from tidegate.sampling.reservoirs.merge import draw_rows
from tidegate.sampling.reservoirs.progressive_join import ProgressiveJoinReservoir, largest_number
from tidegate.sampling.reservoirs.ranked import Memory, check_probabilities
from tidegate.sampling.reservoirs.reservoir import draw_slots, salt_of
from tidegate.sampling.reservoirs.uniformity import retained

if TYPE_CHECKING:
    from tidegate.engine.arrivals import Moment
    from tidegate.types import Array, Rows, Time


class PrintedReservoirJoin(ReservoirJoin):
    """A running join with its reservoir, in which all rows have the probability of new draws.

    A printed reservoir does not use the probability of each result, so all must be equal.
    """

    def step(self, left: Rows, right: Rows, moment: Moment) -> None:
        """Join arrivals, offer the sample to the reservoir, and thin rows of a higher probability."""
        super().step(left, right, moment)
        self.retention.thin(self.operator.join, self.operator.state)


@dataclass(frozen=True)
class PrintedJoinReservoir:
    """RJS, algorithm 4: hold `size` results of a join that is sampled at one fraction.

    Parameters
    ----------
    size
        The number of results to hold.
    budget
        The number of rows that join and reservoir may hold together; a result counts as one row.
    """

    size: int
    budget: int

    def __post_init__(self) -> None:
        check_within(self.size, self.budget)

    def start(self, seed: int = 0, partition: int = 0) -> RunningPrintedJoin:
        """Return an empty reservoir; seed and partition fix its draws."""
        return RunningPrintedJoin(self.size, self.budget, salt_of(seed, partition))


@dataclass(frozen=True)
class PrintedProgressiveJoinReservoir:
    """PRJS, algorithm 5: RJS that grows once.

    Parameters
    ----------
    config
        Sizes, thresholds and the model of the join, which is required.
    decrement
        The amount by which the fraction is lowered at a time. The paper does not state it.
    """

    config: ProgressiveJoinReservoir
    decrement: float = 0.001

    def __post_init__(self) -> None:
        positive(self.decrement, "decrement")

    def start(self, seed: int = 0, partition: int = 0) -> RunningPrintedProgressiveJoin:
        """Return an empty reservoir; seed and partition fix its draws."""
        return RunningPrintedProgressiveJoin(self, salt_of(seed, partition))


class RunningPrintedJoin:
    """A running `PrintedJoinReservoir`, and lines 25 to 29 of algorithm 5.

    Attributes
    ----------
    size, budget
        The number of results that it has room for, and the rows that join and reservoir may hold.
    seen
        The number of results that it was offered.
    confidence
        The uniformity confidence of its growth; 1 before.
    """

    grows: ClassVar[bool] = False

    def __init__(self, size: int, budget: int, salted: int) -> None:
        self.size, self.budget, self._salt = size, budget, salted
        self.seen = 0
        self.confidence = 1.0
        self._lowest = 1.0
        self._count = 0.0
        self._filled = 0
        self._kept = self._refilled = self._refill = 0

    def __len__(self) -> int:
        return self._filled

    @property
    def fraction(self) -> float:
        """The part of the results that is to be sampled: what the memory permits, since RJS never lowers it."""
        return self._lowest

    @property
    def results(self) -> float:
        """The estimated number of results of the join so far: the paper's `k`."""
        return self._count

    @property
    def refilling(self) -> int:
        """The number of further results that refill the reservoir."""
        return self._refill - self._refilled

    def demand(self) -> Demand:
        """What the reservoir needs from the sampler from now on."""
        return Demand(self.fraction, self.budget - self.size)

    def offer(
        self,
        probability: Array,
        numbers: Array | None = None,  # noqa: ARG002 - draws follow the order of offers
        lowest: float | None = None,  # noqa: ARG002 - results are not ranked
    ) -> SlotChanges:
        """Offer results; returns which of them are in the reservoir now, and in which slots."""
        offered = check_probabilities(probability)
        part = min(self.refilling, len(offered))
        slots, rows = draw_slots(
            self._refilled, part, max(1, self.size - self._kept), derive_salt(self._salt, 1)
        )
        slots += self._kept
        self._filled = max(self._filled, 1 + int(slots.max(initial=-1)))
        self._refilled += part
        self._count += float((1 / offered[:part]).sum())
        more, later, self._filled, self._count = _offered(
            offered[part:], self.seen + part, self.size, self._filled, self._count, self._salt
        )
        self.seen += len(offered)
        return SlotChanges.last(np.concatenate([slots, more]), np.concatenate([rows, later + part]))

    def advance(self, now: Time, memory: Memory | None = None) -> SlotChanges:  # noqa: ARG002 - it does not grow
        """Grow if possible, between steps: RJS keeps its size."""
        return SlotChanges.none()

    def grow(self, delta: int, refill: int, fraction: float) -> SlotChanges:
        """Make room for `delta` more results, to be refilled from the next `refill`."""
        salted = derive_salt(self._salt, 2)
        draw = float(draws(np.array([0]), derive_salt(salted, 0))[0])
        seen = round(self._count)
        self._kept = retained(seen, self.size, delta, refill, draw)
        self.confidence = uniformity_confidence(seen, self.size, delta, refill)
        kept = draw_rows(self._filled, self._kept, derive_salt(salted, 1))
        self.size += delta
        self._filled, self._refilled, self._refill, self._lowest = len(kept), 0, refill, fraction
        return SlotChanges.none(kept)


class RunningPrintedProgressiveJoin(RunningPrintedJoin):
    """A running `PrintedProgressiveJoinReservoir`."""

    grows: ClassVar[bool] = True

    def __init__(self, config: PrintedProgressiveJoinReservoir, salted: int) -> None:
        super().__init__(config.config.size, config.config.budget, salted)
        self.config, self._decrement = config.config, config.decrement

    @property
    def fraction(self) -> float:
        """The probability with which the next result should be in the reservoir (line 10)."""
        return self._lowest if self.refilling else min(self._lowest, self.size / (self._count + 1))

    def advance(self, now: Time, memory: Memory | None = None) -> SlotChanges:  # noqa: ARG002 - by the theorems
        """Grow once, if possible, between steps; returns which results stay."""
        results = self.config.left(now)
        fraction, delta = self._growth(results)
        if not delta:
            return SlotChanges.none()
        return self.grow(delta, int(results * fraction), fraction)

    def _growth(self, results: int) -> tuple[float, int]:
        """Lines 14 to 24 of algorithm 5."""
        fraction = self.fraction
        grown = self.size > self.config.size
        if grown or len(self) < self.size or not self.config.room(fraction, self.size):
            return fraction, 0
        k, delta = round(self._count), 0

        def holds(delta: int) -> bool:
            size, m = self.size + delta, int(results * fraction)
            return (
                refill_confidence(results, fraction, size) >= self.config.refill
                and uniformity_confidence(k, self.size, delta, m) >= self.config.threshold
                and recovers(self._count, m, size, fraction)
            )

        while holds(delta) and fraction > self._decrement:
            fraction -= self._decrement
            delta = self.config.room(fraction, self.size)
        return fraction, largest_number(holds, delta)


def recovers(k: float, m: float, size: int, fraction: float) -> bool:
    """Whether conventional sampling can continue after `m` sampled results: no result is needed that was not sampled.

    References
    ----------
    Section 4.3 (uniformity-recovery tuple count): `k` counts results of the join, `m` those of a sample of this
    fraction.
    """
    return m >= size - fraction * (k + 1)


@kernel
def _offered(
    probability: Array, seen: int, size: int, filled: int, count: float, salted: int
) -> tuple[Array, Array, int, float]:
    slots, rows = np.empty(len(probability), np.int64), np.empty(len(probability), np.int64)
    n = 0
    for i in range(len(probability)):
        sampled = draw_one(2 * (seen + i), salted) < size / (count + 1) / probability[i]
        if count <= size or sampled:
            slots[n], rows[n] = int(draw_one(2 * (seen + i) + 1, salted) * size), i
            if filled < size:
                slots[n] = filled
                filled += 1
            n += 1
        count += 1 / probability[i]
    return slots[:n], rows[:n], filled, count
