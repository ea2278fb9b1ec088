"""A key table behaves like a dictionary."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidegate import InputError
from tidegate.models.frequencies.key_table import (
    KeyRange,
    as_keys,
    build_table,
    empty_table,
    entries,
    fill,
    look_up,
    look_up_range,
    slot_of,
    weighted_sample,
)

KEYS = st.lists(st.integers(-(2**63), 2**63 - 1) | st.integers(-3, 3), max_size=200)


@given(KEYS, KEYS)
def test_amounts_add_up_by_key(keys: list[int], others: list[int]) -> None:
    expected: dict[int, float] = {}
    for place, key in enumerate(keys):
        expected[key] = expected.get(key, 0.0) + place
    table = empty_table(len(keys))
    assert fill(table, as_keys(keys), np.arange(len(keys), dtype=float)) == len(expected)
    assert look_up(table, as_keys(keys + others), -1.0).tolist() == [
        expected.get(key, -1.0) for key in keys + others
    ]
    found, amounts = entries(table)
    assert dict(zip(found.tolist(), amounts.tolist(), strict=True)) == expected


@given(KEYS)
def test_entries_rebuild_the_same_table(keys: list[int]) -> None:
    distinct = as_keys(list(dict.fromkeys(keys)))
    table = empty_table(len(distinct))
    fill(table, distinct, np.ones(len(distinct)))
    again = empty_table(len(distinct))
    fill(again, *entries(table))
    assert (again.keys == table.keys).all()
    assert (again.amounts == table.amounts).all()


@pytest.mark.parametrize("home", [0, 30, 63])
def test_keys_with_the_same_slot_do_not_collide(home: int) -> None:
    empty = empty_table(16)
    rivals = as_keys([key for key in range(-5_000, 5_000) if slot_of(empty, key) == home][:15])
    keys = np.concatenate([rivals[:7], [0], rivals[7:]])
    table, again = empty_table(16), empty_table(16)
    assert fill(table, keys, np.arange(16.0)) == 16
    assert look_up(table, keys, -1.0).tolist() == list(range(16))
    fill(again, *entries(table))
    assert (again.keys == table.keys).all()


@pytest.mark.parametrize("keys", [[1.5], ["a"], [[1, 2]], np.array([1], np.uint64)], ids=str)
def test_keys_that_are_not_integers_are_refused(keys: object) -> None:
    with pytest.raises(InputError, match="give one array of integers"):
        as_keys(keys)


@given(
    st.integers(-(2**63), 2**63 - 101),
    st.sets(st.integers(0, 99), min_size=25),
    st.lists(st.integers(-(2**63), 2**63 - 1)),
)
def test_adjacent_keys_use_a_range(least: int, offsets: set[int], others: list[int]) -> None:
    keys = [least + offset for offset in offsets]
    table = build_table(as_keys(keys), np.arange(1.0, len(keys) + 1))
    assert isinstance(table, KeyRange)
    near = [max(key - 1, -(2**63)) for key in keys] + [key + 1 for key in keys]
    expected = dict(zip(keys, range(1, len(keys) + 1), strict=True))
    lookups = keys + near + others
    assert look_up_range(table, as_keys(lookups)).tolist() == [expected.get(key, 0) for key in lookups]


def test_distant_keys_use_a_table() -> None:
    assert not isinstance(build_table(np.array([0, 2**62]), np.ones(2)), KeyRange)


def test_few_keys_are_all_sampled() -> None:
    table = empty_table(50)
    fill(table, np.arange(50), np.arange(50.0))
    keys, weigh = weighted_sample(table, 50, float(np.arange(50).sum()), 50)
    assert sorted(zip(keys.tolist(), weigh.tolist(), strict=True)) == [(n, n) for n in range(50)]


def test_a_sample_of_many_keys_is_unbiased() -> None:
    shares = 1 / np.arange(1, 40_001)
    table = empty_table(len(shares))
    fill(table, np.arange(len(shares)), shares)
    keys, weigh = weighted_sample(table, len(shares), shares.sum(), 1000)
    assert 1000 < len(keys) < 2000
    # Keys with at least a thousandth of the total are in the sample with their exact amounts.
    frequent = np.flatnonzero(shares >= shares.sum() / 1000)
    found = dict(zip(keys.tolist(), weigh.tolist(), strict=True))
    assert [found[key] for key in frequent] == shares[frequent].tolist()
    # The others are unbiased: each has less than a thousandth of the total, so the error of n of them is sqrt(n).
    for low, high in ((100, 1000), (1000, 10_000), (10_000, 40_000)):
        some = (keys >= low) & (keys < high)
        allowed = 4 * np.sqrt(some.sum()) * shares.sum() / 1000
        assert abs(weigh[some].sum() - shares[low:high].sum()) < allowed
