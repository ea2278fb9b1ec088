"""Frequencies of keys, learned while rows arrive, within bounded memory."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from tidegate.models.decay import half_life
from tidegate.models.frequencies.frequency import Frequency
from tidegate.models.frequencies.key_counts import KeyCounts
from tidegate.models.frequencies.key_table import as_keys, entries
from tidegate.types import SIDES, InputError, Nested, Side, Stateful, check_choice

if TYPE_CHECKING:
    from tidegate.types import Array, State, Time


@dataclass(frozen=True)
class LearnedFrequency:
    """The frequency-based model with frequencies that are learned from the arrivals.

    Up to `capacity` keys are counted exactly, and their shares are those observed. All other keys are
    summarised by their weight, their number, and a sketch of the frequent ones among them. Periodically, these
    replace counted keys that are less frequent. Each of the other keys gets their mean share. A key that begins to
    be counted starts with that share, since it may have arrived before.

    Parameters
    ----------
    capacity
        The number of keys that are counted on each side; each takes 64 to 128 bytes.
    horizon
        The half-life of an arrival, in units of time; None for no decay.

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
    The paper leaves the estimation to online histograms without naming one. Up to `capacity`
    keys the result does not depend on how the stream is cut into steps. With more keys it does, a little: the
    set of counted keys is updated between steps.
    """

    capacity: int = 65_536
    horizon: Time | None = None

    def __post_init__(self) -> None:
        half_life(self.horizon)
        if isinstance(self.capacity, bool) or not isinstance(self.capacity, int) or self.capacity < 1:
            raise InputError(f"capacity={self.capacity!r} must be a positive whole number")

    def start(self) -> FrequencyLearner:
        """A learner without observations."""
        return FrequencyLearner(self)


class FrequencyLearner(Stateful):
    """The frequencies that a `LearnedFrequency` has learned so far."""

    state: ClassVar[State] = {"{}_": Nested("_sides")}

    def __init__(self, config: LearnedFrequency) -> None:
        self._sides: dict[Side, KeyCounts] = {
            side: KeyCounts(config.capacity, half_life(config.horizon)) for side in SIDES
        }

    def _side(self, side: Side) -> KeyCounts:
        check_choice(side, Side, "side")
        return self._sides[side]

    def observe(self, side: Side, keys: Array, times: Array | Time, each: Array | float = 1.0) -> None:
        """Learn from arrivals: their keys, times and multiplicities; the latter two for each or for all."""
        column = as_keys(keys)
        when = np.full(len(column), times, np.float64)
        if not np.isfinite(when).all():
            raise InputError(f"the times {when} are not all finite; give every row a finite time")
        if len(column):
            self._side(side).observe(column, when, np.full(len(column), each, np.float64))

    def share(self, side: Side, keys: Array) -> Array:
        """The estimated fraction of a side's arrivals with each of these keys."""
        return self._side(side).share(as_keys(keys))

    def count(self, side: Side, keys: Array) -> Array:
        """The decayed number of a side's rows with each of these keys."""
        return self._side(side).count(as_keys(keys))

    def keys(self, side: Side) -> Array:
        """The keys of a side that are counted exactly."""
        return entries(self._side(side).table)[0]

    def sample_keys(self, side: Side, count: int) -> tuple[Array, Array]:
        """About `count` of the counted keys, and the weight that each represents."""
        return self._side(side).sample_keys(count)

    def total(self, side: Side) -> float:
        """The decayed number of a side's rows."""
        return self._side(side).total()

    def frequency(self) -> Frequency:
        """The learned frequencies as a model.

        It has the keys that are counted on either side. A key that is counted on one side only has the mean share
        of the other keys on the other side. All further keys are left out, and shares are scaled to add up to one.
        """
        keys = np.unique(np.concatenate([entries(counts.table)[0] for counts in self._sides.values()]))
        shares = {side: self.share(side, keys) for side in SIDES}
        for side, share in shares.items():
            if not share.sum() > 0:
                raise InputError(f"no row was observed on the {side}; observe some first")
        return Frequency(*((keys, share / share.sum()) for share in shares.values()))
