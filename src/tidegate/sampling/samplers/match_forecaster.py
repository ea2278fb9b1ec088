"""The number of matches that a row will own: n(s), from a given or a learned model."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, Final, Literal, NamedTuple, TypeAlias

import numpy as np

from tidegate.compiled import kernel
from tidegate.draws import spread
from tidegate.models import AgeCurve, AgeCurveLearner, Frequency, LearnedFrequency, Rates
from tidegate.models.age_curve_learner import observe_ages
from tidegate.models.decay import horizon_for
from tidegate.models.joint_payoff import rates_of
from tidegate.sampling.samplers.forecast_correction import ForecastCorrection, TrackedRows
from tidegate.types import (
    FAR,
    SIDES,
    Buckets,
    InputError,
    Last,
    Nested,
    Numbers,
    Opposites,
    Stateful,
    other_side,
)

if TYPE_CHECKING:
    from tidegate.types import Array, Clocks, Condition, Rows, Setting, Side, State, Step, Time

Learning = Literal["frequency", "age"]
Model: TypeAlias = Frequency | AgeCurve | tuple[AgeCurve | None, AgeCurve | None] | Learning

_OBSERVED_ARRIVALS: Final = 1 << 12
"""If a step has more arrivals, about this number of them, chosen at random, are observed."""
_AGE_BUCKETS: Final = 32
"""The number of buckets of a learned age curve."""
_CLASSES_PER_OCTAVE: Final = 8
"""The number of classes of rows per factor of two in expected matches."""
_FEWEST: Final = 2.0**-20
"""Rows that expect fewer matches are all in one class."""
_CLASSES: Final = _CLASSES_PER_OCTAVE * 1100
"""More classes than there can be: a double has at most 1024 octaves above 1."""
_CAPACITY: Final = 1 << 16
_LEAST_PART: Final = 1 / 64
"""The smallest part of its window in which a row is assumed to have matches."""
_TRACKED_ROWS: Final = 512
"""The smallest number of rows of a side that are tracked in a step, if there are that many."""
_SAMPLED_KEYS: Final = 1 << 11
"""If there are more arrivals or keys, about this number of them represent all when rows are classified."""


def default_model(condition: Condition) -> Learning:
    """What is learned by default: frequencies if keys must be equal, otherwise the dependence on age."""
    return "frequency" if condition == "=" else "age"


def check_model(model: Model | None, rates: tuple[float, float] | None) -> None:
    """Refuse a value that is not a model of matches."""
    curves = model if isinstance(model, tuple) else ()
    pair = len(curves) == len(SIDES) and all(isinstance(c, AgeCurve | None) for c in curves)
    if not (
        model is None or isinstance(model, Frequency | AgeCurve) or pair or model in ("frequency", "age")
    ):
        raise InputError(
            "model must be a Frequency, an AgeCurve, a pair of AgeCurves, or 'frequency' or 'age' to learn one; "
            f"got {model!r}"
        )
    if rates is not None:
        rates_of(rates)


class RowClasses(NamedTuple):
    """The rows of one side in a window, in classes by the number of matches that they expect.

    Parameters
    ----------
    rows
        The number of rows of each class.
    matches
        The number of matches that a row of each class expects.
    widths
        The widths of buckets of age.
    reached
        The part of its matches that a row has had at each edge of these buckets.
    """

    rows: Array
    matches: Array
    widths: Array
    reached: Array


class MatchForecaster(Stateful):
    """Forecasts the matches of rows, and learns from what arrives.

    While the number of matches is unknown, the forecast is infinite. A learned frequency counts one row more of each
    key than was observed, because a key may occur that has not occurred yet. If only some of the arrivals were
    observed, it adds the weight of one observed row and a standard error. A forecast that is too low makes estimates
    less precise; one that is too high only costs memory.

    Parameters
    ----------
    model
        A model, or what to learn; None forecasts no matches and learns only rates.
    rates
        Rows per unit of time, left and right; None learns them.
    setting
        The join.
    salt
        Fixes which arrivals of a large step are observed.
    """

    state: ClassVar[State] = {
        "clock": Numbers(_now=float, seen=int, _integer_times=int, _row_weight=dict),
        "lead": Opposites("_lead").optional(),
        "rate.": Nested("_rates"),
        "share.": Nested("_learner").optional(),
        "met-{}.": Nested("_corrections").optional(),
        "{}.": Nested("_curve_learners").optional(),
    }

    def __init__(
        self, model: Model | None, rates: tuple[float, float] | None, setting: Setting, salt: int
    ) -> None:
        if setting.condition != "=" and (model == "frequency" or isinstance(model, Frequency)):
            raise InputError(
                f"a Frequency needs a join on equal keys, but the condition is {setting.condition!r}; "
                "give an AgeCurve, or 'age' to learn one"
            )
        self.learns = model if isinstance(model, str) else "nothing"
        self._given_rates, self._salt = rates, salt
        self._spans = {"left": setting.window.left, "right": setting.window.right}
        lengths = {side: setting.window.reach(side) for side in SIDES}
        self._lengths = {side: max(length, 0) for side, length in lengths.items()}
        # The age from which a row can have matches. It is above 0 if the window of the other side is negative.
        self._begins = {side: -lengths[other_side(side)] for side in SIDES}
        self._delays = {side: max(begin, 0) for side, begin in self._begins.items()}
        self._lead: dict[Side, Time] = dict.fromkeys(SIDES, 0)
        longest = max(self._lengths.values())
        horizon = horizon_for(None, longest)
        self._rates = Rates(horizon)
        self._shares = model if isinstance(model, Frequency) else None
        self._learner = LearnedFrequency(_CAPACITY, horizon).start() if model == "frequency" else None
        self._curves: dict[Side, AgeCurve | None] = {}
        if isinstance(model, AgeCurve | tuple):
            curves = model if isinstance(model, tuple) else (model, model)
            for side, curve in zip(SIDES, curves, strict=True):
                reaches = curve is not None and self._lengths[side] > 0
                self._curves[side] = curve.within(self._lengths[side]) if curve and reaches else None
        self._by_age = model == "age" or isinstance(model, AgeCurve | tuple)
        if self._by_age and setting.window.counted:
            raise InputError(
                f"an age curve needs a window of time, but {tuple(self._spans.values())} is a number of rows; "
                "give a Frequency"
            )
        self._curve_learners: dict[Side, AgeCurveLearner] = {}
        if model == "age":
            if not 0 < longest < FAR:
                raise InputError("model='age' needs a window of finite length; give an AgeCurve instead")
            self._buckets = {
                s: Buckets(max(length, 1) / _AGE_BUCKETS, _AGE_BUCKETS) for s, length in self._lengths.items()
            }
            self._curve_learners = {s: AgeCurveLearner(b, horizon) for s, b in self._buckets.items()}
        self._corrections = {side: ForecastCorrection() for side in SIDES} if self._learner else {}
        self._horizon = horizon
        self._arrived: dict[Side, Array] = {}
        self._row_weight = dict.fromkeys(SIDES, 1.0)
        self._integer_times = 0
        self._now: Time = -FAR
        self.seen = 0

    def age_buckets(self) -> dict[Side, Buckets]:
        """The buckets of age in which matches must be counted for `observe_matches`."""
        return self._buckets if self._curve_learners else {}

    def observe(self, arrivals: dict[Side, Rows], clocks: Clocks) -> None:
        """Learn from the arrivals of a step that ends at these clocks."""
        now = clocks.now
        self._lead = {side: clocks.lead(side) for side in SIDES}
        if not self.seen:
            # The clock starts with the first row, not with the end of the first step.
            begin = min((rows.time[0].item() for rows in arrivals.values() if len(rows)), default=now)
            self._rates.observe("left", 0, begin)
        self._arrived = {}
        self.seen += sum(map(len, arrivals.values()))
        for side, rows in arrivals.items():
            self._integer_times = int(rows.time.dtype.kind == "i")
            if self._given_rates is None:
                self._rates.observe(side, len(rows), now)
            if self._learner is None or not len(rows):
                continue
            weight = max(len(rows) / _OBSERVED_ARRIVALS, 1.0)
            keys = _subsample(rows.key, rows.id, self._salt, 1 / weight) if weight > 1 else rows.key
            self._learner.observe(side, keys, now, weight)
            # An average over the steps that the learned frequency consists of, each by its number of rows.
            part = min(len(rows) / max(self._learner.total(side), 1.0), 1.0)
            self._row_weight[side] += part * (weight - self._row_weight[side])

    def track(self, rows: dict[Side, Rows]) -> dict[Side, TrackedRows]:
        """Choose buffered rows to track over a step, before its arrivals are observed; for `observe_tracked`."""
        found = {}
        for side in self._corrections:
            places = np.arange(0, len(rows[side]), max(len(rows[side]) // _TRACKED_ROWS, 1))
            some = rows[side].take(places)
            expected = self._uncorrected(side, some.key)
            if len(places) and np.isfinite(expected).all():
                found[side] = TrackedRows(places, expected, some.time, some.matches)
        return found

    def observe_tracked(
        self, tracked: dict[Side, TrackedRows], rows: dict[Side, Rows], since: Clocks, clocks: Clocks
    ) -> None:
        """Learn from the matches that the tracked rows had in a step between these clocks."""
        for side, (places, expected, time, before) in tracked.items():
            other = other_side(side)
            began, now = since.of(other), clocks.of(other)
            begins, length = time + self._first_age(side), self._match_span(side)
            exposed = np.minimum(now, begins + length) - np.maximum(began, begins)
            correction = self._corrections[side]
            correction.decay(0.5 ** ((clocks.now - since.now) / self._horizon) if self._horizon else 1.0)
            observed = rows[side].matches[places] - before
            correction.observe(expected, np.maximum(exposed, 0) / length, observed)

    def observe_matches(self, step: Step) -> None:
        """Learn from the matches of a step, by age."""
        self._now = step.now
        if self._curve_learners:
            observe_ages(self._curve_learners, step, {side: self.rate(side) for side in SIDES})
            self._curves = {side: learner.curve() for side, learner in self._curve_learners.items()}

    def rate(self, side: Side) -> float:
        """Rows per unit of time; 0 while unknown."""
        return self._given_rates[SIDES.index(side)] if self._given_rates else self._rates.rate(side)

    def span(self, side: Side) -> float:
        """How long a row stays in its window; infinite if unknown."""
        span = self._spans[side]
        if isinstance(span, Last):
            rate = self.rate(side)
            return span.rows / rate if rate else np.inf
        length = self._lengths[side]
        return float(length) if length < FAR else np.inf

    def time_in_memory(self, side: Side) -> float:
        """How long a row is buffered until it can have no more matches; infinite if unknown.

        A row of a side that is ahead waits for the other side first.
        """
        return max(self.span(side) + self._lead[side], 0.0)

    def _first_age(self, side: Side) -> Time:
        """The age from which a row has the matches that it owns: those with rows that arrive after it."""
        return max(-self._lead[side], self._begins[side])

    def forecast_arrivals(self, arrivals: Rows) -> Array:
        """The forecast for the arrivals of a step; if there are many, `row_classes` is computed from them."""
        matches = self.expected_matches(arrivals)
        if len(matches) > _SAMPLED_KEYS and not self._by_age:
            part = _SAMPLED_KEYS / len(matches)
            self._arrived[arrivals.side] = _subsample(matches, arrivals.id, self._salt, part)
        return matches

    def expected_matches(self, rows: Rows) -> Array:
        """The number of matches that each row will own in its whole window."""
        if self._by_age:
            return np.full(len(rows), self._by_curve(rows.side))
        return self._by_share(rows.side, rows.key)

    def _by_curve(self, side: Side) -> float:
        curve = self._curves.get(side)
        if curve is not None:
            return curve.total
        return np.inf if self._curve_learners and self.span(side) > 0 else 0.0

    def _by_share(self, side: Side, keys: Array) -> Array:
        matches = self._uncorrected(side, keys)
        return self._corrections[side].apply(matches) if self._corrections else matches

    def _uncorrected(self, side: Side, keys: Array) -> Array:
        other = other_side(side)
        rate, span = self.rate(other), self.span(side)
        # In a window of length 0, matches are rows of the same time, whose number does not follow from rates.
        if not rate or not 0 < span < np.inf:
            return np.full(len(keys), np.inf)
        shares = self._share(other, keys)
        shares *= rate * self._match_span(side)
        return shares

    def _match_span(self, side: Side) -> float:
        """The length of time in which a row has the matches that it owns; the number of times if they are integers.

        A closed window has one more integer time than its length. Of two rows of the same time the left one comes
        first, so a right row owns no match of its own time.
        """
        span = self.span(side)
        # Rows of a side that is far behind have few matches left, but never a forecast of none.
        length = max(span - self._first_age(side), _LEAST_PART * span)
        return length + self._integer_times * (side == "left" or self._delays[side] > 0)

    def _share(self, side: Side, keys: Array) -> Array:
        if self._shares is not None:
            return self._shares.share(side, keys)
        if self._learner is None or not self._learner.total(side):
            return np.full(len(keys), np.inf)
        shares, row = self._learner.share(side, keys), 1 / self._learner.total(side)
        several = (self._row_weight[side] - 1) * row
        if several > 0:
            shares += several * (1 + np.sqrt(shares / (several + row)))
        shares += row
        return shares

    def row_classes(self, side: Side) -> RowClasses | None:
        """The classes of rows in a window of this side; None while unknown."""
        rate, time = self.rate(side), self.time_in_memory(side)
        if time == 0:
            return _NO_ROWS
        if not rate or not np.isfinite(time) or not self.rate(other_side(side)):
            return None
        classify = self._classes_by_age if self._by_age else self._classes_by_share
        return classify(side, rate, time)

    def row_classes_of_sides(self) -> list[RowClasses] | None:
        """`row_classes` of both sides; None while those of one are unknown."""
        known = [classes for side in SIDES if (classes := self.row_classes(side)) is not None]
        return known if len(known) == len(SIDES) else None

    def _classes_by_age(self, side: Side, rate: float, time: float) -> RowClasses | None:
        curve = self._curves.get(side)
        if curve is None:
            return None if self._curve_learners else _NO_ROWS
        wait = max(self._lead[side], 0)
        rest = max(time - wait - curve.window, 0.0)
        widths, reached = np.append(np.diff(curve.edges), rest), np.append(curve.heights, curve.total)
        if wait:
            widths, reached = np.append(wait, widths), np.append(0.0, reached)
        return RowClasses(np.array([rate * time]), np.array([curve.total]), widths, reached / curve.total)

    def _classes_by_share(self, side: Side, rate: float, time: float) -> RowClasses | None:
        matches, known = self._arrived.get(side), self._shares or self._learner
        if matches is not None:
            shares = np.ones(len(matches))
        elif known is None or (self._learner and not self._learner.total(side)):
            return None
        else:
            keys, shares = known.sample_keys(side, _SAMPLED_KEYS)
            matches = self._by_share(side, keys)
        if not np.isfinite(matches).all() or not shares.any():
            return None
        wait = min(max(self._lead[side] + self._first_age(side), 0), time)
        rows, matches = _grouped(rate * time * shares / shares.sum(), matches)
        return RowClasses(rows, matches, np.array([wait, time - wait]), np.array([0.0, 0.0, 1.0]))

    def current_model(self) -> tuple[Any, tuple[float, float], tuple[float, float]] | None:
        """The current model, rates and window, as arguments of `models.sample_rows`; None while unknown."""
        rates, window = [self.rate(side) for side in SIDES], [self.span(side) for side in SIDES]
        if not all(rates) or not np.isfinite(window).all():
            return None
        known = self._shares or self._learner
        if known is None and not self._by_age:
            return None
        if known is None:
            model: Any = tuple(self._curves.get(side) for side in SIDES)
        else:
            keys = np.union1d(known.keys("left"), known.keys("right"))
            model = tuple(known.share(side, keys) for side in SIDES)
            if not len(keys):
                return None
        return model, (rates[0], rates[1]), (window[0], window[1])

    def after_restore(self) -> None:
        """Forecast by the learned curves."""
        self._curves |= {side: learner.curve() for side, learner in self._curve_learners.items()}


_NO_ROWS: Final = RowClasses(np.zeros(1), np.zeros(1), np.ones(1), np.array([0.0, 1.0]))


@kernel
def _subsample(values: Array, ids: Array, salt: int, part: float) -> Array:
    """The values of a random part of the rows.

    Rows are chosen by a hash of their numbers: with every n-th row, keys that alternate could all be missed.
    """
    some = np.empty_like(values)
    n = 0
    for i in range(len(values)):
        some[n] = values[i]
        n += spread(ids[i] + salt) < part
    return some[:n]


@kernel
def _grouped(rows: Array, matches: Array) -> tuple[Array, Array]:
    """Group rows with nearly the same number of expected matches: the rows of each group, and their mean number."""
    count, total = np.zeros(_CLASSES), np.zeros(_CLASSES)
    for i in range(len(rows)):
        group = int(_CLASSES_PER_OCTAVE * np.log2(max(matches[i], _FEWEST) / _FEWEST))
        count[group] += rows[i]
        total[group] += rows[i] * matches[i]
    found = np.flatnonzero(count)
    return count[found], total[found] / count[found]
