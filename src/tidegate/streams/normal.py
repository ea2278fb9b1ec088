"""Two streams with normally distributed keys, in random or partly sorted order."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from tidegate.streams.gaps import Gaps, arrival_times, row_count
from tidegate.streams.stream import Pair
from tidegate.streams.trace import Trace
from tidegate.types import InputError, check_choice

if TYPE_CHECKING:
    from tidegate.types import Array

_REACH = 6  # standard deviations of the listed keys; the others have a probability of 2e-9


@dataclass(frozen=True)
class Normal(Pair):
    """Two streams over the same keys, whole numbers around a mean; each row also has a normally distributed value.

    Parameters
    ----------
    mean, variance
        Of the keys, before they are rounded.
    rate_left, rate_right
        Rows per unit of time.
    value_mean, value_variance
        Of the values.
    fanout
        None for keys in random order. Otherwise keys are nodes of a tree, in ascending order level by level, with
        this number of children each, and no key appears before all rows of its parent. With 1 the streams are
        sorted; with a larger number fewer keys have to wait.
    gaps
        "even", "poisson" or "uniform".

    Examples
    --------
    >>> left, right = Normal().both(1000)
    >>> len(left), len(right), round(left.value.mean())
    (1000, 4996, 999)
    >>> keys = Normal(fanout=1).trace(1000).keys[0].to_numpy()
    >>> bool((np.diff(keys) >= 0).all())
    True

    References
    ----------
    Reservoir Sampling over Memory-Limited Stream Joins, sections 5.1 and 5.3 (figure 9).

    Deviations
    ----------
    The paper does not describe the order of keys in the tree or the choice of the next row. Here all rows whose key
    may appear are equally likely. Keys are rounded to whole numbers, since otherwise none would match.
    """

    mean: float = 1000.0
    variance: float = 1000.0
    rate_left: float = 1.0
    rate_right: float = 5.0
    value_mean: float = 1000.0
    value_variance: float = 10_000.0
    fanout: int | None = None
    gaps: Gaps = "even"

    def __post_init__(self) -> None:
        check_choice(self.gaps, Gaps, "gaps")
        positive = self.variance, self.value_variance, self.rate_left, self.rate_right
        if not min(positive) > 0 or not math.isfinite(sum(positive) + self.mean + self.value_mean):
            raise InputError(
                f"{self} is not a pair of streams; give finite numbers, with variances and rates above 0"
            )
        if self.fanout is not None and (isinstance(self.fanout, bool) or self.fanout < 1):
            raise InputError(f"fanout is {self.fanout!r}; give a whole number of at least 1, or None")

    @property
    def keys(self) -> Array:
        """The keys, except for the rarest."""
        reach = _REACH * math.sqrt(self.variance)
        return np.arange(round(self.mean - reach), round(self.mean + reach) + 1)

    @property
    def shares(self) -> Array:
        """The probability of each of `keys`, on either side."""
        edges = np.append(self.keys - 0.5, self.keys[-1] + 0.5)
        scaled = (edges - self.mean) / math.sqrt(2 * self.variance)
        shares: Array = np.diff([math.erf(edge) for edge in scaled.tolist()])
        shares /= shares.sum()
        return shares

    def both(self, rows: int, seed: int = 0) -> tuple[Trace, Trace]:
        """The first `rows` rows of the left, and the right rows until the last of them."""
        rng = np.random.default_rng(seed)
        left_time = arrival_times(self.gaps, self.rate_left, rows, rng)
        left_time -= left_time[:1]
        end = float(left_time[-1]) if rows else -1.0
        right_time = arrival_times(self.gaps, self.rate_right, row_count(self.rate_right, max(end, 0.0)), rng)
        right_time -= right_time[0]
        right_time = right_time[right_time <= end]
        return self._side(left_time, rng), self._side(right_time, rng)

    def _side(self, time: Array, rng: np.random.Generator) -> Trace:
        values = rng.normal(self.mean, math.sqrt(self.variance), len(time))
        keys = np.rint(values).astype(np.int64)
        if self.fanout is not None:
            keys = partly_sorted(keys, self.fanout, rng)
        value = rng.normal(self.value_mean, math.sqrt(self.value_variance), len(time))
        return Trace.of({"key": keys, "time": time, "value": value})


def partly_sorted(keys: Array, fanout: int, rng: np.random.Generator) -> Array:
    """The same keys in a random order in which no key comes before its parents in the tree.

    Examples
    --------
    >>> partly_sorted(np.array([3, 1, 2, 1]), 2, np.random.default_rng(0))
    array([1, 1, 2, 3])
    """
    nodes, node = np.unique(keys, return_inverse=True)
    # Each row waits for an exponential time from when its key may appear, so all waiting rows are equally likely.
    waits = rng.exponential(1.0, len(keys))
    durations = np.zeros(len(nodes))
    np.maximum.at(durations, node, waits)
    begins = np.zeros(len(nodes))
    for child in range(1, len(nodes)):
        parent = (child - 1) // fanout
        begins[child] = begins[parent] + durations[parent]
    ordered: Array = keys[np.argsort(begins[node] + waits, kind="stable")]
    return ordered
