"""Sketches of the keys that are not counted exactly."""

from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tidegate.models.frequencies.key_sketches import SKETCH_KEYS, DistinctCount, FrequentCandidates, add_keys

FAR_KEYS = st.integers(-(2**63), 2**63 - 1)


@pytest.mark.parametrize("count", [0, 1, 100, 3_000, 100_000, 3_000_000])
@pytest.mark.parametrize("stride", [1, -(2**40) + 1])
def test_the_number_of_distinct_keys_is_estimated(count: int, stride: int) -> None:
    distinct = DistinctCount()
    for _ in range(2):
        add_keys(distinct.young, np.arange(count) * stride)
    assert distinct.estimate() == pytest.approx(count, rel=0.08)


def test_keys_are_forgotten_after_two_rotations() -> None:
    distinct = DistinctCount()
    add_keys(distinct.young, np.arange(1000))
    distinct.rotate(both=False)
    add_keys(distinct.young, np.arange(500, 2000))
    assert distinct.estimate() == pytest.approx(2000, rel=0.08)
    distinct.rotate(both=False)
    assert distinct.estimate() == pytest.approx(1500, rel=0.08)
    distinct.rotate(both=True)
    assert distinct.estimate() == 0


@given(st.lists(st.tuples(FAR_KEYS, st.integers(1, 100)), max_size=50), st.integers(0, 50))
def test_few_candidates_are_exact_and_survive_storage(shown: list[tuple[int, int]], stored_at: int) -> None:
    challengers, expected = FrequentCandidates(), dict[int, float]()
    for number, (key, weight) in enumerate(shown):
        if number == stored_at:
            challengers = FrequentCandidates().restore(challengers.snapshot())
        challengers.add(np.array([key]), np.array([weight / 4]))
        expected[key] = expected.get(key, 0.0) + weight / 4
    keys, weights = challengers.drain()
    assert dict(zip(keys.tolist(), weights.tolist(), strict=True)) == expected
    assert not len(challengers.drain()[0])


def test_heavy_keys_are_found_among_many_and_no_light_ones() -> None:
    challengers = FrequentCandidates()
    crowd = np.arange(50_000)
    hot = np.repeat(np.arange(-10, 0), 1_000)
    challengers.add(np.concatenate([crowd, hot]), np.ones(60_000))
    keys, weights = challengers.drain()
    assert keys.tolist() == list(range(-10, 0))
    assert weights.tolist() == [1_000.0] * 10


@given(st.integers(0, 2**32), st.floats(0.8, 2.0), st.integers(1, 5_000), st.integers(1, 1_000))
@settings(max_examples=50, deadline=None)
def test_weights_are_lower_bounds_with_a_known_error(seed: int, skew: float, keys: int, step: int) -> None:
    rng = np.random.default_rng(seed)
    shares = np.arange(1.0, keys + 1) ** -skew
    drawn = rng.permutation(keys)[rng.choice(keys, 10_000, p=shares / shares.sum())]
    weights = rng.integers(1, 4, 10_000).astype(float)
    exact, candidates = Counter[int](), FrequentCandidates()
    for begin in range(0, 10_000, step):
        candidates.add(drawn[begin : begin + step], weights[begin : begin + step])
    for key, weight in zip(drawn.tolist(), weights.tolist(), strict=True):
        exact[key] += int(weight)

    assert candidates.total == sum(exact.values())
    assert candidates.error <= 2 / SKETCH_KEYS * candidates.total
    if len(exact) <= SKETCH_KEYS:
        assert candidates.error == 0
    error = candidates.error
    found = dict(zip(*(column.tolist() for column in candidates.drain()), strict=True))
    for key, weight in found.items():
        assert error < weight <= exact[key] <= weight + error
    assert {key for key, weight in exact.items() if weight > 2 * error} <= found.keys()


def test_the_order_of_light_keys_does_not_hide_a_heavy_one() -> None:
    """The worst case: the heavy key arrives first, and only new keys follow."""
    candidates = FrequentCandidates()
    candidates.add(np.full(500, -1), np.ones(500))
    for begin in range(0, 100_000, 1_000):
        candidates.add(np.arange(begin, begin + 1_000), np.ones(1_000))
    assert 0 < candidates.error <= 2 * 100_500 / SKETCH_KEYS
    assert candidates.drain()[0].tolist() == [-1]


@pytest.mark.parametrize("seed", range(20))
def test_memory_is_bounded(seed: int) -> None:
    rng, candidates = np.random.default_rng(seed), FrequentCandidates()
    for _ in range(20):
        candidates.add(rng.integers(-(2**63), 2**63 - 1, 5_000), rng.random(5_000))
        state = candidates.snapshot()
        assert len(state["sketch_keys"]) == state["sketch_tally"][0] <= SKETCH_KEYS
        assert (state["sketch_weights"] > 0).all()


STORED_BY_DATASKETCHES = (
    "04010a0a03000000020000000000000000004000000000000000000000000000000030000000000000001000000000000500"
    "000000000000f9ffffffffffffff"
)
"""Key 5 with weight 3 and key -7 with weight 1."""


def test_sketches_of_older_checkpoints_are_read() -> None:
    stored = np.frombuffer(bytes.fromhex(STORED_BY_DATASKETCHES), np.uint8)
    candidates = FrequentCandidates().restore({"sketch": stored, "draws": np.array([0.0, 7.0])})
    assert candidates.total == 4
    candidates.add(np.array([5, 6]), np.array([0.5, 2.0]))
    keys, weights = candidates.drain()
    assert keys.tolist() == [-7, 5, 6]
    assert weights.tolist() == [1.0, 3.5, 2.0]

    empty = np.frombuffer(bytes.fromhex("01010a0a03050000"), np.uint8)
    candidates = FrequentCandidates().restore({"sketch": empty, "draws": np.array([0.0, 0.0])})
    assert not len(candidates.drain()[0])


def test_keys_that_were_sampled_before_are_not_called_frequent() -> None:
    stored = np.frombuffer(bytes.fromhex(STORED_BY_DATASKETCHES), np.uint8)
    candidates = FrequentCandidates().restore({"sketch": stored, "draws": np.array([1.0, 7.0])})
    assert candidates.drain()[0].tolist() == [5]


@pytest.mark.parametrize("stored_at", [50, 120, 190])
def test_a_full_sketch_continues_unchanged_after_storage(stored_at: int) -> None:
    rng = np.random.default_rng(stored_at)
    through, stored = FrequentCandidates(), FrequentCandidates()
    for number in range(300):
        keys, weights = rng.zipf(1.1, 500) % 10**7 - 2**20, rng.random(500)
        if number == stored_at:
            stored = FrequentCandidates().restore(stored.snapshot())
        through.add(keys, weights)
        stored.add(keys, weights)
    for found, expected in zip(stored.drain(), through.drain(), strict=True):
        assert found.tolist() == expected.tolist()
        assert len(found)
