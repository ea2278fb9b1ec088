"""The claims of the paper about the rows that are kept."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from functools import partial
from typing import Final

from tidegate.experiments.claims import (
    ALL,
    Case,
    Claim,
    Runs,
    between,
    ends,
    part,
    sorted_values,
    steps,
)
from tidegate.experiments.results import Results
from tidegate.experiments.threshold_functions.measures import DEBS, GENERATED
from tidegate.experiments.threshold_functions.timing import SORTED_ARRAYS

_LEVEL_FROM: Final = 2**5
_FALLS_FROM: Final = 4
_FALLING_DENSITIES: Final = (2**7, 2**11)
_MIN_INTERVALS: Final = 200
_KEPT_PER_INTERVAL: Final = "kept of an interval"
_ROWS_FROM_GAP: Final = "rows from the gap"
_MAX_SLOWDOWN: Final = 3.0
"""The paper measures 2.2."""
_WIENER: Final = ("Gamma-Wiener",)


def _near_40(text: str, number: str) -> Claim:
    return Claim(
        f"{text} (within 5)",
        lambda case: between(35, case(number), 45),
        {"stream": ALL},
        "{stream}",
    )


TABLE1: Final = (
    _near_40("about 40 % of the rows are kept", "kept %"),
    _near_40("about 40 % are kept by the algorithm as printed", "as printed %"),
)


def _percent_faster(case: Case, one: str, other: str) -> Runs:
    """How much faster one store is, in percent of the other's time, in the same runs."""
    return 100 * (1 - case("seconds", store=one) / case("seconds", store=other))


def _slowdown(case: Case) -> Runs:
    """How many times as long the skip list takes with much disorder."""
    ordered, disordered = (case("seconds", store="skip list", sigma=sigma) for sigma in case["sigmas"])
    return disordered / ordered


TIMES: Final = (
    Claim(
        "in order the linked list is faster than the skip list",
        lambda case: _percent_faster(case, "linked list", "skip list"),
        {"stream": ALL, "sigma": part("sigma", 0, 1)},
        "{stream}, sigma {sigma}",
    ),
    Claim(
        "with much disorder the skip list is faster than the linked list",
        lambda case: _percent_faster(case, "skip list", "linked list"),
        {"stream": ALL, "sigma": part("sigma", -1)},
        "{stream}, sigma {sigma}",
    ),
    Claim(
        f"the skip list takes no more than {_MAX_SLOWDOWN:.0f} times as long with much disorder",
        lambda case: _MAX_SLOWDOWN - _slowdown(case),
        {"stream": ALL, "sigmas": ends("sigma")},
        "{stream}",
        "times",
    ),
    Claim(
        "not in the paper: sorted arrays, rows all at once, are faster than either",
        lambda case: _percent_faster(case, SORTED_ARRAYS, case["store"]),
        {"store": ALL, "sigma": ALL, "stream": ALL},
        "{stream}, sigma {sigma}, {store}",
        where=lambda case: case["store"] != SORTED_ARRAYS,
    ),
)


def _decrease(case: Case, axis: str) -> Runs:
    """By how many percentage points the share kept falls in a step of an axis, in the same runs."""
    first, second = (case("kept %", **{axis: value}) for value in case["step"])
    return first - second


GAPS: Final = (
    Claim(
        "disproportionately many rows are kept beside gaps",
        lambda case: _decrease(case, _ROWS_FROM_GAP),
        {"stream": ALL, "density": ALL, "step": ends(_ROWS_FROM_GAP)},
        "{stream}, {density} rows",
    ),
)


def _densities(first: int, last: float) -> Callable[[Results], list[int]]:
    return lambda results: [one for one in sorted_values(results, "density") if first <= one <= last]


def _steps_of_density(first: int, last: float) -> Callable[[Results], Iterable[tuple[int, int]]]:
    return lambda results: [
        step for step in steps("density")(results) if first <= step[0] and step[1] <= last
    ]


def _inner(results: Results) -> list[int]:
    """The densities with many intervals, so that the first and the last of them do not count."""
    densities = _densities(_LEVEL_FROM, math.inf)(results)
    rows = min(results.values("rows"), default=math.inf)
    return [one for one in densities if _MIN_INTERVALS * one < rows] or densities[:1]


_levels_off = partial(
    Claim,
    each={"stream": _WIENER, "density": _densities(_LEVEL_FROM, math.inf)},
    label="{density} rows",
    unit="rows",
)
LENGTHS: Final = (
    Claim(
        "from four rows an interval on, the share kept falls",
        lambda case: _decrease(case, "density"),
        {"stream": _WIENER, "step": _steps_of_density(_FALLS_FROM, math.inf)},
        "{step[0]} rows",
    ),
    _levels_off(
        "on Gamma-Wiener the rows kept of an interval level off at four (within 0.5)",
        lambda case: between(3.5, case(_KEPT_PER_INTERVAL), 4.5),
    ),
    _levels_off(
        "so they do with the algorithm as printed (within 0.5)",
        lambda case: between(3.5, case("as printed of an interval"), 4.5),
    ),
    _levels_off(
        "and by the definition if values are independent (within 0.5)",
        lambda case: between(3.5, case(_KEPT_PER_INTERVAL), 4.5),
        each={"stream": ("uniform values",), "density": _inner},
    ),
)


def _exact(case: Case, number: str, **settings: object) -> float:
    """A number that is the same in every run, such as one of a recording."""
    return next(iter(case(number, **settings).values()))


def _exact_fall(case: Case) -> float:
    few, many = (_exact(case, _KEPT_PER_INTERVAL, density=density) for density in case["step"])
    return few - many


RECORDING: Final = (
    Claim(
        "up to 4 rows an interval DEBS keeps fewer rows than Gamma-Wiener",
        lambda case: _exact(case, "kept %", stream=GENERATED) - _exact(case, "kept %", stream=DEBS),
        {"density": _densities(0, _FALLS_FROM)},
        "{density} rows",
    ),
    Claim(
        "on DEBS the rows kept of an interval level off around eight (within two)",
        lambda case: 2 - abs(_exact(case, _KEPT_PER_INTERVAL) - 8),
        {"stream": (DEBS,), "density": _densities(_LEVEL_FROM, math.inf)},
        "{density} rows",
        "rows",
    ),
    Claim(
        "from 2^7 to 2^11 rows an interval they fall slightly",
        _exact_fall,
        {"stream": (DEBS,), "step": _steps_of_density(*_FALLING_DENSITIES)},
        "{step[0]} to {step[1]} rows",
        "rows",
    ),
)


def _fall_with_hours(case: Case) -> float:
    """How much fewer rows are kept than with the next shorter interval; with the shortest, than all."""
    hours = [one for one in sorted_values(case.all, "hours") if one < case["hours"]]
    return (_exact(case, "kept %", hours=hours[-1]) if hours else 100.0) - _exact(case, "kept %")


DEW_POINT: Final = (
    Claim(
        "fewer than one alarm of the full join is missed or invented",
        lambda case: 1 - _exact(case, "missed") - _exact(case, "invented"),
        {"formula": ALL, "hours": ALL},
        "{formula}, {hours} h",
        "alarms",
    ),
    Claim(
        "the longer the interval, the fewer rows are kept",
        _fall_with_hours,
        {"formula": ALL, "hours": ALL},
        "{formula}, {hours} h",
    ),
)
