"""Small runs of section 5 of iJoin: exact counts, and claims judged by measurements."""

from __future__ import annotations

from pathlib import Path

import pytest

import tidegate as tg
from tidegate.experiments import EXPERIMENTS, datasets
from tidegate.experiments.claims import judge_all
from tidegate.experiments.ijoin import claims, tables
from tidegate.experiments.ijoin.lazy_ijoin import LazyIJoin
from tidegate.experiments.ijoin.measures import (
    EXACT,
    Workload,
    policy_of,
    schemes,
    section5,
    ticker_importance,
)
from tidegate.experiments.results import Results
from tidegate.policies import IJoin
from tidegate.types import InputError

SHORT = {"memory": 6, "domain": 20, "skew": 1.0, "seconds": 20.0}


def test_the_workload_follows_its_parameters() -> None:
    left, right = Workload(skew=1.0, seconds=1000.0).both(seed=3)
    assert len(left) == len(right) == 5_000
    assert left.time[-1] == pytest.approx(1000, rel=0.05)
    assert left.importance is not None
    importance = dict(zip(left.keys[0].to_pylist(), left.importance.tolist(), strict=True))
    assert right.importance is not None
    others = zip(right.keys[0].to_pylist(), right.importance.tolist(), strict=True)
    assert all(importance.get(key, expected_value) == expected_value for key, expected_value in others)
    assert left.importance.min() >= 1
    assert left.importance.max() <= 100
    level, _ = Workload(level=True).both(seed=3)
    assert level.importance is not None
    assert set(level.importance.tolist()) == {1.0}


def test_a_small_run_has_golden_counts() -> None:
    found = {name: [section5(scheme=name, seed=seed, **SHORT) for seed in range(2)] for name in schemes()}  # type: ignore[arg-type]
    assert {
        name: ([one["importance"] for one in runs], [one["size"] for one in runs])
        for name, runs in found.items()
    } == {
        "EXACT": ([41546.0, 50441.0], [1052, 1224]),
        "FIFO": ([2751.0, 3173.0], [66, 80]),
        "RAND": ([1791.0, 2271.0], [43, 55]),
        "SIZE": ([4385.0, 5304.0], [137, 156]),
        "GREEDY": ([993.0, 1016.0], [12, 12]),
        "IJOIN": ([2908.0, 3290.0], [73, 85]),
        "IJOIN as printed": ([2287.0, 3071.0], [60, 70]),
        "expected": ([1341.0, 3210.0], [21, 84]),
        "expected by heeb": ([1341.0, 3210.0], [21, 84]),
    }


def test_no_scheme_exceeds_the_optimum() -> None:
    for seed in range(2):
        found = {
            name: section5(scheme=name, seed=seed, order="probe-first", **SHORT)["importance"]  # type: ignore[arg-type]
            for name in (*schemes(), "OPTIMUM")
        }
        assert found[EXACT] > found["OPTIMUM"] == max(found[name] for name in found if name != EXACT)


def judge(runs: dict[tuple[float, str], list[float]]) -> str:
    found = Results.from_runs(runs, axes=("skew", "scheme"), number="importance")
    [claim] = judge_all([claims.has_most("IJOIN", ("FIFO",), "", "skew")], found)
    return claim.verdict


def test_claims_are_judged_by_the_runs() -> None:
    ahead = {(0.0, "IJOIN"): [10.0, 11, 12], (0.0, "FIFO"): [5.0, 6, 7]}
    behind = {(1.0, "IJOIN"): [5.0, 6, 7], (1.0, "FIFO"): [10.0, 11, 12]}
    assert judge(ahead) == "holds"
    assert judge(behind) == "does not hold"
    assert judge(ahead | behind) == "holds in part"


def test_tables_2_to_4_have_the_printed_totals() -> None:
    found = Results(
        {"join": join, **row} for join in tables.JOINS for row in tables.instants(join=join, seed=0)
    )
    [claim] = judge_all(claims.TOTALS, found)
    assert claim.verdict == "holds"
    totals = found.where(time=tables.TOTAL).rows
    assert [row["importance"] for row in totals] == [36, 6, 5, 11, 13]
    wrong = Results(dict(row) | {"importance": row["importance"] + 1} for row in found.rows)
    assert judge_all(claims.TOTALS, wrong)[0].verdict == "does not hold"


def test_schemes_are_named() -> None:
    assert policy_of("ijoin 0.25") == IJoin(fairness=0.25)
    assert policy_of("adaptive") == LazyIJoin(recompute="adaptive")
    with pytest.raises(InputError, match="unknown scheme 'best'; use one of EXACT"):
        policy_of("best")


AS_IN_THE_PAPER: dict[str, tuple[float, float, float]] = {
    "EXACT": (9000.0, 500, 1.0),
    "FIFO": (500.0, 40, 1.0),
    "RAND": (600.0, 45, 0.6),
    "SIZE": (700.0, 70, 0.7),
    "GREEDY": (800.0, 50, 0.2),
    "IJOIN": (1300.0, 80, 0.82),
    "IJOIN as printed": (1200.0, 75, 0.83),
}
"""Importance, size and fairness."""


