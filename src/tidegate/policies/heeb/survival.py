"""How long a row is thought to stay in memory, and the benefit to expect of it by then."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Self

import numpy as np

from tidegate.models import History, Problem, Process, gains
from tidegate.models.processes.process import as_integers
from tidegate.models.validation import at_least_one, positive
from tidegate.models.value_object import ValueObject
from tidegate.types import Array, InputError

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

NEGLIGIBLE: Final = 1e-12
"""What all terms that a sum leaves out may add up to."""
_NOTCHES: Final = 32


class Survival(ValueObject, ABC):
    """The probability that a row is still in memory so many steps from now: from 0 to 1, never rising.

    All rows are given the same one. Then a row that is expected to bring at least as much as another within any
    number of steps never ranks below it.

    References
    ----------
    On Joining and Caching Stochastic Streams, section 5.3 and Table 1.
    """

    @abstractmethod
    def at(self, ahead: Array) -> Array:
        """The probability after each of these numbers of steps (1 and up)."""

    def reach(self) -> int | None:
        """After how many steps all that follows is negligible, whatever comes; None if it never is."""
        return None

    def converges(self, process: Process, problem: Problem) -> bool:
        """Whether the expected benefit is finite: a row of a relation has one next use, but one of a stream many."""
        return self.reach() is not None or problem == "caching" or process.ends()

    @staticmethod
    def check(value: object) -> None:
        """Refuse what is no survival, such as the name of one or its alpha."""
        if not isinstance(value, Survival):
            raise InputError(
                f"survival is {value!r}; give one such as Exponential(alpha=10), Fixed(steps=10), Inverse() or "
                "Infinite()"
            )

    def to_parameters(self) -> dict[str, Any]:
        """What makes it again, as values that JSON can hold."""
        return {"survival": type(self).__name__, **super().to_parameters()}  # type: ignore[misc]

    @staticmethod
    def made_of(plain: dict[str, Any]) -> Survival:
        """Make again what `plain` told of."""
        kinds: dict[str, type[Survival]] = {kind.__name__: kind for kind in Survival.__subclasses__()}
        rest = dict(plain)
        name = rest.pop("survival", None)
        if name not in kinds:
            raise InputError(f"survival {name!r} is not known; use one of {', '.join(sorted(kinds))}")
        return kinds[name](**rest)


@dataclass(frozen=True, eq=False)
class Fixed(Survival):
    """Every row stays for so many steps and then goes: ranks by the benefit within them.

    Examples
    --------
    >>> Fixed(2).at(np.array([1, 2, 3]))
    array([1., 1., 0.])
    """

    steps: int

    def __post_init__(self) -> None:
        if isinstance(self.steps, bool) or not isinstance(self.steps, int) or self.steps < 1:
            raise InputError(
                f"Fixed({self.steps!r}) is no time to stay; give a whole number of steps, at least 1"
            )

    def at(self, ahead: Array) -> Array:
        """1, then 0."""
        return (np.asarray(ahead) <= self.steps).astype(np.float64)

    def reach(self) -> int:
        """Its steps."""
        return self.steps


@dataclass(frozen=True, eq=False)
class Infinite(Survival):
    """Every row stays for ever: ranks by whether it is used at all. For caching."""

    def at(self, ahead: Array) -> Array:
        """Always 1."""
        return np.ones(len(ahead))


@dataclass(frozen=True, eq=False)
class Inverse(Survival):
    """Survival falls as one over the steps: ranks by the expected inverse of the waiting time. For caching.

    Examples
    --------
    >>> Inverse().at(np.array([1, 2, 4]))
    array([1.  , 0.5 , 0.25])
    """

    def at(self, ahead: Array) -> Array:
        """One over the steps."""
        return 1.0 / np.asarray(ahead)


@dataclass(frozen=True, eq=False)
class Exponential(Survival):
    """At each step a row goes with the same probability; `exp(-d / alpha)` is left after `d` steps.

    Parameters
    ----------
    alpha
        The larger, the longer rows are thought to stay. `Exponential.lasting` finds it from a mean lifetime.

    Examples
    --------
    >>> Exponential(2).at(np.array([1, 2, 4])).round(3)
    array([0.607, 0.368, 0.135])
    >>> Exponential.lasting(12.5).lifetime
    12.5
    """

    alpha: float

    def __post_init__(self) -> None:
        positive(self.alpha, "alpha")

    @classmethod
    def lasting(cls, lifetime: float) -> Self:
        """The one under which rows stay for so many steps in the mean, which are more than 1."""
        if not 1 < lifetime < math.inf:
            raise InputError(
                f"a mean lifetime of {lifetime!r} steps has no alpha; give a finite number above 1"
            )
        return cls(-1 / math.log1p(-1 / lifetime))

    @classmethod
    def about(cls, lifetime: float) -> Self:
        """The one for a mean lifetime that is observed time and again, rounded so that it seldom changes.

        An octave of alpha has 32 notches: within 1.1 percent of it.
        """
        alpha = cls.lasting(lifetime).alpha
        return cls(2.0 ** (round(_NOTCHES * math.log2(alpha)) / _NOTCHES))

    @property
    def lifetime(self) -> float:
        """The mean number of steps that a row stays, the present one included."""
        return -1 / math.expm1(-1 / self.alpha)

    def at(self, ahead: Array) -> Array:
        """Less by the same factor at each step."""
        left: Array = np.exp(-np.asarray(ahead) / self.alpha)
        return left

    def reach(self) -> int:
        """To where even a match at every further step would be negligible in all."""
        # The tail after D steps is exp(-D / alpha) / (exp(1 / alpha) - 1).
        divisor = 1 / self.alpha + math.log(-math.expm1(-1 / self.alpha))
        return max(1, math.ceil(-self.alpha * (math.log(NEGLIGIBLE) + divisor)))


def expected_benefit(
    process: Process,
    history: History,
    values: ArrayLike,
    survival: Survival,
    *,
    problem: Problem = "joining",
    ahead: int | None = None,
    lasting: ArrayLike | None = None,
) -> Array:
    """The results that each row may be expected to bring while it stays in memory: H_x, by its sum.

    Parameters
    ----------
    process, history, values, problem, lasting
        As for `tidegate.models.gains`.
    survival
        How long rows are thought to stay.
    ahead
        How many steps to sum over; by default as many as matter.

    Examples
    --------
    >>> from tidegate.models import Stationary
    >>> coin = Stationary({0: 0.25, 1: 0.75})
    >>> expected_benefit(coin, History(0), [0, 1], Fixed(4))
    array([1., 3.])

    References
    ----------
    On Joining and Caching Stochastic Streams, section 5.3.

    Deviations
    ----------
    Without an end to the window or to what may come, `Infinite` and `Inverse` have no finite sum in joining, and are
    refused there. The sum of `Exponential` is cut where the rest is negligible.
    """
    Survival.check(survival)
    if ahead is not None:
        at_least_one(ahead, "ahead")
    if lasting is None and not survival.converges(process, problem):
        raise InputError(
            f"with {survival!r} the benefit in joining with {process!r} has no bound; use Exponential or Fixed, or "
            "say how long rows are lasting"
        )
    steps = survival.reach() if ahead is None else ahead
    if lasting is not None:
        longest = max(1, int(np.max(lasting, initial=1)))
        steps = longest if steps is None else min(steps, longest)
    if steps is None:
        raise InputError(f"{survival!r} has no end; say how many steps ahead= to sum over")
    passed = process.until(history, as_integers(values))
    steps = steps if passed is None else max(1, min(steps, passed))
    found = gains(process, history, values, steps, problem=problem, lasting=lasting)
    return found @ survival.at(np.arange(1, steps + 1))
