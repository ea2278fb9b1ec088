"""A cache changes the number of queries, and not the results."""

from __future__ import annotations

from collections import Counter
from datetime import date, datetime
from decimal import Decimal
from typing import Literal, get_args

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tidegate as tg
from tidegate.caching import lookup_cache
from tidegate.caching.key_codes import key_codes
from tidegate.caching.lookup_cache import Fetch, LookupCache
from tidegate.caching.policies import CacheRanking, LookupPolicy
from tidegate.caching.process_ranking import ProcessRanking
from tidegate.models import AR1, LinearTrend, Noise, Process, RandomWalk
from tidegate.types import Array, Budget, InputError

POLICIES: tuple[LookupPolicy, ...] = get_args(LookupPolicy)
RELATION = pa.table({"id": list(range(0, 40, 2)), "name": [f"name {i}" for i in range(0, 40, 2)]})


def fetch_from(relation: pa.Table, requests: list[list[int]] | None = None) -> Fetch:
    def fetch(keys: pa.Array) -> pa.Table:
        assert len(keys.unique()) == len(keys) > 0
        if requests is not None:
            requests.append(keys.to_pylist())
        return relation.filter(pc.is_in(relation.column(0), keys))

    return fetch


def split_into_batches(values: list[int | None], sizes: list[int]) -> list[list[int | None]]:
    batches, begin, turn = [], 0, 0
    while begin < len(values):
        size = sizes[turn % len(sizes)]
        batches.append(values[begin : begin + size])
        begin, turn = begin + size, turn + 1
    return batches


@given(
    st.lists(st.none() | st.integers(0, 45), max_size=80),
    st.lists(st.integers(1, 30), min_size=1, max_size=4),
    st.sampled_from(POLICIES),
    st.sampled_from(
        [None, Budget(rows=1), Budget(rows=5), Budget(rows=100), Budget(bytes=1), Budget(bytes=200)]
    ),
    st.none() | st.floats(0.5, 5),
)
def test_results_do_not_depend_on_the_cache(
    references: list[int | None],
    sizes: list[int],
    policy: LookupPolicy,
    budget: Budget | None,
    ttl: float | None,
) -> None:
    shares = {0: 0.5, 6: 0.3, 41: 0.2} if policy == "a0" else None
    cache = LookupCache(RELATION.schema, budget, policy, ttl, shares)
    names: list[str | None] = []
    found: list[bool] = []
    for now, batch in enumerate(split_into_batches(references, sizes)):
        resolved = cache.resolve(pa.array(batch, pa.int64()), fetch_from(RELATION), float(now))
        names += resolved.rows["name"].to_pylist()
        found += resolved.found.to_pylist()
        assert [h is None for h in resolved.hit.to_pylist()] == [key is None for key in batch]
        if budget is None:
            assert len(cache) == 0
        else:
            assert (len(cache) if budget.unit == "rows" else cache.nbytes) <= budget.limit
    there = [key is not None and key % 2 == 0 and key < 40 for key in references]
    assert found == there
    assert names == [
        f"name {key}" if is_there else None for key, is_there in zip(references, there, strict=True)
    ]


@pytest.mark.parametrize("policy", ["lru", "lfu", "a0"])
@pytest.mark.parametrize("capacity", [1, 3, 10])
@pytest.mark.parametrize("named", [False, True])
def test_batches_of_one_reference_hit_as_in_the_simulation(
    policy: Literal["lru", "lfu", "a0"],
    capacity: int,
    named: bool,  # noqa: FBT001
) -> None:
    numbers = np.minimum(np.random.default_rng(3).zipf(1.3, 600), 60)
    references = pa.array([f"key {n}" for n in numbers]) if named else pa.array(numbers)
    relation = pa.table({"key": references.unique()})
    # Not quite how often they come, and one not at all.
    shares = {key: 1.0 / (2 + i) for i, key in enumerate(references.unique().to_pylist()[1:])}
    probabilities = shares if policy == "a0" else None
    cache = LookupCache(relation.schema, Budget(rows=capacity), policy, probabilities=probabilities)
    hits = [
        cache.resolve(references.slice(i, 1), fetch_from(relation), 0.0).hit[0].as_py()
        for i in range(len(references))
    ]
    assert 0 < sum(hits) < len(hits)
    assert hits == tg.simulate_cache(references, capacity, policy, probabilities=probabilities).hit.tolist()


class CountingRanking:
    """A ranking that delegates to another, counts the ranked rows, and sets whether their order is steady."""

    def __init__(self, by: CacheRanking, *, steady: bool) -> None:
        self._by, self.steady, self.rows = by, steady, 0
        self.observe = by.observe

    def scores(self, codes: Array, last: Array, lifetime: float) -> Array:
        self.rows += len(codes)
        return self._by.scores(codes, last, lifetime)


