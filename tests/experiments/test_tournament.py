"""The tournament has every workload of the papers, and every policy that can run on it."""

from __future__ import annotations

import pytest

from tidegate import policies
from tidegate.experiments import EXPERIMENTS
from tidegate.experiments.tournament.measures import CONTESTS, contest

ROWS = 420


@pytest.mark.parametrize("workload", CONTESTS)
def test_half_of_the_memory_gives_some_results_and_never_exceeds_the_optimum(workload: str) -> None:
    random, best = (
        contest(workload=workload, percent=50, policy=policy, rows=ROWS, seed=1)["importance"]
        for policy in ("random", "offline")
    )
    assert 0 < random <= best


def test_policies_that_count_keys_do_not_run_if_keys_match_within_a_band() -> None:
    cells = EXPERIMENTS["tournament/synthetic"].grid.cells(max_runs=1)
    far = {str(settings["policy"]) for settings, _ in cells if settings["workload"] == "wide area"}
    assert far == {name for name in policies.names() if not policies.find(name).by_key}


def test_flow_expect_runs_with_small_memories_only() -> None:
    for name in ("tournament/synthetic", "tournament/recorded"):
        planned = [
            settings for settings, _ in EXPERIMENTS[name].grid.cells() if settings["policy"] == "flow_expect"
        ]
        assert {settings["percent"] for settings in planned} == {1, 5, 10}
        assert "tickers" not in {settings["workload"] for settings in planned}
