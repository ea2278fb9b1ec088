"""Keep the rows of which the most results may be expected while they stay."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Final, Self

import numpy as np

from tidegate.models import History, LinearTrend, Markov, Process, RandomWalk, Rates
from tidegate.models.decay import half_life, horizon_for
from tidegate.models.rates import relative
from tidegate.policies.expected_arrivals import check_processes
from tidegate.policies.heeb.adaptive import Choosing
from tidegate.policies.heeb.lifetime import Lifetime
from tidegate.policies.heeb.precomputed import evened
from tidegate.policies.heeb.survival import Exponential, Survival
from tidegate.policies.heeb.windowed_benefit import expected_within, stretches
from tidegate.policies.policy import Policy, need_numbers
from tidegate.policies.prob import Foreseeing, Prob
from tidegate.policies.ranking import Ranking
from tidegate.types import FOREVER, SIDES, InputError, as_part, other_side, parts_of

if TYPE_CHECKING:
    from tidegate.policies.ranking import Course
    from tidegate.types import Array, Rows, Setting, Side, Step, Time

_AHEAD: Final = 256
_PRECISE: Final = 2.0**53
"""Up to which times all whole numbers are floats."""
_WIDEST: Final = 1 << 20
"""How far apart the values of a whole run may be, for a table of all of them."""


@dataclass(frozen=True)
class Heeb(Policy):
    """A row is worth the results it may be expected to bring, each counted by how likely it is still there by then.

    For streams whose keys follow a process that is known or can be fitted: timestamps that drift, levels, walks.
    Where `prob` and `life` take the past for the future, this asks what comes next: a row that the other stream has
    passed goes at once, and one that it is about to reach stays.

    Its sums are looked up, not formed for each row: `h1` and `h2` tell how for walks and levels. Scores are rounded
    to 36 binary digits, so that rows which are worth the same have equal scores. Rows above and below the last value
    of a walk without drift, at the same distance, are such rows. Of rows with equal scores the newer stay; of two
    that arrived at the same time, the right one.

    Without processes it looks for them: where keys are whole numbers (or times, on Spark) and both sides are found to
    be trends, walks or levels (`tidegate.models.ProcessLearner`), it goes by these, row by row and at any rate. As
    long as that is not so it learns the shares of the keys as `prob` does, and weighs the time that a row has left
    as far as rows are seen to stay: where they soon go it ranks like `prob`, where they outlive their windows like
    `life`.

    Parameters
    ----------
    left, right
        The process that each side's keys follow, one row at each time step, whose number is the row's time; None for
        both to learn processes or shares. If several rows come at a time, or some times bring none, each of them is
        taken to follow it, and a row is worth as many results more as the other side brings rows.
    survival
        How likely a row is still there after some steps; by default exponential, with the mean lifetime that is
        observed, whose alpha is rounded to a 32nd of an octave so that tables last. Without processes, an
        exponential one, whose alpha is in units of time.
    ahead
        How many steps to look ahead at most, with processes.
    capacity, horizon
        As for `prob`; by the horizon lifetimes are forgotten, too.

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
    a window that counts rows is taken as one without end. The lifetime is observed by Little's law, as section 7.3
    proposes to do but does not; it counts the steps at which a row can be matched, so the present one, which the
    paper's mean includes, is added. Arrival rates, which the paper takes for equal, are learned; each score counts
    by the other side's rate beside that of the faster one. Of a walk or level the last row of a step counts as the
    last value, even if others came at the same time. After a silence of more than `ahead` steps a walk is taken to be
    where it could be after so many. Learned shares and survival are continuous in time, and count by the other
    side's rate.
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
                f"heeb has no processes, so no steps for {self.survival!r}; give left= and right=, or use Exponential"
            )
        if isinstance(self.ahead, bool) or not isinstance(self.ahead, int) or self.ahead < 1:
            raise InputError(f"ahead is {self.ahead!r}; give a whole number of steps, at least 1")
        half_life(self.horizon)

    def start(self, setting: Setting) -> Policy:
        """Take the processes that were given, or begin to learn them, and shares."""
        if self.left is None or self.right is None:
            shares = _Learning(self, setting)
            return Choosing(self, shares, shares.lifetime, setting) if setting.numeric else shares
        need_numbers(setting, "heeb was given processes (left=, right=)")
        return _Foretelling(self, {"left": self.left, "right": self.right}, setting)

    def scores(self, rows: Rows, now: Time) -> Array:
        """Nothing is known before a join has started."""
        raise InputError(
            f"heeb has observed nothing to score {len(rows)} rows by at {now}; let a join start it"
        )

    @classmethod
    def made_of(cls, parameters: dict[str, Any]) -> Self:
        """Make it again from what `parameters` told."""
        processes = {side: parameters[side] and Process.from_parameters(parameters[side]) for side in SIDES}
        survival = parameters["survival"] and Survival.made_of(parameters["survival"])
        return cls(**parameters | processes | {"survival": survival})


