"""Progressive reservoirs: the inclusion probabilities of rows before and after a growth."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.sampling.chi_square import deviations
from tidegate import InputError
from tidegate.engine.snapshot import pack, unpack
from tidegate.sampling import (
    ProgressiveReservoir,
    inclusion_chances,
    merge,
    recovery_count,
    retained_chances,
    uniformity_confidence,
)
from tidegate.sampling.reservoirs.progressive import RunningProgressive


def shown(seed: int, *, until: int, size: int = 10) -> RunningProgressive:
    running = ProgressiveReservoir(size, 0.6).start(seed)
    running.offer({"x": np.arange(until)})
    return running


def test_inclusion_probabilities_equal_the_formula() -> None:
    k, r, delta, runs = 40, 10, 6, 3000
    m = recovery_count(k, r, delta, 0.6)
    counts, retained = np.zeros(k + m), np.zeros(r + 1)
    for seed in range(runs):
        running = shown(seed, until=k)
        assert running.grow(delta) == m
        retained[len(running)] += 1
        running.offer({"x": np.arange(k, k + m)})
        counts[running.sample().columns["x"]] += 1
        assert len(running) == r + delta
    old, new = inclusion_chances(k, r, delta, m)
    assert old < new
    expected = retained_chances(k, r, delta, m) * runs
    likely = expected > 5
    assert abs(deviations(retained[likely], expected[likely])) < 4
    for begin, end, chance in [(0, k, old), (k, k + m, new)]:
        error = (chance * (1 - chance) / runs) ** 0.5
        assert np.abs(counts[begin:end] / runs - chance).max() < 4 * error
        # One run's rows exclude each other, so that the mean is known better still.
        assert counts[begin:end].mean() / runs == pytest.approx(chance, abs=4 * error / (end - begin) ** 0.5)


def test_sampling_is_conventional_after_the_refill() -> None:
    k, r, delta, after, runs = 40, 10, 6, 60, 1500
    m = recovery_count(k, r, delta, 0.6)
    counts = np.zeros(k + m + after)
    for seed in range(runs):
        running = shown(seed, until=k)
        running.grow(delta)
        running.offer({"x": np.arange(k, k + m + after)})
        counts[running.sample().columns["x"]] += 1
    latest = (r + delta) / (k + m + after)
    assert counts[-after:].mean() / runs == pytest.approx(latest, abs=4 * (latest / runs / after) ** 0.5)


@given(st.lists(st.integers(100, 400), max_size=6), st.integers(0, 9))
def test_the_division_into_offers_has_no_effect(cuts: list[int], seed: int) -> None:
    samples = []
    for points in ([100, 400], [100, *sorted(cuts), 400]):
        running = shown(seed, until=100)
        running.grow(5)
        running.grow(2)
        for begin, end in pairwise(points):
            running.offer({"x": np.arange(begin, end)})
        samples.append(running.sample().columns["x"].tolist())
    assert samples[0] == samples[1]


def test_a_growth_waits_for_the_refill_before_it() -> None:
    running = shown(0, until=100)
    first = running.grow(5)
    assert running.grow(3) == first
    running.offer({"x": np.arange(first - 1)})
    assert (running.size, running.refilling) == (15, 1)
    running.offer({"x": np.arange(1)})
    assert (running.size, running.refilling) == (18, recovery_count(100 + first, 15, 3, 0.6))
    expected = uniformity_confidence(100, 10, 5, first) * uniformity_confidence(
        100 + first, 15, 3, running.refilling
    )
    assert running.confidence == pytest.approx(expected)


def test_a_reservoir_that_holds_all_rows_grows_without_a_refill() -> None:
    running = shown(0, until=10)
    assert running.grow(5) == 0
    running.offer({"x": np.arange(10, 15)})
    assert sorted(running.sample().columns["x"]) == list(range(15))
    assert running.confidence == 1
    assert shown(0, until=99).grow(0) == 0


def test_a_restart_during_a_refill_changes_nothing() -> None:
    running = shown(1, until=100)
    running.grow(5)
    running.grow(4)
    running.offer({"x": np.arange(100, 110)})
    state = unpack(pack(running.snapshot()))
    restored = ProgressiveReservoir(10, 0.6).start(1).restore(state)
    for one in (running, restored):
        one.offer({"x": np.arange(110, 500)})
    assert running.sample().columns["x"].tolist() == restored.sample().columns["x"].tolist()
    assert (running.size, running.confidence) == (restored.size, restored.confidence)


def test_a_merge_during_a_refill_is_refused() -> None:
    running, other = shown(0, until=100), shown(1, until=100)
    missing = running.grow(5)
    with pytest.raises(InputError, match=f"refilled; merge it after {missing} more rows"):
        merge([running.sample(), other.sample()])
    running.offer({"x": np.arange(missing)})
    assert merge([running.sample(), other.sample()]).seen == 200 + missing


def test_invalid_input_is_refused() -> None:
    running = shown(0, until=100)
    for delta in (-1, 1.5, None, True):
        with pytest.raises(InputError, match=r"delta must be .* at least 0"):
            running.grow(delta)  # type: ignore[arg-type]
    with pytest.raises(InputError, match="within must be at least delta, which is 5; got 4"):
        running.grow(5, within=4)
    with pytest.raises(InputError, match="size is 0"):
        ProgressiveReservoir(0)
    with pytest.raises(InputError, match=r"threshold must be .*; got 1"):
        ProgressiveReservoir(10, 1)
