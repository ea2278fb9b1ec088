"""The claims of the paper about the rows that are kept."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

import numpy as np

from tidegate.experiments.claims import Claim, MeanInterval, judge
from tidegate.experiments.threshold_functions.measures import DEBS, GENERATED
from tidegate.experiments.threshold_functions.timing import SORTED_ARRAYS

if TYPE_CHECKING:
    from tidegate.experiments.results import Results
    from tidegate.types import Array

_SHARE_TOLERANCE: Final = 5.0
_LEVEL_TOLERANCE: Final = 0.5
_LEVEL_FROM: Final = 2**5
_FALLS_FROM: Final = 4
_FALLING_DENSITIES: Final = (2**7, 2**11)
_MIN_INTERVALS: Final = 200
_KEPT_PER_INTERVAL: Final = "kept of an interval"
_ROWS_FROM_GAP: Final = "rows from the gap"
_MAX_SLOWDOWN: Final = 3.0
"""The paper measures 2.2."""


def claims_of_table1(results: Results) -> tuple[Claim, ...]:
    """About 40 % of both streams are kept."""
    return (
        _share_near_40("about 40 % of the rows are kept", results, "kept %"),
        _share_near_40("about 40 % are kept by the algorithm as printed", results, "as printed %"),
    )


def claims_of_times(results: Results) -> tuple[Claim, ...]:
    """Which store is fastest, with and without disorder."""
    sigmas = sorted(results.values("sigma"))
    ordered, disordered = sigmas[0], sigmas[-1]

    def relative_time(one: tuple[str, int], other: tuple[str, int], stream: str) -> Array:
        """The time of one store at some disorder, relative to another, in the same runs."""
        first, second = results.paired(
            "seconds",
            *({"store": store, "sigma": sigma, "stream": stream} for store, sigma in (one, other)),
        )
        return first / second

    def percent_faster(one: str, other: str, sigma: int) -> dict[str, MeanInterval]:
        """How much faster one store is, in percent of the other's time."""
        return {
            f"{stream}, sigma {sigma}": MeanInterval.of(
                100 * (1 - relative_time((one, sigma), (other, sigma), stream))
            )
            for stream in results.values("stream")
        }

    slowdown = {
        stream: MeanInterval.of(
            _MAX_SLOWDOWN - relative_time(("skip list", disordered), ("skip list", ordered), stream)
        )
        for stream in results.values("stream")
    }
    others = [store for store in results.values("store") if store != SORTED_ARRAYS]
    sorted_arrays = {
        f"{case}, {other_store}": margin
        for other_store in others
        for sigma in sigmas
        for case, margin in percent_faster(SORTED_ARRAYS, other_store, sigma).items()
    }
    return (
        judge(
            "in order the linked list is faster than the skip list",
            percent_faster("linked list", "skip list", ordered),
        ),
        judge(
            "with much disorder the skip list is faster than the linked list",
            percent_faster("skip list", "linked list", disordered),
        ),
        judge(
            f"the skip list takes no more than {_MAX_SLOWDOWN:.0f} times as long with much disorder",
            slowdown,
            unit="times",
        ),
        judge("not in the paper: sorted arrays, rows all at once, are faster than either", sorted_arrays),
    )


def claims_of_gaps(results: Results) -> tuple[Claim, ...]:
    """More rows are kept near a gap than far from it."""
    bins = sorted(results.values(_ROWS_FROM_GAP))
    margins = {
        f"{stream}, {density} rows": _decrease(
            results, {"stream": stream, "density": density}, _ROWS_FROM_GAP, bins[0], bins[-1]
        )
        for stream in results.values("stream")
        for density in results.values("density")
    }
    return (judge("disproportionately many rows are kept beside gaps", margins),)