class _Foretelling(Policy):
    """`Heeb` at work with processes: the sum over the steps ahead, by tables."""

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
        self._lifetime, self._rates = Lifetime(horizon), Rates(horizon)
        self._last: dict[Side, tuple[int, int] | None] = dict.fromkeys(SIDES)  # time and key

    def __repr__(self) -> str:
        return repr(self.config)

    def observe(self, step: Step) -> None:
        """Take note of each side's last key, and learn how often rows come and how long they stay."""
        self._lifetime.observe(step)
        for side in SIDES:
            rows = step.rows[side]
            self._rates.observe(side, len(rows) - step.fresh[side], step.now)
            if len(rows) > step.fresh[side]:
                self._last[side] = math.floor(rows.time[-1]), int(rows.key[-1])

    def survival(self) -> Survival:
        """The one that was given, or that of the lifetime by now; before any was observed, of one more step."""
        return self.config.survival or Exponential.about(1 + (self._lifetime.mean() or 1.0))

    def scores(self, rows: Rows, now: Time) -> Array:
        """Score by the results expected until the row leaves its window or memory."""
        other = other_side(rows.side)
        process, survival, last = self._processes[other], self.survival(), self._last[other]
        if last is None and isinstance(process, Markov):
            return np.zeros(len(rows))
        # The other side's row of this very time may be still to come: in steps of one row, the left's comes first.
        since = max(math.floor(now) - 1, last[0]) if last else math.floor(now) - 1
        history = History(*last) if last and not process.independent else History(since)
        ahead = self._ahead(process, survival)
        begins, ends = stretches(rows.time, *self._bounds(rows, other, since), ahead)
        # A walk that was not seen for long could be anywhere: no need to follow it there.
        lag = min(since - history.now, ahead)
        found = expected_within(process, history, rows.key, survival, begins, ends, ahead=ahead, lag=lag)
        return evened(found) * self._rates.relative(other)

    def _ahead(self, process: Process, survival: Survival) -> int:
        """How many steps to look ahead: to where what follows is negligible."""
        reach = survival.reach() or self.config.ahead
        if isinstance(process, RandomWalk) and isinstance(survival, Exponential):
            # To come to far values takes many steps: of two rows with hardly a chance the nearer has more of it.
            reach = max(reach, _AHEAD)
        return min(self.config.ahead, reach)

    def ranking(self, course: Course) -> Ranking | None:
        """By tables, if each step brings rows of both sides, and what they are worth moves with the other side."""
        counts, since = course.counts(), course.since()
        survival, endless = self.config.survival, set(self._spans.values()) == {FOREVER}
        precise = np.abs(since).max(initial=0.0) < _PRECISE
        if survival is None or not endless or not counts.all() or not precise:
            return None
        times = course.last({side: np.floor(rows.time) for side, rows in course.rows.items()})
        keys = course.last({side: rows.key for side, rows in course.rows.items()})
        origins, tables, starts = np.empty(since.shape, np.int64), [], []
        for (side, process), place in zip(self._processes.items(), range(len(SIDES)), strict=True):
            if (
                isinstance(process, LinearTrend)
                and process.moves_whole()
                and isinstance(survival, Exponential)
            ):
                origins[:, place] = int(process.speed) * since[:, place]
            elif isinstance(process, RandomWalk) and (times[:, place] == since[:, place]).all():
                origins[:, place] = keys[:, place]
            else:
                return None
            met = course.rows[other_side(side)].key
            low = int(met.min()) - int(origins[:, place].max())
            high = int(met.max()) - int(origins[:, place].min())
            if high - low > _WIDEST:
                return None
            far, ahead = np.arange(low, high + 1), self._ahead(process, survival)
            none, all_ = np.zeros(len(far), np.int64), np.full(len(far), ahead)
            history = History(0) if process.independent else History(0, 0)
            tables.append(evened(expected_within(process, history, far, survival, none, all_, ahead=ahead)))
            starts.append(low)
        return Ranking(
            tables=(tables[1], tables[0]),
            starts=np.array(starts[::-1]),
            origins=origins,
            keys=course.merged(course.left.key, course.right.key),
            rates=np.stack(relative(*self._rates.follow(counts, course.nows)[:, :2].T), axis=1),
        )

    def _bounds(self, rows: Rows, other: Side, since: int) -> tuple[Time, Time, Time]:
        """The present, and from when to when after its own time a row may be matched; as its times are."""
        bounds = since, self._spans[rows.side], -self._spans[other]
        if np.issubdtype(rows.time.dtype, np.floating):
            return float(bounds[0]), float(bounds[1]), float(bounds[2])
        return bounds[0], math.floor(bounds[1]), math.ceil(bounds[2])

    def snapshot(self) -> dict[str, Array]:
        """The last keys, and what was learned of lifetimes."""
        state = {f"last.{side}": np.array(last, np.int64) for side, last in self._last.items() if last}
        state |= as_part("rate", self._rates.snapshot())
        return state | as_part("lifetime", self._lifetime.snapshot())

    def restore(self, state: dict[str, Array]) -> Self:
        """Take up what `snapshot` gave."""
        parts = parts_of(state)
        self._rates.restore(parts["rate"])
        self._lifetime.restore(parts["lifetime"])
        for side in SIDES:
            last = parts.get("last", {}).get(side)
            self._last[side] = None if last is None else (int(last[0]), int(last[1]))
        return self