def counting_cache(
    policy: LookupPolicy, capacity: int, *, steady: bool
) -> tuple[LookupCache, CountingRanking]:
    shares = {f"{i}": 1.0 / (1 + i % 97) for i in range(2_000)} if policy == "a0" else None
    cache = LookupCache(pa.schema([("id", pa.string())]), Budget(rows=capacity), policy, probabilities=shares)
    assert cache._ranking is not None
    cache._ranking = ranking = CountingRanking(cache._ranking, steady=steady)
    return cache, ranking


@pytest.mark.parametrize("policy", ["lru", "lfu", "a0", "heeb"])
@pytest.mark.parametrize("size", [1, 7, 40])
def test_ranking_the_evictable_rows_equals_ranking_all(policy: LookupPolicy, size: int) -> None:
    some, every = (counting_cache(policy, 200, steady=steady) for steady in (True, False))
    # What is frequent moves on.
    numbers = np.random.default_rng(4).zipf(1.2, 1_000) % 400 + np.arange(1_000) // 10
    references = pa.array(numbers).cast(pa.string())
    for begin in range(0, len(references), size):
        part = references.slice(begin, size)
        hits = [
            cache.resolve(part, lambda keys: pa.table({"id": keys}), 0.0).hit for cache, _ in (some, every)
        ]
        assert hits[0] == hits[1]
    assert some[1].rows < every[1].rows


def test_a_chunk_costs_the_same_in_a_large_cache() -> None:
    """Few of many rows are ranked, and only recent ones are copied."""
    rows, (cache, ranking) = 100_000, counting_cache("lru", 100_000, steady=True)
    cache.resolve(pa.array(range(rows)).cast(pa.string()), lambda keys: pa.table({"id": keys}), 0.0)
    settled = set()
    for i in range(50):
        keys = pa.array(range(rows + 100 * i, rows + 100 * i + 100)).cast(pa.string())
        cache.resolve(keys, lambda keys: pa.table({"id": keys}), 0.0)
        settled.add(cache._store.rows[0].column(0).chunk(0).buffers()[2].address)
        assert len(cache) == rows
        assert cache._store.used - 1 <= rows * 9 // 8
    assert ranking.rows < 5 * rows
    assert len(settled) <= 2


def test_keys_with_equal_codes_are_distinguished(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lookup_cache, "key_codes", lambda keys: key_codes(keys) % 3)
    cache = LookupCache(RELATION.schema, Budget(rows=8), "lru")
    hits = 0
    for batch in ([0, 2, 6, 8], [6, 8, 3], [3, 9], [9, 12, 6], [0, 1, 2], [2, 1, 0]):
        resolved = cache.resolve(pa.array(batch), fetch_from(RELATION), 0.0)
        assert resolved.rows["name"].to_pylist() == [None if key % 2 else f"name {key}" for key in batch]
        hits += sum(resolved.hit.to_pylist())
        assert len(cache) <= 8
    assert hits > 0


@pytest.mark.slow
def test_more_text_than_an_array_holds_is_returned_in_chunks() -> None:
    relation = pa.table({"id": [1, 2], "text": ["x" * 40_000, "y" * 40_000]})
    cache = LookupCache(relation.schema, Budget(rows=2), "lru")
    rows = cache.resolve(pa.array([1, 2] * 30_000), fetch_from(relation), 0.0).rows
    assert (rows.num_rows, rows["text"].num_chunks) == (60_000, 2)
    assert [chunk[-1].as_py()[0] for chunk in rows["text"].chunks] == ["y", "y"]


def test_cached_and_missing_keys_are_not_fetched_again() -> None:
    requests: list[list[int]] = []
    cache = LookupCache(RELATION.schema, Budget(rows=3), "lru")
    for batch in ([2, 3, 2], [3, 2], [4, 3]):
        cache.resolve(pa.array(batch), fetch_from(RELATION, requests), 0.0)
    assert requests == [[2, 3], [4]]


def test_misses_of_a_batch_are_fetched_together() -> None:
    requests: list[list[int]] = []
    cache = LookupCache(RELATION.schema, None, "lru")
    cache.resolve(pa.array([1, 2, None, 1, 7]), fetch_from(RELATION, requests), 0.0)
    assert requests == [[1, 2, 7]]


