"""Streams that are drawn from a process follow it."""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tidegate import InputError
from tidegate.models import AR1, History, LinearTrend, Noise, Oracle, RandomWalk, Stationary
from tidegate.streams import Stochastic, StochasticPair
from tidegate.types import Array

Known: TypeAlias = LinearTrend | RandomWalk | AR1 | Stationary | Oracle

PROCESSES: list[Known] = [
    LinearTrend(1.0, -1.0, Noise(10, sigma=1.0)),
    LinearTrend(0.3, 5.0, Noise(15, sigma=8.0)),
    LinearTrend(-2.0, 0.5, Noise(15)),
    RandomWalk(0.0, Noise(sigma=1.0)),
    RandomWalk(0.4, Noise(3)),
    AR1(5.59, 0.72, 4.22),
    AR1(-3.0, -0.5, 8.0),
    Stationary({1: 0.5, 2: 0.3, 9: 0.2}),
]
NOISES = st.builds(Noise, st.integers(0, 6), st.none() | st.floats(0.1, 50)) | st.builds(
    Noise, st.none(), st.floats(0.1, 4)
)


def keys(process: Known, rows: int, seed: int = 0) -> Array:
    return np.asarray(Stochastic(process).trace(rows, seed).keys[0])


@settings(deadline=None)
@given(NOISES, st.integers(0, 99))
def test_noise_comes_as_often_as_it_is_probable(noise: Noise, seed: int) -> None:
    drawn = np.rint(noise.sample(20_000, np.random.default_rng(seed))).astype(np.int64)
    values = np.arange(-50, 51)
    found = np.bincount(drawn + 50, minlength=101) / 20_000
    chances = noise.mass(values)
    assert not found[chances == 0].any()
    # Five standard deviations, and one row for what hardly ever comes.
    assert (np.abs(found - chances) <= 5 * np.sqrt(chances / 20_000) + 1 / 20_000).all()


@pytest.mark.parametrize("process", PROCESSES, ids=repr)
def test_a_stream_agrees_with_its_process(process: Known) -> None:
    chances = [process.goodness(keys(process, 1000, seed)) for seed in range(20)]
    assert min(chances) > 1e-4
    assert np.median(chances) > 0.2


@pytest.mark.parametrize("process", PROCESSES, ids=repr)
def test_a_longer_stream_begins_with_the_shorter(process: Known) -> None:
    whole = keys(process, 50, seed=3)
    assert whole[:20].tolist() == keys(process, 20, seed=3).tolist()
    assert whole.tolist() != keys(process, 50, seed=4).tolist()
    assert len(keys(process, 0)) == 0


def test_a_trend_stays_within_its_bounds_and_uses_them() -> None:
    away = keys(LinearTrend(1.0, -1.0, Noise(10)), 5000) - (np.arange(5000) - 1)
    assert (away.min(), away.max()) == (-10, 10)
    assert away.mean() == pytest.approx(0, abs=0.3)


def test_a_walk_begins_at_0_and_a_level_where_it_is_in_the_long_run() -> None:
    assert {int(keys(RandomWalk(0.0, Noise(3)), 1, seed)[0]) for seed in range(9)} == {0}
    level = AR1(5.59, 0.72, 4.22)
    firsts = np.array([keys(level, 1, seed)[0] for seed in range(2000)])
    late = level.probability(History(0, last=20), np.array([500]), np.arange(-20, 60))[:, 0]
    assert firsts.mean() == pytest.approx(level.mean, abs=0.5)
    assert firsts.std() == pytest.approx(np.sqrt(late @ (np.arange(-20, 60) - level.mean) ** 2), rel=0.05)


def test_both_sides_arrive_at_every_step_and_know_nothing_of_each_other() -> None:
    walk = RandomWalk(0.0, Noise(sigma=1.0))
    left, right = StochasticPair(walk, walk).both(5000, seed=1)
    assert left.time.tolist() == right.time.tolist() == list(range(5000))
    steps = [np.diff(trace.keys[0].to_numpy()) for trace in (left, right)]
    assert abs(np.corrcoef(steps)[0, 1]) < 0.05


def test_what_is_known_in_advance_comes_as_it_is() -> None:
    assert keys(Oracle([4, 5, 4]), 2).tolist() == [4, 5]
    with pytest.raises(InputError, match="cannot sample 4 values: the oracle has 3"):
        keys(Oracle([4, 5, 4]), 4)