def claims_of_figure10(results: Results) -> tuple[Claim, ...]:
    """The rows kept of an interval reach a constant level."""
    densities = sorted(results.values("density"))
    wiener = {"stream": "Gamma-Wiener"}
    falls = {
        f"{few} rows": _decrease(results, wiener, "density", few, many)
        for few, many in itertools.pairwise(densities)
        if few >= _FALLS_FROM
    }
    many = [density for density in densities if density >= _LEVEL_FROM]
    inner = [density for density in many if _MIN_INTERVALS * density < min(results.values("rows"))]
    return (
        judge("from four rows an interval on, the share kept falls", falls),
        _level(
            "on Gamma-Wiener the rows kept of an interval level off at four",
            results,
            _KEPT_PER_INTERVAL,
            many,
        ),
        _level("so they do with the algorithm as printed", results, "as printed of an interval", many),
        _level(
            "and by the definition if values are independent",
            results,
            _KEPT_PER_INTERVAL,
            inner or many[:1],
            "uniform values",
        ),
    )


def claims_of_recording(results: Results) -> tuple[Claim, ...]:
    """The rows kept of an interval of the recording: a level of about eight, and its beginning and end."""

    def of(number: str, density: int, stream: str = DEBS) -> float:
        return float(results.runs(number, density=density, stream=stream)[0])

    densities = sorted(results.values("density"))
    near_eight = {
        f"{density} rows": MeanInterval.exactly(2.0 - abs(of(_KEPT_PER_INTERVAL, density) - 8))
        for density in densities
        if density >= _LEVEL_FROM
    }
    percent_faster = {
        f"{density} rows": MeanInterval.exactly(of("kept %", density, GENERATED) - of("kept %", density))
        for density in densities
        if density <= _FALLS_FROM
    }
    late = [density for density in densities if _FALLING_DENSITIES[0] <= density <= _FALLING_DENSITIES[1]]
    falls = {
        f"{few} to {many} rows": MeanInterval.exactly(
            of(_KEPT_PER_INTERVAL, few) - of(_KEPT_PER_INTERVAL, many)
        )
        for few, many in itertools.pairwise(late)
    }
    return (
        judge(
            f"up to {_FALLS_FROM} rows an interval DEBS keeps fewer rows than Gamma-Wiener", percent_faster
        ),
        judge(
            "on DEBS the rows kept of an interval level off around eight (within two)",
            near_eight,
            unit="rows",
        ),
        judge("from 2^7 to 2^11 rows an interval they fall slightly", falls, unit="rows"),
    )


def claims_of_dew_point(results: Results) -> tuple[Claim, ...]:
    """All alarms of the full join are raised, and longer intervals keep fewer rows."""
    differing, falls = {}, {}
    for formula in results.values("formula"):
        before = 100.0
        for hours in sorted(results.values("hours")):
            measured = {
                name: float(results.runs(name, formula=formula, hours=hours)[0])
                for name in ("missed", "invented", "kept %")
            }
            case = f"{formula}, {hours} h"
            differing[case] = MeanInterval.exactly(1.0 - measured["missed"] - measured["invented"])
            falls[case] = MeanInterval.exactly(before - measured["kept %"])
            before = measured["kept %"]
    return (
        judge("fewer than one alarm of the full join is missed or invented", differing, unit="alarms"),
        judge("the longer the interval, the fewer rows are kept", falls),
    )


def _decrease(
    results: Results, place: Mapping[str, object], axis: str, one: float, other: float
) -> MeanInterval:
    """By how many percentage points the share kept is smaller at another value of an axis, in the same runs."""
    first, second = results.paired("kept %", {**place, axis: one}, {**place, axis: other})
    return MeanInterval.of(first - second)


def _share_near_40(text: str, results: Results, number: str) -> Claim:
    margins = {
        stream: MeanInterval.of(_SHARE_TOLERANCE - np.abs(results.runs(number, stream=stream) - 40))
        for stream in results.values("stream")
    }
    return judge(f"{text} (within {_SHARE_TOLERANCE:.0f})", margins)


def _level(
    text: str, results: Results, number: str, densities: list[int], stream: str = "Gamma-Wiener"
) -> Claim:
    margins = {
        f"{density} rows": MeanInterval.of(
            _LEVEL_TOLERANCE - np.abs(results.runs(number, density=density, stream=stream) - 4)
        )
        for density in densities
    }
    return judge(f"{text} (within {_LEVEL_TOLERANCE})", margins, unit="rows")
