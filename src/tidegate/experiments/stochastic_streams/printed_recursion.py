"""The expected benefit one step later, by the recursion as it is printed, which multiplies every error."""

from __future__ import annotations

import math

import numpy as np

from tidegate.models import Problem
from tidegate.models.validation import positive
from tidegate.policies import Exponential
from tidegate.policies.heeb.incremental import check_alpha
from tidegate.types import Array, check_choice


def later(benefit: Array, probability: Array, alpha: float, *, problem: Problem = "joining") -> Array:
    """The expected benefit one step later: the recursion as it is printed.

    It multiplies every error by `exp(1 / alpha)` a step, so that it has to be restarted from the sum after some steps
    (see `trusted`). `tidegate.policies.heeb.incremental.over_time` does not have this problem.

    Parameters
    ----------
    benefit
        The current expected benefit of each row, for an independent process.
    probability
        The probability of each row's value at the next step.
    alpha
        Of the exponential survival; infinity stands for `Infinite`, in caching.
    problem
        "joining" or "caching".

    References
    ----------
    On Joining and Caching Stochastic Streams, Corollaries 3 and 4.

    Deviations
    ----------
    In caching, a value with probability 1 gives 0 / 0: NaN, to be replaced by the sum.
    """
    check_choice(problem, Problem, "problem")
    check_alpha(alpha)
    grown: Array = math.exp(1 / alpha) * np.asarray(benefit) - probability
    if problem == "joining":
        return grown
    missed = 1 - np.asarray(probability)
    found: Array = np.divide(grown, missed, out=np.full(missed.shape, np.nan), where=missed > 0)
    return found


def trusted(alpha: float, error: float = 1e-9, rounding: float = 2.0**-52) -> int:
    """The number of steps for which `later` stays within this error, if each step adds a rounding error.

    Examples
    --------
    >>> trusted(10)
    129
    """
    lifetime = Exponential(alpha).lifetime
    allowed = positive(error, "error") / (positive(rounding, "rounding") * lifetime)
    return max(0, int(alpha * math.log(allowed)))
