"""Which process a stream follows, found out while it arrives."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Self

import numpy as np

from tidegate.models.ar1 import AR1
from tidegate.models.fitted import Fitted, Recent, columns
from tidegate.models.linear_trend import LinearTrend
from tidegate.models.neighbours import AR1Learner, WalkLearner
from tidegate.models.noise import Noise
from tidegate.models.process import Process, agreement
from tidegate.models.random_walk import RandomWalk
from tidegate.models.trend_learner import TrendLearner

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from tidegate.types import Array, Time

_RECENT: Final = 512
_TESTED: Final = 128
"""So many of the recent rows must agree with a process: of more, no real stream would be normal enough."""
_LEAST: Final = 48
"""Of fewer rows nothing is believed."""
_REVIEWS: Final = (16, 256)
_SELDOM: Final = 8
"""Beliefs are reviewed as soon as there are an eighth more rows, but for at least and at most so many."""
_UNLIKELY: Final = 1e-4
_IMPOSSIBLE: Final = 1e-6
"""What a row that cannot be has of the probability of one that may be any within the range."""
_MARGIN: Final = 10.0
"""By how much the logarithm of one likelihood must exceed another's, beside what parameters cost."""


@dataclass(frozen=True)
class Belief:
    """A process, and the clock by which it goes.

    Parameters
    ----------
    process
        In steps of `unit`, the first at `origin`.
    unit
        The mean time between rows.
    origin
        The time of the newest row when it was found.
    regular
        Whether rows came at gaps that are all alike.
    rows
        How many rows it rests on, each counted for what is left of it.
    """

    process: Process
    unit: float
    origin: Time
    regular: bool
    rows: float

    def in_strides(self, rows: int) -> Process:
        """The process in steps of so many units.

        Where rows may come at any time of a step, the trend may be anywhere on its way; that widens the noise.
        """
        process = self.process
        if isinstance(process, LinearTrend) and (rows > 1 or not self.regular):
            speed = process.speed * rows
            return replace(process, speed=speed, noise=_widened(process.noise, abs(speed)))
        if isinstance(process, RandomWalk) and rows > 1:
            return RandomWalk(process.drift * rows, Noise(sigma=math.sqrt(rows * _variance(process.step))))
        if isinstance(process, AR1) and rows > 1:
            left = process.phi1**rows
            spread = math.sqrt((1 - left**2) / (1 - process.phi1**2))
            return AR1(process.mean * (1 - left), left, process.sigma * spread)
        return process


class _Fits(NamedTuple):
    """A running fit of each kind."""

    trend: TrendLearner
    walk: WalkLearner
    ar1: AR1Learner

    @classmethod
    def of(cls, horizon: Time | None) -> Self:
        return cls(TrendLearner(horizon), WalkLearner(horizon), AR1Learner(horizon))


