"""Normally distributed keys, in random order or ordered by a tree."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidegate import InputError
from tidegate.streams import Normal
from tidegate.streams.normal import partly_sorted


def test_keys_and_values_have_the_papers_moments_and_rates() -> None:
    left, right = Normal().both(10_000, seed=1)
    assert len(right) == 5 * 9999 + 1
    for side in (left, right):
        keys = side.keys[0].to_numpy()
        assert keys.mean() == pytest.approx(1000, abs=4 * (1000 / len(keys)) ** 0.5)
        assert keys.var() == pytest.approx(1000, rel=4 * (2 / len(keys)) ** 0.5)
        assert side.value is not None
        assert side.value.var() == pytest.approx(10_000, rel=4 * (2 / len(keys)) ** 0.5)
        assert np.all(np.diff(side.time) > 0)


def test_shares_are_those_of_the_keys() -> None:
    pair = Normal(mean=3.3, variance=4.0)
    keys = pair.trace(100_000, seed=2).keys[0].to_numpy()
    counted = (keys[:, None] == pair.keys).mean(axis=0)
    assert pair.shares.sum() == pytest.approx(1)
    assert np.abs(counted - pair.shares).max() < 4 * 0.5 / 100_000**0.5


@given(st.lists(st.integers(0, 20), max_size=100), st.integers(1, 4), st.integers(0, 9))
def test_no_key_comes_before_its_parents_rows(given_keys: list[int], fanout: int, seed: int) -> None:
    keys = np.array(given_keys, int)
    ordered = partly_sorted(keys, fanout, np.random.default_rng(seed))
    assert sorted(ordered) == sorted(keys)
    nodes = np.unique(keys)
    for child in range(1, len(nodes)):
        parent = nodes[(child - 1) // fanout]
        assert np.flatnonzero(ordered == parent).max() < np.flatnonzero(ordered == nodes[child]).min()
    if fanout == 1:
        assert ordered.tolist() == sorted(keys)


def test_siblings_have_any_order() -> None:
    orders = {
        tuple(partly_sorted(np.array([0, 1, 2, 2]), 2, np.random.default_rng(seed))) for seed in range(60)
    }
    assert orders == {(0, 1, 2, 2), (0, 2, 1, 2), (0, 2, 2, 1)}


def test_partly_sorted_is_between_sorted_and_random() -> None:
    def sortedness(fanout: int | None) -> float:
        keys = Normal(fanout=fanout).trace(5000, seed=3).keys[0].to_numpy()
        return float(np.corrcoef(keys, np.arange(5000))[0, 1])

    assert sortedness(1) > 0.95
    assert all(0.5 < sortedness(fanout) < 0.8 for fanout in (2, 3, 4))
    assert abs(sortedness(None)) < 0.1


def test_the_same_seed_makes_the_same_rows() -> None:
    one, same, other = (Normal(fanout=3).both(100, seed)[1] for seed in (1, 1, 2))
    assert one.keys[0].equals(same.keys[0])
    assert not one.keys[0].equals(other.keys[0])
    assert len(Normal().both(0)[0]) == len(Normal().both(0)[1]) == 0


def test_invalid_parameters_are_refused() -> None:
    with pytest.raises(InputError, match="variances and rates above 0"):
        Normal(variance=0)
    with pytest.raises(InputError, match="finite"):
        Normal(mean=float("nan"))
    with pytest.raises(InputError, match="fanout is 0"):
        Normal(fanout=0)
    with pytest.raises(InputError, match="gaps 'odd'"):
        Normal(gaps="odd")  # type: ignore[arg-type]
