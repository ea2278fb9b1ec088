"""Keep the rows whose age promises the most matches."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Final, NamedTuple

import numpy as np

from tidegate.compiled import kernel
from tidegate.draws import draws, salt
from tidegate.models import AgeCurve, AgeCurveLearner, Payoff, Rates
from tidegate.models.age_curve import Tables, priorities
from tidegate.models.age_curve_learner import observe_ages
from tidegate.models.decay import REMEMBERED_WINDOWS, half_life, horizon_for
from tidegate.policies.policy import Policy, RunningPolicy
from tidegate.policies.ranking import NO_INTEGERS, NO_NUMBERS
from tidegate.types import (
    FAR,
    SIDES,
    Buckets,
    InputError,
    Last,
    Learned,
    Nested,
    Numbers,
    Opposites,
    Record,
    Side,
    other_side,
)

if TYPE_CHECKING:
    from tidegate.policies.ranking import RecordedRun
    from tidegate.types import Array, Rows, Setting, State, Step, Time

_LEARNING_WINDOWS: Final = REMEMBERED_WINDOWS
"""A curve counts as learned after every age was observed for this many windows of the usual monitoring."""
_MAX_MONITORING: Final = 4.0
"""The memory for learning before that, at most, as a multiple of the usual memory."""


@dataclass(frozen=True)
class Age(Policy):
    """Score a row by the highest rate at which it can still produce results, given its age.

    For joins in which a row's matches depend on how long ago it arrived rather than on its key: bids on an
    auction, parts of an order, readings of two sensors. It does not use the keys, so it suits joins in which
    every key is new, such as foreign-key joins. With a curve that never rises again after it fell, this
    is the optimum: rows are kept up to the age with the most results per time kept. With more memory than that
    takes, the newest rows are kept.

    Without a curve it learns one for each side, and follows it when it changes. To learn about late ages, some
    rows are kept for their whole window whatever their score is; they are part of the budget.

    Parameters
    ----------
    curve
        The age curve of left rows, and of right rows too unless they have their own; None to learn both.
    right
        The age curve of right rows.
    monitor
        The fraction of the memory that is used for learning; up to four times as much at first, and after
        the curve changed.
    buckets
        The number of ages that are distinguished when learning.
    horizon
        The half-life of an observation; by default some windows.

    Examples
    --------
    >>> import tidegate as tg
    >>> curve = tg.models.AgeCurve(edges=[0, 1, 2, 3, 4], rates=[1, 1, 2, 1])
    >>> opened = {"key": range(12), "time": range(12)}
    >>> bids = {"key": [0, 0, 1, 1, 2, 2, 3, 3, 4, 4], "time": [2.5, 2.5, 3.5, 3.5, 4.5, 4.5, 5.5, 5.5, 6.5, 6.5]}
    >>> bounded = dict(window=(4, 0), budget=2, split=(2, 0))
    >>> tg.simulate(opened, bids, policy=tg.policies.Age(curve), **bounded).results
    8
    >>> tg.simulate(opened, bids, policy="fifo", **bounded).results
    0

    References
    ----------
    Memory-Limited Execution of Windowed Stream Joins, sections 2.2, 2.3 and 3.2.

    Deviations
    ----------
    One formula, the paper's Priority, serves all cases; it reduces to the others. Ages are continuous. In a
    shared pool the priorities of both sides are compared directly: both are results per unit of time. Before
    anything is learned the newest rows stay. Curves are learned from a sample of all rows; section 2.3 also keeps all
    rows of a period, which `tidegate.experiments.windowed_joins.period_monitoring` does.
    """

    name: ClassVar[str] = "age"
    use_when: ClassVar[str] = (
        "Matches depend on a row's age, not on its key: auctions and bids, orders and parts."
    )
    predicts: ClassVar[bool] = True

    curve: AgeCurve | None = None
    right: AgeCurve | None = None
    monitor: float = 0.05
    buckets: int = 64
    horizon: float | None = None

    def __post_init__(self) -> None:
        if not 0 <= self.monitor <= 1:
            raise InputError(
                f"monitor {self.monitor!r} is not a fraction; give one from 0 to 1, such as 0.05"
            )
        if not isinstance(self.buckets, int) or self.buckets < 1:
            raise InputError(
                f"buckets {self.buckets!r} is not a number of ages; give a whole number, at least 1"
            )
        half_life(self.horizon)
        for curve in (self.curve, self.right):
            if not isinstance(curve, AgeCurve | None):
                raise InputError(f"curve {curve!r} is not an age curve; give tidegate.models.AgeCurve(...)")
        if self.curve is None and self.right is not None:
            raise InputError("right= is given without curve=, the curve of left rows; give both")

    def start(self, setting: Setting) -> RunningPolicy:
        """Start with the given curves, or learn them."""
        spans = setting.window.left, setting.window.right
        if any(isinstance(span, Last) for span in spans):
            raise InputError(f"age measures time, but the window {spans} counts rows; use another policy")
        if self.curve is None and any(span is None for span in spans):
            raise InputError(
                f"age learns its curve over the window, and {spans} has no end; give it one, or give curve="
            )
        return RunningAge(self, setting)

    def curve_of(self, side: Side, span: Time) -> AgeCurve | None:
        """The given curve of a side, up to the end of its window; None if there is none."""
        curve = self.curve if side == "left" or self.right is None else self.right
        return curve.within(span) if curve and span > 0 else None


class RunningAge(RunningPolicy):
    """A running `Age`."""

    state: ClassVar[State] = {
        "clock": Numbers(_now=float, _fitted=float, _held=int).or_longer(),
        "lead": Opposites("_lead").optional(),
        "{}.": (Record("_learned_curves", AgeCurve).optional(), Nested("_learners").optional()),
    }

    def __init__(self, config: Age, setting: Setting) -> None:
        self.config = config
        self._spans: dict[Side, Time] = {side: max(setting.window.reach(side), 0) for side in SIDES}
        self._salt = salt(setting.seed, setting.partition)
        longest = max(self._spans.values())
        horizon = horizon_for(config.horizon, longest)
        self._rates = setting.model.part(Rates, horizon)
        self._learners: dict[Side, AgeCurveLearner] = {}
        if config.curve is None:
            self._learners = {side: AgeCurveLearner(self._buckets(side), horizon) for side in SIDES}
        self.curves = {side: config.curve_of(side, self._spans[side]) for side in SIDES}
        self._before_partners: dict[Side, tuple[AgeCurve | None, float]] = {}
        self._lead: dict[Side, Time] = dict.fromkeys(SIDES, 0)
        self._now: Time = -FAR
        self._fitted: Time = -FAR
        self._held = 0

    def __repr__(self) -> str:
        return repr(self.config)

    def _buckets(self, side: Side) -> Buckets:
        span = self._spans[side]
        if isinstance(span, int):
            # Whole times: a row may be found at each of the ages 0 to its span.
            count = min(self.config.buckets, span + 1)
            return Buckets((span + 1) / count, count)
        return Buckets(span / self.config.buckets, self.config.buckets) if span else Buckets(1.0, 1)

    def watches(self) -> dict[Side, Buckets]:
        """The ages of each side's window, if curves are learned."""
        return {side: self._buckets(side) for side in self._learners}

    def observe(self, step: Step) -> None:
        """Learn curves."""
        self._now = step.now
        self._lead = {side: step.clocks.lead(side) for side in SIDES}
        self._held = sum(step.fresh.values())
        if self._learners:
            observe_ages(self._learners, step, {side: self._rates.rate(side) for side in SIDES})
            if self._now - self._fitted >= min(self._buckets(side).width for side in SIDES):
                self._fitted = self._now
                self.curves = {side: learner.curve() for side, learner in self._learners.items()}
        self._before_partners.clear()

    def ranking(self, run: RecordedRun) -> AgeRanking | None:
        """Rank by the curves, if they are given."""
        if self._learners:
            return None
        self._rates.follow(run.counts(), run.nows)
        left, right = (_NO_MATCHES if curve is None else curve.tables for curve in self.curves.values())
        return AgeRanking(left, right)

    def scores(self, rows: Rows, clock: Time) -> Array:
        """Score by the curves; monitored rows rank first."""
        # If only rows of one side ever matched from memory, those of the other side have score 0.
        curve = self.curves[rows.side]
        ages = clock - rows.time
        scores = priorities(ages, curve.tables if curve else _NO_MATCHES)
        if ages.min(initial=0) < 0:
            waiting = ages < 0
            scores[waiting] = self._waiting_scores(rows.side, ages[waiting])
        if self._learners:
            scores[self._monitored(rows)] = np.inf
        return scores

    def _waiting_scores(self, side: Side, ages: Array) -> Array:
        """The scores of rows of negative age."""
        if not any(self.curves.values()):
            # As with an even curve: rows that wait for less time rank higher, and rows that do not wait highest.
            wait = np.maximum(-ages - self._spans[other_side(side)], 0.0)
            scores: Array = -wait / (wait + max(sum(self._spans.values()), 1.0))
            return scores
        if side not in self._before_partners:
            self._before_partners[side] = self._before_partner(side)
        curve, shift = self._before_partners[side]
        return priorities(ages + shift, curve.tables) if curve else np.zeros(len(ages))

    def _before_partner(self, side: Side) -> tuple[AgeCurve | None, float]:
        """The curve of rows that arrive before their partners, and the age 0 on it."""
        curve, other = self.curves[side], self.curves[other_side(side)]
        rates = self._rates.rate(side), self._rates.rate(other_side(side))
        ratio = rates[1] / rates[0] if all(rates) else 1.0
        if other is None:
            return curve, 0.0
        if curve is None:
            mirrored = AgeCurve(other.window - other.edges[::-1], other.rates[::-1])
            return mirrored, other.window
        return curve.after(other, ratio), other.window

    def _monitored(self, rows: Rows) -> Array:
        """A mask of the rows that are kept for their whole window, to learn about late ages."""
        needed = sum(self._rates.rate(side) * max(self._spans[side] + self._lead[side], 0) for side in SIDES)
        share = self._monitoring(rows.side) / needed if needed else 1.0
        chosen: Array = draws(rows.id, self._salt) < share
        return chosen

    def _monitoring(self, side: Side) -> float:
        """The number of rows that are kept for learning: more while some ages of this side were rarely observed."""
        usual = self.config.monitor * self._held
        wanted = usual * _LEARNING_WINDOWS
        observed = max(self._learners[side].least_observed_rows, 1.0)
        return min(max(wanted / observed, 1.0), _MAX_MONITORING) * usual

    def payoffs(self) -> tuple[Payoff, Payoff] | None:
        """The expected results by memory, from curves and rates."""
        rates = [self._rates.rate(side) for side in SIDES]
        if not any(self.curves.values()) or not all(rates):
            return None
        left, right = (
            curve.payoff(rate) if (curve := self._curve_from_arrival(side)) else Payoff([0], [0])
            for side, rate in zip(SIDES, rates, strict=True)
        )
        return left, right

    def _curve_from_arrival(self, side: Side) -> AgeCurve | None:
        """The curve of a side's rows from their arrival on, which is at a negative age on a side that is ahead."""
        if not self._lead[side]:
            return self.curves[side]
        curve, shift = self._before_partner(side)
        return curve.from_age(shift - self._lead[side]) if curve else None

    def learned(self) -> list[Learned]:
        """Rates, and the expected matches of a row at each age."""
        learned = [Learned("rate", side, self._rates.rate(side)) for side in SIDES]
        for side, curve in self.curves.items():
            if curve is None:
                continue
            samples = [None] * len(curve.rates) if curve.sample is None else curve.sample.tolist()
            edges = curve.edges.tolist()
            spans = zip(curve.rates.tolist(), samples, edges[:-1], edges[1:], strict=True)
            learned += [
                Learned("age", side, rate, rows, None, begin, end) for rate, rows, begin, end in spans
            ]
        return learned

    def after_restore(self) -> None:
        """Forget what was computed from other curves."""
        self._before_partners.clear()

    @property
    def _learned_curves(self) -> dict[Side, AgeCurve | None]:
        return self.curves if self._learners else {}


_NO_CURVE: Final = Tables(NO_NUMBERS, NO_NUMBERS, NO_NUMBERS, NO_INTEGERS, 0.0)
_NO_MATCHES: Final = Tables(np.zeros(2), np.zeros(2), np.zeros(1), np.ones(2, np.int64), 0.0)
"""The curve of rows that match at no age."""


class AgeRanking(NamedTuple):
    """Rank by age: the curve of each side."""

    left: Tables = _NO_CURVE
    right: Tables = _NO_CURVE


@kernel
def age_scores(ranking: AgeRanking, rows: Array, on_right: Array, ages: Array) -> Array:
    """The scores of rows of both sides, of these ages."""
    scores, of_right = priorities(ages, ranking.left), priorities(ages, ranking.right)
    for i in range(len(rows)):
        if on_right[rows[i]]:
            scores[i] = of_right[i]
    return scores
