"""Claims of a paper, judged by our measurements.

A claim states that a margin is above 0 in some cases, for example how many more results one policy has than another.
Each margin has a confidence interval, so a single lucky run does not decide.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Final, Literal, NamedTuple, Self

import numpy as np

from tidegate.sampling.estimates.intervals import student_quantile
from tidegate.types import InputError

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

Verdict = Literal["holds", "holds in part", "does not hold", "open"]
Required = Literal["all", "most"]

_CONFIDENCE: Final = 0.95


class MeanInterval(NamedTuple):
    """A mean over runs, with its confidence interval at 95 %."""

    mean: float
    low: float
    high: float

    @classmethod
    def of(cls, runs: ArrayLike) -> Self:
        """Student's interval. It is infinite for a single run.

        Examples
        --------
        >>> MeanInterval.of([9, 10, 11])
        MeanInterval(mean=10.0, low=7.5..., high=12.4...)
        """
        values = np.asarray(runs, np.float64)
        if not len(values):
            raise InputError("cannot compute the mean of no runs; give at least one")
        mean = float(values.mean())
        if len(values) == 1:
            return cls(mean, -math.inf, math.inf)
        quantile = float(student_quantile(np.array(len(values) - 1), _CONFIDENCE))
        half = quantile * float(values.std(ddof=1)) / math.sqrt(len(values))
        return cls(mean, mean - half, mean + half)

    @classmethod
    def exactly(cls, value: float) -> Self:
        """A number that is the same in every run."""
        return cls(value, value, value)

    @property
    def half(self) -> float:
        """Half of its length."""
        return (self.high - self.low) / 2


class Claim(NamedTuple):
    """A claim of a paper, our verdict, and the numbers behind it."""

    text: str
    verdict: Verdict
    numbers: str


def judge(
    text: str, margins: Mapping[str, MeanInterval], *, required: Required = "all", unit: str = "%"
) -> Claim:
    """Judge a claim by its margins, which should be above 0.

    - "holds": all margins are above 0, or most of them if that is all that the claim requires;
    - "holds in part": some margins are above 0;
    - "does not hold": no margin is above 0, and at least one is at most 0;
    - "open": there are too few runs, or they differ too much, to decide about any margin.

    Examples
    --------
    >>> judge("a beats b", {"calm": MeanInterval(5, 4, 6), "storm": MeanInterval(0.5, -1, 2)})
    Claim(text='a beats b', verdict='holds in part', numbers='calm +5 % (+4 to +6); storm +0.5 % (-1 to +2)')
    """
    if not margins:
        raise InputError(f"no case was measured for {text!r}; give at least one")
    above = sum(margin.low > 0 for margin in margins.values())
    below = sum(margin.high <= 0 for margin in margins.values())
    if above == len(margins) or (required == "most" and 2 * above > len(margins)):
        verdict: Verdict = "holds"
    elif above:
        verdict = "holds in part"
    else:
        verdict = "does not hold" if below else "open"
    return Claim(
        text, verdict, "; ".join(f"{case} {format_margin(margin, unit)}" for case, margin in margins.items())
    )


def within(limit: float, differences: ArrayLike) -> MeanInterval:
    """How far the absolute mean of differences is below a limit: a margin for "these agree within the limit".

    Examples
    --------
    >>> within(2.0, [0.5, 1.0, 1.5])
    MeanInterval(mean=1.0, low=-0.2..., high=2.0)
    """
    mean, low, high = MeanInterval.of(differences)
    return MeanInterval(limit - abs(mean), limit - max(high, -low), limit - max(low, -high, 0.0))


def format_margin(margin: MeanInterval, unit: str) -> str:
    """A margin with its interval."""
    mean, low, high = (f"{number:+.3g}" for number in margin)
    return f"{mean} {unit}" if low == high else f"{mean} {unit} ({low} to {high})"
