"""Over many seeds, inclusion probabilities are right: fixed seeds, bounds in standard errors."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import cache, partial
from typing import NamedTuple, TypeAlias

import numpy as np
import pytest

import tidegate as tg
from tests.sampling.workload import MODEL, SHARES, stream
from tidegate.engine.encode import encode
from tidegate.engine.join import Join
from tidegate.engine.operator import Operator, collected
from tidegate.engine.replay import Recording
from tidegate.engine.sampler_retention import SamplerRetention
from tidegate.engine.simulate import run
from tidegate.experiments.windowed_joins.printed_uniform import PrintedUniform
from tidegate.models import Frequency
from tidegate.sampling import EqCluster, PpsCluster, Uniform
from tidegate.streams import Trace
from tidegate.types import Array, Budget, Rows, Sampled, Window

SEEDS = 200
LEFT, RIGHT, WINDOW = stream(60, 1), stream(60, 2), (25, 15)
RATES = (1.0, 1.0)


Maker: TypeAlias = Callable[..., tg.sampling.Sampler]


class Runs(NamedTuple):
    """For each seed and result of the exact join, its weight: one over its probability, 0 if it was not drawn."""

    weights: Array
    probability: Array
    owner: Array
    overflows: Array


ARRIVALS = encode(Trace.of(LEFT), Trace.of(RIGHT), Window(*WINDOW), "=", None).arrivals
CUTS = ARRIVALS.cuts(30)
PLACES = np.full((120, 120), -1)


def exact() -> int:
    """Number the results of the exact join by their rows' numbers, and return how many there are."""
    pairs = run(Recording(ARRIVALS, CUTS, CUTS), Join(Window(*WINDOW)), collect=True).pairs
    assert pairs is not None
    PLACES[pairs.left, pairs.right] = np.arange(len(pairs.left))
    return len(pairs.left)


RESULTS = exact()


def sampled(sampler: tg.sampling.Sampler, budget: int | None, seed: int) -> tuple[Sampled, int]:
    """The sample of one seed by row numbers, and how often memory overflowed."""
    join = Join(Window(*WINDOW), Budget.of(budget), seed=seed)
    retention = SamplerRetention(join, sampler)
    operator = Operator(join, retention)
    found = []
    for left, right, moment in ARRIVALS.steps(CUTS, whole_instants=False):
        old = (buffer.rows.id for buffer in operator.buffers.values())
        ids = [np.concatenate(both) for both in zip(old, (left.id, right.id), strict=True)]
        for chunk in collected(operator.step(left, right, moment, pairs=True))[0]:
            rows = ids[0][chunk.left], ids[1][chunk.right]
            found.append(Sampled(*rows, chunk.probability, chunk.owner, chunk.shown))
        assert budget is None or operator.rows <= budget
    return Sampled.concat(found), retention.sampling.control.lowered


@cache
def runs(sampler: tg.sampling.Sampler, budget: int | None) -> Runs:
    weights = np.zeros((SEEDS, RESULTS))
    owner, overflows = np.zeros(RESULTS, np.int64), np.zeros(SEEDS)
    for seed in range(SEEDS):
        sample, overflows[seed] = sampled(sampler, budget, seed)
        at = PLACES[sample.left, sample.right]
        assert (at >= 0).all()
        weights[seed, at] = 1 / sample.probability
        owner[at] = sample.owner
    probability = np.divide(1, weights, out=np.zeros_like(weights), where=weights > 0)
    return Runs(weights, probability, owner, overflows)


