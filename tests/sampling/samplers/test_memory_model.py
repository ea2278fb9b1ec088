"""How much memory a fraction takes, and what follows for a budget."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tidegate as tg
from tests.sampling.workload import MODEL, SHARES, stream
from tidegate.experiments.windowed_joins.printed_uniform import PrintedUniform
from tidegate.models import AgeCurve, sample_rows
from tidegate.sampling import EqCluster, PpsCluster, Sampler, Uniform, proportional, safe_mean
from tidegate.sampling.samplers.memory_model import held_time


@given(
    st.lists(st.tuples(st.floats(0.01, 100), st.floats(0.01, 10)), min_size=1, max_size=8),
    st.floats(0.001, 0.999),
)
def test_limited_probabilities_fill_the_room(classes: list[tuple[float, float]], filled: float) -> None:
    sizes, rows = np.array(classes).T
    room = filled * rows.sum()
    constant = proportional(sizes, rows, room)
    assert rows @ np.minimum(1, constant * sizes) == pytest.approx(room)
    low, high = 0.0, 1e9
    for _ in range(200):
        middle = (low + high) / 2
        low, high = (middle, high) if rows @ np.minimum(1, middle * sizes) < room else (low, middle)
    assert constant == pytest.approx(low, rel=1e-6)


def test_with_room_for_all_rows_the_constant_is_infinite() -> None:
    assert math.isinf(proportional(np.array([1.0, 2.0]), np.array([3.0, 4.0]), 7))


@pytest.mark.parametrize("rows", [1, 10, 1000])
@pytest.mark.parametrize("overflow", [0.5, 0.1, 0.001])
def test_a_poisson_variable_with_the_safe_mean_overflows_as_rarely_as_required(
    rows: int, overflow: float
) -> None:
    mean = safe_mean(rows, overflow)
    assert 0 < mean <= rows * (1 + 1e-9)
    if rows >= 10:
        drawn = np.random.default_rng(1).poisson(mean, 200_000)
        assert (drawn > rows).mean() < overflow + 0.01


@pytest.mark.parametrize("matches", [0.3, 4.0, 30.0, 500.0])
@pytest.mark.parametrize("p", [0.01, 0.2, 1.0])
def test_held_time_equals_the_simulated_mean(matches: float, p: float) -> None:
    widths, reached = np.array([2.0, 5.0, 3.0]), np.array([0.0, 0.5, 0.5, 1.0])
    cutoff = round(1.2 * matches)
    rng, held = np.random.default_rng(7), []
    for _ in range(4000):
        ages = np.sort(np.interp(rng.random(rng.poisson(matches)), reached, [0, 2, 7.000001, 10]))
        drawn = np.flatnonzero(rng.random(cutoff) < p)
        last = drawn[-1] if len(drawn) else -1
        held.append(0.0 if last < 0 else ages[last] if last < len(ages) else 10.0)
    error = np.std(held) / math.sqrt(len(held))
    # With many matches their times are treated as fixed: an error below half a percent of the window.
    allowed = 4 * error + (0.05 if matches > 200 else 0.0)
    assert held_time(matches, cutoff, p, widths, reached) == pytest.approx(np.mean(held), abs=allowed)


def mean_rows(sampler: tg.sampling.Sampler) -> float:
    report = tg.simulate_sample(stream(3000, 3), stream(3000, 4), window=(200, 100), sampler=sampler, step=50)
    return float(report.rows[report.times > 400].mean())


@pytest.mark.parametrize("p", [0.02, 0.1, 0.5])
def test_memory_is_close_to_the_model(p: float) -> None:
    uniform = tg.sampling.Uniform(p, MODEL, (1.0, 1.0))
    model = uniform.start(tg.engine.Join(tg.Window(200, 100)).setting()).memory_model()
    assert model is not None
    # Measured: within 4 %; after steps of 50 rows the windows are a little emptier than on average.
    assert mean_rows(uniform) == pytest.approx(model.rows(0), rel=0.04)


@pytest.mark.parametrize("p", [0.02, 0.1, 0.5])
def test_theorem_4_2_is_close_for_the_printed_cutoff(p: float) -> None:
    shares = list(SHARES.values())
    theorem = sample_rows((shares, shares), p, rates=(1, 1), window=(200, 100))
    found = mean_rows(PrintedUniform(p, MODEL, (1.0, 1.0)))
    # It overestimates, by up to a tenth here.
    assert 0.88 * theorem < found < 1.02 * theorem


def test_a_probability_of_one_holds_the_whole_window() -> None:
    whole = tg.sampling.EqCluster(p=1.0)
    assert mean_rows(whole) == pytest.approx(302, abs=2)


@pytest.mark.parametrize("sampler", ["uniform", "eq_cluster", "pps_cluster"])
def test_a_learned_fraction_fills_the_budget(sampler: str) -> None:
    report = tg.simulate_sample(
        stream(4000, 5), stream(4000, 6), window=(200, 100), budget=100, sampler=sampler, step=50
    )
    filled = report.rows[report.times > 1000]
    assert filled.max() <= 100
    assert filled.mean() > 0.65 * 100
    assert report.estimate == pytest.approx(report.exact, rel=0.25)


@pytest.mark.parametrize("overflow", [0.3, 0.1, 0.01])
@pytest.mark.parametrize("sampler", [Uniform, EqCluster, PpsCluster], ids=lambda sampler: sampler.name)
def test_memory_overflows_no_more_often_than_accepted(sampler: type[Sampler], overflow: float) -> None:
    """Measured without a budget, with the probability that follows from the budget."""
    streams, budget = (stream(6000, 3), stream(6000, 4)), 60
    chosen = sampler(model=MODEL, rates=(1.0, 1.0), overflow=overflow)
    report = tg.simulate_sample(*streams, window=(100, 50), budget=budget, sampler=chosen, step=50)
    later = report.times > 300
    assert report.rows[later].mean() == pytest.approx(safe_mean(budget, overflow), rel=0.1)
    given = replace(chosen, p=float(np.median(report.fraction[later])))
    unbounded = tg.simulate_sample(*streams, window=(100, 50), sampler=given, step=50).rows[later]
    exceeded = (unbounded > budget).mean()
    assert exceeded <= overflow
    # The budget is used: not far fewer overflows than accepted.
    assert overflow < 0.3 or exceeded > 0.1


def test_an_age_curve_gives_every_row_the_same_probability() -> None:
    curve = AgeCurve([0, 50, 200], [3, 1])
    report = tg.simulate_sample(
        stream(300, 5),
        stream(300, 6),
        window=(200, 200),
        sampler=tg.sampling.PpsCluster(p=0.1, model=(curve, curve)),
        step=20,
    )
    equal = tg.simulate_sample(
        stream(300, 5),
        stream(300, 6),
        window=(200, 200),
        sampler=tg.sampling.EqCluster(p=report.pairs.probability[0]),
        step=20,
    )
    assert len(set(report.pairs.probability.tolist())) == 1
    assert report.pairs.probability[0] == pytest.approx(0.4, rel=0.03)
    assert np.array_equal(np.sort(report.pairs.owner), np.sort(equal.pairs.owner))
