"""Shares of keys that are learned from the arrivals of a join."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, Final

from tidegate.draws import draws
from tidegate.models.frequencies.learned_frequency import FrequencyLearner, LearnedFrequency
from tidegate.types import SIDES

if TYPE_CHECKING:
    from tidegate.types import Step, Time

SAMPLE: Final = 1 << 13
"""Of more arrivals than this in a step, a sample is counted: it is precise enough, and costs little."""


class StreamShares(FrequencyLearner):
    """The share of each key on either side, learned while rows arrive.

    Parameters
    ----------
    capacity
        How many keys of each side are counted one by one.
    horizon
        The half-life of an arrival; None for no decay.
    salt
        Fixes which arrivals of a large step are counted.
    """

    part: ClassVar[str] = "share"

    def __init__(self, capacity: int, horizon: Time | None, salt: int) -> None:
        super().__init__(LearnedFrequency(capacity, horizon))
        self._salt = salt

    def learn(self, step: Step) -> None:
        """Learn from the arrivals of a step."""
        for side in SIDES:
            arrivals = slice(step.fresh[side], None)
            keys = step.rows[side].key[arrivals]
            each = max(len(keys) / SAMPLE, 1.0)
            if each > 1:
                keys = keys[draws(step.rows[side].id[arrivals], self._salt) < 1 / each]
            self.observe(side, keys, step.now, each)
