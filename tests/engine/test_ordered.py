"""Comparisons and bands over more rows than a block has: what is found, what is counted, where is looked."""

from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.engine.brute_force import Spans
from tests.engine.cases import CONDITIONS, WINDOWS, Stream, Streams, pairs_of
from tidegate import Band
from tidegate.engine.ages import Watch, note_ages
from tidegate.engine.combining import COMBINES, importances
from tidegate.engine.index import Axes, Index
from tidegate.engine.ordered import Ordered
from tidegate.types import SIDES, Array, Condition, Pairs, Side, StepSize

ORDERED = CONDITIONS[1:]


@dataclass(frozen=True)
class Large:
    """Two sides of many rows, at times that come evenly or in bursts."""

    left: Axes
    right: Axes

    def streams(self) -> Streams:
        return Streams(*(Stream(a.key.tolist(), a.left.tolist()) for a in (self.left, self.right)))

    def roles(self, indexed: Side) -> tuple[Axes, Axes]:
        return (self.left, self.right) if indexed == "left" else (self.right, self.left)

    def joined(self, condition: Condition, window: tuple[int, int]) -> Array:
        """Which of all pairs join: a mask of left by right."""
        apart = self.right.left - self.left.left[:, None]
        keys = self.right.key - self.left.key[:, None]
        tests = {"<": keys > 0, "<=": keys >= 0, "!=": keys != 0, ">": keys < 0, ">=": keys <= 0}
        if isinstance(condition, Band):
            match = (keys >= condition.low) & (keys <= condition.high)
        else:
            match = tests[condition]
        mask: Array = match & (apart <= window[0]) & (-apart <= window[1])
        return mask


def random_axes(seed: int, rows: tuple[int, int], keys: int, span: int, *, bursts: bool) -> Large:
    draw = np.random.default_rng(seed)
    sides = []
    for n in rows:
        times = draw.integers(0, span, n)
        if bursts:
            times[draw.random(n) < 0.5] = draw.integers(0, span)
        times.sort()
        sides.append(Axes(draw.integers(-keys, keys, n), times, times))
    return Large(*sides)


large = st.builds(
    random_axes,
    st.integers(0, 1 << 30),
    st.tuples(st.integers(0, 300), st.integers(0, 300)),
    st.sampled_from([1, 5, 1000]),
    st.sampled_from([1, 60, 1000]),
    bursts=st.booleans(),
)
reaches = st.tuples(st.integers(-20, 80), st.integers(20, 200)).map(lambda ends: (ends[0], ends[1] - ends[0]))


@settings(max_examples=300, deadline=None)
@given(large, st.sampled_from(ORDERED), reaches, st.sampled_from(SIDES), st.sampled_from([1, 50, 1 << 18]))
def test_pairs_and_counts_equal_brute_force(
    case: Large, condition: Condition, window: tuple[int, int], indexed: Side, chunk: int
) -> None:
    mine, other = case.roles(indexed)
    index = Index(indexed, mine, condition, *window)
    mask = case.joined(condition, window)
    chunk = max(chunk, mask.sum() // 2000)
    chunks = list(index.pairs(other, chunk))
    assert sum(len(some.left) for some in chunks) == mask.sum()
    if chunks:
        found = Pairs(*map(np.concatenate, zip(*chunks, strict=True)))
        assert all(len(some.left) == chunk for some in chunks[:-1])
        assert sorted(zip(*found, strict=True)) == list(zip(*np.nonzero(mask), strict=True))
        probing = found.right if indexed == "left" else found.left
        assert (np.diff(probing) >= 0).all()
    hits = np.zeros(len(mine.key), np.int64), np.zeros(len(other.key), np.int64)
    assert index.count(other, hits) == (mask.sum(), 0.0)
    axis = 1 if indexed == "left" else 0
    assert np.array_equal(hits[0], mask.sum(axis))
    assert np.array_equal(hits[1], mask.sum(1 - axis))


@pytest.mark.parametrize("condition", ORDERED, ids=str)
@pytest.mark.parametrize("indexed", SIDES)
def test_importance_and_ages_are_those_of_the_pairs(condition: Condition, indexed: Side) -> None:
    case = random_axes(3, (400, 300), 50, 500, bursts=True)
    mine, other = case.roles(indexed)
    index = Index(indexed, mine, condition, 9, 14)
    pairs = Pairs(*map(np.concatenate, zip(*index.pairs(other), strict=True)))
    at_mine, at_other = pairs if indexed == "left" else pairs[::-1]
    draw = np.random.default_rng(4)
    worth = draw.random(len(mine.key)), draw.random(len(other.key))
    counted, noted = (Watch(np.zeros((2, 12), np.int64), 1.0, 0.5, -1e9, in_step=True) for _ in range(2))
    hits = np.zeros(len(mine.key), np.int64), np.zeros(len(other.key), np.int64)
    total, gained = index.count(other, hits, worth, "product", counted)
    note_ages(noted, other.left, mine.left, at_other, at_mine)
    assert total == len(pairs.left) > 200
    assert gained == pytest.approx(importances(COMBINES["product"], *worth, at_mine, at_other).sum())
    assert np.array_equal(counted.counts, noted.counts)
    assert (counted.counts.sum(axis=1) > 0).all()


@pytest.mark.parametrize("window", WINDOWS.values(), ids=WINDOWS)
@pytest.mark.parametrize("step", [90, 1000])
def test_large_steps_of_every_window(window: Spans, step: StepSize) -> None:
    for seed, condition in enumerate(ORDERED):
        case = random_axes(seed, (110, 130), 4, 150, bursts=seed % 2 == 0).streams()
        report = case.simulate(window, condition=condition, step=step)
        assert pairs_of(report) == case.exact(window, condition), condition


def arranged(axes: Axes, condition: Condition, reach: int) -> tuple[int, Array]:
    """The length of a block, and the arrivals as laid out, when a side probes itself."""
    arrangement = Ordered(axes.key, axes.left, axes.left, condition, "left")
    _, bits, order, *_ = arrangement.search(axes.key, axes.left, axes.left, (reach, reach))
    return 1 << bits, order


@pytest.mark.parametrize("reach", [0, 10, 40, 150, 1000, 50_000])
def test_a_block_is_as_long_as_a_window(reach: int) -> None:
    times = np.arange(20_000)
    axes = Axes(times[::-1] % 1009, times, times)
    length, order = arranged(axes, "<", reach)
    window = np.minimum(times + reach, 19_999) - np.maximum(times - reach, 0) + 1
    assert length == 32 or window.mean() <= length < 2.1 * window.mean()
    for start in range(0, len(order), length):
        block = order[start : start + length]
        assert sorted(block) == list(range(start, min(start + length, 20_000)))
        assert (np.diff(axes.key[block]) >= 0).all()


def test_a_window_of_everything_leaves_rows_in_order_of_key() -> None:
    axes = random_axes(8, (5000, 0), 100, 1000, bursts=False).left
    _, order = arranged(axes, "<", 1000)
    assert np.array_equal(order, np.argsort(axes.key, kind="stable"))
