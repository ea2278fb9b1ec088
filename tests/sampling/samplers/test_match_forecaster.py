"""Forecasts of the matches of rows, from given and learned models."""

from __future__ import annotations

import numpy as np
import pytest

from tidegate.engine.arrivals import Moment, arrange
from tidegate.engine.join import Join
from tidegate.engine.operator import Operator, collected
from tidegate.engine.sampler_retention import SamplerRetention
from tidegate.models import Frequency
from tidegate.sampling import EqCluster, Sampler, Uniform
from tidegate.sampling.samplers.match_forecaster import MatchForecaster, RowClasses
from tidegate.types import Array, Clocks, Rows, Window

WINDOW = Window(5_000, 5_000)
SHARES = np.arange(1, 10_001) ** -0.7
SHARES /= SHARES.sum()


def keys(rows: int, seed: int) -> Array:
    return np.random.default_rng(seed).choice(len(SHARES), rows, p=SHARES)


def arrivals(rows: int) -> tuple[Rows, Rows, Moment]:
    left, right = ({"key": keys(rows, seed), "time": np.arange(rows)} for seed in (1, 2))
    arrived = arrange(left, right, WINDOW, None)
    [step] = arrived.steps(arrived.cuts(2 * rows), whole_instants=False)
    return step


def mean(classes: RowClasses | None) -> float:
    assert classes is not None
    return float(classes.rows @ classes.matches / classes.rows.sum())


def test_row_classes_follow_from_samples_of_keys_and_of_arrivals() -> None:
    model = Frequency(*(2 * [(np.arange(len(SHARES)), SHARES)]))
    left, right, moment = arrivals(20_000)
    forecaster = MatchForecaster(model, (1.0, 1.0), Join(WINDOW).setting(), 7)
    forecaster.observe({"left": left, "right": right}, moment.clocks)
    truth = 5_000 * float(SHARES @ SHARES)
    # About 2,000 rows or keys are used: four standard errors of their mean.
    spread = 5_000 * float(np.sqrt(SHARES @ SHARES**2 - (SHARES @ SHARES) ** 2))
    assert mean(forecaster.row_classes("left")) == pytest.approx(truth, abs=4 * spread / np.sqrt(2_000))
    assert (forecaster.forecast_arrivals(left) == forecaster.expected_matches(left)).all()
    classes = forecaster.row_classes("left")
    assert mean(classes) == pytest.approx(truth, abs=4 * spread / np.sqrt(2_000))
    assert classes is not None
    assert classes.rows.sum() == pytest.approx(5_000)
    # The arrivals of a step are not used in the next one.
    before = mean(classes)
    forecaster.observe(
        {"left": left.take(slice(0)), "right": right.take(slice(0))}, Clocks.both(moment.now + 1)
    )
    assert mean(forecaster.row_classes("left")) != before


@pytest.mark.parametrize(
    ("sampler", "learned"), [(Uniform(), True), (EqCluster(), False), (EqCluster(model="frequency"), True)]
)
def test_eq_cluster_learns_frequencies_only_if_its_model_asks_for_them(
    sampler: Sampler, *, learned: bool
) -> None:
    join = Join(WINDOW)
    retention = SamplerRetention(join, sampler)
    collected(Operator(join, retention).step(*arrivals(3_000)))
    assert (retention.sampling.forecaster.current_model() is not None) == learned
    assert any("share" in name for name in retention.sampling.snapshot()) == learned
