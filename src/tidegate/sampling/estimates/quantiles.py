"""Quantiles of a join from a sample of it, with intervals.

*Plain estimate.* A sampled result represents an interval of all results in order, as long as its weight. Its value is
placed in the middle, and values between two of them are interpolated (Hazen). If everything is in the sample, that is
SQL's `percentile`.

*Bias correction.* The plain estimate from `n` draws varies like a beta variable of `n` trials that is transformed by
the quantile function. If that function is curved, the mean of the estimate is biased, to the first order in
proportion to the variance of the beta variable. So a weighted mean of two estimates that are smoothed with different
variances has no bias of the first order: twice the mean over a beta variable of half the variance, minus the mean
over one of double the variance. It varies no more than the plain estimate. It needs values on both sides: with fewer
than four draws on the smaller side it is blended with the plain estimate, and with less than one and a half the plain
estimate is used. Values of a heavy tail may have negative weight in the difference, so the result is limited to one
standard error of the share around the plain estimate. No estimator of a quantile is unbiased for every distribution.

*Interval.* Its ends are the fractional order statistics that are beyond the quantile with the error probability. If
one side has too few values for an end, that end is NaN, and the other end gets the whole error probability.

*Effective draws.* For draws of unequal weight, for clusters, and for samples of a large part of all results, `n` is
the number of independent draws with the same variance of the share below the quantile. For clusters that variance is
estimated itself, and by Student's t fewer draws count for the interval.

References
----------
Harrell and Davis, "A new distribution-free quantile estimator", Biometrika 69 (1982).
Hutson, "Calculating nonparametric confidence intervals for quantiles using fractional order statistics", Journal of
Applied Statistics 26 (1999).
Korn and Graubard, "Confidence intervals for proportions with small expected number of positive counts estimated from
survey data", Survey Methodology 24 (1998).
Woodruff, "Confidence intervals for medians and other position measures", Journal of the American Statistical
Association 47 (1952).
"""

from __future__ import annotations

from functools import lru_cache
from statistics import NormalDist
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

from tidegate.compiled import kernel
from tidegate.sampling.estimates.intervals import student_quantile

if TYPE_CHECKING:
    from tidegate.sampling.estimates.moments import OrderedDraws
    from tidegate.types import Array

_UNCORRECTED_DRAWS: Final = 100.0
"""From this number of draws on, the bias is at most a thirtieth of the standard error and is not corrected."""
_CORRECTION_RANGE: Final = (1.5, 4.0)
"""Draws on the smaller side of a quantile: up to the first number there is no correction, from the second on full."""
_VARIANCE_FACTOR: Final = 2.0
_STABLE_CLUSTERS: Final = 5.0
"""This number of clusters on either side of a value is enough to estimate the variance within clusters."""
_ROOTS: Final = np.linspace(0, 1, 201)
"""One over the root of the number of draws, at which distances are tabulated."""


def quantiles(draws: OrderedDraws, values: Array, q: float, level: float) -> tuple[Array, Array, Array]:
    """Estimate the quantile of each group: its value, and the ends of its interval.

    An end is NaN if the sample is too small for it: if even the smallest (or largest) value may be on the wrong side.
    """
    ranked = _RankedValues(draws, values)
    # The position of SQL's percentile if values are in the middle of their intervals.
    position = q + (0.5 - q) / np.maximum(ranked.weight, 1)
    effective = _effective_draws(draws, ranked, position, level)
    low, high = _ends(ranked, position, q, effective.for_interval, 1 - level)
    return ranked.estimate(position, effective.draws), low, high


class _EffectiveDraws(NamedTuple):
    """The number of independent draws with the same variance, by group: the estimate, and that for an interval."""

    draws: Array
    for_interval: Array


def _effective_draws(
    draws: OrderedDraws, ranked: _RankedValues, position: Array, level: float
) -> _EffectiveDraws:
    """Computed from the variance of the share below the quantile.

    Near the ends of a distribution few clusters are beyond the quantile, too few for the variance within clusters. So
    the share below a more central value is computed too, and the larger variance counts.
    """
    independent = draws.independent_variance() / ranked.weight**2
    others = draws.others()
    at_quantile = _cluster_effect(draws, ranked, position, others, level)
    margin = np.minimum(_STABLE_CLUSTERS / np.maximum(at_quantile.clusters, 1), 0.5)
    central = _cluster_effect(draws, ranked, np.clip(position, margin, 1 - margin), others, level)
    inverse = np.where(
        at_quantile.clusters == 1,
        independent * at_quantile.rows,
        np.fmax(np.fmax(at_quantile.inverse, central.inverse), independent),
    )
    for_interval = np.fmax(np.fmax(at_quantile.for_interval, central.for_interval), inverse)
    with np.errstate(divide="ignore"):
        return _EffectiveDraws(1 / inverse, 1 / for_interval)


