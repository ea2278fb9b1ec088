"""Quantiles of a join from a sample of it, with intervals.

A sampled result stands for a stretch of all results in order, as long as its weight; its value is put in the middle
of that, and between two values it lies in proportion (Hazen). With everything in the sample that is SQL's
`percentile`.

What `n` draws tell of a quantile is spread about it like a beta variable of `n` trials, carried through the
distribution of values. Where that is curved, the mean of such estimates is off: by an amount that, to the first
order, grows with the variance of that variable. An estimate can be spread on purpose as well, and so a weighted mean
of two that are spread to a different degree has none of it left. Here that is twice the mean over the beta variable
of half that variance, less the mean over one of double the variance; it varies no more than the plain estimate. It
takes values on both sides: with fewer than four draws on the shorter one it fades out, and below one and a half the
plain value is left, whose two errors in the longer tail of skewed data are of different sign. Values of a heavy tail
may weigh less than nothing in that difference, so that the estimate stays within one standard error of the share.

An interval has for its ends the fractional order statistics that lie beyond the quantile with the probability that is
left. Where a sample has too few values on one side to tell that end, there is none, and all of that probability goes
to the other.

For draws of unequal weight, or that come together, or are many of all there are, `n` is the number of independent
draws that would tell as much of the share below the quantile, by the design's variance of it. That itself is
estimated where results come together, and by Student's t fewer draws count for the interval.

No estimator of a quantile is without bias whatever the distribution is.

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
    from tidegate.sampling.estimates.moments import Draws
    from tidegate.types import Array

_MANY: Final = 100.0
"""From so many draws on, the bias is a thirtieth of the standard error or less, and is left as it is."""
_FEW: Final = (1.5, 4.0)
"""Draws on the shorter side of a quantile: with the first, nothing is mended, with the second, all."""
_WIDER: Final = 2.0
_STEADY: Final = 5.0
"""So many clusters on either side of a value tell how far results of one are alike."""
_ROOTS: Final = np.linspace(0, 1, 201)


def quantiles(draws: Draws, values: Array, q: float, level: float) -> tuple[Array, Array, Array]:
    """Estimate the quantile of each group: its value, and the ends of its interval.

    An end is NaN where the sample is too small to tell: where even its least (or largest) value may lie on the wrong
    side.
    """
    ranked = _Ranked(draws, values)
    # Where SQL's percentile lies if values are in the middle of their stretch.
    aim = q + (0.5 - q) / np.maximum(ranked.weight, 1)
    told = _told(draws, ranked, aim, level)
    return ranked.estimated(aim, told.draws), *_ends(ranked, aim, q, told.surely, 1 - level)


class _Told(NamedTuple):
    """Of each group, how many independent draws would tell as much: as estimated, and as an interval counts them."""

    draws: Array
    surely: Array


def _told(draws: Draws, ranked: _Ranked, aim: Array, level: float) -> _Told:
    """By the variance of the share below the quantile.

    Far out few clusters lie beyond, and tell little of how far results of one are alike: the variance of the share
    below a value that some have on either side tells more, and the larger effect of the two counts.
    """
    alone = draws.alone() / ranked.weight**2
    others = draws.others()
    there = _effect(draws, ranked, aim, others, level)
    least = np.minimum(_STEADY / np.maximum(there.clusters, 1), 0.5)
    near = _effect(draws, ranked, np.clip(aim, least, 1 - least), others, level)
    inverse = np.where(
        there.clusters == 1, alone * there.rows, np.fmax(np.fmax(there.inverse, near.inverse), alone)
    )
    surely = np.fmax(np.fmax(there.surely, near.surely), inverse)
    with np.errstate(divide="ignore"):
        return _Told(1 / inverse, 1 / surely)


class _Effect(NamedTuple):
    """One over the number of independent draws of each group: as estimated, and as an interval counts them."""

    inverse: Array
    surely: Array
    clusters: Array
    rows: Array


def _effect(draws: Draws, ranked: _Ranked, share: Array, others: Array, level: float) -> _Effect:
    unit = draws.unit if draws.reservoir is None else np.arange(len(draws.unit))
    apart = ranked.below(share) - share[draws.group]
    sums = _spread(draws.group, unit, draws.probability, draws.shown, apart, others, draws.groups)
    variance, alike, squares, products, alikes, clusters, rows = sums
    with np.errstate(divide="ignore", invalid="ignore"):
        effect = variance / alike
        # As the jackknife counts: each cluster's part is reckoned from the share of the others.
        inverse = effect / ranked.weight * ((clusters - 1) / clusters) * ((rows - 1) / rows)
        uncertain = (squares - 2 * effect * products + effect**2 * alikes) / variance**2
        freedom = 2 / np.fmax(uncertain, 1e-9)
    wider = (student_quantile(freedom, level) / student_quantile(np.array([np.inf]), level)) ** 2
    return _Effect(inverse, inverse * wider, clusters, rows)


def _ends(ranked: _Ranked, aim: Array, q: float, draws: Array, miss: float) -> tuple[Array, Array]:
    """The ends of intervals that miss so often."""
    below, above = ((side**draws <= miss / 2) | np.isinf(draws) for side in (1 - q, q))
    low = aim - np.where(above, _place(1 - q, miss / 2, draws), _place(1 - q, miss, draws))
    high = aim + np.where(below, _place(q, miss / 2, draws), _place(q, miss, draws))
    return np.where(below, ranked.at(low), np.nan), np.where(above, ranked.at(high), np.nan)


def _place(q: float, tail: float, draws: Array) -> Array:
    """How far above its share the order statistic lies that is below the quantile with this probability."""
    roots = 1 / np.sqrt(np.maximum(draws, 1))
    place: Array = np.interp(roots, _ROOTS, _places(q, tail)) * np.sqrt(q * (1 - q)) * roots
    return place


@lru_cache
def _places(q: float, tail: float) -> Array:
    """Tabulate that in standard errors, by one over the root of the number of draws."""
    limit = NormalDist().inv_cdf(1 - tail)
    return np.append(limit, _orders(q, tail, 1 / _ROOTS[1:] ** 2)) if 0 < q < 1 else np.zeros(len(_ROOTS))


def _orders(q: float, tail: float, draws: Array) -> Array:
    """By bisection: the k-th of n draws lies below the quantile if at least k do, and k need not be whole."""
    from scipy.special import betainc  # noqa: PLC0415 - a slow import that few programs need

    low, high = np.zeros(len(draws)), draws + 1
    for _ in range(60):
        middle = (low + high) / 2
        likely = betainc(middle, draws - middle + 1, q) > tail
        low, high = np.where(likely, middle, low), np.where(likely, high, middle)
    places: Array = (low - 0.5 - draws * q) / np.sqrt(draws * q * (1 - q))
    return places


@kernel
def _spread(
    group: Array,
    unit: Array,
    probability: Array,
    shown: Array,
    apart: Array,
    others: Array,
    groups: int,
) -> Array:
    """Add up over clusters what each adds to the variance, and what it were if all results were alike and alone."""
    sums = np.zeros((7, groups))
    row = 0
    while row < len(group):
        g, cluster = group[row], unit[row]
        total = variance = alike = 0.0
        out = 1.0
        while row < len(group) and unit[row] == cluster and group[row] == g:
            out = 1 - probability[row]
            x = apart[row] / probability[row]
            variance += x * (out * x + 2 * (1 - shown[row]) * total)
            alike += x * apart[row]
            total += x
            sums[6, g] += 1
            row += 1
        if others[row - 1] > 0:
            variance /= others[row - 1] ** 2
        sums[0, g] += variance
        sums[1, g] += alike
        sums[2, g] += variance * variance
        sums[3, g] += variance * alike
        sums[4, g] += alike * alike
        sums[5, g] += out > 0
    return sums


class _Ranked:
    """The values of each group in order, each as often as its weight says."""

    def __init__(self, draws: Draws, values: Array) -> None:
        order = np.argsort(values)
        if draws.groups > 1:
            # NumPy sorts short integers in linear time.
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
        apart = self._middles[above] - self._middles[under]
        part = np.clip((target - self._middles[under]) / np.where(apart > 0, apart, 1), 0, 1)
        with np.errstate(invalid="ignore"):  # none of an infinite value is no number
            found: Array = np.where(low == high, low, (1 - part) * low + part * high)
        return found

    def below(self, share: Array) -> Array:
        """Of each result, in the order of the draws, which part lies below this share of its group."""
        sizes = self._last - self._first + 1
        target = np.repeat(self._before + share * self.weight, sizes)
        part = np.empty(len(self._order))
        part[self._order] = np.clip((target - self._running) / self._weights + 1, 0, 1)
        return part

    def estimated(self, share: Array, draws: Array) -> Array:
        """The value at this share, less its bias."""
        plain = self.at(share)
        fewest, enough = _FEW
        mended = np.clip((draws * np.minimum(share, 1 - share) - fewest) / (enough - fewest), 0, 1)
        which = np.flatnonzero((mended > 0) & (draws < _MANY))
        smooth = self._smooth(share, draws, which)
        # Far values may weigh less than nothing there: none of them is to carry the estimate away.
        error = np.sqrt(share * (1 - share) / np.maximum(draws, 1))
        low, high = self.at(share - error), self.at(share + error)
        told = np.isfinite(smooth)
        which, smooth = which[told], np.clip(smooth[told], low[which[told]], high[which[told]])
        plain[which] += mended[which] * (smooth - plain[which])
        return plain

    def _smooth(self, share: Array, draws: Array, which: Array) -> Array:
        """Twice the mean over a beta variable of more draws than there are, less that over one of fewer.

        Of some groups only, in their order.
        """
        from scipy.special import betainc  # noqa: PLC0415 - a slow import that few programs need

        if not len(which):
            return np.empty(0)
        sizes = self._last[which] - self._first[which] + 1
        starts = np.cumsum(sizes) - sizes
        rows = np.arange(sizes.sum()) + np.repeat(self._first[which] - starts, sizes)
        group = np.repeat(which, sizes)
        reached = np.minimum(1.0, (self._running[rows] - self._before[group]) / self.weight[group])
        p, narrow, wide = share[group], draws[group] * _WIDER, draws[group] / _WIDER
        below = 2 * betainc(narrow * p + 0.5, narrow * (1 - p) + 0.5, reached)
        below -= betainc(wide * p + 0.5, wide * (1 - p) + 0.5, reached)
        before = np.append(0.0, below[:-1])
        before[starts] = 0.0
        means: Array = np.add.reduceat((below - before) * self._values[rows], starts)
        return means
