"""Quantiles of a join from a sample of it, with intervals.

A quantile has no simple variance, but the share of results at or below it has: the interval of that share, carried
back through the estimated distribution, holds the quantile (Woodruff). With everything in the sample the quantile is
SQL's `percentile`: between two values it lies in proportion.

References
----------
Woodruff, "Confidence intervals for medians and other position measures", Journal of the American Statistical
Association 47 (1952).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tidegate.sampling.intervals import half_width

if TYPE_CHECKING:
    from tidegate.sampling.moments import Draws
    from tidegate.types import Array


def quantiles(draws: Draws, values: Array, q: float, level: float) -> tuple[Array, Array, Array]:
    """Estimate the quantile of each group: its value, and the ends of its interval.

    An end is NaN where the sample is too small to tell: where even its least (or largest) value may lie on the wrong
    side.
    """
    ranked = _Ranked(draws, values)
    found = ranked.at(np.full(draws.groups, q))
    share = (values <= found[draws.group]) - q
    residuals = draws.moments(share / ranked.weight[draws.group])
    # Far out few values, or none, lie beyond: what is seen then says less than what q itself does.
    least = q * (1 - q) * draws.alone() / ranked.weight**2
    residuals = residuals._replace(variance=np.maximum(residuals.variance, least))
    width = half_width(residuals, level)
    ends = []
    for end in (q - width, q + width):
        value = ranked.at(np.clip(np.nan_to_num(end), 0, 1))
        outside = ~((end >= 0) & (end <= 1)) & (residuals.draws > 0)
        ends.append(np.where(outside, np.nan, value))
    return found, ends[0], ends[1]


class _Ranked:
    """The values of each group in order, each as often as its weight says."""

    def __init__(self, draws: Draws, values: Array) -> None:
        order = np.argsort(values)
        if draws.groups > 1:
            # NumPy sorts short integers in linear time.
            short = draws.groups <= np.iinfo(np.uint16).max
            group = draws.group.astype(np.uint16) if short else draws.group
            order = order[np.argsort(group[order], kind="stable")]
        self._values = values[order]
        self._running = np.cumsum(1 / draws.probability[order])
        self._first = np.searchsorted(draws.group[order], np.arange(draws.groups))
        self._last = np.append(self._first[1:], len(order)) - 1
        self._before = np.where(self._first > 0, self._running[self._first - 1], 0.0)
        self.weight = self._running[self._last] - self._before

    def at(self, q: Array) -> Array:
        """The value at this fraction of each group's weight."""
        place = 1 + np.maximum(self.weight - 1, 0) * q
        whole = np.floor(place)
        below, above = self._at(whole), self._at(np.minimum(whole + 1, self.weight))
        part = place - whole
        return np.where(below == above, below, (1 - part) * below + part * above)

    def _at(self, place: Array) -> Array:
        # What adding up has rounded must not count as one more result.
        target = self._before + place - 1e-9 * self.weight
        found: Array = self._values[np.clip(np.searchsorted(self._running, target), self._first, self._last)]
        return found
