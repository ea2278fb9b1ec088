"""The age curve of one side, learned while the join runs."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tidegate.compiled import kernel
from tidegate.models.age_curve import AgeCurve

if TYPE_CHECKING:
    from tidegate.types import Array, Buckets, Time

PRIOR_ROWS = 1.0
"""How many rows' worth of the average rate stand in each bucket before anything was seen of it."""


class CurveLearner:
    """Matches found at each age, over the time that rows were held at that age.

    Every row that is held tells something, whole life or not: it was there to be matched from the age it had
    at the last step to the one it has now. Rows that were shed earlier just tell nothing of later ages. That
    is sound as long as who is shed depends on age, on chance, or on nothing that bears on later matches; and
    some rows must be held for long, or late ages stay unknown (see `Age`).

    Parameters
    ----------
    buckets
        The ages to tell apart.
    horizon
        The time in which an observation loses half its weight; None for never.

    Examples
    --------
    >>> from tidegate.types import Buckets
    >>> learner = CurveLearner(Buckets(width=1.0, count=2), horizon=None)
    >>> learner.observe(time=np.zeros(100), fresh=0, since=0, now=2, ages=np.array([300, 0]))
    >>> [round(rate, 1) for rate in learner.curve().rates.tolist()]
    [3.0, 0.0]

    References
    ----------
    Memory-Limited Execution of Windowed Stream Joins, section 2.3.

    Deviations
    ----------
    The paper averages over rows that were retained for their whole life. Dividing by the time that rows were
    held uses all of them.
    """

    def __init__(self, buckets: Buckets, horizon: Time | None) -> None:
        self._buckets = buckets
        self._horizon = horizon
        self.matches = np.zeros(buckets.count)
        self.held = np.zeros(buckets.count)

    def observe(self, time: Array, fresh: int, since: Time, now: Time, ages: Array) -> None:
        """Learn from a step.

        Parameters
        ----------
        time
            When the rows that were held during the step began, the arrivals last.
        fresh
            Where the arrivals begin.
        since, now
            When the step began and ended.
        ages
            How many results found a row in each bucket.
        """
        if self._horizon is not None and now > since:
            kept = 0.5 ** ((now - since) / self._horizon)
            self.matches *= kept
            self.held *= kept
        self.matches += ages
        # Written for one row it would say: the overlap of each bucket with the ages from then to now.
        self.held += _held(time, fresh, float(since), float(now), self._buckets.width, self._buckets.count)

    def curve(self) -> AgeCurve | None:
        """What was learned; None before anything matched."""
        if not self.matches.any() or not self.held.any():
            return None
        width = self._buckets.width
        average = self.matches.sum() / self.held.sum()
        density = (self.matches + PRIOR_ROWS * width * average) / (self.held + PRIOR_ROWS * width)
        edges = np.arange(self._buckets.count + 1) * width
        return AgeCurve(edges, density * width, sample=self.held / width)

    def snapshot(self) -> dict[str, Array]:
        """What was observed."""
        return {"matches": self.matches.copy(), "held": self.held.copy()}

    def restore(self, state: dict[str, Array]) -> None:
        """Take up what `snapshot` gave; what other buckets observed is forgotten."""
        if len(state["matches"]) == self._buckets.count:
            self.matches, self.held = state["matches"].copy(), state["held"].copy()


@kernel
def _held(time: Array, fresh: int, since: float, now: float, width: float, count: int) -> Array:
    """Row-time in each bucket: of held rows from `since` to `now`, of arrivals from age 0 to `now`."""
    partly = np.zeros(count + 1)
    fully = np.zeros(count + 1)
    for i in range(len(time)):
        age = now - time[i]
        if age > 0.0:
            bucket = min(int(age / width), count)
            partly[bucket] += age - bucket * width
            fully[bucket] += 1.0
        if i < fresh:
            age = since - time[i]
            if age > 0.0:
                bucket = min(int(age / width), count)
                partly[bucket] -= age - bucket * width
                fully[bucket] -= 1.0
    held = np.empty(count)
    beyond = fully[count]
    for bucket in range(count - 1, -1, -1):
        held[bucket] = partly[bucket] + beyond * width
        beyond += fully[bucket]
    return held
