"""Reservoirs with groups: bounded, even, and uniform within each group."""

from __future__ import annotations

from collections import Counter
from itertools import combinations, pairwise
from math import comb

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.sampling.chi_square import deviations
from tidegate import InputError
from tidegate.engine.snapshot import pack, unpack
from tidegate.sampling import GroupedReservoir

GROUPS = st.lists(st.integers(0, 7), min_size=1, max_size=120)


@given(GROUPS, st.lists(st.integers(0, 120), max_size=5), st.integers(8, 60))
def test_the_quota_is_the_largest_possible_for_any_division_into_offers(
    given_groups: list[int], cuts: list[int], size: int
) -> None:
    groups = np.array(given_groups)
    whole, parts = GroupedReservoir(size).start(3), GroupedReservoir(size).start(3)
    whole.offer({"x": np.arange(len(groups))}, groups)
    for begin, end in pairwise([0, *sorted(min(cut, len(groups)) for cut in cuts), len(groups)]):
        parts.offer({"x": np.arange(begin, end)}, groups[begin:end])
        assert len(parts) <= size
    one, other = whole.sample(), parts.sample()
    assert sorted(one.columns["x"]) == sorted(other.columns["x"])
    counts = np.bincount(groups)
    assert np.bincount(one.group, minlength=len(counts)).tolist() == np.minimum(counts, whole.quota).tolist()
    if (counts > whole.quota).any():
        assert np.minimum(counts, whole.quota + 1).sum() > size
    assert groups[one.columns["x"]].tolist() == one.group.tolist()
    assert (1 / one.probability).sum() == pytest.approx(len(groups))


def test_full_groups_accept_further_rows() -> None:
    groups = np.arange(2000) % 5
    whole, parts = GroupedReservoir(50).start(1), GroupedReservoir(50).start(1)
    whole.offer({"x": np.arange(2000)}, groups)
    for begin in range(0, 2000, 100):
        parts.offer({"x": np.arange(begin, begin + 100)}, groups[begin : begin + 100])
    assert sorted(whole.sample().columns["x"]) == sorted(parts.sample().columns["x"])
    assert max(parts.sample().columns["x"]) > 1000


def test_within_a_group_every_subset_is_equally_likely() -> None:
    runs, found = 2100, Counter[tuple[int, ...]]()
    for seed in range(runs):
        running = GroupedReservoir(6, 2).start(seed)
        running.offer({"x": np.arange(5)}, np.zeros(5, int))
        assert len(running) == 5
        # Two groups more: only now the first has to give rows up, and it goes on.
        running.offer({"x": np.arange(5, 20)}, np.repeat([1, 0, 2], [6, 2, 7]))
        sample = running.sample()
        assert np.bincount(sample.group).tolist() == [2, 2, 2]
        found[tuple(sorted(sample.columns["x"][sample.group == 0].tolist()))] += 1
    members = [0, 1, 2, 3, 4, 11, 12]
    counts = [found[pair] for pair in combinations(members, 2)]
    assert sum(counts) == runs
    assert abs(deviations(counts, runs / comb(7, 2))) < 4


def test_weights_make_sums_of_a_sample_unbiased() -> None:
    rng = np.random.default_rng(0)
    groups = np.repeat(np.arange(4), [1000, 300, 50, 5])
    values = rng.normal(10, 2, len(groups)) * (1 + groups)
    chance = np.where(np.arange(len(groups)) % 2, 0.5, 0.9)
    totals = []
    for seed in range(300):
        shown = np.flatnonzero(np.random.default_rng(seed).random(len(groups)) < chance)
        running = GroupedReservoir(120).start(seed)
        running.offer({"x": values[shown]}, groups[shown], chance[shown])
        sample = running.sample()
        totals.append((sample.columns["x"] / sample.probability).sum())
    error = float(np.std(totals)) / 300**0.5
    assert np.mean(totals) == pytest.approx(values.sum(), abs=4 * error)


def test_groups_may_be_names() -> None:
    running = GroupedReservoir(6).start()
    names = np.array(["b", "b", "longer", "b", "a"])
    for begin, end in pairwise([0, 2, 3, 5]):
        running.offer({"x": np.arange(begin, end)}, names[begin:end].astype("U6" if begin == 2 else "U1"))
    sample = running.sample()
    assert sample.group.tolist() == names[sample.columns["x"]].tolist()
    assert Counter(sample.group.tolist()) == {"a": 1, "b": 3, "longer": 1}


def test_a_restart_changes_nothing() -> None:
    groups = np.arange(1000) % 7
    running = GroupedReservoir(50).start(1)
    running.offer({"x": np.arange(400)}, groups[:400])
    restored = GroupedReservoir(50).start(1).restore(unpack(pack(running.snapshot())))
    for one in (running, restored):
        one.offer({"x": np.arange(400, 1000)}, groups[400:])
    assert running.sample().columns["x"].tolist() == restored.sample().columns["x"].tolist()
    assert len(GroupedReservoir(5).start().sample()) == 0


def test_invalid_input_is_refused_and_changes_nothing() -> None:
    running = GroupedReservoir(10, min_per_group=5).start()
    running.offer({"x": np.arange(4)}, np.array([1, 1, 2, 2]))
    with pytest.raises(InputError, match="3 groups of at least 5 rows do not fit into size 10"):
        running.offer({"x": np.arange(1)}, np.array([3]))
    for probability in ([-0.5], [0.0], [np.nan], [1.5]):
        with pytest.raises(InputError, match="probability"):
            running.offer({"x": np.arange(1)}, np.array([1]), np.array(probability))
    with pytest.raises(InputError, match="need one value for each of 1 rows; got 2 and"):
        running.offer({"x": np.arange(1)}, np.array([1, 2]))
    with pytest.raises(InputError, match=r"column 'group' must have the same type .* got <U1"):
        running.offer({"x": np.arange(1)}, np.array(["z"]))
    with pytest.raises(InputError, match="rename"):
        running.offer({"draw": np.arange(1)}, np.array([1]))
    assert (running.seen, len(running)) == (4, 4)
    with pytest.raises(InputError, match="min_per_group must be at most size, which is 10; got 11"):
        GroupedReservoir(10, min_per_group=11)
    with pytest.raises(InputError, match="size is 0"):
        GroupedReservoir(0)
