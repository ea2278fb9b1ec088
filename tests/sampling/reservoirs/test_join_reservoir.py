"""Join reservoirs are uniform, however the probability of the sampler changes."""

from __future__ import annotations

from collections import Counter
from itertools import combinations
from math import comb

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.sampling.chi_square import deviations
from tests.sampling.reservoirs.offers import KEYS, config, run, watched
from tidegate import InputError
from tidegate.draws import draws
from tidegate.engine.snapshot import pack, unpack
from tidegate.models import AgeCurve
from tidegate.sampling import (
    JoinReservoir,
    ProgressiveJoinReservoir,
    expected_results,
    refill_confidence,
)
from tidegate.sampling.reservoirs.progressive_join import RunningProgressiveJoin
from tidegate.sampling.reservoirs.ranked import MergedSample, RankedReservoir, merge_ranked
from tidegate.sampling.reservoirs.slots import SlotChanges, Slots


def test_every_subset_is_equally_likely_while_the_fraction_falls() -> None:
    fractions = np.array([1.0, 1.0, 0.9, 0.9, 0.8, 0.7, 0.7, 0.6, 0.6])
    runs, found, full = 6000, Counter[tuple[int, ...]](), 0
    for seed in range(runs):
        running = JoinReservoir(2, 10).start(seed)
        _, held = watched(seed, 9, running, fractions)
        if len(held) == 2:
            found[tuple(sorted(held.tolist()))] += 1
            full += 1
    assert full > 0.9 * runs
    counts = [found[pair] for pair in combinations(range(9), 2)]
    assert abs(deviations(counts, full / comb(9, 2))) < 4


