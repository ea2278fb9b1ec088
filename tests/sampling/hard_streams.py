"""Streams on which forecasts of matches from the past are wrong, with the exact results of their join.

| stream | difficulty |
|---|---|
| sessions | keys are active for a while, with very different rates |
| rush hours | rates of both sides rise and fall by a factor of ten |
| one to one | each key occurs once on each side |
| heavy tails | few rows own most results |
| hot keys | few keys have most rows |
| two lags | 70 % of the keys match at once and rarely, 30 % late and often |
| rate jump | rates of both sides rise by a factor of ten in the middle and stay there |
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np
import pyarrow as pa

import tidegate as tg
from tidegate.streams import Correlated, HeavyTails, OneToOne, Pair, RushHours, Sessions, Trace
from tidegate.types import Array

WINDOW = (400, 0)
AGGREGATES = ("count(*)", "sum(lag)", "avg(lag)", "median(lag)", "quantile(lag, 0.9)")
GROUPS = ("key_group", "period")


@dataclass(frozen=True)
class TwoLags(Pair):
    """Two populations of keys with different numbers of partners at different lags."""

    def both(self, rows: int, seed: int = 0) -> tuple[Trace, Trace]:
        rng = np.random.default_rng(seed)
        time = np.cumsum(rng.exponential(1.0, rows))
        late = rng.random(rows) < 0.3
        owner = np.repeat(np.arange(rows), rng.poisson(np.where(late, 6.0, 1.5)))
        lag = np.where(late[owner], rng.uniform(250, 400, len(owner)), rng.exponential(15, len(owner)))
        arrival = time[owner] + lag
        order = np.argsort(arrival, kind="stable")
        right = {"key": owner[order], "time": arrival[order]}
        return Trace.of({"key": np.arange(rows), "time": time}), Trace.of(right)


@dataclass(frozen=True)
class RateJump(Pair):
    """Even keys; after a quarter of the rows both sides arrive ten times as fast."""

    keys: int = 100

    def both(self, rows: int, seed: int = 0) -> tuple[Trace, Trace]:
        rng = np.random.default_rng(seed)
        gap = np.where(np.arange(rows) < rows // 4, 1.0, 0.1)
        left, right = (np.cumsum(rng.exponential(gap)) for _ in range(2))
        right = right[right <= left[-1]]
        one, other = (
            Trace.of({"key": rng.integers(0, self.keys, len(times)), "time": times})
            for times in (left, right)
        )
        return one, other


STREAMS: dict[str, Pair] = {
    "sessions": Sessions(),
    "rush hours": RushHours(),
    "one to one": OneToOne(),
    "heavy tails": HeavyTails(),
    "hot keys": Correlated("direct", skew=1.2, keys=500, rate_right=1.0),
    "two lags": TwoLags(),
    "rate jump": RateJump(),
}


@dataclass(frozen=True)
class HardStream:
    """Two streams, and all results of their join."""

    left: Trace
    right: Trace
    results: dict[str, Array]

    def columns(self, left: Array, right: Array) -> dict[str, Array]:
        """The columns of results: the lag, and two groupings: by key, and by time (three parts of equal length)."""
        begin = self.left.time[left]
        return {
            "lag": self.right.time[right] - begin,
            "key_group": np.asarray(self.left.keys[0])[left] % 3,
            "period": np.minimum((3 * begin / self.left.time[-1]).astype(np.int64), 2),
        }

    def true_values(self, what: str, by: Sequence[str] = ()) -> dict[tuple[int, ...], float]:
        """The exact aggregate of each group."""
        found = tg.sampling.estimate(self.results, what, by=by).to_pylist()
        return {tuple(row[name] for name in by): row["estimate"] for row in found}


@cache
def hard_stream(name: str, rows: int) -> HardStream:
    left, right = STREAMS[name].both(rows, seed=1)
    pairs = tg.simulate(left, right, window=WINDOW, step=1000, collect=True).pairs
    assert pairs is not None
    stream = HardStream(left, right, {})
    stream.results.update(stream.columns(pairs.left, pairs.right))
    stream.results["probability"] = np.ones(len(pairs.left))
    return stream


def check_estimates(
    found: pa.Table,
    truth: dict[tuple[int, ...], float],
    by: Sequence[str],
    runs: int,
    z: float,
    *,
    level: float = 0.9,
    min_rows: int = 20,
    allowed_bias: float = 0.0,
    min_coverage: float | None = None,
) -> None:
    """Check the estimates of many runs for bias, and their intervals for coverage.

    Parameters
    ----------
    found
        The estimates of all runs, with the columns `by`.
    truth
        The true value of each group.
    by
        The columns of groups.
    runs
        The number of runs.
    z
        The number of standard errors by which the mean estimate, and the coverage, may be off. Seeds are fixed, so a
        test never fails by chance; `z` leaves room for the number of comparisons.
    level
        The confidence level of the intervals.
    min_rows
        Groups with fewer sampled results, on average, are not checked.
    allowed_bias
        A bias that is expected, in standard deviations of one estimate.
    min_coverage
        The coverage that is documented if it is below `level`.
    """
    rows = found.to_pandas()
    for group, true in truth.items():
        mask = np.ones(len(rows), bool)
        for name, value in zip(by, group, strict=True):
            mask &= (rows[name] == value).to_numpy()
        mine = rows[mask]
        if mine["rows"].sum() < min_rows * runs:
            continue
        assert len(mine) == runs, (group, "a group without a sampled result")
        estimate = mine["estimate"].to_numpy() / true
        spread = max(estimate.std(ddof=1), 1e-9)
        bias = abs(estimate.mean() - 1)
        assert bias <= z * spread / np.sqrt(runs) + allowed_bias * spread, (group, "bias", bias)
        contains = (mine["low"].fillna(-np.inf) <= true) & (mine["high"].fillna(np.inf) >= true)
        wanted = level if min_coverage is None else min_coverage
        coverage = contains.mean()
        assert coverage >= wanted - z * np.sqrt(level * (1 - level) / runs), (group, "coverage", coverage)
