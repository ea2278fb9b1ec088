"""Runs of the experiments, as plain records."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple, get_args

from tidegate.engine import simulate, simulate_cache
from tidegate.engine.cache import CachePolicy
from tidegate.engine.encode import encode
from tidegate.engine.operator import Join, Operator, collected
from tidegate.experiments.stochastic_streams.setups import (
    DIVIDED,
    FAST,
    MEMORY,
    POLICIES,
    ROWS,
    RUNS,
    SETUPS,
    WARMUP,
    Setup,
)
from tidegate.models import AR1
from tidegate.policies import Exponential
from tidegate.streams import StochasticPair, Trace
from tidegate.types import SIDES, Array, Budget, Window

ALPHAS: Final = {"heeb": 1.0, "heeb, a tenth": 0.1}
"""Alpha of HEEB's survival, in sizes of the cache: the paper's, and one that looks less far ahead."""
CACHED: Final = (
    *(policy for policy in get_args(CachePolicy) if policy not in ("a0", "heeb")),
    *(ALPHAS if "heeb" in get_args(CachePolicy) else ()),
)
CACHES: Final = (10, 25, 50, 100, 150, 200, 250, 300)
FOR_DRAWS: Final = 20
"""Runs of one recorded stream, over which the draws of `random` are averaged."""
REAL: Final = "REAL"


class Measured(NamedTuple):
    """The results that a policy found in memory, run by run; the same runs for all policies."""

    stream: str
    memory: int
    policy: str
    results: list[int]


def results(
    streams: Mapping[str, Setup] = SETUPS,
    memories: Sequence[int] = (MEMORY,),
    policies: Sequence[str] = FAST,
    *,
    rows: int = ROWS,
    runs: int = RUNS,
    warmup: int = WARMUP,
) -> list[Measured]:
    """Run every policy on the same streams, within every memory."""
    found = []
    for name, setup in streams.items():
        pairs = [StochasticPair(*setup).both(rows, seed) for seed in range(runs)]
        for memory in memories:
            for label in policies:
                policy = POLICIES[label](setup, memory)
                if policy is None:
                    continue
                counts = []
                for seed, (left, right) in enumerate(pairs):
                    report = simulate(
                        left,
                        right,
                        window=(None, None),
                        budget=memory,
                        policy=policy,
                        step="instant",
                        warmup=warmup,
                        seed=seed,
                    )
                    counts.append(report.results - report.from_step)
                found.append(Measured(name, memory, label, counts))
    return found


def hits(
    temperatures: Array, memories: Sequence[int] = CACHES, policies: Sequence[Any] = CACHED
) -> list[Measured]:
    """Hits of the caching problem: temperatures refer to the rows of a relation, one for each tenth of a degree."""
    level = AR1.fit(temperatures)
    found = []
    for memory in memories:
        for label in policies:
            policy, told = label, dict[str, Any]()
            if label in ALPHAS:
                policy, told = "heeb", {"process": level, "survival": Exponential(ALPHAS[label] * memory)}
            seeds = range(FOR_DRAWS if policy == "random" else 1)
            counts = [simulate_cache(temperatures, memory, policy, seed=seed, **told).hits for seed in seeds]
            found.append(Measured(REAL, memory, label, counts * (FOR_DRAWS // len(counts))))
    return found


class Divided(NamedTuple):
    """The percentage of the buffered rows that is R's, averaged over time, run by run."""

    streams: str
    memory: int
    shares: list[float]


def divided(
    memories: Sequence[int] = (5, MEMORY, 20), *, rows: int = ROWS, runs: int = RUNS, warmup: int = WARMUP
) -> list[Divided]:
    """How HEEB divides a memory between the streams."""
    found = []
    for name, setup in DIVIDED.items():
        pairs = [StochasticPair(*setup).both(rows, seed) for seed in range(runs)]
        for memory in memories:
            join = Join(Window(None, None), Budget(rows=memory), POLICIES["heeb"](setup, memory) or "heeb")
            shares = [_share_of_left(join, left, right, warmup) for left, right in pairs]
            found.append(Divided(name, memory, shares))
    return found


def _share_of_left(join: Join, left: Trace, right: Trace, warmup: int) -> float:
    arrivals = encode(left, right, join.window, "=", None).arrivals
    operator = Operator(join)
    of_left = of_all = 0
    for new_left, new_right, moment in arrivals.steps(arrivals.cuts("instant"), whole_instants=True):
        collected(operator.step(new_left, new_right, moment))
        if moment.now >= warmup:
            held = [len(operator.buffers[side].rows) for side in SIDES]
            of_left, of_all = of_left + held[0], of_all + sum(held)
    return 100 * of_left / of_all
