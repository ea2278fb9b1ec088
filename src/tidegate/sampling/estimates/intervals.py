"""Confidence intervals from moments.

The usual interval, `estimate +- z * standard error`, is wrong for samples of a join. If few or only small clusters
were drawn, the estimated total and its estimated error are both too small, so that such intervals miss on one side.
The correction depends on the aggregate:

- The error of a total (COUNT, SUM) is skewed and correlated with its estimated variance. The ends of the interval are
  moved by the first terms of the Edgeworth expansion, in a form that is monotone in z. For a count of independent
  results they are close to the mid-P limits of a Poisson variable.
- A mean (AVG) is shifted towards large clusters, so that these seem closer to it than they are. Each cluster is
  compared with the mean of all others (the jackknife). The variance is uncertain, so Student's t replaces z, with
  degrees of freedom from the fourth moments. The error is skewed if large clusters have other values than small ones,
  which few clusters do not show. So the interval extends to the farther of the ends with and without skewness.

No interval accounts for clusters that the sample does not represent. If some clusters hold half of all results, about
five of them must be in the sample for these intervals to be right.

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
    """Refuse a confidence level that is not between 0 and 1."""
    if not is_number(level) or not 0 < level < 1:
        raise InputError(f"level must be a number between 0 and 1, such as 0.9; got {level!r}")


def of_total(moments: Moments, level: float) -> tuple[Array, Array]:
    """The interval of a total.

    The error of a total, divided by its estimated standard error, is below `x` with a probability of about
    `N(x) + (a + b x^2) n(x)`. Its transform `t + a + b t^2 + b^2 t^3 / 3` is nearly normal and monotone; the inverse
    of that at -z and z gives the ends.
    """
    z = NormalDist().inv_cdf((1 + level) / 2)
    error = np.sqrt(moments.variance)
    below, above = _skewed_limits(moments, z)
    return moments.total - error * below, moments.total - error * above


def of_mean(mean: Array, residuals: Moments, level: float) -> tuple[Array, Array]:
    """The interval of a mean, from the moments of the distance of each draw from the mean of all others.

    The ends are NaN for a single draw. The width is 0 if all values are equal, since such a sample does not show how
    much values differ.
    """
    draws, variance = residuals.draws, residuals.variance
    with np.errstate(divide="ignore", invalid="ignore"):
        # Satterthwaite: twice the squared mean of the estimated variance, divided by its own variance.
        relative_variance = residuals.fourth / variance**2 - 1 / draws
        freedom = np.minimum(2 / np.fmax(relative_variance, 1e-9), draws - 1)  # NaN if all draws are equal
        # The jackknife's factor.
        error = np.sqrt(variance * (draws - 1) / draws)
    error = np.where(draws > 1, error, np.where(draws > 0, np.nan, 0.0))
    t = np.nan_to_num(student_quantile(freedom, level))
    below, above = _skewed_limits(residuals, t)
    return mean - error * np.maximum(below, t), mean - error * np.minimum(above, -t)


def _skewed_limits(moments: Moments, limit: float | Array) -> tuple[Array, Array]:
    """The upper and lower limit of the error in standard errors; without skewness, `limit` and `-limit`."""
    error = np.sqrt(moments.variance)
    cubed = np.where(error > 0, error, 1.0) ** 3
    b = (3 * moments.covariance - moments.third) / (6 * cubed)
    a = moments.covariance / (2 * cubed) - b
    return _solve_cubic(limit - a, b), _solve_cubic(-limit - a, b)


def _solve_cubic(x: Array, b: Array) -> Array:
    """Solve `t + b t^2 + b^2 t^3 / 3 = x`."""
    small = np.abs(b) < 1e-6  # noqa: PLR2004 - there the quotient would lose digits, and the equation is linear
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
