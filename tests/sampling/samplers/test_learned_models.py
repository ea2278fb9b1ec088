"""Samples are unbiased with learned models, for keys that come and go and for steps of any size."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import tidegate as tg
from tidegate.engine.encode import encode
from tidegate.engine.join import Join
from tidegate.engine.operator import Operator, collected
from tidegate.engine.sampler_retention import SamplerRetention
from tidegate.models import Frequency
from tidegate.sampling.samplers.forecast_correction import ForecastCorrection
from tidegate.streams import Trace
from tidegate.types import Array, Budget, Rows, Window

_BIDS = 20


def z_score(sample: tg.SampleReport) -> float:
    """The error of the estimate in standard errors, as if results were drawn independently."""
    weights = 1 / sample.pairs.probability
    return float((weights.sum() - sample.exact) / np.sqrt((weights * (weights - 1)).sum()))


def auctions(count: int, lateness: float) -> tuple[dict[str, Array], dict[str, Array]]:
    """Keys that live for one window, of ten minutes; a hundred at a time."""
    rng = np.random.default_rng(2)
    opened = np.sort(rng.uniform(0, 6 * count, count))
    keys = np.repeat(np.arange(count), _BIDS)
    placed = np.repeat(opened, _BIDS) + 600 * rng.random(count * _BIDS) ** (1 / lateness)
    order = np.argsort(placed)
    return {"key": np.arange(count), "time": opened}, {"key": keys[order], "time": placed[order]}


@pytest.mark.parametrize("step", [100, 2_000, 100_000])
@pytest.mark.parametrize("lateness", [1.0, 3.0])
def test_keys_that_live_for_one_window_are_estimated_without_bias(step: int, lateness: float) -> None:
    streams = auctions(1_500, lateness)
    for budget, p in ((None, 0.2), (100, None)):
        sampler = tg.sampling.Uniform(p=p)
        sample = tg.simulate_sample(*streams, window=(600, 0), sampler=sampler, step=step, budget=budget)
        assert sample.estimate == pytest.approx(sample.exact, rel=0.05)


@pytest.mark.parametrize("sampler", ["uniform", "pps_cluster"])
def test_matches_of_buffered_rows_correct_the_forecast_of_others(sampler: str) -> None:
    opened, bids = (Trace.of(side) for side in auctions(1_500, 1.0))
    window = Window(600, 0)
    arrivals = encode(opened, bids, window, "=", None).arrivals
    join = Join(window, Budget(rows=100))
    retention = SamplerRetention(join, sampler)
    operator = Operator(join, retention)
    for left, right, moment in arrivals.steps(arrivals.cuts(100), whole_instants=False):
        collected(operator.step(left, right, moment))
    unseen = replace(arrivals.left.take(np.arange(1)), key=np.array([-1]))
    assert 10 < retention.sampling.forecaster.expected_matches(unseen)[0] < 40


def test_large_steps_with_subsampled_arrivals_are_estimated_without_bias() -> None:
    rng, rows = np.random.default_rng(0), 200_000
    streams = [{"key": rng.integers(0, 10_000, rows), "time": np.arange(rows)} for _ in range(2)]
    sampler = tg.sampling.Uniform(p=0.1)
    sample = tg.simulate_sample(*streams, window=(50_000, 50_000), sampler=sampler, step=100_000)
    assert abs(z_score(sample)) < 4


@pytest.mark.parametrize("window", [(10, -10), (-10, 10), (1, 0), (0, 1), (1, 1), (3, -2)])
def test_windows_of_a_few_integer_times_are_estimated_without_bias(window: tuple[int, int]) -> None:
    times = np.repeat(np.arange(75), 40)
    stream = {"key": np.zeros(len(times), np.int64), "time": times}
    sampler = tg.sampling.Uniform(p=0.2)
    sample = tg.simulate_sample(stream, stream, window=window, sampler=sampler, step=100)
    assert abs(z_score(sample)) < 4


@pytest.mark.parametrize("cutoff", [62, 63, 64, 65, 200])
def test_the_first_drawn_match_is_geometric_at_every_cutoff(cutoff: int) -> None:
    p, rows = 0.001, 100_000
    config = tg.sampling.Uniform(p=p, model=Frequency({1: 1.0}, {1: 1.0}), rates=(1, cutoff / 100))
    sampling = config.start(Join(Window(100.0, 0.0)).setting())
    zeros = np.zeros(rows, np.int64)
    _, owners = sampling.admit(Rows("left", zeros + 1, zeros + 0.0, np.arange(rows), zeros))
    waits, held = owners.policy_columns()["wait"], owners.policy_columns()["hold"]
    within, beyond = 1 - (1 - p) ** cutoff, (1 - p) ** cutoff * p * cutoff / 4
    assert ((waits > 0) & (held == 0)).mean() == pytest.approx(within, abs=4 * np.sqrt(within / rows))
    assert (held > 0).mean() == pytest.approx(beyond, rel=0.03, abs=4 * np.sqrt(beyond / rows))
    assert waits[held == 0].max() <= cutoff < waits[held > 0].min()


def test_a_forecast_correction_is_restored_and_decays() -> None:
    correction = ForecastCorrection()
    correction.observe(np.full(50, 0.5), np.full(50, 0.5), np.full(50, 10))
    numbers = np.array([0.001, 0.6, 3.0, np.inf])
    corrected = correction.apply(numbers.copy())
    assert corrected[1] > 10
    # A forecast below all observed ones is raised as far as those; a forecast above all is not changed.
    assert corrected[0] == pytest.approx(corrected[1], rel=1)
    assert corrected[2:].tolist() == [3.0, np.inf]
    again = ForecastCorrection().restore(correction.snapshot())
    assert again.apply(numbers.copy()).tolist() == corrected.tolist()
    correction.decay(0.0)
    correction.observe(np.full(50, 0.5), np.full(50, 1.0), np.ones(50))
    assert correction.apply(numbers.copy())[1] < 2
