"""From moments to intervals that hold the truth as often as they say.

The textbook's `estimate +- z * standard error` fails on samples of a join: where few or only small clusters were
drawn, the estimated total and its estimated error are both too small, so that such intervals miss on one side. What
is done about it depends on what is estimated:

- a total (COUNT, SUM) leans: its error is skewed and goes along with its estimated variance. The ends of the
  interval are moved by the first terms of the Edgeworth expansion, in a form that is monotone in z. For a count
  of independent results these are, but for small terms, the mid-P limits of a Poisson variable;
- a mean (AVG) is drawn towards large clusters, so that these seem to lie near it: each is compared with the mean of
  all others (the jackknife). Its variance is uncertain: Student's t takes the place of z, with as many degrees of
  freedom as the fourth moments say. It leans where large clusters have other values than small ones, and of few
  clusters nobody can tell: the interval reaches to the farther of the ends with and without a lean.

What a sample has nothing of, no interval can know. If some clusters hold half of all results, some five of them have
to be in the sample for any of this to hold.

References
----------
Bell and McCaffrey, "Bias reduction in standard errors for linear regression with multi-stage samples", Survey
Methodology 28 (2002).
Hall, "On the removal of skewness by transformation", Journal of the Royal Statistical Society B 54 (1992).
Satterthwaite, "An approximate distribution of estimates of variance components", Biometrics 2 (1946).
"""

from __future__ import annotations

from statistics import NormalDist
from typing import TYPE_CHECKING

import numpy as np

from tidegate.models.validation import is_number
from tidegate.types import InputError

if TYPE_CHECKING:
    from tidegate.sampling.estimates.moments import Moments
    from tidegate.types import Array


def check_level(level: float) -> None:
    """Refuse what an interval cannot promise."""
    if not is_number(level) or not 0 < level < 1:
        raise InputError(f"level={level!r} is not between 0 and 1; for nine times in ten give 0.9")


def of_total(moments: Moments, level: float) -> tuple[Array, Array]:
    """The interval of a total.

    A total less the truth, over its estimated standard error, lies below `x` with a probability of about
    `N(x) + (a + b x^2) n(x)`. The cubic `t + a + b t^2 + b^2 t^3 / 3` of it is nearly normal and never falls; its
    inverse at -z and z gives the ends.
    """
    z = NormalDist().inv_cdf((1 + level) / 2)
    error = np.sqrt(moments.variance)
    below, above = _leaning(moments, z)
    return moments.total - error * below, moments.total - error * above


def of_mean(mean: Array, residuals: Moments, level: float) -> tuple[Array, Array]:
    """The interval of a mean, from the moments of how far each draw lies from the mean of all others.

    Without ends if one draw is all there is, and without width if all are alike: nothing in such a sample tells how
    far others may be apart.
    """
    draws, variance = residuals.draws, residuals.variance
    with np.errstate(divide="ignore", invalid="ignore"):
        # Twice the squared mean of an estimated variance over its own variance.
        uncertain = residuals.fourth / variance**2 - 1 / draws
        freedom = np.minimum(2 / np.fmax(uncertain, 1e-9), draws - 1)  # no number if all draws are alike
        # As the jackknife counts.
        error = np.sqrt(variance * (draws - 1) / draws)
    error = np.where(draws > 1, error, np.where(draws > 0, np.nan, 0.0))
    t = np.nan_to_num(student_quantile(freedom, level))
    below, above = _leaning(residuals, t)
    return mean - error * np.maximum(below, t), mean - error * np.minimum(above, -t)


def _leaning(moments: Moments, far: float | Array) -> tuple[Array, Array]:
    """How many standard errors above the truth an estimate lies, at most and at least; without a lean, `far`."""
    error = np.sqrt(moments.variance)
    cubed = np.where(error > 0, error, 1.0) ** 3
    b = (3 * moments.lean - moments.third) / (6 * cubed)
    a = moments.lean / (2 * cubed) - b
    return _uncubed(far - a, b), _uncubed(-far - a, b)


def _uncubed(x: Array, b: Array) -> Array:
    """Solve `t + b t^2 + b^2 t^3 / 3 = x`."""
    small = np.abs(b) < 1e-6  # noqa: PLR2004 - where the quotient would lose digits, the line is as good
    safe = np.where(small, 1.0, b)
    return np.where(small, x, (np.cbrt(1 + 3 * safe * x) - 1) / safe)


def student_quantile(freedom: Array, level: float) -> Array:
    """The distance from 0 within which Student's t lies with probability `level`; at least 1 degree of freedom.

    Examples
    --------
    >>> student_quantile(np.array([1, 2.5, 10, np.inf]), 0.9).round(3)
    array([6.314, 2.558, 1.812, 1.645])
    """
    from scipy.special import stdtrit  # noqa: PLC0415 - a slow import that few programs need

    quantile: Array = stdtrit(np.maximum(freedom, 1.0), (1 + level) / 2)
    return quantile
