"""The age-based model: the matches that a row still expects depend on its age."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple, TypeAlias, overload

import numpy as np

from tidegate.compiled import kernel
from tidegate.models.payoff import Payoff
from tidegate.models.validation import ascending, column, like, positive
from tidegate.models.value_object import ValueObject
from tidegate.types import Array, InputError

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import ArrayLike

ResultsByMemory: TypeAlias = "Callable[[float | Array], float | Array]"
"""Results per unit of time as a function of memory."""

_EQUAL = 1e-12  # rates within this fraction of the highest differ by rounding only


class Tables(NamedTuple):
    """A curve as compiled loops read it.

    Edge `h` is the age `edges[h]`, by which a row has had `heights[h]` matches. In the bucket that follows they
    arrive at the rate `density[h]`. Of the later edges, `after[h]` is the one with the highest rate of matches up
    to it (the last edge has itself). `buckets_per_age` is the number of buckets per unit of age, or 0 if they
    differ in width.
    """

    edges: Array
    heights: Array
    density: Array
    after: Array
    buckets_per_age: float


@dataclass(frozen=True, eq=False, init=False)
class AgeCurve(ValueObject):
    """The number of matches that a row can expect while its age passes through each bucket.

    Most bids are placed near the end of an auction, and most parts of an order are delivered together. In such
    streams the matches of a row depend on its age, not on its key. Inside a bucket matches arrive evenly, so C, the
    number of matches by an age, is piecewise linear.

    The value of keeping a row (`priority`) is the highest rate of matches that it can still reach, over every age
    up to which it could be kept. Keeping the rows of the highest priority is the AGE algorithm.

    Parameters
    ----------
    edges
        Ages that bound the buckets, in the unit of the streams' times or as timedeltas (on Spark times are
        microseconds): ascending from 0, one more than there are buckets, which need not be equally wide.
        The last is the age at which a row stops matching, at most the window.
    rates
        The expected matches of a row in each bucket (not per unit of age).
    sample
        The number of rows that each bucket was learned from, if the curve was learned.

    Examples
    --------
    >>> curve = AgeCurve(edges=[0, 1, 2, 3], rates=[3, 0, 2])
    >>> curve.total, curve.best_age
    (5.0, 1.0)
    >>> curve.priority(np.array([0.0, 1.0, 2.0, 3.0]))
    array([3., 1., 2., 0.])
    >>> curve.payoff(rate=1).at(2)
    4.0

    References
    ----------
    Memory-Limited Execution of Windowed Stream Joins, definition 2.2 (the model), section 3.2.1 (the
    priority) and section 3.2.2 (results by memory).

    Deviations
    ----------
    Ages are continuous. The highest rate is still reached at an edge, because between edges C is straight.

    For curves with a minimum the paper gives no formula for the results by memory. `payoff` uses the least concave
    curve above C for all: it is the paper's equation 3 where there is no minimum, and otherwise an upper
    bound that holding some rows longer than others attains in the mean (example 3.4).
    """

    edges: Array
    rates: Array
    sample: Array | None

    def __init__(
        self, edges: ArrayLike | Sequence[timedelta], rates: ArrayLike, sample: ArrayLike | None = None
    ) -> None:
        object.__setattr__(self, "edges", column(_in_micros(edges), "edges of the age curve"))
        object.__setattr__(self, "rates", column(rates, "rates of the age curve"))
        rows = None if sample is None else column(sample, "sample of the age curve")
        object.__setattr__(self, "sample", rows)
        ascending(self.edges, "edges of the age curve")
        if len(self.edges) != len(self.rates) + 1:
            raise InputError(
                f"{len(self.edges)} edges bound {len(self.edges) - 1} buckets, but {len(self.rates)} rates "
                "were given; give one rate for each bucket"
            )
        if self.rates.min() < 0:
            raise InputError(
                f"a rate of the age curve is {self.rates.min():g}; expected matches are 0 or more"
            )
        if not self.rates.any():
            raise InputError(
                "all rates of the age curve are 0, so no row has a priority; give a curve with matches, or "
                "use policy 'fifo'"
            )
        if rows is not None and (len(rows) != len(self.rates) or rows.min() < 0):
            raise InputError(
                f"sample of the age curve is {rows.tolist()}; give the number of rows in each of the "
                f"{len(self.rates)} buckets, 0 or more"
            )

    @property
    def window(self) -> float:
        """The age at which a row stops matching (W)."""
        return float(self.edges[-1])

    @cached_property
    def heights(self) -> Array:
        """Matches by each edge."""
        return np.append(0.0, np.cumsum(self.rates))

    @cached_property
    def density(self) -> Array:
        """Matches per unit of age in each bucket."""
        return self.rates / np.diff(self.edges)

    @property
    def total(self) -> float:
        """Matches in a row's whole life (n)."""
        return float(self.heights[-1])

    @overload
    def cumulative(self, age: float) -> float: ...
    @overload
    def cumulative(self, age: Array) -> Array: ...
    def cumulative(self, age: float | Array) -> float | Array:
        """Matches by this age (C)."""
        return like(age, np.interp(age, self.edges, self.heights))

    @overload
    def inverse(self, matches: float) -> float: ...
    @overload
    def inverse(self, matches: Array) -> Array: ...
    def inverse(self, matches: float | Array) -> float | Array:
        """The age by which a row has had this number of matches; infinite beyond `total`."""
        target = np.asarray(matches, dtype=np.float64)
        end = np.searchsorted(self.heights, target)  # the first edge with at least that many
        bucket = np.clip(end - 1, 0, len(self.rates) - 1)
        with np.errstate(divide="ignore", invalid="ignore"):
            inside = self.edges[bucket] + (target - self.heights[bucket]) / self.density[bucket]
        ages = np.where(end == 0, 0.0, np.minimum(inside, self.edges[bucket + 1]))
        return like(matches, np.where(end == len(self.edges), np.inf, ages))

    @cached_property
    def best_age(self) -> float:
        """The age with the highest mean rate of matches up to it (k_opt); of several, the largest."""
        speed = self.heights[1:] / self.edges[1:]
        return float(self.edges[1:][speed >= speed.max() * (1 - _EQUAL)][-1])

    @cached_property
    def tables(self) -> Tables:
        """The curve for compiled loops, in ordinary arrays so that each loop is compiled once."""
        edges, heights, widths = self.edges.copy(), self.heights.copy(), np.diff(self.edges)
        equal = abs(widths - widths.mean()).max() <= _EQUAL * self.window
        per_age = len(widths) / self.window if equal else 0.0
        return Tables(edges, heights, self.density.copy(), _hull(edges, heights), per_age)

    @overload
    def priority(self, age: float) -> float: ...
    @overload
    def priority(self, age: Array) -> Array: ...
    def priority(self, age: float | Array) -> float | Array:
        """The fastest rate of matches that rows of these ages can still reach.

        It is 0 from the last edge on, and for NaN. A row of negative age waits for the other side: its rate is that
        over the time from now on, in which it has no matches until age 0.
        """
        ages = np.asarray(age)
        return like(age, priorities(ages.ravel(), self.tables).reshape(ages.shape))

    def payoff(self, rate: float) -> Payoff:
        """Results by memory when rows arrive at this rate and those of the highest priority stay."""
        speed = positive(rate, "rate")
        corners, after = [0], self.tables.after
        while (last := corners[-1]) < len(self.rates):
            corners.append(int(after[last]))
        return Payoff(speed * self.edges[corners], speed * self.heights[corners])

    def recent(self, rate: float) -> ResultsByMemory:
        """Results by memory when the newest rows stay; a plain function, since it need not be concave."""
        speed = positive(rate, "rate")
        return lambda memory: speed * self.cumulative(np.asarray(memory) / speed)

    def until_expiry(self, rate: float) -> ResultsByMemory:
        """Results by memory when rows are admitted while there is space and stay for the whole window."""
        speed = positive(rate, "rate")
        return lambda memory: speed * self.total * np.minimum(1, np.asarray(memory) / (speed * self.window))

    def after(self, other: AgeCurve | None, ratio: float) -> AgeCurve:
        """The curve of rows that arrive before the rows that they match, with the time in which they already match.

        Two rows that match are one pair, whichever of them is kept: a row of age `-a` matches as the rows of the
        other side do at the age `a`. The ages of the new curve begin at the end of the other side's curve.

        Parameters
        ----------
        other
            The curve of the other side; None if its rows have no matches.
        ratio
            The rate of rows of the other side over that of this side.

        Examples
        --------
        >>> AgeCurve([0, 1, 2], [3, 1]).after(AgeCurve([0, 5], [2]), ratio=0.5)
        AgeCurve(edges=array([0., 5., 6., 7.]), rates=array([1., 3., 1.]), sample=None)
        """
        if other is None:
            return self
        shift = other.window
        edges = np.concatenate((shift - other.edges[::-1], shift + self.edges[1:]))
        return AgeCurve(edges, np.concatenate((other.rates[::-1] * ratio, self.rates)))

    def from_age(self, age: float) -> AgeCurve | None:
        """The curve of rows that arrive at this age, by the time since; None if they have no matches left.

        A row that arrives at a negative age waits first.

        Examples
        --------
        >>> AgeCurve([0, 1, 3], [3, 1]).from_age(-2)
        AgeCurve(edges=array([0., 2., 3., 5.]), rates=array([0., 3., 1.]), sample=None)
        >>> AgeCurve([0, 1, 3], [3, 1]).from_age(2)
        AgeCurve(edges=array([0., 1.]), rates=array([0.5]), sample=None)
        """
        if age < 0:
            return AgeCurve(np.append(0.0, self.edges - age), np.append(0.0, self.rates))
        edges = np.append(age, self.edges[self.edges > age])
        rates = np.diff(self.cumulative(edges))
        return AgeCurve(edges - age, rates) if rates.any() else None

    def within(self, window: float) -> AgeCurve:
        """The part of the curve within a window."""
        if positive(window, "window") >= self.window:
            return self
        edges = np.append(self.edges[self.edges < window], window)
        sample = None if self.sample is None else self.sample[: len(edges) - 1]
        return AgeCurve(edges, np.diff(self.cumulative(edges)), sample)


