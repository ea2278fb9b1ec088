"""On Joining and Caching Stochastic Streams (Xie, Yang, Chen): section 8.

Each experiment has a function that measures it and returns plain records, which tests read and claims are judged by,
and one that makes a table of them. R is the left stream and S the right; each brings a row at every step.

Deviations
----------
Counted are results with a row in memory; rows of one step match each other whatever the policy. All memories have
one warm-up, of four times the largest. Noise is continuous up to half a step beyond its bounds, and rounded; walks
begin at 0. The paper's window is one of values, between the bounds of the noise; this one is of time, as long as any
row may match, so that it drops fewer rows. Section 7 leaves HEEB's survival for normal noise to a report: here it is that of uniform noise. `fifo` is
not among the paper's policies.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Final, NamedTuple, TypeAlias

import numpy as np

from tidegate.engine import simulate, simulate_cache
from tidegate.engine.cache import CachePolicy
from tidegate.experiments import recorded
from tidegate.experiments.claims import Claim, Interval, judged
from tidegate.experiments.reproduced import Reproduced
from tidegate.models import AR1, LinearTrend, Noise, RandomWalk
from tidegate.policies import Exponential, Fifo, Heeb, Life, Offline, Policy, Prob, Random
from tidegate.streams import StochasticPair
from tidegate.types import Array

Known: TypeAlias = LinearTrend | RandomWalk


class Setup(NamedTuple):
    """What the two streams follow."""

    left: Known
    right: Known

    @property
    def bounds(self) -> tuple[float, float] | None:
        """How far the noise of either stream reaches; walks go anywhere."""
        if isinstance(self.left, RandomWalk) or isinstance(self.right, RandomWalk):
            return None
        left, right = self.left.noise.bound, self.right.noise.bound
        return None if left is None or right is None else (left, right)

    @property
    def window(self) -> tuple[float | None, float | None]:
        """The longest time after which a row of either side can be matched, at a speed of 1: no result is lost."""
        if self.bounds is None or isinstance(self.left, RandomWalk) or isinstance(self.right, RandomWalk):
            return None, None
        lag = self.right.offset - self.left.offset
        return sum(self.bounds) - lag, sum(self.bounds) + lag


def trends(
    sigmas: tuple[float | None, float | None], *, lag: float = 1.0, bounds: tuple[float, float] = (10, 15)
) -> Setup:
    """Two trends of speed 1, R lagging behind S; a sigma for normal noise, None for uniform."""
    left, right = (Noise(bound, sigma) for bound, sigma in zip(bounds, sigmas, strict=True))
    return Setup(LinearTrend(1.0, -lag, left), LinearTrend(1.0, 0.0, right))


STEP: Final = RandomWalk(0.0, Noise(sigma=1.0))
SETUPS: Final[dict[str, Setup]] = {
    "TOWER": trends((1.0, 2.0)),
    "ROOF": trends((3.3, 5.0)),
    "FLOOR": trends((None, None)),
    "WALK": Setup(STEP, STEP),
}
MEMORIES: Final = (1, 2, 5, 10, 15, 20, 30, 40, 50)
MEMORY: Final = 10
WARMUP: Final = 4 * max(MEMORIES)
ROWS, RUNS = 5000, 50
"""The length of a stream and the runs of an experiment, in the paper."""
COUNTED: Final = 1 << 16
"""So many keys are counted one by one: all."""


def survival(setup: Setup, memory: int) -> Exponential:
    """Rows are thought to last half of both bounds together; of a walk, alpha is the memory."""
    return Exponential(memory) if setup.bounds is None else Exponential.lasting(sum(setup.bounds) / 2)


POLICIES: Final[dict[str, Callable[[Setup, int], Policy | None]]] = {
    "offline": lambda _, __: Offline(),
    "heeb": lambda setup, memory: Heeb(setup.left, setup.right, survival=survival(setup, memory)),
    "random": lambda _, __: Random(),
    "prob": lambda _, __: Prob(capacity=COUNTED),
    "life": lambda setup, _: None if setup.bounds is None else Life(capacity=COUNTED),
    "fifo": lambda _, __: Fifo(),
}
"""What a policy is for some streams and a memory; None where there is none."""
RIVALS: Final = ("random", "prob", "life")


class Measured(NamedTuple):
    """The results that a policy found in memory, run by run; the same runs for all policies."""

    stream: str
    memory: int
    policy: str
    results: list[int]


def results(
    streams: Mapping[str, Setup] = SETUPS,
    memories: Sequence[int] = (MEMORY,),
    policies: Sequence[str] = tuple(POLICIES),
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
                        window=setup.window,
                        budget=memory,
                        policy=policy,
                        step="instant",
                        warmup=warmup,
                        seed=seed,
                    )
                    counts.append(report.results - report.from_step)
                found.append(Measured(name, memory, label, counts))
    return found


class Counts:
    """What was measured, to be asked for by stream, policy and memory."""

    def __init__(self, found: Iterable[Measured]) -> None:
        self._runs = {(one.stream, one.policy, one.memory): np.array(one.results, float) for one in found}
        self.streams = list(dict.fromkeys(stream for stream, _, _ in self._runs))
        self.memories = sorted({memory for _, _, memory in self._runs})

    def policies(self, stream: str) -> list[str]:
        """The policies that were run on a stream."""
        return list(dict.fromkeys(policy for of, policy, _ in self._runs if of == stream))

    def runs(self, stream: str, policy: str, memory: int) -> Array:
        """The results, run by run."""
        return self._runs[stream, policy, memory]

    def percent(self, stream: str, policy: str, of: str, memory: int) -> Array:
        """The results of each run in percent of the mean of another policy's."""
        other = max(float(self.runs(stream, of, memory).mean()), 1.0)
        return 100 * self.runs(stream, policy, memory) / other

    def ahead(self, stream: str, policy: str, of: str, memory: int) -> Interval:
        """By how many percent of the other policy's results a policy is ahead of it, in the same runs."""
        return Interval.of(self.percent(stream, policy, of, memory) - self.percent(stream, of, of, memory))


