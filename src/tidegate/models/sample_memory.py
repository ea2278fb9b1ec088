"""The memory that an unbiased sample of a join needs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias, TypeGuard

import numpy as np

from tidegate.models.age_curve import AgeCurve
from tidegate.models.frequencies.frequency import Frequency
from tidegate.models.joint_payoff import Curves, curves_of, lengths_of, rates_of
from tidegate.models.validation import column
from tidegate.types import SIDES, Array, InputError, Window, WindowSpan

Frequencies: TypeAlias = "Frequency | tuple[Sequence[float] | Array, Sequence[float] | Array]"


def frequencies_of(model: Curves | Frequencies) -> tuple[Array, Array]:
    """The fractions of the left and of the right rows that have each key, the same keys in both.

    Examples
    --------
    >>> left, right = frequencies_of(Frequency({1: 0.5, 2: 0.5}, {2: 1.0}))
    >>> left.tolist(), right.tolist()
    ([0.5, 0.5], [0.0, 1.0])
    """
    if isinstance(model, Frequency):
        keys = np.union1d(model.keys("left"), model.keys("right"))
        return model.share("left", keys), model.share("right", keys)
    if not isinstance(model, tuple | list) or len(model) != len(SIDES):
        raise InputError(
            f"{model!r} is not a model of matches; give a Frequency, an AgeCurve, a pair of these "
            "curves, or a pair of arrays with the fraction of rows that have each key"
        )
    left, right = (column(side, "frequencies") for side in model)
    if len(left) != len(right):
        raise InputError(
            f"{len(left)} keys on the left and {len(right)} on the right; list all keys for both"
        )
    return left, right


def are_curves(model: object) -> TypeGuard[Curves]:
    """Whether a model is an age curve, or a pair of them."""
    pair = model if isinstance(model, tuple | list) else ()
    return isinstance(model, AgeCurve) or any(side is None or isinstance(side, AgeCurve) for side in pair)


def sample_rows(
    model: Curves | Frequencies,
    fraction: float,
    *,
    rates: tuple[float, float],
    window: Window | tuple[WindowSpan, WindowSpan],
) -> float:
    """The expected number of rows that UNIFORM buffers while it samples this fraction of a join's results.

    A row is buffered until the last of its matches that is sampled.

    Parameters
    ----------
    model
        Age curves as in `joint_payoff`, a `Frequency`, or a pair of arrays: the fractions of the left and of the
        right rows that have each key.
    fraction
        The probability that a result is in the sample, between 0 and 1.
    rates, window
        As in `joint_payoff`.

    Examples
    --------
    >>> sample_rows(AgeCurve([0, 100], [2]), 0.5, rates=(1, 1), window=(100, 0))
    62.5
    >>> sample_rows(([0.5, 0.5], [1.0, 0.0]), 0.5, rates=(1, 0.02), window=(100, 0))
    31.25

    References
    ----------
    Memory-Limited Execution of Windowed Stream Joins, theorem 4.2 (frequencies) and 4.3 (age curves).

    Deviations
    ----------
    The theorems take the number of a row's matches, and their times, as given. If matches
    arrive at random, fewer rows are buffered: a few percent fewer by frequencies, many fewer on falling age curves.

    They hold for UNIFORM as printed. `tidegate.sampling.Uniform` also buffers rows for more matches than
    expected: at a fraction for which the theorem gives half of the window, it buffers 60 to 68 % of it.

    A row whose key never arrives on the other side is not buffered. If the total of an age curve is not a whole
    number, some rows have one match more than the others, so that the total is their mean.
    """
    if not 0 <= fraction <= 1:
        raise InputError(
            f"a sample of the fraction {fraction!r} is not possible; give a fraction between 0 and 1"
        )
    (rate_left, rate_right), lengths = rates_of(rates), lengths_of(window)
    if fraction == 0:
        return 0.0
    if are_curves(model):
        pairs = zip(curves_of(model, lengths), (rate_left, rate_right), strict=True)
        return sum(rate * _time_by_age(curve, fraction) for curve, rate in pairs if curve is not None)
    left, right = frequencies_of(model)
    time_left = _time_by_frequency(left, rate_right * right, fraction, lengths[0])
    time_right = _time_by_frequency(right, rate_left * left, fraction, lengths[1])
    return rate_left * time_left + rate_right * time_right


def _time_by_age(curve: AgeCurve, fraction: float) -> float:
    """The mean time for which UNIFORM buffers a row, by theorem 4.3."""
    fewer, odd = divmod(curve.total, 1.0)
    mean_time = 0.0
    for matches, share in ((int(fewer), 1 - odd), (int(fewer) + 1, odd)):
        if matches and share:
            which = np.arange(1, matches + 1)
            last = fraction * (1 - fraction) ** (
                matches - which
            )  # the probability that it is the last one sampled
            ages = curve.inverse(np.minimum(which / matches, 1.0) * curve.total)
            mean_time += share * float(last @ ages)
    return mean_time


def _time_by_frequency(mine: Array, others: Array, fraction: float, window: float) -> float:
    """The mean time for which UNIFORM buffers a row, by theorem 4.2; `others` are rates by key."""
    if window <= 0:
        return 0.0
    matched = others > 0
    matches = window * others[matched]
    with np.errstate(divide="ignore"):
        any_sampled = -np.expm1(matches * np.log1p(-fraction))  # 1 - (1 - p) ** matches
    return float(window * (mine[matched] @ (1 - (1 - fraction) * any_sampled / (fraction * matches))))
