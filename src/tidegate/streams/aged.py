"""Streams whose matches follow an age curve."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal, TypeAlias

import numpy as np

from tidegate.streams.gaps import Gaps, arrival_times, row_count, true_rate
from tidegate.streams.stream import Pair
from tidegate.streams.trace import Trace
from tidegate.types import InputError, check_choice

if TYPE_CHECKING:
    from tidegate.types import Array

Shape = Literal["increasing", "decreasing", "bell"]
AgeShape: TypeAlias = Shape | tuple[float, ...]


@dataclass(frozen=True)
class Aged(Pair):
    """Each right row picks an age by the age curve, and then a left row of about that age as its partner.

    The window of the left is divided into buckets of equal length. A right row picks a bucket by the weights of
    the curve, and then a random left row whose age is in that bucket at that time. All left keys differ and are
    numbered from 0.

    Parameters
    ----------
    shape
        Weights of the `m` buckets, youngest first: "increasing" (`k**power` for the k-th of them),
        "decreasing" (`(m - k)**power`), "bell" (increasing up to `m / 2`, then decreasing), or a tuple of weights.
    power
        The exponent of a named shape.
    window
        The length of a left row's window.
    buckets
        The number of buckets of the window, one for each weight.
    rate_left, rate_right
        Nominal rows per unit of time; see `true_rates`.
    gaps
        "uniform" (between half and twice `1 / rate`), "even" or "poisson".
    then
        `(time, shape)`: right rows from that time on follow this shape instead.

    Examples
    --------
    >>> aged = Aged("decreasing", window=30.0, buckets=3)
    >>> aged.curve_edges, aged.curve_rates
    (array([ 0., 10., 20., 30.]), array([4., 1., 0.]))
    >>> left, right = aged.both(1000)
    >>> len(left), len(right)
    (1000, 4960)

    References
    ----------
    Memory-Limited Execution of Windowed Stream Joins, sections 6.2.1, 6.2.2 and 6.2.5 (the exponents of
    Figure 11); section 2.2 for the age curve.

    Deviations
    ----------
    The mean number of partners of a left row is not a parameter: it is the right rate over the left rate (`matches`)
    for any curve. The number varies from row to row, approximately by a Poisson distribution.
    The true rates are the given ones only for "even" and "poisson" gaps.

    The paper does not treat a right row that picks an empty bucket. Here it picks again among the buckets with both
    weight and rows; without such a bucket it does not arrive. Buckets are empty only with "poisson" gaps, or if they
    are shorter than the longest gap.

    Recording starts after the streams have run for a window: at time 0 left rows of all ages exist, with negative
    keys, and are not in the trace. Otherwise the first left rows would be picked too often.
    """

    shape: AgeShape = "increasing"
    power: float = 2.0
    window: float = 500.0
    buckets: int = 20
    rate_left: float = 1.0
    rate_right: float = 5.0
    gaps: Gaps = "uniform"
    then: tuple[float, AgeShape] | None = None

    def __post_init__(self) -> None:
        check_choice(self.gaps, Gaps, "gaps")
        sizes = (self.window, self.rate_left, self.rate_right)
        if self.buckets < 1 or not all(0 < size < np.inf for size in sizes):
            raise InputError(
                f"{self} is not a stream; give buckets >= 1, and a finite window and rates above 0"
            )
        if not 0 <= self.power < np.inf:
            raise InputError(f"power {self.power!r} must be a finite number, at least 0")
        if self.then is not None:
            self.later.curve_shares  # noqa: B018 - refuses a bad curve at once
        self.curve_shares  # noqa: B018

    @property
    def later(self) -> Aged:
        """The stream from the time of `then` on; the same stream without `then`."""
        return self if self.then is None else replace(self, shape=self.then[1], then=None)

    @property
    def true_rates(self) -> tuple[float, float]:
        """Left and right rows per unit of time in the long run."""
        return true_rate(self.gaps, self.rate_left), true_rate(self.gaps, self.rate_right)

    @property
    def matches(self) -> float:
        """The mean number of partners of a left row."""
        left, right = self.true_rates
        return right / left

    @property
    def curve_edges(self) -> Array:
        """The ages at which the buckets begin, and the age at which the last one ends."""
        return np.linspace(0.0, self.window, self.buckets + 1)

    @property
    def curve_rates(self) -> Array:
        """The partners that a left row finds on average while its age is in each bucket."""
        return self.matches * self.curve_shares

    @property
    def curve_shares(self) -> Array:
        """The probability that a right row picks each bucket."""
        weights = self._weights()
        if len(weights) != self.buckets:
            raise InputError(f"{len(weights)} weights do not fit buckets={self.buckets}; give one per bucket")
        if not (np.isfinite(weights) & (weights >= 0)).all() or not weights.any():
            raise InputError(
                f"weights {weights.tolist()} are not an age curve; give numbers of at least 0, one of them above 0"
            )
        shares: Array = weights / weights.sum()
        return shares

    def _weights(self) -> Array:
        if not isinstance(self.shape, str):
            return np.asarray(self.shape, np.float64)
        check_choice(self.shape, Shape, "shape")
        k = np.arange(1, self.buckets + 1)
        rising, falling = (side.astype(np.float64) ** self.power for side in (k, self.buckets - k))
        if self.shape == "bell":
            return np.where(2 * k <= self.buckets, rising, falling)
        return rising if self.shape == "increasing" else falling

    def both(self, rows: int, seed: int = 0) -> tuple[Trace, Trace]:
        """The first `rows` rows of the left, and the right rows until the last of them."""
        # Separate generators, so that more rows of the same seed begin with the same rows.
        past, future, arrival, choice = np.random.default_rng(seed).spawn(4)
        before = row_count(self.rate_left, self.window)
        after = arrival_times(self.gaps, self.rate_left, rows, future)
        after -= after[:1]
        left = np.concatenate((-arrival_times(self.gaps, self.rate_left, before, past)[::-1], after))
        end = left[-1] if rows else 0.0
        right = arrival_times(self.gaps, self.rate_right, row_count(self.rate_right, end), arrival)
        right = right[right <= end]
        # In (0, 1], so that a draw never falls before the first positive weight or after the last.
        draws = 1.0 - choice.random((len(right), 3))
        switch = len(right) if self.then is None else int(np.searchsorted(right, self.then[0]))
        edges = self.curve_edges
        picked = np.concatenate(
            (
                _partners(left, right[:switch], edges, self.curve_shares, draws[:switch]),
                _partners(left, right[switch:], edges, self.later.curve_shares, draws[switch:]),
            )
        )
        arrives = picked >= 0
        return (
            Trace.of({"key": np.arange(rows), "time": after}),
            Trace.of({"key": picked[arrives] - before, "time": right[arrives]}),
        )


def _partners(left: Array, right: Array, edges: Array, shares: Array, draws: Array) -> Array:
    """The position of the left row that each right row picks; -1 if there is none.

    A row whose age is an edge belongs to the older bucket. Each right row has three random numbers: for the bucket,
    for another bucket if the first is empty, and for the row.
    """
    weights = np.cumsum(shares)
    bucket = np.searchsorted(weights, draws[:, 0] * weights[-1])
    newest = np.searchsorted(left, right - edges[bucket], side="right")
    oldest = np.searchsorted(left, right - edges[bucket + 1], side="right")
    empty = np.flatnonzero(newest == oldest)
    if len(empty):
        bounds = np.searchsorted(left, right[empty, None] - edges, side="right")
        weights = np.cumsum(np.where(bounds[:, :-1] > bounds[:, 1:], shares, 0.0), axis=1)
        bucket = np.argmax(weights >= draws[empty, 1:2] * weights[:, -1:], axis=1)
        at = np.arange(len(empty))
        oldest[empty] = bounds[at, bucket + 1]
        newest[empty] = np.where(weights[:, -1] > 0, bounds[at, bucket], oldest[empty])
    picked: Array = newest - np.ceil(draws[:, 2] * (newest - oldest)).astype(np.int64)
    return np.where(newest > oldest, picked, -1)
