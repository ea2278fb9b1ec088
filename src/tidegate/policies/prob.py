"""Keep the rows whose keys are most frequent on the other side."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, Final, Self

import numpy as np

from tidegate.draws import draws, salt
from tidegate.models import Frequency, FrequencyLearner, LearnedFrequency, LinearTrend, Payoff, Rates
from tidegate.models.decay import half_life, horizon_for
from tidegate.models.frequencies.key_counts import MAX_HALF_LIVES
from tidegate.models.joint_payoff import rates_of
from tidegate.models.rates import expected, relative
from tidegate.policies.policy import Policy
from tidegate.policies.ranking import PASSED, Ranking, says_anew
from tidegate.policies.reach import Reach, check_trends, remade
from tidegate.types import FAR, SIDES, InputError, Learned, as_part, other_side, parts_of

if TYPE_CHECKING:
    from tidegate.policies.ranking import Course
    from tidegate.types import Array, Budget, Rows, Setting, Side, Step, Time

_ENOUGH: Final = 1 << 13
"""Of more arrivals in a step than this, so many on average are looked at."""
_RECKONED: Final = 16
"""How often in a window it is reckoned what memory yields."""
_SEGMENTS: Final = 64
_KEYS_A_ROW: Final = 4
_ROW_BYTES: Final = 64
_TOLD: Final = 100
"""How many of the most frequent keys are told of."""
_CAPACITIES: Final = (1 << 10, 1 << 16)


@dataclass(frozen=True)
class Prob(Policy):
    """A row is worth the rate at which the other side brings its key.

    For joins in which keys recur, some far more often than others: components and their errors, users and
    their clicks. Where every key is new it has nothing to go by (the newest rows stay): use `age` there.

    Without a model it learns the shares of the keys on both sides within bounded memory, and follows them
    when they change.

    Parameters
    ----------
    model
        The share of each key on either side; None to learn them.
    capacity
        How many keys of each side are counted one by one when learning, the rest being lumped together; by
        default four times as many as the budget holds rows (of 64 bytes), from 1,024 to 65,536. They take
        memory beside the budget.
    horizon
        The time in which what was learned loses half its weight; by default some windows, and without their end
        nothing is forgotten.
    left, right
        For keys that move: the line that each side's keys follow. Rows whose key the other side has passed for good
        go before all others. The shares are still those of the past.
    rates
        Rows a unit of time on the left and on the right, if they are known; None to learn them, with or without a
        model. Times are in the data's unit; on Spark that is a microsecond.

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
    The papers rank the rows of one side by share alone. Here a score is the expected results a unit of time, share
    times the other side's rate, so that rows of both sides compare rightly in a shared pool. With given shares and
    learned rates, sides that are no more than a row apart count as equally fast. Of equal scores the newest stay.
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
            raise InputError(f"model {self.model!r} is not one; give tidegate.models.Frequency(left, right)")
        if self.capacity is not None and (not isinstance(self.capacity, int) or self.capacity < 1):
            raise InputError(f"capacity {self.capacity!r} counts no keys; give a whole number, at least 1")
        half_life(self.horizon)
        check_trends(self.left, self.right)
        if self.rates is not None:
            object.__setattr__(self, "rates", rates_of(self.rates))

    def is_fixed(self) -> bool:
        """Given shares at given rates are; what is learned and what moves is not."""
        return self.model is not None and self.rates is not None and self.left is None

    def start(self, setting: Setting) -> Policy:
        """Take the shares that were given, or begin to learn them."""
        return Foreseeing(self, setting)

    def scores(self, rows: Rows, now: Time) -> Array:
        """Score by the given shares, and by the given rates if there are any."""
        other = other_side(rows.side)
        rate = 1.0 if self.rates is None else self.rates[SIDES.index(other)]
        return self.given().share(other, rows.key) * (rate * self.weight(rows, now))

    def given(self) -> Frequency:
        """The shares that were given."""
        if self.model is None:
            raise InputError(f"{self.name} knows no shares before a join has started; give model= to score")
        return self.model

    @classmethod
    def made_of(cls, parameters: dict[str, Any]) -> Self:
        """Make it again from what `parameters` told."""
        model = parameters["model"]
        return cls(**parameters | {"model": model and Frequency(**model)} | remade(parameters))

    def weight(self, rows: Rows, now: Time, reach: Array | None = None) -> Array | float:  # noqa: ARG002 - here a row counts alike while it lasts
        """What a share counts for beside the rate; `reach` is how long the other side can still bring the key."""
        return 1.0

    def lives(self) -> Array:
        """How long rows of either side live, where that counts."""
        return np.empty(0)


