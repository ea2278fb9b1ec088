"""Reservoirs over a join that is sampled: uniform, whatever the sampler's fraction does."""

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
from tidegate.draws import drawn, draws
from tidegate.engine.snapshot import pack, unpack
from tidegate.models import AgeCurve, sample_rows
from tidegate.sampling import (
    JoinReservoir,
    ProgressiveJoinReservoir,
    expected_results,
    refill_confidence,
    uniformity_confidence,
)
from tidegate.sampling.printed_join import PrintedJoinReservoir
from tidegate.sampling.progressive_join import PrintedProgressiveJoin, RunningProgressiveJoin
from tidegate.sampling.ranks import Merged, RankedReservoir, merged
from tidegate.sampling.slots import Slots, Taken
from tidegate.types import Array

KEYS = [1 / 50] * 50


def watched(
    seed: int, results: int, running: RankedReservoir, fractions: Array, parts: int = 1
) -> tuple[Array, Array]:
    """Which of `results` results are shown, each with its own fraction, and which are in the reservoir then."""
    shown = np.flatnonzero(np.random.default_rng(seed).random(results) < fractions)
    slots = Slots()
    for some in np.array_split(shown, parts):
        slots.put({"x": some}, running.offer(fractions[some], some))
    assert slots.filled == len(running)
    return shown, slots.columns().get("x", np.empty(0, np.int64))


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


def test_results_are_equally_likely_if_the_sampler_does_as_it_is_told() -> None:
    runs, results, size = 600, 120, 8
    counts = np.zeros(results)
    for seed in range(runs):
        running, rng, slots = JoinReservoir(size, 50).start(seed), np.random.default_rng(seed), Slots()
        for begin in range(0, results, 8):
            fraction = running.wants().fraction
            shown = begin + np.flatnonzero(rng.random(8) < fraction)
            slots.put({"x": shown}, running.offer(np.full(len(shown), fraction), shown, least=fraction))
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
    slots.put({"x": np.arange(4000)}, Taken(np.arange(4000), np.arange(4000)))
    slots.put({"x": np.arange(0)}, running.offer(np.empty(0), least=0.25))
    assert len(running) == slots.filled == pytest.approx(1000, abs=4 * (4000 * 0.25 * 0.75) ** 0.5)
    assert running.wants() == (0.25, 4000)
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
def test_any_grouping_of_offers_leaves_the_same_results(seed: int, size: int, parts: int) -> None:
    fractions = np.random.default_rng(seed + 1000).uniform(0.3, 1.0, 100)
    held = []
    for pieces in (1, parts):
        running = JoinReservoir(size, 500).start(seed)
        held.append(np.sort(watched(seed, 100, running, fractions, pieces)[1]))
    assert held[0].tolist() == held[1].tolist()


@given(st.integers(0, 50), st.integers(1, 30), st.integers(2, 9))
def test_ranks_are_those_of_a_slow_reference(seed: int, size: int, parts: int) -> None:
    fractions = np.sort(np.random.default_rng(seed + 1000).uniform(0.3, 1.0, 100))[::-1]
    running = JoinReservoir(size, 500).start(seed)
    shown, held = watched(seed, 100, running, fractions, parts)
    ranks = {i: p * u for i, p, u in zip(shown, fractions[shown], draws(shown, running._salt), strict=True)}
    least = min(fractions[shown], default=1.0)
    lowest = sorted((i for i in ranks if ranks[i] < least), key=ranks.__getitem__)[:size]
    assert sorted(held) == sorted(lowest)


def whole(parts: list[RankedReservoir], size: int) -> Merged:
    """One reservoir of all partitions."""
    return merged(np.concatenate([part.ranks for part in parts]), [part.fraction for part in parts], size)


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
            part.offer(np.empty(0), least=fraction)
        rows, chance = whole(parts, 50)
        assert set(chance.tolist()) == {0.3}
        held += np.bincount(rows >= len(parts[0]), minlength=2)
    assert held / (20 * runs) == pytest.approx([0.3, 0.3], abs=4 * (0.21 / (20 * runs)) ** 0.5)


