"""Answers from what the samplers really draw: right on average, and in their intervals as often as these say.

Copies of one pair of streams, each with keys of its own, are joined at once: each is a sample of the same results by
draws of its own. Seeds are fixed; the mean of all copies lies within 3 standard errors, and of their intervals at
90 % between 87 % and 93 % hold the truth (a standard error of that is 1.1 %).
"""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest

import tidegate as tg
from tests.sampling.workload import MODEL, SHARES, stream
from tidegate.models import Frequency
from tidegate.sampling import EqCluster, PpsCluster, Sampler, Uniform
from tidegate.sampling.drawn import Design
from tidegate.types import Array

COPIES, ROWS, WINDOW = 800, 150, (12, 8)
SIDES = (stream(ROWS, 1), stream(ROWS, 2))
PRICES = np.random.default_rng(5).lognormal(4, 0.5, (2, ROWS))
METHODS: tuple[Design, ...] = ("uniform", "eq_cluster", "pps_cluster")


def sampler_of(method: Design) -> Sampler:
    shares = {copy * 10 + key: share / COPIES for copy in range(COPIES) for key, share in SHARES.items()}
    model, rates = Frequency(shares, shares), (float(COPIES), float(COPIES))
    if method == "uniform":
        return Uniform(0.15, model, rates)
    return EqCluster(0.4) if method == "eq_cluster" else PpsCluster(0.12, model, rates)


@cache
def truth() -> dict[str, float]:
    pairs = tg.simulate(*SIDES, window=WINDOW, collect=True).pairs
    assert pairs is not None
    price = PRICES[0, pairs.left] + PRICES[1, pairs.right]
    return {"count(*)": len(price), "sum(price)": price.sum(), "avg(price)": price.mean()}


@cache
def samples(method: Design) -> dict[str, Array]:
    many = [
        {
            "key": (np.arange(COPIES) * 10 + np.array(side["key"])[:, None]).ravel(),
            "time": np.repeat(side["time"], COPIES),
        }
        for side in SIDES
    ]
    found = tg.simulate_sample(*many, window=WINDOW, sampler=sampler_of(method), step=20_000, seed=8).pairs
    left, right = found.left // COPIES, found.right // COPIES
    return {
        "copy": found.left % COPIES,
        "owner": found.owner,
        "probability": found.probability,
        "price": PRICES[0, left] + PRICES[1, right],
    }


@pytest.mark.parametrize("what", ["count(*)", "sum(price)", "avg(price)"])
@pytest.mark.parametrize("method", METHODS)
def test_estimates_from_real_samples(method: Design, what: str) -> None:
    found = tg.sampling.estimate(samples(method), what, by="copy", method=method)
    assert len(found) == COPIES
    told, low, high = (found[name].to_numpy() for name in ("estimate", "low", "high"))
    exact = truth()[what]
    assert abs(told.mean() - exact) <= 3 * told.std(ddof=1) / np.sqrt(len(told))
    assert 0.87 <= float(((low <= exact) & (exact <= high)).mean()) <= 0.93


@pytest.mark.parametrize("method", METHODS)
def test_a_budget_is_kept_and_estimates_are_right_on_average(method: Design) -> None:
    sampler = {
        "uniform": Uniform(model=MODEL, rates=(1.0, 1.0)),
        "eq_cluster": EqCluster(),
        "pps_cluster": PpsCluster(model=MODEL, rates=(1.0, 1.0)),
    }[method]
    told = []
    for seed in range(200):
        report = tg.simulate_sample(*SIDES, window=WINDOW, budget=6, sampler=sampler, step=100, seed=seed)
        assert report.peak_rows <= 6
        pairs = report.pairs
        sample = {"owner": pairs.owner, "probability": pairs.probability}
        told.append(tg.sampling.estimate(sample, "count(*)", method=method)["estimate"][0].as_py())
    off = np.mean(told) - truth()["count(*)"]
    assert abs(off) <= 2 * np.std(told, ddof=1) / np.sqrt(len(told))
