"""Sampled joins: conditions, windows, residual conditions, budgets in bytes, restored state."""

from __future__ import annotations

import numpy as np
import pytest

import tidegate as tg
from tests.sampling.workload import stream
from tidegate.engine.encode import encode
from tidegate.engine.join import Join
from tidegate.engine.operator import Operator, collected
from tidegate.engine.sampler_retention import SamplerRetention
from tidegate.sampling import EqCluster, PpsCluster, Uniform
from tidegate.streams import Trace
from tidegate.types import Array, Budget, Condition, Last, Pairs, Sampled, Window, WindowSpan

LEFT, RIGHT = stream(150, 1), stream(150, 2)


@pytest.mark.parametrize("window", [(20, 10), (20, 0), (0, 20), (20, -5), (Last(20), Last(9)), (None, 5)])
def test_a_probability_of_one_returns_the_join_in_every_window(window: tuple[WindowSpan, WindowSpan]) -> None:
    exact = tg.simulate(LEFT, RIGHT, window=window, collect=True).pairs
    assert exact is not None
    wanted = sorted(zip(exact.left.tolist(), exact.right.tolist(), strict=True))
    for sampler in (EqCluster(p=1.0), Uniform(p=1.0), PpsCluster()):
        for step in (1, 40):
            found = tg.simulate_sample(LEFT, RIGHT, window=window, sampler=sampler, step=step).pairs
            assert sorted(zip(found.left.tolist(), found.right.tolist(), strict=True)) == wanted
            assert (found.probability == 1).all()


def test_without_probability_and_budget_all_results_of_a_burst_are_returned() -> None:
    rare, burst = np.arange(1000), 2000 + np.arange(1000)
    burst[500:540] = 499
    left, right = ({"key": keys, "time": np.arange(1000)} for keys in (rare, burst))
    found = tg.simulate_sample(left, right, window=(100, 100), step=10)
    assert (found.results, found.exact) == (40, 40)
    assert (found.pairs.probability == 1).all()


def sampling_operator(join: Join, sampler: tg.sampling.Sampler | str) -> Operator[Sampled]:
    return Operator(join, SamplerRetention(join, sampler))


def test_a_limited_probability_frees_memory() -> None:
    join = Join(Window(60, 60))
    operator = sampling_operator(join, Uniform())
    run(operator, 10)
    whole = operator.rows
    retention = SamplerRetention(join, Uniform())
    retention.sampling.limit_probability(0.0005)
    operator = Operator(join, retention)
    run(operator, 10)
    assert whole > 110
    assert operator.rows < whole / 2


def test_a_probability_of_one_returns_the_join_for_every_condition() -> None:
    conditions: tuple[Condition, ...] = ("<", "!=", tg.Band(-1, 1))
    for condition in conditions:
        exact = tg.simulate(LEFT, RIGHT, window=(9, 9), condition=condition).results
        found = tg.simulate_sample(
            LEFT, RIGHT, window=(9, 9), condition=condition, sampler=EqCluster(p=1.0), step=20
        )
        assert found.results == exact
        half = tg.simulate_sample(
            LEFT, RIGHT, window=(9, 9), condition=condition, sampler=Uniform(p=0.5), step=20
        )
        assert half.estimate == pytest.approx(exact, rel=0.15)


def run(operator: Operator[Sampled], step: int, *, residual: bool = False) -> list[tuple[int, int]]:
    arrivals = encode(Trace.of(LEFT), Trace.of(RIGHT), operator.join.window, "=", None).arrivals
    found: list[tuple[int, int]] = []
    for left, right, moment in arrivals.steps(arrivals.cuts(step), whole_instants=False):
        old = (buffer.rows.id for buffer in operator.buffers.values())
        ids = [np.concatenate(both) for both in zip(old, (left.id, right.id), strict=True)]

        def odd(pairs: Pairs, ids: list[Array] = ids) -> Array:
            mask: Array = (ids[0][pairs.left] + ids[1][pairs.right]) % 3 == 1
            return mask

        condition = odd if residual else None
        for chunk in collected(operator.step(left, right, moment, pairs=True, residual=condition))[0]:
            pairs = list(zip(ids[0][chunk.left].tolist(), ids[1][chunk.right].tolist(), strict=True))
            assert chunk.owner.tolist() == [min(pair) for pair in pairs]
            found += pairs
    return sorted(found)


@pytest.mark.parametrize("sampler", [Uniform(p=0.4, rates=(1, 1)), EqCluster(p=0.4)], ids=lambda s: s.name)
def test_a_residual_condition_filters_the_sample(sampler: tg.sampling.Sampler) -> None:
    join = Join(Window(30, 20), seed=4)
    sample = run(sampling_operator(join, EqCluster(p=1.0)), 10, residual=True)
    assert all((left + right) % 3 == 1 for left, right in sample)
    one, many = (run(sampling_operator(join, sampler), step, residual=True) for step in (10, 1000))
    assert set(one) <= set(sample)
    if sampler.name == "eq_cluster":
        assert one == many
    assert 0.2 < len(one) / len(sample) < 0.6


def test_uniform_needs_three_bytes_more_per_row() -> None:
    operator = sampling_operator(Join(Window(30, 20)), Uniform(p=0.4))
    run(operator, 50)
    rows = operator.buffers["left"].rows
    assert len(rows)
    assert rows.row_bytes == 32 + 3
    sparse = sampling_operator(Join(Window(30, 20)), Uniform(p=0.001, rates=(1000, 1000)))
    run(sparse, 50)
    wide = sparse.buffers["left"].rows
    assert wide.policy_columns["wait"].dtype.itemsize > 1
    assert wide.policy_columns["wait"].max() > 255


def test_a_budget_in_bytes_is_respected_and_used() -> None:
    report = tg.simulate_sample(LEFT, RIGHT, window=(60, 60), budget="1 kB", sampler="uniform", step=10)
    assert 500 < report.peak_bytes <= 1000


def test_rows_of_another_sampler_are_dropped_on_restore() -> None:
    join = Join(Window(30, 20), Budget(rows=20))
    first = sampling_operator(join, "uniform")
    run(first, 50)
    assert first.rows
    other = sampling_operator(join, "eq_cluster")
    other.restore(first.snapshot())
    assert not other.rows
    assert other.state.arrived == first.state.arrived
