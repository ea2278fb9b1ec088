"""A cache changes how often the relation is asked, and nothing else."""

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


def asking(relation: pa.Table, asked: list[list[int]] | None = None) -> Fetch:
    def fetch(keys: pa.Array) -> pa.Table:
        assert len(keys.unique()) == len(keys) > 0
        if asked is not None:
            asked.append(keys.to_pylist())
        return relation.filter(pc.is_in(relation.column(0), keys))

    return fetch


def in_batches(values: list[int | None], sizes: list[int]) -> list[list[int | None]]:
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
def test_what_comes_out_does_not_depend_on_the_cache(
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
    for now, batch in enumerate(in_batches(references, sizes)):
        resolved = cache.resolve(pa.array(batch, pa.int64()), asking(RELATION), float(now))
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
def test_one_reference_at_a_time_hits_as_simulated(
    policy: Literal["lru", "lfu", "a0"],
    capacity: int,
    named: bool,  # noqa: FBT001
) -> None:
    numbers = np.minimum(np.random.default_rng(3).zipf(1.3, 600), 60)
    references = pa.array([f"key {n}" for n in numbers]) if named else pa.array(numbers)
    relation = pa.table({"key": references.unique()})
    # Not quite how often they come, and one not at all.
    shares = {key: 1.0 / (2 + i) for i, key in enumerate(references.unique().to_pylist()[1:])}
    told = shares if policy == "a0" else None
    cache = LookupCache(relation.schema, Budget(rows=capacity), policy, probabilities=told)
    hits = [
        cache.resolve(references.slice(i, 1), asking(relation), 0.0).hit[0].as_py()
        for i in range(len(references))
    ]
    assert 0 < sum(hits) < len(hits)
    assert hits == tg.simulate_cache(references, capacity, policy, probabilities=told).hit.tolist()


class Counting:
    """Ranks as another does, counts the rows, and says whether their order is steady."""

    def __init__(self, by: CacheRanking, *, steady: bool) -> None:
        self._by, self.steady, self.rows = by, steady, 0
        self.observe = by.observe

    def scores(self, codes: Array, last: Array, lifetime: float) -> Array:
        self.rows += len(codes)
        return self._by.scores(codes, last, lifetime)


def counted(policy: LookupPolicy, capacity: int, *, steady: bool) -> tuple[LookupCache, Counting]:
    shares = {f"{i}": 1.0 / (1 + i % 97) for i in range(2_000)} if policy == "a0" else None
    cache = LookupCache(pa.schema([("id", pa.string())]), Budget(rows=capacity), policy, probabilities=shares)
    assert cache._ranking is not None
    cache._ranking = ranking = Counting(cache._ranking, steady=steady)
    return cache, ranking


@pytest.mark.parametrize("policy", ["lru", "lfu", "a0", "heeb"])
@pytest.mark.parametrize("size", [1, 7, 40])
def test_to_rank_the_weak_alone_is_as_good_as_to_rank_all(policy: LookupPolicy, size: int) -> None:
    some, every = (counted(policy, 200, steady=steady) for steady in (True, False))
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


def test_a_chunk_costs_no_more_where_the_cache_is_large() -> None:
    """Of many rows few are ranked, and none are copied but those that came of late."""
    rows, (cache, ranking) = 100_000, counted("lru", 100_000, steady=True)
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


def test_keys_that_share_a_code_are_told_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lookup_cache, "key_codes", lambda keys: key_codes(keys) % 3)
    cache = LookupCache(RELATION.schema, Budget(rows=8), "lru")
    hits = 0
    for batch in ([0, 2, 6, 8], [6, 8, 3], [3, 9], [9, 12, 6], [0, 1, 2], [2, 1, 0]):
        resolved = cache.resolve(pa.array(batch), asking(RELATION), 0.0)
        assert resolved.rows["name"].to_pylist() == [None if key % 2 else f"name {key}" for key in batch]
        hits += sum(resolved.hit.to_pylist())
        assert len(cache) <= 8
    assert hits > 0


