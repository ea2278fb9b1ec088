"""A reservoir of a join's results that grows into memory which the join no longer needs."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

from tidegate.models.joint_payoff import Curves, curves_of, lengths_of, rates_of
from tidegate.models.sample_memory import Frequencies, are_curves, frequencies_of, sample_rows
from tidegate.models.validation import finite
from tidegate.sampling.reservoirs.join_reservoir import check_within
from tidegate.sampling.reservoirs.ranked import Memory, RankedReservoir
from tidegate.sampling.reservoirs.reservoir import salt_of
from tidegate.sampling.reservoirs.slots import SlotChanges
from tidegate.sampling.reservoirs.uniformity import (
    check_threshold,
    refill_confidence,
)
from tidegate.types import Numbers, State, Time, Window, WindowSpan

_HALVINGS = 50
_CAUTION = 0.5
"""Without a model, this part of the results so far per unit of time is expected in the future."""


def expected_results(
    model: Curves | Frequencies,
    span: float,
    *,
    rates: tuple[float, float],
    window: Window | tuple[WindowSpan, WindowSpan],
) -> float:
    """The expected number of results of a join in a span of time; parameters as in `models.sample_rows`.

    Examples
    --------
    >>> expected_results(([0.5, 0.5], [1.0, 0.0]), 10, rates=(1, 5), window=(500, 500))
    25000.0

    References
    ----------
    Reservoir Sampling over Memory-Limited Stream Joins, equation 6.
    """
    speeds, lengths = rates_of(rates), lengths_of(window)
    if are_curves(model):
        pairs = zip(curves_of(model, lengths), speeds, strict=True)
        return span * sum(rate * curve.total for curve, rate in pairs if curve is not None)
    left, right = frequencies_of(model)
    both = max(0.0, lengths[0]) + max(0.0, lengths[1])
    return span * speeds[0] * speeds[1] * both * float(left @ right)


@dataclass(frozen=True)
class ProgressiveJoinReservoir:
    """Progressive reservoir join-sampling (PRJS): a `JoinReservoir` that grows until its sample is used.

    As results arrive, a smaller and smaller fraction of them is needed, and a join that is sampled at a lower
    fraction holds fewer rows. The reservoir grows into that memory. It lowers the fraction further and grows by the
    memory that this frees, as long as it will be full again at the time of use with the required confidence.

    Parameters
    ----------
    size
        The initial number of results to hold.
    budget
        The number of rows that join and reservoir may hold together; a result counts as one row.
    use_at
        The time at which the sample is used.
    model, rates, window
        As in `models.sample_rows`. Without them, half as many results per unit of time are expected as so far, and
        `advance` needs the memory of the join.
    threshold
        The smallest accepted uniformity confidence after a growth.
    refill
        The smallest accepted probability that the reservoir is full when it is used.

    Examples
    --------
    >>> import numpy as np
    >>> keys = [1 / 50] * 50
    >>> config = ProgressiveJoinReservoir(
    ...     size=100, budget=1600, use_at=10_000, model=(keys, keys), rates=(1, 5), window=(500, 500)
    ... )
    >>> running = config.start()
    >>> for now in range(0, 5000, 100):
    ...     offered = running.offer(np.full(20, running.demand().fraction))
    ...     grown = running.advance(now)
    >>> running.size, running.demand().rows
    (1549, 51)

    References
    ----------
    Reservoir Sampling over Memory-Limited Stream Joins, section 4.3 (algorithm 5).

    Deviations
    ----------
    The paper computes the uniformity confidence from `k`, which counts results of the join, and `m`, which counts
    sampled ones. Let both count results that are sampled with one fraction `p`. While `p` is at most the highest held
    rank (see `JoinReservoir`), the reservoir holds all such results from before it grew. Nothing is missing, so the
    confidence is 1 for every `threshold`, no number of retained results need be drawn, and the reservoir may grow
    again. It grows by about as much as the threshold would allow: `size * l / k` after `k` results, if `l` more are
    expected. Refilling counts the results that stay. The sample is uniform whenever it is full. Before that it is
    only approximately uniform, since the fraction depends on the ranks.
    """

    size: int
    budget: int
    use_at: Time
    model: Curves | Frequencies | None = None
    rates: tuple[float, float] = (0.0, 0.0)
    window: Window | tuple[WindowSpan, WindowSpan] = (0, 0)
    threshold: float = 0.9
    refill: float = 0.9

    def __post_init__(self) -> None:
        check_within(self.size, self.budget)
        check_threshold(self.threshold, "threshold")
        check_threshold(self.refill, "refill")
        finite(self.use_at, "use_at")
        if self.model is not None:
            self.memory(1.0)  # raises errors of the model here rather than later

    def start(self, seed: int = 0, partition: int = 0) -> RunningProgressiveJoin:
        """Return an empty reservoir; seed and partition fix its draws."""
        return RunningProgressiveJoin(self, salt_of(seed, partition))

    def memory(self, fraction: float) -> float:
        """The number of rows that the join holds if it is sampled at this fraction; infinity without a model."""
        if self.model is None:
            return math.inf
        return sample_rows(self.model, fraction, rates=self.rates, window=self.window)

    def left(self, now: Time) -> int:
        """The number of results that are expected before the sample is used; 0 without a model."""
        if self.model is None:
            return 0
        span = max(0.0, self.use_at - finite(now, "now"))
        return int(expected_results(self.model, span, rates=self.rates, window=self.window))

    def room(self, fraction: float, size: int, memory: Memory | None = None) -> int:
        """The number of results by which a reservoir of this size may grow if the join is sampled at a fraction."""
        return max(0, math.floor(max(self.budget - (memory or self.memory)(fraction), 0)) - size)


class RunningProgressiveJoin(RankedReservoir):
    """A running `ProgressiveJoinReservoir`."""

    grows: ClassVar[bool] = True

    state: ClassVar[State] = {**RankedReservoir.state, "since": Numbers(_since=Time)}

    def __init__(self, config: ProgressiveJoinReservoir, salted: int) -> None:
        super().__init__(config.size, config.budget, salted)
        self.config = config
        self._since = math.nan

    def left(self, now: Time) -> float:
        """The number of results that are expected before the sample is used."""
        if self.config.model is not None:
            return self.config.left(now)
        passed = now - self._since
        ahead = max(0.0, self.config.use_at - now)
        return _CAUTION * self.results / passed * ahead if passed > 0 else 0.0

    def advance(self, now: Time, memory: Memory | None = None) -> SlotChanges:
        """Grow if possible, between steps and before `demand`; returns which results stay.

        Parameters
        ----------
        now
            The time.
        memory
            Returns the number of rows that the join needs to be sampled at a fraction; by default those of theorems
            4.2 and 4.3. A sampler that leaves room for random variation needs more.
        """
        if math.isnan(self._since):
            self._since = float(now)
        fraction, delta = self._growth(int(self.left(now)), memory)
        if not delta:
            return SlotChanges.none()
        self.size += delta
        return SlotChanges.none(self._lower(fraction))

    def _growth(self, results: int, memory: Memory | None) -> tuple[float, int]:
        """The fraction that frees the most memory that can be refilled, and the number of additional results."""
        highest = self.fraction
        room = self.config.room(highest, self.size, memory) if len(self) == self.size else 0
        if not room:
            return highest, 0

        def refills(fraction: float, delta: int) -> bool:
            staying = int((self._ranks <= fraction).sum())
            missing = max(0, self.size + delta - staying)
            return refill_confidence(results, fraction, missing) >= self.config.refill

        if not refills(highest, room):
            return highest, largest_number(lambda delta: refills(highest, delta), room)
        low, high = 0.0, highest
        for _ in range(_HALVINGS):
            middle = (low + high) / 2
            enough = refills(middle, self.config.room(middle, self.size, memory))
            low, high = (low, middle) if enough else (middle, high)
        return high, self.config.room(high, self.size, memory)


def largest_number(holds: Callable[[int], bool], most: int) -> int:
    """The largest number from 1 to `most` that satisfies a monotone condition; 0 if none does."""
    good, bad = 0, most + 1
    while bad - good > 1:
        middle = (good + bad) // 2
        good, bad = (middle, bad) if holds(middle) else (good, middle)
    return good
