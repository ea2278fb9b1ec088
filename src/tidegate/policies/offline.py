"""Keep the rows that the best of all plans keeps, knowing everything that will arrive."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Literal

import numpy as np

from tidegate.policies.min_cost_flow import least_cost_flow
from tidegate.policies.policy import Need, Policy
from tidegate.types import SIDES, InputError, check_choice

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tidegate.types import Array, Budget, Future, Order, Rows, Setting, Side, Time


Weigh = Literal["results", "importance"]


@dataclass(frozen=True)
class Offline(Policy):
    """The yardstick: no policy can get more results from these streams within this budget.

    Which rows to hold, and until when, is decided at the start, from the recorded streams, as a min-cost flow. The
    budget flows along a line of time. On its way a unit may hold a row: it leaves the line when the row arrives,
    gains what the row matches each time that it does, and may return to the line after any of these. A row's score
    is the step after whose matching the plan lets it go, so that whatever the plan still wants is ranked above
    whatever it does not, and always fits; room that is left over holds rows that gain nothing.

    Of two rows of one side and key the newer matches whatever the older one still will, so that any number of
    them held are best the newest. They share one path through the network, which therefore grows with the rows
    and not with the results. Where that does not hold (keys compared other than by equality, a negative end of
    the window) every row has its own.

    It runs in `tidegate.simulate` alone, with the order "probe-first": if room is made before matching, what a
    row gains depends on which others are held, and no flow says that. Rows out of order are refused, as the
    operator itself then decides who goes first. All results of the exact join are held in memory while the plan is
    made; the time that takes grows with the rows times the budget.

    Parameters
    ----------
    weigh
        What to get most of: "results", or their "importance", where every row has a path of its own.

    Examples
    --------
    >>> import tidegate as tg
    >>> stream = {"key": [1, 2, 3, 1], "time": [0, 1, 2, 3]}
    >>> tg.simulate(stream, stream, window=(9, 9), budget=2, policy="offline").results
    5

    References
    ----------
    On Joining and Caching Stochastic Streams, sections 2 and 8 (OPT-offline).

    Deviations
    ----------
    The paper leaves the network to a report; there, a node stands for each row at each time. This one has a node
    for each time at which rows of a key match, which gives the same optimum. Importance that is not whole is
    rounded, to a 2**31st of all that the exact join has.
    """

    name: ClassVar[str] = "offline"
    use_when: ClassVar[str] = "A yardstick in simulations: the most results that any policy can produce."
    needs: ClassVar[frozenset[Need]] = frozenset({"future"})
    orders: ClassVar[tuple[Order, ...]] = ("probe-first",)

    weigh: Weigh = "results"

    def __post_init__(self) -> None:
        check_choice(self.weigh, Weigh, "weigh")

    def is_fixed(self) -> bool:
        """It is: the plan is made before the first row arrives."""
        return True

    def start(self, setting: Setting) -> Policy:
        """Make the plan."""
        future = setting.future
        if future is None:
            raise InputError(
                "policy 'offline' needs to know what will arrive; use it in tidegate.simulate, on recorded streams"
            )
        if setting.order not in self.orders:
            raise InputError(f"policy 'offline' cannot plan for order={setting.order!r}; use 'probe-first'")
        for rows in (future.left, future.right):
            if (rows.time[1:] < rows.time[:-1]).any():
                raise InputError("policy 'offline' cannot plan for rows out of order; use lateness=None")
        rooms = [_room(share, future) for share in setting.shares]
        pools: Sequence[tuple[Side, ...]] = [SIDES] if len(rooms) == 1 else [(side,) for side in SIDES]
        steps = future.steps
        if self.weigh == "importance":
            if future.importance is None:
                raise InputError("policy 'offline' has no importance to weigh; add an importance column")
            kin, gains = np.arange(len(steps)), _whole(future.importance)
        else:
            kin, gains = _kin(setting, future), np.ones(len(future.pairs.left), np.int64)
        before = steps[future.pairs.left] < steps[future.pairs.right]
        after = steps[future.pairs.left] > steps[future.pairs.right]
        held: dict[Side, tuple[Array, Array, Array]] = {
            "left": (future.pairs.left[before], steps[future.pairs.right[before]], gains[before]),
            "right": (future.pairs.right[after], steps[future.pairs.left[after]], gains[after]),
        }
        until = steps.copy()
        for sides, room in zip(pools, rooms, strict=True):
            held_by = zip(*(held[side] for side in sides), strict=True)
            rows_held, matched, gained = map(np.concatenate, held_by)
            _plan(until, rows_held, matched, gained, steps, kin, room)
        return _Planned(until)

    def scores(self, rows: Rows, now: Time) -> Array:  # noqa: ARG002 - what was not started has no plan
        """Refuse: there is no plan before the start."""
        raise InputError(f"{self!r} ranks rows only once it has started; use it in tidegate.simulate")


class _Planned(Policy):
    """A plan: for each row number, the step after whose matching the row may go."""

    def __init__(self, until: Array) -> None:
        self._until = until

    def is_fixed(self) -> bool:
        """It is."""
        return True

    def scores(self, rows: Rows, now: Time) -> Array:  # noqa: ARG002 - the plan does not change
        """Score by how long the plan holds a row."""
        return self._until[rows.id].astype(np.float64)


def _room(share: Budget | None, future: Future) -> int:
    """How many rows a pool holds; recorded rows are all of one size."""
    if share is None:
        return 0
    size = future.left.row_bytes if share.unit == "bytes" else 1
    return min(share.limit // size, len(future.steps))


def _kin(setting: Setting, future: Future) -> Array:
    """A number for each row; of rows with the same one, the newer matches whatever the older one still will."""
    sides = future.left, future.right
    closed = all(setting.window.length(side) >= 0 for side in SIDES)
    kin = np.arange(len(future.steps))
    if setting.condition == "=" and closed:
        keys = np.unique(np.concatenate([rows.key for rows in sides]), return_inverse=True)[1]
        kin[future.left.id] = 2 * keys[: len(future.left)]
        kin[future.right.id] = 2 * keys[len(future.left) :] + 1
    return kin


def _whole(importance: Array) -> Array:
    """Importance as whole numbers in proportion, few enough for all that a row gains in a step to be below 2**32."""
    if not len(importance):
        return importance.astype(np.int64)
    scale = 2.0**31 / max(float(importance.sum()), 1.0)
    exact = scale >= 1 and (importance == np.floor(importance)).all()
    return np.rint(importance * (1 if exact else scale)).astype(np.int64)


def _plan(until: Array, rows: Array, at: Array, gains: Array, steps: Array, kin: Array, room: int) -> None:
    """Write into `until` how long to hold rows, if the row `rows[i]` gains `gains[i]` by a match in the step `at[i]`.

    An encounter is a step in which rows of one kin match. All of the kin that are held come to its first node,
    pass to its second by arcs that gain what each of them matches, and go on to the next encounter or back to the
    line of time.
    """
    if not len(rows) or not room:
        return
    stretch, which = np.unique(_coded(rows, at), return_inverse=True)
    gain = np.zeros(len(stretch), np.int64)
    np.add.at(gain, which, gains)
    row, at = _decoded(stretch)
    met, encounter = np.unique(_coded(kin[row], at), return_inverse=True)
    kin_met, met_at = _decoded(met)
    level, wide = np.unique(_coded(encounter, gain), return_counts=True)
    passed, gained = _decoded(level)
    first = np.flatnonzero(np.diff(row, prepend=-1))
    entry, entering = np.unique(_coded(encounter[first], steps[row[first]]), return_counts=True)
    entered, entered_at = _decoded(entry)
    onward = np.flatnonzero(np.diff(kin_met) == 0)

    times = np.unique(np.concatenate((entered_at, met_at)))
    ranked = np.argsort(np.concatenate((3 * met_at, 3 * met_at + 1, 3 * times + 2)), kind="stable")
    number = np.empty(len(ranked), np.int64)
    number[ranked] = np.arange(len(ranked))
    come, gone, line = np.split(number, [len(met), 2 * len(met)])

    def free(tail: Array, head: Array, wide: Array | int) -> tuple[Array, Array, Array, Array]:
        return tail, head, np.broadcast_to(wide, tail.shape), np.zeros(len(tail), np.int64)

    arcs = (
        free(line[np.searchsorted(times, entered_at)], come[entered], entering),
        free(gone, line[np.searchsorted(times, met_at)], room),
        free(gone[onward], come[onward + 1], room),
        free(line[:-1], line[1:], room),
        (come[passed], gone[passed], wide, -gained),
    )
    tail, head, capacity, cost = map(np.concatenate, zip(*arcs, strict=True))
    flow = least_cost_flow(tail, head, capacity, cost, room)
    enters, leaves = flow[: len(entry)], flow[len(entry) : len(entry) + len(met)]

    # Of each kin the newest are held, as many as there is flow: how many have come less how many are held is how
    # many were let go, one kin after the other, as the flow of each begins and ends with none.
    when = np.concatenate((met_at, entered_at))
    order = np.lexsort((when, np.concatenate((kin_met, kin_met[entered]))))
    let_go = np.cumsum(np.concatenate((leaves, entering - enters))[order])
    by_kin = row[first][np.argsort(kin[row[first]], kind="stable")]
    until[by_kin] = when[order][np.searchsorted(let_go, np.arange(len(by_kin)), side="right")]


_HALF = 32


def _coded(high: Array, low: Array) -> Array:
    """Two columns as one, that sorts by the first and then the second."""
    return (high.astype(np.int64) << _HALF) | low


def _decoded(code: Array) -> tuple[Array, Array]:
    return code >> _HALF, code & ((1 << _HALF) - 1)