DRIFTING: Final = ("TOWER", "ROOF", "FLOOR")
CLOSE: Final = 95
"""From so many percent of the offline optimum on, a policy has caught up with it."""


def claims_of_comparison(found: Iterable[Measured], memory: int = MEMORY) -> tuple[Claim, ...]:
    """What section 8 says of Figure 8."""
    counts = Counts(found)

    def ahead(policy: str, rivals: Sequence[str], streams: Iterable[str]) -> dict[str, Interval]:
        return {
            f"{stream}, {rival}": counts.ahead(stream, policy, rival, memory)
            for stream in streams
            for rival in rivals
            if rival in counts.policies(stream)
        }

    drifting = [stream for stream in DRIFTING if stream in counts.streams]
    claims = [
        judged("heeb beats random, prob and life", ahead("heeb", RIVALS, counts.streams)),
        judged("life beats prob where there is a trend", ahead("life", ("prob",), drifting)),
        judged(
            "random, though oblivious, is no worse than prob and life there",
            ahead("random", ("prob", "life"), drifting),
        ),
    ]
    gains = [counts.percent(stream, "heeb", "random", memory) for stream in drifting]
    if len(gains) > 1:
        claims.append(
            judged(
                "the advantage over random falls from TOWER to FLOOR",
                {
                    f"{drifting[i]} over {drifting[i + 1]}": Interval.of(gains[i] - gains[i + 1])
                    for i in range(len(gains) - 1)
                },
                unit="points",
            )
        )
    if "WALK" in counts.streams:
        online = [policy for policy in counts.policies("WALK") if policy != "offline"]
        claims.append(
            judged(
                f"no policy that cannot foresee comes within {100 - CLOSE} % of offline in WALK",
                {
                    policy: Interval.of(CLOSE - counts.percent("WALK", policy, "offline", memory))
                    for policy in online
                },
            )
        )
    return tuple(claims)


def claims_of_memory(found: Iterable[Measured], stream: str) -> tuple[Claim, ...]:
    """What section 8 says of one of Figures 9 to 12."""
    counts = Counts(one for one in found if one.stream == stream)
    memories, most = counts.memories, counts.memories[-1]
    online = [policy for policy in counts.policies(stream) if policy != "offline"]
    catches_up = stream in DRIFTING
    claims = [
        judged(
            "no policy falls by 1 % or more with more memory",
            {policy: _slowest(counts, stream, policy) for policy in counts.policies(stream)},
        ),
        judged(
            f"with {most} rows {'every' if catches_up else 'no'} policy is within {100 - CLOSE} % of offline",
            {
                policy: Interval.of((1 if catches_up else -1) * (share - CLOSE))
                for policy in online
                for share in [counts.percent(stream, policy, "offline", most)]
            },
        ),
    ]
    if catches_up:
        # One that does not get there is taken to need twice the most that was tried.
        least = {
            policy: next(
                (m for m in memories if counts.percent(stream, policy, "offline", m).mean() >= CLOSE),
                2 * most,
            )
            for policy in online
        }
        factor, words = (1, "no more rows than") if stream == "FLOOR" else (2, "half of the rows that")
        claims.append(
            judged(
                f"heeb gets there with {words} random, prob and life need",
                # Whole numbers: one more makes as many count.
                {
                    rival: Interval.exactly(least[rival] - factor * least["heeb"] + 1)
                    for rival in RIVALS
                    if rival in least
                },
                unit="rows",
            )
        )
    return tuple(claims)


