"""Probabilities of the hypergeometric and the binomial distribution, for samples of any size.

The binomial ones come from SciPy. The hypergeometric ones do not: SciPy 1.17 adds up differences of logarithms of
factorials. Of 2e12 rows its tail has an error of 3e-7, and of 2e15 it takes more than ten minutes. Here neighbouring
terms follow from their ratio, from the most likely one outward until the next adds nothing, and are then divided by
their sum. No large number occurs, at any size.
"""

from __future__ import annotations

import math
from typing import Final

import numpy as np

from tidegate.compiled import kernel
from tidegate.types import Array

_NEGLIGIBLE: Final = 1e-300
"""Terms below this part of the largest add nothing that a float can hold."""
_DEVIATIONS: Final = 40
"""Beyond this number of standard deviations a binomial variable has no probability that a float can hold."""


def hypergeometric_cdf(most: int, old: int, new: int, size: int) -> float:
    """The probability that a sample of `size` from `old` and `new` rows has at most `most` old rows.

    Examples
    --------
    >>> hypergeometric_cdf(1, old=2, new=2, size=2)
    0.833...
    """
    return _hypergeometric_cdf(most, old, new, size)


def hypergeometric_weights(most: int, old: int, new: int, size: int) -> Array:
    """The probabilities that the sample has 0, 1, ... `most` old rows, under the condition that it has no more.

    Examples
    --------
    >>> hypergeometric_weights(1, old=2, new=2, size=2)
    array([0.2, 0.8])
    """
    return _hypergeometric_weights(most, old, new, size)


def binomial_sf(least: int, trials: int, probability: float) -> float:
    """The probability that at least `least` of `trials` succeed, each with this probability.

    Examples
    --------
    >>> round(binomial_sf(2, trials=3, probability=0.5), 9)
    0.5
    """
    from scipy.special import betainc  # noqa: PLC0415 - a slow import that few programs need

    if least <= 0:
        return 1.0
    return 0.0 if least > trials else float(betainc(least, trials - least + 1, probability))


def mean_inverse(most: int, trials: int, probability: float) -> float:
    """The mean of `1 / n`, where n is the number of trials that succeed, limited to between 1 and `most`.

    Examples
    --------
    >>> mean_inverse(2, trials=2, probability=0.5)
    0.875
    """
    from scipy.special import betainc  # noqa: PLC0415 - a slow import that few programs need

    if probability <= 0:
        return 1.0
    most = min(most, trials)
    if probability >= 1:
        return 1 / most
    # 1 / n falls by 1 / (n (n - 1)) from n - 1 to n: add these up, each with the probability of fewer than n.
    mean, spread = trials * probability, math.sqrt(trials * probability * (1 - probability))
    low = min(max(2, math.floor(mean - _DEVIATIONS * (spread + 1))), most + 1)
    high = min(most, math.ceil(mean + _DEVIATIONS * (spread + 1)))
    n = np.arange(low, high + 1, dtype=np.float64)
    fewer = betainc(trials - n + 1, n, 1 - probability)
    return float(1 / max(high, 1) + (fewer / (n * (n - 1))).sum())


def weighted_choice(weights: Array, draw: float) -> int:
    """The position that a draw from 0 to 1 selects, if positions have these weights."""
    ends = np.cumsum(weights)
    return min(int(np.searchsorted(ends, draw * ends[-1], side="right")), int(np.flatnonzero(weights)[-1]))


@kernel
def _ratio(x: int, old: int, new: int, size: int) -> float:
    """The probability of x + 1 old rows divided by that of x."""
    return (float(old - x) / float(x + 1)) * (float(size - x) / float(new - size + x + 1))


@kernel
def _mode(old: int, new: int, size: int) -> int:
    middle = int(float(size + 1) * (float(old + 1) / float(old + new + 2)))
    return max(0, size - new, min(middle, old, size))


@kernel
def _hypergeometric_cdf(most: int, old: int, new: int, size: int) -> float:
    mode = _mode(old, new, size)
    within, beyond = 0.0, 0.0
    weight, x = 1.0, mode
    while x >= max(0, size - new) and weight > _NEGLIGIBLE:
        if x <= most:
            within += weight
        else:
            beyond += weight
        x -= 1
        if x >= 0:
            weight /= _ratio(x, old, new, size)
    weight, x = _ratio(mode, old, new, size), mode + 1
    while x <= min(old, size) and weight > _NEGLIGIBLE:
        if x <= most:
            within += weight
        else:
            beyond += weight
        weight *= _ratio(x, old, new, size)
        x += 1
    return within / (within + beyond)


@kernel
def _hypergeometric_weights(most: int, old: int, new: int, size: int) -> Array:
    weights = np.zeros(most + 1)
    start = min(most, _mode(old, new, size))
    weights[start] = 1.0
    for x in range(start - 1, max(0, size - new) - 1, -1):
        weights[x] = weights[x + 1] / _ratio(x, old, new, size)
    for x in range(start, min(most, old, size)):
        weights[x + 1] = weights[x] * _ratio(x, old, new, size)
    weights /= weights.sum()
    return weights