class _ClusterEffect(NamedTuple):
    """One over the effective number of draws, by group: the estimate, and that for an interval."""

    inverse: Array
    for_interval: Array
    clusters: Array
    rows: Array


def _cluster_effect(
    draws: OrderedDraws, ranked: _RankedValues, share: Array, others: Array, level: float
) -> _ClusterEffect:
    unit = draws.unit if draws.reservoir is None else np.arange(len(draws.unit))
    deviation = ranked.below(share) - share[draws.group]
    sums = _variance_sums(draws.group, unit, draws.probability, draws.shown, deviation, others, draws.groups)
    variance, independent, squares, products, independent_squares, clusters, rows = sums
    with np.errstate(divide="ignore", invalid="ignore"):
        effect = variance / independent
        # The jackknife's factors: each cluster is compared with the share of all others.
        inverse = effect / ranked.weight * ((clusters - 1) / clusters) * ((rows - 1) / rows)
        relative_variance = (squares - 2 * effect * products + effect**2 * independent_squares) / variance**2
        freedom = 2 / np.fmax(relative_variance, 1e-9)
    widening = (student_quantile(freedom, level) / student_quantile(np.array([np.inf]), level)) ** 2
    return _ClusterEffect(inverse, inverse * widening, clusters, rows)


def _ends(
    ranked: _RankedValues, position: Array, q: float, draws: Array, error: float
) -> tuple[Array, Array]:
    """The ends of intervals with this error probability."""
    has_low, has_high = ((side**draws <= error / 2) | np.isinf(draws) for side in (1 - q, q))
    low = position - np.where(has_high, _distance(1 - q, error / 2, draws), _distance(1 - q, error, draws))
    high = position + np.where(has_low, _distance(q, error / 2, draws), _distance(q, error, draws))
    return np.where(has_low, ranked.at(low), np.nan), np.where(has_high, ranked.at(high), np.nan)


def _distance(q: float, tail: float, draws: Array) -> Array:
    """The distance in shares from q to the order statistic that is below the quantile with probability `tail`."""
    roots = 1 / np.sqrt(np.maximum(draws, 1))
    distance: Array = np.interp(roots, _ROOTS, _distances(q, tail)) * np.sqrt(q * (1 - q)) * roots
    return distance


@lru_cache
def _distances(q: float, tail: float) -> Array:
    """The same in standard errors, at `_ROOTS`."""
    limit = NormalDist().inv_cdf(1 - tail)
    return (
        np.append(limit, _order_distances(q, tail, 1 / _ROOTS[1:] ** 2))
        if 0 < q < 1
        else np.zeros(len(_ROOTS))
    )


def _order_distances(q: float, tail: float, draws: Array) -> Array:
    """The same for each number of draws: the k-th of n draws, k a real number, is found by bisection."""
    from scipy.special import betainc  # noqa: PLC0415 - a slow import that few programs need

    low, high = np.zeros(len(draws)), draws + 1
    for _ in range(60):
        middle = (low + high) / 2
        likely = betainc(middle, draws - middle + 1, q) > tail
        low, high = np.where(likely, middle, low), np.where(likely, high, middle)
    distances: Array = (low - 0.5 - draws * q) / np.sqrt(draws * q * (1 - q))
    return distances


@kernel
def _variance_sums(
    group: Array,
    unit: Array,
    probability: Array,
    shown: Array,
    deviation: Array,
    others: Array,
    groups: int,
) -> Array:
    """Sums over the clusters of each group: see `sums`."""
    # Variance; variance if all results were independent; squares and product of the two; clusters; rows.
    sums = np.zeros((7, groups))
    row = 0
    while row < len(group):
        g, cluster = group[row], unit[row]
        total = variance = independent = 0.0
        out = 1.0
        while row < len(group) and unit[row] == cluster and group[row] == g:
            out = 1 - probability[row]
            x = deviation[row] / probability[row]
            variance += x * (out * x + 2 * (1 - shown[row]) * total)
            independent += x * deviation[row]
            total += x
            sums[6, g] += 1
            row += 1
        if others[row - 1] > 0:
            variance /= others[row - 1] ** 2
        sums[0, g] += variance
        sums[1, g] += independent
        sums[2, g] += variance * variance
        sums[3, g] += variance * independent
        sums[4, g] += independent * independent
        sums[5, g] += out > 0
    return sums


