"""The measures of section 6.2.4: averages over samples, and wrong models.

The window is (500, 0): left rows wait for right rows, so all results are `from_left`, as in the paper.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Final

import numpy as np

from tidegate.engine import simulate, simulate_sample
from tidegate.experiments.windowed_joins.measures import CORRELATIONS, WINDOW, frequencies_of, full_window
from tidegate.experiments.windowed_joins.printed_uniform import PrintedUniform
from tidegate.sampling import EqCluster, PpsCluster, Sampler, Uniform
from tidegate.streams import Correlated, Trace
from tidegate.types import Array, Pairs

AGGREGATED: Final = 500
"""The window of the average (W_agg), in units of time."""
SOME_ROWS: Final = 25
"""A step of this many rows takes about five units of time."""
ROW: Final = 32
"""Bytes of a row. UNIFORM needs three more."""
METHODS: Final = ("UNIFORM", "UNIFORM as printed", "EQ-CLUSTER", "PPS-CLUSTER")


def sampler_of(method: str, stream: Correlated, factor: float = 1.0, p: float | None = None) -> Sampler:
    """A sampler with the true frequencies and rates, or one that assumes `factor` times as many matches per row."""
    left, right = stream.true_rates
    known = {"model": frequencies_of(stream), "rates": (left, factor * right)}
    if method == "EQ-CLUSTER":
        return EqCluster(p, rates=(left, right))
    if method == "PPS-CLUSTER":
        return PpsCluster(p, **known)  # type: ignore[arg-type]  # of these types
    uniform = PrintedUniform if method.endswith("printed") else Uniform
    return uniform(p, **known)  # type: ignore[arg-type]  # of these types


@lru_cache(maxsize=2)
def _traces(stream: Correlated, rows: int, seed: int) -> tuple[Trace, Trace, Pairs]:
    left, right = stream.both(rows, seed)
    pairs = simulate(left, right, window=(WINDOW, 0), step=1000, collect=True).pairs
    assert pairs is not None  # noqa: S101 - collected
    return left, right, pairs


def averages(times: Array, values: Array, weights: Array, at: Array) -> Array:
    """The weighted mean of the values of the last `AGGREGATED` units of time. NaN if there are no values.

    Examples
    --------
    >>> averages(np.array([1.0, 2.0]), np.array([10.0, 40.0]), np.array([2.0, 1.0]), np.array([0.0, 1.0, 2.0]))
    array([nan, 10., 20.])
    """
    order = np.argsort(times, kind="stable")
    ends = [np.searchsorted(times[order], when, "right") for when in (at - AGGREGATED, at)]
    sums = [np.append(0.0, np.cumsum(column[order])) for column in (weights * values, weights)]
    numerators, denominators = (sum_[ends[1]] - sum_[ends[0]] for sum_ in sums)
    not_empty = ends[1] > ends[0]
    means: Array = np.divide(numerators, denominators, out=np.full(len(at), np.nan), where=not_empty)
    return means


def errors(
    *, method: str, correlation: str, percent: int, rows: int, of: str, cvs: str, seed: int
) -> list[dict[str, float]]:
    """Figures 8 and 9: the error of windowed averages, by the variation of the values.

    The sample does not depend on the values, so one sample serves all variations. Without a result, the error is 1.
    """
    stream = Correlated(CORRELATIONS[correlation], shuffle=seed)
    left, right, exact = _traces(stream, rows, seed)
    row = ROW + 3 * method.startswith("UNIFORM")
    budget = int(full_window(stream) * percent / 100 * ROW / row)
    report = simulate_sample(
        left,
        right,
        window=(WINDOW, 0),
        budget=budget,
        sampler=sampler_of(method, stream),
        step=SOME_ROWS,
        seed=seed,
    )
    side, count = (0, len(left)) if of == "S1" else (1, len(right))
    spread = np.random.default_rng((seed, side)).standard_normal(count)
    # Windows of the join and of the average are full from here on.
    at = np.arange(WINDOW + AGGREGATED, int(left.time[-1]))
    true = averages(right.time[exact.right], spread[exact[side]], np.ones(len(exact.left)), at)
    sample = report.pairs
    estimated = averages(right.time[sample.right], spread[sample[side]], 1 / sample.probability, at)
    known = ~np.isnan(true)
    true, estimated = true[known], estimated[known]
    summary = {
        "memory": float(report.rows.mean()),
        "peak": float(report.peak_rows) / budget,
        "sampled": len(sample.left) / max(1, len(exact.left)),
        "empty": float(np.isnan(estimated).mean()),
    }
    results = []
    for cv in map(float, cvs.split()):
        off, whole = abs(cv * (estimated - true)), abs(1 + cv * true)
        missing = np.isnan(off)
        results.append(
            summary
            | {
                "cv": cv,
                "error": float(np.where(missing, 1.0, off / whole).mean()),
                "of the mean": float(np.where(missing, 1.0, off).mean()),
            }
        )
    return results


def wrong_model(*, method: str, factor: float, fraction: float, rows: int, seed: int) -> dict[str, float]:
    """Section 4.3: the bias of the estimated number of results, and the memory, if n(s) is wrong by a factor.

    Memory is ample, and the fraction is given. PPS-CLUSTER samples a row with the mean number of matches with this
    fraction.
    """
    stream = Correlated("direct", skew=1.0)
    left, right, exact = _traces(stream, rows, seed)
    shares = stream.shares
    mean = stream.true_rates[1] * WINDOW * float(shares[0] @ shares[1])
    report = simulate_sample(
        left,
        right,
        window=(WINDOW, 0),
        budget=10 * round(full_window(stream)),
        sampler=sampler_of(method, stream, factor, fraction / mean if method == "PPS-CLUSTER" else fraction),
        step=SOME_ROWS,
        seed=seed,
    )
    full = report.times > WINDOW
    return {
        "bias": 100 * (report.estimate / len(exact.left) - 1),
        "memory": 100 * float(report.rows[full].mean()) / full_window(stream),
    }
