"""Buckets of a pool without Spark: one that needs more gets more, and all together never exceed the budget."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.spark import buckets_by_hand as by_hand
from tests.spark.pooled import Running, status, zipf_batches
from tidegate.spark.pool.pool import Pool
from tidegate.types import Budget


@pytest.mark.parametrize("budget", [Budget(rows=120), Budget(bytes=12_000)], ids=str)
@pytest.mark.parametrize("policy", ["prob", "life", "age"])
def test_two_joins_of_unequal_needs_end_with_unequal_shares(
    tmp_path: Path, budget: Budget, policy: str
) -> None:
    pool = Pool(budget, tmp_path, ["busy", "calm"])
    busy = Running(pool.member("busy"), 2, (200, 200), policy)
    calm = Running(pool.member("calm"), 2, (200, 200), policy)
    full = {
        "busy": zipf_batches(1, 24, 60, 12, 0.5, 100),
        "calm": zipf_batches(2, 24, 6, 12, 0.5, 100),
    }
    for first, second in zip(full["busy"], full["calm"], strict=True):
        for query, batch in ((busy, first), (calm, second)):
            query.run(batch)
            for held, limit in zip(query.held(budget.unit), query.limits(), strict=True):
                assert held <= limit
            assert sum(busy.limits() + calm.limits()) <= budget.limit
    assert sum(busy.limits()) > 1.5 * sum(calm.limits())
    assert sum(busy.limits() + calm.limits()) >= 0.9 * budget.limit
    last = status(tmp_path, "busy", 1)
    assert last["batch"] == 23
    assert str(last["adopted"]) >= "000000001"


def test_a_skewed_bucket_gets_more_and_the_join_more_results(tmp_path: Path) -> None:
    pooled = Running(Pool(80, tmp_path / "pool", ["only"]).member("only"), 4, (200, 200), "prob")
    # The other member of the pool never runs, so that shares do not change.
    fixed = Running(Pool(160, tmp_path / "idle", ["only", "never"]).member("only"), 4, (200, 200), "prob")
    for batch in zipf_batches(3, 40, 60, 16, 1.5, 100):
        pooled.run(batch)
        fixed.run(batch)
        assert sum(pooled.limits()) <= 80
        assert fixed.limits() == [20] * 4
    # Key 0, the most frequent, is in the first bucket.
    assert pooled.limits()[0] > 2 * max(pooled.limits()[1:])
    assert pooled.results > 1.05 * fixed.results


def test_the_grant_of_a_bucket_is_part_of_its_state(tmp_path: Path) -> None:
    pool = Pool(80, tmp_path, ["only"])
    query = Running(pool.member("only"), 2, (200, 200), "prob")
    for batch in zipf_batches(3, 20, 60, 16, 1.5, 100):
        query.run(batch)
    for bucket, saved in query.states.items():
        assert saved.grant
        assert saved.settings.limit == saved.grant.limit == query.limits()[bucket]
        assert saved.settings.limit != 40


def test_a_micro_batch_that_is_run_again_ends_in_the_same_state(tmp_path: Path) -> None:
    pool = Pool(120, tmp_path, ["busy", "calm"])
    busy, calm = (Running(pool.member(name), 2, (200, 200), "prob") for name in ("busy", "calm"))
    quiet = iter(zipf_batches(2, 40, 6, 12, 0.5, 100))
    moved = 0
    for batch in zipf_batches(1, 12, 60, 12, 0.5, 100):
        before, number = busy.states, busy.batch
        busy.run(batch)
        after, limits = busy.states, busy.limits()
        # Meanwhile the other member writes a new status, and a repeated micro-batch could decide differently.
        for _ in range(3):
            calm.run(next(quiet))
        busy.states, busy.batch = before, number
        busy.run(batch)
        assert [by_hand.content(s) for s in busy.states.values()] == [
            by_hand.content(s) for s in after.values()
        ]
        moved += limits != [30, 30]
    assert moved
