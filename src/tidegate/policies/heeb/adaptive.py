"""`Heeb` where nobody said how keys come: by processes that are found in the streams, or else by shares."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Self

import numpy as np

from tidegate.models import ProcessLearner
from tidegate.models.decay import horizon_for
from tidegate.policies.heeb.survival import Exponential
from tidegate.policies.policy import Policy
from tidegate.types import SIDES, Last, Learned, Rows, Step, Window, as_part, other_side, parts_of

if TYPE_CHECKING:
    from tidegate.models import LearnedProcess
    from tidegate.policies.heeb.heeb import Heeb
    from tidegate.policies.heeb.lifetime import Lifetime
    from tidegate.types import Array, Setting, Side, Time

_LIFETIMES: Final = 6.0
"""After so many lifetimes hardly a row is left."""


class _Outlook(NamedTuple):
    """What rows of one side are scored by: the other's process, in strides of its rows."""

    learned: LearnedProcess
    rows: int
    alpha: float
    running: Policy

    def clock(self, times: Array | Time) -> Array:
        """Times in strides since the process was learned."""
        return np.asarray(times - self.learned.origin) / (self.learned.unit * self.rows)

    def shown(self, side: Side, last: tuple[Time, int]) -> None:
        """Tell what the other side's stream brought last."""
        time = self.clock(np.array([last[0]]))
        rows = {which: _row(which, time[:0], 0) for which in SIDES} | {side: _row(side, time, last[1])}
        hits = {which: np.zeros(len(found), np.int64) for which, found in rows.items()}
        self.running.observe(Step(0, float(time[0]), rows, dict.fromkeys(SIDES, 0), hits))


class Choosing(Policy):
    """Learns each side's process and the shares of its keys; scores by the processes once both sides have one.

    A side's clock ticks with its rows, by the mean time between them: what a row of the other side may expect is
    summed over these ticks, or over strides of several where rows outlive as many ticks as `Heeb` looks ahead. So
    neither the unit of time matters nor how much of a stream is seen, and scores of both sides compare.

    Parameters
    ----------
    config
        What the user wrote.
    shares
        What learns shares, and scores by them.
    lifetime
        How long rows are seen to stay.
    setting
        The join.

    Deviations
    ----------
    Of rows that are dealt out by a hash of their keys, each part finds the same trends, at its own rate. That a key
    comes there more often than in the whole stream is left out: it holds for both sides alike.
    """

    def __init__(self, config: Heeb, shares: Policy, lifetime: Lifetime, setting: Setting) -> None:
        self.config = config
        self._shares = shares
        self._lifetime = lifetime
        self._setting = setting
        self._spans = setting.window.lifetimes()
        horizon = horizon_for(config.horizon, max(self._spans.values()))
        self._learners = {side: ProcessLearner(horizon) for side in SIDES}
        self._last: dict[Side, tuple[Time, int]] = {}
        self._outlooks: dict[Side, _Outlook] = {}

    def __repr__(self) -> str:
        return repr(self.config)

    def observe(self, step: Step) -> None:
        """Learn shares and lifetimes, and what each side's stream is."""
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
                self._look_ahead(scored, learner.learned)
            if scored in self._outlooks:
                self._outlooks[scored].shown(side, self._last[side])

    def _look_ahead(self, side: Side, learned: LearnedProcess | None) -> None:
        """Score a side's rows by what is believed of the other from now on."""
        self._outlooks.pop(side, None)
        if learned is None:
            return
        given = self.config.survival
        alpha = given.alpha if isinstance(given, Exponential) else self._lifetime.mean() or learned.unit
        stretch = min(max(self._spans[side], 0), _LIFETIMES * alpha)
        rows = max(1, math.ceil(stretch / (self.config.ahead * learned.unit)))
        # A row that stays for a mean time sees so many strides, and the present one.
        survival = alpha / (learned.unit * rows)
        survival = survival if given else Exponential.lasting(1 + survival).alpha
        self._outlooks[side] = self._outlook(learned, rows, survival)

    def _outlook(self, learned: LearnedProcess, rows: int, alpha: float) -> _Outlook:
        process, stride = learned.in_strides(rows), learned.unit * rows
        window = self._setting.window
        left, right = (s if isinstance(s, Last | None) else s / stride for s in (window.left, window.right))
        told = replace(self.config, left=process, right=process, survival=Exponential(alpha))
        running = told.start(replace(self._setting, window=Window(left, right)))
        return _Outlook(learned, rows, alpha, running)

    def scores(self, rows: Rows, now: Time) -> Array:
        """Score by the processes, if both sides have one; else by shares."""
        if len(self._outlooks) < len(SIDES):
            return self._shares.scores(rows, now)
        outlook = self._outlooks[rows.side]
        found = outlook.running.scores(
            replace(rows, time=outlook.clock(rows.time)), float(outlook.clock(now))
        )
        return found * outlook.rows

    def learned(self) -> list[Learned]:
        """Rates and shares; and where a side has a process its parameters, in steps from row to row."""
        told = self._shares.learned()
        for side, learner in self._learners.items():
            if learner.learned is not None:
                numbers = _numbers(learner.learned.process.to_parameters())
                told += [Learned(name, side, value, learner.learned.rows) for name, value in numbers.items()]
        return told

    def snapshot(self) -> dict[str, Array]:
        """What was learned, and what rows are scored by."""
        state = self._shares.snapshot()
        for side, learner in self._learners.items():
            state |= as_part(f"process_{side}", learner.snapshot())
        for side in SIDES:
            if side in self._last:
                time, key = self._last[side]
                state |= {
                    f"last_{side}.time": np.array([time]),
                    f"last_{side}.key": np.array([key], np.int64),
                }
            if side in self._outlooks:
                outlook = self._outlooks[side]
                state[f"outlook_{side}.strides"] = np.array([outlook.rows, outlook.alpha])
        return state

    def restore(self, state: dict[str, Array]) -> Self:
        """Take up what `snapshot` gave; a state from before processes were learned has none."""
        parts = parts_of(state)
        own = ("process_", "last_", "outlook_")
        self._shares.restore({name: array for name, array in state.items() if not name.startswith(own)})
        for side, learner in self._learners.items():
            if f"process_{side}" in parts:
                learner.restore(parts[f"process_{side}"])
            if f"last_{side}" in parts:
                last = parts[f"last_{side}"]
                self._last[side] = last["time"][0].item(), int(last["key"][0])
        for side in SIDES:
            other = other_side(side)
            learned = self._learners[other].learned
            if f"outlook_{side}" in parts and learned is not None:
                rows, alpha = parts[f"outlook_{side}"]["strides"].tolist()
                self._outlooks[side] = self._outlook(learned, int(rows), alpha)
                self._outlooks[side].shown(other, self._last[other])
        return self


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
