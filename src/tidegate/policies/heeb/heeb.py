"""Keep the rows with the most expected results while they stay in memory."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Final, NamedTuple

import numpy as np

from tidegate.compiled import kernel
from tidegate.models import History, Markov, Process, RandomWalk, Rates
from tidegate.models.decay import half_life, horizon_for
from tidegate.models.rates import relative
from tidegate.policies.arrival_models import check_processes
from tidegate.policies.heeb.adaptive import AdaptiveHeeb
from tidegate.policies.heeb.incremental import drifting
from tidegate.policies.heeb.lifetime import Lifetime
from tidegate.policies.heeb.precomputed import rounded_benefit
from tidegate.policies.heeb.survival import Exponential, Survival
from tidegate.policies.heeb.windowed_benefit import benefit_within, step_ranges
from tidegate.policies.policy import Policy, RunningPolicy, check_integer_keys
from tidegate.policies.prob import Prob, RunningProb, expected_results, expected_results_number
from tidegate.policies.ranking import NO_INTEGERS, NO_NUMBERS, NO_STEPS, last_complete
from tidegate.policies.waiting import JoinableSpans
from tidegate.types import FOREVER, SIDES, InputError, Tuple, other_side

if TYPE_CHECKING:
    from tidegate.policies.ranking import RecordedRun
    from tidegate.types import Array, Rows, Setting, Side, State, Step, Time

_AHEAD: Final = 256
_MAX_TIME: Final = 2.0**53
"""Up to this time every whole number is a float."""
_MAX_TABLE: Final = 1 << 20
"""The largest range of keys in a run for which a table of all of them is made."""


@dataclass(frozen=True)
class Heeb(Policy):
    """Score a row by its expected results, each weighted by the probability that the row is still in memory.

    For streams whose keys follow a process that is known or can be fitted: timestamps that drift, levels, walks.
    `prob` and `life` use past frequencies. This policy uses what arrives next: a row whose key the other stream has
    passed is evicted at once, and one that it will reach soon stays.

    The sums come from tables (see `h1` for walks and `h2` for levels). Scores are rounded to 36 binary digits. So
    rows with the same expected results have equal scores, such as rows at the same distance above and below the last
    value of a walk without drift. Among equal scores the newer row stays; of two rows that arrived at the same time,
    the right one.

    Without processes it searches for them: if keys are whole numbers (or times, on Spark) and both sides are trends,
    walks or levels (`tidegate.models.ProcessLearner`), it scores by these, row by row and at any rate. Until then it
    learns the shares of the keys as `prob` does, and weights the time that a row has left by the observed lifetime in
    memory: if rows leave soon it ranks like `prob`, if they outlive their windows like `life`.

    Parameters
    ----------
    left, right
        The process that each side's keys follow, one row at each time step, whose number is the row's time; None for
        both to learn processes or shares. If several rows arrive at a time, or none at some times, each of them is
        assumed to follow it, and expected results are in proportion to the rows of the other side.
    survival
        The probability that a row is still in memory after some steps; by default exponential, with the observed mean
        lifetime, whose alpha is rounded to a 32nd of an octave so that tables can be reused. Without processes, only
        an exponential one, whose alpha is in units of time.
    ahead
        The maximum number of steps to look ahead, with processes.
    capacity, horizon
        As for `prob`; the horizon is also the half-life of observed lifetimes.

    Examples
    --------
    >>> import numpy as np
    >>> import tidegate as tg
    >>> trend = tg.models.LinearTrend(speed=1, offset=0, noise=tg.models.Noise(bound=8))
    >>> time, rng = np.arange(2000), np.random.default_rng(1)
    >>> left, right = ({"time": time, "key": time + rng.integers(-8, 9, 2000)} for _ in range(2))
    >>> settings = dict(window=(None, None), budget=8, step="instant")
    >>> tg.simulate(left, right, policy=tg.policies.Heeb(left=trend, right=trend), **settings).results
    1086
    >>> [tg.simulate(left, right, policy=name, **settings).results for name in ("heeb", "prob", "random")]
    [1075, 150, 811]

    References
    ----------
    On Joining and Caching Stochastic Streams, sections 5.3 and 7.

    Deviations
    ----------
    For sliding windows the paper refers to a report. Here results count only while both rows are in their windows;
    a window that counts rows is treated as one without end. The lifetime is observed by Little's law, as section 7.3
    proposes but does not do. It counts the steps at which a row can match, so the current one, which the paper's mean
    includes, is added. The paper assumes equal arrival rates; here they are learned, and each score is multiplied by
    the other side's rate relative to that of the faster side. For a walk or level the last row of a step is the last
    value, even if other rows arrived at the same time. After more than `ahead` steps without rows, the state of a
    walk after `ahead` steps is used. Learned shares and survival are continuous in time, and are multiplied by the
    other side's rate.
    """

    name: ClassVar[str] = "heeb"
    use_when: ClassVar[str] = (
        "Keys are numbers that follow a trend, a random walk or a level, given or learned."
    )
    by_key: ClassVar[bool] = True

    left: Process | None = None
    right: Process | None = None
    survival: Survival | None = None
    ahead: int = _AHEAD
    capacity: int | None = None
    horizon: float | None = None

    def __post_init__(self) -> None:
        check_processes("heeb", self.left, self.right)
        if self.survival is not None:
            Survival.check(self.survival)
        if self.left is None and not isinstance(self.survival, Exponential | None):
            raise InputError(
                f"heeb needs processes for {self.survival!r}; give left= and right=, or use Exponential"
            )
        if isinstance(self.ahead, bool) or not isinstance(self.ahead, int) or self.ahead < 1:
            raise InputError(f"ahead is {self.ahead!r}; give a whole number of steps, at least 1")
        half_life(self.horizon)

    def start(self, setting: Setting) -> RunningPolicy:
        """Start with the given processes, or learn processes and shares."""
        if self.left is None or self.right is None:
            shares = ShareHeeb(self, setting)
            return AdaptiveHeeb(self, shares, shares.lifetime, setting) if setting.integer_keys else shares
        check_integer_keys(setting, "heeb was given processes (left=, right=)")
        return ProcessHeeb(self, {"left": self.left, "right": self.right}, setting)


class ProcessHeeb(RunningPolicy):
    """A running `Heeb` with processes: the sum over the steps ahead, from tables."""

    state: ClassVar[State] = {
        "last.{}": Tuple("_last", np.int64).optional(),
    }

    def __init__(self, config: Heeb, processes: dict[Side, Process], setting: Setting) -> None:
        self.config = config
        self._processes = processes
        self._spans = setting.window.lifetimes()
        for side, met in zip(SIDES, (processes["right"], processes["left"]), strict=True):
            given = config.survival
            if given and self._spans[side] == FOREVER and not given.converges(met, "joining"):
                raise InputError(
                    f"the {side}'s window has no end in time, and with {given!r} the benefit in joining with "
                    f"{type(met).__name__} has no bound; use Exponential or Fixed, or give a window of some time"
                )
        horizon = horizon_for(config.horizon, max(self._spans.values()))
        self._lifetime, self._rates = (
            setting.model.part(Lifetime, horizon),
            setting.model.part(Rates, horizon),
        )
        self._last: dict[Side, tuple[int, int] | None] = dict.fromkeys(SIDES)  # time and key

    def __repr__(self) -> str:
        return repr(self.config)

    def observe(self, step: Step) -> None:
        """Remember each side's last key."""
        for side in SIDES:
            rows = step.rows[side]
            if len(rows) > step.fresh[side]:
                self._last[side] = math.floor(rows.time[-1]), int(rows.key[-1])

    def survival(self) -> Survival:
        """The given one, or that of the observed lifetime; before any was observed, of one more step."""
        return self.config.survival or Exponential.near_lifetime(1 + (self._lifetime.mean() or 1.0))

    def scores(self, rows: Rows, clock: Time) -> Array:
        """Score by the expected results until the row leaves its window or memory."""
        other = other_side(rows.side)
        process, survival, last = self._processes[other], self.survival(), self._last[other]
        if last is None and isinstance(process, Markov):
            return np.zeros(len(rows))
        since = int(last_complete(clock, last[0])) if last else math.floor(clock) - 1
        history = History(*last) if last and not process.independent else History(since)
        ahead = self._ahead(process, survival)
        begins, ends = step_ranges(rows.time, *self._bounds(rows, other, since), ahead)
        # After many steps without rows a walk could be anywhere; more steps would not help.
        lag = min(since - history.now, ahead)
        found = benefit_within(process, history, rows.key, survival, begins, ends, ahead=ahead, lag=lag)
        return expected_results(rounded_benefit(found), self._rates.relative(other))

    def _ahead(self, process: Process, survival: Survival) -> int:
        """The number of steps to look ahead, after which the rest of the sum is negligible."""
        steps = survival.negligible_after() or self.config.ahead
        if isinstance(process, RandomWalk) and isinstance(survival, Exponential):
            # A walk needs many steps to reach far keys; of two unlikely rows, the nearer should rank higher.
            steps = max(steps, _AHEAD)
        return min(self.config.ahead, steps)

    def ranking(self, run: RecordedRun) -> DistanceRanking | None:
        """Rank by tables, if each step has rows of both sides and scores depend on the distance to the other."""
        counts, since = run.counts(), run.since()
        survival, endless = self.config.survival, set(self._spans.values()) == {FOREVER}
        precise = np.abs(since).max(initial=0.0) < _MAX_TIME
        if survival is None or not endless or not counts.all() or not precise:
            return None
        times = run.last({side: np.floor(rows.time) for side, rows in run.rows.items()})
        keys = run.last({side: rows.key for side, rows in run.rows.items()})
        origins, tables, starts = np.empty(since.shape, np.int64), [], []
        for (side, process), place in zip(self._processes.items(), range(len(SIDES)), strict=True):
            moving = drifting(process, survival)
            if moving is not None:
                origins[:, place] = int(moving.trend.speed) * since[:, place]
            elif isinstance(process, RandomWalk) and (times[:, place] == since[:, place]).all():
                origins[:, place] = keys[:, place]
            else:
                return None
            other_keys = run.rows[other_side(side)].key
            low = int(other_keys.min()) - int(origins[:, place].max())
            high = int(other_keys.max()) - int(origins[:, place].min())
            if high - low > _MAX_TABLE:
                return None
            distances, ahead = np.arange(low, high + 1), self._ahead(process, survival)
            none, all_ = np.zeros(len(distances), np.int64), np.full(len(distances), ahead)
            found = benefit_within(process, History(0, 0), distances, survival, none, all_, ahead=ahead)
            tables.append(rounded_benefit(found))
            starts.append(low)
        return DistanceRanking(
            left=tables[1],
            right=tables[0],
            starts=np.array(starts[::-1]),
            origins=origins,
            keys=run.merged(run.left.key, run.right.key),
            rates=np.stack(relative(*self._rates.follow(counts, run.nows)[:, :2].T), axis=1),
        )

    def _bounds(self, rows: Rows, other: Side, since: int) -> tuple[Time, Time, Time]:
        """The current time, and the begin and end of a row's window after its own time; in the type of its times."""
        bounds = since, self._spans[rows.side], -self._spans[other]
        if np.issubdtype(rows.time.dtype, np.floating):
            return float(bounds[0]), float(bounds[1]), float(bounds[2])
        return bounds[0], math.floor(bounds[1]), math.ceil(bounds[2])