def test_a_partition_that_holds_nothing_bounds_the_others() -> None:
    parts = [JoinReservoir(50, 90).start(1, number) for number in range(2)]
    watched(1, 40, parts[0], np.ones(40))
    parts[1].offer(np.empty(0), least=0.25)
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


def test_a_printed_reservoir_refuses_to_tell_ranks() -> None:
    with pytest.raises(InputError, match="has no ranks"):
        _ = JoinReservoir(2, 9, printed=True).start().ranks


@pytest.mark.parametrize("printed", [False, True])
def test_a_restart_changes_nothing(printed: bool) -> None:  # noqa: FBT001 - a case
    config = JoinReservoir(20, 100, printed=printed)
    running = config.start(5)
    running.offer(np.full(100, 0.5))
    restored = config.start(5).restore(unpack(pack(running.snapshot())))
    one, other = (some.offer(np.full(900, 0.25)) for some in (running, restored))
    assert one.slots.tolist() == other.slots.tolist()
    assert one.rows.tolist() == other.rows.tolist()
    assert running.wants() == restored.wants()


def test_the_printed_reservoir_is_about_uniform_at_one_fraction() -> None:
    runs, results, size, p = 700, 200, 10, 0.5
    counts = np.zeros(results)
    for seed in range(runs):
        running = JoinReservoir(size, 100, printed=True).start(seed)
        assert isinstance(running, PrintedJoinReservoir)
        shown, held = watched(seed, results, running, np.full(results, p), 7)
        assert running.results == pytest.approx(len(shown) / p)
        assert len(held) == min(size, len(shown))
        counts[held] += 1
    halves = counts.reshape(4, -1).sum(axis=1) / counts.sum()
    assert np.abs(halves - 0.25).max() < 0.02


def test_the_printed_reservoir_samples_as_a_loop_does() -> None:
    running = JoinReservoir(4, 100, printed=True).start(2)
    fractions = np.repeat([0.9, 0.5, 0.2], 40)
    slots = Slots()
    for begin, end in pairwise([0, 1, 50, 120]):
        slots.put({"x": np.arange(begin, end)}, running.offer(fractions[begin:end]))
    k, held = 0.0, list[int]()
    for i, p in enumerate(fractions):
        if k <= 4 or drawn(2 * i, running._salt) < 4 / (k + 1) / p:
            if len(held) < 4:
                held.append(i)
            else:
                held[int(drawn(2 * i + 1, running._salt) * 4)] = i
        k += 1 / p
    assert slots.columns()["x"].tolist() == held


def config(*, printed: bool = False, use_at: float = 10_000, size: int = 100) -> ProgressiveJoinReservoir:
    """Section 5's sizes: windows of 500, rates 1 and 5, half the memory for the join."""
    return ProgressiveJoinReservoir(
        size,
        1600,
        use_at,
        (KEYS, KEYS),
        (1, 5),
        (500, 500),
        printed=printed,
    )


def run(running: RunningProgressiveJoin | PrintedProgressiveJoin, seed: int, until: int, span: int) -> Array:
    """Feed it a join with as many results as the model says; returns what it holds, as numbers of results."""
    rng, slots, number = np.random.default_rng(seed), Slots(), 0
    each = round(expected_results((KEYS, KEYS), span, rates=(1, 5), window=(500, 500)))
    for now in range(0, until, span):
        slots.put({"x": np.empty(0, np.int64)}, running.advance(now))
        wants = running.wants()
        # What the join holds and the reservoir's size are never more than the budget.
        assert wants.rows + running.size == running.budget
        if running.size > running.config.size:
            assert sample_rows((KEYS, KEYS), wants.fraction, rates=(1, 5), window=(500, 500)) <= wants.rows
        shown = number + np.flatnonzero(rng.random(each) < min(wants.fraction, 0.1))
        fraction = min(wants.fraction, 0.1)
        slots.put({"x": shown}, running.offer(np.full(len(shown), fraction), shown, least=fraction))
        number += each
        assert slots.filled == len(running) <= running.size
    return slots.columns()["x"]


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


