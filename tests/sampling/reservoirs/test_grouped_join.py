"""Join reservoirs with groups: bounded size, equal numbers, correct merges and unbiased weights."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.sampling.chi_square import deviations
from tidegate import InputError
from tidegate.engine.snapshot import pack, unpack
from tidegate.sampling import GroupedJoinReservoir, estimate
from tidegate.sampling.reservoirs.grouped_join import RankedGroups, merge_groups
from tidegate.sampling.reservoirs.ranked import MergedSample
from tidegate.sampling.reservoirs.slots import Slots
from tidegate.types import Array

COUNTS = 900, 200, 60, 8, 40, 30, 20
"""The number of results of each group; only the first four have their own place."""
GROUPS = np.repeat(np.arange(len(COUNTS)), COUNTS)
VALUES = np.random.default_rng(0).normal(10, 3, len(GROUPS)) * (1 + GROUPS)
SIZE, LEAST = 80, 15


def held(config: GroupedJoinReservoir, seed: int, number: int, ids: Array, fractions: Array) -> Held:
    """A reservoir that was offered some results in three steps, and the held results."""
    running, slots = config.start(seed, number), Slots()
    rng = np.random.default_rng([seed, number])
    for some, chance in zip(np.array_split(ids, len(fractions)), fractions, strict=True):
        shown = some[rng.random(len(some)) < chance]
        mine = slots.columns().get("id", np.empty(0, np.int64))
        taken = running.offer(np.full(len(shown), chance), shown, groups=(GROUPS[mine], GROUPS[shown]))
        slots.put({"id": shown}, taken)
        lowered = running.offer(np.empty(0), lowest=chance)
        if lowered.kept is not None:
            slots.keep(lowered.kept)
        assert len(running) == slots.filled <= config.size
    return running, slots.columns()["id"]


Held = tuple[RankedGroups, Array]


def whole(parts: list[Held], size: int, least: int) -> tuple[Array, Array]:
    """The results in one sample of all parts, and the probability of each."""
    ids = np.concatenate([ids for _, ids in parts])
    ranks, pooled = (
        np.concatenate([getattr(running, name) for running, _ in parts]) for name in ("ranks", "pooled")
    )
    found: MergedSample = merge_groups(
        ranks, GROUPS[ids], pooled, [running.part for running, _ in parts], size, least
    )
    return ids[found.rows], found.chance


def sampled(seed: int) -> tuple[Array, Array]:
    """A sample from two buckets, one of which has fewer results and a falling probability.

    Groups come one after the other in the first, so that the last find no place; they are mixed in the second.
    """
    config = GroupedJoinReservoir(SIZE, 1000, LEAST)
    ids = np.arange(len(GROUPS))
    odd = ids % 3 == 0
    mixed = np.random.default_rng(5).permutation(ids[odd])
    return whole(
        [
            held(config, seed, 0, ids[~odd], np.ones(3)),
            held(config, seed, 1, mixed, np.array([0.9, 0.8, 0.6])),
        ],
        SIZE,
        LEAST,
    )


@pytest.fixture(scope="module")
def samples() -> list[tuple[Array, Array]]:
    """Samples of many seeds."""
    return [sampled(seed) for seed in range(400)]


def test_every_group_with_its_own_place_has_the_minimum(samples: list[tuple[Array, Array]]) -> None:
    for ids, _ in samples:
        counts = np.bincount(GROUPS[ids], minlength=len(COUNTS))
        assert (counts[:3] >= LEAST).all()
        assert len(set(ids.tolist())) == len(ids)
        assert len(ids) <= SIZE or counts.max() == LEAST


def test_weights_are_unbiased_for_every_group_and_for_all(samples: list[tuple[Array, Array]]) -> None:
    totals = np.array(
        [np.bincount(GROUPS[ids], VALUES[ids] / chance, minlength=len(COUNTS)) for ids, chance in samples]
    )
    true = np.bincount(GROUPS, VALUES)
    error = totals.std(axis=0) / len(samples) ** 0.5
    assert (np.abs(totals.mean(axis=0) - true) < 3 * error).all()
    total = totals.sum(axis=1)
    assert total.mean() == pytest.approx(true.sum(), abs=2 * float(total.std()) / len(samples) ** 0.5)


def test_within_a_group_all_results_are_equally_likely(samples: list[tuple[Array, Array]]) -> None:
    often = np.zeros(len(GROUPS))
    for ids, _ in samples:
        often[ids] += 1
    for group in (0, 1, 2):
        counts = often[group == GROUPS]
        share = counts.mean() / len(samples)
        due = counts.mean() + (counts - counts.mean()) / np.sqrt(1 - share)
        assert abs(deviations(due, counts.mean())) < 4


@pytest.mark.parametrize("what", ["count(*)", "sum(x)", "avg(x)"])
def test_intervals_have_their_level(samples: list[tuple[Array, Array]], what: str) -> None:
    true = {"count(*)": np.array(COUNTS), "sum(x)": np.bincount(GROUPS, VALUES)}
    true["avg(x)"] = true["sum(x)"] / true["count(*)"]
    inside = np.zeros(3)
    for ids, chance in samples:
        sample = {"x": VALUES[ids], "g": GROUPS[ids], "probability": chance}
        for row in estimate(sample, what, by="g", method="reservoir").to_pylist():
            if row["g"] < len(inside):
                inside[row["g"]] += row["low"] <= true[what][row["g"]] <= row["high"]
    # Groups of some 15 to 25 results: three standard errors of 400 runs about 90 %, and a little for so few.
    assert (np.abs(inside / len(samples) - 0.9) < 0.065).all()


@given(st.lists(st.integers(0, 9), min_size=1, max_size=120), st.lists(st.integers(0, 120), max_size=5))
def test_the_division_into_offers_has_no_effect(groups: list[int], cuts: list[int]) -> None:
    codes = np.array(groups)
    found = []
    for ends in ([], sorted(min(cut, len(codes)) for cut in cuts)):
        running, slots = GroupedJoinReservoir(24, 90, 3).start(1), Slots()
        for begin, end in pairwise([0, *ends, len(codes)]):
            some = np.arange(begin, end)
            mine = slots.columns().get("id", np.empty(0, np.int64))
            slots.put(
                {"id": some}, running.offer(np.ones(len(some)), some, groups=(codes[mine], codes[some]))
            )
            assert len(running) == slots.filled <= 24
        found.append((sorted(slots.columns()["id"].tolist()), running.quota, running.pools))
    assert found[0] == found[1]
    own = len(set(groups)) <= 5
    counts = np.bincount(codes[found[0][0]], minlength=10)
    assert found[0][2] is not own
    if own:
        assert (counts >= np.minimum(np.bincount(codes, minlength=10), 4)).all()


def test_a_group_has_the_minimum_if_other_parts_have_a_lower_bound() -> None:
    config, groups = GroupedJoinReservoir(44, 90, 10), [np.zeros(50, int), 1 + np.arange(3000) % 60]
    parts = [config.start(1, number) for number in range(2)]
    none = np.empty(0, np.int64)
    held = [
        some[part.offer(np.ones(len(some)), groups=(none, some)).rows]
        for part, some in zip(parts, groups, strict=True)
    ]
    ranks, pooled = (np.concatenate([getattr(part, name) for part in parts]) for name in ("ranks", "pooled"))
    both = np.concatenate(held)
    found = merge_groups(ranks, both, pooled, [part.part for part in parts], 44, 10)
    assert (np.bincount(both[found.rows])[:4] >= 10).all()
    assert pooled[found.rows].sum() == 10
    assert not len(merge_groups(np.empty(0), none, np.empty(0, bool), [config.start().part], 44, 10).rows)


def test_results_of_groups_that_share_a_place_are_counted() -> None:
    groups = np.arange(3000) % 60
    running = GroupedJoinReservoir(404, 900, 100).start(2)
    running.offer(np.ones(3000), groups=(np.empty(0, np.int64), groups))
    assert len(running) <= 404
    # Three groups have a place of their own; four standard errors.
    assert running.sharing == pytest.approx(57 * 50, rel=4 / (running.quota - 2) ** 0.5)
    with pytest.raises(InputError, match="use the sum of the weights"):
        _ = running.results


def test_a_restart_changes_nothing() -> None:
    config, groups = GroupedJoinReservoir(44, 90, 10), np.arange(900) % 7
    running = config.start(3)
    first = running.offer(np.full(400, 0.5), groups=(np.empty(0, np.int64), groups[:400])).rows
    restored = config.start(3).restore(unpack(pack(running.snapshot())))
    assert running.part == restored.part
    one, other = (
        some.offer(np.full(500, 0.4), groups=(groups[first], groups[400:])) for some in (running, restored)
    )
    assert one.rows.tolist() == other.rows.tolist()
    assert one.kept is not None
    assert other.kept is not None
    assert one.kept.tolist() == other.kept.tolist()
    assert running.part == restored.part
    assert running.sharing == restored.sharing


def test_invalid_input_is_refused() -> None:
    with pytest.raises(InputError, match="size must be at least 12 for min_per_group=5; got 11"):
        GroupedJoinReservoir(11, 90, 5)
    with pytest.raises(InputError, match="min_per_group is 0"):
        GroupedJoinReservoir(11, 90, 0)
    with pytest.raises(InputError, match="size must be below the budget"):
        GroupedJoinReservoir(90, 90)
