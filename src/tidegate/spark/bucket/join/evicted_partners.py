"""For outer and anti joins: whether a row without a match could have matched an evicted row."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

import numpy as np

from tidegate.draws import mix
from tidegate.engine.join import Join
from tidegate.types import FOREVER, SIDES, Rows, other_side

if TYPE_CHECKING:
    from tidegate.types import Array, Side

_SLOTS: Final = 1024
_STATE: Final = "evicted_until."


class EvictedPartners:
    """Until when evicted rows of each side could have matched, by a hash of their keys.

    Several keys share a slot. So a certain row may be reported as uncertain, but never the reverse.
    """

    def __init__(self, join: Join) -> None:
        self._join = join
        self.until: dict[Side, Array] = {side: np.full(_SLOTS, -FOREVER, np.int64) for side in SIDES}

    def record(self, evicted: Rows) -> None:
        """Record until when evicted rows could have matched."""
        span = self._join.window.left if evicted.side == "left" else self._join.window.right
        until = evicted.time + span if isinstance(span, int) else np.full(len(evicted), FOREVER)
        np.maximum.at(self.until[evicted.side], self._slots(evicted.key), until)

    def possible(self, rows: Rows) -> Array:
        """Whether a row of the other side with the same slot was evicted that could have matched these rows."""
        possible: Array = self.until[other_side(rows.side)][self._slots(rows.key)] >= rows.time
        return possible

    def arrays(self) -> dict[str, Array]:
        """The arrays for a state."""
        return {_STATE + side: until for side, until in self.until.items()}

    def restore(self, state: Mapping[str, Array]) -> None:
        """Continue from what `arrays` returned, if the state has it."""
        self.until |= {side: state[_STATE + side].copy() for side in SIDES if _STATE + side in state}

    def _slots(self, keys: Array) -> Array:
        if self._join.condition != "=":
            return np.zeros(len(keys), np.int64)
        slots: Array = mix(keys.view(np.uint64)) % np.uint64(_SLOTS)
        return slots.astype(np.int64)
