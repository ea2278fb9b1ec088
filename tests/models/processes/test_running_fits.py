"""Running fits equal fits to all rows if nothing decays, for any batches, units of time and gaps."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidegate import InputError
from tidegate.models import (
    AR1,
    AR1Learner,
    LinearTrend,
    Noise,
    RandomWalk,
    RecentRows,
    RunningFit,
    TrendLearner,
    WalkLearner,
)
from tidegate.models.processes import random_walk
from tidegate.types import Array

KINDS: list[Callable[..., RunningFit]] = [TrendLearner, WalkLearner, AR1Learner]
SECONDS = 1_000_000
EPOCH = 1_700_000_000 * SECONDS


def fit_to(fit: RunningFit, times: Array, values: Array, size: int) -> RunningFit:
    for begin in range(0, len(times), size):
        fit.observe(times[begin : begin + size], values[begin : begin + size])
    return fit


def level(count: int, rng: np.random.Generator, phi: float = 0.72) -> Array:
    values = np.empty(count)
    values[0] = 200.0
    noise = rng.normal(0, 42, count)
    for i in range(1, count):
        values[i] = 200 + phi * (values[i - 1] - 200) + noise[i]
    return np.round(values).astype(np.int64)


def sampled_by_hash(values: Array, parts: int, part: int) -> Array:
    """The rows that a hash of their values assigns to a part."""
    mixed = values.astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15)
    chosen: Array = (mixed >> np.uint64(56)) % np.uint64(parts) == part
    return chosen


STREAMS = st.lists(st.integers(-1000, 1000), min_size=4, max_size=60).filter(lambda v: len(set(v[:-1])) > 1)


@given(STREAMS, st.integers(1, 20))
def test_without_a_horizon_a_running_fit_equals_the_fit_to_all_rows(stream: list[int], size: int) -> None:
    values, times = np.array(stream), np.arange(len(stream))
    recent = RecentRows(times, values)
    trend = fit_to(TrendLearner(), times, values, size).process(recent)
    speed, offset = np.polyfit(times, values, 1)
    assert isinstance(trend, LinearTrend)
    assert (trend.speed, trend.offset) == pytest.approx((speed, offset), rel=1e-9, abs=1e-9)
    walk = WalkLearner()
    fit_to(walk, times, values, size)
    steps = np.diff(values)
    assert (walk.drift, walk.variance) == pytest.approx((steps.mean(), steps.var()), rel=1e-9, abs=1e-9)
    slope = np.polyfit(values[:-1], values[1:], 1)[0]
    found = fit_to(AR1Learner(), times, values, size).process(recent)
    if found is None:
        # A slope of 0 has no decay rate, and a fit without residuals has no noise.
        residual = np.polyfit(values[:-1], values[1:], 1, full=True)[1]
        assert abs(slope) >= 1 - 1e-9 or abs(slope) < 1e-9 or residual.sum() < 1e-6
    else:
        assert isinstance(found, AR1)
        whole = AR1.fit(values)
        assert (found.phi0, found.phi1, found.sigma) == pytest.approx(
            (whole.phi0, whole.phi1, whole.sigma), rel=1e-9, abs=1e-9 * (1 + abs(whole.mean))
        )


def test_decayed_rows_count_by_their_weight() -> None:
    rng = np.random.default_rng(1)
    times = np.cumsum(rng.integers(0, 4, 300))
    values = np.round(0.3 * times + rng.normal(0, 5, 300)).astype(np.int64)
    weights = 0.5 ** ((times[-1] - times) / 40)
    trend = fit_to(TrendLearner(40), times, values, 7).process(RecentRows(times, values))
    speed, offset = np.polyfit(times, values, 1, w=np.sqrt(weights))
    assert isinstance(trend, LinearTrend)
    assert (trend.speed, trend.offset) == pytest.approx((speed, offset), rel=1e-9)
    walk = WalkLearner(40)
    fit_to(walk, times, values, 7)
    gaps, steps, left = np.diff(times), np.diff(values), weights[1:]
    drift = (left * steps).sum() / (left * gaps).sum()
    variance = (left * (steps - drift * gaps) ** 2).sum() / (left * gaps).sum()
    assert (walk.drift, walk.variance) == pytest.approx((drift, variance), rel=1e-9)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("horizon", [None, 30])
def test_batches_and_restarts_do_not_matter(kind: Callable[..., RunningFit], horizon: float | None) -> None:
    rng = np.random.default_rng(2)
    times = np.cumsum(rng.integers(0, 3, 200))
    values = level(200, rng)
    recent = RecentRows(times, values)
    whole = fit_to(kind(horizon), times, values, 200)
    before = fit_to(kind(horizon), times[:90], values[:90], 1)
    state = {name: array.copy() for name, array in before.snapshot().items()}
    after = fit_to(kind(horizon).restore(state), times[90:], values[90:], 17)
    fit_to(before, times[90:], values[90:], 17)
    assert repr(after.process(recent)) == repr(before.process(recent))
    found, wanted = after.intervals(recent), whole.intervals(recent)
    assert found is not None
    assert wanted is not None
    assert np.allclose(found, wanted, atol=1e-9)


@pytest.mark.parametrize(
    ("noise", "bounded"),
    [
        (Noise(bound=15, sigma=10.0), True),
        (Noise(bound=40, sigma=20.0), True),
        (Noise(sigma=10.0), False),
        (Noise(bound=60, sigma=10.0), False),
    ],
    ids=str,
)
def test_a_bound_of_normal_noise_is_detected(noise: Noise, bounded: bool) -> None:  # noqa: FBT001
    times = np.arange(4_000)
    values = LinearTrend(2, 7, noise).sample(len(times), np.random.default_rng(6))
    found = fit_to(TrendLearner(), times, values, 100).process(RecentRows(times[-512:], values[-512:]))
    assert isinstance(found, LinearTrend)
    assert noise.sigma is not None
    assert found.noise.sigma == pytest.approx(noise.sigma, rel=0.1)
    if bounded:
        # One row in 70, or more, lies within the last 2.5; that none of 512 does has a probability below 0.001.
        assert noise.bound is not None
        assert found.noise.bound == pytest.approx(noise.bound, abs=2.5)
    else:
        assert found.noise.bound is None


def test_uniform_noise_is_not_mistaken_for_bounded_normal_noise() -> None:
    times = np.arange(4_000)
    values = LinearTrend(2, 7, Noise(bound=15)).sample(len(times), np.random.default_rng(6))
    found = fit_to(TrendLearner(), times, values, 100).process(RecentRows(times[-512:], values[-512:]))
    assert isinstance(found, LinearTrend)
    assert found.noise.sigma is None


def test_large_times_lose_no_digits() -> None:
    count = 1_000_000
    times = EPOCH + np.arange(count) * SECONDS
    values = 10**12 + 3 * np.arange(count)
    for horizon in (None, 1000.0 * SECONDS):
        trend = fit_to(TrendLearner(horizon), times, values, 50_000).process(
            RecentRows(times[-9:], values[-9:]), SECONDS, times[-1].item()
        )
        assert isinstance(trend, LinearTrend)
        assert trend.speed == pytest.approx(3, rel=1e-9)
        assert trend.offset == pytest.approx(values[-1], abs=1e-3)
        walk = WalkLearner(horizon)
        fit_to(walk, times, values + np.arange(count) % 2, 50_000)
        assert walk.drift * SECONDS == pytest.approx(3, rel=1e-3)
        assert walk.variance * SECONDS == pytest.approx(1, rel=1e-3)


def test_rows_out_of_order() -> None:
    rng = np.random.default_rng(3)
    times = np.arange(400)
    values = 2 * times + rng.integers(-5, 6, 400)
    late = np.concatenate((times[:200], times[150:]))
    trend, walk = TrendLearner(), WalkLearner()
    fit_to(trend, late, values[late], 30)
    fit_to(walk, late, values[late], 30)
    line = trend.line()
    assert line is not None
    assert line[0] == pytest.approx(2, rel=0.01)
    assert line[2] == pytest.approx(10, rel=0.2)
    assert walk.gap == pytest.approx(1, rel=0.01)
    assert walk.drift == pytest.approx(2, rel=0.02)


@pytest.mark.parametrize("by", ["chance", "hash"])
def test_a_sampled_stream_has_the_same_trend_or_walk(by: str) -> None:
    rng = np.random.default_rng(4)
    count = 40_000
    times = EPOCH + np.arange(count) * SECONDS
    trending = 2 * np.arange(count) + rng.integers(-10, 11, count)
    walking = np.cumsum(np.round(rng.normal(0.5, 2, count)).astype(np.int64))
    for values, fit in ((trending, TrendLearner()), (walking, WalkLearner())):
        part = rng.random(count) < 1 / 8 if by == "chance" else sampled_by_hash(values, 8, 3)
        assert 0.1 < part.mean() < 0.15
        fit_to(fit, times[part], values[part], 1000)
        if isinstance(fit, TrendLearner):
            line = fit.line()
            assert line is not None
            assert (line[0] * SECONDS, line[2]) == pytest.approx((2, 110 / 3), rel=0.05)
        elif isinstance(fit, WalkLearner):
            assert fit.drift * SECONDS == pytest.approx(0.5, abs=0.04)
            assert fit.variance * SECONDS == pytest.approx(4 + 1 / 12, rel=0.08)


def test_the_decay_rate_of_a_randomly_sampled_level_is_found() -> None:
    rng = np.random.default_rng(5)
    times, values = np.arange(60_000), level(60_000, rng)
    part = rng.random(60_000) < 1 / 4
    fit = fit_to(AR1Learner(), times[part], values[part], 500)
    found = fit.process(RecentRows(times[part][-9:], values[part][-9:]))
    assert isinstance(found, AR1)
    assert found.phi1 == pytest.approx(0.72, abs=0.03)
    assert found.mean == pytest.approx(200, abs=5)
    assert found.sigma == pytest.approx(42, rel=0.05)


def test_a_negative_slope_is_fitted_if_gaps_are_equal() -> None:
    rng = np.random.default_rng(6)
    times, values = 10 * np.arange(500), level(500, rng, phi=-0.6)
    fit = fit_to(AR1Learner(), times, values, 50)
    found = fit.process(RecentRows(times, values), unit=10)
    assert isinstance(found, AR1)
    assert found.phi1 == pytest.approx(AR1.fit(values).phi1, rel=1e-9)
    fit.observe([5_003], [200])
    assert fit.process(RecentRows(times, values), unit=10) is None


@pytest.mark.parametrize("kind", KINDS)
def test_too_few_rows_give_no_process(kind: Callable[..., RunningFit]) -> None:
    fit, none = kind(), np.empty(0, np.int64)
    fit.observe(none, none)
    assert fit.process(RecentRows(none, none)) is None
    one = np.array([5]), np.array([7])
    fit.observe(*one)
    assert fit.process(RecentRows(*one)) is None
    assert fit.intervals(RecentRows(*one)) is None
    with pytest.raises(InputError, match="two columns of one length"):
        fit.observe([1, 2], [1])
    with pytest.raises(InputError, match="horizon=0"):
        kind(0)


def test_wide_walks_need_no_table(monkeypatch: pytest.MonkeyPatch) -> None:
    walk, ahead, far = RandomWalk(0.3, Noise(sigma=9)), np.array([1, 2, 10, 100]), np.array([[0], [5], [-40]])
    closed = walk.moves(ahead, far)
    monkeypatch.setattr(random_walk, "_MIN_NORMAL", 10.0)
    assert closed == pytest.approx(walk.moves(ahead, far), rel=1e-5)
