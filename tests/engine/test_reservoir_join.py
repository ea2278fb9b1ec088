"""A join and its reservoir within one budget, over the real operator."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest

import tidegate as tg
from tests.sampling.chi_square import deviations
from tests.sampling.workload import MODEL, SHARES, stream
from tidegate.engine import ReservoirReport, simulate_reservoir
from tidegate.engine.arrivals import arrange
from tidegate.engine.join import Join
from tidegate.engine.operator import Operator, collected
from tidegate.engine.reservoir_join import settle
from tidegate.engine.sampler_retention import SamplerRetention
from tidegate.sampling import JoinReservoir, ProgressiveJoinReservoir, Uniform
from tidegate.types import Budget, InputError, Window

WINDOW, RATES = (25, 15), (1.0, 1.0)
SEEDS, HELD = 200, 12


@cache
def exact(rows: int) -> int:
    return tg.simulate(stream(rows, 1), stream(rows, 2), window=WINDOW).results


def small(seed: int, *, size: int = HELD, budget: int = 60, at: tuple[int, ...] = ()) -> ReservoirReport:
    return simulate_reservoir(
        stream(60, 1),
        stream(60, 2),
        window=WINDOW,
        reservoir=JoinReservoir(size, budget),
        sampler=Uniform(model=MODEL, rates=RATES),
        step=30,
        at=at,
        seed=seed,
    )


def test_every_result_is_as_likely_to_be_held() -> None:
    often = np.zeros((60, 60))
    full = 0
    for seed in range(SEEDS):
        report = small(seed)
        sample = report.samples[-1]
        assert len(sample.left) == report.held[-1]
        np.add.at(often, (sample.left, sample.right), 1)
        full += len(sample.left) == HELD
    assert often.max() <= SEEDS
    assert full > 0.9 * SEEDS
    pairs = tg.simulate(stream(60, 1), stream(60, 2), window=WINDOW, collect=True).pairs
    assert pairs is not None
    counts = often[pairs.left, pairs.right]
    assert counts.sum() == often.sum()
    # Drawn without replacement, counts vary less than independent ones would.
    share = counts.mean() / SEEDS
    due = counts.mean() + (counts - counts.mean()) / np.sqrt(1 - share)
    assert abs(deviations(due, counts.mean())) < 4
    # Early and late results alike: four standard errors.
    halves = [part.mean() for part in np.array_split(counts[np.argsort(pairs.right, kind="stable")], 2)]
    off = 4 * np.sqrt(counts.mean() * (1 - share) * 4 / len(counts))
    assert abs(halves[0] - halves[1]) < off


def test_join_and_reservoir_never_exceed_the_budget_while_it_grows() -> None:
    shares = list(SHARES.values())
    for seed in range(3):
        report = simulate_reservoir(
            stream(600, 1),
            stream(600, 2),
            window=(40, 40),
            reservoir=ProgressiveJoinReservoir(10, 60, 600, (shares, shares), RATES, (40, 40)),
            sampler=Uniform(model=MODEL, rates=RATES),
            step=4,
            seed=seed,
        )
        assert (report.rows + report.held <= 60).all()
        assert (report.held <= report.size).all()
        assert report.size[-1] > 10
        assert report.held[-1] > 20
        assert report.times[0] < report.grew_at < 600


def test_it_never_grows_without_a_request() -> None:
    report = small(1)
    assert set(report.size) == {HELD}
    assert np.isnan(report.grew_at)
    assert (report.rows + report.held <= 60).all()


def test_the_number_of_results_is_estimated() -> None:
    counts = np.array([small(seed).results[-1] for seed in range(60)])
    assert abs(counts.mean() - exact(60)) < 4 * counts.std(ddof=1) / np.sqrt(len(counts))


def test_samples_are_noted_when_asked() -> None:
    report = small(2, at=(0, 20, 1000))
    assert [sample.time for sample in report.samples] == [0, 20, 1000]
    early, last = report.samples[1], report.samples[2]
    assert max(early.left.max(), early.right.max()) <= 20
    assert np.array_equal(last.left, small(2).samples[0].left)


def test_the_same_seed_holds_the_same() -> None:
    one, other = small(5), small(5)
    assert np.array_equal(one.samples[0].right, other.samples[0].right)
    assert not np.array_equal(one.samples[0].right, small(6).samples[0].right)


def test_an_empty_stream_holds_nothing() -> None:
    nobody = {"key": np.empty(0, int), "time": np.empty(0, int)}
    report = simulate_reservoir(nobody, nobody, window=WINDOW, reservoir=JoinReservoir(2, 5))
    assert report.samples == ()
    assert len(report.times) == 0


def test_what_leaves_the_join_no_memory_is_refused() -> None:
    with pytest.raises(InputError, match="to leave the join at least one row"):
        small(0, size=60)


def test_rows_of_a_higher_probability_are_thinned_before_it_is_lowered() -> None:
    left, right = ({name: np.array(column) for name, column in stream(200, seed).items()} for seed in (1, 2))
    arrivals = arrange(left, right, Window(40, 40), None)
    join = Join(Window(40, 40), Budget(rows=1000))
    retention = SamplerRetention(join, Uniform(0.5, MODEL, RATES))
    operator, sampling = Operator(join, retention), retention.sampling
    steps = list(arrivals.steps(arrivals.cuts(20), whole_instants=False))
    for step in steps[:-1]:
        collected(operator.step(*step))
    before = operator.rows
    sampling.limit_probability(0.0001)
    operator.limit(Budget(rows=before // 4))
    collected(operator.step(*steps[-1]))
    assert operator.rows <= before // 4
    assert sampling.control.lowered == 0
    assert sampling.fraction == pytest.approx(0.0001, rel=0.05)


def test_after_a_step_no_rank_is_held_that_others_like_it_no_longer_reach() -> None:
    reservoir = JoinReservoir(5, 10).start()
    reservoir.offer(np.full(4, 0.9))
    join = Join(Window(40, 40))
    retention = SamplerRetention(join, Uniform(0.001, MODEL, RATES))
    sampling = retention.sampling
    list(settle(reservoir, Operator(join, retention), sampling))
    assert reservoir.fraction == sampling.fraction
    assert (reservoir.ranks <= sampling.fraction).all()
