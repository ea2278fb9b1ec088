"""The order in which the rows of two streams arrive, and how that order is cut into steps."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from tidegate.types import FAR, SIDES, Clocks, InputError, Last, Rows, Side, StepSize, check_choice

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tidegate.types import Array, Time, Window


class EarliestTimes(NamedTuple):
    """The smallest time that a row yet to come may have, for each side."""

    left: Time
    right: Time


class Moment(NamedTuple):
    """When a step happens: the clocks after it, and what may still come at its begin and after its end."""

    clocks: Clocks
    begin: EarliestTimes
    end: EarliestTimes

    @property
    def now(self) -> Time:
        """The larger clock."""
        return self.clocks.now


@dataclass(frozen=True)
class Arrivals:
    """Two streams in order of arrival: by time, left before right at equal times.

    With a lateness, a row arrives at the largest time of its stream so far, and may have an older time. If one side
    is ahead, a row of the other side arrives together with rows of that side whose times are larger by this much.

    Parameters
    ----------
    left, right
        The rows of each side, in order of arrival.
    at_left, at_right
        When each row arrives, in the time of the side that is ahead.
    order
        For each side, the positions of these rows among the given ones.
    lateness, late
        The allowed lateness, and the number of rows that were later.
    behind
        How far each side is behind the other; 0 for a side that is not.
    """

    left: Rows
    right: Rows
    at_left: Array
    at_right: Array
    order: tuple[Array, Array]
    lateness: Time
    late: int
    behind: Clocks

    def __len__(self) -> int:
        return len(self.left) + len(self.right)

    def cuts(self, size: StepSize, at: Time | None = None) -> Array:
        """The ends of steps, as (left, right) numbers of rows that have arrived by then.

        A cut is added at the time `at`, so that no step has rows from before and after it.
        """
        if size == "instant":
            instants = np.union1d(self.at_left, self.at_right)
            return np.stack([np.searchsorted(times, instants, side="right") for times in self._at], axis=1)
        ends = np.append(np.arange(size, len(self), size), len(self)) if len(self) else np.empty(0, np.int64)
        cuts = np.stack([np.searchsorted(rows.id, ends) for rows in (self.left, self.right)], axis=1)
        if at is not None:
            cuts = np.unique(np.concatenate((cuts, [self.before(at)])), axis=0)
        return cuts[cuts.any(axis=1)]

    def before(self, time: Time) -> tuple[int, int]:
        """The number of rows of each side that arrive before this time."""
        left, right = (int(np.searchsorted(times, time)) for times in self._at)
        return left, right

    def steps(self, cuts: Array, *, whole_instants: bool) -> Iterator[tuple[Rows, Rows, Moment]]:
        """Yield the arrivals of each step."""
        l0 = r0 = 0
        cuts = cuts[np.diff(cuts.sum(axis=1), prepend=0) > 0]
        for (l1, r1), moment in zip(cuts.tolist(), self._moments(cuts, whole_instants), strict=True):
            yield self._part(self.left, l0, l1), self._part(self.right, r0, r1), moment
            l0, r0 = l1, r1

    def _part(self, rows: Rows, start: int, stop: int) -> Rows:
        part = rows.take(slice(start, stop))
        # An operator takes arrivals in order of time, which with a lateness is not that of arrival.
        return part.take(np.argsort(part.time, kind="stable")) if self.lateness else part

    def _moments(self, cuts: Array, whole_instants: bool) -> Iterator[Moment]:
        """The moment of each step that ends at these cuts; every step has rows."""
        begins = np.concatenate((np.zeros((1, len(SIDES)), cuts.dtype), cuts[:-1]))
        some = cuts > begins
        firsts, lasts = [], []
        for side, times in enumerate(self._at):
            padded = times if len(times) else np.zeros(1, times.dtype)
            at_first, at_last = np.minimum(begins[:, side], len(padded) - 1), np.maximum(cuts[:, side] - 1, 0)
            firsts.append(np.where(some[:, side], padded[at_first], FAR))
            lasts.append(np.where(some[:, side], padded[at_last], -FAR))
        nows = np.maximum(*lasts)
        first = np.minimum(*firsts) - self.lateness
        end = floors_after(nows - self.lateness, lasts[1] == nows, whole_instants=whole_instants)
        clocks, begin, after = (
            zip(
                *(self._own_times(side, at).tolist() for side, at in zip(SIDES, both, strict=True)),
                strict=True,
            )
            for both in ((nows, nows), (first, first), end)
        )
        for reached, least, least_after in zip(clocks, begin, after, strict=True):
            yield Moment(Clocks(*reached), EarliestTimes(*least), EarliestTimes(*least_after))

    def _own_times(self, side: Side, at: Array) -> Array:
        """The event times of a side at these times of arrival."""
        behind = self.behind.of(side)
        if not behind:
            return at
        times: Array = at - behind
        # The sum and the difference of floats are rounded, and must not exceed the time of a row that arrives then.
        return times - np.spacing(np.maximum(abs(at), behind)) if times.dtype.kind == "f" else times

    @property
    def _at(self) -> tuple[Array, Array]:
        return self.at_left, self.at_right


class FloorColumns(NamedTuple):
    """The `EarliestTimes` of many steps."""

    left: Array
    right: Array


def floors_after(nows: Array, right_arrived: Array, *, whole_instants: bool) -> FloorColumns:
    """The smallest times that later rows may have, after steps that end at `nows`.

    Left rows arrive before right rows at equal times: after a right row, later left rows have larger times.
    """
    above = nows + 1 if nows.dtype.kind == "i" else np.nextafter(nows, np.inf)
    if whole_instants:
        return FloorColumns(above, above)
    return FloorColumns(np.where(right_arrived, above, nows), nows)


def step_ends(cuts: Array) -> Array:
    """The number of rows of both sides that have arrived by the end of each step that has any."""
    ends = cuts[:, 0] + cuts[:, 1]
    return ends[np.diff(ends, prepend=0) > 0]


def arrange(
    left: dict[str, Array],
    right: dict[str, Array],
    window: Window,
    lateness: Time | None,
    ahead: tuple[Side, Time | timedelta] | None = None,
) -> Arrivals:
    """Merge two streams, given as columns `key`, `time` and optionally `importance`.

    Parameters
    ----------
    left, right
        The columns of each side.
    window
        A `Last` window adds the counts that it needs.
    lateness
        None: rows arrive by time, in whatever order they are given. A number: they arrive in the given order, and a
        row older than its stream's largest time by more than this is late and dropped.
    ahead
        A side, and how far it is ahead of the other: rows of that side arrive together with rows of the other side
        whose times are smaller by this much. None: rows of equal times arrive together.
    """
    if lateness is not None:
        if not isinstance(lateness, int | float | np.number) or not np.isfinite(lateness) or lateness < 0:
            raise InputError(f"lateness {lateness!r} is not a span of time; give a finite number, at least 0")
        if window.counted:
            raise InputError(
                f"a Last window counts rows in order, so lateness={lateness!r} cannot be; use None"
            )
    behind = _behind(ahead, window)
    sides = [_by_arrival(columns["time"], lateness) for columns in (left, right)]
    at = [clock + late if late else clock for (_, clock), late in zip(sides, behind, strict=True)]
    places = [np.arange(len(times)) for times in at]
    ids = (
        places[0] + np.searchsorted(at[1], at[0], side="left"),
        places[1] + np.searchsorted(at[0], at[1], side="right"),
    )
    rows = [
        _rows(side, columns, order, number, place, window)
        for side, columns, (order, _), number, place in zip(
            SIDES, (left, right), sides, ids, places, strict=True
        )
    ]
    late = len(left["time"]) + len(right["time"]) - sum(map(len, at))
    return Arrivals(rows[0], rows[1], at[0], at[1], (sides[0][0], sides[1][0]), lateness or 0, late, behind)


def _behind(ahead: tuple[Side, Time | timedelta] | None, window: Window) -> Clocks:
    """How far each side is behind the other, from what the user gave."""
    if ahead is None:
        return Clocks.both(0)
    if not isinstance(ahead, tuple | list) or len(ahead) != len(SIDES):
        raise InputError(f"ahead {ahead!r} is not a side and a span of time; write ahead=('left', 500)")
    side, span = ahead
    check_choice(side, Side, "side")
    if isinstance(span, timedelta):
        span //= timedelta(microseconds=1)
    if isinstance(span, bool) or not isinstance(span, int | float | np.number) or not 0 <= span < FAR:
        raise InputError(f"ahead {ahead!r} has no span of time; give a finite number, at least 0")
    if window.counted and span:
        raise InputError(
            f"a Last window counts rows in order of arrival, so ahead={ahead!r} cannot be; use None"
        )
    return Clocks(0, span) if side == "left" else Clocks(span, 0)


def _by_arrival(time: Array, lateness: Time | None) -> tuple[Array, Array]:
    """The rows that arrive, in order, and the clock of each."""
    if lateness is None:
        in_order = bool((time[1:] >= time[:-1]).all())
        order = np.arange(len(time)) if in_order else np.argsort(time, kind="stable")
        return order, time if in_order else time[order]
    clock = np.maximum.accumulate(time) if len(time) else time
    order = np.flatnonzero(time >= clock - lateness)
    return order, clock[order]


def _rows(
    side: Side, columns: dict[str, Array], order: Array, ids: Array, places: Array, window: Window
) -> Rows:
    ordered = {name: column[order] for name, column in columns.items()}
    counts = {}
    if window.counted:
        mine, others = (places + 1, ids - places) if len(ids) else (places, places)
        by_side = {"left": mine, "right": others} if side == "left" else {"left": others, "right": mine}
        for name, span in (("left", window.left), ("right", window.right)):
            if isinstance(span, Last):
                # Of the same type as time, so that one compiled loop serves all combinations of windows.
                counts[f"{name}s"] = by_side[name].astype(columns["time"].dtype)
    own = {"id": ids, "matches": np.zeros(len(ids), np.int64)}
    return Rows.from_columns(side, ordered | own | counts)
