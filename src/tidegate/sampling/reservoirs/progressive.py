"""A reservoir that can grow while rows arrive."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from tidegate.draws import derive_salt, draws
from tidegate.models.validation import at_least_one
from tidegate.sampling.reservoirs.merge import draw_rows
from tidegate.sampling.reservoirs.reservoir import draw_slots, salt_of
from tidegate.sampling.reservoirs.slots import Sample, SlotChanges, Slots, length_of
from tidegate.sampling.reservoirs.uniformity import (
    check_threshold,
    recovery_count,
    retained,
    uniformity_confidence,
)
from tidegate.types import Array, InputError, Nested, Numbers, State, Stateful


@dataclass(frozen=True)
class ProgressiveReservoir:
    """Reservoir sampling with a reservoir that may grow at any time.

    New slots cannot be filled from earlier rows. When the reservoir grows, it draws how many of its rows would be in
    a uniform sample of all rows so far and the next `m` rows. That number of rows stays, and the other slots are
    filled by conventional sampling from the next `m` rows only. `m` is the smallest number at which the uniformity
    confidence reaches a threshold. After that, conventional sampling continues.

    Parameters
    ----------
    size
        The initial number of rows to hold.
    threshold
        The uniformity confidence to reach after each growth, above 0 and below 1.

    Examples
    --------
    >>> import numpy as np
    >>> running = ProgressiveReservoir(size=100, threshold=0.9).start()
    >>> _ = running.offer({"x": np.arange(1000)})
    >>> running.grow(50)
    609
    >>> len(running) < 100
    True
    >>> _ = running.offer({"x": np.arange(1000, 1609)})
    >>> len(running), running.seen, round(running.confidence, 3)
    (150, 1609, 0.902)

    References
    ----------
    Reservoir Sampling over Memory-Limited Stream Joins, section 2.3 (algorithm 2).

    Deviations
    ----------
    A reservoir that holds all rows so far only changes its size. One that is being refilled grows after that.
    Equation 3 is normalized. The sample is uniform among the old rows and among the new ones; `inclusion_chances`
    returns the probabilities of both.
    """

    size: int
    threshold: float = 0.9

    def __post_init__(self) -> None:
        at_least_one(self.size, "size", "rows")
        check_threshold(self.threshold, "threshold")

    def start(self, seed: int = 0, partition: int = 0) -> RunningProgressive:
        """Return an empty reservoir; seed and partition fix its draws."""
        return RunningProgressive(self, salt_of(seed, partition))


class RunningProgressive(Stateful):
    """A running `ProgressiveReservoir`.

    Attributes
    ----------
    seen
        The number of rows that it was offered.
    size
        The number of rows that it has room for.
    confidence
        The uniformity confidence once it is refilled: 1 before it grows, then the product over all growths.
    """

    state: ClassVar[State] = {
        "counts": Numbers(
            seen=int, size=int, _growths=int, _waiting=int, _kept=int, _refilled=int, _refill=int
        ),
        "confidence": Numbers(confidence=float),
        "row.": Nested("_slots"),
    }

    def __init__(self, config: ProgressiveReservoir, salted: int) -> None:
        self.config, self._salt = config, salted
        self._slots = Slots()
        self.seen, self.size, self.confidence = 0, config.size, 1.0
        self._growths = self._waiting = 0
        self._kept = self._refilled = self._refill = 0

    def __len__(self) -> int:
        return self._slots.filled

    @property
    def refilling(self) -> int:
        """The number of further rows that refill the reservoir; 0 while sampling is conventional."""
        return self._refill - self._refilled

    def grow(self, delta: int, within: int | None = None) -> int:
        """Make room for `delta` more rows; returns the number of rows that will refill it.

        Parameters
        ----------
        delta
            The number of additional rows, at least 0.
        within
            The number of rows to refill it from, at least `delta`; by default it follows from the threshold.
        """
        if isinstance(delta, bool) or not isinstance(delta, int | np.integer) or delta < 0:
            raise InputError(f"delta must be a whole number of rows, at least 0; got {delta!r}")
        if self.refilling:
            self._waiting += int(delta)
            return self.refilling
        if self.seen <= self.size or delta == 0:
            self.size += int(delta)
            return 0
        demanded = recovery_count(self.seen, self.size, delta, self.config.threshold)
        refill = demanded if within is None else at_least_one(within, "within", "rows")
        if refill < delta:
            raise InputError(f"within must be at least delta, which is {delta}; got {refill}")
        self._growths += 1
        self._evict(int(delta), refill)
        return refill

    def _evict(self, delta: int, refill: int) -> None:
        salted = derive_salt(self._salt, 2 * self._growths)
        draw = float(draws(np.array([0]), derive_salt(salted, 0))[0])
        self._kept = retained(self.seen, self.size, delta, refill, draw)
        self._slots.keep(draw_rows(self.size, self._kept, derive_salt(salted, 1)))
        self.confidence *= uniformity_confidence(self.seen, self.size, delta, refill)
        self.size += delta
        self._refilled, self._refill = 0, refill

    def offer(self, rows: Mapping[str, Array]) -> None:
        """Offer rows, as columns."""
        count, done = length_of(rows), 0
        self._slots.check(rows)
        while done < count:
            part = min(self.refilling or count, count - done)
            changes = self._draw_changes(part)
            self._slots.put(rows, SlotChanges(changes.slots, changes.rows + done))
            self.seen += part
            done += part
            if self._refill and not self.refilling:
                self._refill = self._refilled = 0
                waiting, self._waiting = self._waiting, 0
                self.grow(waiting)

    def _draw_changes(self, count: int) -> SlotChanges:
        if not self.refilling:
            return SlotChanges.last(*draw_slots(self.seen, count, self.size, self._salt))
        salted = derive_salt(self._salt, 2 * self._growths + 1)
        slots, rows = draw_slots(self._refilled, count, self.size - self._kept, salted)
        self._refilled += count
        return SlotChanges.last(slots + self._kept, rows)

    def sample(self) -> Sample:
        """The held rows, and the number of rows seen; not a uniform sample while `refilling` is above 0."""
        return Sample(self.seen, self._slots.columns(), self.refilling)
