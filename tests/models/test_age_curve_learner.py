"""Age curves are learned, and discarded after a change."""

from __future__ import annotations

import numpy as np
import pytest

from tidegate.models import AgeCurveLearner
from tidegate.types import Array, Buckets

ROWS = 100


def observe_windows(learner: AgeCurveLearner, rates: Array, units: range, rng: np.random.Generator) -> None:
    """Observe rows of every age with random matches."""
    for now in units:
        held = now - rng.uniform(0, len(rates), ROWS)
        matches = rng.poisson(rates * ROWS / len(rates))
        learner.observe(held, ROWS, now - 1, now, matches)


@pytest.mark.parametrize("seed", range(5))
def test_a_constant_curve_is_not_discarded(seed: int) -> None:
    learner, rng = AgeCurveLearner(Buckets(1.0, 10), None), np.random.default_rng(seed)
    observe_windows(learner, np.linspace(0, 2, 10), range(1, 200), rng)
    assert learner.exposure.sum() > 0.9 * 199 * ROWS * 0.5
    before = learner.exposure.sum()
    observe_windows(learner, np.linspace(0, 2, 10), range(200, 260), rng)
    assert learner.exposure.sum() > before


@pytest.mark.parametrize("seed", range(5))
def test_a_reversed_curve_is_learned_within_a_window(seed: int) -> None:
    learner, rng = AgeCurveLearner(Buckets(1.0, 10), None), np.random.default_rng(seed)
    observe_windows(learner, np.linspace(0, 2, 10), range(1, 200), rng)
    observe_windows(learner, np.linspace(2, 0, 10), range(200, 220), rng)
    curve = learner.curve()
    assert curve is not None
    assert learner.exposure.sum() < 30 * ROWS
    assert curve.cumulative(5.0) > 0.65 * curve.total


def test_few_matches_do_not_discard_a_curve() -> None:
    learner, rng = AgeCurveLearner(Buckets(1.0, 10), None), np.random.default_rng(0)
    observe_windows(learner, np.full(10, 0.002), range(1, 100), rng)
    observe_windows(learner, np.full(10, 0.0), range(100, 130), rng)
    assert learner.exposure.sum() > 100 * ROWS * 0.5


def test_storing_changes_nothing() -> None:
    through, stored = (AgeCurveLearner(Buckets(1.0, 10), 50) for _ in range(2))
    for learner in (through, stored):
        observe_windows(learner, np.linspace(0, 2, 10), range(1, 20), np.random.default_rng(1))
    again = AgeCurveLearner(Buckets(1.0, 10), 50)
    again.restore(stored.snapshot())
    for learner in (through, again):
        observe_windows(learner, np.linspace(2, 0, 10), range(20, 40), np.random.default_rng(2))
    for name, array in through.snapshot().items():
        np.testing.assert_array_equal(array, again.snapshot()[name])
