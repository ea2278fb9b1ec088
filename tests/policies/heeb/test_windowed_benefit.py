"""What is looked up for many rows is what a sum for each would give."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tidegate.experiments.stochastic_streams.survivals import Infinite, Inverse
from tidegate.models import AR1, History, LinearTrend, Noise, Oracle, Process, RandomWalk, Stationary, gains
from tidegate.policies import Exponential, Fixed, Survival
from tidegate.policies.heeb.precomputed import rounded_benefit
from tidegate.policies.heeb.windowed_benefit import benefit_within, step_ranges
from tidegate.types import FOREVER, Array

AHEAD = 30
EXACT: list[Process] = [
    Stationary({0: 0.5, 1: 0.3, 5: 0.2}),
    LinearTrend(1, -3, Noise(4, 2.0)),
    LinearTrend(-3, 140, Noise(9)),
    LinearTrend(2, 3.5, Noise(sigma=2.0)),
    LinearTrend(0.7, 1, Noise(6)),
    LinearTrend(-1.3, 60, Noise(sigma=3.0)),
    LinearTrend(0, 9, Noise(6)),
    RandomWalk(0.5, Noise(2)),
    RandomWalk(-1, Noise(sigma=1.5)),
    AR1(2, 0.5, 2),
    AR1(20, -0.4, 3),
    Oracle(np.arange(90) % 13),
]
SURVIVALS = [Exponential(3.0), Exponential(40.0), Fixed(9), Inverse(), Infinite()]


def summed(
    process: Process, history: History, keys: Array, survival: Survival, begins: Array, ends: Array, lag: int
) -> Array:
    """One by one, from the gains at each step."""
    steps = np.arange(1, AHEAD + 1)
    found = gains(process, history, keys, lag + AHEAD)[:, lag:] * survival.at(steps)
    counted = (steps > begins[:, None]) & (steps <= ends[:, None])
    total: Array = (found * counted).sum(axis=1)
    return total


@pytest.mark.parametrize("rows", [5, 2_000])
@pytest.mark.parametrize("survival", SURVIVALS, ids=repr)
@pytest.mark.parametrize("process", EXACT, ids=repr)
def test_it_is_the_sum(process: Process, survival: Survival, rows: int) -> None:
    rng = np.random.default_rng(1)
    history, keys = History(40, 9), rng.integers(-40, 90, rows)
    for lag in (0, 3):
        ends = rng.integers(0, AHEAD + 1, rows)
        begins = np.minimum(rng.integers(0, 4, rows), ends)
        for some, others in ((begins, ends), (0 * begins, 0 * ends + AHEAD)):
            found = benefit_within(process, history, keys, survival, some, others, ahead=AHEAD, lag=lag)
            direct = summed(process, history, keys, survival, some, others, lag)
            assert found == pytest.approx(direct, abs=1e-9)
            assert (found >= 0).all()


WIDE: list[Process] = [
    LinearTrend(0.9, 0, Noise(sigma=3_000.0)),
    LinearTrend(0.9, 0, Noise(2_000)),
    LinearTrend(0, 7, Noise(sigma=3_000.0)),
    RandomWalk(3, Noise(sigma=300.0)),
    RandomWalk(0, Noise(60)),
    AR1(0, 0.8, 900),
    AR1(0, 0.99, 90),
]


@pytest.mark.parametrize("process", WIDE, ids=repr)
def test_wide_noise_is_interpolated_as_exactly_as_sums_are(process: Process) -> None:
    rng = np.random.default_rng(2)
    history, keys = History(40, 9), rng.integers(-4_000, 4_000, 5_000)
    begins, ends = np.zeros(5_000, np.int64), rng.integers(0, AHEAD + 1, 5_000)
    found = benefit_within(process, history, keys, Exponential(9.0), begins, ends, ahead=AHEAD)
    direct = summed(process, history, keys, Exponential(9.0), begins, ends, 0)
    assert np.abs(found - direct).max() < 1e-9 * direct.max()


STEPS = [Noise(sigma=1.0), Noise(3, sigma=2.0), Noise(2), Noise(sigma=20.0), Noise(sigma=300.0)]


@pytest.mark.parametrize("step", STEPS, ids=repr)
@pytest.mark.parametrize("survival", [Exponential(1.0), Exponential(40.0), Fixed(9)], ids=repr)
def test_rows_on_either_side_of_a_walk_are_worth_the_same_to_the_last_digit(
    step: Noise, survival: Survival
) -> None:
    rng = np.random.default_rng(3)
    away = np.arange(200)
    ends = rng.integers(0, AHEAD + 1, 200)
    begins = np.minimum(rng.integers(0, 4, 200), ends)
    for some, others in ((begins, ends), (0 * begins, 0 * ends + AHEAD)):
        for lag in (0, 3):
            found = [
                benefit_within(
                    RandomWalk(drift, step), History(4, 77), 77 + sign * away, survival, some, others,
                    ahead=AHEAD, lag=lag,
                )
                for drift, sign in ((0.0, 1), (0.0, -1), (0.3, 1), (-0.3, -1), (0.3, -1), (-0.3, 1))
            ]  # fmt: skip
            for one, other in zip(found[::2], found[1::2], strict=True):
                assert (one == other).all()
            assert (found[2] != found[4]).any()


def test_rows_on_either_side_of_a_level_that_stays_are_worth_the_same() -> None:
    away, none = np.arange(200), np.zeros(200, np.int64)
    for still in (LinearTrend(0, 9, Noise(sigma=40.0)), AR1(9, 0, 30.0), AR1(4.5, 0.5, 30.0)):
        above, below = (
            rounded_benefit(
                benefit_within(
                    still, History(4, 9), 9 + sign * away, Exponential(7.0), none, none + AHEAD, ahead=AHEAD
                )
            )
            for sign in (1, -1)
        )
        assert (above == below).all()


def test_of_two_far_rows_the_nearer_is_worth_more() -> None:
    walk, away = RandomWalk(0, Noise(sigma=1.0)), np.arange(300)
    none = np.zeros(300, np.int64)
    for alpha in (1.0, 10.0):
        found = rounded_benefit(
            benefit_within(walk, History(0, 0), away, Exponential(alpha), none, none + 256, ahead=256)
        )
        assert (np.diff(found) < 0).all()


def test_a_trend_of_wide_uniform_noise_and_whole_speed_is_exact() -> None:
    rng = np.random.default_rng(2)
    trend, history, keys = LinearTrend(7, 0, Noise(50_000)), History(40), rng.integers(-60_000, 60_000, 5_000)
    begins, ends = np.zeros(5_000, np.int64), rng.integers(0, AHEAD + 1, 5_000)
    found = benefit_within(trend, history, keys, Exponential(9.0), begins, ends, ahead=AHEAD)
    assert found == pytest.approx(summed(trend, history, keys, Exponential(9.0), begins, ends, 0), abs=1e-12)


def test_what_cannot_come_in_time_is_worth_nothing() -> None:
    """Not even by rounding, so that the newest of such rows stay."""
    trend, steps = LinearTrend(1, 0, Noise(3)), np.zeros(200, np.int64)
    keys = np.arange(200)
    found = benefit_within(trend, History(0), keys, Exponential(7.0), steps, steps + 20, ahead=AHEAD)
    assert (found[24:] == 0).all()
    assert (found[:24] > 0).all()


@settings(max_examples=200)
@given(
    st.lists(st.integers(-50, 50), min_size=1) | st.lists(st.floats(-50, 50), min_size=1),
    st.integers(-50, 50),
    st.integers(-5, 20) | st.just(FOREVER),
    st.integers(-20, 30) | st.just(-FOREVER),
)
def test_stretches(times: list[float], since: int, span: int, delay: int) -> None:
    column = np.array(times)
    kind = float if column.dtype.kind == "f" else int
    begins, ends = step_ranges(column, kind(since), kind(span), kind(delay), AHEAD)
    for time, begin, end in zip(times, begins.tolist(), ends.tolist(), strict=True):
        assert end == min(max(math.floor(time + span - since), 0), AHEAD)
        assert begin == min(max(math.ceil(time + delay - since) - 1, 0), AHEAD)
