"""What a sampler expects of rows, and learns to expect."""

from __future__ import annotations

import numpy as np
import pytest

from tidegate.engine.arrivals import Moment, arrange
from tidegate.engine.operator import Join, collected
from tidegate.engine.sampling_operator import SamplingOperator
from tidegate.models import Frequency
from tidegate.sampling import EqCluster, Sampler, Uniform
from tidegate.sampling.samplers.match_forecaster import Kinds, MatchForecaster
from tidegate.types import Array, Rows, Window

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


def mean(kinds: Kinds | None) -> float:
    assert kinds is not None
    return float(kinds.rows @ kinds.matches / kinds.rows.sum())


def test_some_keys_and_some_arrivals_tell_the_kinds_of_rows() -> None:
    model = Frequency(*(2 * [(np.arange(len(SHARES)), SHARES)]))
    left, right, moment = arrivals(20_000)
    expecting = MatchForecaster(model, (1.0, 1.0), Join(WINDOW).setting(), 7)
    expecting.observe({"left": left, "right": right}, moment.now)
    truth = 5_000 * float(SHARES @ SHARES)
    # Some 2,000 rows, or keys that weigh as much, tell a mean to this many standard deviations over sqrt(2,000).
    spread = 5_000 * float(np.sqrt(SHARES @ SHARES**2 - (SHARES @ SHARES) ** 2))
    assert mean(expecting.kinds("left")) == pytest.approx(truth, abs=4 * spread / np.sqrt(2_000))
    assert (expecting.foretold(left) == expecting.matches(left)).all()
    told = expecting.kinds("left")
    assert mean(told) == pytest.approx(truth, abs=4 * spread / np.sqrt(2_000))
    assert told is not None
    assert told.rows.sum() == pytest.approx(5_000)
    # What one step's arrivals told is not asked of the next.
    before = mean(told)
    expecting.observe({"left": left.take(slice(0)), "right": right.take(slice(0))}, moment.now + 1)
    assert mean(expecting.kinds("left")) != before


@pytest.mark.parametrize(
    ("sampler", "learned"), [(Uniform(), True), (EqCluster(), False), (EqCluster(model="frequency"), True)]
)
def test_who_has_no_use_for_frequencies_learns_them_only_when_told(
    sampler: Sampler, *, learned: bool
) -> None:
    operator = SamplingOperator(Join(WINDOW), sampler)
    collected(operator.step(*arrivals(3_000)))
    assert (operator.sampling.forecaster.believed() is not None) == learned
    assert any("share" in name for name in operator.sampling.snapshot()) == learned
