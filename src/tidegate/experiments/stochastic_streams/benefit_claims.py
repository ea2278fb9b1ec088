"""The claims of sections 5.1, 7.3 and 7.5 about expected benefits, judged by our measurements."""

from __future__ import annotations

import itertools
from typing import Final

import numpy as np

from tidegate.experiments.claims import Claim, MeanInterval, judge
from tidegate.experiments.results import Results
from tidegate.types import Array

_NEAR: Final = range(-10, 11)


def _curves(results: Results) -> dict[str, Array]:
    """The benefit of each row, by steps ahead."""
    return {
        row: np.array([one["benefit"] for one in results.where(row=row).rows])
        for row in results.values("row")
    }


def claims_of_example(results: Results) -> tuple[Claim, ...]:
    """The claims of section 5.1 about Figure 2."""
    x, y, z = (_curves(results)[row] for row in "xyz")
    return (
        judge(
            "x is above y at any time",
            {"least difference": MeanInterval.exactly(float((x - y).min()))},
            unit="results",
        ),
        judge(
            "x and z cross: x is above z at first, and below it in the end",
            {
                "x ahead, at first": MeanInterval.exactly(float(x[0] - z[0])),
                "z ahead, in the end": MeanInterval.exactly(float(z[-1] - x[-1])),
            },
            unit="results",
        ),
    )


def claims_of_caching_benefits(results: Results) -> tuple[Claim, ...]:
    """The claims of section 7.3 about Figure 4."""
    curves = list(_curves(results).items())
    tiny = 1e-12
    return (
        judge(
            "the higher a row's value, the higher its benefit, at any time, so the lowest value can be evicted",
            {
                f"{high[0]} over {low[0]}": MeanInterval.exactly(float((high[1] - low[1]).min()) + tiny)
                for low, high in itertools.pairwise(curves)
            },
            unit="results",
        ),
    )


def claims_of_joining_benefits(results: Results) -> tuple[Claim, ...]:
    """The claims of section 7.3 about Figure 5, corrected: only a row of S2 can dominate one of R2."""
    curves, tiny = _curves(results), 1e-12

    def over(high: str, low: str) -> MeanInterval:
        return MeanInterval.exactly(float((curves[high] - curves[low]).min()) + tiny)

    zero = {row: MeanInterval.exactly(tiny - float(curves[row].max())) for row in ("R1", "S1")}
    return (
        judge("R1 and S1 have no further benefit", zero, unit="results"),
        judge(
            "within R2 and within S2 the higher value is above",
            {"R2": over("R2, far", "R2, near"), "S2": over("S2, far", "S2, near")},
            unit="results",
        ),
        judge(
            "a row of R2 may dominate one of S2 (as printed)",
            {f"{r} over {s}": over(r, s) for r in ("R2, near", "R2, far") for s in ("S2, near", "S2, far")},
            unit="results",
        ),
        judge(
            "a row of S2 may dominate one of R2 (corrected)",
            {"S2, far over R2, near": over("S2, far", "R2, near")},
            unit="results",
        ),
    )


def claims_of_walks(results: Results) -> tuple[Claim, ...]:
    """The claims of section 7.5 about Figure 6."""
    benefits = {
        drift: {row["distance"]: row["benefit"] for row in results.where(drift=drift).rows}
        for drift in results.values("drift")
    }
    no_drift = benefits[0]
    tiny = 1e-12
    steps = [no_drift[far] - no_drift[far + 1] for far in range(8)]
    even = [abs(no_drift[far] - no_drift[-far]) for far in range(1, 9)]
    right = {
        f"drift {drift}": MeanInterval.exactly(
            sum(far * curve[far] for far in _NEAR) / sum(curve[far] for far in _NEAR)
        )
        for drift, curve in benefits.items()
        if drift
    }
    peaks = {
        f"drift {drift}, distance {drift * times}": MeanInterval.exactly(
            curve[drift * times] - (curve[drift * times - 1] + curve[drift * times + 1]) / 2
        )
        for drift, curve in benefits.items()
        if drift
        for times in (1, 2)
    }
    return (
        judge(
            "without drift the nearest value is the best to keep, and both sides are equal",
            {
                "least decrease": MeanInterval.exactly(min(steps)),
                "both sides equal": MeanInterval.exactly(tiny - max(even)),
            },
            unit="",
        ),
        judge("with a drift values ahead are better: the mean distance is above 0", right, unit=""),
        judge("a value at a multiple of the drift is better than its neighbours", peaks, unit=""),
    )