def test_a_row_is_fetched_again_after_its_time_to_live() -> None:
    cache = LookupCache(RELATION.schema, Budget(rows=9), "lru", ttl=10.0)
    changed = RELATION.set_column(1, "name", pa.array(["new"] * len(RELATION)))

    def at(now: float, relation: pa.Table, *keys: int) -> list[str | None]:
        names: list[str | None] = (
            cache.resolve(pa.array(keys), fetch_from(relation), now).rows["name"].to_pylist()
        )
        return names

    assert at(0.0, RELATION, 2) == ["name 2"]
    assert at(9.9, changed, 2, 4) == ["name 2", "new"]
    assert at(10.0, changed, 2) == ["new"]
    assert len(cache) == 2
    # What is stale makes room, though nobody requests for it again.
    assert at(20.0, changed, 6) == ["new"]
    assert len(cache) == 1


def test_heeb_follows_a_change_that_lfu_cannot() -> None:
    """Keys were frequent for long and then are not: their counts keep them in the cache of lfu."""
    rng = np.random.default_rng(5)
    relation = pa.table({"id": np.arange(2_000)})
    references = np.concatenate([rng.integers(0, 20, 20_000), rng.integers(100, 120, 4_000)])
    hits: Counter[str] = Counter()
    for policy in ("heeb", "lfu"):
        cache = LookupCache(relation.schema, Budget(rows=20), policy)
        for part in np.split(references, 240):
            hits[policy] += sum(cache.resolve(pa.array(part), fetch_from(relation), 0.0).hit.to_pylist())
    assert hits["heeb"] > hits["lfu"] + 3_000


def count_hits(policy: LookupPolicy, references: Array, capacity: int, size: int) -> tuple[int, LookupCache]:
    """The hits for a relation that has every key, and the cache."""
    cache = LookupCache(pa.schema([("id", pa.int64())]), Budget(rows=capacity), policy)
    hits = 0
    for begin in range(0, len(references), size):
        part = pa.array(references[begin : begin + size])
        hits += pc.sum(cache.resolve(part, lambda keys: pa.table({"id": keys}), 0.0).hit).as_py()
        assert len(cache) <= capacity
    return hits, cache


@pytest.mark.parametrize(
    ("process", "capacity", "size"),
    [
        (AR1(56, 0.72, 42.2), 100, 16),
        (AR1(10, 0.95, 10.0), 100, 16),
        (RandomWalk(0, Noise(sigma=5.0)), 100, 16),
        (RandomWalk(0, Noise(sigma=5.0)), 20, 300),
        (LinearTrend(0.5, 0, Noise(bound=30)), 20, 16),
        (LinearTrend(1, 0, Noise(sigma=100.0)), 90, 3_000),
    ],
    ids=lambda given: type(given).__name__ if isinstance(given, Process) else str(given),
)
def test_heeb_learns_a_process_and_hits_more_often_than_lru_and_lfu(
    process: AR1 | RandomWalk | LinearTrend, capacity: int, size: int
) -> None:
    references = process.sample(12_000 if size > 1_000 else 3_000, np.random.default_rng(7))
    hits = {policy: count_hits(policy, references, capacity, size) for policy in ("heeb", "lru", "lfu")}
    running = hits["heeb"][1]._ranking
    assert isinstance(running, ProcessRanking)
    assert running.learned is not None
    assert type(running.learned.process) is type(process)
    assert hits["heeb"][0] > max(hits["lru"][0], hits["lfu"][0])


def test_heeb_skips_large_batches_without_a_process_and_learns_one_later() -> None:
    rng, looks = np.random.default_rng(3), []
    independent = rng.integers(0, 9_000, 40 * 3_000)
    cache = count_hits("heeb", independent, 90, 3_000)[1]
    running = cache._ranking
    assert isinstance(running, ProcessRanking)
    line = LinearTrend(1, 0, Noise(sigma=100.0)).sample(20 * 3_000, rng)
    for part in np.split(line, 20):
        cache.resolve(pa.array(part), lambda keys: pa.table({"id": keys}), 0.0)
        looks.append(running.learned is not None)
    assert 0 < looks.index(True) < 16
    assert running.learned is not None
    assert isinstance(running.learned.process, LinearTrend)
    # And from then on it looks at each: the line has moved on.
    learner = running._learner
    cache.resolve(pa.array(line[-3_000:]), lambda keys: pa.table({"id": keys}), 0.0)
    assert running._learner is not learner


