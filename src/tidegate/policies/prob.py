"""Keep the rows whose keys are most frequent on the other side."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, ClassVar, Final, NamedTuple, cast

import numpy as np

from tidegate.compiled import inlined, kernel
from tidegate.draws import salt
from tidegate.models import Frequency, FrequencyLearner, LinearTrend, Payoff, Rates, StreamShares
from tidegate.models.decay import half_life, horizon_for
from tidegate.models.frequencies.key_counts import MAX_HALF_LIVES, arrival_weight, share_of_total
from tidegate.models.frequencies.stream_shares import SAMPLE
from tidegate.models.joint_payoff import rates_of
from tidegate.models.rates import expected, relative
from tidegate.policies.policy import Policy, RunningPolicy
from tidegate.policies.ranking import NO_INTEGERS, NO_NUMBERS, NO_STEPS, FixedRanking, overrides_together
from tidegate.policies.trend_limits import (
    RunLimits,
    TrendLimits,
    check_trends,
    lower_unreachable,
)
from tidegate.policies.waiting import JoinableSpans
from tidegate.types import FAR, SIDES, InputError, Learned, Nested, Numbers, Record, Unused, other_side

if TYPE_CHECKING:
    from collections.abc import Callable

    from tidegate.policies.ranking import RecordedRun
    from tidegate.types import Array, Budget, Rows, Setting, Side, State, Step, Time

_PAYOFFS_A_WINDOW: Final = 16
"""How often in a window the payoffs are computed."""
_SEGMENTS: Final = 64
_KEYS_A_ROW: Final = 4
_ROW_BYTES: Final = 64
_REPORTED_KEYS: Final = 100
"""How many of the most frequent keys `learned` reports."""
_CAPACITIES: Final = (1 << 10, 1 << 16)


@dataclass(frozen=True)
class Prob(Policy):
    """Score a row by the rate at which the other side brings its key.

    For joins in which keys recur, some far more often than others: components and their errors, users and
    their clicks. If every key is new, all scores are equal and the newest rows stay: use `age` there.

    Without a model it learns the shares of the keys on both sides within bounded memory, and follows them
    when they change.

    Parameters
    ----------
    model
        The share of each key on either side; None to learn them.
    capacity
        How many keys of each side are counted one by one when learning; the other keys are counted together. By
        default four times as many as the budget holds rows (of 64 bytes), from 1,024 to 65,536. They take
        memory in addition to the budget.
    horizon
        The half-life of an observation; by default some windows. With a window without end, nothing is forgotten.
    left, right
        For keys that move: the line that each side's keys follow. Rows whose key the other side cannot bring any more
        are evicted first. The shares are still those of the past.
    rates
        Rows per unit of time on the left and on the right, if they are known; None to learn them, with or without a
        model. Times are in the unit of the data; on Spark that is a microsecond.

    Examples
    --------
    >>> import tidegate as tg
    >>> errors = {"key": [7, 8, 7, 9, 7, 5, 7], "time": [1, 2, 3, 4, 5, 6, 7]}
    >>> actions = {"key": [7, 8, 9, 5], "time": [0, 0, 0, 0]}
    >>> one = dict(window=(9, 0), budget=1, split=(1, 0))
    >>> frequent = tg.models.Frequency(left={7: 0.25, 8: 0.25, 9: 0.25, 5: 0.25}, right={7: 0.7, 8: 0.1, 9: 0.2})
    >>> tg.simulate(actions, errors, policy=tg.policies.Prob(frequent), **one).results
    4
    >>> tg.simulate(actions, errors, policy="fifo", **one).results
    1

    References
    ----------
    Memory-Limited Execution of Windowed Stream Joins, sections 2.1 and 3.3; On Joining and Caching Stochastic
    Streams, sections 1 and 8 (PROB).

    Deviations
    ----------
    The papers rank the rows of one side by share alone. Here a score is the expected results per unit of time: share
    times the other side's rate. So rows of both sides can be compared in a shared pool. With given shares and
    learned rates, sides that differ by one row at most count as equally fast. Among equal scores the newest stay.
    """

    name: ClassVar[str] = "prob"
    use_when: ClassVar[str] = (
        "Keys recur, some far more often than others: users and clicks, parts and errors."
    )
    by_key: ClassVar[bool] = True
    predicts: ClassVar[bool] = True

    model: Frequency | None = None
    capacity: int | None = None
    horizon: float | None = None
    left: LinearTrend | None = None
    right: LinearTrend | None = None
    rates: tuple[float, float] | None = field(default=None, kw_only=True)

    def __post_init__(self) -> None:
        if not isinstance(self.model, Frequency | None):
            raise InputError(
                f"model {self.model!r} is not a frequency model; give tidegate.models.Frequency(left, right)"
            )
        if self.capacity is not None and (not isinstance(self.capacity, int) or self.capacity < 1):
            raise InputError(
                f"capacity {self.capacity!r} is not a number of keys; give a whole number, at least 1"
            )
        half_life(self.horizon)
        check_trends(self.left, self.right)
        if self.rates is not None:
            object.__setattr__(self, "rates", rates_of(self.rates))

    def start(self, setting: Setting) -> RunningPolicy:
        """Start with the given shares, or learn them."""
        return RunningProb(self, setting)

    def weight(self, rows: Rows, clock: Time, remaining: Array | None = None) -> Array | float:  # noqa: ARG002 - for subclasses
        """A factor of the score; `remaining` is the time in which the other side can still bring the key."""
        return 1.0

    def lifetimes(self) -> Array:
        """How long rows of each side stay joinable, if `weight` depends on it; else empty."""
        return np.empty(0)


class RunningProb(RunningPolicy):
    """A running `Prob`: expected results per unit of time, from shares and rates."""

    state: ClassVar[State] = {
        "clock": Numbers(_now=float, _payoffs_at=float),
        "limits.": Nested("_limits").optional(),
        "{}.": Record("_payoffs", Payoff).optional(),
        "share": Unused(),  # learned without model=
    }

    def __init__(self, config: Prob, setting: Setting, *, forgets: bool = True) -> None:
        self.config = config
        self._spans = [max(setting.window.reach(side), 0) for side in SIDES]
        longest = max(self._spans)
        horizon = horizon_for(config.horizon, longest) if forgets else None
        self._rates = setting.model.part(Rates, horizon)
        self._limits = TrendLimits.of(config.left, config.right, setting)
        self._learner = None
        self._capacity, self._horizon = config.capacity or _capacity(setting.budget), half_life(horizon)
        if config.model is None:
            by = salt(setting.seed, setting.partition)
            self._learner = setting.model.part(StreamShares, self._capacity, horizon, by)
        self._ends = not setting.window.counted and longest < FAR
        self._joinable = None if setting.window.counted else JoinableSpans(setting.window)
        self._now: Time = -FAR
        self._payoffs_at: Time = -FAR
        self._payoffs: dict[Side, Payoff] = {}

    def __repr__(self) -> str:
        return repr(self.config)

    @property
    def learner(self) -> FrequencyLearner:
        """The counts of keys; only if no shares are given."""
        assert self._learner is not None  # noqa: S101 - an invariant
        return self._learner

    def observe(self, step: Step) -> None:
        """Note the time, and learn when keys arrive for the last time."""
        self._now = step.now
        if self._limits:
            self._limits.observe(step)

    def ranking(self, run: RecordedRun) -> FixedRanking | ShareRanking | None:
        """Rank by given shares, or by shares of keys that are all counted one by one."""
        if not overrides_together(self.config, "lifetimes", "weight"):
            return None
        if self._learner is None:
            return None if self._limits or len(self.config.lifetimes()) else self._by_given_shares(run)
        counts, times = run.counts(), run.nows[run.steps]
        half_lives = float(run.nows[-1] - run.nows[0]) / self._horizon
        distinct = max(len(np.unique(rows.key)) for rows in run.rows.values())
        if distinct > self._capacity or counts.max() > SAMPLE or half_lives > MAX_HALF_LIVES:
            return None
        rates = self._rates_of(run)
        for side, rows in run.rows.items():
            self._learner.observe(side, rows.key, times[rows.id])
        self._now = run.nows[-1].item()
        keys = run.merged(run.left.key, run.right.key)
        return ShareRanking(
            codes=np.unique(keys, return_inverse=True)[1],
            horizon=self._horizon,
            rates=rates,
            spans=self.config.lifetimes(),
            limits=self._limits.throughout(run) if self._limits else RunLimits(),
        )

    def _by_given_shares(self, run: RecordedRun) -> FixedRanking:
        """Rank by given shares; and by each side's rate at each step, unless rates are given too."""
        rates = self._rates_of(run)
        if self.config.rates is not None:
            left, right = (self._results_a_time(rows) for rows in run.rows.values())
            return FixedRanking(run.merged(left, right))
        shares = run.merged(self._share("right", run.left.key), self._share("left", run.right.key))
        return FixedRanking(shares, rates)

    def _rates_of(self, run: RecordedRun) -> Array:
        """Learn the rates of a whole run, and return `_rate` of each side after each step."""
        rows, spans = np.split(self._rates.follow(run.counts(), run.nows), [len(SIDES)], axis=1)
        if self.config.rates is not None:
            return np.tile(np.array(self.config.rates), (len(run.nows), 1))
        if self._learner is None:
            return np.stack(relative(*rows.T), axis=1)
        return expected(rows, spans)

    def _rate(self, side: Side) -> float:
        """The rows of a side per unit of time, or a number in proportion to them."""
        if self.config.rates is not None:
            return self.config.rates[SIDES.index(side)]
        # In steps of one row, one more row on one side must not decide between rows of equal given shares.
        return self._rates.relative(side) if self._learner is None else self._rates.expected(side)

    def scores(self, rows: Rows, clock: Time) -> Array:
        """Score by expected results per unit of time; rows whose key cannot arrive any more rank last."""
        remaining = self._limits.remaining(rows, clock) if self._limits else None
        weight = self.config.weight(rows, clock, remaining)
        if self._joinable:
            weight = weight * self._joinable.part_joinable(rows, clock)
        scores = self._results_a_time(rows, weight)
        if remaining is not None:
            lower_unreachable(scores, remaining)
        return scores

    def _results_a_time(self, rows: Rows, weight: Array | float = 1.0) -> Array:
        """The expected results of each row per unit of time, times its weight."""
        other = other_side(rows.side)
        return expected_results(self._share(other, rows.key), self._rate(other), weight)

    def _share(self, side: Side, keys: Array) -> Array:
        """The share of each key on a side."""
        model = self._learner or self.config.model
        assert model is not None  # noqa: S101 - without a model there is a learner
        return model.share(side, keys)

    def payoffs(self) -> tuple[Payoff, Payoff] | None:
        """The expected results by memory, from shares and rates; computed rarely, since all keys are read."""
        rates = self.config.rates or (self._rates.rate("left"), self._rates.rate("right"))
        known = self._learner or self.config.model
        if known is None or not self._ends or not all(rates):
            return None
        if self._now - self._payoffs_at >= max(self._spans) / _PAYOFFS_A_WINDOW:
            model = known.frequency() if isinstance(known, FrequencyLearner) else known
            both = model.payoff(rates=rates, window=(self._spans[0], self._spans[1]))
            self._payoffs = {side: payoff.coarse(_SEGMENTS) for side, payoff in zip(SIDES, both, strict=True)}
            self._payoffs_at = self._now
        return (self._payoffs["left"], self._payoffs["right"]) if self._payoffs else None

    def learned(self) -> list[Learned]:
        """Rates, and the shares of the most frequent keys."""
        rates = self.config.rates or (self._rates.rate("left"), self._rates.rate("right"))
        learned = [Learned("rate", side, rate) for side, rate in zip(SIDES, rates, strict=True)]
        for side in SIDES:
            total = self._learner.total(side) if self._learner else None
            learned.append(Learned("share", side, 1.0, total))
            known = self._learner or self.config.model
            if known is None or total == 0:
                continue
            keys = known.keys(side)
            shares = known.share(side, keys)
            for place in np.argsort(-shares, kind="stable")[:_REPORTED_KEYS].tolist():
                share = float(shares[place])
                rows = None if total is None else share * total
                learned.append(Learned("share", side, share, rows, key=int(keys[place])))
        return learned


