"""Section 5's figures, Table 6, what goes beyond them, and what the paper says of them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Final, get_args

import numpy as np

from tidegate.experiments import recorded
from tidegate.experiments.claims import Claim, Interval, judged
from tidegate.experiments.ijoin.measured import RUNS, Measured, Workload, measured, schemes, workload_measured
from tidegate.experiments.picture import lines
from tidegate.experiments.reproduced import Reproduced
from tidegate.policies import IJoin, Offline, Policy
from tidegate.policies.ijoin import Recompute
from tidegate.types import Array

SKEWS: Final = (0.0, 1.0)
RIVALS: Final = ("FIFO", "RAND", "SIZE", "GREEDY")
LARGER: Final = 20
"""Rows of memory where schemes are to differ."""
_COLUMNS: Final = ("scheme", "importance", "size", "fairness")


def figure2(runs: int = RUNS) -> Reproduced:
    """Figure 2: memory from 5 to 20 rows, of which each side has half."""
    return _over("Figure 2: memory", {f"{m} rows": Workload(memory=m) for m in (6, 10, 14, 20)}, runs)


def figure3(runs: int = RUNS) -> Reproduced:
    """Figure 3: windows from 10 to 25 seconds."""
    return _over("Figure 3: window", {f"{w:g} s": Workload(window=w) for w in (10.0, 15.0, 20.0, 25.0)}, runs)


def figure4(runs: int = RUNS) -> Reproduced:
    """Figure 4: domains of 10 to 20 values of the same importance."""
    workloads = {f"{d} values": Workload(domain=d, level=True) for d in (10, 15, 20)}
    return _over("Figure 4: values, all equally important", workloads, runs)


def figure5(runs: int = RUNS) -> Reproduced:
    """Figure 5: unproductive after 2 to 5 seconds; the others do not change."""
    found: list[Measured] = []
    for skew in SKEWS:
        for seconds in (2.0, 3.0, 4.0, 5.0):
            named = {name: policy for name, policy in schemes(seconds).items() if "IJOIN" in name}
            found += workload_measured(f"{seconds:g} s, skew {skew:g}", Workload(skew=skew), named, runs)
    by_case = {one.case: one.importance for one in found if one.scheme == "IJOIN"}
    falls = {
        f"skew {skew:g}": _ahead(by_case[f"2 s, skew {skew:g}"], by_case[f"5 s, skew {skew:g}"])
        for skew in SKEWS
    }
    claims = (judged("the coarser the threshold, the less importance", falls),)
    return _table("Figure 5: unproductive after", found, claims)


def table6(runs: int = RUNS) -> Reproduced:
    """Table 6: when priorities are computed anew."""
    lazy: dict[str, str | Policy] = {how: IJoin(recompute=how) for how in get_args(Recompute)}
    found = [
        one for skew in SKEWS for one in workload_measured(f"skew {skew:g}", Workload(skew=skew), lazy, runs)
    ]
    runs_of = {(one.case, one.scheme): one for one in found}
    cases = list(dict.fromkeys(one.case for one in found))
    near = {
        case: _ahead(runs_of[case, "adaptive"].importance, 0.9 * runs_of[case, "successive"].importance)
        for case in cases
    }
    fewer = {
        case: Interval.of(
            70 - 100 * runs_of[case, "adaptive"].computed / runs_of[case, "successive"].computed
        )
        for case in cases
    }
    best = {
        f"{case}, {other}": _ahead(runs_of[case, "successive"].importance, runs_of[case, other].importance)
        for case in cases
        for other in ("k-successive", "adaptive")
    }
    claims = (
        judged("successive has the most importance", best),
        judged("adaptive has at least nine tenths of that", near),
        judged("adaptive computes priorities less than 70 % as often (the paper: 60)", fewer),
    )
    table = _table("Table 6: when priorities are computed", found, claims)
    rows = [(*row, f"{one.computed.mean():,.0f}") for row, one in zip(table.rows, found, strict=True)]
    return table._replace(header=(*table.header, "computed"), rows=rows)


def beyond(runs: int = RUNS) -> Reproduced:
    """What a learned model adds to past matches, and what is left to gain; matched before room is made."""
    compared = schemes() | {"OPTIMUM": Offline(weigh="importance")}
    found = [
        one
        for skew in SKEWS
        for one in workload_measured(
            f"skew {skew:g}", Workload(memory=LARGER, skew=skew), compared, runs, "probe-first"
        )
    ]
    claims = (_leads(found, "expected", ("IJOIN",), "expected importance beats past matches"),)
    return _table("beyond: matched before room is made", found, claims)


def frontier(runs: int = RUNS) -> Reproduced:
    """Importance against fairness, as `fairness` goes from 0 to 1."""
    compared: dict[str, str | Policy] = {
        f"{fairness:.3f}": IJoin(fairness=fairness) for fairness in np.linspace(0, 1, 9).tolist()
    }
    rivals = {name: schemes()[name] for name in RIVALS}
    found = [
        one
        for skew in SKEWS
        for one in workload_measured(
            f"skew {skew:g}", Workload(memory=LARGER, skew=skew), compared | rivals, runs
        )
    ]
    table = _table("importance against fairness", found)
    return table._replace(picture=_frontier([one for one in found if one.case == f"skew {SKEWS[-1]:g}"]))


def _frontier(found: Iterable[Measured]) -> str:
    places = {one.scheme: (float(one.fairness.mean()), float(one.importance.mean())) for one in found}
    ours = [place for scheme, place in places.items() if scheme not in RIVALS]
    rivals = {scheme: places[scheme] for scheme in RIVALS}
    title = "ijoin as fairness goes from 0 to 1, and its rivals"
    return lines(title, "fairness (Jain's index)", "total importance", {"ijoin": ours}, marked=rivals)


def tickers(folder: str | Path) -> Reproduced:
    """Mentions of ten tickers, each worth its count, joined with the price at the day's end."""
    left, right, window = recorded.mentions(folder)
    compared = {
        name: policy
        for name, policy in schemes(0.12 * window.length("left")).items()
        if "printed" not in name
    }
    compared["expected by age"] = IJoin(expects="age")
    a_day = 2880
    found = [
        one
        for percent in (1, 5, 10, 25, 50)
        for one in measured(
            f"{percent} %", [(left, right)], compared, window=window, memory=a_day * percent // 100,
            split=(a_day * percent // 100, 0), order="probe-first", step="instant",
        )
    ]  # fmt: skip
    return _table("mentions and prices of ten tickers: memory of a day's rows", found)


def _over(title: str, workloads: Mapping[str, Workload], runs: int) -> Reproduced:
    run = partial(workload_measured, compared=schemes(), runs=runs)
    found = [
        one
        for skew in SKEWS
        for case, workload in workloads.items()
        for one in run(f"{case}, skew {skew:g}", replace(workload, skew=skew))
    ]
    fair = {one.case: Interval.of(100 * one.fairness - 80) for one in found if one.scheme == "IJOIN"}
    claims = (
        _leads(found, "IJOIN", RIVALS, "IJOIN has the most importance"),
        _leads(found, "IJOIN", ("FIFO", "RAND"), "IJOIN has more importance than FIFO and RAND"),
        judged("IJOIN is at least 80 % fair", fair, unit="points"),
    )
    return _table(title, found, claims)


def _leads(found: Iterable[Measured], scheme: str, rivals: Iterable[str], text: str) -> Claim:
    runs = {(one.case, one.scheme): one.importance for one in found}
    cases = list(dict.fromkeys(case for case, _ in runs))
    return judged(
        text,
        {f"{c}, {rival}": _ahead(runs[c, scheme], runs[c, rival]) for c in cases for rival in rivals},
    )


def _ahead(one: Array, other: Array) -> Interval:
    """By how many percent of the other's mean one is ahead, run by run."""
    return Interval.of(100 * (one - other) / max(float(other.mean()), 1.0))


def _table(title: str, found: Iterable[Measured], claims: tuple[Claim, ...] = ()) -> Reproduced:
    rows: list[tuple[str, ...]] = [
        (
            one.case,
            one.scheme,
            _told(one.importance),
            f"{one.size.mean():,.0f}",
            f"{one.fairness.mean():.2f}",
        )
        for one in found
    ]
    return Reproduced(f"iJoin, {title}", ("", *_COLUMNS), rows, claims)


def _told(runs: Array) -> str:
    if len(runs) == 1:
        return f"{runs[0]:,.0f}"
    interval = Interval.of(runs)
    return f"{interval.mean:,.0f} ± {interval.half:,.0f}"
