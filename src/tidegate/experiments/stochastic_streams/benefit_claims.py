"""The claims of sections 5.1, 7.3 and 7.5 about expected benefits, which are the same in every run."""

from __future__ import annotations

import itertools
from functools import partial
from typing import Final

import numpy as np

from tidegate.experiments.claims import ALL, Case, Claim
from tidegate.types import Array

_TINY: Final = 1e-12
_NEAR: Final = range(-10, 11)


def _curve(case: Case, row: str) -> Array:
    """The benefit of a row, by steps ahead."""
    return np.array([one["benefit"] for one in case.results.where(row=row).rows])


def _above(case: Case) -> float:
    """The least difference between the benefits of two rows."""
    high, low, *_ = case["rows"]
    return float((_curve(case, high) - _curve(case, low)).min()) + _TINY


_dominates = partial(Claim, margin=_above, label="{rows[0]} over {rows[1]}", unit="results")


def _crosses(case: Case) -> float:
    difference = _curve(case, "x") - _curve(case, "z")
    return float(difference[0] if case["when"] == "x ahead, at first" else -difference[-1])


EXAMPLE: Final = (
    _dominates("x is above y at any time", each={"rows": [("x", "y")]}, label="least difference"),
    Claim(
        "x and z cross: x is above z at first, and below it in the end",
        _crosses,
        {"when": ("x ahead, at first", "z ahead, in the end")},
        "{when}",
        "results",
    ),
)
CACHING: Final = (
    _dominates(
        "the higher a row's value, the higher its benefit, at any time, so the lowest value can be evicted",
        each={
            "rows": lambda results: [(high, low) for low, high in itertools.pairwise(results.values("row"))]
        },
    ),
)
# Corrected: only a row of S2 can dominate one of R2.
JOINING: Final = (
    Claim(
        "R1 and S1 have no further benefit",
        lambda case: _TINY - float(_curve(case, case["row"]).max()),
        {"row": ("R1", "S1")},
        "{row}",
        "results",
    ),
    _dominates(
        "within R2 and within S2 the higher value is above",
        each={"rows": [("R2, far", "R2, near", "R2"), ("S2, far", "S2, near", "S2")]},
        label="{rows[2]}",
    ),
    _dominates(
        "a row of R2 may dominate one of S2 (as printed)",
        each={"rows": list(itertools.product(("R2, near", "R2, far"), ("S2, near", "S2, far")))},
    ),
    _dominates("a row of S2 may dominate one of R2 (corrected)", each={"rows": [("S2, far", "R2, near")]}),
)


def _benefits(case: Case) -> dict[int, float]:
    """The benefit by distance from the last value, with the drift of a case."""
    return {row["distance"]: row["benefit"] for row in case.results.rows}


def _nearest_is_best(case: Case) -> float:
    benefits = _benefits(case)
    if case["what"] == "least decrease":
        return min(benefits[far] - benefits[far + 1] for far in range(8))
    return _TINY - max(abs(benefits[far] - benefits[-far]) for far in range(1, 9))


def _mean_distance(case: Case) -> float:
    benefits = _benefits(case)
    return sum(far * benefits[far] for far in _NEAR) / sum(benefits[far] for far in _NEAR)


def _peak(case: Case) -> float:
    """How much better a value at a multiple of the drift is than the mean of its neighbours."""
    benefits, far = _benefits(case), case["far"]
    return benefits[far] - (benefits[far - 1] + benefits[far + 1]) / 2


WALKS: Final = (
    Claim(
        "without drift the nearest value is the best to keep, and both sides are equal",
        _nearest_is_best,
        {"drift": (0,), "what": ("least decrease", "both sides equal")},
        "{what}",
        unit="",
    ),
    Claim(
        "with a drift values ahead are better: the mean distance is above 0",
        _mean_distance,
        {"drift": ALL},
        "drift {drift}",
        unit="",
        where=lambda case: case["drift"] > 0,
    ),
    Claim(
        "a value at a multiple of the drift is better than its neighbours",
        _peak,
        {"drift": ALL, "far": (2, 4, 8)},
        "drift {drift}, distance {far}",
        unit="",
        where=lambda case: case["far"] in (case["drift"], 2 * case["drift"]),
    ),
)