def test_heeb_ranks_by_shares_without_a_process_or_with_text_keys() -> None:
    draws = np.minimum(np.random.default_rng(3).zipf(1.3, 3_000), 500)
    assert count_hits("heeb", draws, 20, 16)[0] > count_hits("lru", draws, 20, 16)[0]
    walk = pa.array(RandomWalk(0, Noise(sigma=5.0)).sample(300, np.random.default_rng(7)))
    cache = LookupCache(pa.schema([("id", pa.string())]), Budget(rows=9), "heeb")
    resolved = cache.resolve(walk.cast(pa.string()), lambda keys: pa.table({"id": keys}), 0.0)
    assert resolved.found.to_pylist() == [True] * 300
    assert not isinstance(cache._ranking, ProcessRanking)


@pytest.mark.parametrize("scale", [1e3, 1e9, 1e17])
def test_a_process_too_wide_for_a_table_ranks_by_shares(scale: float) -> None:
    steps = np.random.default_rng(2).normal(scale=scale / 10, size=600)
    walk, level = np.cumsum(steps), [0.0]
    for step in steps:
        level.append(0.5 * level[-1] + step)
    for references in (walk, np.array(level)):
        assert count_hits("heeb", references.astype(np.int64), 20, 50)[0] >= 0


def test_probabilities_need_a0_and_keys_of_the_relation() -> None:
    with pytest.raises(InputError, match="give them with policy 'a0' only"):
        LookupCache(RELATION.schema, Budget(rows=1), "a0")
    with pytest.raises(InputError, match="give them with policy 'a0' only"):
        LookupCache(RELATION.schema, Budget(rows=1), "lru", probabilities={1: 1.0})
    with pytest.raises(InputError, match=r"keys that are not int64 .*use the keys of the relation"):
        LookupCache(RELATION.schema, Budget(rows=1), "a0", probabilities={"ann": 1.0})
    with pytest.raises(InputError, match="a probability is NaN"):
        LookupCache(RELATION.schema, Budget(rows=1), "a0", probabilities={1: float("nan")})


def test_duplicate_keys_are_refused_if_they_are_looked_up() -> None:
    double = pa.table({"id": [1, 2, 2, 3, 3], "name": list("abcde")})
    cache = LookupCache(double.schema, Budget(rows=9), "lru")

    def fetch(_: pa.Array) -> pa.Table:
        """Gives what it was not requests for, too, as a database may whose keys compare without case."""
        return double.slice(0, 3)

    assert cache.resolve(pa.array([1]), fetch, 0.0).rows["name"].to_pylist() == ["a"]
    with pytest.raises(InputError, match="several rows whose id is 2, but a lookup returns one"):
        cache.resolve(pa.array([2]), fetch, 0.0)


@pytest.mark.parametrize(
    "keys",
    [
        pa.array([True, False]),
        pa.array([1, -1], pa.int8()),
        pa.array([date(2026, 1, 1), date(1, 1, 1)]),
        pa.array([datetime(2026, 1, 1), datetime(9999, 1, 1)], pa.timestamp("us", "UTC")),  # noqa: DTZ001
        pa.array([Decimal("1.10"), Decimal("-1.10")]),
        pa.array(["", "ключ"]),
        pa.array([b"\x00", b"\x00\x00"]),
        pa.array(["x", "a", "b"]).slice(1),
    ],
    ids=lambda keys: str(keys.type),
)
def test_keys_of_every_type(keys: pa.Array) -> None:
    relation = pa.table({"key": keys, "at": [0, 1]})
    cache = LookupCache(relation.schema, Budget(rows=2), "heeb")
    for expected in (False, True):
        resolved = cache.resolve(pa.concat_arrays([keys, keys]), fetch_from(relation), 0.0)
        assert resolved.rows["at"].to_pylist() == [0, 1, 0, 1]
        assert resolved.hit.to_pylist() == [expected] * 4
    assert len(set(key_codes(keys))) == 2


def test_at_random_every_row_may_be_evicted() -> None:
    relation = pa.table({"id": np.arange(10)})

    def survivors(seed: int) -> list[bool]:
        cache = LookupCache(relation.schema, Budget(rows=5), "random", seed=seed)
        cache.resolve(pa.array(range(10)), fetch_from(relation), 0.0)
        hits: list[bool] = cache.resolve(pa.array(range(10)), fetch_from(relation), 0.0).hit.to_pylist()
        assert sum(hits) == 5
        return hits

    stayed = np.mean([survivors(seed) for seed in range(400)], axis=0)
    assert stayed == pytest.approx([0.5] * 10, abs=0.1)


def test_an_unknown_policy_lists_the_known_ones() -> None:
    with pytest.raises(InputError, match="cache policy 'mru' is not known; use one of 'heeb'"):
        LookupCache(RELATION.schema, Budget(rows=1), "mru")  # type: ignore[arg-type]
