"""What the paper says of its tables and figures, held against what was measured."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from tidegate.experiments.claims import Claim, Interval, judged
from tidegate.experiments.ijoin.tables import TOTAL
from tidegate.experiments.results import Results

RIVALS: Final = ("FIFO", "RAND", "SIZE", "GREEDY")
PRINTED: Final = {"exact": 36.0, "fifo": 6.0, "rand": 5.0, "size": 11.0, "greedy": 13.0}
"""Total importances of Tables 2 to 4."""
_FAIR: Final = 80


def cases(results: Results, *axes: str) -> Iterator[tuple[str, dict[str, object]]]:
    """Every combination of some axes, in words and as settings."""
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


def leads(results: Results, scheme: str, rivals: Iterable[str], text: str, *axes: str) -> Claim:
    """Whether a scheme has more importance than its rivals in all cases."""
    return judged(
        text,
        {
            f"{told}, {rival}": _ahead(results, {**case, "scheme": scheme}, {**case, "scheme": rival})
            for told, case in cases(results, *axes)
            for rival in rivals
        },
    )


def _ahead(
    results: Results, one: Mapping[str, object], other: Mapping[str, object], part: float = 1.0
) -> Interval:
    return Interval.of(results.ahead("importance", one, other, part))


def claims_of_totals(results: Results) -> tuple[Claim, ...]:
    """Tables 2 to 4: what is printed below them."""
    totals = {row["join"]: float(row["importance"]) for row in results.rows if row["time"] == TOTAL}
    off = {
        f"{join}: {total:g}, printed {PRINTED[join]:g}": Interval.exactly(0.5 - abs(total - PRINTED[join]))
        for join, total in totals.items()
    }
    return (judged("the total importance is as printed (less than 0.5 off)", off, unit=""),)


def claims_of_axis(results: Results, axis: str) -> tuple[Claim, ...]:
    """What section 5 says of each of Figures 2 to 4."""
    fair = {
        told: Interval.of(100 * results.runs("fairness", scheme="IJOIN", **case) - _FAIR)
        for told, case in cases(results, axis, "skew")
    }
    return (
        leads(results, "IJOIN", RIVALS, "IJOIN has the most importance", axis, "skew"),
        leads(
            results, "IJOIN", ("FIFO", "RAND"), "IJOIN has more importance than FIFO and RAND", axis, "skew"
        ),
        judged("IJOIN is at least 80 % fair", fair, unit="points"),
    )


def claims_of_threshold(results: Results) -> tuple[Claim, ...]:
    """What section 5.4 says of Figure 5."""
    least, most = min(results.values("unproductive")), max(results.values("unproductive"))
    falls = {
        told: _ahead(
            results,
            {**case, "scheme": "IJOIN", "unproductive": least},
            {**case, "scheme": "IJOIN", "unproductive": most},
        )
        for told, case in cases(results, "skew")
    }
    return (judged("the coarser the threshold, the less importance", falls),)


def claims_of_laziness(results: Results) -> tuple[Claim, ...]:
    """What section 5.5 says of Table 6."""
    best: dict[str, Interval] = {}
    near: dict[str, Interval] = {}
    fewer: dict[str, Interval] = {}
    for told, case in cases(results, "skew"):
        successive, adaptive = {**case, "scheme": "successive"}, {**case, "scheme": "adaptive"}
        best |= {
            f"{told}, {other}": _ahead(results, successive, {**case, "scheme": other})
            for other in ("k-successive", "adaptive")
        }
        near[told] = _ahead(results, adaptive, successive, 0.9)
        some, all_ = results.paired("computed", adaptive, successive)
        fewer[told] = Interval.of(70 - 100 * some / all_)
    return (
        judged("successive has the most importance", best),
        judged("adaptive has at least nine tenths of that", near),
        judged("adaptive computes priorities less than 70 % as often (the paper: 60)", fewer),
    )


def claims_beyond(results: Results) -> tuple[Claim, ...]:
    """What a learned model is to add."""
    return (leads(results, "expected", ("IJOIN",), "expected importance beats past matches", "skew"),)