@pytest.mark.slow
def test_more_text_than_an_array_holds_comes_in_chunks() -> None:
    relation = pa.table({"id": [1, 2], "text": ["x" * 40_000, "y" * 40_000]})
    cache = LookupCache(relation.schema, Budget(rows=2), "lru")
    rows = cache.resolve(pa.array([1, 2] * 30_000), asking(relation), 0.0).rows
    assert (rows.num_rows, rows["text"].num_chunks) == (60_000, 2)
    assert [chunk[-1].as_py()[0] for chunk in rows["text"].chunks] == ["y", "y"]


def test_a_row_that_is_cached_is_not_asked_for_and_neither_is_what_is_known_to_be_missing() -> None:
    asked: list[list[int]] = []
    cache = LookupCache(RELATION.schema, Budget(rows=3), "lru")
    for batch in ([2, 3, 2], [3, 2], [4, 3]):
        cache.resolve(pa.array(batch), asking(RELATION, asked), 0.0)
    assert asked == [[2, 3], [4]]


def test_misses_of_a_batch_are_fetched_together() -> None:
    asked: list[list[int]] = []
    cache = LookupCache(RELATION.schema, None, "lru")
    cache.resolve(pa.array([1, 2, None, 1, 7]), asking(RELATION, asked), 0.0)
    assert asked == [[1, 2, 7]]


def test_after_its_time_to_live_a_row_is_fetched_anew() -> None:
    cache = LookupCache(RELATION.schema, Budget(rows=9), "lru", ttl=10.0)
    changed = RELATION.set_column(1, "name", pa.array(["new"] * len(RELATION)))

    def at(now: float, relation: pa.Table, *keys: int) -> list[str | None]:
        names: list[str | None] = (
            cache.resolve(pa.array(keys), asking(relation), now).rows["name"].to_pylist()
        )
        return names

    assert at(0.0, RELATION, 2) == ["name 2"]
    assert at(9.9, changed, 2, 4) == ["name 2", "new"]
    assert at(10.0, changed, 2) == ["new"]
    assert len(cache) == 2
    # What is stale makes room, though nobody asked for it again.
    assert at(20.0, changed, 6) == ["new"]
    assert len(cache) == 1


def test_heeb_follows_a_change_that_lfu_cannot() -> None:
    """Keys that were frequent for long are no more: their counts keep them in the cache of lfu."""
    rng = np.random.default_rng(5)
    relation = pa.table({"id": np.arange(2_000)})
    references = np.concatenate([rng.integers(0, 20, 20_000), rng.integers(100, 120, 4_000)])
    hits: Counter[str] = Counter()
    for policy in ("heeb", "lfu"):
        cache = LookupCache(relation.schema, Budget(rows=20), policy)
        for part in np.split(references, 240):
            hits[policy] += sum(cache.resolve(pa.array(part), asking(relation), 0.0).hit.to_pylist())
    assert hits["heeb"] > hits["lfu"] + 3_000


def hits_of(policy: LookupPolicy, references: Array, capacity: int, size: int) -> tuple[int, LookupCache]:
    """Where every key has a row."""
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
def test_heeb_finds_the_process_and_hits_more_often_than_those_who_look_back(
    process: AR1 | RandomWalk | LinearTrend, capacity: int, size: int
) -> None:
    references = process.sample(12_000 if size > 1_000 else 3_000, np.random.default_rng(7))
    hits = {policy: hits_of(policy, references, capacity, size) for policy in ("heeb", "lru", "lfu")}
    running = hits["heeb"][1]._ranking
    assert isinstance(running, ProcessRanking)
    assert running.learned is not None
    assert type(running.learned.process) is type(process)
    assert hits["heeb"][0] > max(hits["lru"][0], hits["lfu"][0])


