"""Sketches of the keys that are not counted exactly."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidegate.models.frequencies.key_sketches import DistinctCount, FrequentCandidates, add_keys

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


def test_the_weight_of_a_sample_is_unbiased() -> None:
    challengers = FrequentCandidates()
    weights = []
    for _ in range(200):
        challengers.add(np.arange(10_000), np.ones(10_000))
        weights.append(challengers._sketch.total_weight / 2**20)
        challengers.drain()
    assert np.mean(weights) == pytest.approx(10_000, rel=0.01)
    assert np.std(weights) > 0


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