def expected_results(share: Array, rate: float, weight: Array | float = 1.0) -> Array:
    """The score: the share of a key on the other side, times that side's rate, times the weight of the row."""
    scores: Array = share * (rate * weight)
    return scores


expected_results_number = cast("Callable[[float, float, float], float]", inlined(expected_results))
"""`expected_results` of one row, for compiled loops."""


class ShareRanking(NamedTuple):
    """Rank by shares of keys that are counted while rows arrive.

    Parameters
    ----------
    codes
        The key of each row as a number from 0 on, by row number.
    horizon
        The half-life of an arrival.
    rates
        The rate of each side at each step; empty to rank by counts instead.
    spans
        How long rows of each side stay joinable, if scores depend on the time left (`Life`).
    limits
        For how long keys can still arrive.
    """

    codes: Array = NO_INTEGERS
    horizon: float = np.inf
    rates: Array = NO_STEPS
    spans: Array = NO_NUMBERS
    limits: RunLimits = RunLimits()


class KeyShares(NamedTuple):
    """What was counted so far: for each side the weight of each key and of all, and the time of its first row."""

    weights: Array
    totals: Array
    began: Array


@kernel
def no_shares(ranking: ShareRanking) -> KeyShares:
    """The counts before the first row."""
    keys = ranking.codes.max() + 1 if len(ranking.codes) > 0 else 0
    return KeyShares(np.zeros((2, keys)), np.zeros(2), np.full(2, np.nan))


