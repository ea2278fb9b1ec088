"""Scores of cached rows by a process that is learned from the references."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final, NamedTuple, Self

import numpy as np

from tidegate.models import AR1, History, LearnedProcess, LinearTrend, Process, ProcessLearner, RandomWalk
from tidegate.policies import Exponential
from tidegate.policies.heeb import expected_benefit, h1, h2
from tidegate.policies.heeb.precomputed import BenefitCurve, BenefitSurface

if TYPE_CHECKING:
    from tidegate.caching.policies import CacheRanking
    from tidegate.types import Array

_SAMPLE: Final = 2048
"""Of a larger batch of references only the last are given to the learner."""
_MAX_SKIPPED: Final = 15
"""While large batches show no process, at most this many are skipped before the next is given to the learner."""
_VALID_REFERENCES: Final = 256
_VALID_BATCHES: Final = 8
"""A table is used for this many references and batches, although parameters and lifetimes change meanwhile."""
_LIFETIMES: Final = 6.0
"""After this many mean lifetimes hardly a row is left."""
_TREND_STEPS: Final = 256
"""The number of steps ahead that are summed for a trend."""
_AR1_STEPS: Final = 1024
"""The same for an AR(1) process, unless it has lost its memory before."""
_POINTS: Final = 64
"""Control points on an axis of a surface."""
_MAX_SPREAD: Final = 1 << 18
"""The largest distance between values for which a table is made."""
_DEVIATIONS: Final = 9.0
_MAX_SUMS: Final = 2048
"""Up to this many values are summed one by one; of more, evenly spaced ones, and the others are interpolated."""


class _BenefitForecast(NamedTuple):
    """A process in strides of several references, the survival of rows in strides, and a precomputed table."""

    learned: LearnedProcess
    since: int
    rows: int
    process: Process
    survival: Exponential
    table: BenefitCurve | BenefitSurface | None

    @classmethod
    def of(cls, learned: LearnedProcess, since: int, lifetime: float) -> Self | None:
        """From reference `since` on, with a mean lifetime in references; None if the table would be too large."""
        rows = _stride(learned.process, lifetime)
        process = learned.in_strides(rows)
        survival = Exponential.near_lifetime(1 + lifetime / rows)
        table: BenefitCurve | BenefitSurface | None = None
        if isinstance(process, RandomWalk):
            spread = (
                process.step.reach * math.sqrt(survival.negligible_after())
                + abs(process.drift) * survival.negligible_after()
            )
            if spread > _MAX_SPREAD:
                return None
            table = h1(process, survival, problem="caching")
        elif isinstance(process, AR1):
            if _DEVIATIONS * process.sigma / math.sqrt(1 - process.phi1**2) > _MAX_SPREAD:
                return None
            table = h2(process, survival, problem="caching", points=_POINTS)
        return cls(learned, since, rows, process, survival, table)

    def benefit(self, values: Array, now: int, last: int) -> Array:
        """The expected benefit of these values after reference `now`, which was to `last`."""
        if self.table is not None:
            return self.table.of(values, self.table.nearest(last))
        history = History((now - self.learned.origin) / self.rows)  # type: ignore[arg-type]  # a trend goes on between steps
        found = np.zeros(len(values))
        near = self._near(values, history)
        places = np.unique(values[near])
        if len(places) > _MAX_SUMS:
            places = np.unique(np.linspace(places[0], places[-1], _MAX_SUMS).astype(np.int64))
        if len(places):
            summed = expected_benefit(
                self.process, history, places, self.survival, problem="caching", ahead=_TREND_STEPS
            )
            found[near] = np.interp(values[near], places, summed)
        return found

    def _near(self, values: Array, history: History) -> Array:
        """The values that a trend can still reach."""
        trend = self.process
        if not isinstance(trend, LinearTrend):
            return np.ones(len(values), np.bool_)
        ends = trend.centre(history.now + np.array([1, _TREND_STEPS]))
        reach = trend.noise.reach
        near: Array = (values >= ends.min() - reach) & (values <= ends.max() + reach)
        return near


def _stride(process: Process, lifetime: float) -> int:
    """References per step, such that sums have few enough steps; 1 where a sum has a closed form."""
    if isinstance(process, LinearTrend):
        return max(1, math.ceil(_LIFETIMES * lifetime / _TREND_STEPS))
    if isinstance(process, AR1):
        steps = min(process.forgotten_after(), Exponential(1 + lifetime).negligible_after())
        return math.ceil(steps / _AR1_STEPS)
    return 1


class ProcessRanking:
    """Scores by the expected benefit under the process that references follow, or by `otherwise` if there is none.

    For a stream whose references move: along a line, as a random walk, or around a level. The benefit of a row sums
    the probability that it is next referred to in each of the coming steps, times the probability that it is still
    cached then. A step is one reference, or a stride of several where steps would be too many.

    Parameters
    ----------
    otherwise
        The ranking while no process is found: by shares.

    References
    ----------
    On Joining and Caching Stochastic Streams, sections 5.3 and 7; Theorem 3 for the curve of a random walk and the
    surface of an AR(1) process.

    Deviations
    ----------
    The paper fits a process beforehand. Here it is learned while references arrive: from all
    of them in batches of up to 2048, else from the last 2048 of a batch, since a batch is decided on as a whole.
    While such batches show no process, fewer of them are used, down to one in sixteen. A table serves for 256
    references and eight batches.

    A surface has at most 64 control points on an axis, and is inexact between them. Where rows stay for about six
    references, its error is 0.003 % of the largest benefit at a `phi1` of 0.72, 0.6 % at 0.95, 7 % at 0.99 and 44 %
    at 0.999; less than half of that where they stay for fifty. The choice of rows suffers less: the tenth of values
    that it ranks highest has as much benefit as the best tenth up to 0.99, and 97 % of it at 0.999.
    """

    def __init__(self, otherwise: CacheRanking) -> None:
        self._otherwise = otherwise
        self._learner = ProcessLearner()
        self._forecast: _BenefitForecast | None = None
        self._now = self._last = self._batch = 0
        self._skip = self._skipped = 0

    @property
    def learned(self) -> LearnedProcess | None:
        """The process that was found, if any."""
        return self._learner.learned

    @property
    def steady(self) -> bool:
        """Only without a process: with one, the best values move."""
        return self.learned is None and self._otherwise.steady

    def observe(self, codes: Array, places: Array, now: int) -> None:
        """Learn from references; codes are the keys themselves."""
        self._otherwise.observe(codes, places, now)
        self._batch = len(places)
        if len(places) > _SAMPLE:
            # The references in between are not seen, and a walk is far from where it was.
            self._learner = ProcessLearner()
            self._skipped += 1
            if self._skipped <= self._skip:
                return
            self._skipped = 0
        sample = codes[places[-_SAMPLE:]]
        self._learner.observe(np.arange(now - len(sample), now), sample)
        self._now, self._last = now - 1, int(sample[-1])
        self._skip = 0 if self.learned else min(2 * self._skip + 1, _MAX_SKIPPED)

    def scores(self, codes: Array, last_used: Array, lifetime: float) -> Array:
        """The expected benefit, or the scores of `otherwise`."""
        if self.learned is None:
            self._forecast = None
        elif self._forecast is None or self._is_outdated(self._forecast, self.learned):
            self._forecast = _BenefitForecast.of(self.learned, self._now, lifetime)
        if self._forecast is None:
            return self._otherwise.scores(codes, last_used, lifetime)
        return self._forecast.benefit(codes, self._now, self._last)

    def _is_outdated(self, forecast: _BenefitForecast, learned: LearnedProcess) -> bool:
        """A trend after every new fit, since it leads away from where it was; a table after some references."""
        if forecast.table is None or type(forecast.learned.process) is not type(learned.process):
            return forecast.learned is not learned
        return self._now - forecast.since >= max(_VALID_REFERENCES, _VALID_BATCHES * self._batch)
