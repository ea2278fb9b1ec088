"""The claims of the paper about the rows that are kept."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

import numpy as np

from tidegate.experiments.claims import Claim, MeanInterval, judge
from tidegate.experiments.threshold_functions.measures import DEBS, DRAWN
from tidegate.experiments.threshold_functions.timing import OURS

if TYPE_CHECKING:
    from tidegate.experiments.results import Results
    from tidegate.types import Array

_ABOUT: Final = 5.0
_FLAT: Final = 0.5
_MANY: Final = 2**5
_FEW: Final = 4
_LATE: Final = (2**7, 2**11)
_ENOUGH: Final = 200
_OF_INTERVAL: Final = "kept of an interval"
_FROM_GAP: Final = "rows from the gap"
_GRACEFUL: Final = 3.0
"""In the paper, 2.2 times as long."""


def claims_of_table1(results: Results) -> tuple[Claim, ...]:
    """About 40 % of both streams are kept."""
    return (
        _about("about 40 % of the rows are kept", results, "kept %"),
        _about("about 40 % are kept by the algorithm as printed", results, "as printed %"),
    )


def claims_of_times(results: Results) -> tuple[Claim, ...]:
    """Which store is fastest, with and without disorder."""
    sigmas = sorted(results.values("sigma"))
    calm, wild = sigmas[0], sigmas[-1]

    def times_as_long(one: tuple[str, int], other: tuple[str, int], stream: str) -> Array:
        """The time of one store at some disorder, relative to another, in the same runs."""
        first, second = results.paired(
            "seconds",
            *({"store": store, "sigma": sigma, "stream": stream} for store, sigma in (one, other)),
        )
        return first / second

    def sooner(one: str, other: str, sigma: int) -> dict[str, MeanInterval]:
        """How much faster one store is, in percent of the other's time."""
        return {
            f"{stream}, sigma {sigma}": MeanInterval.of(
                100 * (1 - times_as_long((one, sigma), (other, sigma), stream))
            )
            for stream in results.values("stream")
        }

    graceful = {
        stream: MeanInterval.of(_GRACEFUL - times_as_long(("skip list", wild), ("skip list", calm), stream))
        for stream in results.values("stream")
    }
    rivals = [store for store in results.values("store") if store != OURS]
    ours = {
        f"{case}, {rival}": margin
        for rival in rivals
        for sigma in sigmas
        for case, margin in sooner(OURS, rival, sigma).items()
    }
    return (
        judge(
            "in order the linked list is faster than the skip list", sooner("linked list", "skip list", calm)
        ),
        judge(
            "with much disorder the skip list is faster than the linked list",
            sooner("skip list", "linked list", wild),
        ),
        judge(
            f"the skip list takes no more than {_GRACEFUL:.0f} times as long with much disorder",
            graceful,
            unit="times",
        ),
        judge("not in the paper: sorted arrays, rows all at once, are faster than either", ours),
    )


def claims_of_gaps(results: Results) -> tuple[Claim, ...]:
    """More rows are kept beside a gap than far from it."""
    bins = sorted(results.values(_FROM_GAP))
    margins = {
        f"{stream}, {density} rows": _less(
            results, {"stream": stream, "density": density}, _FROM_GAP, bins[0], bins[-1]
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
        f"{few} rows": _less(results, wiener, "density", few, many)
        for few, many in itertools.pairwise(densities)
        if few >= _FEW
    }
    many = [density for density in densities if density >= _MANY]
    inner = [density for density in many if _ENOUGH * density < min(results.values("rows"))]
    return (
        judge("from four rows an interval on, the share kept falls", falls),
        _level(
            "on Gamma-Wiener the rows kept of an interval level off at four",
            results,
            _OF_INTERVAL,
            many,
        ),
        _level("so they do with the algorithm as printed", results, "as printed of an interval", many),
        _level(
            "and by the definition if values are independent",
            results,
            _OF_INTERVAL,
            inner or many[:1],
            "uniform values",
        ),
    )


def claims_of_recording(results: Results) -> tuple[Claim, ...]:
    """A level of about eight on the recording, and where it begins and ends."""

    def of(number: str, density: int, stream: str = DEBS) -> float:
        return float(results.runs(number, density=density, stream=stream)[0])

    densities = sorted(results.values("density"))
    away = {
        f"{density} rows": MeanInterval.exactly(2.0 - abs(of(_OF_INTERVAL, density) - 8))
        for density in densities
        if density >= _MANY
    }
    sooner = {
        f"{density} rows": MeanInterval.exactly(of("kept %", density, DRAWN) - of("kept %", density))
        for density in densities
        if density <= _FEW
    }
    late = [density for density in densities if _LATE[0] <= density <= _LATE[1]]
    falls = {
        f"{few} to {many} rows": MeanInterval.exactly(of(_OF_INTERVAL, few) - of(_OF_INTERVAL, many))
        for few, many in itertools.pairwise(late)
    }
    return (
        judge(f"up to {_FEW} rows an interval DEBS keeps fewer rows than Gamma-Wiener", sooner),
        judge("on DEBS the rows kept of an interval level off around eight (within two)", away, unit="rows"),
        judge("from 2^7 to 2^11 rows an interval they fall slightly", falls, unit="rows"),
    )


def claims_of_forest(results: Results) -> tuple[Claim, ...]:
    """All alarms of the full join, from fewer rows for longer intervals."""
    astray, falls = {}, {}
    for formula in results.values("formula"):
        before = 100.0
        for hours in sorted(results.values("hours")):
            measured = {
                name: float(results.runs(name, formula=formula, hours=hours)[0])
                for name in ("missed", "invented", "kept %")
            }
            case = f"{formula}, {hours} h"
            astray[case] = MeanInterval.exactly(1.0 - measured["missed"] - measured["invented"])
            falls[case] = MeanInterval.exactly(before - measured["kept %"])
            before = measured["kept %"]
    return (
        judge("fewer than one alarm of the full join is missed or invented", astray, unit="alarms"),
        judge("the longer the interval, the fewer rows are kept", falls),
    )


def _less(results: Results, place: Mapping[str, object], axis: str, one: float, other: float) -> MeanInterval:
    """How many points the share kept is smaller at another value of an axis, in the same runs."""
    first, second = results.paired("kept %", {**place, axis: one}, {**place, axis: other})
    return MeanInterval.of(first - second)


def _about(text: str, results: Results, number: str) -> Claim:
    margins = {
        stream: MeanInterval.of(_ABOUT - np.abs(results.runs(number, stream=stream) - 40))
        for stream in results.values("stream")
    }
    return judge(f"{text} (within {_ABOUT:.0f})", margins)


def _level(
    text: str, results: Results, number: str, densities: list[int], stream: str = "Gamma-Wiener"
) -> Claim:
    margins = {
        f"{density} rows": MeanInterval.of(
            _FLAT - np.abs(results.runs(number, density=density, stream=stream) - 4)
        )
        for density in densities
    }
    return judge(f"{text} (within {_FLAT})", margins, unit="rows")
