"""RJS and PRJS as the paper prints them."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest

from tests.sampling.reservoirs.offers import config, run, watched
from tests.sampling.workload import MODEL, SHARES, stream
from tidegate import InputError
from tidegate.draws import draw_one
from tidegate.engine.arrivals import arrange
from tidegate.engine.join import Join
from tidegate.engine.reservoir_join import run_reservoir
from tidegate.experiments.reservoir_joins.printed import (
    PrintedJoinReservoir,
    PrintedProgressiveJoinReservoir,
    PrintedReservoirJoin,
    recovers,
)
from tidegate.experiments.windowed_joins.printed_uniform import PrintedUniform
from tidegate.sampling import ProgressiveJoinReservoir, refill_confidence, uniformity_confidence
from tidegate.sampling.reservoirs.slots import Slots
from tidegate.sampling.samplers.probability_levels import probabilities_at
from tidegate.types import Window

RATES = (1.0, 1.0)


def growing() -> PrintedProgressiveJoinReservoir:
    shares = list(SHARES.values())
    config = ProgressiveJoinReservoir(10, 60, 600, (shares, shares), RATES, (40, 40))
    return PrintedProgressiveJoinReservoir(config)


def test_the_printed_reservoir_is_about_uniform_at_one_fraction() -> None:
    runs, results, size, p = 700, 200, 10, 0.5
    counts = np.zeros(results)
    for seed in range(runs):
        running = PrintedJoinReservoir(size, 100).start(seed)
        shown, held = watched(seed, results, running, np.full(results, p), 7)
        assert running.results == pytest.approx(len(shown) / p)
        assert len(held) == min(size, len(shown))
        counts[held] += 1
    halves = counts.reshape(4, -1).sum(axis=1) / counts.sum()
    assert np.abs(halves - 0.25).max() < 0.02


def test_the_printed_reservoir_samples_as_a_loop_does() -> None:
    running = PrintedJoinReservoir(4, 100).start(2)
    fractions = np.repeat([0.9, 0.5, 0.2], 40)
    slots = Slots()
    for begin, end in pairwise([0, 1, 50, 120]):
        slots.put({"x": np.arange(begin, end)}, running.offer(fractions[begin:end]))
    k, held = 0.0, list[int]()
    for i, p in enumerate(fractions):
        if k <= 4 or draw_one(2 * i, running._salt) < 4 / (k + 1) / p:
            if len(held) < 4:
                held.append(i)
            else:
                held[int(draw_one(2 * i + 1, running._salt) * 4)] = i
        k += 1 / p
    assert slots.columns()["x"].tolist() == held


def test_the_printed_growth_keeps_its_three_constraints_and_is_the_largest() -> None:
    running = PrintedProgressiveJoinReservoir(config(use_at=400)).start(1)
    run(running, 1, 300, 10)
    grown = running.size - 100
    assert grown > 0
    assert running.confidence >= 0.9
    # Rebuild the moment before the growth, and look at the next larger one.
    again, number = PrintedProgressiveJoinReservoir(config(use_at=400)).start(1), 0
    rng = np.random.default_rng(1)
    for now in range(0, 300, 10):
        left = again.config.left(now)
        fraction, delta = again._growth(left)
        if delta:
            break
        shown = np.flatnonzero(rng.random(1000) < min(again.demand().fraction, 0.1))
        again.offer(np.full(len(shown), min(again.demand().fraction, 0.1)))
        number += 1000
    assert delta == grown
    k, m = round(again.results), int(left * fraction)
    assert refill_confidence(left, fraction, 100 + delta) >= 0.9
    assert uniformity_confidence(k, 100, delta, m) >= 0.9
    assert m >= 100 + delta - fraction * (k + 1)
    at_limit = again.config.room(fraction, 100) == delta
    broken = (
        refill_confidence(left, fraction, 101 + delta) < 0.9
        or uniformity_confidence(k, 100, delta + 1, m) < 0.9
        or m < 101 + delta - fraction * (k + 1)
    )
    assert at_limit or broken


def test_the_printed_reservoir_grows_once_and_is_refilled() -> None:
    running = PrintedProgressiveJoinReservoir(config(use_at=2000)).start(3)
    held = run(running, 3, 2000, 20)
    assert len(held) == running.size > 150
    assert running.results == pytest.approx(200_000, rel=0.2)
    assert len(set(held.tolist())) == len(held)


def test_join_and_reservoir_never_exceed_the_budget_while_it_grows() -> None:
    for seed in range(3):
        report = run_reservoir(
            stream(600, 1),
            stream(600, 2),
            lambda join: PrintedReservoirJoin(join, growing(), PrintedUniform(model=MODEL, rates=RATES)),
            window=(40, 40),
            step=4,
            seed=seed,
        )
        assert (report.rows + report.held <= 60).all()
        assert (report.held <= report.size).all()
        assert report.size[-1] > 10
        assert report.held[-1] > 20
        assert report.times[0] < report.grew_at < 600


def test_all_results_are_offered_with_one_probability() -> None:
    left, right = ({name: np.array(column) for name, column in stream(600, seed).items()} for seed in (1, 2))
    arrivals = arrange(left, right, Window(40, 40), None)
    sampler = PrintedUniform(model=MODEL, rates=RATES)
    running = PrintedReservoirJoin(Join(Window(40, 40), seed=1), growing(), sampler)
    fractions, rows = [], 0
    for step in arrivals.steps(arrivals.cuts(4), whole_instants=False):
        running.step(*step)
        fractions.append(running.retention.sampling.fraction)
        for buffer in running.operator.buffers.values():
            level = buffer.rows.policy_columns.get("level")
            rows += len(buffer)
            assert level is None or (probabilities_at(1.0, level) <= fractions[-1] * (1 + 1e-12)).all()
    assert rows > 1000
    assert fractions[-1] < fractions[0] / 4
    assert running.reservoir.size > 10


def test_rjs_keeps_its_probability_and_so_the_memory_of_its_join() -> None:
    report = run_reservoir(
        stream(600, 1),
        stream(600, 2),
        lambda join: PrintedReservoirJoin(
            join, PrintedJoinReservoir(10, 60), PrintedUniform(model=MODEL, rates=RATES)
        ),
        window=(40, 40),
        step=4,
    )
    full = report.times >= 80
    assert report.held[-1] == 10
    assert report.results[-1] > 100 * report.size[-1]
    assert report.fraction.min() > 0.9 * report.fraction[full][0]
    assert report.rows[full].mean() > 0.5 * 50
    assert (report.rows + report.held <= 60).all()


def test_an_invalid_probability_is_refused() -> None:
    running = PrintedJoinReservoir(3, 9).start()
    with pytest.raises(InputError, match="probability"):
        running.offer(np.array([0.5, 1.5]))
    assert running.seen == 0


def test_recovery_needs_enough_sampled_results() -> None:
    assert recovers(k=999, m=100, size=150, fraction=0.05)
    assert not recovers(k=999, m=99, size=150, fraction=0.05)