def test_results_are_equally_likely_if_the_sampler_follows_the_demand() -> None:
    runs, results, size = 600, 120, 8
    counts = np.zeros(results)
    for seed in range(runs):
        running, rng, slots = JoinReservoir(size, 50).start(seed), np.random.default_rng(seed), Slots()
        for begin in range(0, results, 8):
            fraction = running.demand().fraction
            shown = begin + np.flatnonzero(rng.random(8) < fraction)
            slots.put({"x": shown}, running.offer(np.full(len(shown), fraction), shown, lowest=fraction))
        assert len(running) == size, "lowering the fraction to what is wanted loses nothing"
        counts[slots.columns()["x"]] += 1
    chance = size / results
    assert np.abs(counts / runs - chance).max() < 4 * (chance * (1 - chance) / runs) ** 0.5
    early = counts[: results // 2].sum() / counts.sum()
    # One run's results split hypergeometrically.
    assert early == pytest.approx(0.5, abs=4 * (0.25 / (size * runs)) ** 0.5)


def test_before_it_is_full_a_falling_fraction_thins_the_sample_to_it() -> None:
    running = JoinReservoir(5000, 9000).start(1)
    running.offer(np.ones(4000))
    slots = Slots()
    slots.put({"x": np.arange(4000)}, SlotChanges(np.arange(4000), np.arange(4000)))
    slots.put({"x": np.arange(0)}, running.offer(np.empty(0), lowest=0.25))
    assert len(running) == slots.filled == pytest.approx(1000, abs=4 * (4000 * 0.25 * 0.75) ** 0.5)
    assert running.demand() == (0.25, 4000)
    assert running.results == len(running) / 0.25
    assert np.abs(slots.columns()["x"].mean() - 2000) < 4 * 4000 / (12 * 1000) ** 0.5


def test_the_number_of_results_is_estimated_without_bias() -> None:
    estimates = []
    for seed in range(400):
        running = JoinReservoir(50, 90).start(seed)
        watched(seed, 3000, running, np.full(3000, 0.3))
        estimates.append(running.results)
    # The variance of the estimate is about k * k / (size - 2).
    assert np.mean(estimates) == pytest.approx(3000, abs=4 * 3000 / (48 * 400) ** 0.5)


@given(st.integers(0, 50), st.integers(1, 30), st.integers(2, 9))
def test_the_division_into_offers_has_no_effect(seed: int, size: int, parts: int) -> None:
    fractions = np.random.default_rng(seed + 1000).uniform(0.3, 1.0, 100)
    held = []
    for pieces in (1, parts):
        running = JoinReservoir(size, 500).start(seed)
        held.append(np.sort(watched(seed, 100, running, fractions, pieces)[1]))
    assert held[0].tolist() == held[1].tolist()


@given(st.integers(0, 50), st.integers(1, 30), st.integers(2, 9))
def test_ranks_equal_a_slow_reference(seed: int, size: int, parts: int) -> None:
    fractions = np.sort(np.random.default_rng(seed + 1000).uniform(0.3, 1.0, 100))[::-1]
    running = JoinReservoir(size, 500).start(seed)
    shown, held = watched(seed, 100, running, fractions, parts)
    ranks = {i: p * u for i, p, u in zip(shown, fractions[shown], draws(shown, running._salt), strict=True)}
    least = min(fractions[shown], default=1.0)
    lowest = sorted((i for i in ranks if ranks[i] < least), key=ranks.__getitem__)[:size]
    assert sorted(held) == sorted(lowest)


def whole(parts: list[RankedReservoir], size: int) -> MergedSample:
    """One reservoir of all partitions."""
    return merge_ranked(
        np.concatenate([part.ranks for part in parts]), [part.fraction for part in parts], size
    )


def test_partitions_merge_into_a_uniform_sample() -> None:
    # The second partition is sampled at a lower fraction and sees fewer results.
    fractions = [np.ones(6), np.full(3, 0.7)]
    runs, found, full = 3000, Counter[tuple[int, ...]](), 0
    for seed in range(runs):
        parts, held = [], []
        for number, some in enumerate(fractions):
            parts.append(JoinReservoir(2, 9).start(seed, number))
            held.append(6 * number + watched(2 * seed + number, len(some), parts[-1], some)[1])
        both = np.concatenate(held)[whole(parts, 2).rows]
        if len(both) == 2:
            found[tuple(sorted(both.tolist()))] += 1
            full += 1
    counts = [found[pair] for pair in combinations(range(9), 2)]
    assert full > 0.9 * runs
    assert abs(deviations(counts, full / comb(9, 2))) < 4


def test_partitions_that_are_not_full_merge_at_the_lowest_fraction() -> None:
    runs, held = 400, np.zeros(2, int)
    for seed in range(runs):
        parts = [JoinReservoir(50, 90).start(seed, number) for number in range(2)]
        for part, fraction in zip(parts, (1.0, 0.3), strict=True):
            watched(seed, 20, part, np.full(20, fraction))
            part.offer(np.empty(0), lowest=fraction)
        rows, chance = whole(parts, 50)
        assert set(chance.tolist()) == {0.3}
        held += np.bincount(rows >= len(parts[0]), minlength=2)
    assert held / (20 * runs) == pytest.approx([0.3, 0.3], abs=4 * (0.21 / (20 * runs)) ** 0.5)


def test_the_bound_of_an_empty_partition_limits_the_others() -> None:
    parts = [JoinReservoir(50, 90).start(1, number) for number in range(2)]
    watched(1, 40, parts[0], np.ones(40))
    parts[1].offer(np.empty(0), lowest=0.25)
    rows, chance = whole(parts, 50)
    assert rows.tolist() == np.argsort(parts[0].ranks)[: (parts[0].ranks <= 0.25).sum()].tolist()
    assert 0 < len(rows) < 40
    assert set(chance.tolist()) == {0.25}


@pytest.mark.parametrize(("sizes", "fractions"), [((20, 20), (1.0, 0.6)), ((6, 250), (1.0, 1.0))])
def test_weights_of_merged_partitions_add_up_to_the_number_of_results(
    sizes: tuple[int, int], fractions: tuple[float, float]
) -> None:
    totals = []
    for seed in range(400):
        parts = [JoinReservoir(size, 900).start(seed, number) for number, size in enumerate(sizes)]
        for number, (part, fraction) in enumerate(zip(parts, fractions, strict=True)):
            watched(2 * seed + number, (70, 200)[number], part, np.full((70, 200)[number], fraction))
        totals.append((1 / whole(parts, max(sizes)).chance).sum())
    assert np.mean(totals) == pytest.approx(270, abs=2 * float(np.std(totals)) / 400**0.5)


def test_a_restart_changes_nothing() -> None:
    config = JoinReservoir(20, 100)
    running = config.start(5)
    running.offer(np.full(100, 0.5))
    restored = config.start(5).restore(unpack(pack(running.snapshot())))
    one, other = (some.offer(np.full(900, 0.25)) for some in (running, restored))
    assert one.slots.tolist() == other.slots.tolist()
    assert one.rows.tolist() == other.rows.tolist()
    assert running.demand() == restored.demand()


def test_the_reservoir_grows_and_is_full_and_uniform_when_it_is_used() -> None:
    full, sizes, early = 0, [], []
    for seed in range(40):
        running = config(use_at=2000).start(seed)
        held = run(running, seed, 2000, 20)
        full += len(held) == running.size
        sizes.append(running.size)
        if len(held) == running.size:  # of 200,000 results
            early.append(float((held < 100_000).mean()))
    assert min(sizes) > 1000
    assert full >= 0.9 * 40 - 4 * (40 * 0.09) ** 0.5
    # Half of all results came in the first half of the time; four standard errors.
    assert np.mean(early) == pytest.approx(0.5, abs=4 * float(0.25 / (np.mean(sizes) * len(early))) ** 0.5)


def test_it_grows_as_far_as_it_can_be_refilled() -> None:
    running = config(use_at=10_000).start()
    assert isinstance(running, RunningProgressiveJoin)
    running.offer(np.full(600, 0.1))
    left = running.config.left(9900)
    before = running._ranks.copy()
    running.advance(9900)
    assert running.size > 100

    def confidence(size: int) -> float:
        staying = int((before <= running.fraction).sum())
        return refill_confidence(left, running.fraction, max(0, size - staying))

    assert confidence(running.size) >= 0.9
    assert running.size == 1600 or confidence(running.size + 3) < 0.9


def test_it_does_not_grow_without_time_memory_or_results() -> None:
    late = config().start()
    late.offer(np.full(600, 0.1))
    assert late.advance(10_000).kept is None
    assert late.size == 100
    empty = config().start()
    assert empty.advance(0).kept is None
    tight = ProgressiveJoinReservoir(100, 101, 10_000, (KEYS, KEYS), (1, 5), (500, 500)).start()
    tight.offer(np.full(600, 0.1))
    tight.advance(0)
    assert tight.size == 100


def test_results_expected_of_age_curves() -> None:
    curve = AgeCurve([0, 10], [3])
    assert expected_results(curve, 7, rates=(2, 5), window=(10, 0)) == pytest.approx(42)
    assert expected_results((curve, curve), 7, rates=(2, 5), window=(10, 10)) == pytest.approx(147)


@pytest.mark.parametrize("bad", [0.0, -0.5, 1.5, np.nan, None])
def test_invalid_probabilities_are_refused(bad: float) -> None:
    running = JoinReservoir(3, 9).start()
    with pytest.raises(InputError, match="probability"):
        running.offer(np.array([0.5, bad], float))
    assert running.seen == 0
    if bad is not None:
        with pytest.raises(InputError, match="lowest must be"):
            JoinReservoir(3, 9).start().offer(np.array([0.5]), lowest=bad)


def test_invalid_input_is_refused() -> None:
    with pytest.raises(InputError, match="size must be below the budget of join and reservoir, which is 9"):
        JoinReservoir(9, 9)
    with pytest.raises(InputError, match="size is 0"):
        JoinReservoir(0, 9)
    with pytest.raises(InputError, match="one value for each of 1 results; got 2 values"):
        JoinReservoir(3, 9).start().offer(np.array([0.5]), np.arange(2))
    with pytest.raises(InputError, match=r"refill must be .*; got 1"):
        ProgressiveJoinReservoir(10, 20, 5, (KEYS, KEYS), (1, 5), (5, 5), refill=1)
    with pytest.raises(InputError, match=r"threshold must be .*; got 0"):
        ProgressiveJoinReservoir(10, 20, 5, (KEYS, KEYS), (1, 5), (5, 5), threshold=0)
    with pytest.raises(InputError, match="use_at is nan"):
        ProgressiveJoinReservoir(10, 20, float("nan"), (KEYS, KEYS), (1, 5), (5, 5))
    with pytest.raises(InputError, match="size must be below the budget"):
        ProgressiveJoinReservoir(20, 20, 5, (KEYS, KEYS), (1, 5), (5, 5))
