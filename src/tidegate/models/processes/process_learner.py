"""The process that a stream follows, learned while it arrives."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Final, NamedTuple, Self

import numpy as np

from tidegate.models.processes.markov_learners import AR1Learner, WalkLearner
from tidegate.models.processes.process import Process, agreement
from tidegate.models.processes.running_fit import RecentRows, RunningFit, columns
from tidegate.models.processes.trend_learner import TrendLearner
from tidegate.types import Attribute, Nested, Numbers, Record, Stateful

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from tidegate.types import Array, State, Time

_RECENT_ROWS: Final = 512
_TESTED_ROWS: Final = 128
"""The number of recent rows that are tested; with more rows, the test would reject most real streams."""
_MIN_ROWS: Final = 48
"""The number of rows before a process is accepted."""
_REVIEW_ROWS: Final = (16, 256)
_REVIEW_SHARE: Final = 8
"""A review follows after an eighth more rows, within these limits."""
_MIN_P_VALUE: Final = 1e-4
_IMPOSSIBLE: Final = 1e-6
"""The probability of an impossible row, relative to a uniform one within the range."""
_MARGIN: Final = 10.0
"""The difference of log-likelihoods that decides between two processes, in addition to the penalty for parameters."""


@dataclass(frozen=True)
class LearnedProcess:
    """A process and its clock.

    Parameters
    ----------
    process
        The process in steps of `unit`, the first at `origin`.
    unit
        The mean time between rows.
    origin
        The time of the newest row when it was learned.
    regular
        Whether all gaps between rows are equal.
    rows
        The decayed number of rows that it was learned from.
    """

    process: Process
    unit: float
    origin: Time
    regular: bool
    rows: float

    def in_strides(self, rows: int) -> Process:
        """The process in steps of `rows` units."""
        return self.process if rows == 1 and self.regular else self.process.in_strides(rows)


class _RunningFits(NamedTuple):
    """A running fit of each class of process."""

    trend: TrendLearner
    walk: WalkLearner
    ar1: AR1Learner

    @classmethod
    def of(cls, horizon: Time | None) -> Self:
        return cls(TrendLearner(horizon), WalkLearner(horizon), AR1Learner(horizon))


class _LearnedProcess(Attribute):
    """A learned process, or None, as JSON."""

    def encode(self, value: LearnedProcess | None) -> dict[str, Array]:
        """Its parameters."""
        plain = value and vars(value) | {"process": value.process.to_parameters()}
        return {"": np.frombuffer(json.dumps(plain).encode(), np.uint8)}

    def decode(self, value: object, arrays: dict[str, Array]) -> LearnedProcess | None:  # noqa: ARG002 - replaced
        """The process of these parameters."""
        plain: dict[str, Any] | None = json.loads(arrays[""].tobytes())
        if plain is None:
            return None
        return LearnedProcess(**plain | {"process": Process.from_parameters(plain["process"])})


class ProcessLearner(Stateful):
    """The process of a stream: a linear trend, a random walk or an AR(1) process; None if it follows none of these.

    Running fits of all classes observe every row. A review compares them by the likelihood of the recent rows, each
    given the row before, with a penalty for parameters. The best fit is accepted if it is better than two models
    without order, which are shares of values and a constant with noise, and if the last rows agree with it. If fits
    to the recent rows alone are far better, the older rows are discarded, so that changes of the process are
    followed.

    Parameters
    ----------
    horizon
        The half-life of a row, in units of time; None for no decay.

    Examples
    --------
    >>> rng = np.random.default_rng(1)
    >>> times = np.arange(400)
    >>> learner = ProcessLearner()
    >>> learner.observe(times, 3 * times + rng.integers(-8, 9, 400))
    >>> learner.learned.process
    LinearTrend(speed=3.000..., offset=1197.3..., noise=Noise(bound=8.37..., sigma=None))
    >>> learner.observe(times + 400, rng.integers(0, 9, 400))
    >>> learner.learned is None
    True

    References
    ----------
    On Joining and Caching Stochastic Streams, sections 2 and 6.2: statistical properties that are observed.
    Present Position and Potential Developments: The Prequential Approach (Dawid, 1984).

    Deviations
    ----------
    The paper does not treat how processes are found. Shares have no penalty: a value is predicted by its frequency
    among the recent rows before it. They are compared here but not learned (`LearnedFrequency` does). The fits do
    not depend on how rows are cut into batches; the times of reviews do.
    """

    state: ClassVar[State] = {
        "{}-": Nested("_fits"),
        "": Record("_recent", RecentRows),
        "waiting_": Record("_waiting_rows", RecentRows),
        "seen": Numbers(_rows=int),
        "learned": _LearnedProcess("learned"),
    }

    def __init__(self, horizon: Time | None = None) -> None:
        self._horizon = horizon
        self._fits = _RunningFits.of(horizon)
        self._recent = RecentRows(np.empty(0), np.empty(0, np.int64))
        self._rows = 0
        self._waiting: list[RecentRows] = []  # until the next review
        self.learned: LearnedProcess | None = None

    def observe(self, times: ArrayLike, values: ArrayLike) -> None:
        """Learn from rows, most of them in order of time."""
        time, value = columns(times, values)
        if not len(time):
            return
        self._rows += len(time)
        self._waiting.append(RecentRows(time.copy(), value.copy()))
        fewest, most = _REVIEW_ROWS
        if sum(len(rows.times) for rows in self._waiting) >= min(
            max(self._rows // _REVIEW_SHARE, fewest), most
        ):
            rows, self._waiting = _concatenate(self._waiting), []
            for fit in self._fits:
                fit.observe(*rows)
            self._recent = _latest(_concatenate([self._recent, rows]) if len(self._recent.times) else rows)
            self.learned = self._review()

    def _review(self) -> LearnedProcess | None:
        if len(self._recent.times) < _MIN_ROWS:
            return None
        best, likelihood = _best(self._fits, self._recent)
        recent = _RunningFits.of(self._horizon)
        for fit in recent:
            fit.observe(*self._recent)
        best_recent, better = _best(recent, self._recent)
        if better > likelihood + _MARGIN:
            self._fits, best, likelihood = recent, best_recent, better
        least = max(_shares_likelihood(self._recent.values), _level_likelihood(self._recent)) + _MARGIN
        if likelihood <= least or not _agrees(best, self._recent):
            return None
        pace, origin = self._fits.walk, self._recent.times[-1].item()
        process = pace.gap and best.process(self._recent, pace.gap, origin)
        return (
            LearnedProcess(process, pace.gap, origin, pace.regular, pace.weight)
            if process and pace.gap
            else None
        )

    @property
    def _waiting_rows(self) -> RecentRows:
        return _concatenate(self._waiting) if self._waiting else RecentRows(*(r[:0] for r in self._recent))

    @_waiting_rows.setter
    def _waiting_rows(self, rows: RecentRows) -> None:
        self._waiting = [rows] if len(rows.times) else []


def _concatenate(parts: list[RecentRows]) -> RecentRows:
    return RecentRows(*(np.concatenate(columns) for columns in zip(*parts, strict=True)))


def _latest(rows: RecentRows) -> RecentRows:
    """The last of these rows by time; rows of one time in order of arrival."""
    order = np.argsort(rows.times, kind="stable")[-_RECENT_ROWS:]
    return RecentRows(rows.times[order], rows.values[order])


def _best(fits: _RunningFits, recent: RecentRows) -> tuple[RunningFit, float]:
    """The fit with the highest likelihood of the recent rows, and that likelihood."""
    scored: list[tuple[RunningFit, float]] = [(fit, _likelihood(fit, recent)) for fit in fits]
    return max(scored, key=lambda pair: pair[1])


def _likelihood(fit: RunningFit, recent: RecentRows) -> float:
    """The log-likelihood of all rows but the first, with Schwarz's penalty for parameters."""
    intervals = fit.intervals(recent)
    if intervals is None:
        return -np.inf
    least = _IMPOSSIBLE / (float(recent.values.max()) - float(recent.values.min()) + 1)
    mass = np.maximum(intervals[1] - intervals[0], least)
    return float(np.log(mass).sum()) - fit.parameters / 2 * float(np.log(len(mass)))


def _agrees(fit: RunningFit, recent: RecentRows) -> bool:
    intervals = fit.intervals(recent)
    if intervals is None:
        return False
    below, upto = (ends[-_TESTED_ROWS:] for ends in intervals)
    # An impossible row is an outlier with an extreme rank; several of them fail the test.
    return agreement(below, np.maximum(upto, np.nextafter(below, 2))) >= _MIN_P_VALUE


def _level_likelihood(recent: RecentRows) -> float:
    """The log-likelihood of a constant with noise."""
    level = TrendLearner(level=True)
    level.observe(*recent)
    return _likelihood(level, recent)


def _shares_likelihood(values: Array) -> float:
    """The log-likelihood by the frequency of each value so far; new values are uniform within the range."""
    order = np.argsort(values, kind="stable")
    grouped = values[order]
    first = np.concatenate(([True], grouped[1:] != grouped[:-1]))
    places = np.arange(len(values))
    before = np.empty(len(values))
    before[order] = places - np.maximum.accumulate(np.where(first, places, 0))
    new = 1 / (float(values.max()) - float(values.min()) + 1)
    chances = np.where(before > 0, before, new) / (places + 1)
    return float(np.log(chances[1:]).sum())
