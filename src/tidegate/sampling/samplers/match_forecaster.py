"""How many matches a row will own: n(s), from a model that was given or is learned."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple, Self, TypeAlias

import numpy as np

from tidegate.compiled import kernel
from tidegate.draws import spread
from tidegate.models import AgeCurve, AgeCurveLearner, Frequency, LearnedFrequency, Rates
from tidegate.models.decay import horizon_for
from tidegate.models.joint_payoff import rates_of
from tidegate.sampling.samplers.forecast_correction import ForecastCorrection, TrackedRows
from tidegate.types import FAR, SIDES, Buckets, InputError, Last, as_part, other_side, parts_of

if TYPE_CHECKING:
    from tidegate.types import Array, Condition, Rows, Setting, Side, Time

Learning = Literal["frequency", "age"]
Model: TypeAlias = Frequency | AgeCurve | tuple[AgeCurve | None, AgeCurve | None] | Learning

_ENOUGH: Final = 1 << 12
"""Of more arrivals in a step than this, so many on average are looked at."""
_BUCKETS: Final = 32
"""How many ages a learned curve tells apart."""
_KINDS: Final = 8
"""How many kinds of rows are told apart in an octave of expected matches."""
_FEWEST: Final = 2.0**-20
"""Rows that expect fewer matches are all of one kind."""
_GROUPS: Final = _KINDS * 1100
"""More kinds than there can be: a double has at most 1024 octaves above 1."""
_CAPACITY: Final = 1 << 16
_WATCHED: Final = 512
"""How many rows of a side are watched in a step, at least, where there are so many."""
_KEYS: Final = 1 << 11
"""Of more arrivals or keys than this, about so many are looked at to tell what kinds of rows there are."""


def suited(condition: Condition) -> Learning:
    """What is learned where nobody says: frequencies where keys must be equal, else how matches depend on age."""
    return "frequency" if condition == "=" else "age"


def check_model(model: Model | None, rates: tuple[float, float] | None) -> None:
    """Refuse what is no model of matches."""
    curves = model if isinstance(model, tuple) else ()
    pair = len(curves) == len(SIDES) and all(isinstance(c, AgeCurve | None) for c in curves)
    if not (
        model is None or isinstance(model, Frequency | AgeCurve) or pair or model in ("frequency", "age")
    ):
        raise InputError(
            f"model {model!r} does not tell how many matches a row will have; give a Frequency, an AgeCurve, a pair "
            "of these, or 'frequency' or 'age' to learn it"
        )
    if rates is not None:
        rates_of(rates)


class Kinds(NamedTuple):
    """The rows of one side that a window holds, by how many matches they expect.

    `rows` has how many there are of each kind and `matches` what a row of it expects; the matches come as age passes
    through buckets of these widths, by whose edges a row has `reached` that part of them.
    """

    rows: Array
    matches: Array
    widths: Array
    reached: Array


class MatchForecaster:
    """A model of matches at work.

    Rows whose number of matches is not known yet expect infinitely many. What is
    learned counts one row more of each key than was seen: a key that never came yet may come. Where only some of the
    arrivals were looked at, each of which stands for several, it counts one of these more, and a standard error:
    matches beyond those expected are found by fewer rows, and to expect too many only costs memory.

    Parameters
    ----------
    model
        What the user gave, or `suited`; None knows of no matches, and learns rates at most.
    rates
        Rows a unit of time; None learns them.
    setting
        The join.
    salt
        Fixes which arrivals of a large step are looked at.
    """

    def __init__(
        self, model: Model | None, rates: tuple[float, float] | None, setting: Setting, salt: int
    ) -> None:
        if setting.condition != "=" and (model == "frequency" or isinstance(model, Frequency)):
            raise InputError(
                f"shares of keys tell nothing where keys match by {setting.condition!r}; give an AgeCurve, or "
                "'age' to learn one"
            )
        self.learns = model if isinstance(model, str) else "nothing"
        self._given, self._salt = rates, salt
        self._spans = {"left": setting.window.left, "right": setting.window.right}
        lengths = {side: setting.window.length(side) for side in SIDES}
        self._lengths = {side: max(length, 0) for side, length in lengths.items()}
        # A row whose partners come only later matches nothing before.
        self._delays = {side: max(-lengths[other_side(side)], 0) for side in SIDES}
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
                f"an age curve measures time, but the window {tuple(self._spans.values())} counts rows; give a "
                "Frequency"
            )
        self._curve_learners: dict[Side, AgeCurveLearner] = {}
        if model == "age":
            if not 0 < longest < FAR:
                raise InputError(
                    "matches by age are learned over a window, and this one has no end; give an AgeCurve"
                )
            self._buckets = {
                s: Buckets(max(length, 1) / _BUCKETS, _BUCKETS) for s, length in self._lengths.items()
            }
            self._curve_learners = {s: AgeCurveLearner(b, horizon) for s, b in self._buckets.items()}
        self._corrections = {side: ForecastCorrection() for side in SIDES} if self._learner else {}
        self._horizon = horizon
        self._arrived: dict[Side, Array] = {}
        self._stand = dict.fromkeys(SIDES, 1.0)
        self._moment = 0
        self._now: Time = -FAR
        self.seen = 0

    def watches(self) -> dict[Side, Buckets]:
        """The ages at which matches are to be counted for `observe_matches`."""
        return self._buckets if self._curve_learners else {}

    def observe(self, arrivals: dict[Side, Rows], now: Time) -> None:
        """Learn from the arrivals of a step."""
        if not self.seen:
            # The clock starts with the first row, not with the end of the first step.
            begin = min((rows.time[0].item() for rows in arrivals.values() if len(rows)), default=now)
            self._rates.observe("left", 0, begin)
        self._arrived = {}
        self.seen += sum(map(len, arrivals.values()))
        for side, rows in arrivals.items():
            self._moment = int(rows.time.dtype.kind == "i")
            if self._given is None:
                self._rates.observe(side, len(rows), now)
            if self._learner is None or not len(rows):
                continue
            each = max(len(rows) / _ENOUGH, 1.0)
            keys = _some(rows.key, rows.id, self._salt, 1 / each) if each > 1 else rows.key
            self._learner.observe(side, keys, now, each)
            # As what was learned consists of steps, large and small, so does what a row of it stands for.
            part = min(len(rows) / max(self._learner.total(side), 1.0), 1.0)
            self._stand[side] += part * (each - self._stand[side])

    def watched(self, rows: dict[Side, Rows]) -> dict[Side, TrackedRows]:
        """Some of the rows that are held, before a step's arrivals are seen: for `observe_met`."""
        found = {}
        for side in self._corrections:
            places = np.arange(0, len(rows[side]), max(len(rows[side]) // _WATCHED, 1))
            some = rows[side].take(places)
            expected = self._uncorrected(side, some.key)
            if len(places) and np.isfinite(expected).all():
                found[side] = TrackedRows(places, expected, some.time, some.matches)
        return found

    def observe_met(self, watched: dict[Side, TrackedRows], rows: dict[Side, Rows], now: Time) -> None:
        """Learn from what the watched rows have met in a step, which began at the end of the one before."""
        since = self._now
        for side, (places, expected, time, before) in watched.items():
            begins = time + self._delays[side]
            held = np.minimum(now, begins + self._open(side)) - np.maximum(since, begins)
            correction = self._corrections[side]
            correction.fade(0.5 ** ((now - since) / self._horizon) if self._horizon else 1.0)
            met = rows[side].matches[places] - before
            correction.observe(expected, np.maximum(held, 0) / self._open(side), met)

    def observe_matches(
        self, rows: dict[Side, Rows], fresh: dict[Side, int], ages: dict[Side, Array], now: Time
    ) -> None:
        """Learn from the matches of a step; arrivals that own none are not among the rows."""
        since, self._now = (self._now if self._now > -FAR else now), now
        for side, learner in self._curve_learners.items():
            learner.observe(rows[side].time, fresh[side], since, now, ages[side])
            self._curves[side] = learner.curve()

    def rate(self, side: Side) -> float:
        """Rows a unit of time; 0 as long as that is not known."""
        return self._given[SIDES.index(side)] if self._given else self._rates.rate(side)

    def span(self, side: Side) -> float:
        """How long a row stays in its window; infinite where nobody knows."""
        span = self._spans[side]
        if isinstance(span, Last):
            rate = self.rate(side)
            return span.rows / rate if rate else np.inf
        length = self._lengths[side]
        return float(length) if length < FAR else np.inf

    def foretold(self, arrivals: Rows) -> Array:
        """`matches` of a step's arrivals; where these are many, they tell what `kinds` of rows there are."""
        matches = self.matches(arrivals)
        if len(matches) > _KEYS and not self._by_age:
            self._arrived[arrivals.side] = _some(matches, arrivals.id, self._salt, _KEYS / len(matches))
        return matches

    def matches(self, rows: Rows) -> Array:
        """How many matches each of these rows expected to own when it arrived."""
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
        return self._corrections[side].of(matches) if self._corrections else matches

    def _uncorrected(self, side: Side, keys: Array) -> Array:
        other = other_side(side)
        rate, span = self.rate(other), self.span(side)
        # A window of no length has partners of the same moment only, and nobody knows how many.
        if not rate or not 0 < span < np.inf:
            return np.full(len(keys), np.inf)
        shares = self._share(other, keys)
        shares *= rate * self._open(side)
        return shares

    def _open(self, side: Side) -> float:
        """For how long a row meets what it owns; of whole times, at how many.

        A window has one more of these than it is long. But of rows of one time the left one comes first.
        """
        length = self.span(side) - self._delays[side]
        return length + self._moment * (side == "left" or self._delays[side] > 0)

    def _share(self, side: Side, keys: Array) -> Array:
        if self._shares is not None:
            return self._shares.share(side, keys)
        if self._learner is None or not self._learner.total(side):
            return np.full(len(keys), np.inf)
        shares, row = self._learner.share(side, keys), 1 / self._learner.total(side)
        several = (self._stand[side] - 1) * row
        if several > 0:
            shares += several * (1 + np.sqrt(shares / (several + row)))
        shares += row
        return shares

    def kinds(self, side: Side) -> Kinds | None:
        """The rows that a window of this side holds; None while that is not known."""
        rate, span = self.rate(side), self.span(side)
        if span == 0:
            return _NOBODY
        if not rate or not np.isfinite(span) or not self.rate(other_side(side)):
            return None
        return (
            self._kinds_by_age(side, rate, span) if self._by_age else self._kinds_by_share(side, rate, span)
        )

    def kinds_of_both(self) -> list[Kinds] | None:
        """`kinds` of either side; None while those of one are not known."""
        known = [kinds for side in SIDES if (kinds := self.kinds(side)) is not None]
        return known if len(known) == len(SIDES) else None

    def _kinds_by_age(self, side: Side, rate: float, span: float) -> Kinds | None:
        curve = self._curves.get(side)
        if curve is None:
            return None if self._curve_learners else _NOBODY
        rest = max(span - curve.window, 0.0)
        widths, reached = np.append(np.diff(curve.edges), rest), np.append(curve.heights, curve.total)
        return Kinds(np.array([rate * span]), np.array([curve.total]), widths, reached / curve.total)

    def _kinds_by_share(self, side: Side, rate: float, span: float) -> Kinds | None:
        matches, known = self._arrived.get(side), self._shares or self._learner
        if matches is not None:
            shares = np.ones(len(matches))
        elif known is None or (self._learner and not self._learner.total(side)):
            return None
        else:
            keys, shares = known.sample_keys(side, _KEYS)
            matches = self._by_share(side, keys)
        if not np.isfinite(matches).all() or not shares.any():
            return None
        delay = min(self._delays[side], span)
        rows, matches = _grouped(rate * span * shares / shares.sum(), matches)
        return Kinds(rows, matches, np.array([delay, span - delay]), np.array([0.0, 0.0, 1.0]))

    def believed(self) -> tuple[Any, tuple[float, float], tuple[float, float]] | None:
        """Model, rates and window, as `models.sample_rows` takes them; None while these are not known."""
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

    def snapshot(self) -> dict[str, Array]:
        """What was learned."""
        state = {"clock": np.array([float(self._now), self.seen, self._moment, *self._stand.values()])}
        state |= as_part("rate", self._rates.snapshot())
        if self._learner:
            state |= as_part("share", self._learner.snapshot())
        for side, correction in self._corrections.items():
            state |= as_part(f"met-{side}", correction.snapshot())
        for side, learner in self._curve_learners.items():
            state |= as_part(side, learner.snapshot())
        return state

    def restore(self, state: dict[str, Array]) -> Self:
        """Take up what `snapshot` gave."""
        parts = parts_of(state)
        self._now, seen, moment, *stand = state["clock"].tolist()
        self.seen, self._moment = int(seen), int(moment)
        self._stand = dict(zip(SIDES, stand, strict=True))
        self._rates.restore(parts["rate"])
        if self._learner and "share" in parts:
            self._learner.restore(parts["share"])
        for side, correction in self._corrections.items():
            if f"met-{side}" in parts:
                correction.restore(parts[f"met-{side}"])
        for side, learner in self._curve_learners.items():
            if side in parts:
                learner.restore(parts[side])
                self._curves[side] = learner.curve()
        return self


_NOBODY: Final = Kinds(np.zeros(1), np.zeros(1), np.ones(1), np.array([0.0, 1.0]))


@kernel
def _some(values: Array, ids: Array, salt: int, part: float) -> Array:
    """What this part of the rows have, spread evenly: also over rows of one key that come in turn with others."""
    some = np.empty_like(values)
    n = 0
    for i in range(len(values)):
        some[n] = values[i]
        n += spread(ids[i] + salt) < part
    return some[:n]


@kernel
def _grouped(rows: Array, matches: Array) -> tuple[Array, Array]:
    """Rows of nearly the same number of expected matches together, each group by its mean."""
    there, met = np.zeros(_GROUPS), np.zeros(_GROUPS)
    for i in range(len(rows)):
        octave = int(_KINDS * np.log2(max(matches[i], _FEWEST) / _FEWEST))
        there[octave] += rows[i]
        met[octave] += rows[i] * matches[i]
    found = np.flatnonzero(there)
    return there[found], met[found] / there[found]
