"""The state of a running join between steps: rows, clocks and counts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Self

import numpy as np

from tidegate.engine.buffer import Buffer
from tidegate.engine.matching import window_axis
from tidegate.engine.tally import Tally
from tidegate.types import FAR, FOREVER, SIDES, Clocks, Last, Rows, Window, parts_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from tidegate.engine.arrivals import EarliestTimes
    from tidegate.engine.removals import StepRemovals
    from tidegate.types import Array, Budget, Side, Time

NO_ROWS: Final = np.empty(0, np.int64)


@dataclass(frozen=True)
class Departed:
    """Rows of one side that left in a step, and their positions among its candidates."""

    rows: Rows
    places: Array


@dataclass(frozen=True)
class StepOutcome:
    """What a step did.

    A step's candidates are the buffered rows, then the arrivals. `matched` are the positions of left candidates that
    were removed because they have a match, if requested.
    """

    results: int
    expired: dict[Side, Departed]
    evicted: dict[Side, Departed]
    candidates: dict[Side, int]
    matched: Array


def is_expired(axis: Any, floor: Any, length: Any) -> Any:
    """Whether a row can match no later row: `axis` is its time or count, `floor` the smallest of later rows."""
    return floor - axis > length


def lifetime(time: Any, now: Any, longest: Any) -> Any:
    """How long a row was in memory: an expired row left when its window ended, even if a later step removed it."""
    return np.maximum(np.minimum(now - time, longest), 0)


class JoinState:
    """The buffers of both sides, what has arrived, and what was counted.

    Parameters
    ----------
    window
        How long rows of each side stay joinable.

    Attributes
    ----------
    number
        The number of steps that have ended.
    arrived, latest
        By side: the number of rows that have arrived, and the largest time among them.
    clocks
        The clocks of both sides at the end of the last step.
    """

    def __init__(self, window: Window) -> None:
        self.window = window
        self.tally = Tally()
        self.number = 0
        self.arrived: dict[Side, int] = dict.fromkeys(SIDES, 0)
        self.latest: dict[Side, Time] = dict.fromkeys(SIDES, -FAR)
        self.clocks = Clocks.both(-FAR)
        self.buffers = {side: Buffer(side) for side in SIDES}

    @property
    def rows(self) -> int:
        """The number of buffered rows."""
        return sum(map(len, self.buffers.values()))

    @property
    def nbytes(self) -> int:
        """The bytes of the buffered rows, payload included."""
        return sum(buffer.nbytes for buffer in self.buffers.values())

    def since(self, clocks: Clocks) -> Clocks:
        """The clocks before a step that ends at these; before the first step, the same."""
        if self.clocks.now == -FAR:
            return clocks
        # The clock of a side that had no row yet may have been too far.
        return Clocks(*map(min, self.clocks, clocks))

    def candidates(self) -> dict[Side, Rows]:
        """The rows of each side as they are now: views, valid until the next change."""
        return {side: self.buffers[side].rows for side in SIDES}

    def append(self, rows: Rows) -> None:
        """Add arrivals behind the buffered rows."""
        side = rows.side
        self.buffers[side].append(rows)
        self.arrived[side] += len(rows)
        if len(rows):
            self.latest[side] = max(self.latest[side], rows.time[-1].item())

    def expired(self, rows: Rows, floors: EarliestTimes, arriving: int = 0) -> Array:
        """The positions of rows whose window has passed; `arriving` rows of the side are not yet counted."""
        span = self.window.left if rows.side == "left" else self.window.right
        if span is None:
            return NO_ROWS
        floor = floors.right if rows.side == "left" else floors.left
        if isinstance(span, Last):
            floor = self.arrived[rows.side] - arriving
        axis, length = window_axis(rows, rows.side), self.window.reach(rows.side)
        if not len(axis) or not is_expired(axis.min(), floor, length):
            return NO_ROWS
        return np.flatnonzero(is_expired(axis, floor, length))

    def finish_step(
        self,
        candidates: dict[Side, Rows],
        removals: StepRemovals,
        clocks: Clocks,
        results: int,
        matched: Array = NO_ROWS,
    ) -> StepOutcome:
        """Drop the rows that leave, count them, and report what the step did."""
        outcome = StepOutcome(
            results=results,
            expired={
                side: self._record_departures(rows, removals.expired[side], clocks, expired=True)
                for side, rows in candidates.items()
            },
            evicted={
                side: self._record_departures(rows, removals.evicted[side], clocks, expired=False)
                for side, rows in candidates.items()
            },
            candidates={side: len(rows) for side, rows in candidates.items()},
            matched=matched,
        )
        for side in SIDES:
            self.buffers[side].drop(removals.leaving(side))
        self.tally.record_held(self.rows, self.nbytes)
        self.number += 1
        return outcome

    def _record_departures(self, rows: Rows, places: Array, clocks: Clocks, *, expired: bool) -> Departed:
        if not len(places):
            return Departed(rows.take(slice(0)), places)
        gone = rows.take(places)
        span = self.window.left if rows.side == "left" else self.window.right
        ends = expired and span is not None and not isinstance(span, Last)
        # A row arrived when its own side's clock had its time, and its window ends by the other side's clock.
        longest = self.window.reach(rows.side) + clocks.lead(rows.side) if ends else FOREVER
        self.tally.record_lifetimes(lifetime(gone.time, clocks.of(rows.side), longest))
        if expired:
            self.tally.expired += len(gone)
        else:
            self.tally.evicted += len(gone)
        return Departed(gone, places)

    def snapshot(self) -> dict[str, Array]:
        """All of it, as named arrays."""
        state = {
            f"{side}.{name}": column
            for side, buffer in self.buffers.items()
            for name, column in buffer.rows.columns().items()
        }
        state["tally"] = self.tally.as_array()
        state["counts"] = np.array([self.number, *self.arrived.values()], np.int64)
        state["latest"] = np.array([*self.latest.values(), self.clocks.now])
        state["clocks"] = np.array(self.clocks)
        return state

    def restore(self, state: Mapping[str, Array]) -> None:
        """Continue from what `snapshot` returned."""
        self.tally = Tally.from_array(state["tally"])
        self.number, *arrived = state["counts"].tolist()
        self.arrived = dict(zip(SIDES, arrived, strict=True))
        *latest, now = state["latest"].tolist()
        self.latest = dict(zip(SIDES, latest, strict=True))
        # Older states have one clock for both sides.
        self.clocks = Clocks(*state["clocks"].tolist()) if "clocks" in state else Clocks.both(now)
        parts = parts_of(state)
        for side in SIDES:
            self.buffers[side] = Buffer.of(Rows.from_columns(side, parts[side]))

    @classmethod
    def read(cls, data: Mapping[str, Array]) -> Self:
        """The state in an operator's snapshot, for inspection: its window is not known."""
        state = cls(Window(None, None))
        state.restore(data)
        return state


def excess(rows: dict[Side, Rows], removals: StepRemovals, sides: Sequence[Side], budget: Budget) -> int:
    """By how much the staying rows of some sides exceed a budget; negative if they fit."""
    if budget.unit == "rows":
        return sum(removals.size(side) for side in sides) - budget.limit
    staying = (
        rows[side] if removals.keeps_all(side) else rows[side].take(removals.staying(side)) for side in sides
    )
    return sum(some.nbytes for some in staying) - budget.limit
