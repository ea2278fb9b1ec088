"""What rows really meet, beside what a learned model lets them expect.

Shares of keys are learned over many windows. Where keys live for one window only, each is new when its row arrives,
and whatever it brings is spread over all the time that is remembered: such rows expect next to nothing, and most of
their matches would be found by a few of them only. So rows that are held are watched: the matches that they meet,
over those that were expected of them in that time, is by how much rows that expect as many are wrong.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple, Self

import numpy as np

from tidegate.compiled import kernel

if TYPE_CHECKING:
    from tidegate.types import Array

_OCTAVES: Final = 64
_FEWEST: Final = -32
"""The least number of matches that is told from fewer is 2 to this power."""
_PRIOR: Final = 4.0
"""So many matches, found as expected, stand in each octave before anything was seen."""
_RIGHT: Final = 1.1
"""What is no more wrong than that is taken as right."""


class TrackedRows(NamedTuple):
    """Some of the rows held as a step begins: where they are, what each expects, its time, and what it has met."""

    places: Array
    expected: Array
    time: Array
    met: Array


class ForecastCorrection:
    """By how much rows meet more than they expect, for each octave of what they expect.

    To expect too little makes estimates less precise, to expect too much only costs memory. So numbers are corrected
    upwards only.

    Examples
    --------
    >>> correction = ForecastCorrection()
    >>> correction.observe(expected=np.full(100, 0.5), exposed=np.full(100, 1.0), met=np.full(100, 5))
    >>> correction.of(np.array([0.6, 7.0])).round(1)
    array([5.6, 7. ])
    """

    def __init__(self) -> None:
        self._met, self._expected = np.zeros(_OCTAVES), np.zeros(_OCTAVES)
        self._factors = np.ones(_OCTAVES)

    def observe(self, expected: Array, exposed: Array, met: Array) -> None:
        """Learn from rows that expected so much of their whole window, of which they were held for a part."""
        _add(expected, expected * exposed, met, self._expected, self._met)
        self._factors = _factors(self._met, self._expected)

    def fade(self, kept: float) -> None:
        """Let what was seen weigh less."""
        self._met *= kept
        self._expected *= kept

    def of(self, matches: Array) -> Array:
        """What rows that expect so much meet, in the same array."""
        if (self._factors > 1).any():
            _correct(matches, self._factors)
        return matches

    def snapshot(self) -> dict[str, Array]:
        """What was seen."""
        return {"met": self._met.copy(), "expected": self._expected.copy()}

    def restore(self, state: dict[str, Array]) -> Self:
        """Take up what `snapshot` gave."""
        self._met, self._expected = state["met"].copy(), state["expected"].copy()
        self.observe(*(np.empty(0) for _ in range(3)))
        return self


@kernel
def _octave(number: float) -> int:
    if not number > 0:
        return 0
    return min(max(int(np.floor(np.log2(number))) - _FEWEST, 0), _OCTAVES - 1)


@kernel
def _factors(met: Array, expected: Array) -> Array:
    """By octaves, from the highest down: who expects less than anyone seen is taken to meet as much as they do."""
    factors, above = np.ones(len(met)), 1.0
    for octave in range(len(met) - 1, -1, -1):
        prior = 2 * above if above > 1 else 1.0
        factor = (met[octave] + _PRIOR * prior) / (expected[octave] + _PRIOR)
        above = factors[octave] = factor if factor > _RIGHT else 1.0
    return factors


@kernel
def _add(expected: Array, weighed: Array, met: Array, all_expected: Array, all_met: Array) -> None:
    for i in range(len(expected)):
        octave = _octave(expected[i])
        all_expected[octave] += weighed[i]
        all_met[octave] += met[i]


@kernel
def _correct(matches: Array, factors: Array) -> None:
    for i in range(len(matches)):
        matches[i] *= factors[_octave(matches[i])]
