"""The learner finds the process of a stream, follows changes, and rejects streams without a process."""

from __future__ import annotations

import json
from collections.abc import Callable

import numpy as np
import pytest

from tests.models.processes.test_running_fits import EPOCH, SECONDS, level, sampled_by_hash
from tidegate.models import (
    AR1,
    History,
    LearnedProcess,
    LinearTrend,
    Noise,
    Process,
    ProcessLearner,
    RandomWalk,
)
from tidegate.types import Array


def stream(kind: str, count: int, seed: int = 0) -> Array:
    rng = np.random.default_rng(seed)
    times = np.arange(count)
    drawn: dict[str, Callable[[], Array]] = {
        "uniform": lambda: 2 * times + 5 + rng.integers(-10, 11, count),
        "normal": lambda: 0.7 * times - 30 + rng.normal(0, 4, count),
        "delayed": lambda: times - rng.exponential(8, count),
        "walk": lambda: np.cumsum(np.round(rng.normal(0.5, 2, count))),
        "steps": lambda: np.cumsum(rng.integers(-1, 2, count)),
        "level": lambda: level(count, rng),
        "few": lambda: 60 * np.round(level(count, rng) / 60),
        "zipf": lambda: rng.permutation(100)[np.minimum(rng.zipf(1.4, count), 100) - 1],
        "even": lambda: rng.integers(0, 9, count),
        "wide": lambda: rng.integers(0, 100_000, count),
        "hashes": lambda: rng.integers(-(2**63), 2**63 - 1, count),
        "still": lambda: np.full(count, 7),
        "sine": lambda: 40 * np.sin(2 * np.pi * times / 50) + rng.normal(0, 1, count),
        "jumps": lambda: np.cumsum(np.round(3 * rng.standard_cauchy(count))),
    }
    values: Array = np.round(drawn[kind]()).astype(np.int64)
    return values


def learned(times: Array, values: Array, learner: ProcessLearner | None = None) -> ProcessLearner:
    found = learner or ProcessLearner()
    for begin in range(0, len(times), 50):
        found.observe(times[begin : begin + 50], values[begin : begin + 50])
    return found


def learned_process(times: Array, values: Array) -> Process:
    found = learned(times, values).learned
    assert found is not None
    return found.process


@pytest.mark.parametrize("seed", range(3))
def test_trends_are_found_with_their_noise(seed: int) -> None:
    times = np.arange(400)
    uniform = learned_process(times, stream("uniform", 400, seed))
    assert isinstance(uniform, LinearTrend)
    assert uniform.speed == pytest.approx(2, rel=0.01)
    assert uniform.offset == pytest.approx(2 * 399 + 5, abs=2)
    assert uniform.noise.sigma is None
    assert uniform.noise.bound == pytest.approx(10, abs=1.5)
    normal = learned_process(times, stream("normal", 400, seed))
    assert isinstance(normal, LinearTrend)
    assert normal.speed == pytest.approx(0.7, rel=0.02)
    assert normal.noise.sigma == pytest.approx(4, rel=0.15)
    # A trend with noise that is not quite normal is still a trend.
    delayed = learned_process(times, stream("delayed", 400, seed))
    assert isinstance(delayed, LinearTrend)
    assert delayed.speed == pytest.approx(1, rel=0.02)


@pytest.mark.parametrize("seed", range(3))
def test_walks_and_levels_are_found(seed: int) -> None:
    times = np.arange(600)
    walk = learned_process(times, stream("walk", 600, seed))
    assert isinstance(walk, RandomWalk)
    assert walk.drift == pytest.approx(0.5, abs=0.25)
    assert walk.step.sigma == pytest.approx(2, rel=0.15)
    steps = learned_process(times, stream("steps", 600, seed))
    assert isinstance(steps, RandomWalk)
    assert steps.step.sigma is None
    assert steps.step.bound == pytest.approx(1, abs=0.15)
    calm = learned_process(times, stream("level", 600, seed))
    assert isinstance(calm, AR1)
    assert calm.phi1 == pytest.approx(0.72, abs=0.1)
    assert calm.mean == pytest.approx(200, abs=25)
    assert calm.sigma == pytest.approx(42, rel=0.15)


@pytest.mark.parametrize("kind", ["few", "zipf", "even", "wide", "hashes", "still", "sine", "jumps"])
@pytest.mark.parametrize("seed", range(3))
def test_streams_without_a_process_are_rejected(kind: str, seed: int) -> None:
    assert learned(np.arange(600), stream(kind, 600, seed)).learned is None


