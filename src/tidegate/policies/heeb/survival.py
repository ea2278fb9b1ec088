"""The probability that a row stays in memory, and the expected benefit of a row."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Final, Self

import numpy as np

from tidegate.models import History, Problem, Process, gains
from tidegate.models.processes.process import as_integers
from tidegate.models.validation import at_least_one, positive
from tidegate.models.value_object import ValueObject
from tidegate.types import Array, InputError

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

NEGLIGIBLE: Final = 1e-12
"""The maximum of the terms that a sum leaves out."""
_PARTS_OF_OCTAVE: Final = 32


class Survival(ValueObject, ABC):
    """The probability that a row is still in memory after some steps: from 0 to 1, never rising.

    It is the same for all rows. So a row with at least as many expected results as another within any number of
    steps never ranks below it.

    References
    ----------
    On Joining and Caching Stochastic Streams, section 5.3 and Table 1.
    """

    family: ClassVar[str] = "survival"

    @abstractmethod
    def at(self, ahead: Array) -> Array:
        """The probability after each of these numbers of steps (1 and up)."""

    def negligible_after(self) -> int | None:
        """The number of steps after which the rest of any sum is negligible; None if it never is."""
        return None

    def converges(self, process: Process, problem: Problem) -> bool:
        """Whether the expected benefit is finite: in caching only the next use counts, in joining all matches."""
        return self.negligible_after() is not None or problem == "caching" or process.ends()

    @staticmethod
    def check(value: object) -> None:
        """Refuse a value that is not a survival, such as a name or a number."""
        if not isinstance(value, Survival):
            raise InputError(
                f"survival is {value!r}; give one such as Exponential(alpha=10) or Fixed(steps=10)"
            )


@dataclass(frozen=True, eq=False)
class Fixed(Survival):
    """Every row stays for a fixed number of steps: ranks by the benefit within them.

    Examples
    --------
    >>> Fixed(2).at(np.array([1, 2, 3]))
    array([1., 1., 0.])
    """

    steps: int

    def __post_init__(self) -> None:
        if isinstance(self.steps, bool) or not isinstance(self.steps, int) or self.steps < 1:
            raise InputError(
                f"Fixed({self.steps!r}) is not a lifetime; give a whole number of steps, at least 1"
            )

    def at(self, ahead: Array) -> Array:
        """1, then 0."""
        return (np.asarray(ahead) <= self.steps).astype(np.float64)

    def negligible_after(self) -> int:
        """Its steps."""
        return self.steps


@dataclass(frozen=True, eq=False)
class Exponential(Survival):
    """At each step a row leaves with the same probability; after `d` steps it is there with `exp(-d / alpha)`.

    Parameters
    ----------
    alpha
        The larger, the longer rows stay. `Exponential.from_lifetime` computes it from a mean lifetime.

    Examples
    --------
    >>> Exponential(2).at(np.array([1, 2, 4])).round(3)
    array([0.607, 0.368, 0.135])
    >>> Exponential.from_lifetime(12.5).lifetime
    12.5
    """

    alpha: float

    def __post_init__(self) -> None:
        positive(self.alpha, "alpha")

    @classmethod
    def from_lifetime(cls, lifetime: float) -> Self:
        """The one with this mean lifetime in steps, which is above 1."""
        if not 1 < lifetime < math.inf:
            raise InputError(
                f"a mean lifetime of {lifetime!r} steps has no alpha; give a finite number above 1"
            )
        return cls(-1 / math.log1p(-1 / lifetime))

    @classmethod
    def near_lifetime(cls, lifetime: float) -> Self:
        """The one for an observed mean lifetime, rounded so that it changes rarely.

        Alpha is rounded to a 32nd of an octave, which is within 1.1 percent.
        """
        alpha = cls.from_lifetime(lifetime).alpha
        return cls(2.0 ** (round(_PARTS_OF_OCTAVE * math.log2(alpha)) / _PARTS_OF_OCTAVE))

    @property
    def lifetime(self) -> float:
        """The mean number of steps that a row stays, including the current one."""
        return -1 / math.expm1(-1 / self.alpha)

    def at(self, ahead: Array) -> Array:
        """It falls by the same factor at each step."""
        left: Array = np.exp(-np.asarray(ahead) / self.alpha)
        return left

    def negligible_after(self) -> int:
        """The number of steps after which even a match at every step adds a negligible amount."""
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
    """The expected results of each row while it stays in memory: H_x, as a sum.

    Parameters
    ----------
    process, history, values, problem, lasting
        As for `tidegate.models.gains`.
    survival
        The probability that rows stay in memory.
    ahead
        The number of steps in the sum; by default all that are not negligible.

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
    If neither the window nor the process ends, a survival that never becomes negligible has no finite sum in joining,
    and is refused there. The sum of `Exponential` ends where the rest is negligible.
    """
    Survival.check(survival)
    if ahead is not None:
        at_least_one(ahead, "ahead")
    if lasting is None and not survival.converges(process, problem):
        raise InputError(
            f"with {survival!r} the benefit in joining with {process!r} has no bound; use Exponential or Fixed, or "
            "give lasting="
        )
    steps = survival.negligible_after() if ahead is None else ahead
    if lasting is not None:
        longest = max(1, int(np.max(lasting, initial=1)))
        steps = longest if steps is None else min(steps, longest)
    if steps is None:
        raise InputError(f"{survival!r} has no end; give the number of steps to sum over as ahead=")
    passed = process.until(history, as_integers(values))
    steps = steps if passed is None else max(1, min(steps, passed))
    found = gains(process, history, values, steps, problem=problem, lasting=lasting)
    return found @ survival.at(np.arange(1, steps + 1))
