"""A reservoir: a uniform sample of fixed size of all rows so far."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from tidegate.compiled import kernel
from tidegate.draws import draw_one, salt
from tidegate.models.validation import at_least_one
from tidegate.sampling.reservoirs.slots import Sample, SlotChanges, Slots, length_of
from tidegate.types import Array, InputError, Nested, Numbers, State, Stateful


@dataclass(frozen=True)
class Reservoir:
    """Conventional reservoir sampling: all sets of `size` rows seen so far are equally likely.

    The first rows fill the reservoir. After that, the k-th row replaces a random one with probability `size / k`. The
    draw is a hash of the seed and of k. So the sample does not depend on how rows are divided into offers, and is the
    same after a restart.

    Parameters
    ----------
    size
        The number of rows to hold.

    Examples
    --------
    >>> import numpy as np
    >>> running = Reservoir(size=3).start(seed=1)
    >>> changes = running.offer({"reading": np.arange(100.0)})
    >>> running.sample()
    Sample(seen=100, columns={'reading': array([ 9., 73., 89.])})
    >>> changes.slots, changes.rows
    (array([0, 1, 2]), array([ 9, 73, 89]))

    References
    ----------
    Reservoir Sampling over Memory-Limited Stream Joins, section 2.1 (algorithm 1).
    """

    size: int

    def __post_init__(self) -> None:
        at_least_one(self.size, "size", "rows")

    def start(self, seed: int = 0, partition: int = 0) -> RunningReservoir:
        """Return an empty reservoir; seed and partition fix its draws."""
        return RunningReservoir(self, salt_of(seed, partition))


class RunningReservoir(Stateful):
    """A running `Reservoir`.

    Attributes
    ----------
    seen
        The number of rows that it was offered.
    """

    state: ClassVar[State] = {"seen": Numbers(seen=int), "row.": Nested("_slots")}

    def __init__(self, config: Reservoir, salted: int) -> None:
        self.config, self._salt = config, salted
        self._slots = Slots()
        self.seen = 0

    def __len__(self) -> int:
        return self._slots.filled

    def offer(self, rows: Mapping[str, Array]) -> SlotChanges:
        """Offer rows, as columns; returns which of them are in the reservoir now, and in which slots."""
        count = length_of(rows)
        self._slots.check(rows)
        changes = SlotChanges.last(*draw_slots(self.seen, count, self.config.size, self._salt))
        self.seen += count
        self._slots.put(rows, changes)
        return changes

    def sample(self) -> Sample:
        """The held rows."""
        return Sample(self.seen, self._slots.columns())

    def after_restore(self) -> None:
        """Refuse more rows than it may hold."""
        if len(self) > self.config.size:
            raise InputError(
                f"the snapshot has {len(self)} rows, but size is {self.config.size}; set its size"
            )


def salt_of(seed: int, partition: int) -> int:
    """The salt of a reservoir's draws."""
    return salt(seed, partition)


@kernel
def draw_slots(seen: int, count: int, size: int, salted: int) -> tuple[Array, Array]:
    """Draw which of `count` rows enter a reservoir that has seen `seen` rows: their slots in order, and the rows."""
    slots, rows = np.empty(count, np.int64), np.empty(count, np.int64)
    n = 0
    for i in range(count):
        number = seen + i
        slot = number if number < size else int(draw_one(number, salted) * (number + 1))
        slots[n], rows[n] = slot, i
        n += slot < size
    return slots[:n], rows[:n]