class _RankedValues:
    """The values of each group in order, with their weights."""

    def __init__(self, draws: OrderedDraws, values: Array) -> None:
        order = np.argsort(values)
        if draws.groups > 1:
            # NumPy sorts 16-bit integers in linear time.
            short = draws.groups <= np.iinfo(np.uint16).max
            group = draws.group.astype(np.uint16) if short else draws.group
            order = order[np.argsort(group[order], kind="stable")]
        self._order, self._values = order, values[order]
        self._weights = 1 / draws.probability[order]
        self._running = np.cumsum(self._weights)
        self._first = np.searchsorted(draws.group[order], np.arange(draws.groups))
        self._last = np.append(self._first[1:], len(order)) - 1
        self._before = np.where(self._first > 0, self._running[self._first - 1], 0.0)
        self._middles = self._running - self._weights / 2
        self.weight = self._running[self._last] - self._before

    def at(self, share: Array) -> Array:
        """The value at this share of each group's weight."""
        target = self._before + np.clip(share, 0, 1) * self.weight
        above = np.clip(np.searchsorted(self._middles, target), self._first, self._last)
        under = np.maximum(above - 1, self._first)
        low, high = self._values[under], self._values[above]
        gap = self._middles[above] - self._middles[under]
        part = np.clip((target - self._middles[under]) / np.where(gap > 0, gap, 1), 0, 1)
        with np.errstate(invalid="ignore"):  # zero times infinity
            value: Array = np.where(low == high, low, (1 - part) * low + part * high)
        return value

    def below(self, share: Array) -> Array:
        """The part of each result, in the order of the draws, that is below this share of its group."""
        sizes = self._last - self._first + 1
        target = np.repeat(self._before + share * self.weight, sizes)
        part = np.empty(len(self._order))
        part[self._order] = np.clip((target - self._running) / self._weights + 1, 0, 1)
        return part

    def estimate(self, share: Array, draws: Array) -> Array:
        """The value at this share, corrected for bias."""
        values = self.at(share)
        fewest, enough = _CORRECTION_RANGE
        correction = np.clip((draws * np.minimum(share, 1 - share) - fewest) / (enough - fewest), 0, 1)
        which = np.flatnonzero((correction > 0) & (draws < _UNCORRECTED_DRAWS))
        smooth = self._smooth(share, draws, which)
        # Values of a heavy tail may have negative weight there, so the estimate is limited.
        error = np.sqrt(share * (1 - share) / np.maximum(draws, 1))
        low, high = self.at(share - error), self.at(share + error)
        finite = np.isfinite(smooth)
        which, smooth = which[finite], np.clip(smooth[finite], low[which[finite]], high[which[finite]])
        values[which] += correction[which] * (smooth - values[which])
        return values

    def _smooth(self, share: Array, draws: Array, which: Array) -> Array:
        """Twice the mean over a beta variable of half the variance, minus that over one of double the variance.

        For the groups `which` only, in their order.
        """
        from scipy.special import betainc  # noqa: PLC0415 - a slow import that few programs need

        if not len(which):
            return np.empty(0)
        sizes = self._last[which] - self._first[which] + 1
        starts = np.cumsum(sizes) - sizes
        rows = np.arange(sizes.sum()) + np.repeat(self._first[which] - starts, sizes)
        group = np.repeat(which, sizes)
        reached = np.minimum(1.0, (self._running[rows] - self._before[group]) / self.weight[group])
        p = share[group]
        narrow, wide = draws[group] * _VARIANCE_FACTOR, draws[group] / _VARIANCE_FACTOR
        below = 2 * betainc(narrow * p + 0.5, narrow * (1 - p) + 0.5, reached)
        below -= betainc(wide * p + 0.5, wide * (1 - p) + 0.5, reached)
        before = np.append(0.0, below[:-1])
        before[starts] = 0.0
        means: Array = np.add.reduceat((below - before) * self._values[rows], starts)
        return means