class DistanceRanking(NamedTuple):
    """Rank by the distance of a row's key from the position of the other side.

    Parameters
    ----------
    left, right
        The benefits of rows of each side, by distance.
    starts
        The distance of the first entry for each side.
    origins
        The position of each side at each step.
    keys
        The key of each row, by row number.
    rates
        The rate of each side at each step, relative to the faster one.
    """

    left: Array = NO_NUMBERS
    right: Array = NO_NUMBERS
    starts: Array = NO_INTEGERS
    origins: Array = np.empty((0, 2), np.int64)
    keys: Array = NO_INTEGERS
    rates: Array = NO_STEPS


@kernel
def distance_scores(ranking: DistanceRanking, rows: Array, on_right: Array, step: int) -> Array:
    """The scores of rows of both sides after a step."""
    scores = np.empty(len(rows))
    keys, starts, origins, rates = ranking.keys, ranking.starts, ranking.origins[step], ranking.rates[step]
    left, right = ranking.left, ranking.right
    for i in range(len(rows)):
        side = on_right[rows[i]]
        place = keys[rows[i]] - origins[1 - side] - starts[side]
        scores[i] = expected_results_number(right[place] if side else left[place], rates[1 - side], 1.0)
    return scores


class ShareHeeb(RunningProb):
    """A running `Heeb` without processes: learned shares, each multiplied by the expected time in memory."""

    def __init__(self, config: Heeb, setting: Setting) -> None:
        super().__init__(Prob(capacity=config.capacity, horizon=config.horizon), setting)
        self._heeb = config
        windows = setting.window.lifetimes()
        self._spans_left = JoinableSpans((windows["left"], windows["right"]))
        self.lifetime = setting.model.part(Lifetime, horizon_for(config.horizon, max(windows.values())))

    def __repr__(self) -> str:
        return repr(self._heeb)

    def ranking(self, run: RecordedRun) -> None:
        """Unknown: the lifetime is learned from the rows that are kept."""

    def scores(self, rows: Rows, clock: Time) -> Array:
        """Score by the rate of results, times the expected time in memory in which the row can match."""
        alpha = self._heeb.survival.alpha if isinstance(self._heeb.survival, Exponential) else None
        lifetime = alpha or self.lifetime.mean() or math.inf
        wait, left = self._spans_left.joinable(rows, clock)
        time_left = left.astype(np.float64)
        if math.isfinite(lifetime):
            time_left = -np.expm1(-time_left / lifetime) * lifetime
            if wait.any():
                time_left *= np.exp(-wait / lifetime)
        return self._results_a_time(rows) * time_left
