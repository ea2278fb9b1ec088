"""The claims of the paper about its tables and figures, judged by our measurements."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Iterator, Mapping
from typing import Final

import numpy as np

from tidegate.experiments.claims import Claim, MeanInterval, judge
from tidegate.experiments.ijoin.tables import TOTAL
from tidegate.experiments.results import Results

RIVALS: Final = ("FIFO", "RAND", "SIZE", "GREEDY")
PRINTED: Final = {"exact": 36.0, "fifo": 6.0, "rand": 5.0, "size": 11.0, "greedy": 13.0}
"""Total importances of Tables 2 to 4."""
IJOINS: Final = ("IJOIN", "IJOIN as printed")
NEGLIGIBLE_GROWTH: Final = 5.0
"""Growth of less than this many percent counts as none."""


def cases(results: Results, *axes: str) -> Iterator[tuple[str, dict[str, object]]]:
    """Every combination of the values of some axes, as a label and as settings."""
    values = [results.values(axis) for axis in axes]
    for combination in itertools.product(*values):
        settings = dict(zip(axes, combination, strict=True))
        yield (
            ", ".join(
                f"{axis} {value:g}" if isinstance(value, float) else f"{axis} {value}"
                for axis, value in settings.items()
            ),
            settings,
        )


def has_most(
    results: Results, scheme: str, rivals: Iterable[str], text: str, *axes: str, number: str = "importance"
) -> Claim:
    """Whether a scheme has a higher number than its rivals in all cases."""
    return judge(
        text,
        {
            f"{label}, {rival}": MeanInterval.of(
                results.percent_ahead(number, {**case, "scheme": scheme}, {**case, "scheme": rival})
            )
            for label, case in cases(results, *axes)
            for rival in rivals
        },
    )


def _ahead(
    results: Results, one: Mapping[str, object], other: Mapping[str, object], part: float = 1.0
) -> MeanInterval:
    return MeanInterval.of(results.percent_ahead("importance", one, other, part))


def has_least(results: Results, scheme: str, text: str, *axes: str) -> Claim:
    """Whether a scheme has less importance than all others with the same memory, in all cases."""
    return judge(
        text,
        {
            f"{label}, {other}": _ahead(results, {**case, "scheme": other}, {**case, "scheme": scheme})
            for label, case in cases(results, *axes)
            for other in (*RIVALS, *IJOINS)
            if other != scheme
        },
    )


def grown(
    results: Results, number: str, schemes: Iterable[str], axis: str, *, at_most: float | None = None
) -> dict[str, MeanInterval]:
    """The growth of a number from one end of an axis to the other in percent, or `at_most` minus that growth."""
    least, most = min(results.values(axis)), max(results.values(axis))
    growths = {}
    for label, case in cases(results, "skew"):
        for scheme in schemes:
            place = {**case, "scheme": scheme}
            growth = results.percent_ahead(number, {**place, axis: most}, {**place, axis: least})
            growths[f"{label}, {scheme}"] = MeanInterval.of(growth if at_most is None else at_most - growth)
    return growths


def is_fair(results: Results, scheme: str, text: str, low: float, high: float, *axes: str) -> Claim:
    """Whether a scheme's fairness is between two percentages in all cases; margins are points to the nearer one."""
    margins = {}
    for label, case in cases(results, *axes):
        percent = 100 * results.runs("fairness", scheme=scheme, **case)
        margins[label] = MeanInterval.of(np.minimum(percent - low, high - percent))
    return judge(text, margins, unit="points")


def claims_of_totals(results: Results) -> tuple[Claim, ...]:
    """The totals that are printed below Tables 2 to 4."""
    totals = {row["join"]: float(row["importance"]) for row in results.rows if row["time"] == TOTAL}
    margins = {
        f"{join}: {total:g}, printed {PRINTED[join]:g}": MeanInterval.exactly(
            0.5 - abs(total - PRINTED[join])
        )
        for join, total in totals.items()
    }
    return (judge("the total importance is as printed (less than 0.5 off)", margins, unit=""),)


def claims_of_memory(results: Results) -> tuple[Claim, ...]:
    """The claims of section 5.1 about Figure 2."""
    where = ("memory", "skew")
    return (
        has_most(results, "EXACT", (*RIVALS, *IJOINS), "EXACT has more importance than all others", *where),
        *(
            claim
            for scheme in IJOINS
            for claim in (
                has_most(results, scheme, RIVALS, f"{scheme} has the most importance", *where),
                has_most(
                    results, scheme, ("SIZE",), f"{scheme} has more results than SIZE", *where, number="size"
                ),
                is_fair(results, scheme, f"{scheme} is more than 80 % fair", 80, math.inf, *where),
                has_most(
                    results,
                    scheme,
                    ("RAND", "SIZE", "GREEDY"),
                    f"{scheme} is fairer than all but FIFO",
                    *where,
                    number="fairness",
                ),
            )
        ),
        is_fair(results, "FIFO", "FIFO is 100 % fair (within 5 points)", 95, math.inf, *where),
        has_least(results, "FIFO", "FIFO has the least importance", *where),
    )


