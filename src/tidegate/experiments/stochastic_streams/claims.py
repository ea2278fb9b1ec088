"""What section 8 says of its figures, held against what was measured."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence
from typing import Final

import numpy as np

from tidegate.experiments.claims import Claim, Interval, judged
from tidegate.experiments.stochastic_streams.measured import ALPHAS, REAL, Divided, Measured
from tidegate.experiments.stochastic_streams.setups import ALIKE, DRIFTING, MEMORY, RIVALS
from tidegate.types import Array

CLOSE: Final = 95
"""From so many percent of the offline optimum on, a policy has caught up with it."""


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

    def lead(self, stream: str, policy: str, of: str, memory: int, part: float = 1.0) -> Array:
        """By how many percent of the other policy's results one is ahead of a part of them, in the same runs."""
        return self.percent(stream, policy, of, memory) - part * self.percent(stream, of, of, memory)

    def ahead(self, stream: str, policy: str, of: str, memory: int, part: float = 1.0) -> Interval:
        """The mean of `lead`, and how sure it is."""
        return Interval.of(self.lead(stream, policy, of, memory, part))


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
        *(
            [
                judged(
                    "heeb beats even flow_expect in most cases",
                    ahead("heeb", ("flow_expect",), counts.streams),
                    needed="most",
                )
            ]
            if "flow_expect" in counts.policies(counts.streams[0])
            else []
        ),
        judged("life beats prob where there is a trend", ahead("life", ("prob",), drifting)),
        judged(
            "random, though oblivious, is no worse than prob and life there",
            ahead("random", ("prob", "life"), drifting),
        ),
    ]
    gains = [counts.lead(stream, "heeb", "random", memory) for stream in drifting]
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
                    policy: Interval.of(-counts.lead("WALK", policy, "offline", memory, CLOSE / 100))
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
                policy: Interval.of((1 if catches_up else -1) * lead)
                for policy in online
                for lead in [counts.lead(stream, policy, "offline", most, CLOSE / 100)]
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
                f"{memory} rows": counts.ahead(REAL, "random", "lfd", memory, 0.8)
                for memory in counts.memories
            },
        )
    ]
    for heeb in ALPHAS:
        if heeb not in counts.policies(REAL):
            continue
        claims += [
            judged(
                f"{heeb}: beats {rival} at every size",
                {f"{memory} rows": counts.ahead(REAL, heeb, rival, memory) for memory in counts.memories},
            )
            for rival in ("random", "lru", "lfu")
        ]
        claims.append(
            judged(
                f"{heeb}: beats lru and lfu by as much as 20 % at some size",
                {rival: Interval(*(number - 20 for number in best(heeb, rival))) for rival in ("lru", "lfu")},
            )
        )
    return tuple(claims)


def claims_of_division(found: Iterable[Divided]) -> tuple[Claim, ...]:
    """What section 8 says of Figure 16."""
    shares = {(one.streams, one.memory): np.array(one.shares) for one in found}
    memories = sorted({memory for _, memory in shares})

    def falls(*names: str) -> dict[str, Interval]:
        return {
            f"{less}, {memory} rows": Interval.of(shares[more, memory] - shares[less, memory])
            for memory in memories
            for more, less in itertools.pairwise(names)
        }

    varied = falls(ALIKE, "S varies by 2", "S varies by 4").items()
    rises = {case: Interval(-mean, -high, -low) for case, (mean, low, high) in varied}
    return (
        judged(
            "the more R lags, the less memory it has",
            falls(ALIKE, "R lags by 2", "R lags by 4"),
            unit="points",
        ),
        judged("the more S varies, the more memory R has", rises, unit="points"),
    )
