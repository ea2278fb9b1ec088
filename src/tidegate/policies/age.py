"""Keep the rows whose age promises most matches."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Final, Literal, NamedTuple, Self

import numpy as np

from tidegate.draws import draws, salt
from tidegate.models import AgeCurve, AgeCurveLearner, Payoff, Rates
from tidegate.models.decay import REMEMBERED_WINDOWS, half_life, horizon_for
from tidegate.policies.policy import Policy
from tidegate.policies.ranking import Ranking
from tidegate.types import (
    FAR,
    SIDES,
    Buckets,
    InputError,
    Last,
    Learned,
    Side,
    as_part,
    check_choice,
    parts_of,
)

if TYPE_CHECKING:
    from tidegate.policies.ranking import Course
    from tidegate.types import Array, Rows, Setting, Step, Time

Monitoring = Literal["sample", "memory"]

_LEARNED_WINDOWS: Final = REMEMBERED_WINDOWS
"""A curve is known once every age was observed for as many windows of the usual monitoring."""
_EAGERNESS: Final = 4.0
"""How many times the usual memory is used for learning before that, at most."""


@dataclass(frozen=True)
class Age(Policy):
    """A row is worth the fastest rate at which it can still produce results, given its age.

    For joins in which a row's matches depend on how long ago it arrived rather than on its key: bids on an
    auction, parts of an order, readings of two sensors. It needs no knowledge of the keys, so it is right
    where every key is new, as in foreign-key joins. With a curve that never rises again after it fell, this
    is the optimum: rows are held for the age at which results per time held are most, or, with more memory
    than that takes, the newest rows are held.

    Without a curve it learns one for each side, and follows it when it changes. To learn of late ages, some
    rows are held for their whole window whatever they are worth; they are part of the budget.

    Parameters
    ----------
    curve
        The age curve of left rows, and of right rows too unless they have their own; None to learn both.
    right
        The age curve of right rows.
    monitor
        The fraction of the memory that is used for learning; up to four times as much at first, and after
        the curve changed.
    monitoring
        "sample": a small fraction of all rows is held for their whole window. "memory": a stretch of each
        side in turn is held entirely.
    buckets
        How many ages are told apart when learning.
    horizon
        The time in which what was learned loses half its weight; by default some windows.

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
    shared pool the priorities of both sides are compared as they are: both are results a unit of time. Before
    anything was learned the newest rows stay.
    """

    name: ClassVar[str] = "age"
    use_when: ClassVar[str] = (
        "Matches depend on a row's age, not on its key: auctions and bids, orders and parts."
    )
    predicts: ClassVar[bool] = True

    curve: AgeCurve | None = None
    right: AgeCurve | None = None
    monitor: float = 0.05
    monitoring: Monitoring = "sample"
    buckets: int = 64
    horizon: float | None = None

    def __post_init__(self) -> None:
        check_choice(self.monitoring, Monitoring, "monitoring")
        if not 0 <= self.monitor <= 1:
            raise InputError(
                f"monitor {self.monitor!r} is not a fraction; give one from 0 to 1, such as 0.05"
            )
        if not isinstance(self.buckets, int) or self.buckets < 1:
            raise InputError(f"buckets {self.buckets!r} tells no ages apart; give a whole number, at least 1")
        half_life(self.horizon)
        for curve in (self.curve, self.right):
            if not isinstance(curve, AgeCurve | None):
                raise InputError(f"curve {curve!r} is not an age curve; give tidegate.models.AgeCurve(...)")
        if self.curve is None and self.right is not None:
            raise InputError("right is the curve of right rows beside that of left rows; give curve=, too")

    @classmethod
    def made_of(cls, parameters: dict[str, Any]) -> Self:
        """Make it again from what `parameters` told."""
        curves = {name: parameters[name] and AgeCurve(**parameters[name]) for name in ("curve", "right")}
        return cls(**parameters | curves)

    def start(self, setting: Setting) -> Policy:
        """Take the curves that were given, or begin to learn them."""
        spans = setting.window.left, setting.window.right
        if any(isinstance(span, Last) for span in spans):
            raise InputError(f"age measures time, but the window {spans} counts rows; use another policy")
        if self.curve is None and any(span is None for span in spans):
            raise InputError(
                f"age learns its curve over the window, and {spans} has no end; give it one, or give curve="
            )
        return _Aging(self, setting)

    def given(self, side: Side, span: Time) -> AgeCurve | None:
        """The given curve of a side, as far as its window reaches; None where it has none."""
        curve = self.curve if side == "left" or self.right is None else self.right
        return curve.within(span) if curve and span > 0 else None

    def scores(self, rows: Rows, now: Time) -> Array:
        """Score by the given curve."""
        curve = self.given(rows.side, FAR)
        if curve is None:
            raise InputError("age has no curve before a join has started; give curve= to score without one")
        return curve.priority(np.maximum(now - rows.time, 0))


class _Aging(Policy):
    """`Age` at work."""

    def __init__(self, config: Age, setting: Setting) -> None:
        self.config = config
        self._spans: dict[Side, Time] = {side: max(setting.window.length(side), 0) for side in SIDES}
        self._salt = salt(setting)
        longest = max(self._spans.values())
        horizon = horizon_for(config.horizon, longest)
        self._rates = Rates(horizon)
        self._learners: dict[Side, AgeCurveLearner] = {}
        if config.curve is None:
            self._learners = {side: AgeCurveLearner(self._buckets(side), horizon) for side in SIDES}
        self.curves = {side: config.given(side, self._spans[side]) for side in SIDES}
        self._now: Time = -FAR
        self._fitted: Time = -FAR
        self._held = 0
        self._turn = _Turn("right", -FAR, -FAR)

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
        """The ages of each side's window, while they are learned."""
        return {side: self._buckets(side) for side in self._learners}

    def observe(self, step: Step) -> None:
        """Learn rates and curves."""
        since, self._now = (self._now if self._now > -FAR else step.now), step.now
        self._held = sum(step.fresh.values())
        for side in SIDES:
            self._rates.observe(side, len(step.rows[side]) - step.fresh[side], step.now)
        for side, learner in self._learners.items():
            learner.observe(step.rows[side].time, step.fresh[side], since, step.now, step.ages[side])
        if self._learners:
            self._take_turns()
            if self._now - self._fitted >= min(self._buckets(side).width for side in SIDES):
                self._fitted = self._now
                self.curves = {side: learner.curve() for side, learner in self._learners.items()}

    def ranking(self, course: Course) -> Ranking | None:
        """By the curves, if they were given."""
        if self._learners:
            return None
        self._rates.follow(course.counts(), course.nows)
        left, right = (None if curve is None else curve.tables for curve in self.curves.values())
        return Ranking.by_age(left, right)

    def scores(self, rows: Rows, now: Time) -> Array:
        """Score by the curves, and hold on to the monitored."""
        # Where only one side's rows were ever found in memory, the other's are worth nothing there.
        curve = self.curves[rows.side]
        scores = curve.priority(np.maximum(now - rows.time, 0)) if curve else np.zeros(len(rows))
        if self._learners:
            scores[self._monitored(rows)] = np.inf
        return scores

    def _monitored(self, rows: Rows) -> Array:
        """Who is held for a whole window, so that late ages are learned, too."""
        if self.config.monitoring == "memory":
            turn = self._turn
            ours: Array = (rows.time >= turn.begin) & (rows.time < turn.end)
            return ours if rows.side == turn.side else np.zeros(len(rows), bool)
        needed = sum(self._rates.rate(side) * self._spans[side] for side in SIDES)
        share = self._monitoring(rows.side) / needed if needed else 1.0
        chosen: Array = draws(rows.id, self._salt) < share
        return chosen

    def _monitoring(self, side: Side) -> float:
        """How many rows are held for learning: more as long as some ages of this side are hardly known."""
        usual = self.config.monitor * self._held
        wanted = usual * _LEARNED_WINDOWS
        return min(max(wanted / max(self._learners[side].least, 1.0), 1.0), _EAGERNESS) * usual

    def _take_turns(self) -> None:
        """Hand the monitoring memory on once a side's stretch of rows has been held to its end."""
        if self._now < self._turn.end + self._spans[self._turn.side]:
            return
        side: Side = "left" if self._turn.side == "right" else "right"
        rate = self._rates.rate(side)
        stretch = self._monitoring(side) / rate if rate else 0.0
        self._turn = _Turn(side, self._now, self._now + stretch)

    def payoffs(self) -> tuple[Payoff, Payoff] | None:
        """What memory yields by the curves and rates."""
        rates = [self._rates.rate(side) for side in SIDES]
        if not any(self.curves.values()) or not all(rates):
            return None
        left, right = (
            curve.payoff(rate) if curve else Payoff([0], [0])
            for curve, rate in zip(self.curves.values(), rates, strict=True)
        )
        return left, right

    def learned(self) -> list[Learned]:
        """Rates, and the matches that a row of each age may expect."""
        told = [Learned("rate", side, self._rates.rate(side)) for side in SIDES]
        for side, curve in self.curves.items():
            if curve is None:
                continue
            samples = [None] * len(curve.rates) if curve.sample is None else curve.sample.tolist()
            edges = curve.edges.tolist()
            spans = zip(curve.rates.tolist(), samples, edges[:-1], edges[1:], strict=True)
            told += [Learned("age", side, rate, rows, None, begin, end) for rate, rows, begin, end in spans]
        return told

    def snapshot(self) -> dict[str, Array]:
        """What was learned."""
        turn = [SIDES.index(self._turn.side), self._turn.begin, self._turn.end]
        state = {"clock": np.array([self._now, self._fitted, self._held, *turn], np.float64)}
        state |= as_part("rate", self._rates.snapshot())
        for side, learner in self._learners.items():
            state |= as_part(side, learner.snapshot())
            curve = self.curves[side]
            if curve is not None and curve.sample is not None:
                state |= {f"{side}.{name}": getattr(curve, name) for name in ("edges", "rates", "sample")}
        return state

    def restore(self, state: dict[str, Array]) -> Self:
        """Take up what `snapshot` gave."""
        self._now, self._fitted, held, turn, begin, end = state["clock"].tolist()
        self._held, self._turn = int(held), _Turn(SIDES[int(turn)], begin, end)
        parts = parts_of(state)
        self._rates.restore(parts["rate"])
        for side, learner in self._learners.items():
            learned = parts.get(side, {})
            if learned:
                learner.restore(learned)
            curve = [learned[name] for name in ("edges", "rates", "sample") if name in learned]
            self.curves[side] = AgeCurve(*curve) if curve else None
        return self


class _Turn(NamedTuple):
    """Whose rows the monitoring memory takes up, of which stretch of time."""

    side: Side
    begin: Time
    end: Time
