"""Tails of the hypergeometric, the binomial and the beta distribution, without factorials.

Neighbouring terms have a simple ratio. Starting from the likeliest one and walking outward until nothing is left
gives all terms but for a common factor, which divides out: no large number appears, at any size. `beta_below` is
apart: it takes logarithms of factorials, and is good up to some 1e12 trials.
"""

from __future__ import annotations

import math

import numpy as np

from tidegate.compiled import kernel
from tidegate.types import Array

_NOTHING = 1e-300  # terms below this share of the likeliest add nothing that a float can hold
_EXACT = 1e-13
_TERMS = 1e5  # it takes some roots of the larger parameter


def at_most(most: int, old: int, new: int, taken: int) -> float:
    """How likely at most `most` of `taken` rows are old ones, chosen at random from `old` and `new` rows.

    Examples
    --------
    >>> at_most(1, old=2, new=2, taken=2)
    0.833...
    """
    return _at_most(most, old, new, taken)


def chances(most: int, old: int, new: int, taken: int) -> Array:
    """How likely 0, 1, ... `most` of the rows are old ones, if no more than that are.

    Examples
    --------
    >>> chances(1, old=2, new=2, taken=2)
    array([0.2, 0.8])
    """
    return _chances(most, old, new, taken)


def at_least(least: int, trials: int, chance: float) -> float:
    """How likely at least `least` of so many trials succeed, each with this chance.

    Examples
    --------
    >>> round(at_least(2, trials=3, chance=0.5), 9)
    0.5
    """
    if least <= 0:
        return 1.0
    if least > trials or chance <= 0:
        return 0.0
    return 1.0 if chance >= 1 else beta_below(chance, float(least), trials - least + 1.0)


def mean_inverse(most: int, trials: int, chance: float) -> float:
    """The mean of `1 / n`, where n trials succeed but at most `most` count, and at least one is taken to.

    Examples
    --------
    >>> mean_inverse(2, trials=2, chance=0.5)
    0.875
    """
    if chance <= 0:
        return 1.0
    return 1 / min(most, trials) if chance >= 1 else _mean_inverse(most, trials, chance)


def chosen(weights: Array, draw: float) -> int:
    """The place that a draw from 0 to 1 falls on, where places have these weights."""
    ends = np.cumsum(weights)
    return min(int(np.searchsorted(ends, draw * ends[-1], side="right")), int(np.flatnonzero(weights)[-1]))


@kernel
def beta_below(x: float, a: float, b: float) -> float:
    """How likely a beta variable lies below x.

    Of whole numbers, as likely as that at least `a` of `a + b - 1` trials succeed, each with the chance x. By the
    continued fraction, as Lentz adds it up.

    Examples
    --------
    >>> round(beta_below(0.5, 2.0, 2.0), 9), round(beta_below(0.25, 0.5, 0.5), 9)
    (0.5, 0.333333333)
    """
    if not 0 < x < 1:
        return 1.0 if x >= 1 else 0.0
    if x > (a + 1) / (a + b + 2):
        return 1 - beta_below(1 - x, b, a)
    scale = math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b) + a * math.log(x) + b * math.log1p(-x)
    c, d = 1.0, 1 / (1 - (a + b) * x / (a + 1))
    found, factor, m = d, 0.0, 0.0
    while abs(factor - 1) > _EXACT and m < _TERMS:
        m += 1
        term = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m))
        c, d = 1 + term / c, 1 / (1 + term * d)
        found *= c * d
        term = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1))
        c, d = 1 + term / c, 1 / (1 + term * d)
        factor = c * d
        found *= factor
    return math.exp(scale) * found / a


@kernel
def _ratio(x: int, old: int, new: int, taken: int) -> float:
    """The chance of x + 1 old rows by that of x."""
    return (float(old - x) / float(x + 1)) * (float(taken - x) / float(new - taken + x + 1))


@kernel
def _likeliest(old: int, new: int, taken: int) -> int:
    middle = int(float(taken + 1) * (float(old + 1) / float(old + new + 2)))
    return max(0, taken - new, min(middle, old, taken))


@kernel
def _at_most(most: int, old: int, new: int, taken: int) -> float:
    likeliest = _likeliest(old, new, taken)
    within, beyond = 0.0, 0.0
    weight, x = 1.0, likeliest
    while x >= max(0, taken - new) and weight > _NOTHING:
        if x <= most:
            within += weight
        else:
            beyond += weight
        x -= 1
        if x >= 0:
            weight /= _ratio(x, old, new, taken)
    weight, x = _ratio(likeliest, old, new, taken), likeliest + 1
    while x <= min(old, taken) and weight > _NOTHING:
        if x <= most:
            within += weight
        else:
            beyond += weight
        weight *= _ratio(x, old, new, taken)
        x += 1
    return within / (within + beyond)


@kernel
def _chances(most: int, old: int, new: int, taken: int) -> Array:
    weights = np.zeros(most + 1)
    start = min(most, _likeliest(old, new, taken))
    weights[start] = 1.0
    for x in range(start - 1, max(0, taken - new) - 1, -1):
        weights[x] = weights[x + 1] / _ratio(x, old, new, taken)
    for x in range(start, min(most, old, taken)):
        weights[x + 1] = weights[x] * _ratio(x, old, new, taken)
    weights /= weights.sum()
    return weights


@kernel
def _mean_inverse(most: int, trials: int, chance: float) -> float:
    odds = chance / (1 - chance)
    likeliest = min(trials, int(float(trials + 1) * chance))
    total, mean = 0.0, 0.0
    weight, x = 1.0, likeliest
    while x >= 0 and weight > _NOTHING:
        total += weight
        mean += weight / max(1, min(most, x))
        weight *= float(x) / (float(trials - x + 1) * odds)
        x -= 1
    weight, x = odds * float(trials - likeliest) / float(likeliest + 1), likeliest + 1
    while x <= trials and weight > _NOTHING:
        total += weight
        mean += weight / max(1, min(most, x))
        weight *= odds * float(trials - x) / float(x + 1)
        x += 1
    return mean / total
