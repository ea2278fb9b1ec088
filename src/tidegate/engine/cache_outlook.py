"""What cached rows may expect, by a process that is found in the references while they come."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final, NamedTuple, Self

import numpy as np

from tidegate.models import AR1, Belief, History, LinearTrend, Process, ProcessLearner, RandomWalk
from tidegate.policies import Exponential, expected_benefit, h1, h2
from tidegate.policies.precomputed import Curve, Surface

if TYPE_CHECKING:
    from tidegate.engine.cache_policies import Ranking
    from tidegate.types import Array

_SHOWN: Final = 2048
"""Of more references at once, only the last are looked at."""
_LONGEST_PAUSE: Final = 15
"""As long as large batches show no process, so many are passed over before the next is looked at, at most."""
_SELDOM: Final = 256
_BATCHES: Final = 8
"""For so many references, and so many batches, a table holds, though parameters and lifetimes move on."""
_LIFETIMES: Final = 6.0
"""After so many lifetimes hardly a row is left."""
_AHEAD: Final = 256
"""How many steps ahead a line is followed."""
_FOLLOWED: Final = 1024
"""How many a level is, unless it has forgotten where it was."""
_FORGOTTEN: Final = 1e-16
_POINTS: Final = 64
"""Control points on an axis of a surface."""
_LONGEST: Final = 1 << 18
"""How many values apart the farthest may be that a walk is told of, or a level."""
_DEVIATIONS: Final = 9.0
_EACH: Final = 2048
"""So many values are reckoned one by one; of more, as many that lie evenly, and the others in between."""


class _Outlook(NamedTuple):
    """A process in strides of so many references, how long rows last in these, and what was reckoned beforehand."""

    belief: Belief
    since: int
    rows: int
    process: Process
    survival: Exponential
    table: Curve | Surface | None

    @classmethod
    def of(cls, belief: Belief, since: int, lifetime: float) -> Self | None:
        """After so many references, where rows stay for a mean of so many more; None if it would take too much."""
        rows = _stride(belief.process, lifetime)
        process = belief.in_strides(rows)
        survival = Exponential.about(1 + lifetime / rows)
        table: Curve | Surface | None = None
        if isinstance(process, RandomWalk):
            spread = process.step.reach * math.sqrt(survival.reach()) + abs(process.drift) * survival.reach()
            if spread > _LONGEST:
                return None
            table = h1(process, survival, problem="caching")
        elif isinstance(process, AR1):
            if _DEVIATIONS * process.sigma / math.sqrt(1 - process.phi1**2) > _LONGEST:
                return None
            table = h2(process, survival, problem="caching", points=_POINTS)
        return cls(belief, since, rows, process, survival, table)

    def worth(self, values: Array, now: int, last: int) -> Array:
        """The expected benefit of these values after reference `now`, which was to `last`."""
        if isinstance(self.table, Curve):
            return self.table.of(values, last)
        if isinstance(self.table, Surface):
            return self.table.of(values, self.table.nearest(last))
        history = History((now - self.belief.origin) / self.rows)  # type: ignore[arg-type]  # a line goes on between steps
        found = np.zeros(len(values))
        near = self._near(values, history)
        places = np.unique(values[near])
        if len(places) > _EACH:
            places = np.unique(np.linspace(places[0], places[-1], _EACH).astype(np.int64))
        if len(places):
            worth = expected_benefit(
                self.process, history, places, self.survival, problem="caching", ahead=_AHEAD
            )
            found[near] = np.interp(values[near], places, worth)
        return found

    def _near(self, values: Array, history: History) -> Array:
        """Which values a line may still come to."""
        line = self.process
        if not isinstance(line, LinearTrend):
            return np.ones(len(values), np.bool_)
        ends = line.centre(history.now + np.array([1, _AHEAD]))
        reach = line.noise.reach
        near: Array = (values >= ends.min() - reach) & (values <= ends.max() + reach)
        return near


def _stride(process: Process, lifetime: float) -> int:
    """Of how many references a step is, so that there are not too many; of one where a sum has a closed form."""
    if isinstance(process, LinearTrend):
        return max(1, math.ceil(_LIFETIMES * lifetime / _AHEAD))
    if isinstance(process, AR1) and process.phi1:
        forgotten = math.log(_FORGOTTEN) / math.log(abs(process.phi1))
        return max(1, math.ceil(min(forgotten, Exponential(1 + lifetime).reach()) / _FOLLOWED))
    return 1


class Foreseeing:
    """Ranks by what may be expected of the process that references follow; while there is none, by something else.

    The cache of a stream whose references move: along a line, as a walk, or around a level. A row's worth is the
    chance that it is referred to for the first time in each of the next steps, weighed by how likely it is still
    cached then. Steps are references; where that would be too many, strides of several.

    Parameters
    ----------
    otherwise
        What ranks while references follow no process: by shares.

    References
    ----------
    On Joining and Caching Stochastic Streams, sections 5.3 and 7; Theorem 3 for the curve of a walk and the surface
    of a level.

    Deviations
    ----------
    The paper fits a process beforehand. Here it is found while references come: by all of them if they come in
    batches of up to 2048, else by the last 2048 of a batch, which is decided on as a whole anyhow. While such batches
    show none, ever fewer of them are looked at, down to one in sixteen. A curve or a surface serves for 256
    references and eight batches. A surface has at most 64 control points on an axis, and errs between them: where
    rows stay for some six references, by 0.003 % of the largest benefit at a `phi1` of 0.72, 0.6 % at 0.95, 7 % at
    0.99 and 44 % at 0.999; less than half of that where they stay for fifty. What counts is who stays: the tenth of
    values that it ranks highest is worth as much as the best tenth up to 0.99, and 97 % of it at 0.999.
    """

    def __init__(self, otherwise: Ranking) -> None:
        self._otherwise = otherwise
        self._learner = ProcessLearner()
        self._outlook: _Outlook | None = None
        self._now = self._last = self._batch = 0
        self._pause = self._unseen = 0

    @property
    def belief(self) -> Belief | None:
        """What the references are thought to follow."""
        return self._learner.belief

    @property
    def steady(self) -> bool:
        """While there is no process: by one, what is worth most moves on."""
        return self.belief is None and self._otherwise.steady

    def observe(self, codes: Array, places: Array, now: int) -> None:
        """See references; codes are the keys themselves."""
        self._otherwise.observe(codes, places, now)
        self._batch = len(places)
        if len(places) > _SHOWN:
            # What went between is unknown, and a walk is far from where it was.
            self._learner = ProcessLearner()
            self._unseen += 1
            if self._unseen <= self._pause:
                return
            self._unseen = 0
        shown = codes[places[-_SHOWN:]]
        self._learner.observe(np.arange(now - len(shown), now), shown)
        self._now, self._last = now - 1, int(shown[-1])
        self._pause = 0 if self.belief else min(2 * self._pause + 1, _LONGEST_PAUSE)

    def scores(self, codes: Array, last: Array, lifetime: float) -> Array:
        """By the process, if there is one."""
        if self.belief is None:
            self._outlook = None
        elif self._outlook is None or self._is_old(self._outlook, self.belief):
            self._outlook = _Outlook.of(self.belief, self._now, lifetime)
        if self._outlook is None:
            return self._otherwise.scores(codes, last, lifetime)
        return self._outlook.worth(codes, self._now, self._last)

    def _is_old(self, outlook: _Outlook, belief: Belief) -> bool:
        """Whether to look ahead anew: a line whenever it was fitted, as it leads ever farther from where it was."""
        if outlook.table is None or type(outlook.belief.process) is not type(belief.process):
            return outlook.belief is not belief
        return self._now - outlook.since >= max(_SELDOM, _BATCHES * self._batch)
