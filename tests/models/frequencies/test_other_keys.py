"""What is known of keys that are not counted."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidegate.models.frequencies._other_keys import DistinctCount, FrequentCandidates, add_keys

FAR_KEYS = st.integers(-(2**63), 2**63 - 1)


@pytest.mark.parametrize("count", [0, 1, 100, 3_000, 100_000, 3_000_000])
@pytest.mark.parametrize("stride", [1, -(2**40) + 1])
def test_distinct_keys_are_estimated_whatever_their_number(count: int, stride: int) -> None:
    distinct = DistinctCount()
    for _ in range(2):
        add_keys(distinct.young, np.arange(count) * stride)
    assert distinct.estimate() == pytest.approx(count, rel=0.08)


def test_keys_are_forgotten_after_two_turns() -> None:
    distinct = DistinctCount()
    add_keys(distinct.young, np.arange(1000))
    distinct.turn(both=False)
    add_keys(distinct.young, np.arange(500, 2000))
    assert distinct.estimate() == pytest.approx(2000, rel=0.08)
    distinct.turn(both=False)
    assert distinct.estimate() == pytest.approx(1500, rel=0.08)
    distinct.turn(both=True)
    assert distinct.estimate() == 0


@given(st.lists(st.tuples(FAR_KEYS, st.integers(1, 100)), max_size=50), st.integers(0, 50))
def test_few_challengers_are_known_exactly_and_survive_storage(
    shown: list[tuple[int, int]], stored_at: int
) -> None:
    challengers, expected = FrequentCandidates(), dict[int, float]()
    for number, (key, weight) in enumerate(shown):
        if number == stored_at:
            challengers = FrequentCandidates().restore(challengers.snapshot())
        challengers.feed(np.array([key]), np.array([weight / 4]))
        expected[key] = expected.get(key, 0.0) + weight / 4
    keys, weights = challengers.drain()
    assert dict(zip(keys.tolist(), weights.tolist(), strict=True)) == expected
    assert not len(challengers.drain()[0])


def test_heavy_keys_are_found_among_many_and_no_light_one_by_luck() -> None:
    challengers = FrequentCandidates()
    crowd = np.arange(50_000)
    hot = np.repeat(np.arange(-10, 0), 1_000)
    challengers.feed(np.concatenate([crowd, hot]), np.ones(60_000))
    keys, weights = challengers.drain()
    assert keys.tolist() == list(range(-10, 0))
    assert weights.tolist() == [1_000.0] * 10


def test_a_sample_weighs_on_average_what_all_weigh() -> None:
    challengers = FrequentCandidates()
    weights = []
    for _ in range(200):
        challengers.feed(np.arange(10_000), np.ones(10_000))
        weights.append(challengers._sketch.total_weight / 2**20)
        challengers.drain()
    assert np.mean(weights) == pytest.approx(10_000, rel=0.01)
    assert np.std(weights) > 0


@pytest.mark.parametrize("stored_at", [50, 120, 190])
def test_a_full_sketch_goes_on_unchanged_after_it_was_stored(stored_at: int) -> None:
    rng = np.random.default_rng(stored_at)
    through, stored = FrequentCandidates(), FrequentCandidates()
    for number in range(300):
        keys, weights = rng.zipf(1.1, 500) % 10**7 - 2**20, rng.random(500)
        if number == stored_at:
            stored = FrequentCandidates().restore(stored.snapshot())
        through.feed(keys, weights)
        stored.feed(keys, weights)
    for found, expected in zip(stored.drain(), through.drain(), strict=True):
        assert found.tolist() == expected.tolist()
        assert len(found)
