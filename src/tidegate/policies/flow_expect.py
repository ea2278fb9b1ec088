"""Keep the rows that the best plan keeps, given the expected arrivals."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Final

import numpy as np

from tidegate.draws import salt
from tidegate.models import Process, Rates, StreamShares
from tidegate.models.decay import half_life, horizon_for
from tidegate.policies.arrival_models import ArrivalModel, LearnedArrivals, ProcessArrivals, check_processes
from tidegate.policies.min_cost_flow import least_cost_flow
from tidegate.policies.policy import Policy, RunningPolicy, check_integer_keys
from tidegate.policies.selection import best
from tidegate.types import SIDES, Clocks, InputError, Learned, Nested, Numbers, Opposites, other_side

if TYPE_CHECKING:
    from tidegate.models.processes.arrival_forecast import ArrivalForecast
    from tidegate.types import Array, Budget, Rows, Setting, Side, State, Step, Time

_CAPACITY: Final = 1 << 10
_AHEAD: Final = 16
_SCALE: Final = 1 << 30
"""Costs of a flow are whole numbers; this is the cost of one result."""


@dataclass(frozen=True)
class FlowExpect(Policy):
    """At every step, plan how long to keep each row, and keep the rows that the best plan keeps now.

    For small buffers, and as a reference. While `heeb` estimates how long a row will stay, this policy compares all
    sequences of decisions that can be fixed now, including rows that will arrive. A plan cannot contain conditions
    ("if this row arrives, keep that one"). So it is not the optimum, and it costs far more than `heeb`, which often
    produces as many results.

    A plan is a min-cost flow through a network, with one unit of flow for each row that fits:

    - a line of nodes, one for the end of this step and of each step ahead; arcs of the width of the budget lead from
      each to the next, for free space;
    - a chain of nodes for each row, buffered or expected, one for each step in which it may match. An arc leads from
      the line, where the row arrives, to its first node, and from each node to the next. It is one unit wide and
      stands for keeping the row until then. Its cost is the negative number of expected results there: for a
      buffered row the probability of its key among the other side's rows of that step, for an expected row the
      probability that both have the same key;
    - an arc from each of these nodes back to the line, where the row is dropped.

    Buffered rows whose first arc has flow stay. Free space keeps the rows with the most expected results, then the
    newest. There are as many nodes as pairs of a row and a step with a positive probability to match: about the rows
    that fit times `ahead`, plus twice `ahead` squared. Each step solves a new network. Some tens of rows are fine.

    Parameters
    ----------
    left, right
        The process that each side's keys follow, one row at each time step, whose number is the row's time; None for
        both to learn the shares of the keys. Rates are learned in both cases.
    ahead
        The number of time steps to look ahead; without processes, the number of rows of the faster side.
    horizon
        The half-life of an observation in learned shares and rates; by default some windows.

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
    The paper refers to a report for the network; there, it has a node for each row at each time. Here it has one only
    where the row may match, with the same optimum. Probabilities are rounded to 2**-30, so a plan is worse than the
    best by at most one such part for each row kept at each step. Each step ahead is assumed to have as many rows as
    this one. If one side is slower, each of its expected rows counts by its rate relative to the other side's. Rows
    of different size in bytes are planned with their mean size.
    """

    name: ClassVar[str] = "flow_expect"
    use_when: ClassVar[str] = "Small buffers, where planning several steps ahead is affordable."
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

    def start(self, setting: Setting) -> RunningPolicy:
        """Start with the given processes, or learn shares and rates."""
        if self.left is not None:
            check_integer_keys(setting, "flow_expect was given processes (left=, right=)")
        return RunningFlowExpect(self, setting)


class RunningFlowExpect(RunningPolicy):
    """A running `FlowExpect`."""

    state: ClassVar[State] = {
        "": Nested("_model"),
        "arrived": Numbers(_arrived=int),
        "lead": Opposites("_lead").optional(),
    }

    def __init__(self, config: FlowExpect, setting: Setting) -> None:
        self.config = config
        self._spans = setting.window.lifetimes()
        horizon = horizon_for(config.horizon, max(self._spans.values()))
        rates = setting.model.part(Rates, horizon)
        self._model: ArrivalModel
        if config.left and config.right:
            self._model = ProcessArrivals({"left": config.left, "right": config.right}, config.ahead, rates)
        else:
            by = salt(setting.seed, setting.partition)
            shares = setting.model.part(StreamShares, _CAPACITY, horizon, by)
            self._model = LearnedArrivals(config.ahead, rates, shares)
        self._arrived = 2
        self._lead: dict[Side, Time] = dict.fromkeys(SIDES, 0)

    def __repr__(self) -> str:
        return repr(self.config)

    def kind(self) -> str:
        """Its state is that of its model of arrivals."""
        return f"{super().kind()} of {type(self._model).__name__}"

    def observe(self, step: Step) -> None:
        """Learn from the arrivals, and their number in a step."""
        self._arrived = max(1, sum(len(step.rows[side]) - step.fresh[side] for side in SIDES))
        self._lead = {side: step.clocks.lead(side) for side in SIDES}
        self._model.observe(step)

    def _steps_ahead(self, coming: dict[Side, ArrivalForecast], clocks: Clocks) -> dict[Side, Array]:
        """The step, counted from this one, in which each row arrives: in order of time, left before right."""
        # Rows of a side that is behind arrive together with later rows of the other.
        times = np.concatenate([coming[side].times + (clocks.now - clocks.of(side)) for side in SIDES])
        step_of = np.empty(len(times), np.int64)
        step_of[np.argsort(times, kind="stable")] = np.arange(len(times)) // self._arrived + 1
        left, right = np.split(step_of, [len(coming["left"].times)])
        return {"left": left, "right": right}

    def _gains(
        self,
        side: Side,
        times: Array,
        match: Array,
        coming: dict[Side, ArrivalForecast],
        steps_ahead: dict[Side, Array],
    ) -> Array:
        """The expected results in each step of rows with these times, by their probability to match each next row."""
        other = other_side(side)
        age = coming[other].times[None, :] - times[:, None]
        joinable = (age <= self._spans[side]) & (age >= -self._spans[other])
        steps = max(int(some.max(initial=1)) for some in steps_ahead.values())
        by_step = np.zeros((steps, len(times)))
        np.add.at(by_step, steps_ahead[other] - 1, np.where(joinable, match, 0.0).T)
        return by_step.T

    def _buffered_gains(
        self, rows: Rows, coming: dict[Side, ArrivalForecast], steps_ahead: dict[Side, Array]
    ) -> Array:
        """The expected results of buffered rows in each step."""
        other = other_side(rows.side)
        match = coming[other].probabilities(rows.key) * self._model.rows_each(other)
        return self._gains(rows.side, rows.time, match, coming, steps_ahead)

    def _expected_gains(
        self, side: Side, coming: dict[Side, ArrivalForecast], steps_ahead: dict[Side, Array]
    ) -> Array:
        """The expected results in each step of rows that arrive later."""
        other = other_side(side)
        match = coming[side].match_probabilities(coming[other])
        # Rows of one step match each other, whichever are kept.
        match[steps_ahead[side][:, None] >= steps_ahead[other][None, :]] = 0.0
        match *= self._model.rows_each(side) * self._model.rows_each(other)
        return self._gains(side, coming[side].times, match, coming, steps_ahead)

    def scores(self, rows: Rows, clock: Time) -> Array:
        """Score by the expected results within the steps ahead."""
        own = clock + self._lead[rows.side]
        clocks = Clocks(own, clock) if rows.side == "left" else Clocks(clock, own)
        coming = self._model.coming(clocks)
        expected: Array = self._buffered_gains(rows, coming, self._steps_ahead(coming, clocks)).sum(axis=1)
        return expected

    def keep(self, rows: dict[Side, Rows], budget: Budget, clocks: Clocks) -> dict[Side, Array]:
        """Mark the rows that the best plan keeps, then those with the most expected results."""
        coming = self._model.coming(clocks)
        steps_ahead = self._steps_ahead(coming, clocks)
        here = np.concatenate([self._buffered_gains(some, coming, steps_ahead) for some in rows.values()])
        sizes = np.concatenate([some.sizes() for some in rows.values()]) if budget.unit == "bytes" else None
        room = budget.limit if sizes is None else int(budget.limit // sizes.mean())
        expected = here.sum(axis=1)
        # If all rows that may match fit, all of them stay, and no plan is needed.
        if np.count_nonzero(expected) > room:
            later = [self._expected_gains(side, coming, steps_ahead) for side in rows]
            enters = np.concatenate([np.zeros(len(here), np.int64), *(steps_ahead[side] for side in rows)])
            planned, _ = plan(np.concatenate([here, *later]), enters, room)
            expected += planned[: len(here)] * (1.0 + expected.max())
        stays = best(expected, [some.id for some in rows.values()], sizes, budget)
        parts = np.split(stays, np.cumsum([len(some) for some in rows.values()])[:-1])
        return dict(zip(rows, parts, strict=True))

    def learned(self) -> list[Learned]:
        """Rates, if they are learned."""
        return self._model.learned()


def plan(gains: Array, enters: Array, room: int) -> tuple[Array, float]:
    """The rows that the best plan keeps at some time, and the number of expected results.

    Parameters
    ----------
    gains
        Expected results of each row (a row) in each of the next steps (a column), if it is kept until then.
    enters
        The step after which each row can be kept: 0 is the current one, 1 the first of the columns. A row gains
        nothing before it enters.
    room
        The number of rows that fit.

    Examples
    --------
    The first row gains most, but the others can be kept one after the other.

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
    kept = least_cost_flow(tail, head, capacity, costs, room)[:count] > 0
    chosen = np.zeros(len(gains), bool)
    chosen[row[kept]] = True
    return chosen, float(gains[row, step][kept].sum())
