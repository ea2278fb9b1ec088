"""The moments of an estimated total, from the design of the sample.

A sample consists of draws. In a Poisson design, each draw is a cluster: results that are in the sample together or
not at all. In a reservoir, each draw is a result, and all sets of the same size are equally likely. A result with
inclusion probability p represents 1/p results (Horvitz and Thompson). A total is a sum over draws, and so are the
moments of its error.

Results of one cluster may have different probabilities, because a cluster may be dropped when the sampling
probability is lowered. A cluster that is in the sample at the lower probability is also in it at the higher one. So
two of its results with probabilities p and q, p <= q, are in the sample together with probability p. That adds
`(1 - q) x y / (p q)` to the variance for every pair. If all probabilities are equal, the sum is the well-known
`(1 - p) / p^2` times the square of the cluster's total.

A reservoir that is filled from a cluster sample draws again: some results of each drawn cluster, independently. Then
the probability of the cluster (`shown`) takes the place of q for every pair of different results.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple, Self

import numpy as np

from tidegate.compiled import kernel
from tidegate.types import Array


class Moments(NamedTuple):
    """The moments of one total for each group.

    Parameters
    ----------
    total
        The estimated total.
    variance
        The estimated variance of `total`.
    third
        The estimated third cumulant of `total`.
    covariance
        The covariance of `total` and `variance`; positive if values are skewed to the right.
    fourth
        The sum of the squared contributions of the draws to `variance`; it gives the uncertainty of `variance`.
    draws
        The number of draws with an inclusion probability below 1.
    """

    total: Array
    variance: Array
    third: Array
    covariance: Array
    fourth: Array
    draws: Array


@dataclass(frozen=True)
class OrderedDraws:
    """Sampled results, ordered so that those of one group and one draw (or stratum) are adjacent.

    Parameters
    ----------
    order
        The position of each result in the sample.
    group, unit
        The group of each result, and its cluster or stratum.
    probability
        The inclusion probability of each result.
    shown
        The probability of its cluster; `probability` if all results of a drawn cluster are in the sample.
    reservoir
        The number of results of its stratum in the sample, over all groups; None for a Poisson design.
    groups
        The number of groups.
    """

    order: Array
    group: Array
    unit: Array
    probability: Array
    shown: Array
    reservoir: Array | None
    groups: int

    @classmethod
    def of(
        cls,
        group: Array,
        unit: Array | None,
        probability: Array,
        reservoir: Array | None,
        groups: int,
        shown: Array | None = None,
    ) -> Self:
        """Order results; without units, each result is a draw of its own."""
        if shown is None:
            shown = probability
        if unit is None:
            order = np.arange(len(group))
            return cls(order, group, order, probability, shown, reservoir, groups)
        span = int(unit.max(initial=0)) + 1
        key = group * span + unit
        order = np.argsort(key)
        key, ordered = key[order], shown[order]
        if ((key[1:] == key[:-1]) & (ordered[1:] != ordered[:-1])).any():
            order = np.lexsort((shown, group * span + unit))
        return cls(
            order,
            group[order],
            unit[order],
            probability[order],
            shown[order],
            None if reservoir is None else reservoir[order],
            groups,
        )

    def totals(self, values: Array) -> Array:
        """The estimated total of each group."""
        return np.bincount(self.group, values / self.probability, self.groups)

    def others(self) -> Array:
        """For each result, the part of its group's weight that belongs to other draws."""
        unit = self.unit if self.reservoir is None else np.arange(len(self.unit))
        return _others(self.group, unit, self.probability, self.totals(np.ones(len(unit))))

    def independent_variance(self) -> Array:
        """The variance of each group's count if all results had been drawn independently."""
        return np.bincount(self.group, (1 - self.probability) / self.probability**2, self.groups)

    def moments(self, values: Array) -> Moments:
        """The moments of the estimated total of each group."""
        if self.reservoir is None:
            return Moments(
                *_poisson_moments(self.group, self.unit, self.probability, self.shown, values, self.groups)
            )
        return Moments(
            *_reservoir_moments(self.group, self.unit, self.probability, values, self.reservoir, self.groups)
        )


@kernel
def _others(group: Array, unit: Array, probability: Array, weight: Array) -> Array:
    others = np.empty(len(group))
    begin = 0
    while begin < len(group):
        g, cluster = group[begin], unit[begin]
        end, mine = begin, 0.0
        while end < len(group) and unit[end] == cluster and group[end] == g:
            mine += 1 / probability[end]
            end += 1
        others[begin:end] = max(0.0, 1 - mine / weight[g])
        begin = end
    return others


@kernel
def _poisson_moments(
    group: Array, unit: Array, probability: Array, shown: Array, value: Array, groups: int
) -> Array:
    """Sum over clusters; within a cluster, `shown` is ascending."""
    sums = np.zeros((6, groups))
    row = 0
    while row < len(group):
        g, cluster = group[row], unit[row]
        total = variance = cubes = 0.0
        out = hidden = 1.0
        while row < len(group) and unit[row] == cluster and group[row] == g:
            out, hidden = 1 - probability[row], 1 - shown[row]
            x = value[row] / probability[row]
            variance += x * (out * x + 2 * hidden * total)
            cubes += x**3
            total += x
            row += 1
        if out > 0:
            # Interpolates between results drawn together (hidden = out) and independently (hidden = 0).
            cubes += hidden / out * (total**3 - cubes)
        sums[0, g] += total
        sums[1, g] += variance
        sums[2, g] += out * (2 * out - 1) * cubes
        sums[3, g] += out * out * cubes
        sums[4, g] += variance * variance
        sums[5, g] += out > 0
    return sums


@kernel
def _reservoir_moments(
    group: Array, stratum: Array, probability: Array, value: Array, reservoir: Array, groups: int
) -> Array:
    """Sum over strata; results of other groups count as zeros."""
    sums = np.zeros((6, groups))
    begin = 0
    while begin < len(group):
        g, h = group[begin], stratum[begin]
        end = begin
        total = 0.0
        while end < len(group) and group[end] == g and stratum[end] == h:
            total += value[end] / probability[end]
            end += 1
        size = reservoir[begin]
        out = 1 - probability[begin]
        mean = total / size
        others = size - (end - begin)
        second, third, fourth = others * mean**2, -others * mean**3, others * mean**4
        for row in range(begin, end):
            deviation = value[row] / probability[row] - mean
            second += deviation**2
            third += deviation**3
            fourth += deviation**4
        sums[0, g] += total
        if out > 0:
            sums[1, g] += out * second * size / (size - 1)
            sums[2, g] += out * (2 * out - 1) * third
            sums[3, g] += out * out * third
            sums[4, g] += out * out * fourth
            sums[5, g] += end - begin
        begin = end
    return sums
