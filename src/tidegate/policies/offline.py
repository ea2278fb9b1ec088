"""Keep the rows that the optimal plan keeps, given everything that will arrive."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Literal

import numpy as np

from tidegate.policies.min_cost_flow import least_cost_flow
from tidegate.policies.policy import Need, Policy, RunningPolicy
from tidegate.types import SIDES, InputError, check_choice

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tidegate.types import Array, Budget, Future, Order, Rows, Setting, Side, Time


Weigh = Literal["results", "importance"]


@dataclass(frozen=True)
class Offline(Policy):
    """The upper bound: no policy can produce more results from these streams within this budget.

    Which rows to keep, and until when, is decided at the start, from the recorded streams, as a min-cost flow. The
    budget flows along a time line. A unit of flow may keep a row: it leaves the line when the row arrives, gains the
    row's matches whenever there are some, and may return to the line after any of them. A row's score is the step
    after which the plan drops it. So rows that the plan still needs rank above all others and always fit; free space
    keeps rows that gain nothing.

    Of two rows of one side and key, the newer matches everything that the older one still will. So of several such
    rows it is best to keep the newest. They share one path through the network, which grows with the rows and not
    with the results. If that does not hold (keys compared other than by equality, a negative end of the window),
    every row has its own path.

    It runs only in `tidegate.simulate`, with the order "probe-first": if rows are evicted before matching, the gain
    of a row depends on which others are kept, and a flow cannot express that. Rows out of order are refused, because
    the operator then evicts overdue rows itself. All results of the exact join are in memory while the plan is
    computed; the time grows with the rows times the budget.

    Parameters
    ----------
    weigh
        What to maximize: "results", or their "importance" (then every row has its own path).

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
    The paper refers to a report for the network; there, it has a node for each row at each time. This one has a node
    for each time at which rows of a key match, with the same optimum. Importance that is not whole is
    rounded, to a 2**31st of the total of the exact join.
    """

    name: ClassVar[str] = "offline"
    use_when: ClassVar[str] = "An upper bound in simulations: the most results that any policy can produce."
    needs: ClassVar[frozenset[Need]] = frozenset({"future"})
    orders: ClassVar[tuple[Order, ...]] = ("probe-first",)

    weigh: Weigh = "results"

    def __post_init__(self) -> None:
        check_choice(self.weigh, Weigh, "weigh")

    def start(self, setting: Setting) -> RunningPolicy:
        """Compute the plan."""
        future = setting.future
        if future is None:
            raise InputError(
                "policy 'offline' needs the future arrivals; use it in tidegate.simulate, on recorded streams"
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
            groups, gains = np.arange(len(steps)), _as_whole_numbers(future.importance)
        else:
            groups, gains = _groups(setting, future), np.ones(len(future.pairs.left), np.int64)
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
            _plan(until, rows_held, matched, gained, steps, groups, room)
        return OfflinePlan(until)


class OfflinePlan(RunningPolicy):
    """A running `Offline`: for each row number, the step after which the plan drops the row."""

    def __init__(self, until: Array) -> None:
        self._until = until

    def is_fixed(self) -> bool:
        """Always: the plan is computed before the first row arrives."""
        return True

    def scores(self, rows: Rows, clock: Time) -> Array:  # noqa: ARG002 - the plan does not change
        """Score by how long the plan keeps a row."""
        return self._until[rows.id].astype(np.float64)


def _room(share: Budget | None, future: Future) -> int:
    """The number of rows that fit in a pool; all recorded rows have the same size."""
    if share is None:
        return 0
    size = future.left.row_bytes if share.unit == "bytes" else 1
    return min(share.limit // size, len(future.steps))


def _groups(setting: Setting, future: Future) -> Array:
    """The group of each row; in a group, a newer row matches everything that an older one still will."""
    sides = future.left, future.right
    closed = all(setting.window.reach(side) >= 0 for side in SIDES)
    groups = np.arange(len(future.steps))
    if (
        setting.condition == "="
        and closed
        and not any(_waits(setting, *pair) for pair in (sides, sides[::-1]))
    ):
        keys = np.unique(np.concatenate([rows.key for rows in sides]), return_inverse=True)[1]
        groups[future.left.id] = 2 * keys[: len(future.left)]
        groups[future.right.id] = 2 * keys[len(future.left) :] + 1
    return groups


def _waits(setting: Setting, rows: Rows, others: Rows) -> bool:
    """Whether a row arrives before a row of the other side that is too old for it, which an older row matches."""
    if setting.window.counted:
        return False
    later = np.searchsorted(others.id, rows.id)
    before = later < len(others)
    oldest = rows.time[before] - setting.window.reach(others.side)
    return bool((others.time[later[before]] < oldest).any())


def _as_whole_numbers(importance: Array) -> Array:
    """Importance as proportional whole numbers, small enough that the gain of a row in a step is below 2**32."""
    if not len(importance):
        return importance.astype(np.int64)
    scale = 2.0**31 / max(float(importance.sum()), 1.0)
    exact = scale >= 1 and (importance == np.floor(importance)).all()
    return np.rint(importance * (1 if exact else scale)).astype(np.int64)


def _plan(until: Array, rows: Array, at: Array, gains: Array, steps: Array, groups: Array, room: int) -> None:
    """Write into `until` how long to keep rows, if the row `rows[i]` gains `gains[i]` by a match in the step `at[i]`.

    An encounter is a step in which rows of one group match. The flow of all kept rows of the group enters its first
    node, passes to its second by arcs that gain the matches of each row, and leaves to the next encounter or to the
    time line.
    """
    if not len(rows) or not room:
        return
    stretch, which = np.unique(_coded(rows, at), return_inverse=True)
    gain = np.zeros(len(stretch), np.int64)
    np.add.at(gain, which, gains)
    row, at = _decoded(stretch)
    met, encounter = np.unique(_coded(groups[row], at), return_inverse=True)
    group_met, met_at = _decoded(met)
    level, wide = np.unique(_coded(encounter, gain), return_counts=True)
    passed, gained = _decoded(level)
    first = np.flatnonzero(np.diff(row, prepend=-1))
    entry, entering = np.unique(_coded(encounter[first], steps[row[first]]), return_counts=True)
    entered, entered_at = _decoded(entry)
    onward = np.flatnonzero(np.diff(group_met) == 0)

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

    # Of each group the newest rows are kept, as many as there is flow: arrived rows less kept rows are dropped rows.
    # The sums go on from one group to the next, because the flow of each begins and ends with 0.
    when = np.concatenate((met_at, entered_at))
    order = np.lexsort((when, np.concatenate((group_met, group_met[entered]))))
    dropped = np.cumsum(np.concatenate((leaves, entering - enters))[order])
    by_group = row[first][np.argsort(groups[row[first]], kind="stable")]
    until[by_group] = when[order][np.searchsorted(dropped, np.arange(len(by_group)), side="right")]


_HALF = 32


def _coded(high: Array, low: Array) -> Array:
    """Two columns as one, that sorts by the first and then the second."""
    return (high.astype(np.int64) << _HALF) | low


def _decoded(code: Array) -> tuple[Array, Array]:
    return code >> _HALF, code & ((1 << _HALF) - 1)