@cache
def copies(make: Maker, factor: float = 1.0) -> Runs:
    """Join many copies of the streams at once, each with its own keys: equivalent to many seeds without a budget.

    The model forecasts `factor` times the true number of matches.
    """
    many = [
        {
            "key": (np.arange(SEEDS) * 10 + np.array(side["key"])[:, None]).ravel(),
            "time": np.repeat(side["time"], SEEDS),
        }
        for side in (LEFT, RIGHT)
    ]
    shares = {copy * 10 + key: share / SEEDS for copy in range(SEEDS) for key, share in SHARES.items()}
    rate = factor * SEEDS
    sampler = make(model=Frequency(shares, shares), rates=(rate, rate))
    sample = tg.simulate_sample(*many, window=WINDOW, sampler=sampler, step=3000, seed=3).pairs
    # Rows of one time stand together, copy by copy.
    copy, (left, right) = sample.left % SEEDS, (side // SEEDS for side in sample[:2])
    ids = ARRIVALS.left.id[left], ARRIVALS.right.id[right]
    at = PLACES[ids]
    assert np.array_equal(copy, sample.right % SEEDS)
    assert (at >= 0).all()
    weights, owner = np.zeros((SEEDS, RESULTS)), np.zeros(RESULTS, np.int64)
    weights[copy, at] = 1 / sample.probability
    owner[at] = np.minimum(*ids)
    probability = np.divide(1, weights, out=np.zeros_like(weights), where=weights > 0)
    return Runs(weights, probability, owner, np.zeros(SEEDS))


def deviation(samples: Array, mean: float) -> float:
    """The error of the mean of independent samples, in standard errors."""
    if (samples == mean).all():
        return 0.0
    return float((samples.mean() - mean) / (samples.std(ddof=1) / np.sqrt(len(samples))))


UNIFORM, PRINTED = partial(Uniform, 0.3), partial(PrintedUniform, 0.3)
EQUAL, PROPORTIONAL = partial(EqCluster, 0.3), partial(PpsCluster, 0.05)
BUDGETED: list[tuple[tg.sampling.Sampler, int]] = [
    (Uniform(model=MODEL, rates=RATES), 4),
    (Uniform(0.3, MODEL, RATES), 4),
    (EqCluster(), 4),
    (EqCluster(0.9), 2),
    (PpsCluster(model=MODEL, rates=RATES), 4),
    (PpsCluster(), 8),
]


@pytest.mark.parametrize("make", [UNIFORM, EQUAL, PROPORTIONAL], ids=lambda m: m.func.name)
def test_each_result_is_drawn_as_often_as_its_probability_states(make: Maker) -> None:
    found = copies(make)
    p = found.probability.max(axis=0)
    often = (found.weights > 0).sum(axis=0)
    assert (p > 0).all()
    assert np.array_equal(found.probability > 0, found.weights > 0)
    sure = p == 1
    assert (often[sure] == SEEDS).all()
    score = (often - SEEDS * p)[~sure] / np.sqrt(SEEDS * p * (1 - p))[~sure]
    assert abs(score).max() < 4.5
    assert abs(deviation(found.weights.sum(axis=1), found.weights.shape[1])) < 2


def test_uniform_is_uniform_and_independent() -> None:
    found = copies(UNIFORM)
    results, p = found.weights.shape[1], 0.3
    often = (found.weights > 0).sum(axis=0)
    # Chi-square: its mean is the number of results, its variance twice that.
    chi_square = ((often - SEEDS * p) ** 2 / (SEEDS * p * (1 - p))).sum()
    assert abs(chi_square - results) < 4 * np.sqrt(2 * results)
    # Were results of one row drawn together, the size of the sample would vary far more.
    sizes = (found.weights > 0).sum(axis=1)
    assert sizes.var(ddof=1) / (results * p * (1 - p)) == pytest.approx(1, abs=4 * np.sqrt(2 / SEEDS))


def test_a_cluster_is_drawn_as_a_whole_or_not_at_all() -> None:
    found = copies(EQUAL)
    for owner in np.unique(found.owner):
        mine = found.weights[:, found.owner == owner] > 0
        assert (mine.all(axis=1) | ~mine.any(axis=1)).all()
    sizes = np.unique(found.owner, return_counts=True)[1]
    varies = (found.weights > 0).sum(axis=1).var(ddof=1)
    assert varies / (sizes**2).sum() == pytest.approx(0.3 * 0.7, rel=4 * np.sqrt(2 / SEEDS))


@pytest.mark.parametrize(("sampler", "budget"), BUDGETED, ids=lambda v: getattr(v, "name", str(v)))
def test_weights_are_unbiased_however_often_memory_overflows(
    sampler: tg.sampling.Sampler, budget: int
) -> None:
    found = runs(sampler, budget)
    assert found.overflows.mean() > 1
    assert len(np.unique(found.probability)) > 10
    assert abs(deviation(found.weights.sum(axis=1), found.weights.shape[1])) < 2
    # Early, middle and late results separately: chi-square with three degrees of freedom, at 95 %.
    parts = np.array_split(np.arange(found.weights.shape[1]), 3)
    assert sum(deviation(found.weights[:, part].sum(axis=1), len(part)) ** 2 for part in parts) < 7.81


def z_score(make: Maker, factor: float) -> float:
    return deviation(copies(make, factor).weights.sum(axis=1), RESULTS)


@pytest.mark.parametrize("factor", [0.001, 0.2, 0.5, 2.0, 50.0])
@pytest.mark.parametrize("make", [UNIFORM, EQUAL, PROPORTIONAL], ids=lambda m: m.func.name)
def test_a_wrong_model_causes_no_bias(make: Maker, factor: float) -> None:
    assert abs(z_score(make, factor)) < 3
    # Nor for any single result.
    found = copies(make, factor)
    p = found.probability.max(axis=0)
    many = (SEEDS * p >= 5) & (p < 1)
    score = ((found.weights > 0).sum(axis=0) - SEEDS * p)[many] / np.sqrt(SEEDS * p * (1 - p))[many]
    assert abs(score).max(initial=0.0) < 4.5


def test_the_printed_cutoff_is_biased_if_the_model_expects_too_few_matches() -> None:
    assert abs(z_score(PRINTED, 2.0)) < 3
    assert z_score(PRINTED, 0.5) < -10


def test_the_printed_cutoff_is_biased_even_with_the_right_model() -> None:
    assert deviation(copies(PRINTED).weights.sum(axis=1), RESULTS) < -5


def test_a_sample_can_be_thinned_to_one_probability() -> None:
    sampler, budget = BUDGETED[1]
    totals = []
    for seed in range(60):
        sample, _ = sampled(sampler, budget, seed)
        p = min(0.01, sample.probability.min(initial=1.0))
        even = tg.sampling.thin(sample, p, seed)
        assert set(even.probability) <= {p}
        totals.append(len(even.left) / p)
    assert abs(deviation(np.array(totals), RESULTS)) < 3


@pytest.mark.parametrize(("expected", "later"), [(40, 40), (40, 10), (40, 0), (10, 40)])
def test_no_match_is_drawn_twice_if_the_forecast_changes_before_thinning(expected: int, later: int) -> None:
    """Each match of a row has the mean weight 1, early and late ones."""
    rows, matches = 100_000, 60
    model = Frequency({1: 1.0}, {1: 1.0})
    zeros = np.zeros(rows, np.int64)
    arrivals = Rows("left", zeros + 1, zeros + 0.0, np.arange(rows), zeros)

    def sampling(matches: int) -> tg.sampling.RunningSampler:
        config = Uniform(p=0.05, model=model, rates=(1, max(matches, 0.1) / 100))
        return config.start(Join(Window(100.0, 0.0), seed=3).setting())

    admitted, owners = sampling(expected).admit(arrivals)
    thinning = sampling(later)
    thinning.control.level = 16
    held = replace(admitted, matches=owners.matches(), policy_columns=owners.policy_columns())  # type: ignore[arg-type] # counted
    thinned = thinning.thin({"left": held}, 0, 0, lower=False)["left"]
    weights = np.zeros(matches)
    for match in range(matches):
        found = thinned.draw(np.arange(rows))
        weights[match] = (1 / found.probability).sum() / rows
    # A weight of 40 for one row in 40: four standard errors of the mean of ten matches, drawn together or not.
    for part in np.split(weights, 6):
        assert abs(part.mean() - 1) < 4 * np.sqrt(40 / rows)
