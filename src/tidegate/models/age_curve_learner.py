"""The age curve of one side, learned while the join runs."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, Final

import numpy as np

from tidegate.compiled import kernel
from tidegate.models.age_curve import AgeCurve
from tidegate.types import SIDES, ArrayField, Numbers, Stateful, other_side

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tidegate.types import Array, Buckets, Side, State, Step, Time

PRIOR_ROWS: Final = 1.0
"""The prior of each bucket: this many rows with the average rate."""
_REVIEWS: Final = 4
"""Reviews per window, at most: each checks whether the curve has changed."""
_AGES: Final = 8
"""The number of groups of ages that a review compares."""
_MIN_MATCHES: Final = 64
"""The number of matches, expected or observed, that a review needs."""


class AgeCurveLearner(Stateful):
    """Matches at each age, divided by the time that rows were buffered at that age.

    Every buffered row is an observation, even if it is evicted before its window ends: it could be matched at the
    ages between the last step and this one. An evicted row is no observation of later ages. This is unbiased if
    eviction does not depend on anything but age that is related to later matches. Some rows must be buffered for
    long, or late ages remain unknown (see `Age`).

    Slow changes are followed, since old observations lose weight. For sudden changes a review compares the recent
    matches with those that the older observations predict. If half of them differ, and chance does not explain
    that, the older observations are discarded.

    Parameters
    ----------
    buckets
        The buckets of ages.
    horizon
        The time in which an observation loses half its weight; None for never.

    Examples
    --------
    >>> from tidegate.types import Buckets
    >>> learner = AgeCurveLearner(Buckets(width=1.0, count=2), horizon=None)
    >>> learner.observe(time=np.zeros(100), fresh=0, since=0, now=2, ages=np.array([300, 0]))
    >>> [round(rate, 1) for rate in learner.curve().rates.tolist()]
    [3.0, 0.0]

    References
    ----------
    Memory-Limited Execution of Windowed Stream Joins, section 2.3.

    Deviations
    ----------
    The paper averages over rows that were retained for their whole life. Dividing by the time that rows were
    buffered uses all rows. It leaves curves that change to future work.
    """

    state: ClassVar[State] = {
        "matches": ArrayField("matches"),
        "held": ArrayField("exposure"),
        "late_matches": ArrayField("_recent_matches"),
        "late_held": ArrayField("_recent_exposure"),
        "reviewed": Numbers(_reviewed=float, _width=float),
    }

    def __init__(self, buckets: Buckets, horizon: Time | None) -> None:
        self._buckets = buckets
        self._horizon = horizon
        self.matches = np.zeros(buckets.count)
        self.exposure = np.zeros(buckets.count)
        # The same since the last review.
        self._recent_matches = np.zeros(buckets.count)
        self._recent_exposure = np.zeros(buckets.count)
        self._reviewed, self._width = -np.inf, buckets.width

    def observe(
        self,
        time: Array,
        fresh: int,
        since: Time,
        now: Time,
        ages: Array,
        *,
        arriving: Time | None = None,
        mirrored: Array | None = None,
    ) -> None:
        """Learn from a step.

        Parameters
        ----------
        time
            The times of the rows that were buffered during the step, the arrivals last.
        fresh
            The position of the first arrival.
        since, now
            The other side's clock before and after the step.
        ages
            The number of results with a row in each bucket.
        arriving
            This side's clock before the step, if it is not that of the other side.
        mirrored
            For each bucket, the time that rows of this side would have spent in it, had they been buffered instead of
            rows of the other side that were ahead of them.
        """
        if self._horizon is not None and now > since:
            factor = 0.5 ** ((now - since) / self._horizon)
            for sums in (self.matches, self.exposure, self._recent_matches, self._recent_exposure):
                np.multiply(sums, factor, out=sums)
        # For one row: the overlap of each bucket with the ages from `since` to `now`.
        begin = since if arriving is None else arriving
        exposure = self._time_in_buckets(time, fresh, since, now, begin)
        if mirrored is not None:
            exposure += mirrored
        self.matches += ages
        self.exposure += exposure
        self._recent_matches += ages
        self._recent_exposure += exposure
        if now - self._reviewed >= self._buckets.width * self._buckets.count / _REVIEWS:
            self._review(now)

    def mirrored(self, time: Array, since: Time, now: Time, ratio: float) -> Array | None:
        """The argument `mirrored` of `observe`, from the buffered rows of the other side; None if none was ahead.

        Parameters
        ----------
        time
            The times of the buffered rows of the other side.
        since, now
            This side's clock before and after the step.
        ratio
            The rate of rows of this side over that of the other side.
        """
        if not len(time) or time.max() <= since:
            return None
        # A row at the time t is in the bucket of the age t - clock; as times and clocks with the opposite sign.
        return ratio * self._time_in_buckets(-time, len(time), -now, -since, -now)

    def _time_in_buckets(self, time: Array, fresh: int, since: Time, now: Time, begin: Time) -> Array:
        width, count = self._buckets.width, self._buckets.count
        return _exposure(time, fresh, float(since), float(now), float(begin), width, count)

    def _review(self, now: Time) -> None:
        """Discard the observations before the last review if those since then contradict them."""
        before = np.maximum(self.exposure - self._recent_exposure, 0.0) + PRIOR_ROWS * self._buckets.width
        expected = np.maximum(self.matches - self._recent_matches, 0.0) / before * self._recent_exposure
        observed, predicted = self._recent_matches, expected.sum()
        most = max(observed.sum(), predicted)
        if most < _MIN_MATCHES:
            return
        first = (
            np.arange(_AGES) * len(observed) // _AGES if len(observed) > _AGES else np.arange(len(observed))
        )
        wrong = abs(np.add.reduceat(observed - expected, first)).sum()
        # The expected matches come from a sample, too.
        by_chance = np.sqrt(np.add.reduceat(expected * (1 + self._recent_exposure / before), first)).sum()
        if wrong > most / 2 + 2 * by_chance:
            self.matches, self.exposure = self._recent_matches.copy(), self._recent_exposure.copy()
        self._recent_matches[:], self._recent_exposure[:] = 0.0, 0.0
        self._reviewed = float(now)

    @property
    def least_observed_rows(self) -> float:
        """The number of rows that the least observed age was learned from."""
        return float(self.exposure.min() / self._buckets.width)

    def curve(self) -> AgeCurve | None:
        """The learned curve; None before the first match."""
        if not self.matches.any() or not self.exposure.any():
            return None
        width = self._buckets.width
        average = self.matches.sum() / self.exposure.sum()
        density = (self.matches + PRIOR_ROWS * width * average) / (self.exposure + PRIOR_ROWS * width)
        edges = np.arange(self._buckets.count + 1) * width
        return AgeCurve(edges, density * width, sample=self.exposure / width)

    def after_restore(self) -> None:
        """Discard a state with other buckets."""
        if (self._width, len(self.matches)) != (self._buckets.width, self._buckets.count):
            vars(self).update(vars(AgeCurveLearner(self._buckets, self._horizon)))


def observe_ages(
    learners: Mapping[Side, AgeCurveLearner],
    step: Step,
    rates: Mapping[Side, float],
) -> None:
    """Learn the curves of both sides from a step, given the rates of their rows."""
    buffered = {side: step.rows[side].time[: step.fresh[side]] for side in SIDES}
    for side, learner in learners.items():
        other = other_side(side)
        ratio = rates[side] / rates[other] if rates[side] and rates[other] else 1.0
        learner.observe(
            step.rows[side].time,
            step.fresh[side],
            step.since.of(other),
            step.clocks.of(other),
            step.ages[side],
            arriving=step.since.of(side),
            mirrored=learner.mirrored(buffered[other], step.since.of(side), step.clocks.of(side), ratio),
        )


@kernel
def _exposure(
    time: Array, fresh: int, since: float, now: float, begin: float, width: float, count: int
) -> Array:
    """Row-time in each bucket: of buffered rows from `since` to `now`, of arrivals from their arrival to `now`.

    A row arrives at the age 0 if its side's clock, `begin` before the step, is not behind `since`.
    """
    partly = np.zeros(count + 1)
    fully = np.zeros(count + 1)
    for i in range(len(time)):
        age = now - time[i]
        if age > 0.0:
            bucket = min(int(age / width), count)
            partly[bucket] += age - bucket * width
            fully[bucket] += 1.0
        if i < fresh or begin < since:
            age = since - (time[i] if i < fresh else max(time[i], begin))
            if age > 0.0:
                bucket = min(int(age / width), count)
                partly[bucket] -= age - bucket * width
                fully[bucket] -= 1.0
    exposure = np.empty(count)
    beyond = fully[count]
    for bucket in range(count - 1, -1, -1):
        exposure[bucket] = partly[bucket] + beyond * width
        beyond += fully[bucket]
    return exposure
