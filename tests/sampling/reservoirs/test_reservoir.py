"""Conventional and merged reservoirs: all sets of rows are equally likely."""

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
from tidegate.sampling import Reservoir, Sample, merge
from tidegate.sampling.reservoirs.reservoir import RunningReservoir
from tidegate.types import Array


def numbered(begin: int, end: int) -> dict[str, Array]:
    return {"x": np.arange(begin, end), "name": np.arange(begin, end).astype(str)}


def held(seed: int, begin: int, end: int, size: int, partition: int = 0) -> RunningReservoir:
    running = Reservoir(size).start(seed, partition)
    running.offer(numbered(begin, end))
    return running


def subsets(sample: Sample) -> tuple[int, ...]:
    return tuple(sorted(sample.columns["x"].tolist()))


def test_every_subset_is_equally_likely() -> None:
    runs = 4200
    found = Counter(subsets(held(seed, 0, 7, 3).sample()) for seed in range(runs))
    counts = [found[subset] for subset in combinations(range(7), 3)]
    assert sum(counts) == runs
    assert abs(deviations(counts, runs / comb(7, 3))) < 4


def test_every_row_is_equally_likely_in_a_long_stream() -> None:
    counts = np.zeros(500)
    for seed in range(400):
        counts[held(seed, 0, 500, 50).sample().columns["x"]] += 1
    # Counts of one run are not independent: the variance is that of sampling without replacement.
    assert abs(deviations(counts, 40.0) + 500**0.5 * 0.1 / 2**0.5) < 4


@given(st.lists(st.integers(0, 200), max_size=6), st.integers(1, 40), st.integers(0, 5))
def test_the_division_into_offers_has_no_effect(cuts: list[int], size: int, seed: int) -> None:
    whole = held(seed, 0, 200, size)
    parts = Reservoir(size).start(seed)
    for begin, end in pairwise([0, *sorted(cuts), 200]):
        before = parts.sample()
        taken = parts.offer(numbered(begin, end))
        after = parts.sample().columns["x"]
        assert after[taken.slots].tolist() == (begin + taken.rows).tolist()
        stayed = np.setdiff1d(np.arange(len(before)), taken.slots)
        if len(before):
            assert after[stayed].tolist() == before.columns["x"][stayed].tolist()
    for name in ("x", "name"):
        assert whole.sample().columns[name].tolist() == parts.sample().columns[name].tolist()
    assert whole.seen == parts.seen == 200


def test_a_restart_changes_nothing() -> None:
    running = held(3, 0, 100, 10)
    restored = Reservoir(10).start(3).restore(unpack(pack(running.snapshot())))
    for one in (running, restored):
        one.offer(numbered(100, 1000))
    assert running.sample().columns["name"].tolist() == restored.sample().columns["name"].tolist()
    assert len(restored) == 10
    empty = Reservoir(10).start().restore(unpack(pack(Reservoir(10).start().snapshot())))
    assert len(empty) == empty.seen == 0


def test_seeds_and_partitions_draw_differently() -> None:
    drawn = {subsets(held(seed, 0, 99, 9, part).sample()) for seed in range(3) for part in range(3)}
    assert len(drawn) == 9


def test_merging_makes_every_subset_equally_likely() -> None:
    runs, found, nested = 2100, Counter[tuple[int, ...]](), Counter[tuple[int, ...]]()
    for seed in range(runs):
        # The second partition holds all that it saw.
        parts = [
            held(seed, begin, end, 2, part).sample()
            for part, (begin, end) in enumerate([(0, 3), (3, 4), (4, 7)])
        ]
        found[subsets(merge(parts, seed=seed))] += 1
        later = merge([merge(parts[1:], seed=seed), parts[0]], seed=runs + seed)
        nested[subsets(later)] += 1
    for counted in (found, nested):
        counts = [counted[pair] for pair in combinations(range(7), 2)]
        assert sum(counts) == runs
        assert abs(deviations(counts, runs / comb(7, 2))) < 4


def test_merging_weights_partitions_by_their_rows() -> None:
    many, few = Sample(9000, {"x": np.ones(100)}), Sample(1000, {"x": np.zeros(100)})
    shares = [merge([many, few], seed=seed).columns["x"].sum() for seed in range(400)]
    # Hypergeometric: mean 90, variance 100 * 0.9 * 0.1 * 0.9901; four standard errors.
    assert np.mean(shares) == pytest.approx(90, abs=4 * 3 / 20)
    assert np.var(shares) == pytest.approx(8.91, abs=4 * 8.91 * (2 / 400) ** 0.5)


def test_merging_whole_partitions_keeps_all() -> None:
    parts = [held(0, 0, 5, 10).sample(), held(0, 5, 8, 10).sample(), Reservoir(10).start().sample()]
    assert subsets(merge(parts)) == tuple(range(8))
    assert len(merge(parts, size=4)) == 4
    assert merge(parts, size=50).seen == 8


def test_invalid_merges_are_refused() -> None:
    full = held(0, 0, 100, 10).sample()
    with pytest.raises(InputError, match="samples is empty"):
        merge([])
    with pytest.raises(InputError, match=r"size must be at most 10, .*; got 11"):
        merge([full, full], size=11)
    with pytest.raises(InputError, match="size is 0"):
        merge([full], size=0)
    with pytest.raises(InputError, match="must have the same columns"):
        merge([full, Sample(3, {"y": np.arange(3)})])
    with pytest.raises(InputError, match="seen must be at least the 3 rows of the sample; got 2"):
        Sample(2, {"y": np.arange(3)})


@pytest.mark.parametrize("size", [0, -1, 1.5, None, True, "10"])
def test_a_size_is_a_whole_number_of_rows(size: int) -> None:
    with pytest.raises(InputError, match=r"size is .* at least 1"):
        Reservoir(size)


def test_invalid_blocks_are_refused_and_change_nothing() -> None:
    running = held(0, 0, 5, 3)
    for block, message in [
        ({"x": np.arange(2)}, "rows must have the same columns in every offer"),
        ({"x": np.arange(2), "name": np.arange(2)}, "column 'name' must have the same type .* got int64"),
        ({"x": np.arange(2), "name": np.array(["a"])}, "must have the same length"),
        ({"x": [1, 2]}, "must be a NumPy array"),
        ([1, 2], "must be a mapping"),
    ]:
        with pytest.raises(InputError, match=message):
            running.offer(block)  # type: ignore[arg-type]
    assert running.seen == 5
    with pytest.raises(InputError, match="the snapshot has 3 rows, but size is 2"):
        Reservoir(2).start().restore(running.snapshot())
