"""A cache in front of a relation: textbook counts, the optimum by trying everything, and caching as a join."""

from __future__ import annotations

from itertools import combinations
from typing import Any, get_args

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tidegate as tg
from tidegate.engine.cache import CachePolicy, CacheReport
from tidegate.types import InputError

PAGES = [7, 0, 1, 2, 0, 3, 0, 4, 2, 3, 0, 3, 2, 1, 2, 0, 1, 7, 0, 1]
ANOMALY = [1, 2, 3, 4, 1, 2, 5, 1, 2, 3, 4, 5]
REFERENCES = st.lists(st.integers(0, 5), max_size=30)


def cached(
    references: list[int], capacity: int, policy: CachePolicy, *, bypass: bool = True, seed: int = 0
) -> CacheReport:
    shares: dict[int, float] | None = None
    if policy == "a0":
        shares = {key: references.count(key) / len(references) for key in set(references)}
    return tg.simulate_cache(references, capacity, policy, probabilities=shares, bypass=bypass, seed=seed)


@pytest.mark.parametrize(
    ("references", "capacity", "policy", "misses"),
    [
        (PAGES, 3, "lfd", 9),
        (PAGES, 3, "lru", 12),
        (PAGES, 4, "lru", 8),
        (ANOMALY, 3, "lru", 10),
        (ANOMALY, 4, "lru", 8),
        (ANOMALY, 3, "lfd", 7),
        (ANOMALY, 4, "lfd", 6),
    ],
)
def test_the_counts_of_the_textbooks(
    references: list[int], capacity: int, policy: CachePolicy, misses: int
) -> None:
    assert cached(references, capacity, policy, bypass=False).misses == misses


def test_lru_by_hand() -> None:
    assert cached([1, 2, 1, 3, 2, 1], 2, "lru").hit.tolist() == [False, False, True, False, False, False]


def test_lfu_counts_references_while_a_row_was_not_cached() -> None:
    """The fourth reference is the second to 2, which was left out: 1 has as many and is older."""
    assert cached([1, 1, 2, 2, 2, 1], 1, "lfu").hit.tolist() == [False, True, False, False, True, False]


def test_a0_keeps_the_most_probable() -> None:
    shares = {"a": 0.5, "b": 0.3, "c": 0.2}
    report = tg.simulate_cache(list("abcacbdab"), 2, "a0", probabilities=shares)
    assert report.hit.tolist() == [False, False, False, True, False, True, False, True, True]


def most_hits(references: list[int], capacity: int, *, bypass: bool) -> int:
    best: dict[frozenset[int], int] = {frozenset(): 0}
    for key in references:
        after: dict[frozenset[int], int] = {}
        for held, hits in best.items():
            rows = sorted(held | {key})
            for some in combinations(rows, min(capacity, len(rows))):
                kept = frozenset(some)
                if bypass or key in kept:
                    after[kept] = max(after.get(kept, 0), hits + (key in held))
        best = after
    return max(best.values())


@settings(deadline=None)
@given(REFERENCES, st.integers(1, 4), st.booleans())
def test_lfd_hits_as_often_as_trying_everything(references: list[int], capacity: int, bypass: bool) -> None:  # noqa: FBT001
    hits = cached(references, capacity, "lfd", bypass=bypass).hits
    assert hits == most_hits(references, capacity, bypass=bypass)


@settings(deadline=None)
@given(
    REFERENCES, st.integers(1, 7), st.sampled_from(get_args(CachePolicy)), st.booleans(), st.integers(0, 9)
)
def test_no_policy_hits_more_often_than_lfd(
    references: list[int],
    capacity: int,
    policy: CachePolicy,
    bypass: bool,  # noqa: FBT001
    seed: int,
) -> None:
    report = cached(references, capacity, policy, bypass=bypass, seed=seed)
    assert report.hits <= cached(references, capacity, "lfd", bypass=bypass).hits
    assert report.hits + report.misses == len(references)
    if capacity >= 6:
        assert report.misses == len(set(references))
    assert cached(references, capacity, policy, bypass=bypass, seed=seed).hit.tolist() == report.hit.tolist()


@settings(deadline=None)
@given(REFERENCES, st.integers(1, 4))
def test_caching_is_joining_with_occurrences_renamed(references: list[int], capacity: int) -> None:
    """The i-th reference to v becomes (v, i - 1), the i-th supply of its row (v, i): a hit is a result."""
    before = [references[:at].count(key) for at, key in enumerate(references)]
    times = list(range(len(references)))
    demand = {"value": references, "nth": before, "time": times}
    supply = {"value": references, "nth": [n + 1 for n in before], "time": times}
    joined = tg.simulate(
        demand,
        supply,
        on=["value", "nth"],
        window=(None, None),
        budget=capacity,
        policy="offline",
        step="instant",
    )
    assert joined.results == cached(references, capacity, "lfd").hits


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: tg.simulate_cache([1], 0), "a cache of 0 rows holds nothing"),
        (lambda: tg.simulate_cache([1], 2, "mru"), "cache policy 'mru' is not known; use one of 'lfd'"),  # type: ignore[arg-type]
        (lambda: tg.simulate_cache([1], 2, "a0"), "give them with 'a0'"),
        (lambda: tg.simulate_cache([1], 2, "lru", probabilities={1: 1.0}), "give them with 'a0'"),
        (lambda: tg.simulate_cache([1], 2, "a0", probabilities={1: np.nan}), "NaN"),
        (lambda: tg.simulate_cache([1, None], 2), "1 references are null"),
        (lambda: tg.simulate_cache([1, "a"], 2), "give keys of one plain type"),
    ],
)
def test_what_cannot_be_is_refused(call: Any, message: str) -> None:  # noqa: ANN401
    with pytest.raises(InputError, match=message):
        call()


@pytest.mark.parametrize("bypass", [True, False])
def test_references_at_random_hit_in_proportion_to_the_room(bypass: bool) -> None:  # noqa: FBT001
    references = np.random.default_rng(1).integers(0, 50, 40_000)
    rates = [
        tg.simulate_cache(references, 20, "random", bypass=bypass, seed=seed).hit_rate for seed in range(3)
    ]
    assert len(set(rates)) == 3
    assert rates == pytest.approx([0.4] * 3, abs=0.01)


@pytest.mark.parametrize(("bypass", "stays"), [(False, 4 / 5), (True, 5 / 6)])
def test_at_random_all_are_equally_likely_to_be_left_out(bypass: bool, stays: float) -> None:  # noqa: FBT001
    """A row in a cache of five meets ten strangers; where they may be left out, they are among those drawn from."""
    references = [*range(15), 0]
    lives = [tg.simulate_cache(references, 5, "random", bypass=bypass, seed=n).hits for n in range(2_000)]
    assert np.mean(lives) == pytest.approx(stays**10, abs=0.025)


def test_nothing_referred_to() -> None:
    report = tg.simulate_cache([], 2)
    assert (report.hits, report.misses, report.hit_rate) == (0, 0, 1.0)