class Foreseeing(Policy):
    """`Prob` at work: expected results a unit of time, from shares and rates."""

    def __init__(self, config: Prob, setting: Setting, *, forgets: bool = True) -> None:
        self.config = config
        self._salt = salt(setting)
        self._spans = [max(setting.window.length(side), 0) for side in SIDES]
        longest = max(self._spans)
        horizon = horizon_for(config.horizon, longest) if forgets else None
        self._rates = Rates(horizon)
        self._reach = Reach.of(config.left, config.right, setting)
        self._learner = None
        self._capacity, self._horizon = config.capacity or _capacity(setting.budget), half_life(horizon)
        if config.model is None:
            self._learner = LearnedFrequency(self._capacity, horizon).start()
        self._ends = not setting.window.counted and longest < FAR
        self._now: Time = -FAR
        self._reckoned: Time = -FAR
        self._payoffs: tuple[Payoff, Payoff] | None = None

    def __repr__(self) -> str:
        return repr(self.config)

    @property
    def learner(self) -> FrequencyLearner:
        """What counts keys; only where no shares were given."""
        assert self._learner is not None  # noqa: S101 - an invariant
        return self._learner

    def observe(self, step: Step) -> None:
        """Learn rates and shares."""
        self._now = step.now
        if self._reach:
            self._reach.observe(step)
        for side in SIDES:
            arrivals = slice(step.fresh[side], None)
            keys = step.rows[side].key[arrivals]
            self._rates.observe(side, len(keys), step.now)
            if self._learner and len(keys) > _ENOUGH:
                # Of so many a sample tells enough, and keeps learning cheap beside the join.
                each = len(keys) / _ENOUGH
                keys = keys[draws(step.rows[side].id[arrivals], self._salt) < 1 / each]
                self._learner.observe(side, keys, step.now, each)
            elif self._learner:
                self._learner.observe(side, keys, step.now)

    def ranking(self, course: Course) -> Ranking | None:
        """By shares, given for good or counted one by one."""
        if not says_anew(self.config, "lives", of="weight"):
            return None
        if self._learner is None:
            return None if self._reach or len(self.config.lives()) else self._of_given(course)
        counts, times = course.counts(), course.nows[course.steps]
        lasted = float(course.nows[-1] - course.nows[0]) / self._horizon
        distinct = max(len(np.unique(rows.key)) for rows in course.rows.values())
        if distinct > self._capacity or counts.max() > _ENOUGH or lasted > MAX_HALF_LIVES:
            return None
        rates = self._follow(course)
        for side, rows in course.rows.items():
            self._learner.observe(side, rows.key, times[rows.id])
        self._now = course.nows[-1].item()
        keys = course.merged(course.left.key, course.right.key)
        ranking = Ranking(
            codes=np.unique(keys, return_inverse=True)[1],
            spans=self.config.lives(),
            horizon=self._horizon,
            rates=rates,
        )
        if self._reach:
            ranking = ranking._replace(passes=self._reach.passes(course), since=course.since())
        return ranking

    def _of_given(self, course: Course) -> Ranking:
        """By given shares, for good; and by each side's rate at each step, unless that is given, too."""
        rates = self._follow(course)
        if self.config.rates is not None:
            return Ranking(course.merged(self.scores(course.left, 0), self.scores(course.right, 0)))
        known = self.config.given()
        shares = course.merged(known.share("right", course.left.key), known.share("left", course.right.key))
        return Ranking(shares, rates=rates)

    def _follow(self, course: Course) -> Array:
        """Learn the rates of a whole run; what `_rate` says of each side after each step."""
        came, passed = np.split(self._rates.follow(course.counts(), course.nows), [len(SIDES)], axis=1)
        if self.config.rates is not None:
            return np.tile(np.array(self.config.rates), (len(course.nows), 1))
        if self._learner is None:
            return np.stack(relative(*came.T), axis=1)
        return expected(came, passed)

    def _rate(self, side: Side) -> float:
        """By which scores count what a side brings: rows a unit of time, or in proportion to them."""
        if self.config.rates is not None:
            return self.config.rates[SIDES.index(side)]
        # A row more on one side, in steps of one row, must not change who stays where given shares are equal.
        return self._rates.relative(side) if self._learner is None else self._rates.expected(side)

    def scores(self, rows: Rows, now: Time) -> Array:
        """Score by expected results a unit of time; what the other side has passed, below all."""
        reach = self._reach.left(rows, now) if self._reach else None
        worth = self._rated(rows, self.config.weight(rows, now, reach))
        return worth if reach is None else np.where(reach > 0, worth, PASSED)

    def _rated(self, rows: Rows, weight: Array | float) -> Array:
        other = other_side(rows.side)
        shares = (self._learner or self.config.given()).share(other, rows.key)
        shares *= self._rate(other) * weight
        return shares

    def payoffs(self) -> tuple[Payoff, Payoff] | None:
        """What memory yields by the shares and rates; reckoned at times only, since that looks at all keys."""
        rates = self.config.rates or (self._rates.rate("left"), self._rates.rate("right"))
        known = self._learner or self.config.model
        if known is None or not self._ends or not all(rates):
            return None
        if self._now - self._reckoned >= max(self._spans) / _RECKONED:
            model = known.frequency() if isinstance(known, FrequencyLearner) else known
            both = model.payoff(rates=rates, window=(self._spans[0], self._spans[1]))
            self._payoffs = both[0].coarse(_SEGMENTS), both[1].coarse(_SEGMENTS)
            self._reckoned = self._now
        return self._payoffs

    def learned(self) -> list[Learned]:
        """Rates, and the shares of the most frequent keys."""
        rates = self.config.rates or (self._rates.rate("left"), self._rates.rate("right"))
        told = [Learned("rate", side, rate) for side, rate in zip(SIDES, rates, strict=True)]
        for side in SIDES:
            total = self._learner.total(side) if self._learner else None
            told.append(Learned("share", side, 1.0, total))
            known = self._learner or self.config.model
            if known is None or total == 0:
                continue
            keys = known.keys(side)
            shares = known.share(side, keys)
            for place in np.argsort(-shares, kind="stable")[:_TOLD].tolist():
                share = float(shares[place])
                rows = None if total is None else share * total
                told.append(Learned("share", side, share, rows, key=int(keys[place])))
        return told

    def snapshot(self) -> dict[str, Array]:
        """What was learned."""
        state = {"clock": np.array([self._now, self._reckoned], np.float64)}
        state |= as_part("rate", self._rates.snapshot())
        if self._learner:
            state |= as_part("share", self._learner.snapshot())
        if self._reach:
            state |= as_part("reach", self._reach.snapshot())
        for side, payoff in zip(SIDES, self._payoffs or (), strict=False):
            state |= {f"{side}.memory": payoff.memory, f"{side}.results": payoff.results}
        return state

    def restore(self, state: dict[str, Array]) -> Self:
        """Take up what `snapshot` gave."""
        parts = parts_of(state)
        self._now, self._reckoned = state["clock"].tolist()
        if "left" in parts:
            self._payoffs = Payoff(**parts["left"]), Payoff(**parts["right"])
        self._rates.restore(parts["rate"])
        if self._reach and "reach" in parts:
            self._reach.restore(parts["reach"])
        if self._learner and "share" in parts:
            self._learner.restore(parts["share"])
        return self


def _capacity(budget: Budget | None) -> int:
    low, high = _CAPACITIES
    if budget is None:
        return high
    rows = budget.limit if budget.unit == "rows" else budget.limit // _ROW_BYTES
    return min(max(_KEYS_A_ROW * rows, low), high)
