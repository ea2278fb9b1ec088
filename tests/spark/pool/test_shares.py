"""The rules of a pool: in any order of runs, crashes and repetitions, limits stay within the budget."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tidegate as tg
from tests.models.payoffs import payoffs
from tidegate.allocation import optimal_division
from tidegate.models import Payoff
from tidegate.spark.pool.folder import JsonFolder, PoolClient
from tidegate.spark.pool.pool import Pool
from tidegate.spark.pool.shares import (
    FIRST,
    MIN_SHARE,
    Grant,
    WrittenPayoff,
    best_shares,
    first_shares,
    number_of,
)
from tidegate.types import InputError


class InMemory(JsonFolder):
    """A folder in memory."""

    def __init__(self) -> None:
        self.files: dict[str, dict[str, Any]] = {}

    def names(self) -> list[str]:
        return sorted(self.files)

    def read(self, name: str) -> dict[str, Any] | None:
        return self.files.get(name)

    def write(self, name: str, content: dict[str, Any]) -> None:
        assert not (name.startswith("epoch-") and self.files.get(name, content) != content)
        self.files[name] = content

    def delete(self, name: str) -> None:
        del self.files[name]


@dataclass
class Bucket:
    member: str
    number: int
    first: int
    query: str
    batch: int = 0
    committed: Grant | None = None
    before: Grant | None = None
    payoff: WrittenPayoff | None = None
    attempts: list[Grant] = field(default_factory=list)
    clients: list[PoolClient] = field(default_factory=list)

    @property
    def may_hold(self) -> int:
        """The largest limit, now or after any attempt is committed."""
        limits = [attempt.limit for attempt in self.attempts]
        return max([*limits, self.committed.limit if self.committed else 0])


class PoolSimulation:
    """Buckets that run in any order over one pool."""

    def __init__(self, total: int, members: dict[str, float], buckets: dict[str, int]) -> None:
        self.pool, self.counts, self.folder = Pool(total, "/nowhere", members), buckets, InMemory()
        shares = first_shares(total, members, buckets)
        self.buckets = [
            Bucket(name, i, share, f"query of {name}")
            for name in members
            for i, share in enumerate(shares[name])
        ]

    def client(self, bucket: Bucket) -> PoolClient:
        client = PoolClient(self.pool.member(bucket.member), self.counts[bucket.member], bucket.query)
        client.__dict__["_folder"] = self.folder
        return client

    def begin(self, bucket: Bucket, client: PoolClient | None = None) -> Grant:
        """Begin its micro-batch, or begin it again, perhaps with a stale view."""
        client = client or self.client(bucket)
        chosen = client.grant(bucket.number, bucket.batch, bucket.committed, bucket.first, bucket.payoff)
        bucket.attempts.append(chosen)
        bucket.clients.append(client)
        self.check()
        return chosen

    def commit(self, bucket: Bucket, which: int = -1) -> None:
        bucket.before, bucket.committed = bucket.committed, bucket.attempts[which]
        bucket.batch, bucket.attempts = bucket.batch + 1, []
        self.check()

    def run(self, bucket: Bucket) -> None:
        self.begin(bucket)
        self.commit(bucket)

    def stale(self, bucket: Bucket) -> None:
        """Begin with a view that an earlier attempt had: a listing that lags behind."""
        if bucket.clients:
            self.begin(bucket, bucket.clients[-4:][0])

    def crash(self, bucket: Bucket) -> None:
        bucket.attempts = []

    def restart(self, bucket: Bucket) -> None:
        """Start with a new checkpoint."""
        bucket.query, bucket.batch = bucket.query + "'", 0
        bucket.committed, bucket.before, bucket.clients, bucket.attempts = None, None, [], []

    def write_late(self, bucket: Bucket) -> None:
        """An abandoned attempt of the micro-batch before writes its status late."""
        if bucket.batch:
            client = self.client(bucket)
            client.grant(bucket.number, bucket.batch - 1, bucket.before, bucket.first, bucket.payoff)

    def forget(self, bucket: Bucket) -> None:
        self.folder.files.pop(f"bucket-{bucket.member}-{bucket.number}", None)

    def check(self) -> None:
        assert sum(bucket.may_hold for bucket in self.buckets) <= self.pool.total.limit

    def newest(self) -> tuple[str, dict[str, list[int]]]:
        names = [name for name in self.folder.names() if name.startswith("epoch-")]
        if not names:
            return FIRST, first_shares(self.pool.total.limit, self.pool.weights, self.counts)
        return names[-1].removeprefix("epoch-"), self.folder.files[names[-1]]["shares"]

    def settle(self, rounds: int = 12) -> None:
        for _ in range(rounds):
            for bucket in self.buckets:
                bucket.attempts = []
                self.run(bucket)


worlds = st.builds(
    lambda spare, members: PoolSimulation(
        spare + MIN_SHARE * 16 * sum(buckets for _, buckets in members),
        {f"m{i}": weight for i, (weight, _) in enumerate(members)},
        {f"m{i}": buckets for i, (_, buckets) in enumerate(members)},
    ),
    st.integers(0, 500),
    st.lists(st.tuples(st.floats(0.5, 4), st.integers(1, 3)), min_size=1, max_size=3),
)
written_payoffs = payoffs().map(lambda payoff: (payoff.memory.tolist(), payoff.results.tolist()))
KINDS = ["run", "run", "run", "begin", "begin", "commit", "crash", "stale", "learn"]


def disturb(world: PoolSimulation, data: st.DataObject, kinds: list[str], steps: int = 60) -> None:
    """Apply random actions to random buckets."""
    for bucket in world.buckets:
        bucket.payoff = data.draw(written_payoffs)
    for _ in range(data.draw(st.integers(0, steps))):
        bucket = world.buckets[data.draw(st.integers(0, len(world.buckets) - 1))]
        kind = data.draw(st.sampled_from(kinds))
        if kind == "learn":
            bucket.payoff = data.draw(written_payoffs)
        elif kind == "commit":
            if bucket.attempts:
                world.commit(bucket, data.draw(st.integers(0, len(bucket.attempts) - 1)))
        else:
            getattr(world, kind)(bucket)


@settings(max_examples=300)
@given(worlds, st.data())
def test_limits_never_add_up_to_more_than_the_budget(world: PoolSimulation, data: st.DataObject) -> None:
    disturb(world, data, [*KINDS, "forget", "write_late"])


@settings(max_examples=300)
@given(worlds, st.data())
def test_limits_stay_within_the_budget_when_queries_restart(
    world: PoolSimulation, data: st.DataObject
) -> None:
    disturb(world, data, [*KINDS, "restart"])


@given(worlds, st.data())
def test_all_buckets_reach_the_newest_epoch_and_stay_there(
    world: PoolSimulation, data: st.DataObject
) -> None:
    disturb(world, data, [*KINDS, "forget", "write_late", "restart"])
    world.settle()
    name, shares = world.newest()
    for bucket in world.buckets:
        assert bucket.committed
        assert bucket.committed.epoch == name
        assert bucket.committed.limit == shares[bucket.member][bucket.number]
    world.settle()
    assert world.newest()[0] == name
    assert len(world.folder.files) <= 1 + len(world.buckets) + 9


@given(worlds, st.data())
def test_a_micro_batch_that_is_run_again_decides_the_same(world: PoolSimulation, data: st.DataObject) -> None:
    disturb(world, data, KINDS)
    for bucket in world.buckets:
        bucket.attempts = []
        first = world.begin(bucket)
        for other in world.buckets:
            if other is not bucket and not other.attempts:
                world.run(other)
        bucket.payoff = data.draw(written_payoffs)
        assert world.begin(bucket) == first


@given(worlds, st.data())
def test_shares_use_the_whole_budget_and_leave_each_a_part(
    world: PoolSimulation, data: st.DataObject
) -> None:
    disturb(world, data, ["run"], steps=5)
    world.settle(2)
    statuses = {(b.member, b.number): world.client(b)._status(b.member, b.number) for b in world.buckets}
    total, weights = world.pool.total.limit, world.pool.weights
    shares = best_shares(total, weights, {key: status for key, status in statuses.items() if status})
    assert shares
    assert sum(map(sum, shares.values())) == total
    for name, first in first_shares(total, weights, world.counts).items():
        assert all(share >= max(MIN_SHARE, was // 10) for share, was in zip(shares[name], first, strict=True))


@given(st.lists(st.floats(0.1, 9), min_size=1, max_size=5), st.integers(0, 300), st.data())
def test_at_first_the_budget_is_divided_by_weight(
    weights: list[float], spare: int, data: st.DataObject
) -> None:
    names = {f"m{i}": weight for i, weight in enumerate(weights)}
    counts = {name: data.draw(st.integers(1, 4)) for name in names}
    total = len(weights) + spare
    shares = first_shares(total, names, counts)
    assert sum(map(sum, shares.values())) == total
    for name, weight in names.items():
        assert abs(sum(shares[name]) - total * weight / sum(weights)) <= len(weights) + 1
        assert max(shares[name]) - min(shares[name]) <= 1


def test_shares_change_only_once_all_payoffs_are_known() -> None:
    world = PoolSimulation(100, {"a": 1.0, "b": 1.0}, {"a": 1, "b": 1})
    world.buckets[0].payoff = ([0.0, 90.0], [0.0, 90.0])
    world.settle()
    assert world.newest()[0] == FIRST
    world.buckets[1].payoff = ([0.0, 10.0], [0.0, 5.0])
    world.settle()
    assert number_of(world.newest()[0]) == 1
    assert world.newest()[1] == {"a": [90], "b": [10]}


def test_a_small_change_does_not_change_the_shares() -> None:
    world = PoolSimulation(1_000, {"a": 1.0, "b": 1.0}, {"a": 1, "b": 1})
    world.buckets[0].payoff, world.buckets[1].payoff = ([0.0, 500.0], [0.0, 1.0]), ([0.0, 520.0], [0.0, 1.0])
    world.settle()
    assert world.newest()[0] == FIRST
    world.buckets[1].payoff = ([0.0, 700.0], [0.0, 1.0])
    world.settle()
    assert world.newest()[1] == {"a": [417], "b": [583]}


def test_the_budget_stays_in_use_while_models_change() -> None:
    world, rng = PoolSimulation(10_000, {"a": 1.0, "b": 1.0}, {"a": 2, "b": 2}), np.random.default_rng(1)
    used = []
    for _ in range(300):
        for name in rng.permutation(["a", "b"]):
            for bucket in (bucket for bucket in world.buckets if bucket.member == name):
                # Linear payoffs, so that the smallest difference of slopes moves all rows.
                bucket.payoff = ([0.0, 5_000 * float(rng.uniform(0.8, 1.2))], [0.0, 1.0])
                world.run(bucket)
        used.append(sum(bucket.committed.limit for bucket in world.buckets if bucket.committed))
    assert np.mean(used) > 0.6 * world.pool.total.limit


def test_weights_set_the_recalls() -> None:
    world = PoolSimulation(900, {"a": 1.0, "b": 2.0}, {"a": 1, "b": 2})
    for bucket in world.buckets:
        size = 1000.0 if bucket.member == "a" else 500.0
        bucket.payoff = ([0.0, size], [0.0, 1.0])
    world.settle()
    assert world.newest()[1] == {"a": [300], "b": [300, 300]}


def test_a_query_that_stopped_keeps_its_share_and_nothing_moves() -> None:
    world = PoolSimulation(100, {"a": 1.0, "b": 1.0}, {"a": 1, "b": 1})
    for bucket in world.buckets:
        bucket.payoff = ([0.0, 90.0], [0.0, 90.0])
        world.run(bucket)
    running, stopped = world.buckets
    running.payoff = ([0.0, 1000.0], [0.0, 90.0])
    for _ in range(9):
        world.run(running)
    assert running.committed
    assert running.committed.limit == 50
    assert number_of(world.newest()[0]) == 1
    for _ in range(3):
        world.run(stopped)
        world.run(running)
    assert stopped.committed
    assert running.committed.limit + stopped.committed.limit == 100
    assert running.committed.limit > 80


@pytest.mark.parametrize(
    ("change", "parts"),
    [
        ({"total": 90}, ["total=100", "90"]),
        ({"unit": "bytes"}, ["unit='rows'", "'bytes'"]),
        ({"members": {"a": 1.0, "b": 2.0}}, ["members=", "2.0"]),
        ({"buckets": 3}, ["'a' was in the pool", "with 2 buckets, now it has 3"]),
    ],
    ids=str,
)
def test_another_pool_at_the_same_path_is_refused(change: dict[str, Any], parts: list[str]) -> None:
    world = PoolSimulation(100, {"a": 1.0, "b": 1.0}, {"a": 2, "b": 1})
    world.run(world.buckets[0])
    total, unit = change.get("total", 100), change.get("unit", "rows")
    budget = tg.Budget(rows=total) if unit == "rows" else tg.Budget(bytes=total)
    pool = Pool(budget, "/nowhere", change.get("members", world.pool.weights))
    client = PoolClient(pool.member("a"), change.get("buckets", 2), "another")
    client.__dict__["_folder"] = world.folder
    with pytest.raises(InputError) as caught:
        client.grant(0, 0, None, 25, None)
    for part in [*parts, "another path"]:
        assert part in str(caught.value)


def test_a_state_of_another_pool_begins_at_the_first_share() -> None:
    old, new = (PoolSimulation(100, {"a": 1.0}, {"a": 2}) for _ in range(2))
    for bucket, size in zip(old.buckets, (90.0, 10.0), strict=True):
        bucket.payoff = ([0.0, size], [0.0, size])
    old.settle()
    assert [b.committed and b.committed.limit for b in old.buckets] == [90, 10]
    for was, bucket in zip(old.buckets, new.buckets, strict=True):
        bucket.committed = was.committed
        chosen = new.client(bucket).grant(bucket.number, 40, was.committed, bucket.first, None)
        assert (chosen.epoch, chosen.limit) == (FIRST, 50)


class TestOptimalDivision:
    @given(st.lists(payoffs(), min_size=1, max_size=4), st.integers(0, 60))
    def test_no_other_division_yields_much_more(self, parts: list[Payoff], spare: int) -> None:
        memory = len(parts) + spare
        shares = optimal_division(parts, memory)
        assert sum(shares) == memory
        assert min(shares) >= 1
        best = max(part.slopes.max(initial=0) for part in parts)
        joint = parts[0]
        for part in parts[1:]:
            joint = joint.shared(part)
        reached = sum(part.at(share) for part, share in zip(parts, shares, strict=True))
        # Whole rows, one for each part, and gains that count as equal.
        assert reached >= 0.9 * joint.at(float(memory)) - 2 * len(parts) * best

    @given(payoffs(), st.integers(1, 5), st.integers(0, 60))
    def test_like_parts_get_like_shares(self, part: Payoff, count: int, spare: int) -> None:
        shares = optimal_division([part] * count, count + spare)
        assert max(shares) - min(shares) <= 1


class TestPool:
    @pytest.mark.parametrize(
        ("settings", "message"),
        [
            ({"budget": None}, "a pool needs a limit"),
            ({"budget": 3}, "3 rows is too small for 2 members; give at least 4"),
            ({"budget": 0}, "holds nothing"),
            ({"members": []}, "name at least one"),
            ({"members": "a"}, "give a list, such as ['a']"),
            ({"members": ["a", "a"]}, "twice"),
            ({"members": {"a": 0}}, "the weight of 'a' is 0"),
            ({"members": ["a/b"]}, "'a/b' cannot be part of a file name"),
        ],
        ids=str,
    )
    def test_wrong_settings_are_refused(self, settings: dict[str, Any], message: str) -> None:
        with pytest.raises(InputError) as caught:
            Pool(**{"budget": 100, "path": "/nowhere", "members": ["a", "b"]} | settings)  # type: ignore[arg-type]
        assert message in str(caught.value)

    def test_a_list_of_names_weighs_all_alike(self) -> None:
        with Pool("1 kB", "/nowhere", ["a", "b"]) as pool:
            assert pool.weights == {"a": 1.0, "b": 1.0}
            assert pool.member("b").budget == tg.Budget(bytes=500)
            assert pool == Pool(tg.Budget(bytes=1000), "/nowhere", {"a": 1, "b": 1.0})


def test_files_appear_whole_and_are_found_again(tmp_path: Any) -> None:  # noqa: ANN401 - pytest's
    folder = JsonFolder(str(tmp_path / "a b" / "pool"))
    assert folder.names() == []
    assert folder.read("x") is None
    folder.write("x", {"n": 1})
    folder.write("x", {"n": 2})
    folder.write("y", {})
    assert folder.names() == ["x", "y"]
    assert folder.read("x") == {"n": 2}
    folder.delete("y")
    assert [file.name for file in (tmp_path / "a b" / "pool").iterdir()] == ["x.json"]
