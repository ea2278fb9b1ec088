"""The tournament has every workload of the papers, and each policy where it can rank rows."""

from __future__ import annotations

import pytest

from tidegate import policies
from tidegate.experiments import EXPERIMENTS
from tidegate.experiments.tournament.measured import CONTESTS, contest

ROWS = 420


@pytest.mark.parametrize("workload", CONTESTS)
def test_half_of_the_memory_gets_something_and_no_more_than_the_optimum(workload: str) -> None:
    random, best = (
        contest(workload=workload, percent=50, policy=policy, rows=ROWS, seed=1)["importance"]
        for policy in ("random", "offline")
    )
    assert 0 < random <= best


def test_policies_that_count_keys_are_left_out_where_keys_match_within_a_band() -> None:
    cells = EXPERIMENTS["tournament/synthetic"].grid.cells(most=1)
    far = {str(settings["policy"]) for settings, _ in cells if settings["workload"] == "wide area"}
    assert far == {name for name in policies.names() if not policies.find(name).by_key}


def test_plans_are_made_for_small_memories_only() -> None:
    pytest.importorskip("ortools")
    for name in ("tournament/synthetic", "tournament/recorded"):
        planned = [
            settings for settings, _ in EXPERIMENTS[name].grid.cells() if settings["policy"] == "flow_expect"
        ]
        assert {settings["percent"] for settings in planned} == {1, 5, 10}
        assert "tickers" not in {settings["workload"] for settings in planned}