def _in_micros(edges: object) -> object:
    """Timedeltas as microseconds, as in a window; anything else as it is."""
    if not isinstance(edges, Sequence):
        return edges
    return [edge / timedelta(microseconds=1) if isinstance(edge, timedelta) else edge for edge in edges]


@kernel
def _hull(edges: Array, heights: Array) -> Array:
    """For each edge, the later edge with the steepest slope to it; computed from the last edge backwards."""
    last = len(edges) - 1
    after = np.full(len(edges), last)
    for h in range(last - 1, -1, -1):
        j = h + 1
        while j < last:
            # Beyond j, only the corners of the hull of what follows j can be steeper.
            k = after[j]
            if (heights[k] - heights[h]) * (edges[j] - edges[h]) < (heights[j] - heights[h]) * (
                edges[k] - edges[h]
            ):
                break
            j = k
        after[h] = j
    return after


@kernel
def _rate_after_wait(wait: float, edges: Array, heights: Array, after: Array) -> float:
    """The highest rate of matches of a row that waits for this long, over the wait and the time that it is kept."""
    steepest, corner = 0.0, 0
    while corner < len(edges) - 1:
        corner = after[corner]
        rate = heights[corner] / (wait + edges[corner])
        if rate <= steepest:
            break
        steepest = rate
    return steepest