def measured(axis: str, ends: dict[float, dict[str, tuple[float, float, float]]]) -> Results:
    """Three runs for each value of an axis; all schemes vary equally between runs."""
    return Results(
        {axis: place, "skew": 0.0, "scheme": scheme, "seed": seed, "fairness": expected_value[2]}
        | {"importance": expected_value[0] + seed, "size": expected_value[1] + seed / 100}
        for place, schemes in ends.items()
        for scheme, expected_value in schemes.items()
        for seed in range(3)
    )


def test_claims_on_memory_judge_both_forms_of_ijoin() -> None:
    def verdicts(**changed: tuple[float, float, float]) -> dict[str, str]:
        found = measured("memory", {5: AS_IN_THE_PAPER, 20: AS_IN_THE_PAPER | changed})
        return {claim.text: claim.verdict for claim in judge_all(claims.MEMORY, found)}

    assert set(verdicts().values()) == {"holds"}
    worse = verdicts(**{"IJOIN as printed": (650.0, 60, 0.5)})
    assert {text for text, verdict in worse.items() if verdict != "holds"} == {
        f"IJOIN as printed {what}"
        for what in (
            "has the most importance",
            "has more results than SIZE",
            "is more than 80 % fair",
            "is fairer than all but FIFO",
        )
    }


def test_claims_on_the_window() -> None:
    grown = AS_IN_THE_PAPER | {
        "SIZE": (700.0, 70, 0.42),
        "GREEDY": (900.0, 50, 0.2),
        "IJOIN": (1400.0, 80, 0.82),
        "IJOIN as printed": (1300.0, 75, 0.83),
    }

    def verdicts(wide: dict[str, tuple[float, float, float]]) -> list[str]:
        found = measured("window", {10.0: AS_IN_THE_PAPER, 25.0: wide})
        return [claim.verdict for claim in judge_all(claims.WINDOW, found)]

    assert verdicts(grown) == ["holds"] * 8
    assert verdicts(AS_IN_THE_PAPER)[2:6] == ["does not hold", "holds", "holds", "does not hold"]


def test_claims_on_the_domain() -> None:
    few = AS_IN_THE_PAPER | {"GREEDY": (400.0, 30, 0.2)}
    many = {
        scheme: (expected_value[0] / 2, expected_value[1] / 2, expected_value[2])
        for scheme, expected_value in few.items()
    }
    found = [measured("domain", {10: first, 20: last}) for first, last in ((few, many), (many, few))]
    held, upside_down = ([claim.verdict for claim in judge_all(claims.DOMAIN, one)] for one in found)
    assert held == ["holds"] * 8
    assert upside_down[2:4] == ["does not hold"] * 2


def test_claims_on_the_threshold_and_on_recomputation() -> None:
    coarse = AS_IN_THE_PAPER | {"IJOIN": (1100.0, 80, 0.8), "IJOIN as printed": (1000.0, 80, 0.8)}
    found = measured("unproductive", {2.0: AS_IN_THE_PAPER, 5.0: coarse})
    assert [claim.verdict for claim in judge_all(claims.THRESHOLD, found)] == ["holds"] * 3
    table6 = {
        "successive": (1400, 0.81, 1000),
        "k-successive": (1200, 0.75, 100),
        "adaptive": (1300, 0.8, 600),
    }
    rows = Results(
        {
            "skew": 0.0,
            "scheme": how,
            "seed": seed,
            "importance": importance + seed,
            "fairness": fair,
            "computed": often,
        }
        for how, (importance, fair, often) in table6.items()
        for seed in range(3)
    )
    assert [claim.verdict for claim in judge_all(claims.LAZINESS, rows)] == ["holds"] * 8


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for number, ticker in enumerate(datasets.TICKERS):
        mentions, prices = (
            tmp_path / file[0].format(ticker) for file in (datasets.MENTIONS, datasets.PRICES)
        )
        mentions.parent.mkdir(parents=True, exist_ok=True)
        prices.parent.mkdir(exist_ok=True)
        mentions.write_text(f"timestamp,value\n2015-02-26 20:00:00,{number}\n2015-02-28 20:00:00,7\n")
        prices.write_text("Date,Close,Volume\n2015-02-26,1.5,1000\n2015-03-02,1.5,1000\n")
    return tmp_path


def test_mentions_join_the_price_at_the_end_of_the_day(folder: Path) -> None:
    left, right, window = datasets.mentions(folder)
    assert (len(left), len(right)) == (20, 10)  # the second price is after the last mention
    report = tg.simulate(left, right, window=window)
    assert report.results == 10
    assert report.importance == sum(range(10))


def test_tickers_are_compared(folder: Path) -> None:
    assert ticker_importance(scheme="GREEDY", percent=1, data=str(folder), seed=0)["importance"] == 45


def test_every_figure_s_claims_can_be_judged() -> None:
    for name in ("figure2", "figure3", "figure4", "figure5", "table6", "beyond"):
        experiment = EXPERIMENTS[f"ijoin/{name}"]
        found = Results(
            settings
            | {"seed": seed, "importance": 1.0 + seed, "size": 9, "fairness": 0.9, "computed": 10 + seed}
            for settings, seed in experiment.grid.cells(quick=True)
        )
        assert judge_all(experiment.claims, found)


def test_section_5_uses_the_defaults_of_ijoin() -> None:
    assert schemes()["IJOIN"] == IJoin(unproductive=3.0)
