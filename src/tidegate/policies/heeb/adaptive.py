"""`Heeb` without given processes: it scores by processes that it learns from the streams, or else by shares."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING, Any, ClassVar, Final, NamedTuple

import numpy as np

from tidegate.models import ProcessLearner
from tidegate.models.decay import horizon_for
from tidegate.policies.abilities import learned_by
from tidegate.policies.heeb.survival import Exponential
from tidegate.policies.policy import RunningPolicy
from tidegate.types import (
    SIDES,
    Attribute,
    Clocks,
    JoinModel,
    Last,
    Learned,
    Nested,
    Rows,
    Step,
    Tuple,
    Window,
    other_side,
)

if TYPE_CHECKING:
    from tidegate.models import LearnedProcess
    from tidegate.policies.heeb.heeb import Heeb
    from tidegate.policies.heeb.lifetime import Lifetime
    from tidegate.types import Array, Setting, Side, State, Time

_LIFETIMES: Final = 6.0
"""After this number of mean lifetimes hardly a row is left in memory."""


class ProcessScorer(NamedTuple):
    """Scores rows of one side by the learned process of the other, in strides of `rows` of its rows."""

    learned: LearnedProcess
    rows: int
    running: RunningPolicy
    model: JoinModel

    def clock(self, times: Array | Time) -> Array:
        """Times in strides since the process was learned."""
        return np.asarray(times - self.learned.origin) / (self.learned.unit * self.rows)

    def observe_last(self, side: Side, last: tuple[Time, int]) -> None:
        """Learn the last row of the other side."""
        time = self.clock(np.array([last[0]]))
        rows = {which: _row(which, time[:0], 0) for which in SIDES} | {side: _row(side, time, last[1])}
        hits = {which: np.zeros(len(found), np.int64) for which, found in rows.items()}
        clocks = Clocks.both(float(time[0]))
        step = Step(0, clocks, clocks, rows, dict.fromkeys(SIDES, 0), hits)
        self.model.learn(step)
        self.running.observe(step)


class _LastRow(Attribute):
    """The time and the key of a row."""

    rests = ("time", "key")

    def encode(self, value: tuple[Time, int]) -> dict[str, Array]:
        """Two arrays."""
        return {"time": np.array([value[0]]), "key": np.array([value[1]], np.int64)}

    def decode(self, value: object, arrays: dict[str, Array]) -> tuple[Time, int]:  # noqa: ARG002 - replaced
        """Time and key."""
        return arrays["time"][0].item(), int(arrays["key"][0])


class AdaptiveHeeb(RunningPolicy):
    """Learns each side's process and the shares of its keys; scores by the processes once both sides have one.

    The time of a side is counted in its rows, by the mean time between them. The expected results of a row of the
    other side are summed over these units, or over strides of several units if rows outlive the number of units that
    `Heeb` looks ahead. So scores depend neither on the unit of time nor on the fraction of a stream that is observed,
    and scores of both sides can be compared.

    Parameters
    ----------
    config
        The configuration.
    shares
        Learns shares, and scores by them.
    lifetime
        The observed lifetime of rows in memory.
    setting
        The join.

    Deviations
    ----------
    If rows are partitioned by a hash of their keys, each partition learns the same trends, at its own rate. A key
    arrives there more often than in the whole stream; that is ignored, since it holds for both sides equally.
    """

    state: ClassVar[State] = {
        "": Nested("_shares"),
        "process_{}.": Nested("_learners").optional(),
        "last_{}.": _LastRow("_last").optional(),
        "scorer_{}.strides": Tuple("_strides", np.float64).optional(),
    }

    def __init__(self, config: Heeb, shares: RunningPolicy, lifetime: Lifetime, setting: Setting) -> None:
        self.config = config
        self._shares = shares
        self._lifetime = lifetime
        self._setting = setting
        self._spans = setting.window.lifetimes()
        horizon = horizon_for(config.horizon, max(self._spans.values()))
        self._learners = {side: ProcessLearner(horizon) for side in SIDES}
        self._last: dict[Side, tuple[Time, int]] = {}
        self._strides: dict[Side, tuple[int, float]] = {}  # rows of a stride, and the survival of one
        self._scorers: dict[Side, ProcessScorer] = {}

    def __repr__(self) -> str:
        return repr(self.config)

    def observe(self, step: Step) -> None:
        """Learn processes."""
        self._shares.observe(step)
        for side in SIDES:
            rows, fresh = step.rows[side], step.fresh[side]
            if len(rows) == fresh:
                continue
            learner, before = self._learners[side], self._learners[side].learned
            learner.observe(rows.time[fresh:], rows.key[fresh:])
            self._last[side] = rows.time[-1].item(), int(rows.key[-1])
            scored = other_side(side)
            if learner.learned is not before:
                self._update_scorer(scored, learner.learned)
            if scored in self._scorers:
                self._scorers[scored].observe_last(side, self._last[side])

    def _update_scorer(self, side: Side, learned: LearnedProcess | None) -> None:
        """Score a side's rows by the new process of the other side from now on."""
        self._scorers.pop(side, None)
        self._strides.pop(side, None)
        if learned is None:
            return
        given = self.config.survival
        alpha = given.alpha if isinstance(given, Exponential) else self._lifetime.mean() or learned.unit
        duration = min(max(self._spans[side], 0), _LIFETIMES * alpha)
        rows = max(1, math.ceil(duration / (self.config.ahead * learned.unit)))
        # The number of strides in a mean lifetime, and the current one.
        survival = alpha / (learned.unit * rows)
        survival = survival if given else Exponential.from_lifetime(1 + survival).alpha
        self._strides[side] = rows, survival
        self._scorers[side] = self._scorer(learned, rows, survival)

    def _scorer(self, learned: LearnedProcess, rows: int, alpha: float) -> ProcessScorer:
        process, stride = learned.in_strides(rows), learned.unit * rows
        window = self._setting.window
        left, right = (s if isinstance(s, Last | None) else s / stride for s in (window.left, window.right))
        config = replace(self.config, left=process, right=process, survival=Exponential(alpha))
        # In strides; so it cannot share what is learned by time.
        model = JoinModel()
        running = config.start(replace(self._setting, window=Window(left, right), model=model))
        return ProcessScorer(learned, rows, running, model)

    def scores(self, rows: Rows, clock: Time) -> Array:
        """Score by the processes if both sides have one, else by shares."""
        if len(self._scorers) < len(SIDES):
            return self._shares.scores(rows, clock)
        scorer = self._scorers[rows.side]
        own = replace(rows, time=scorer.clock(rows.time))
        found = scorer.running.scores(own, float(scorer.clock(clock)))
        return found * scorer.rows

    def learned(self) -> list[Learned]:
        """Rates and shares; and where a side has a process its parameters, in steps from row to row."""
        learned = learned_by(self._shares)
        for side, learner in self._learners.items():
            if learner.learned is not None:
                numbers = _numbers(learner.learned.process.to_parameters())
                learned += [
                    Learned(name, side, value, learner.learned.rows) for name, value in numbers.items()
                ]
        return learned

    def after_restore(self) -> None:
        """Score by the processes as before."""
        for side, (rows, survival) in self._strides.items():
            other = other_side(side)
            learned = self._learners[other].learned
            if learned is not None:
                self._scorers[side] = self._scorer(learned, int(rows), survival)
                self._scorers[side].observe_last(other, self._last[other])


def _row(side: Side, time: Array, key: int) -> Rows:
    none = np.zeros(len(time), np.int64)
    return Rows(side, none + key, time, none, none)


def _numbers(plain: dict[str, Any]) -> dict[str, float]:
    """The parameters of a process by name, those of its noise included."""
    kind = plain["process"]
    found: dict[str, float] = {}
    for name, value in plain.items():
        inner = (
            {f"{name}.{part}": number for part, number in value.items()} if isinstance(value, dict) else {}
        )
        found |= {
            f"{kind}.{at}": v for at, v in (inner or {name: value}).items() if isinstance(v, int | float)
        }
    return found
