"""The measures of the experiments."""

from __future__ import annotations

from functools import lru_cache
from typing import Any, Final, get_args

import numpy as np

from tidegate.caching import CachePolicy, simulate_cache
from tidegate.engine import simulate
from tidegate.engine.encode import encode
from tidegate.engine.join import Join
from tidegate.engine.operator import Operator, collected
from tidegate.experiments.datasets import temperatures
from tidegate.experiments.stochastic_streams.dominance import cumulative_benefit
from tidegate.experiments.stochastic_streams.setups import DIVIDED, POLICIES, SETUPS, Setup
from tidegate.models import AR1, History, LinearTrend, Noise, RandomWalk
from tidegate.policies import Exponential
from tidegate.policies.heeb.precomputed import h1
from tidegate.streams import StochasticPair, Trace
from tidegate.types import SIDES, Array, Budget, InputError, Window

ALPHAS: Final = {"heeb": 1.0, "heeb, a tenth": 0.1}
"""Alpha of HEEB's survival relative to the cache's size: the paper's, and a smaller one."""
CACHED: Final = (
    *(policy for policy in get_args(CachePolicy) if policy not in ("a0", "heeb")),
    *(ALPHAS if "heeb" in get_args(CachePolicy) else ()),
)


@lru_cache(maxsize=8)
def _both(setup: Setup, rows: int, seed: int) -> tuple[Trace, Trace]:
    return StochasticPair(*setup).both(rows, seed)


def results(*, stream: str, memory: int, policy: str, rows: int, warmup: int, seed: int) -> dict[str, int]:
    """The results of a policy with rows in memory, on the same streams for all policies and memories."""
    setup = SETUPS[stream]
    chosen = POLICIES[policy](setup, memory)
    if chosen is None:
        raise InputError(f"{policy} cannot run on {stream}; leave it out of the grid")
    left, right = _both(setup, rows, seed)
    report = simulate(
        left,
        right,
        window=(None, None),
        budget=memory,
        policy=chosen,
        step="instant",
        warmup=warmup,
        seed=seed,
    )
    return {"results": report.results - report.from_step}


@lru_cache(maxsize=512)
def _hits(policy: str, memory: int, data: str, seed: int) -> int:
    references, level = _level(data)
    name, options = policy, dict[str, Any]()
    if policy in ALPHAS:
        name, options = "heeb", {"process": level, "survival": Exponential(ALPHAS[policy] * memory)}
    return simulate_cache(references, memory, name, seed=seed, **options).hits  # type: ignore[arg-type]  # one of them


@lru_cache(maxsize=1)
def _level(data: str) -> tuple[Array, AR1]:
    references = temperatures(data)
    return references, AR1.fit(references)


def hits(*, policy: str, memory: int, data: str, seed: int) -> dict[str, float]:
    """Cache hits: temperatures refer to the rows of a relation, one for each tenth of a degree."""
    # Only `random` is random. The others are the same in every run.
    references, level = _level(data)
    return {
        "hits": _hits(policy, memory, data, seed if policy == "random" else 0),
        "references": len(references),
        "phi1": level.phi1,
        "phi0": level.phi0 / 10,
        "sigma": level.sigma / 10,
    }


def divided(*, streams: str, memory: int, rows: int, warmup: int, seed: int) -> dict[str, float]:
    """The share of R among the rows that HEEB buffers, averaged over time, in percent."""
    setup = DIVIDED[streams]
    left, right = _both(setup, rows, seed)
    join = Join(Window(None, None), Budget(rows=memory), POLICIES["heeb"](setup, memory) or "heeb")
    arrivals = encode(left, right, join.window, "=", None).arrivals
    operator = Operator(join)
    left_rows = all_rows = 0
    for new_left, new_right, moment in arrivals.steps(arrivals.cuts("instant"), whole_instants=True):
        collected(operator.step(new_left, new_right, moment))
        if moment.now >= warmup:
            counts = [len(operator.buffers[side].rows) for side in SIDES]
            left_rows, all_rows = left_rows + counts[0], all_rows + sum(counts)
    return {"share of R": 100 * left_rows / all_rows}


NOW: Final = 100
AHEAD: Final = 40
R_NOISE, S_NOISE = 10, 15
EXAMPLES: Final[dict[str, tuple[LinearTrend, str, int]]] = {
    # The rows of R in section 1 relative to the density of S: near the peak, almost passed, and far ahead.
    "figure2/x": (LinearTrend(1.0, 0.0, Noise(15, 5.0)), "joining", NOW + 2),
    "figure2/y": (LinearTrend(1.0, 0.0, Noise(15, 5.0)), "joining", NOW - 8),
    "figure2/z": (LinearTrend(1.0, 0.0, Noise(15, 5.0)), "joining", NOW + 10),
    **{
        f"figure4/v = f(t0) {value:+d}": (LinearTrend(1.0, 0.0, Noise(R_NOISE)), "caching", NOW + value)
        for value in (-8, -4, 0, 4, 8)
    },
    # A row of R is matched with S, and a row of S with R.
    "figure5/R1": (LinearTrend(1.0, 0.0, Noise(S_NOISE)), "joining", NOW - S_NOISE),
    "figure5/R2, near": (LinearTrend(1.0, 0.0, Noise(S_NOISE)), "joining", NOW - 5),
    "figure5/R2, far": (LinearTrend(1.0, 0.0, Noise(S_NOISE)), "joining", NOW + 10),
    "figure5/S1": (LinearTrend(1.0, 0.0, Noise(R_NOISE)), "joining", NOW - R_NOISE),
    "figure5/S2, near": (LinearTrend(1.0, 0.0, Noise(R_NOISE)), "joining", NOW - 4),
    "figure5/S2, far": (LinearTrend(1.0, 0.0, Noise(R_NOISE)), "joining", NOW + 8),
    "figure5/S3": (LinearTrend(1.0, 0.0, Noise(R_NOISE)), "joining", NOW + 14),
}
"""The process that a row is matched with, the problem, and the row's value, at the time NOW."""


def benefit(*, row: str, figure: str, seed: int) -> list[dict[str, float]]:
    """The expected cumulative benefit of a row, by the number of steps ahead. Nothing is random."""
    del seed
    process, problem, value = EXAMPLES[f"{figure}/{row}"]
    benefits = cumulative_benefit(process, History(NOW), [value], AHEAD, problem=problem)[0]  # type: ignore[arg-type]  # a problem
    return [{"ahead": step, "benefit": float(gained)} for step, gained in enumerate(benefits, start=1)]


def walk_benefit(*, drift: int, alpha: int, seed: int) -> list[dict[str, float]]:
    """HEEB's benefit of a cached row by its distance from the last value of a walk. Nothing is random."""
    del seed
    curve = h1(RandomWalk(float(drift), Noise(sigma=1.0)), Exponential(alpha), problem="caching")
    distances = np.arange(-10, 31)
    return [
        {"distance": int(far), "benefit": float(value)}
        for far, value in zip(distances, curve.of(distances), strict=True)
    ]