def _slowest(counts: Counts, stream: str, policy: str) -> Interval:
    """The least growth from one memory to the next in percent, and 1."""
    runs = [counts.runs(stream, policy, memory) for memory in counts.memories]
    steps = [
        Interval.of(100 * (more - fewer) / max(float(fewer.mean()), 1.0) + 1)
        for fewer, more in itertools.pairwise(runs)
    ]
    return min(steps, key=lambda step: step.mean)


CACHED: Final[tuple[CachePolicy, ...]] = ("lfd", "lru", "lfu", "random")
CACHES: Final = (10, 25, 50, 100, 150, 200, 250, 300)
FOR_DRAWS: Final = 20
"""Runs of one recorded stream, over which the draws of `random` are averaged."""


def hits(
    temperatures: Array, memories: Sequence[int] = CACHES, policies: Sequence[CachePolicy] = CACHED
) -> list[Measured]:
    """Hits of the caching problem: temperatures refer to the rows of a relation, one for each tenth of a degree."""
    found = []
    for memory in memories:
        for policy in policies:
            seeds = range(FOR_DRAWS if policy == "random" else 1)
            counts = [simulate_cache(temperatures, memory, policy, seed=seed).hits for seed in seeds]
            found.append(Measured(REAL, memory, policy, counts * (FOR_DRAWS // len(counts))))
    return found


REAL: Final = "REAL"


def claims_of_caching(found: Iterable[Measured]) -> tuple[Claim, ...]:
    """What section 8 says of Figure 15."""
    counts = Counts(found)

    def best(policy: str, of: str) -> Interval:
        ahead = [counts.ahead(REAL, policy, of, memory) for memory in counts.memories]
        return max(ahead, key=lambda interval: interval.mean)

    claims = [
        judged(
            "random is within a fifth of the optimum, lfd: references are local",
            {
                f"{memory} rows": Interval.of(counts.percent(REAL, "random", "lfd", memory) - 80)
                for memory in counts.memories
            },
        )
    ]
    if "heeb" in counts.policies(REAL):
        claims += [
            judged(
                f"heeb beats {rival} at every size",
                {f"{memory} rows": counts.ahead(REAL, "heeb", rival, memory) for memory in counts.memories},
            )
            for rival in ("random", "lru", "lfu")
        ]
        claims.append(
            judged(
                "heeb beats lru and lfu by as much as 20 % at some size",
                {
                    rival: Interval(*(number - 20 for number in best("heeb", rival)))
                    for rival in ("lru", "lfu")
                },
            )
        )
    return tuple(claims)


def figure8(*, rows: int = 2000, runs: int = 4) -> Reproduced:
    """Figure 8: all policies and streams in a memory of ten rows."""
    found = results(rows=rows, runs=runs)
    return _table(f"Figure 8: {_size(rows, runs)}", found, claims_of_comparison(found))


def by_memory(stream: str, figure: str, *, rows: int = 2000, runs: int = 3) -> Reproduced:
    """Figures 9 to 12: one of the streams, by memory."""
    found = results({stream: SETUPS[stream]}, MEMORIES, rows=rows, runs=runs)
    return _table(f"{figure}: {_size(rows, runs)}", found, claims_of_memory(found, stream))


def figure15(folder: str | Path) -> Reproduced:
    """Figure 15: the temperatures of Melbourne, against a cache."""
    temperatures = recorded.temperatures(folder)
    level = AR1.fit(temperatures)
    found = hits(temperatures)
    return _table(
        f"Figure 15: hits of {len(temperatures)} references; X = {level.phi1:.2f} X' + {level.phi0 / 10:.2f} "
        f"+ noise of deviation {level.sigma / 10:.2f}, of goodness {level.goodness(temperatures):.1g}",
        found,
        claims_of_caching(found),
    )


def _size(rows: int, runs: int) -> str:
    return f"results from memory, mean of {runs} runs of {rows} rows a side (95 % confidence)"


def _table(title: str, found: list[Measured], claims: tuple[Claim, ...]) -> Reproduced:
    policies = list(dict.fromkeys(one.policy for one in found))
    cells: dict[tuple[str, int], dict[str, str]] = {}
    for one in found:
        over = Interval.of(one.results)
        text = f"{over.mean:.0f} ± {over.half:.0f}" if np.ptp(one.results) else f"{over.mean:.0f}"
        cells.setdefault((one.stream, one.memory), {})[one.policy] = text
    rows = [
        (stream, str(memory), *(cell.get(policy, "-") for policy in policies))
        for (stream, memory), cell in cells.items()
    ]
    return Reproduced(f"Stochastic streams, {title}", ("stream", "memory", *policies), rows, claims)