def claims_of_window(results: Results) -> tuple[Claim, ...]:
    """The claims of section 5.2 about Figure 3."""
    where = ("window", "skew")
    steady = ("FIFO", "RAND", "SIZE")
    return (
        *(
            has_most(results, scheme, RIVALS, f"{scheme} has the most importance", *where)
            for scheme in IJOINS
        ),
        judge(
            "importance grows with the window for IJOIN and GREEDY",
            grown(results, "importance", ("GREEDY", *IJOINS), "window"),
        ),
        judge(
            f"it does not grow for the others (by less than {NEGLIGIBLE_GROWTH:g} %)",
            grown(results, "importance", steady, "window", at_most=NEGLIGIBLE_GROWTH),
        ),
        judge(
            f"results hardly increase for any (by less than {NEGLIGIBLE_GROWTH:g} %)",
            grown(results, "size", (*RIVALS, *IJOINS), "window", at_most=NEGLIGIBLE_GROWTH),
        ),
        judge(
            "the fairness of SIZE falls with the window",
            grown(results, "fairness", ("SIZE",), "window", at_most=0.0),
        ),
        *(is_fair(results, scheme, f"{scheme} is 80 to 85 % fair", 80, 85, *where) for scheme in IJOINS),
    )


def claims_of_domain(results: Results) -> tuple[Claim, ...]:
    """The claims of section 5.3 about Figure 4."""
    where = ("domain", "skew")
    all_ = ("EXACT", *RIVALS, *IJOINS)
    many = max(results.values("domain"))
    return (
        *(
            has_most(results, scheme, RIVALS, f"{scheme} has the most importance", *where)
            for scheme in IJOINS
        ),
        judge(
            "importance falls as the number of values grows",
            grown(results, "importance", all_, "domain", at_most=0.0),
        ),
        judge("the number of results falls, too", grown(results, "size", all_, "domain", at_most=0.0)),
        has_least(results, "GREEDY", "GREEDY has the least importance", *where),
        is_fair(
            results.where(domain=many),
            "GREEDY",
            f"GREEDY is 20 % fair with {many} values (within 5 points)",
            15,
            25,
            "skew",
        ),
        *(is_fair(results, scheme, f"{scheme} is 80 to 85 % fair", 80, 85, *where) for scheme in IJOINS),
    )


def claims_of_threshold(results: Results) -> tuple[Claim, ...]:
    """The claims of section 5.4 about Figure 5."""
    falls = grown(results, "importance", IJOINS, "unproductive", at_most=0.0)
    return (
        judge("the coarser the threshold, the less importance", falls),
        *(
            has_most(results, scheme, RIVALS, f"{scheme} has the most importance", "unproductive", "skew")
            for scheme in IJOINS
        ),
    )


def claims_of_laziness(results: Results) -> tuple[Claim, ...]:
    """The claims of section 5.5 about Table 6."""
    others = ("k-successive", "adaptive")
    near: dict[str, MeanInterval] = {}
    tenth: dict[str, MeanInterval] = {}
    fewer: dict[str, MeanInterval] = {}
    for label, case in cases(results, "skew"):
        successive, lazy, adaptive = ({**case, "scheme": how} for how in ("successive", *others))
        near[label] = _ahead(results, adaptive, successive, 0.9)
        some, all_ = results.paired("computed", lazy, successive)
        tenth[label] = MeanInterval.of(5 - np.abs(100 * some / all_ - 10))
        some, all_ = results.paired("computed", adaptive, successive)
        fewer[label] = MeanInterval.of(70 - 100 * some / all_)
    return (
        has_most(results, "successive", others, "successive has the most importance", "skew"),
        has_most(results, "successive", others, "successive is the fairest", "skew", number="fairness"),
        *(
            is_fair(results, how, f"{how} is {share} % fair (within 5 points)", share - 5, share + 5, "skew")
            for how, share in (("successive", 81), ("k-successive", 75), ("adaptive", 80))
        ),
        judge("adaptive has at least nine tenths of the importance of successive", near),
        judge("k-successive computes priorities a tenth as often (within 5 points)", tenth, unit="points"),
        judge("adaptive computes priorities less than 70 % as often (the paper: 60)", fewer),
    )


def claims_beyond(results: Results) -> tuple[Claim, ...]:
    """What a learned model should add."""
    return (has_most(results, "expected", ("IJOIN",), "expected importance beats past matches", "skew"),)