class _Learning(Foreseeing):
    """`Heeb` at work without processes: learned shares, each counted over the time that a row will have."""

    def __init__(self, config: Heeb, setting: Setting) -> None:
        super().__init__(Prob(capacity=config.capacity, horizon=config.horizon), setting)
        self._heeb = config
        self._windows = setting.window.lifetimes()
        self.lifetime = Lifetime(horizon_for(config.horizon, max(self._windows.values())))

    def __repr__(self) -> str:
        return repr(self._heeb)

    def ranking(self, course: Course) -> None:
        """How long rows stay is learned from those that are kept."""

    def observe(self, step: Step) -> None:
        """Learn rates, shares and how long rows stay."""
        super().observe(step)
        self.lifetime.observe(step)

    def scores(self, rows: Rows, now: Time) -> Array:
        """Score by the rate of results, times the time in which a row can be expected to be there for them."""
        alpha = self._heeb.survival.alpha if isinstance(self._heeb.survival, Exponential) else None
        lifetime = alpha or self.lifetime.mean() or math.inf
        left_to_live = np.maximum(self._windows[rows.side] - (now - rows.time), 0).astype(np.float64)
        if math.isfinite(lifetime):
            left_to_live = -np.expm1(-left_to_live / lifetime) * lifetime
        return super().scores(rows, now) * left_to_live

    def snapshot(self) -> dict[str, Array]:
        """What was learned."""
        return super().snapshot() | as_part("lifetime", self.lifetime.snapshot())

    def restore(self, state: dict[str, Array]) -> Self:
        """Take up what `snapshot` gave."""
        super().restore(state)
        self.lifetime.restore(parts_of(state)["lifetime"])
        return self
