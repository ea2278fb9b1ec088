"""Frequencies of keys, learned while rows arrive, within bounded memory."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Self

import numpy as np

from tidegate.models.frequency import Frequency
from tidegate.models.horizon import half_life
from tidegate.models.key_counts import KeyCounts
from tidegate.models.key_table import as_keys, entries
from tidegate.types import SIDES, InputError, Side, check_choice

if TYPE_CHECKING:
    from tidegate.types import Array, Time


@dataclass(frozen=True)
class LearnedFrequency:
    """The frequency-based model where nobody knows the frequencies: learn them from the arrivals.

    Keys are counted one by one as long as there is room, and the shares are then exactly those observed. Once
    `capacity` keys are counted, any other key belongs to the rest, of which three things are known: what it weighs,
    how many keys it has, and by a sketch which of them are frequent. From time to time these take the places of
    counted keys that are less frequent, or no longer. A key of the rest has the share of the average one,
    and one that begins to be counted takes that much out of the rest, since it may have been there before.

    Parameters
    ----------
    capacity
        How many keys are counted on each side; each takes 64 to 128 bytes.
    horizon
        The half-life of an arrival, in units of time; None forgets nothing.

    Examples
    --------
    >>> learner = LearnedFrequency(horizon=10).start()
    >>> learner.observe("left", [1, 1, 1, 2], 0)
    >>> learner.share("left", [1, 2, 3])
    array([0.75, 0.25, 0.  ])

    Later rows count more: these two have 2/3 of the weight.

    >>> learner.observe("left", [2, 2], 20)
    >>> learner.share("left", [1, 2])
    array([0.25, 0.75])

    References
    ----------
    Memory-Limited Execution of Windowed Stream Joins, definition 2.1 and section 2.3. Forward Decay: A Practical
    Time Decay Model for Streaming Systems (Cormode et al., 2009). A High-Performance Algorithm for Identifying
    Frequent Items in Data Streams (Anderson et al., 2017): the sketch.

    Deviations
    ----------
    The paper leaves the estimation to online histograms; any may be meant. Up to `capacity` keys what is learned
    does not depend on how the stream is cut into steps. Beyond it does, a little: the sketch sees the rows of
    a step together, and which keys are counted is reviewed between steps.
    """

    capacity: int = 65_536
    horizon: Time | None = None

    def __post_init__(self) -> None:
        half_life(self.horizon)
        if isinstance(self.capacity, bool) or not isinstance(self.capacity, int) or self.capacity < 1:
            raise InputError(f"capacity={self.capacity!r} counts no keys; give a whole number, at least 1")

    def start(self) -> FrequencyLearner:
        """Return what learns."""
        return FrequencyLearner(self)


class FrequencyLearner:
    """What a `LearnedFrequency` has learned so far."""

    def __init__(self, config: LearnedFrequency) -> None:
        self._sides: dict[Side, KeyCounts] = {
            side: KeyCounts(config.capacity, half_life(config.horizon)) for side in SIDES
        }

    def _side(self, side: Side) -> KeyCounts:
        check_choice(side, Side, "side")
        return self._sides[side]

    def observe(self, side: Side, keys: Array, times: Array | Time, each: Array | float = 1.0) -> None:
        """Learn from arrivals: their keys; one time, and one number of rows it stands for, for each or for all."""
        found = as_keys(keys)
        when = np.full(len(found), times, np.float64)
        if not np.isfinite(when).all():
            raise InputError(f"the times {when} are not all finite; give every row a finite time")
        if len(found):
            self._side(side).observe(found, when, np.full(len(found), each, np.float64))

    def share(self, side: Side, keys: Array) -> Array:
        """The fraction of a side's arrivals that has each of these keys, as far as is known."""
        return self._side(side).share(as_keys(keys))

    def count(self, side: Side, keys: Array) -> Array:
        """How many rows of a side had each of these keys, each counted for what is left of it."""
        return self._side(side).count(as_keys(keys))

    def keys(self, side: Side) -> Array:
        """The keys of a side that are counted one by one."""
        return entries(self._side(side).table)[0]

    def some(self, side: Side, count: int) -> tuple[Array, Array]:
        """Some of the keys that are counted one by one, `count` of many, and what each stands for, in proportion."""
        return self._side(side).some(count)

    def total(self, side: Side) -> float:
        """How many rows the shares rest on, each counted for what is left of it."""
        return self._side(side).total()

    def frequency(self) -> Frequency:
        """What was learned, as a model.

        It has the keys that are counted on either side, so that a key counted on one alone still has its share
        of the other's rest. What is left of the rest is left out, and the shares are scaled to add up to one.
        """
        keys = np.unique(np.concatenate([entries(counts.table)[0] for counts in self._sides.values()]))
        shares = {side: self.share(side, keys) for side in SIDES}
        for side, found in shares.items():
            if not found.sum() > 0:
                raise InputError(f"no row was observed on the {side}; observe some first")
        return Frequency(*((keys, found / found.sum()) for found in shares.values()))

    def snapshot(self) -> dict[str, Array]:
        """What was learned, as plain arrays."""
        return {
            f"{side}_{name}": array
            for side, counts in self._sides.items()
            for name, array in counts.snapshot().items()
        }

    def restore(self, state: dict[str, Array]) -> Self:
        """Take up what `snapshot` gave."""
        for side, counts in self._sides.items():
            counts.restore({n.removeprefix(f"{side}_"): a for n, a in state.items() if n.startswith(side)})
        return self
