"""Claims of a paper, declared as data and judged by our measurements.

A claim states that a margin is above 0 in some cases, for example how many more results one policy has than another.
Each margin has a confidence interval, so a single lucky run does not decide.
"""

from __future__ import annotations

import itertools
import math
import operator
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Literal, NamedTuple, Self, TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from tidegate.experiments.results import Results
from tidegate.sampling.estimates.intervals import student_quantile
from tidegate.types import InputError

Verdict = Literal["holds", "holds in part", "does not hold", "open"]
Required = Literal["all", "most"]

_CONFIDENCE: Final = 0.95
_SMALLEST: Final = 1e-12


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


def _arithmetic(operation: Callable[[float, float], float]) -> Callable[[Runs, Runs | float], Runs]:
    def apply(self: Runs, other: Runs | float) -> Runs:
        if not isinstance(other, Runs):
            return Runs({seed: operation(value, other) for seed, value in self.items()})
        return Runs({seed: operation(self[seed], other[seed]) for seed in self.keys() & other.keys()})

    return apply


class Runs(dict[int, float]):
    """A number of each run, by seed. Arithmetic combines runs with the same seed, and leaves out the others.

    Examples
    --------
    >>> 100 * (Runs({0: 0.5, 1: 0.75}) - Runs({1: 0.25, 2: 0.5}))
    {1: 50.0}
    """

    __add__ = __radd__ = _arithmetic(operator.add)
    __sub__ = _arithmetic(operator.sub)
    __rsub__ = _arithmetic(lambda one, other: other - one)
    __mul__ = __rmul__ = _arithmetic(operator.mul)
    __truediv__ = _arithmetic(operator.truediv)
    at_most, at_least = _arithmetic(min), _arithmetic(max)

    def __neg__(self) -> Runs:
        return 0 - self

    def __abs__(self) -> Runs:
        return Runs({seed: abs(value) for seed, value in self.items()})

    @property
    def mean(self) -> float:
        """The mean over all runs."""
        return float(np.mean([self[seed] for seed in sorted(self)]))

    @property
    def interval(self) -> MeanInterval:
        """The mean over all runs, with its interval."""
        return MeanInterval.of([self[seed] for seed in sorted(self)])


def percent_ahead(one: Runs, other: Runs, part: float = 1.0) -> Runs:
    """`one - part * other` of each run, in percent of the mean of `other`."""
    ahead = 100 * (one - part * other)
    return ahead / max(abs(Runs({seed: other[seed] for seed in ahead}).mean), _SMALLEST) if ahead else ahead


def between(low: float, runs: Runs, high: float) -> Runs:
    """How far each run is between two limits: the distance to the nearer one."""
    return (runs - low).at_most(high - runs)


def within(limit: float, differences: Runs) -> MeanInterval:
    """How far the absolute mean of differences is below a limit: a margin for "these agree within the limit".

    Examples
    --------
    >>> within(2.0, Runs({0: 0.5, 1: 1.0, 2: 1.5}))
    MeanInterval(mean=1.0, low=-0.2..., high=2.0)
    """
    mean, low, high = differences.interval
    return MeanInterval(limit - abs(mean), limit - max(high, -low), limit - max(low, -high, 0.0))


class Case:
    """The measurements of one case of a claim, and the values that make the case.

    Examples
    --------
    >>> results = Results.from_runs({("age",): [3, 5], ("fifo",): [2, 4]}, axes=("policy",), number="results")
    >>> case = Case(results, {"rival": "fifo"})
    >>> case("results", policy="age") - case("results", policy=case["rival"])
    {0: 1.0, 1: 1.0}
    """

    def __init__(self, results: Results, values: Mapping[str, Any]) -> None:
        self.values = values
        self.results = results.where(**{name: values[name] for name in values if results.values(name)})
        self.all = results

    def __getitem__(self, name: str) -> Any:  # noqa: ANN401 - a value of any axis
        return self.values[name]

    def __call__(self, number: str, **settings: object) -> Runs:
        """A number of the runs with the values of this case, unless `settings` has other values."""
        here = {name: self[name] for name in self.values if self.all.values(name)} | settings
        if runs := Runs(self.all.by_seed(number, **here)):
            return runs
        described = ", ".join(f"{name} {value}" for name, value in here.items())
        raise InputError(f"no finished run with {described or 'any settings'} has measured {number!r}")

    def has(self, **settings: object) -> bool:
        """Whether a run of this case has these settings."""
        return len(self.results.where(**settings)) > 0


Margin: TypeAlias = Runs | MeanInterval | float
"""Of each run, with an interval, or the same in every run."""
Values: TypeAlias = Sequence[Any] | Callable[[Results], Iterable[Any]] | None
"""Values of a name in a claim's cases: given, computed from all results, or all that were measured (`ALL`)."""
ALL: Final = None


def sorted_values(results: Results, axis: str) -> list[Any]:
    """The values of an axis; numbers in ascending order, others in the order of the grid."""
    values = results.values(axis)
    return sorted(values) if all(isinstance(value, int | float) for value in values) else values