@kernel
def priorities(ages: Array, tables: Tables) -> Array:
    """The priorities of rows of these ages, for loops that are compiled themselves."""
    edges, heights, density, after, buckets_per_age = tables
    last = len(density)
    result = np.zeros(len(ages))
    for i in range(len(ages)):
        if not ages[i] < edges[last]:  # NaN is not below either
            continue
        age = float(ages[i])
        if age < 0.0:
            result[i] = _rate_after_wait(-age, edges, heights, after)
            continue
        if buckets_per_age > 0.0:
            bucket = min(int(age * buckets_per_age), last - 1)
            # The product is rounded, so it may be off by one.
            bucket += int(age >= edges[bucket + 1]) - int(age < edges[bucket])
        else:
            bucket, end = 0, last
            while end - bucket > 1:
                middle = (bucket + end) // 2
                bucket, end = (middle, end) if age >= edges[middle] else (bucket, middle)
        steepest = density[bucket]
        height = heights[bucket] + (age - edges[bucket]) * steepest
        corner = bucket + 1
        while corner < last:
            # Along the hull the slope from here increases up to one corner, and never again after it.
            corner = after[corner]
            rise, run = heights[corner] - height, edges[corner] - age
            if rise <= steepest * run:
                break
            steepest = rise / run
        result[i] = steepest
    return result
