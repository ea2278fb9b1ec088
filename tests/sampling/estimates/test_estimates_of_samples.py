"""Estimates from samples of the samplers and reservoirs are unbiased, and their intervals have their level.

Without a budget, copies of one pair of streams, each with its own keys, are joined at once: each copy is an
independent sample of the same results. A budget would be shared by all copies, so there each run has its own seed,
from 0 on.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

import numpy as np
import pytest

import tidegate as tg
from tests.sampling.workload import MODEL, SHARES, Stream, stream
from tidegate.engine import simulate_reservoir
from tidegate.models import Frequency
from tidegate.sampling import EqCluster, JoinReservoir, PpsCluster, Sampler, Uniform
from tidegate.sampling.estimates.sample_design import Design
from tidegate.types import Array

METHODS: tuple[Design, ...] = ("uniform", "eq_cluster", "pps_cluster")
WHATS = ("count(*)", "sum(price)", "avg(price)", "median(price)", "quantile(price, 0.9)")
RATES = (1.0, 1.0)
Columns = dict[str, Array]


@dataclass(frozen=True)
class Streams:
    """Two streams whose rows have prices; the price of a result is the sum of those of its rows."""

    rows: int
    window: tuple[int, int]

    def sides(self) -> tuple[Stream, Stream]:
        return stream(self.rows, 1), stream(self.rows, 2)

    def results(self, left: Array, right: Array) -> Columns:
        """Results with their price and kind: that of the first key, of the second, or of any other."""
        price = np.random.default_rng(5).lognormal(4, 0.5, (2, self.rows))
        kind = np.minimum(self.sides()[0]["key"], 3)
        return {"price": price[0, left] + price[1, right], "kind": kind[left]}

    def true_values(self, what: str, by: str | None) -> Array:
        """The true value of each group, by its number."""
        pairs = tg.simulate(*self.sides(), window=self.window, collect=True).pairs
        assert pairs is not None
        whole = self.results(pairs.left, pairs.right)
        ones = np.ones(len(pairs.left))
        group = ones.astype(np.int64) if by is None else whole[by]
        found = tg.sampling.estimate(whole | {"group": group, "probability": ones}, what, by="group")
        exact = np.full(group.max() + 1, np.nan)
        exact[found["group"].to_numpy()] = found["estimate"].to_numpy()
        return exact


SHORT, LONG = Streams(150, (12, 8)), Streams(400, (40, 30))


@cache
def copy_samples(method: Design, copies: int = 800, seed: int = 0) -> Columns:
    """A sample of each copy, with a given probability."""
    shares = {copy * 10 + key: share / copies for copy in range(copies) for key, share in SHARES.items()}
    model, rates = Frequency(shares, shares), (float(copies), float(copies))
    samplers: dict[str, Sampler] = {
        "uniform": Uniform(0.15, model, rates),
        "eq_cluster": EqCluster(0.4),
        "pps_cluster": PpsCluster(0.12, model, rates),
    }
    many = [
        {
            "key": (np.arange(copies) * 10 + np.array(side["key"])[:, None]).ravel(),
            "time": np.repeat(side["time"], copies),
        }
        for side in SHORT.sides()
    ]
    sampler = samplers[method]
    found = tg.simulate_sample(*many, window=SHORT.window, sampler=sampler, step=20_000, seed=seed).pairs
    drawn = {"owner": found.owner, "probability": found.probability, "shown": found.shown}
    drawn["run"] = found.left % copies
    return SHORT.results(found.left // copies, found.right // copies) | drawn


def together(samples: list[Columns]) -> Columns:
    """Samples of several runs, numbered by `run`."""
    run = np.repeat(np.arange(len(samples)), [len(sample["price"]) for sample in samples])
    joined = {name: np.concatenate([sample[name] for sample in samples]) for name in samples[0]}
    return joined | {"run": run, "owner": joined["owner"] + 2 * LONG.rows * run}


@cache
def budget_samples(method: Design, runs: int) -> Columns:
    """Samples within a budget, whose probability falls when memory overflows."""
    samplers: dict[str, Sampler] = {
        "uniform": Uniform(model=MODEL, rates=RATES),
        "eq_cluster": EqCluster(),
        "pps_cluster": PpsCluster(model=MODEL, rates=RATES),
    }
    sides, budget, samples, overflows = LONG.sides(), 30, [], 0
    for seed in range(runs):
        report = tg.simulate_sample(
            *sides, window=LONG.window, budget=budget, sampler=samplers[method], step=50, seed=seed
        )
        assert report.peak_rows <= budget
        overflows += report.overflows
        found = report.pairs
        drawn = {"owner": found.owner, "probability": found.probability, "shown": found.shown}
        samples.append(LONG.results(found.left, found.right) | drawn)
    assert overflows >= runs
    return together(samples)


@cache
def reservoir_samples(runs: int) -> Columns:
    """The results in the reservoir of a join at the end."""
    sides, budget, samples = LONG.sides(), 180, []
    for seed in range(runs):
        report = simulate_reservoir(
            *sides, window=LONG.window, reservoir=JoinReservoir(120, budget), step=50, seed=seed,
            sampler=Uniform(model=MODEL, rates=RATES),
        )  # fmt: skip
        assert (report.rows + report.held).max() <= budget
        sample = report.samples[-1]
        chance = np.full(len(sample.left), report.held[-1] / report.results[-1])
        drawn = {"owner": sample.owner, "probability": chance, "shown": sample.shown}
        samples.append(LONG.results(sample.left, sample.right) | drawn)
    return together(samples)


@cache
def cluster_reservoir_samples(runs: int, size: int = 120) -> Columns:
    """The same for a reservoir that is filled from a cluster sample."""
    samples = []
    for seed in range(runs):
        report = simulate_reservoir(
            *LONG.sides(), window=LONG.window, reservoir=JoinReservoir(size, 3 * size // 2), step=50, seed=seed,
            sampler=EqCluster(),
        )  # fmt: skip
        assert (report.rows + report.held).max() <= 3 * size // 2
        sample = report.samples[-1]
        chance = np.full(len(sample.left), report.held[-1] / report.results[-1])
        drawn = {"owner": sample.owner, "probability": chance, "shown": sample.shown}
        samples.append(LONG.results(sample.left, sample.right) | drawn)
    return together(samples)


class RunEstimates:
    """The estimates of many runs, and the true values."""

    def __init__(
        self, samples: Columns, what: str, method: Design | None, streams: Streams, by: str | None = None
    ) -> None:
        names = ["run", *([by] if by else [])]
        found = tg.sampling.estimate(samples, what, by=names, method=method)
        self.run, self.estimate, low, high = (found[n].to_numpy() for n in ("run", "estimate", "low", "high"))
        group = found[by].to_numpy() if by else np.ones(len(found), np.int64)
        self.exact = streams.true_values(what, by)[group]
        close = 1e-9 * self.exact
        self._holds = ~(low > self.exact + close) & ~(high < self.exact - close)

    def z_score(self, runs: int = 200) -> float:
        """The error of the mean of the first runs, in standard errors."""
        error = (self.estimate - self.exact)[self.run < runs]
        return float(error.mean() / (error.std(ddof=1) / np.sqrt(len(error))))

    def coverage(self) -> float:
        """The share of intervals that contain the true value; a missing end counts as infinite."""
        return float(self._holds.mean())


@pytest.mark.parametrize("what", WHATS)
@pytest.mark.parametrize("method", METHODS)
def test_estimates_with_a_given_probability_are_unbiased(method: Design, what: str) -> None:
    assert abs(RunEstimates(copy_samples(method), what, method, SHORT).z_score()) <= 2


def allowed(method: Design, what: str) -> float:
    """The allowed error of the mean of 200 runs, in standard errors.

    No estimator of a quantile is unbiased. If results are drawn independently and in clusters, with probabilities
    that change, the quantile at 0.9 is 0.5 % too high: a sixth of the standard error of one sample.
    """
    return 4 if (method, what) == ("uniform", "quantile(price, 0.9)") else 2


@pytest.mark.parametrize("what", WHATS)
@pytest.mark.parametrize("method", METHODS)
def test_estimates_within_a_budget_are_unbiased(method: Design, what: str) -> None:
    assert abs(RunEstimates(budget_samples(method, 200), what, method, LONG).z_score()) <= allowed(
        method, what
    )


@pytest.mark.slow
def test_lowering_the_probability_causes_no_bias() -> None:
    """Uses seeds of its own; over 60,000 seeds the mean was off by 0.003 %, a tenth of its standard error."""
    totals = []
    for seed in range(1_000_000, 1_002_000):
        report = tg.simulate_sample(
            *LONG.sides(), window=LONG.window, budget=30, sampler="eq_cluster", step=50, seed=seed
        )
        totals.append(report.estimate)
    error = np.array(totals) - LONG.true_values("count(*)", None)[1]
    assert abs(error.mean()) <= 2 * error.std(ddof=1) / np.sqrt(len(error))


@pytest.mark.parametrize("what", WHATS)
def test_estimates_of_a_reservoir_are_unbiased(what: str) -> None:
    assert abs(RunEstimates(reservoir_samples(200), what, "reservoir", LONG).z_score()) <= 2


@pytest.mark.parametrize("what", WHATS)
def test_estimates_of_a_reservoir_of_clusters_are_unbiased(what: str) -> None:
    assert abs(RunEstimates(cluster_reservoir_samples(200), what, "reservoir", LONG).z_score()) <= 2


def test_a_reservoir_of_clusters_has_results_of_many_rows() -> None:
    """Of 800 rows in all; if only as many results were offered as are held, 120 results would be of 37 rows."""
    samples = cluster_reservoir_samples(200)
    owners = np.unique(samples["owner"])
    assert len(owners) / 200 > 90


@pytest.mark.parametrize("what", WHATS)
@pytest.mark.parametrize("method", METHODS)
def test_estimates_by_group_are_unbiased(method: Design, what: str) -> None:
    """Except quantiles of a group of 191 results of 74 rows with gaps between their values: a bias of 1.4 %."""
    gaps = method == "eq_cluster" and what.startswith(("median", "quantile"))
    assert abs(RunEstimates(copy_samples(method), what, method, SHORT, "kind").z_score()) <= (
        3.1 if gaps else 2
    )


@pytest.mark.parametrize("what", WHATS)
@pytest.mark.parametrize("method", METHODS)
def test_estimates_by_group_within_a_budget_are_unbiased(method: Design, what: str) -> None:
    assert abs(RunEstimates(budget_samples(method, 200), what, method, LONG, "kind").z_score()) <= allowed(
        method, what
    )


@pytest.mark.parametrize("what", WHATS)
def test_estimates_by_group_of_a_reservoir_are_unbiased(what: str) -> None:
    """The smallest group has 9 results on average."""
    assert abs(RunEstimates(reservoir_samples(200), what, "reservoir", LONG, "kind").z_score()) <= 2


@pytest.mark.parametrize("what", WHATS)
@pytest.mark.parametrize("method", METHODS)
def test_intervals_with_a_given_probability_have_their_level(method: Design, what: str) -> None:
    """The standard error of the share of 800 intervals is 1.1 %."""
    assert 0.87 <= RunEstimates(copy_samples(method), what, method, SHORT).coverage() <= 0.93


@pytest.mark.parametrize("what", WHATS)
@pytest.mark.parametrize("method", METHODS)
def test_intervals_by_group_have_their_level(method: Design, what: str) -> None:
    """Some groups have 15 sampled results, too few for the upper end of the quantile at 0.9."""
    assert 0.87 <= RunEstimates(copy_samples(method), what, method, SHORT, "kind").coverage() <= 0.93


@pytest.mark.slow
@pytest.mark.parametrize("what", WHATS)
@pytest.mark.parametrize("method", METHODS)
def test_intervals_within_a_budget_have_their_level(method: Design, what: str) -> None:
    assert 0.87 <= RunEstimates(budget_samples(method, 800), what, method, LONG).coverage() <= 0.93


@pytest.mark.slow
@pytest.mark.parametrize("what", WHATS)
def test_intervals_of_a_reservoir_have_their_level(what: str) -> None:
    assert 0.87 <= RunEstimates(reservoir_samples(800), what, "reservoir", LONG).coverage() <= 0.93


@pytest.mark.slow
@pytest.mark.parametrize("what", WHATS)
def test_intervals_by_group_of_a_reservoir_have_their_level(what: str) -> None:
    assert 0.87 <= RunEstimates(reservoir_samples(800), what, "reservoir", LONG, "kind").coverage() <= 0.93


@pytest.mark.slow
@pytest.mark.parametrize("what", WHATS)
@pytest.mark.parametrize("method", METHODS)
def test_intervals_by_group_within_a_budget_have_their_level(method: Design, what: str) -> None:
    assert 0.87 <= RunEstimates(budget_samples(method, 800), what, method, LONG, "kind").coverage() <= 0.93


@pytest.mark.slow
@pytest.mark.parametrize("method", [None, "eq_cluster", "reservoir"])
@pytest.mark.parametrize("what", WHATS)
def test_intervals_of_a_reservoir_of_clusters_have_their_level(what: str, method: Design | None) -> None:
    """A stated "eq_cluster" ignores the column `shown`, which makes intervals wider: COUNT and SUM had 93 to 94 %."""
    highest = 0.95 if method == "eq_cluster" else 0.93
    assert 0.87 <= RunEstimates(cluster_reservoir_samples(800), what, method, LONG).coverage() <= highest


@pytest.mark.slow
@pytest.mark.parametrize("what", WHATS)
@pytest.mark.parametrize("size", [50, 200])
def test_intervals_of_smaller_and_larger_reservoirs_have_their_level(what: str, size: int) -> None:
    """Intervals of AVG from 50 results are slightly too wide: 93.3 % of them contain the true value."""
    coverage = RunEstimates(cluster_reservoir_samples(800, size), what, "reservoir", LONG).coverage()
    assert 0.87 <= coverage <= (0.94 if size == 50 else 0.93)
