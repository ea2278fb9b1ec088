"""How uniform the sample in a reservoir is that was enlarged while it sampled.

After `k` rows the reservoir grows from `r` rows to `r + delta`. A uniform sample of `k + m` rows would hold any
number of the first `k`, but no more than `r` of them are still there. The uniformity confidence is the part of all
samples that can still come about: the chance that a sample at random holds at most `r` of the first `k` rows.
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

_SEARCHED = 2**62


def uniformity_confidence(k: int, r: int, delta: int, m: int) -> float:
    """The part, from 0 to 1, of all samples of `k + m` rows that an enlarged reservoir can hold.

    Parameters
    ----------
    k
        Rows seen when the reservoir grew.
    r
        Rows that it had room for until then.
    delta
        Rows that it has room for since, in addition.
    m
        Rows seen since it grew.

    Examples
    --------
    It rises with the rows that are seen, and is never 1:

    >>> [round(uniformity_confidence(1000, 100, 50, m), 4) for m in (400, 500, 600, 1000)]
    [0.103, 0.5331, 0.8847, 1.0]
    >>> uniformity_confidence(50, 10, 2, 200)
    0.9999999...

    References
    ----------
    Reservoir Sampling over Memory-Limited Stream Joins, equation 2 and theorem 1.

    Deviations
    ----------
    A fraction, not a percentage. If the reservoir was not full, or just so, nothing is lost and it is 1; with fewer
    rows than `delta` to refill it, there is no sample of that size and it is 0.
    """
    _check(k, r, delta, m)
    if k <= r or delta == 0:
        return 1.0
    return 0.0 if m < delta else hypergeometric_cdf(r, k, m, r + delta)


def recovery_count(k: int, r: int, delta: int, threshold: float) -> int:
    """The fewest rows to be seen after a growth until the uniformity confidence reaches a threshold.

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
    There the confidence is to exceed the threshold; here it may equal it, as in section 4.3.
    """
    check_threshold(threshold, "threshold")
    _check(k, r, delta, 0)
    if k <= r or delta == 0:
        return 0
    short, enough = delta - 1, delta
    while uniformity_confidence(k, r, delta, enough) < threshold:
        short, enough = enough, 2 * enough
        if enough > _SEARCHED:
            raise InputError(f"no number of rows brings the confidence to {threshold!r}; lower the threshold")
    while enough - short > 1:
        middle = (short + enough) // 2
        if uniformity_confidence(k, r, delta, middle) < threshold:
            short = middle
        else:
            enough = middle
    return enough


def retained_chances(k: int, r: int, delta: int, m: int) -> Array:
    """How likely each number of rows, from 0 to `r`, is to be retained when the reservoir grows.

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
        raise InputError(f"{m} rows cannot refill {delta}; let m be at least delta")
    if k < r:
        raise InputError(f"only {k} rows were seen for the {r} of the reservoir; let k be at least r")
    return hypergeometric_weights(r, k, m, r + delta)


def retained(k: int, r: int, delta: int, m: int, draw: float) -> int:
    """How many rows to retain, by a draw from 0 to 1."""
    return weighted_choice(retained_chances(k, r, delta, m), draw)


def inclusion_chances(k: int, r: int, delta: int, m: int) -> tuple[float, float]:
    """How likely one of the first `k` rows, and one of the next `m`, is in the reservoir once it is refilled.

    They differ by what the sample lacks in uniformity; their inverses weight its rows without bias.

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
        raise InputError(f"a sample of the fraction {fraction!r} cannot be drawn; give one between 0 and 1")
    return binomial_sf(_whole(size, "size"), _whole(results, "results"), float(fraction))


def check_threshold(value: float, what: str) -> float:
    """Refuse what is not a confidence between 0 and 1, both excluded."""
    if not is_number(value) or not 0 < value < 1:
        raise InputError(f"{what} is {value!r}; give a fraction above 0 and below 1, such as 0.9")
    return float(value)


def _check(k: int, r: int, delta: int, m: int) -> None:
    at_least_one(r, "r", "rows")
    for what, value in (("k", k), ("delta", delta), ("m", m)):
        _whole(value, what)


def _whole(value: int, what: str) -> int:
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < 0:
        raise InputError(f"{what} is {value!r}; give a whole number, at least 0")
    return int(value)
