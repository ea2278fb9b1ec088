"""Simulated caches: textbook counts, the optimum by brute force, and caching as a join."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import combinations
from typing import Any, Self, get_args

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import ArrayLike

import tidegate as tg
from tidegate.caching.simulate import CachePolicy, CacheReport
from tidegate.experiments.stochastic_streams.survivals import Infinite, Inverse
from tidegate.models import (
    AR1,
    History,
    LinearTrend,
    Markov,
    Noise,
    Oracle,
    Process,
    RandomWalk,
    Stationary,
)
from tidegate.policies import Exponential, Fixed, Policy, Survival
from tidegate.policies.heeb import expected_benefit
from tidegate.types import Array, InputError, Rows, Time

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
def test_textbook_counts(references: list[int], capacity: int, policy: CachePolicy, misses: int) -> None:
    assert cached(references, capacity, policy, bypass=False).misses == misses


def test_lru_by_hand() -> None:
    assert cached([1, 2, 1, 3, 2, 1], 2, "lru").hit.tolist() == [False, False, True, False, False, False]


def test_lfu_counts_references_while_a_row_was_not_cached() -> None:
    """The fourth reference is the second to 2, which was not cached: 1 has as many and is older."""
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
def test_lfd_hits_as_often_as_the_optimum_by_brute_force(
    references: list[int],
    capacity: int,
    bypass: bool,  # noqa: FBT001 - drawn by Hypothesis
) -> None:
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


def joined(
    references: list[int], capacity: int, policy: str | Policy, seed: int = 0
) -> list[tuple[int, int]]:
    """The i-th reference to v becomes (v, i - 1), the i-th supply of its row (v, i): who matched whose supply."""
    before = [references[:at].count(key) for at, key in enumerate(references)]
    times = list(range(len(references)))
    demand = {"value": references, "nth": before, "time": times}
    supply = {"value": references, "nth": [n + 1 for n in before], "time": times}
    report = tg.simulate(
        demand,
        supply,
        on=["value", "nth"],
        window=(None, None),
        budget=capacity,
        policy=policy,
        step="instant",
        seed=seed,
        collect=True,
    )
    assert report.pairs is not None
    return sorted(zip(report.pairs.left.tolist(), report.pairs.right.tolist(), strict=True))


def contents(
    references: list[int],
    capacity: int,
    policy: CachePolicy,
    shares: dict[int, float] | None,
    *,
    bypass: bool,
) -> list[set[int]]:
    """The cached keys after each reference: those that would hit next."""
    if policy == "lfd":
        return contents_of_lfd(references, capacity, bypass=bypass)
    found = []
    for end in range(1, len(references) + 1):
        so_far = references[:end]
        ask = ((v, [*so_far, v]) for v in set(so_far))
        found.append(
            {
                v
                for v, requests in ask
                if tg.simulate_cache(requests, capacity, policy, probabilities=shares, bypass=bypass).hit[-1]
            }
        )
    return found


def contents_of_lfd(references: list[int], capacity: int, *, bypass: bool) -> list[set[int]]:
    held: set[int] = set()
    found = []
    for now, value in enumerate(references):
        rest = references[now + 1 :]
        distance = {v: rest.index(v) if v in rest else len(references) for v in held | {value}}
        if len(distance) > capacity:
            distance.pop(max(distance if bypass else held, key=distance.__getitem__))
        held = set(distance)
        found.append(held)
    return found


@dataclass(frozen=True)
class MirroringPolicy(Policy):
    """In a join, keeps the supply rows of the keys that a cache holds after the same reference."""

    references: list[int]
    held: list[set[int]]

    def scores(self, rows: Rows, now: Time) -> Array:
        if rows.side == "left":
            return np.zeros(len(rows))
        so_far = self.references[: int(now) + 1]
        last = {value: at for at, value in enumerate(so_far) if value in self.held[int(now)]}
        return np.isin(rows.time, list(last.values())).astype(np.float64)


@pytest.mark.parametrize("policy", ["lru", "lfu", "random", "a0", "lfd"])
@settings(deadline=None, max_examples=15)
@given(references=REFERENCES, capacity=st.integers(1, 4), bypass=st.booleans())
def test_section_3_1_a_join_that_mirrors_a_cache_has_the_same_hits(
    references: list[int],
    capacity: int,
    policy: CachePolicy,
    bypass: bool,  # noqa: FBT001
) -> None:
    shares = {key: references.count(key) / len(references) for key in references} if policy == "a0" else None
    held = contents(references, capacity, policy, shares, bypass=bypass)
    assert all(len(rows) <= capacity for rows in held)
    pairs = joined(references, capacity, MirroringPolicy(references, held))
    report = tg.simulate_cache(references, capacity, policy, probabilities=shares, bypass=bypass)
    assert [now for now, _ in pairs] == np.flatnonzero(report.hit).tolist()
    # A hit is on the supply of the last reference to the same value.
    assert all(now - 1 - references[:now][::-1].index(references[now]) == at for now, at in pairs)


@settings(deadline=None, max_examples=50)
@given(
    REFERENCES, st.integers(1, 4), st.sampled_from(["offline", "random", "fifo", "prob"]), st.integers(0, 9)
)
def test_section_3_1_an_optimal_join_gives_an_optimal_cache(
    references: list[int], capacity: int, policy: str, seed: int
) -> None:
    """A row is cached from its supply until the match."""
    pairs = joined(references, capacity, policy, seed)
    hits, held = [], set[int]()
    for now, value in enumerate(references):
        if value in held:
            hits.append(now)
        planned = {references[at] for until, at in pairs if at <= now < until}
        assert len(planned) <= capacity
        assert planned <= held | {value}  # only what is cached, or was just fetched, can be kept
        held = planned
    assert hits == [now for now, _ in pairs]
    best = cached(references, capacity, "lfd").hits
    assert len(hits) <= best
    if policy == "offline":
        assert len(hits) == best


def hits_by_direct_sums(
    references: list[int], capacity: int, process: Process, survival: Survival | None, *, bypass: bool
) -> list[bool]:
    """The hits by a sum for each cached row at each reference; benefits are equal if ten digits are."""
    held: list[int] = []
    last: dict[int, int] = {}
    entered, left, spent, hits = 0, 0, 0, []
    thought: Survival = survival or Exponential(float(capacity))
    for now, value in enumerate(references):
        if survival is None and now % 256 == 0 and left:
            alpha = Exponential.from_lifetime(1 + spent / entered).alpha
            thought = Exponential(2 ** (round(32 * np.log2(alpha)) / 32))
        hits.append(value in held)
        last[value] = now
        if value not in held:
            candidates = held + [value] * bypass
            held, entered = [*held, value], entered + 1
            if len(held) > capacity:
                ahead = 256 if thought.negligible_after() is None else None
                benefits = expected_benefit(
                    process, History(now, value), candidates, thought, problem="caching", ahead=ahead
                )
                ranked = zip(
                    benefits.round(10).tolist(), [last[v] for v in candidates], candidates, strict=True
                )
                gone = min(ranked)[2]
                held.remove(gone)
                left, entered = left + (gone != value), entered - (gone == value)
        spent += len(held)
    return hits


def sample_references(process: Process, count: int, seed: int) -> list[int]:
    rng, span, values = np.random.default_rng(seed), np.arange(-40, 41), [0]
    for now in range(count):
        middle = int(process.centre(now)) if isinstance(process, LinearTrend) else values[-1]
        chances = process.probability(History(now - 1, values[-1]), np.array([1]), span + middle)[:, 0]
        values.append(int(rng.choice(span + middle, p=chances / chances.sum())))
    return values[1:]


FORETOLD: list[Process] = [
    RandomWalk(0, Noise(sigma=1.5)),
    RandomWalk(1, Noise(3)),
    LinearTrend(1, 0, Noise(9, 4.0)),
    LinearTrend(-2, 5, Noise(12)),
    LinearTrend(0.3, 0, Noise(sigma=4.0)),
    AR1(2, 0.7, 3),
]


@pytest.mark.parametrize("survival", [None, Exponential(3.0), Fixed(6)], ids=repr)
@pytest.mark.parametrize("process", FORETOLD, ids=repr)
def test_heeb_evicts_the_row_of_the_least_expected_benefit(
    process: Process, survival: Survival | None
) -> None:
    references = sample_references(process, 320, seed=3)
    for capacity, bypass in ((3, True), (7, False)):
        report = tg.simulate_cache(
            references, capacity, "heeb", process=process, survival=survival, bypass=bypass
        )
        assert report.hit.tolist() == hits_by_direct_sums(
            references, capacity, process, survival, bypass=bypass
        )


WIDE: list[tuple[AR1 | RandomWalk, int, float]] = [
    (AR1(56, 0.72, 42.2), 60, 20.0),
    (AR1(10, 0.95, 10), 20, 6.0),
    (AR1(0, -0.5, 20), 30, 20.0),
    (AR1(0, 0.995, 10), 20, 5.0),
    (RandomWalk(0, Noise(sigma=30.0)), 30, 20.0),
    (RandomWalk(0, Noise(3)), 8, 5.0),
    (RandomWalk(-0.5, Noise(sigma=4.0)), 15, 9.0),
]


@pytest.mark.parametrize(("process", "capacity", "alpha"), WIDE, ids=repr)
def test_choices_between_control_points_are_those_of_direct_sums(
    process: AR1 | RandomWalk, capacity: int, alpha: float
) -> None:
    references = process.sample(300, np.random.default_rng(5)).tolist()
    survival = Exponential(alpha)
    values = np.unique(references)
    steps = np.arange(1, survival.negligible_after() + 1)
    weights = survival.at(steps)
    returns = process.returns(steps, values) @ weights
    held: dict[int, int] = {}  # when each was referred to last
    hits = []
    for now, key in enumerate(references):
        hits.append(key in held)
        held[key] = now
        if len(held) > capacity:
            expected = process.probability(History(now, key), steps, values) @ weights / (1 + returns)
            # Benefits are equal if eleven digits are; of equal ones the most recently used row stays.
            benefits = dict(zip(values.tolist(), (float(f"{each:.10e}") for each in expected), strict=True))
            del held[min(held, key=lambda at, benefits=benefits: (benefits[at], held[at]))]  # type: ignore[misc]
    found = tg.simulate_cache(references, capacity, "heeb", process=process, survival=survival)
    assert found.hit.tolist() == hits


@settings(deadline=None, max_examples=50)
@given(st.integers(0, 99), st.integers(1, 7), st.booleans())
def test_section_7_2_heeb_equals_a0_for_stationary_references(
    seed: int,
    capacity: int,
    bypass: bool,  # noqa: FBT001
) -> None:
    rng = np.random.default_rng(seed)
    shares = dict(enumerate(rng.dirichlet(np.ones(8)).tolist()))
    references = rng.choice(8, 80, p=list(shares.values()))
    still = Stationary(shares)
    found = tg.simulate_cache(references, capacity, "heeb", process=still, bypass=bypass)
    best = tg.simulate_cache(references, capacity, "a0", probabilities=shares, bypass=bypass)
    assert found.hit.tolist() == best.hit.tolist()
    assert found.hit.tolist() == hits_by_direct_sums(
        references.tolist(), capacity, still, Exponential(5.0), bypass=bypass
    )


@settings(deadline=None, max_examples=50)
@given(st.lists(st.integers(0, 5), min_size=1, max_size=30), st.integers(1, 4), st.booleans())
def test_section_7_1_heeb_equals_lfd_for_known_references(
    references: list[int],
    capacity: int,
    bypass: bool,  # noqa: FBT001
) -> None:
    known = tg.simulate_cache(references, capacity, "heeb", process=Oracle(references), bypass=bypass)
    assert known.hits == cached(references, capacity, "lfd", bypass=bypass).hits


@settings(deadline=None, max_examples=30)
@given(REFERENCES, st.integers(1, 4))
def test_heeb_without_a_process_ranks_by_shares_so_far(references: list[int], capacity: int) -> None:
    found = tg.simulate_cache(references, capacity, "heeb")
    assert found.hit.tolist() == cached(references, capacity, "lfu").hit.tolist()


def test_section_8_heeb_hits_more_often_than_lru_and_lfu_on_ar1() -> None:
    rng, level = np.random.default_rng(6), [200.0]
    for noise in rng.normal(scale=42.2, size=3650):
        level.append(56 + 0.72 * level[-1] + noise)
    days = np.round(level).astype(np.int64)
    for capacity in (10, 50, 100, 200):
        found = tg.simulate_cache(days, capacity, "heeb", process=AR1.fit(days)).hits
        usual = tg.simulate_cache(
            days, capacity, "heeb", process=AR1.fit(days), survival=Exponential(capacity)
        ).hits
        assert found == pytest.approx(usual, rel=0.05)
        assert found > max(cached(days.tolist(), capacity, rival).hits for rival in ("lru", "lfu", "random"))


def hits_by_rank(references: list[int], capacity: int, rank: Callable[[int, int, int], float]) -> list[bool]:
    """The hits if the row of the lowest rank is evicted, and of equal ones the least recently used.

    A rank is that of a value, by the time and the value referred to now.
    """
    last: dict[int, int] = {}
    hits = []
    for now, value in enumerate(references):
        hits.append(value in last)
        last[value] = now
        if len(last) > capacity:
            del last[min(last, key=lambda held: (rank(held, now, value), last[held]))]
    return hits


OBSERVED_OR_GIVEN = [None, Exponential(3.0), Exponential(40.0)]


@pytest.mark.parametrize("survival", OBSERVED_OR_GIVEN, ids=repr)
@pytest.mark.parametrize("noise", [Noise(sigma=1.0), Noise(sigma=2.5), Noise(4, sigma=1.5)], ids=repr)
def test_section_7_5_the_farthest_value_of_a_walk_is_evicted(noise: Noise, survival: Survival | None) -> None:
    walk = RandomWalk(0, noise)
    references = sample_references(walk, 1_000, seed=1)
    for capacity in (2, 6):
        found = tg.simulate_cache(references, capacity, "heeb", process=walk, survival=survival)
        nearest = hits_by_rank(references, capacity, lambda held, _, value: -abs(held - value))
        assert found.hit.tolist() == nearest
        assert found.hits > cached(references, capacity, "lru").hits


@pytest.mark.parametrize("survival", [*OBSERVED_OR_GIVEN, Infinite(), Inverse()], ids=repr)
@pytest.mark.parametrize("bound", [3, 10])
@pytest.mark.parametrize("speed", [1, 2, 3])
def test_section_7_3_the_smallest_value_of_a_trend_is_evicted(
    speed: int, bound: int, survival: Survival | None
) -> None:
    trend = LinearTrend(speed, 0, Noise(bound))
    references = sample_references(trend, 300, seed=2)

    def steps_left(held: int, now: int, _: int) -> float:
        """For how many more steps the window has not passed it."""
        return max((held + bound) // speed - now, 0)

    for capacity in (2, 5):
        found = tg.simulate_cache(references, capacity, "heeb", process=trend, survival=survival).hit.tolist()
        assert found == hits_by_rank(references, capacity, steps_left)
        if speed == 1:
            assert found == hits_by_rank(references, capacity, lambda held, *_: held)


@dataclass(frozen=True, eq=False)
class PlainWalk(Markov):
    """A walk that has only the methods of every Markov process."""

    walk: RandomWalk

    def probability(self, history: History, ahead: Array, values: Array) -> Array:
        return self.walk.probability(history, ahead, values)

    def returns(self, ahead: Array, values: Array) -> Array:
        return self.walk.returns(ahead, values)

    def intervals(self, values: Array) -> tuple[Array, Array]:
        raise NotImplementedError

    @classmethod
    def fit(cls, values: ArrayLike) -> Self:
        raise NotImplementedError


@pytest.mark.parametrize("survival", [Exponential(4.0), Fixed(5)], ids=repr)
def test_a_user_defined_markov_process(survival: Survival) -> None:
    walk = RandomWalk(0.3, Noise(sigma=1.5))
    references = sample_references(walk, 120, seed=2)
    hits = [
        tg.simulate_cache(references, 4, "heeb", process=process, survival=survival).hit.tolist()
        for process in (walk, PlainWalk(walk))
    ]
    assert hits[0] == hits[1]


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: tg.simulate_cache([1], 0), "capacity must be a positive whole number of rows; got 0"),
        (lambda: tg.simulate_cache([1], 2, "mru"), "cache policy 'mru' is not known; use one of 'lfd'"),  # type: ignore[arg-type]
        (
            lambda: tg.simulate_cache(pa.table({"key": [1]}), 2),
            "references is a Table with columns; give the column of the keys",
        ),
        (lambda: tg.simulate_cache([1], 2, "a0"), "give them with policy 'a0'"),
        (lambda: tg.simulate_cache([1], 2, "lru", probabilities={1: 1.0}), "give them with policy 'a0'"),
        (lambda: tg.simulate_cache([1], 2, "a0", probabilities={1: np.nan}), "NaN"),
        (lambda: tg.simulate_cache([1, None], 2), "1 references are null"),
        (lambda: tg.simulate_cache([1, "a"], 2), "give keys of one plain type"),
        (lambda: tg.simulate_cache([1], 2, "lru", process=Oracle([1])), "with process=.*; use 'heeb'"),
        (lambda: tg.simulate_cache([1], 2, "heeb", survival=Fixed(1)), "needs a process; give process="),
        (lambda: tg.simulate_cache(["a"], 2, "heeb", process=Oracle([1])), "are not numbers"),
        (lambda: tg.simulate_cache(["a"], 2, "heeb", process=Stationary({1: 1.0})), "not numbers, such as a"),
    ],
)
def test_invalid_arguments_are_refused(call: Any, message: str) -> None:  # noqa: ANN401
    with pytest.raises(InputError, match=message):
        call()


@pytest.mark.parametrize("bypass", [True, False])
def test_random_references_hit_in_proportion_to_the_capacity(bypass: bool) -> None:  # noqa: FBT001
    references = np.random.default_rng(1).integers(0, 50, 40_000)
    rates = [
        tg.simulate_cache(references, 20, "random", bypass=bypass, seed=seed).hit_rate for seed in range(3)
    ]
    assert len(set(rates)) == 3
    assert rates == pytest.approx([0.4] * 3, abs=0.01)


@pytest.mark.parametrize(("bypass", "stays"), [(False, 4 / 5), (True, 5 / 6)])
def test_at_random_all_rows_are_equally_likely_to_be_evicted(bypass: bool, stays: float) -> None:  # noqa: FBT001
    """Ten other keys follow a row in a cache of five; with bypass they are among the candidates."""
    references = [*range(15), 0]
    lives = [tg.simulate_cache(references, 5, "random", bypass=bypass, seed=n).hits for n in range(2_000)]
    assert np.mean(lives) == pytest.approx(stays**10, abs=0.025)


def test_no_references() -> None:
    report = tg.simulate_cache([], 2)
    assert (report.hits, report.misses, report.hit_rate) == (0, 0, 1.0)
