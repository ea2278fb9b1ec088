"""The claims of the paper about its tables and figures."""

from __future__ import annotations

import math
from functools import partial
from typing import Any, Final

from tidegate.experiments.claims import ALL, Case, Claim, Runs, Values, between, ends, part, percent_ahead
from tidegate.experiments.ijoin.tables import TOTAL
from tidegate.experiments.results import Results

RIVALS: Final = ("FIFO", "RAND", "SIZE", "GREEDY")
PRINTED: Final = {"exact": 36.0, "fifo": 6.0, "rand": 5.0, "size": 11.0, "greedy": 13.0}
"""Total importances of Tables 2 to 4."""
IJOINS: Final = ("IJOIN", "IJOIN as printed")
NEGLIGIBLE_GROWTH: Final = 5.0
"""Growth of less than this many percent counts as none."""


def _cases(*axes: str, **values: Values) -> dict[str, Any]:
    """All combinations of the values of some axes, and of other names, with their label."""
    labels = [f"{axis} {{{axis}:g}}" for axis in axes] + [f"{{{name}}}" for name in values]
    return {"each": dict.fromkeys(axes, ALL) | values, "label": ", ".join(labels)}


def has_most(
    scheme: str, rivals: tuple[str, ...], text: str, *axes: str, number: str = "importance"
) -> Claim:
    """A scheme has a higher number than its rivals."""
    return Claim(
        f"{scheme} {text}",
        lambda case: percent_ahead(case(number, scheme=scheme), case(number, scheme=case["rival"])),
        **_cases(*axes, rival=rivals),
    )


def _has_least(scheme: str, *axes: str) -> Claim:
    """A scheme has less importance than all others with the same memory."""
    others = tuple(other for other in (*RIVALS, *IJOINS) if other != scheme)
    return Claim(
        f"{scheme} has the least importance",
        lambda case: percent_ahead(
            case("importance", scheme=case["rival"]), case("importance", scheme=scheme)
        ),
        **_cases(*axes, rival=others),
    )


def _is_fair(scheme: str, text: str, low: float, high: float, *axes: str, **values: Values) -> Claim:
    """A scheme's fairness is between two percentages."""
    cases = _cases(*axes)
    return Claim(
        f"{scheme} is {text}",
        lambda case: between(low, 100 * case("fairness", scheme=scheme), high),
        cases["each"] | values,
        cases["label"],
        "points",
    )


def _grows(
    text: str, axis: str, schemes: tuple[str, ...], number: str = "importance", at_most: float | None = None
) -> Claim:
    """A number grows from one end of an axis to the other, or by less than `at_most` percent."""

    def growth(case: Case) -> Runs:
        first, last = (case(number, scheme=case["which"], **{axis: value}) for value in case["ends"])
        percent = percent_ahead(last, first)
        return percent if at_most is None else at_most - percent

    cases = _cases("skew", which=schemes)
    return Claim(text, growth, cases["each"] | {"ends": ends(axis)}, cases["label"])


_falls = partial(_grows, at_most=0.0)
_hardly_grows = partial(_grows, at_most=NEGLIGIBLE_GROWTH)


def _totals(results: Results) -> list[tuple[str, float, float]]:
    rows = results.where(time=TOTAL).rows
    return [(row["join"], float(row["importance"]), PRINTED[row["join"]]) for row in rows]


TOTALS: Final = (
    Claim(
        "the total importance is as printed (less than 0.5 off)",
        lambda case: 0.5 - abs(case["total"][1] - case["total"][2]),
        {"total": _totals},
        "{total[0]}: {total[1]:g}, printed {total[2]:g}",
        unit="",
    ),
)
_MEMORY: Final = ("memory", "skew")
MEMORY: Final = (
    has_most("EXACT", (*RIVALS, *IJOINS), "has more importance than all others", *_MEMORY),
    *(
        claim
        for scheme in IJOINS
        for claim in (
            has_most(scheme, RIVALS, "has the most importance", *_MEMORY),
            has_most(scheme, ("SIZE",), "has more results than SIZE", *_MEMORY, number="size"),
            _is_fair(scheme, "more than 80 % fair", 80, math.inf, *_MEMORY),
            has_most(
                scheme, ("RAND", "SIZE", "GREEDY"), "is fairer than all but FIFO", *_MEMORY, number="fairness"
            ),
        )
    ),
    _is_fair("FIFO", "100 % fair (within 5 points)", 95, math.inf, *_MEMORY),
    _has_least("FIFO", *_MEMORY),
)
WINDOW: Final = (
    *(has_most(scheme, RIVALS, "has the most importance", "window", "skew") for scheme in IJOINS),
    _grows("importance grows with the window for IJOIN and GREEDY", "window", ("GREEDY", *IJOINS)),
    _hardly_grows("it does not grow for the others (by less than 5 %)", "window", ("FIFO", "RAND", "SIZE")),
    _hardly_grows("results hardly increase for any (by less than 5 %)", "window", (*RIVALS, *IJOINS), "size"),
    _falls("the fairness of SIZE falls with the window", "window", ("SIZE",), "fairness"),
    *(_is_fair(scheme, "80 to 85 % fair", 80, 85, "window", "skew") for scheme in IJOINS),
)
_EVERY: Final = ("EXACT", *RIVALS, *IJOINS)
DOMAIN: Final = (
    *(has_most(scheme, RIVALS, "has the most importance", "domain", "skew") for scheme in IJOINS),
    _falls("importance falls as the number of values grows", "domain", _EVERY),
    _falls("the number of results falls, too", "domain", _EVERY, "size"),
    _has_least("GREEDY", "domain", "skew"),
    _is_fair(
        "GREEDY", "20 % fair with 20 values (within 5 points)", 15, 25, "skew", domain=part("domain", -1)
    ),
    *(_is_fair(scheme, "80 to 85 % fair", 80, 85, "domain", "skew") for scheme in IJOINS),
)
THRESHOLD: Final = (
    _falls("the coarser the threshold, the less importance", "unproductive", IJOINS),
    *(has_most(scheme, RIVALS, "has the most importance", "unproductive", "skew") for scheme in IJOINS),
)


def _percent_computed(case: Case, how: str) -> Runs:
    return 100 * case("computed", scheme=how) / case("computed", scheme="successive")


_LAZY: Final = ("k-successive", "adaptive")
LAZINESS: Final = (
    has_most("successive", _LAZY, "has the most importance", "skew"),
    has_most("successive", _LAZY, "is the fairest", "skew", number="fairness"),
    *(
        _is_fair(how, f"{share} % fair (within 5 points)", share - 5, share + 5, "skew")
        for how, share in (("successive", 81), ("k-successive", 75), ("adaptive", 80))
    ),
    Claim(
        "adaptive has at least nine tenths of the importance of successive",
        lambda case: percent_ahead(
            case("importance", scheme="adaptive"), case("importance", scheme="successive"), 0.9
        ),
        **_cases("skew"),
    ),
    Claim(
        "k-successive computes priorities a tenth as often (within 5 points)",
        lambda case: between(5, _percent_computed(case, "k-successive"), 15),
        unit="points",
        **_cases("skew"),
    ),
    Claim(
        "adaptive computes priorities less than 70 % as often (the paper: 60)",
        lambda case: 70 - _percent_computed(case, "adaptive"),
        **_cases("skew"),
    ),
)
BEYOND: Final = (
    Claim(
        "expected importance beats past matches",
        lambda case: percent_ahead(case("importance", scheme="expected"), case("importance", scheme="IJOIN")),
        {"skew": ALL},
        "skew {skew:g}, IJOIN",
    ),
)
"""What a learned model should add."""