def test_heeb_looks_seldom_at_large_batches_without_a_process_and_finds_one_that_begins() -> None:
    rng, looks = np.random.default_rng(3), []
    independent = rng.integers(0, 9_000, 40 * 3_000)
    cache = hits_of("heeb", independent, 90, 3_000)[1]
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


def test_heeb_goes_by_shares_where_there_is_no_process_or_keys_are_names() -> None:
    draws = np.minimum(np.random.default_rng(3).zipf(1.3, 3_000), 500)
    assert hits_of("heeb", draws, 20, 16)[0] > hits_of("lru", draws, 20, 16)[0]
    walk = pa.array(RandomWalk(0, Noise(sigma=5.0)).sample(300, np.random.default_rng(7)))
    cache = LookupCache(pa.schema([("id", pa.string())]), Budget(rows=9), "heeb")
    resolved = cache.resolve(walk.cast(pa.string()), lambda keys: pa.table({"id": keys}), 0.0)
    assert resolved.found.to_pylist() == [True] * 300
    assert not isinstance(cache._ranking, ProcessRanking)


@pytest.mark.parametrize("scale", [1e3, 1e9, 1e17])
def test_a_process_too_wide_to_be_told_of_costs_no_more_than_shares(scale: float) -> None:
    steps = np.random.default_rng(2).normal(scale=scale / 10, size=600)
    walk, level = np.cumsum(steps), [0.0]
    for step in steps:
        level.append(0.5 * level[-1] + step)
    for references in (walk, np.array(level)):
        assert hits_of("heeb", references.astype(np.int64), 20, 50)[0] >= 0


def test_probabilities_are_for_a0_and_of_keys() -> None:
    with pytest.raises(InputError, match="give them with policy 'a0' only"):
        LookupCache(RELATION.schema, Budget(rows=1), "a0")
    with pytest.raises(InputError, match="give them with policy 'a0' only"):
        LookupCache(RELATION.schema, Budget(rows=1), "lru", probabilities={1: 1.0})
    with pytest.raises(InputError, match=r"keys that are not int64 .*use the keys of the relation"):
        LookupCache(RELATION.schema, Budget(rows=1), "a0", probabilities={"ann": 1.0})
    with pytest.raises(InputError, match="a probability is NaN"):
        LookupCache(RELATION.schema, Budget(rows=1), "a0", probabilities={1: float("nan")})


def test_two_rows_of_one_key_are_refused_if_asked_for() -> None:
    double = pa.table({"id": [1, 2, 2, 3, 3], "name": list("abcde")})
    cache = LookupCache(double.schema, Budget(rows=9), "lru")

    def fetch(_: pa.Array) -> pa.Table:
        """Gives what it was not asked for, too, as a database may whose keys compare without case."""
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
        resolved = cache.resolve(pa.concat_arrays([keys, keys]), asking(relation), 0.0)
        assert resolved.rows["at"].to_pylist() == [0, 1, 0, 1]
        assert resolved.hit.to_pylist() == [expected] * 4
    assert len(set(key_codes(keys))) == 2


def test_at_random_every_row_may_go() -> None:
    relation = pa.table({"id": np.arange(10)})

    def survivors(seed: int) -> list[bool]:
        cache = LookupCache(relation.schema, Budget(rows=5), "random", seed=seed)
        cache.resolve(pa.array(range(10)), asking(relation), 0.0)
        hits: list[bool] = cache.resolve(pa.array(range(10)), asking(relation), 0.0).hit.to_pylist()
        assert sum(hits) == 5
        return hits

    stayed = np.mean([survivors(seed) for seed in range(400)], axis=0)
    assert stayed == pytest.approx([0.5] * 10, abs=0.1)


def test_an_unknown_policy_lists_the_known_ones() -> None:
    with pytest.raises(InputError, match="cache policy 'mru' is not known; use one of 'heeb'"):
        LookupCache(RELATION.schema, Budget(rows=1), "mru")  # type: ignore[arg-type]