def test_it_grows_as_far_as_it_will_be_full() -> None:
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


def test_the_printed_growth_keeps_its_three_constraints_and_is_the_largest() -> None:
    running = config(printed=True, use_at=400).start(1)
    assert isinstance(running, PrintedProgressiveJoin)
    run(running, 1, 300, 10)
    grown = running.size - 100
    assert grown > 0
    assert running.confidence >= 0.9
    # Rebuild the moment before the growth, and look at the next larger one.
    again, number = config(printed=True, use_at=400).start(1), 0
    assert isinstance(again, PrintedProgressiveJoin)
    rng = np.random.default_rng(1)
    for now in range(0, 300, 10):
        left = again.config.left(now)
        fraction, delta = again._growth(left)
        if delta:
            break
        shown = np.flatnonzero(rng.random(1000) < min(again.wants().fraction, 0.1))
        again.offer(np.full(len(shown), min(again.wants().fraction, 0.1)))
        number += 1000
    assert delta == grown
    k, m = round(again.results), int(left * fraction)
    assert refill_confidence(left, fraction, 100 + delta) >= 0.9
    assert uniformity_confidence(k, 100, delta, m) >= 0.9
    assert m >= 100 + delta - fraction * (k + 1)
    at_limit = again.config.room(fraction, 100) == delta
    broken = (
        refill_confidence(left, fraction, 101 + delta) < 0.9
        or uniformity_confidence(k, 100, delta + 1, m) < 0.9
        or m < 101 + delta - fraction * (k + 1)
    )
    assert at_limit or broken


def test_the_printed_reservoir_grows_once_and_is_refilled() -> None:
    running = config(printed=True, use_at=2000).start(3)
    held = run(running, 3, 2000, 20)
    assert len(held) == running.size > 150
    assert running.results == pytest.approx(200_000, rel=0.2)
    assert len(set(held.tolist())) == len(held)


def test_results_expected_of_age_curves() -> None:
    curve = AgeCurve([0, 10], [3])
    assert expected_results(curve, 7, rates=(2, 5), window=(10, 0)) == pytest.approx(42)
    assert expected_results((curve, curve), 7, rates=(2, 5), window=(10, 10)) == pytest.approx(147)


@pytest.mark.parametrize("bad", [0.0, -0.5, 1.5, np.nan, None])
def test_what_is_no_probability_is_refused(bad: float) -> None:
    for printed in (False, True):
        running = JoinReservoir(3, 9, printed=printed).start()
        with pytest.raises(InputError, match="probability"):
            running.offer(np.array([0.5, bad], float))
        assert running.seen == 0
    if bad is not None:
        with pytest.raises(InputError, match="least is"):
            JoinReservoir(3, 9).start().offer(np.array([0.5]), least=bad)


def test_what_cannot_be_is_refused() -> None:
    with pytest.raises(InputError, match="size is 9, but the budget of join and reservoir is 9"):
        JoinReservoir(9, 9)
    with pytest.raises(InputError, match="size is 0"):
        JoinReservoir(0, 9)
    with pytest.raises(InputError, match="2 numbers for 1 results"):
        JoinReservoir(3, 9).start().offer(np.array([0.5]), np.arange(2))
    with pytest.raises(InputError, match="refill is 1"):
        ProgressiveJoinReservoir(10, 20, 5, (KEYS, KEYS), (1, 5), (5, 5), refill=1)
    with pytest.raises(InputError, match="threshold is 0"):
        ProgressiveJoinReservoir(10, 20, 5, (KEYS, KEYS), (1, 5), (5, 5), threshold=0)
    with pytest.raises(InputError, match="use_at is nan"):
        ProgressiveJoinReservoir(10, 20, float("nan"), (KEYS, KEYS), (1, 5), (5, 5))
    with pytest.raises(InputError, match="size is 20, but the budget"):
        ProgressiveJoinReservoir(20, 20, 5, (KEYS, KEYS), (1, 5), (5, 5))
