"""The experiments of the stochastic-streams paper run as described, and its claims are judged by what they measure."""

from __future__ import annotations

import os

import numpy as np
import pytest

import tidegate as tg
from tidegate.experiments import FULL, recorded, stochastic_streams
from tidegate.experiments.stochastic_streams import (
    CACHED,
    DRIFTING,
    POLICIES,
    SETUPS,
    Measured,
    claims_of_caching,
    claims_of_comparison,
    claims_of_memory,
    hits,
    results,
    survival,
    trends,
)
from tidegate.models import AR1, LinearTrend, Noise, RandomWalk
from tidegate.policies import Exponential
from tidegate.streams import Stochastic, StochasticPair

SMALL = {"rows": 300, "runs": 2, "warmup": 40}


def counted(found: list[Measured]) -> dict[str, list[int]]:
    return {one.policy: one.results for one in found}


def test_streams_have_the_paper_s_parameters() -> None:
    tower, roof, floor, walk = SETUPS.values()
    assert tower == (LinearTrend(1.0, -1.0, Noise(10, 1.0)), LinearTrend(1.0, 0.0, Noise(15, 2.0)))
    assert roof == (LinearTrend(1.0, -1.0, Noise(10, 3.3)), LinearTrend(1.0, 0.0, Noise(15, 5.0)))
    assert floor == (LinearTrend(1.0, -1.0, Noise(10)), LinearTrend(1.0, 0.0, Noise(15)))
    assert walk == (RandomWalk(0.0, Noise(sigma=1.0)), RandomWalk(0.0, Noise(sigma=1.0)))
    assert survival(SETUPS["FLOOR"], 10).lifetime == pytest.approx(12.5)
    assert survival(SETUPS["WALK"], 10) == Exponential(10)
    assert (
        trends((1.0, 1.0), lag=4).left.probability(tg.models.History(9), np.array([1]), np.array([6]))[0, 0]
        > 0.3
    )


@pytest.mark.parametrize("name", DRIFTING)
def test_the_window_loses_no_result_and_is_no_longer_than_it_must_be(name: str) -> None:
    assert SETUPS[name].window == (24, 26)
    left, right = StochasticPair(*SETUPS[name]).both(30_000, seed=1)
    endless, within, less = (
        tg.simulate(left, right, window=window).exact for window in ((None, None), (24, 26), (23, 25))
    )
    assert endless == within
    assert (within > less) == (name == "FLOOR")  # normal noise hardly comes to its bounds


def test_noise_is_as_wide_as_drawn_in_figure_7() -> None:
    """The peaks of S: a bounded normal distribution of deviation 2 and of 5, and a uniform one over 31 values."""
    peaks = [SETUPS[name].right.noise.mass(np.zeros(1))[0] for name in DRIFTING]  # type: ignore[union-attr]
    assert peaks == pytest.approx([0.1974, 0.0797, 1 / 31], abs=1e-3)
