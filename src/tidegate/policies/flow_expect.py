"""Keep the rows that the best plan keeps, by what may be expected to arrive."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Final, Self

import numpy as np

from tidegate.models import Process
from tidegate.models.decay import half_life, horizon_for
from tidegate.policies.expected_arrivals import Foretold, Learning, Outlook, check_processes
from tidegate.policies.min_cost_flow import least_cost_flow
from tidegate.policies.policy import Policy, need_numbers
from tidegate.policies.selection import best
from tidegate.types import SIDES, InputError, Learned, other_side

if TYPE_CHECKING:
    from tidegate.models.processes.arrival_forecast import ArrivalForecast
    from tidegate.types import Array, Budget, Rows, Setting, Side, Step, Time

_AHEAD: Final = 16
_SCALE: Final = 1 << 30
"""Costs of a flow are whole numbers; this many stand for one result."""


@dataclass(frozen=True)
class FlowExpect(Policy):
    """At every step, plan who is held how long over some steps ahead, and keep whom the best plan keeps now.

    For small caches, and as a yardstick. Where `heeb` guesses how long a row will stay, this weighs all sequences of
    decisions that can be laid down now, rows that are still to come included. What a plan cannot say is "if this
    comes, hold that": so it is not the optimum, and costs far more than `heeb`, which often gets as many results.

    A plan is a flow through a network, of as many units as rows fit, at the least cost:

    - a line of nodes, one for the end of this step and of each that is looked ahead to; arcs lead from each to the
      next, as wide as the budget, for room that holds nothing;
    - a chain of nodes for each row, those here and those to come, one for each step in which it may match: the row
      is there then, and has been since it came. From the line, where the row comes, an arc leads to its first node,
      and from each node to its next: one unit wide, for holding the row until then, at a cost of less than 0, the
      results to be expected there. Of a row that is here these are the chances of its key among the other side's
      rows of that step, of one still to come the chances that both bring the same;
    - an arc from each of these nodes back to the line, where the row is let go.

    The rows here whose first arc carries flow stay. Room that is left over holds those that are expected to bring
    most, then the newest. There are as many nodes as pairs of a row and a step with a chance to match: about the
    rows that fit times `ahead`, plus twice `ahead` squared; each step solves anew. Some tens of rows are fine.

    Parameters
    ----------
    left, right
        The process that each side's keys follow, one row at each time step, whose number is the row's time; None for
        both to learn the shares of the keys. The rates at which rows come are learned in either case.
    ahead
        How many time steps to look ahead; without processes, how many rows of the side that brings more.
    horizon
        The time in which learned shares and rates lose half their weight; by default some windows.

    Examples
    --------
    >>> import numpy as np
    >>> import tidegate as tg
    >>> trend = tg.models.LinearTrend(speed=1, offset=0, noise=tg.models.Noise(bound=8))
    >>> time, rng = np.arange(300), np.random.default_rng(1)
    >>> left, right = ({"time": time, "key": time + rng.integers(-8, 9, 300)} for _ in range(2))
    >>> settings = dict(window=(None, None), budget=8, step="instant")
    >>> tg.simulate(left, right, policy=tg.policies.FlowExpect(left=trend, right=trend), **settings).results
    173
    >>> [tg.simulate(left, right, policy=name, **settings).results for name in ("random", "offline")]
    [124, 293]

    References
    ----------
    On Joining and Caching Stochastic Streams, sections 4, 7.1 and 8 (FLOWEXPECT).

    Deviations
    ----------
    The paper leaves the network to a report; there, a node stands for each row at each time, here only where the row
    may match, which gives the same optimum. Chances are rounded to 2**-30, so that a plan falls short of the best by
    at most one such part for each row held at each step. Steps that are looked ahead to are taken to bring as many
    rows as this one did. Where one side is slower, each of its rows to come counts by its rate beside the other
    side's. Rows of unequal size in bytes are planned for as if each had the mean size.
    """

    name: ClassVar[str] = "flow_expect"
    use_when: ClassVar[str] = "Small buffers, where planning several steps ahead is worth its cost."
    by_key: ClassVar[bool] = True

    left: Process | None = None
    right: Process | None = None
    ahead: int = _AHEAD
    horizon: float | None = None

    def __post_init__(self) -> None:
        check_processes("flow_expect", self.left, self.right)
        if isinstance(self.ahead, bool) or not isinstance(self.ahead, int) or self.ahead < 1:
            raise InputError(f"ahead is {self.ahead!r}; give a whole number of steps, at least 1")
        half_life(self.horizon)

    def start(self, setting: Setting) -> Policy:
        """Take the processes that were given, or begin to learn shares and rates."""
        if self.left is not None:
            need_numbers(setting, "flow_expect was given processes (left=, right=)")
        return _Planning(self, setting)

    def scores(self, rows: Rows, now: Time) -> Array:
        """Nothing is known before a join has started."""
        raise InputError(
            f"flow_expect has observed nothing to score {len(rows)} rows by at {now}; let a join start it"
        )

    @classmethod
    def made_of(cls, parameters: dict[str, Any]) -> Self:
        """Make it again from what `parameters` told."""
        processes: dict[str, Any] = {
            side: parameters[side] and Process.from_parameters(parameters[side]) for side in SIDES
        }
        return cls(**parameters | processes)


class _Planning(Policy):
    """`FlowExpect` at work."""

    def __init__(self, config: FlowExpect, setting: Setting) -> None:
        self.config = config
        self._spans = setting.window.lifetimes()
        horizon = horizon_for(config.horizon, max(self._spans.values()))
        self._known: Outlook = (
            Foretold({"left": config.left, "right": config.right}, config.ahead, horizon)
            if config.left and config.right
            else Learning(config.ahead, horizon)
        )
        self._arrived = 2

    def __repr__(self) -> str:
        return repr(self.config)

    def kind(self) -> str:
        """Also what it knows of the rows to come."""
        return f"{super().kind()} of {type(self._known).__name__}"

    def observe(self, step: Step) -> None:
        """Learn what came, and how many rows a step brings."""
        self._arrived = max(1, sum(len(step.rows[side]) - step.fresh[side] for side in SIDES))
        self._known.observe(step)

    def _moments(self, coming: dict[Side, ArrivalForecast]) -> dict[Side, Array]:
        """In which step, counted from this one, each row comes: in order of time, left before right."""
        times = np.concatenate([coming[side].times for side in SIDES])
        moment = np.empty(len(times), np.int64)
        moment[np.argsort(times, kind="stable")] = np.arange(len(times)) // self._arrived + 1
        left, right = np.split(moment, [len(coming["left"].times)])
        return {"left": left, "right": right}

    def _gains(
        self,
        side: Side,
        times: Array,
        chances: Array,
        coming: dict[Side, ArrivalForecast],
        moments: dict[Side, Array],
    ) -> Array:
        """What rows of a side that came at these times gain in each step, by their chances with each row to come."""
        other = other_side(side)
        age = coming[other].times[None, :] - times[:, None]
        joinable = (age <= self._spans[side]) & (age >= -self._spans[other])
        steps = max(int(some.max(initial=1)) for some in moments.values())
        by_step = np.zeros((steps, len(times)))
        np.add.at(by_step, moments[other] - 1, np.where(joinable, chances, 0.0).T)
        return by_step.T

    def _here(self, rows: Rows, coming: dict[Side, ArrivalForecast], moments: dict[Side, Array]) -> Array:
        """What rows that are here gain in each step."""
        other = other_side(rows.side)
        chances = coming[other].probabilities(rows.key) * self._known.rows_each(other)
        return self._gains(rows.side, rows.time, chances, coming, moments)

    def _later(self, side: Side, coming: dict[Side, ArrivalForecast], moments: dict[Side, Array]) -> Array:
        """What rows that are still to come gain in each step."""
        other = other_side(side)
        chances = coming[side].match_probabilities(coming[other])
        # Rows of one step meet each other whoever is held.
        chances[moments[side][:, None] >= moments[other][None, :]] = 0.0
        chances *= self._known.rows_each(side) * self._known.rows_each(other)
        return self._gains(side, coming[side].times, chances, coming, moments)

    def scores(self, rows: Rows, now: Time) -> Array:
        """Score by all the results that are expected within the steps ahead."""
        coming = self._known.coming(now)
        expected: Array = self._here(rows, coming, self._moments(coming)).sum(axis=1)
        return expected

    def keep(self, rows: dict[Side, Rows], budget: Budget, now: Time) -> dict[Side, Array]:
        """Mark the rows that the best plan keeps, then those of which most is expected."""
        coming = self._known.coming(now)
        moments = self._moments(coming)
        here = np.concatenate([self._here(some, coming, moments) for some in rows.values()])
        sizes = np.concatenate([some.sizes() for some in rows.values()]) if budget.unit == "bytes" else None
        room = budget.limit if sizes is None else int(budget.limit // sizes.mean())
        worth = here.sum(axis=1)
        # With room for all that may match, all of them stay, and no plan is needed.
        if np.count_nonzero(worth) > room:
            later = [self._later(side, coming, moments) for side in rows]
            enters = np.concatenate([np.zeros(len(here), np.int64), *(moments[side] for side in rows)])
            planned, _ = plan(np.concatenate([here, *later]), enters, room)
            worth += planned[: len(here)] * (1.0 + worth.max())
        stays = best(worth, [some.id for some in rows.values()], sizes, budget)
        parts = np.split(stays, np.cumsum([len(some) for some in rows.values()])[:-1])
        return dict(zip(rows, parts, strict=True))

    def learned(self) -> list[Learned]:
        """Rates, where they are learned."""
        return self._known.learned()

    def snapshot(self) -> dict[str, Array]:
        """What was observed."""
        return self._known.snapshot() | {"arrived": np.array([self._arrived])}

    def restore(self, state: dict[str, Array]) -> Self:
        """Take up what `snapshot` gave."""
        self._arrived = int(state["arrived"][0])
        self._known.restore(state)
        return self


def plan(gains: Array, enters: Array, room: int) -> tuple[Array, float]:
    """The rows that the best plan holds at some time, and the number of results that it expects.

    Parameters
    ----------
    gains
        Expected results of each row (a row) in each of the next steps (a column), if it is held until then.
    enters
        The step after which each row can be held: 0 is the present one, 1 the first of the columns. A row gains
        nothing before it enters.
    room
        How many rows can be held at once.

    Examples
    --------
    The first row gains most, but the others can be held one after the other.

    >>> gains = np.array([[0.0, 0.8, 0.8], [1.0, 0.0, 0.0], [0.0, 0.0, 0.9]])
    >>> plan(gains, np.array([0, 0, 1]), room=1)
    (array([False,  True,  True]), 1.9)
    """
    cost = np.rint(gains * _SCALE).astype(np.int64)
    row, step = np.nonzero(cost)
    steps, count = cost.shape[1], len(row)
    # Arcs lead to higher numbers: the nodes of the rows that gain in a step lie before the end of that step.
    order = np.argsort(np.concatenate((2 * np.arange(steps + 1), 2 * step + 1)), kind="stable")
    number = np.empty(len(order), np.int64)
    number[order] = np.arange(len(order))
    line, node = number[: steps + 1], number[steps + 1 :]
    first = np.diff(row, prepend=-1) != 0
    tail = np.concatenate((np.where(first, line[enters[row]], np.roll(node, 1)), node, line[:-1]))
    head = np.concatenate((node, line[step + 1], line[1:]))
    capacity = np.concatenate((np.ones(2 * count, np.int64), np.full(steps, room)))
    costs = np.concatenate((-cost[row, step], np.zeros(count + steps, np.int64)))
    held = least_cost_flow(tail, head, capacity, costs, room)[:count] > 0
    taken = np.zeros(len(gains), bool)
    taken[row[held]] = True
    return taken, float(gains[row, step][held].sum())