@pytest.mark.parametrize(("before", "after"), [("uniform", "level"), ("level", "walk"), ("zipf", "normal")])
def test_a_change_of_process_is_followed(before: str, after: str) -> None:
    learner = learned(np.arange(900), stream(before, 900))
    learned(900 + np.arange(1100), stream(after, 1100), learner)
    found, whole = learner.learned, learned_process(np.arange(1100), stream(after, 1100))
    assert found is not None
    assert type(found.process) is type(whole)
    if isinstance(found.process, LinearTrend):
        assert found.process.speed == pytest.approx(0.7, rel=0.05)


def test_a_process_that_ends_is_discarded() -> None:
    learner = learned(np.arange(900), stream("normal", 900))
    assert learned(900 + np.arange(600), stream("zipf", 600), learner).learned is None


def test_the_unit_of_time_does_not_matter() -> None:
    values = stream("uniform", 500)
    slow, fast = (learned(at, values).learned for at in (np.arange(500), EPOCH + np.arange(500) * SECONDS))
    assert slow is not None
    assert fast is not None
    assert (slow.unit, fast.unit) == (1, SECONDS)
    assert isinstance(slow.process, LinearTrend)
    assert isinstance(fast.process, LinearTrend)
    assert fast.process.speed == pytest.approx(slow.process.speed, rel=1e-9)
    assert fast.process.offset == pytest.approx(slow.process.offset, rel=1e-9)


@pytest.mark.parametrize("by", ["chance", "hash"])
def test_a_part_of_a_stream_has_the_same_trend(by: str) -> None:
    rng = np.random.default_rng(1)
    values = stream("uniform", 8_000)
    part = rng.random(8_000) < 1 / 8 if by == "chance" else sampled_by_hash(values, 8, 3)
    times = EPOCH + np.arange(8_000) * SECONDS
    found = learned(times[part], values[part]).learned
    assert found is not None
    assert found.unit == pytest.approx(8 * SECONDS, rel=0.1)
    assert isinstance(found.process, LinearTrend)
    assert found.process.speed == pytest.approx(2 * found.unit / SECONDS, rel=0.01)
    assert not found.regular


def test_several_rows_at_a_time_are_a_trend_but_no_walk() -> None:
    times = np.repeat(np.arange(300), 3)
    rng = np.random.default_rng(1)
    found = learned(times, 6 * times + rng.integers(-9, 10, 900)).learned
    assert found is not None
    assert isinstance(found.process, LinearTrend)
    assert found.unit == pytest.approx(1 / 3, rel=0.01)
    assert found.process.speed == pytest.approx(2, rel=0.02)
    assert learned(times, stream("walk", 900)).learned is None


def test_a_restart_changes_nothing() -> None:
    times, values = np.arange(500), stream("level", 500)
    through, again = ProcessLearner(200), ProcessLearner(200)
    for begin in range(0, 500, 7):
        rows = times[begin : begin + 7], values[begin : begin + 7]
        through.observe(*rows)
        again.observe(*rows)
        state = again.snapshot()
        assert all(array.ndim == 1 for array in state.values())
        again = ProcessLearner(200).restore({name: array.copy() for name, array in state.items()})
        assert again.learned == through.learned
    assert through.learned is not None
    assert json.loads(through.snapshot()["learned"].tobytes())["process"]["process"] == "AR1"


def test_memory_is_bounded() -> None:
    learner = ProcessLearner()
    sizes = []
    for begin in range(0, 60_000, 3_000):
        learner.observe(begin + np.arange(3_000), stream("normal", 60_000)[begin : begin + 3_000])
        sizes.append(sum(array.nbytes for array in learner.snapshot().values()))
    assert max(sizes) < 16_000


@pytest.mark.parametrize(
    "process",
    [
        LinearTrend(3, 5, Noise(bound=40)),
        LinearTrend(-2, 5, Noise(sigma=20)),
        AR1(30, 0.9, 20),
        RandomWalk(0.5, Noise(sigma=12)),
        RandomWalk(0.5, Noise(bound=14)),
    ],
    ids=repr,
)
def test_strides_are_steps_of_several_rows(process: Process) -> None:
    learned = LearnedProcess(process, 1.0, 0, regular=True, rows=100)
    assert learned.in_strides(1) == process
    values, history = np.arange(-60, 400), History(0, 300)
    fine = process.probability(history, np.array([4, 8]), values)
    coarse = learned.in_strides(4).probability(history, np.array([1, 2]), values)
    assert np.abs(fine.cumsum(axis=0) - coarse.cumsum(axis=0)).max() < 0.07


def test_irregular_times_widen_the_noise_of_a_trend() -> None:
    learned = LearnedProcess(LinearTrend(10, 0, Noise(bound=1)), 1.0, 0, regular=False, rows=100)
    coming = learned.in_strides(1).probability(History(0), np.arange(1, 40), np.arange(50, 150)).sum(axis=1)
    assert coming.mean() == pytest.approx(0.1, rel=0.05)
    assert coming.min() > 0.05
