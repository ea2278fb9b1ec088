"""Corrects a learned forecast of matches by the matches that buffered rows really had.

Shares of keys are learned over many windows. If a key lives for one window only, its share is averaged over a much
longer time, and the forecast for its rows is far too low. So some buffered rows are tracked. The matches that they
had, divided by the matches that were forecast for that time, give the correction for rows with a similar forecast.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, Final, NamedTuple

import numpy as np

from tidegate.compiled import kernel
from tidegate.types import ArrayField, Stateful

if TYPE_CHECKING:
    from tidegate.types import Array, State

_OCTAVES: Final = 64
_LOWEST_EXPONENT: Final = -32
"""Forecasts below 2 to this power share the first octave."""
_PRIOR: Final = 4.0
"""Each octave starts with this number of matches, as many as forecast."""
_TOLERANCE: Final = 1.1
"""A smaller factor is not applied."""


class TrackedRows(NamedTuple):
    """Some of the rows that are buffered when a step begins: position, forecast, time, and matches so far."""

    places: Array
    expected: Array
    time: Array
    matches: Array


class ForecastCorrection(Stateful):
    """The ratio of observed to forecast matches, for each octave (factor of two) of the forecast.

    A forecast that is too low makes estimates less precise; one that is too high only costs memory. So forecasts are
    only ever raised.

    Examples
    --------
    >>> correction = ForecastCorrection()
    >>> correction.observe(expected=np.full(100, 0.5), exposure=np.full(100, 1.0), observed=np.full(100, 5))
    >>> correction.apply(np.array([0.6, 7.0])).round(1)
    array([5.6, 7. ])
    """

    state: ClassVar[State] = {"met": ArrayField("_observed"), "expected": ArrayField("_expected")}

    def __init__(self) -> None:
        self._observed, self._expected = np.zeros(_OCTAVES), np.zeros(_OCTAVES)
        self._factors = np.ones(_OCTAVES)

    def observe(self, expected: Array, exposure: Array, observed: Array) -> None:
        """Learn from rows.

        Parameters
        ----------
        expected
            The matches that were forecast for the whole window of each row.
        exposure
            The part of its window for which each row was tracked.
        observed
            The matches that each row had in that time.
        """
        _add(expected, expected * exposure, observed, self._expected, self._observed)
        self._factors = _factors(self._observed, self._expected)

    def decay(self, kept: float) -> None:
        """Multiply the weight of earlier observations by `kept`."""
        self._observed *= kept
        self._expected *= kept

    def apply(self, matches: Array) -> Array:
        """Correct these forecasts in place."""
        if (self._factors > 1).any():
            _correct(matches, self._factors)
        return matches

    def after_restore(self) -> None:
        """Compute the factors."""
        self.observe(*(np.empty(0) for _ in range(3)))


@kernel
def _octave(number: float) -> int:
    if not number > 0:
        return 0
    return min(max(int(np.floor(np.log2(number))) - _LOWEST_EXPONENT, 0), _OCTAVES - 1)


@kernel
def _factors(observed: Array, expected: Array) -> Array:
    """The factor of each octave.

    Octaves are computed from the highest down. Without observations of its own, an octave assumes as many matches
    as the next higher one.
    """
    factors, above = np.ones(len(observed)), 1.0
    for octave in range(len(observed) - 1, -1, -1):
        prior = 2 * above if above > 1 else 1.0
        factor = (observed[octave] + _PRIOR * prior) / (expected[octave] + _PRIOR)
        above = factors[octave] = factor if factor > _TOLERANCE else 1.0
    return factors


@kernel
def _add(
    expected: Array,
    expected_while_tracked: Array,
    observed: Array,
    total_expected: Array,
    total_observed: Array,
) -> None:
    for i in range(len(expected)):
        octave = _octave(expected[i])
        total_expected[octave] += expected_while_tracked[i]
        total_observed[octave] += observed[i]


@kernel
def _correct(matches: Array, factors: Array) -> None:
    for i in range(len(matches)):
        matches[i] *= factors[_octave(matches[i])]
