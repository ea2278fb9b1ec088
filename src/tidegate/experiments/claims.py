"""What a paper says of its measurements, held against ours.

A claim says of some cases that a number is above 0, such as how many more results one policy has than another.
Each number comes with the interval in which its mean lies, so that a lucky run decides nothing.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Final, Literal, NamedTuple, Self

import numpy as np

from tidegate.sampling.intervals import student
from tidegate.types import InputError

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

Verdict = Literal["holds", "holds in part", "does not hold", "open"]
Needed = Literal["all", "most"]

_CONFIDENCE: Final = 0.95


class Interval(NamedTuple):
    """A mean over runs, and where the true mean lies with a confidence of 95 %."""

    mean: float
    low: float
    high: float

    @classmethod
    def of(cls, runs: ArrayLike) -> Self:
        """Student's interval; of a single run nothing is known but itself, and a number that no chance made is exact.

        Examples
        --------
        >>> Interval.of([9, 10, 11])
        Interval(mean=10.0, low=7.5..., high=12.4...)
        """
        values = np.asarray(runs, np.float64)
        if not len(values):
            raise InputError("a mean over no runs cannot be told; give some")
        mean = float(values.mean())
        if len(values) == 1:
            return cls(mean, -math.inf, math.inf)
        far = float(student(np.array(len(values) - 1), _CONFIDENCE))
        away = far * float(values.std(ddof=1)) / math.sqrt(len(values))
        return cls(mean, mean - away, mean + away)

    @classmethod
    def exactly(cls, value: float) -> Self:
        """A number that is the same in every run."""
        return cls(value, value, value)

    @property
    def half(self) -> float:
        """Half of its length."""
        return (self.high - self.low) / 2


class Claim(NamedTuple):
    """What a paper says, whether it is so here, and by what numbers."""

    text: str
    verdict: Verdict
    numbers: str


def judged(text: str, margins: Mapping[str, Interval], *, needed: Needed = "all", unit: str = "%") -> Claim:
    """Judge a claim by its margins, each of which it says to be above 0.

    It holds if all are (or most, where it says no more), in part if some are, and not at all if none is; where runs
    are too few or too unlike to tell of any, it is open.

    Examples
    --------
    >>> judged("a beats b", {"calm": Interval(5, 4, 6), "storm": Interval(0.5, -1, 2)})
    Claim(text='a beats b', verdict='holds in part', numbers='calm +5 % (+4 to +6); storm +0.5 % (-1 to +2)')
    """
    if not margins:
        raise InputError(f"no case was measured for {text!r}; give some")
    above = sum(margin.low > 0 for margin in margins.values())
    below = sum(margin.high <= 0 for margin in margins.values())
    if above == len(margins) or (needed == "most" and 2 * above > len(margins)):
        verdict: Verdict = "holds"
    elif above:
        verdict = "holds in part"
    else:
        verdict = "does not hold" if below else "open"
    return Claim(text, verdict, "; ".join(f"{case} {told(margin, unit)}" for case, margin in margins.items()))


def told(margin: Interval, unit: str) -> str:
    """A margin in words."""
    mean, low, high = (f"{number:+.3g}" for number in margin)
    return f"{mean} {unit}" if low == high else f"{mean} {unit} ({low} to {high})"