def part(axis: str, start: int, stop: int | None = None) -> Callable[[Results], Iterable[Any]]:
    """Some values of an axis, by their positions as in a slice."""
    return lambda results: sorted_values(results, axis)[start:stop]


def steps(axis: str, since: float | None = None) -> Callable[[Results], Iterable[tuple[Any, Any]]]:
    """Each value of an axis with the next one; or from some value on, if it was measured."""
    return lambda results: itertools.pairwise(_since(results, axis, since))


def from_first(axis: str, since: float | None = None) -> Callable[[Results], Iterable[tuple[Any, Any]]]:
    """The first value of an axis with each of the others; or from some value on, if it was measured."""
    return lambda results: [
        (values[0], other) for values in [_since(results, axis, since)] for other in values[1:]
    ]


def ends(axis: str) -> Callable[[Results], Iterable[tuple[Any, Any]]]:
    """The first value of an axis with the last one."""
    return lambda results: [(values[0], values[-1]) for values in [sorted_values(results, axis)]]


def _since(results: Results, axis: str, least: float | None) -> list[Any]:
    values = sorted_values(results, axis)
    if least is None:
        return values
    return [value for value in values if value >= least] if least in values else []


@dataclass(frozen=True)
class Claim:
    """A claim of a paper: a margin that should be above 0 in each of some cases.

    Parameters
    ----------
    text
        What the paper claims.
    margin
        The margin of a case.
    each
        The cases: all combinations of the values of some names. A name that is also an axis selects the measurements
        of the case. Given values of an axis that were not measured are left out.
    label
        The name of a case: a template with the names.
    unit
        The unit of the margins.
    where
        Which combinations are cases. All by default.
    required
        Whether the margin must be above 0 in all cases or in most of them.
    """

    text: str
    margin: Callable[[Case], Margin]
    each: Mapping[str, Values] = field(default_factory=dict)
    label: str = ""
    unit: str = "%"
    where: Callable[[Case], bool] = lambda _: True
    required: Required = "all"

    def judge(self, results: Results) -> JudgedClaim | None:
        """Our verdict, or None if no case was measured."""
        margins = {
            self.label.format_map(case.values): _interval(self.margin(case)) for case in self._cases(results)
        }
        return judge(self.text, margins, required=self.required, unit=self.unit) if margins else None

    def _cases(self, results: Results) -> Iterator[Case]:
        lists = [list(_values(results, name, values)) for name, values in self.each.items()]
        for combination in itertools.product(*lists):
            case = Case(results, dict(zip(self.each, combination, strict=True)))
            if self.where(case):
                yield case


def _values(results: Results, name: str, values: Values) -> Iterable[Any]:
    if callable(values):
        return values(results)
    measured = sorted_values(results, name)
    if values is None:
        return measured
    return [value for value in measured if value in values] if measured else values


def _interval(margin: Margin) -> MeanInterval:
    if isinstance(margin, Runs):
        return margin.interval
    return margin if isinstance(margin, MeanInterval) else MeanInterval.exactly(margin)


class JudgedClaim(NamedTuple):
    """A claim of a paper, our verdict, and the numbers behind it."""

    text: str
    verdict: Verdict
    numbers: str


def judge_all(claims: Iterable[Claim], results: Results) -> tuple[JudgedClaim, ...]:
    """Judge all claims of which a case was measured."""
    return tuple(judged for claim in claims if (judged := claim.judge(results)) is not None)


def judge(
    text: str, margins: Mapping[str, MeanInterval], *, required: Required = "all", unit: str = "%"
) -> JudgedClaim:
    """Judge a claim by its margins, which should be above 0.

    - "holds": all margins are above 0, or most of them if that is all that the claim requires;
    - "holds in part": some margins are above 0;
    - "does not hold": no margin is above 0, and at least one is at most 0;
    - "open": there are too few runs, or they differ too much, to decide about any margin.

    Examples
    --------
    >>> judge("a beats b", {"calm": MeanInterval(5, 4, 6), "storm": MeanInterval(0.5, -1, 2)})
    JudgedClaim(text='a beats b', verdict='holds in part', numbers='calm +5 % (+4 to +6); storm +0.5 % (-1 to +2)')
    """
    above = sum(margin.low > 0 for margin in margins.values())
    below = sum(margin.high <= 0 for margin in margins.values())
    if above == len(margins) or (required == "most" and 2 * above > len(margins)):
        verdict: Verdict = "holds"
    elif above:
        verdict = "holds in part"
    else:
        verdict = "does not hold" if below else "open"
    return JudgedClaim(
        text, verdict, "; ".join(f"{case} {format_margin(margin, unit)}" for case, margin in margins.items())
    )


def format_margin(margin: MeanInterval, unit: str) -> str:
    """A margin with its interval."""
    mean, low, high = (f"{number:+.3g}" for number in margin)
    return f"{mean} {unit}" if low == high else f"{mean} {unit} ({low} to {high})"
