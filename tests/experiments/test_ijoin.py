"""Section 5 of iJoin in small: exact counts, and claims judged by what was measured."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import tidegate as tg
from tidegate.experiments import ijoin, recorded
from tidegate.experiments.ijoin import figures
from tidegate.experiments.ijoin.measured import EXACT, Measured, Workload, schemes, workload_measured
from tidegate.policies import IJoin, Offline

SHORT = Workload(memory=6, domain=20, skew=1.0, seconds=20.0)


def test_the_workload_is_what_it_says() -> None:
    left, right = Workload(skew=1.0, seconds=1000.0).both(seed=3)
    assert len(left) == len(right) == 5_000
    assert left.time[-1] == pytest.approx(1000, rel=0.05)
    assert left.importance is not None
    worth = dict(zip(left.keys[0].to_pylist(), left.importance.tolist(), strict=True))
    assert right.importance is not None
    others = zip(right.keys[0].to_pylist(), right.importance.tolist(), strict=True)
    assert all(worth.get(key, told) == told for key, told in others)
    assert left.importance.min() >= 1
    assert left.importance.max() <= 100
    level, _ = Workload(level=True).both(seed=3)
    assert level.importance is not None
    assert set(level.importance.tolist()) == {1.0}


def test_a_small_run_counts_as_ever() -> None:
    found = workload_measured("", SHORT, schemes(), runs=2)
    assert {one.scheme: (one.importance.tolist(), one.size.tolist()) for one in found} == {
        "EXACT": ([41546.0, 50441.0], [1052, 1224]),
        "FIFO": ([2751.0, 3173.0], [66, 80]),
        "RAND": ([1791.0, 2271.0], [43, 55]),
        "SIZE": ([279.0, 306.0], [9, 9]),
        "GREEDY": ([2593.0, 1930.0], [28, 23]),
        "IJOIN": ([2908.0, 3290.0], [73, 85]),
        "IJOIN as printed": ([2287.0, 3071.0], [60, 70]),
        "expected": ([1341.0, 3210.0], [21, 84]),
        "expected by heeb": ([1341.0, 3210.0], [21, 84]),
    }


def test_nobody_has_more_than_the_optimum() -> None:
    compared = schemes() | {"OPTIMUM": Offline(weigh="importance")}
    found = workload_measured("", SHORT, compared, runs=2, order="probe-first")
    best = next(one.importance for one in found if one.scheme == "OPTIMUM")
    assert all((one.importance <= best).all() for one in found if one.scheme != EXACT)
    [exact] = [one for one in found if one.scheme == EXACT]
    assert (exact.importance > best).all()


def runs(case: str, scheme: str, importance: list[float]) -> Measured:
    told = np.array(importance)
    return Measured(case, scheme, told, told, told, told)


def test_claims_are_judged_by_the_runs() -> None:
    ahead = [runs("a", "IJOIN", [10, 11, 12]), runs("a", "FIFO", [5, 6, 7])]
    behind = [runs("b", "IJOIN", [5, 6, 7]), runs("b", "FIFO", [10, 11, 12])]
    judge = figures._leads
    assert judge(ahead, "IJOIN", ("FIFO",), "").verdict == "holds"
    assert judge(behind, "IJOIN", ("FIFO",), "").verdict == "does not hold"
    assert judge(ahead + behind, "IJOIN", ("FIFO",), "").verdict == "holds in part"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for number, ticker in enumerate(recorded.TICKERS):
        mentions, prices = (
            tmp_path / file[0].format(ticker) for file in (recorded.MENTIONS, recorded.PRICES)
        )
        mentions.parent.mkdir(parents=True, exist_ok=True)
        prices.parent.mkdir(exist_ok=True)
        mentions.write_text(f"timestamp,value\n2015-02-26 20:00:00,{number}\n2015-02-28 20:00:00,7\n")
        prices.write_text("Date,Close,Volume\n2015-02-26,1.5,1000\n2015-03-02,1.5,1000\n")
    return tmp_path


def test_mentions_join_the_price_at_the_end_of_the_day(folder: Path) -> None:
    left, right, window = recorded.mentions(folder)
    assert (len(left), len(right)) == (20, 10)  # the second price is after the last mention
    report = tg.simulate(left, right, window=window)
    assert report.results == 10
    assert report.importance == sum(range(10))


def test_tickers_are_compared(folder: Path) -> None:
    found = ijoin.tickers(folder)
    assert found.rows[4][:3] == ("1 %", "GREEDY", "45")


def test_every_figure_has_rows_and_claims(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(figures, "Workload", lambda **told: Workload(**{"seconds": 2.0} | told))
    monkeypatch.setattr(figures, "SKEWS", (1.0,))
    for figure in (ijoin.figure4, ijoin.figure5, ijoin.table6, ijoin.beyond):
        found = figure(runs=2)
        assert all(len(row) == len(found.header) for row in found.rows)
        assert found.claims
    frontier = ijoin.frontier(runs=1)
    assert len(frontier.rows) == 9 + len(figures.RIVALS)
    assert frontier.picture is not None
    assert frontier.picture.count("<circle") == 9 + len(figures.RIVALS)


def test_ijoin_of_section_5_needs_no_more_than_its_defaults() -> None:
    assert schemes()["IJOIN"] == IJoin(unproductive=3.0)
