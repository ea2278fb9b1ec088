"""What the design of a sample says of a total that is estimated from it: its variance, and how it leans.

A sample is made of draws. Of a Poisson design, each draw is a cluster: the sampled results that came or stayed away
together; of a reservoir, each draw is a result, and every set of that many results was as likely. A result that was
in with probability p stands for 1/p results (Horvitz and Thompson). A total is a sum over the draws, so everything
about its error is a sum over them, too.

Of the results of one cluster some may have been in with a lesser probability than others: where the fraction is
lowered on the way, a cluster that was in may be dropped. One that is in at the lesser probability was in at the
greater, so two of its results were in together with the lesser of theirs, which adds `(1 - the greater) x y / (p q)`
to the variance for every pair of them. If all are alike, that is the well-known `(1 - p) / p^2` times the square of
the cluster's total.

A reservoir above a sampler of clusters draws once more: of what that showed, some results each by itself. Two of one
cluster are then in together as often as its being shown allows, so that it is the probability of that, and not the
one of their own, which counts for every pair. For a result and itself it is its own.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple, Self

import numpy as np

from tidegate.compiled import kernel
from tidegate.types import Array


class Moments(NamedTuple):
    """Of one total a group.

    Parameters
    ----------
    total
        The estimated total.
    variance
        The estimated variance of that.
    third
        Its estimated third cumulant.
    lean
        The covariance of `total` and `variance`: both are small together where values are skewed.
    fourth
        The sum of the squares of what each draw adds to the variance: how uncertain `variance` itself is.
    draws
        How many draws have a part in it.
    """

    total: Array
    variance: Array
    third: Array
    lean: Array
    fourth: Array
    draws: Array


@dataclass(frozen=True)
class Draws:
    """Sampled results, those of one group and one draw (or stratum) side by side.

    Parameters
    ----------
    order
        Which results these are, by their places among those given.
    group, unit
        The group of each result, and the cluster or the stratum.
    probability
        That of its inclusion.
    shown
        That of its cluster being in, before results were drawn of it one by one; the same where none were.
    reservoir
        How many results its stratum holds in the sample, groups aside; None for a Poisson design.
    groups
        How many groups there are.
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
        """Bring results into order; without units, each is a draw of its own."""
        if shown is None:
            shown = probability
        if unit is None:
            order = np.arange(len(group))
            return cls(order, group, order, probability, shown, reservoir, groups)
        span = int(unit.max(initial=0)) + 1
        key = group * span + unit
        order = np.argsort(key)
        key, chances = key[order], shown[order]
        if ((key[1:] == key[:-1]) & (chances[1:] != chances[:-1])).any():
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
        """For each result, which part of its group's weight the other draws have: without its own, what is left."""
        unit = self.unit if self.reservoir is None else np.arange(len(self.unit))
        return _others(self.group, unit, self.probability, self.totals(np.ones(len(unit))))

    def alone(self) -> Array:
        """The variance of each group's count, had each result been drawn by itself."""
        return np.bincount(self.group, (1 - self.probability) / self.probability**2, self.groups)

    def moments(self, values: Array) -> Moments:
        """Estimate the total of each group, and how far off it may be."""
        if self.reservoir is None:
            found = _poisson(self.group, self.unit, self.probability, self.shown, values, self.groups)
        else:
            found = _reservoir(self.group, self.unit, self.probability, values, self.reservoir, self.groups)
        return Moments(*found)


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
def _poisson(group: Array, unit: Array, probability: Array, shown: Array, value: Array, groups: int) -> Array:
    """Add up over clusters; within one, the probabilities of being shown rise."""
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
            # All together or each by itself, or in between.
            cubes += hidden / out * (total**3 - cubes)
        sums[0, g] += total
        sums[1, g] += variance
        sums[2, g] += out * (2 * out - 1) * cubes
        sums[3, g] += out * out * cubes
        sums[4, g] += variance * variance
        sums[5, g] += out > 0
    return sums


@kernel
def _reservoir(
    group: Array, stratum: Array, probability: Array, value: Array, reservoir: Array, groups: int
) -> Array:
    """Add up over strata; a result of another group is a zero in this one."""
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
            apart = value[row] / probability[row] - mean
            second += apart**2
            third += apart**3
            fourth += apart**4
        sums[0, g] += total
        if out > 0:
            sums[1, g] += out * second * size / (size - 1)
            sums[2, g] += out * (2 * out - 1) * third
            sums[3, g] += out * out * third
            sums[4, g] += out * out * fourth
            sums[5, g] += end - begin
        begin = end
    return sums
