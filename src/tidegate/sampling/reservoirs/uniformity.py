"""The uniformity of a reservoir that grew while it sampled.

After `k` rows the reservoir grows from `r` rows to `r + delta`. A uniform sample of `k + m` rows may have any number
of the first `k` rows, but only `r` of them are still available. The uniformity confidence is the part of all samples
that are still possible: the probability that a random sample has at most `r` of the first `k` rows.
"""

from __future__ import annotations

import numpy as np

from tidegate.models.validation import at_least_one, is_number
from tidegate.sampling.reservoirs.distributions import (
    binomial_sf,
    hypergeometric_cdf,
    hypergeometric_weights,
    weighted_choice,
)
from tidegate.types import Array, InputError

_MOST_ROWS = 2**62


def uniformity_confidence(k: int, r: int, delta: int, m: int) -> float:
    """The part, from 0 to 1, of all samples of `k + m` rows that are possible after a reservoir grew.

    Parameters
    ----------
    k
        The number of rows seen before the reservoir grew.
    r
        Its size until then.
    delta
        The number of rows by which it grew.
    m
        The number of rows seen since.

    Examples
    --------
    It rises with the rows seen, but never reaches 1:

    >>> [round(uniformity_confidence(1000, 100, 50, m), 4) for m in (400, 500, 600, 1000)]
    [0.103, 0.5331, 0.8847, 1.0]
    >>> uniformity_confidence(50, 10, 2, 200)
    0.9999999...

    References
    ----------
    Reservoir Sampling over Memory-Limited Stream Joins, equation 2 and theorem 1.

    Deviations
    ----------
    A fraction, not a percentage. It is 1 if the reservoir had all rows so far. It is 0 with fewer than `delta` rows
    to refill it, since there is no sample of that size.
    """
    _check(k, r, delta, m)
    if k <= r or delta == 0:
        return 1.0
    return 0.0 if m < delta else hypergeometric_cdf(r, k, m, r + delta)


def recovery_count(k: int, r: int, delta: int, threshold: float) -> int:
    """The smallest number of rows after a growth at which the uniformity confidence reaches a threshold.

    Examples
    --------
    >>> recovery_count(1000, 100, 50, 0.9)
    609
    >>> uniformity_confidence(1000, 100, 50, 609) >= 0.9 > uniformity_confidence(1000, 100, 50, 608)
    True

    References
    ----------
    Reservoir Sampling over Memory-Limited Stream Joins, algorithm 2, line 5.

    Deviations
    ----------
    There the confidence must exceed the threshold; here it may equal it, as in section 4.3.
    """
    check_threshold(threshold, "threshold")
    _check(k, r, delta, 0)
    if k <= r or delta == 0:
        return 0
    short, enough = delta - 1, delta
    while uniformity_confidence(k, r, delta, enough) < threshold:
        short, enough = enough, 2 * enough
        if enough > _MOST_ROWS:
            raise InputError(
                f"threshold must be lower: no number of rows reaches a confidence of {threshold!r}"
            )
    while enough - short > 1:
        middle = (short + enough) // 2
        if uniformity_confidence(k, r, delta, middle) < threshold:
            short = middle
        else:
            enough = middle
    return enough


def retained_chances(k: int, r: int, delta: int, m: int) -> Array:
    """The probability of each number of rows, from 0 to `r`, to be retained when the reservoir grows.

    Examples
    --------
    >>> retained_chances(4, 2, 1, 3).round(3)
    array([0.032, 0.387, 0.581])

    References
    ----------
    Reservoir Sampling over Memory-Limited Stream Joins, equation 3.

    Deviations
    ----------
    The printed probabilities add up to the uniformity confidence; here they are divided by it.
    """
    _check(k, r, delta, m)
    if m < delta:
        raise InputError(f"m must be at least delta, which is {delta}; got {m}")
    if k < r:
        raise InputError(f"k must be at least r, which is {r}; got {k}")
    return hypergeometric_weights(r, k, m, r + delta)


def retained(k: int, r: int, delta: int, m: int, draw: float) -> int:
    """The number of rows to retain, from a draw from 0 to 1."""
    return weighted_choice(retained_chances(k, r, delta, m), draw)


def inclusion_chances(k: int, r: int, delta: int, m: int) -> tuple[float, float]:
    """The inclusion probabilities of the first `k` rows, and of the next `m`, once the reservoir is refilled.

    They differ because the sample is not quite uniform. Their inverses are unbiased weights.

    Examples
    --------
    >>> old, new = inclusion_chances(1000, 100, 50, 600)
    >>> round(old, 4), round(new, 4), round(150 / 1600, 4)
    (0.0925, 0.0958, 0.0938)
    """
    kept = float(retained_chances(k, r, delta, m) @ np.arange(r + 1))
    return kept / k, (r + delta - kept) / m


def refill_confidence(results: int, fraction: float, size: int) -> float:
    """The probability that a sample of this fraction of `results` results has at least `size` of them.

    Examples
    --------
    >>> round(refill_confidence(10_000, 0.02, 180), 3)
    0.93

    References
    ----------
    Reservoir Sampling over Memory-Limited Stream Joins, equations 7 and 8: the number of sampled results is
    binomial, with the mean `m = l * p1`.
    """
    if not is_number(fraction) or not 0 <= fraction <= 1:
        raise InputError(f"fraction must be between 0 and 1; got {fraction!r}")
    return binomial_sf(_whole_number(size, "size"), _whole_number(results, "results"), float(fraction))


def check_threshold(value: float, what: str) -> float:
    """Refuse a value that is not between 0 and 1, both excluded."""
    if not is_number(value) or not 0 < value < 1:
        raise InputError(f"{what} must be a fraction above 0 and below 1, such as 0.9; got {value!r}")
    return float(value)


def _check(k: int, r: int, delta: int, m: int) -> None:
    at_least_one(r, "r", "rows")
    for what, value in (("k", k), ("delta", delta), ("m", m)):
        _whole_number(value, what)


def _whole_number(value: int, what: str) -> int:
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < 0:
        raise InputError(f"{what} must be a whole number, at least 0; got {value!r}")
    return int(value)