class ProcessLearner:
    """A side's stream as a process: a trend, a walk, or a level, with its parameters; None if it is none of these.

    Running fits of all kinds see every row. From time to time each must foretell the recent rows, one from the row
    before. The likeliest is believed, its parameters being paid for, if it is likelier than the two that say nothing
    of the order of rows: shares of values, and a level with noise. And the last of the rows must look as if they
    came from it. Where fits to the recent rows alone do far better, what went before no longer holds, and the fits
    start over from there: so it follows a stream that turns into another.

    Parameters
    ----------
    horizon
        The half-life of a row, in units of time; None forgets nothing.

    Examples
    --------
    >>> rng = np.random.default_rng(1)
    >>> times = np.arange(400)
    >>> learner = ProcessLearner()
    >>> learner.observe(times, 3 * times + rng.integers(-8, 9, 400))
    >>> learner.belief.process
    LinearTrend(speed=3.000..., offset=1197.3..., noise=Noise(bound=8.37..., sigma=None))
    >>> learner.observe(times + 400, rng.integers(0, 9, 400))
    >>> learner.belief is None
    True

    References
    ----------
    On Joining and Caching Stochastic Streams, sections 2 and 6.2: statistical properties that are observed.
    Present Position and Potential Developments: The Prequential Approach (Dawid, 1984).

    Deviations
    ----------
    The paper leaves to others how processes are found. Shares pay for themselves: a value is foretold by how often
    it was among the recent rows before. They are not learned here (`LearnedFrequency` does), only weighed. What
    the fits learn does not depend on how rows are cut into batches; when beliefs are reviewed does.
    """

    def __init__(self, horizon: Time | None = None) -> None:
        self._horizon = horizon
        self._fits = _Fits.of(horizon)
        self._recent = Recent(np.empty(0), np.empty(0, np.int64))
        self._seen = 0
        self._waiting: list[Recent] = []  # for the next review: until then nobody asks
        self.belief: Belief | None = None

    def observe(self, times: ArrayLike, values: ArrayLike) -> None:
        """Learn from rows, which are mostly in order of time."""
        when, what = columns(times, values)
        if not len(when):
            return
        self._seen += len(when)
        self._waiting.append(Recent(when.copy(), what.copy()))
        fewest, most = _REVIEWS
        if sum(len(rows.times) for rows in self._waiting) >= min(max(self._seen // _SELDOM, fewest), most):
            rows, self._waiting = _together(self._waiting), []
            for fit in self._fits:
                fit.observe(*rows)
            self._recent = _latest(_together([self._recent, rows]) if len(self._recent.times) else rows)
            self.belief = self._review()

    def _review(self) -> Belief | None:
        if len(self._recent.times) < _LEAST:
            return None
        found, likelihood = _best(self._fits, self._recent)
        anew = _Fits.of(self._horizon)
        for fit in anew:
            fit.observe(*self._recent)
        by_itself, better = _best(anew, self._recent)
        if better > likelihood + _MARGIN:
            self._fits, found, likelihood = anew, by_itself, better
        least = max(_by_shares(self._recent.values), _by_level(self._recent)) + _MARGIN
        if likelihood <= least or not _agrees(found, self._recent):
            return None
        pace, origin = self._fits.walk, self._recent.times[-1].item()
        process = pace.gap and found.process(self._recent, pace.gap, origin)
        return Belief(process, pace.gap, origin, pace.regular, pace.weight) if process and pace.gap else None

    def snapshot(self) -> dict[str, Array]:
        """What was learned and what is believed, as plain arrays."""
        fits = self._fits._asdict().items()
        state = {f"{kind}-{name}": array for kind, fit in fits for name, array in fit.snapshot().items()}
        told: dict[str, Any] | None = None
        if self.belief is not None:
            told = vars(self.belief) | {"process": self.belief.process.plain()}
        waiting = _together(self._waiting) if self._waiting else Recent(*(rows[:0] for rows in self._recent))
        return state | {
            "times": self._recent.times,
            "values": self._recent.values,
            "waiting_times": waiting.times,
            "waiting_values": waiting.values,
            "seen": np.array([self._seen]),
            "belief": np.frombuffer(json.dumps(told).encode(), np.uint8),
        }

    def restore(self, state: dict[str, Array]) -> Self:
        """Take up what `snapshot` gave."""
        for kind, fit in self._fits._asdict().items():
            start = f"{kind}-"
            fit.restore({n.removeprefix(start): a for n, a in state.items() if n.startswith(start)})
        self._recent = Recent(state["times"].copy(), state["values"].copy())
        waiting = Recent(state["waiting_times"].copy(), state["waiting_values"].copy())
        self._waiting = [waiting] if len(waiting.times) else []
        self._seen = int(state["seen"][0])
        told = json.loads(state["belief"].tobytes())
        self.belief = told and Belief(**told | {"process": Process.made_of(told["process"])})
        return self


def _variance(noise: Noise) -> float:
    """Of normal noise without bound, or of uniform noise."""
    return noise.sigma**2 if noise.sigma is not None else ((noise.bound or 0.0) + 0.5) ** 2 / 3


def _widened(noise: Noise, moves: float) -> Noise:
    """Noise around a centre that may be anywhere within so long a way."""
    bound = None if noise.bound is None else noise.bound + moves / 2
    return Noise(bound, None if noise.sigma is None else math.sqrt(noise.sigma**2 + moves**2 / 12))


def _together(parts: list[Recent]) -> Recent:
    return Recent(*(np.concatenate(columns) for columns in zip(*parts, strict=True)))


def _latest(rows: Recent) -> Recent:
    """The last of these by time; those of one time by arrival."""
    order = np.argsort(rows.times, kind="stable")[-_RECENT:]
    return Recent(rows.times[order], rows.values[order])


def _best(fits: _Fits, recent: Recent) -> tuple[Fitted, float]:
    """The kind by which recent rows are likeliest, and how likely they are."""
    found: list[tuple[Fitted, float]] = [(fit, _likelihood(fit, recent)) for fit in fits]
    return max(found, key=lambda each: each[1])


def _likelihood(fit: Fitted, recent: Recent) -> float:
    """The logarithm of the probability of all rows but the first, less what parameters cost (Schwarz)."""
    intervals = fit.intervals(recent)
    if intervals is None:
        return -np.inf
    least = _IMPOSSIBLE / (float(recent.values.max()) - float(recent.values.min()) + 1)
    mass = np.maximum(intervals[1] - intervals[0], least)
    return float(np.log(mass).sum()) - fit.parameters / 2 * float(np.log(len(mass)))


def _agrees(fit: Fitted, recent: Recent) -> bool:
    intervals = fit.intervals(recent)
    if intervals is None:
        return False
    below, upto = (ends[-_TESTED:] for ends in intervals)
    # A single row that is impossible is an outlier, and its rank is at the end; many of them will show.
    return agreement(below, np.maximum(upto, np.nextafter(below, 2))) >= _UNLIKELY


def _by_level(recent: Recent) -> float:
    """The likelihood by noise around a level that stays."""
    level = TrendLearner(level=True)
    level.observe(*recent)
    return _likelihood(level, recent)


def _by_shares(values: Array) -> float:
    """The likelihood by how often each value was there before; a new one may be any within the range."""
    order = np.argsort(values, kind="stable")
    grouped = values[order]
    first = np.concatenate(([True], grouped[1:] != grouped[:-1]))
    places = np.arange(len(values))
    before = np.empty(len(values))
    before[order] = places - np.maximum.accumulate(np.where(first, places, 0))
    new = 1 / (float(values.max()) - float(values.min()) + 1)
    chances = np.where(before > 0, before, new) / (places + 1)
    return float(np.log(chances[1:]).sum())