@inlined
def count_row(counted: KeyShares, code: int, side: int, now: float, horizon: float) -> None:
    """Count a row that arrived."""
    if np.isnan(counted.began[side]):
        counted.began[side] = now
    weight = arrival_weight(now, counted.began[side], horizon)
    counted.weights[side, code] += weight
    counted.totals[side] += weight


@kernel
def share_scores(ranking: ShareRanking, counted: KeyShares, rows: Array, on_right: Array, step: int) -> Array:
    """The scores of rows of both sides after a step; only the shares, if they are weighted by the time left."""
    scores = np.empty(len(rows))
    codes, weights, totals = ranking.codes, counted.weights, counted.totals
    if len(ranking.rates) == 0:
        for i in range(len(rows)):
            scores[i] = weights[1 - on_right[rows[i]], codes[rows[i]]]
        return scores
    rates = ranking.rates[step]
    weighted_later = len(ranking.spans) > 0
    for i in range(len(rows)):
        other = 1 - on_right[rows[i]]
        share = share_of_total(weights[other, codes[rows[i]]], totals[other])
        scores[i] = share if weighted_later else expected_results_number(share, rates[other], 1.0)
    return scores


def _capacity(budget: Budget | None) -> int:
    low, high = _CAPACITIES
    if budget is None:
        return high
    rows = budget.limit if budget.unit == "rows" else budget.limit // _ROW_BYTES
    return min(max(_KEYS_A_ROW * rows, low), high)
