"""What section 8 says of its figures, held against what was measured."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final, TypeAlias

import numpy as np

from tidegate.experiments.claims import Claim, Interval, judged
from tidegate.experiments.results import Results
from tidegate.experiments.stochastic_streams.measured import ALPHAS
from tidegate.experiments.stochastic_streams.setups import ALIKE, CALM, DRIFTING, MEMORY, NOISY, RIVALS
from tidegate.types import Array

ONLINE: Final = ("heeb", "flow_expect", *RIVALS)
"""The paper's policies that cannot foresee; `fifo` and, but for Figures 13 and 14, `heeb_histogram` are ours."""
_ALIKE: Final = 5
"""By so many percent runs differ at most, in the paper."""
_ROOM: Final = 0.95
"""Who has so much of the best results leaves no room to be beaten."""
MODEL: Final = {"phi1": 0.72, "phi0": 5.59, "sigma": 4.22}
"""What Melbourne's temperatures follow, as printed."""
_PRINTED: Final = 0.01
CLOSE: Final = 95
"""From so many percent of the offline optimum on, a policy has caught up with it."""
REAL: Final = "REAL"
_NEAR: Final = range(-10, 11)
Judge: TypeAlias = Callable[[Results], tuple[Claim, ...]]


class Counts:
    """What was measured, to be asked for by stream, policy and memory."""

    def __init__(self, results: Results, number: str = "results") -> None:
        self._results, self._number = results, number
        self.streams, self.memories = results.values("stream"), sorted(results.values("memory"))

    def policies(self, stream: str) -> list[str]:
        """The policies that were run on a stream."""
        return self._results.where(stream=stream).values("policy")

    def online(self, stream: str) -> list[str]:
        """Those of the paper that cannot foresee."""
        return [policy for policy in self.policies(stream) if policy in ONLINE]

    def runs(self, stream: str, policy: str, memory: int) -> Array:
        """The results, run by run."""
        return self._results.runs(self._number, stream=stream, policy=policy, memory=memory)

    def percent(self, stream: str, policy: str, of: str, memory: int) -> Array:
        """The results of each run in percent of the mean of another policy's."""
        return self.lead(stream, policy, of, memory, 0.0)

    def lead(self, stream: str, policy: str, of: str, memory: int, part: float = 1.0) -> Array:
        """By how many percent of the other policy's results one is ahead of a part of them, in the same runs."""
        place = {"stream": stream, "memory": memory}
        return self._results.ahead(self._number, place | {"policy": policy}, place | {"policy": of}, part)

    def gains(self, stream: str, memory: int, policy: str = "heeb") -> dict[int, float]:
        """By how many percent a policy is ahead of random, seed by seed."""
        one, random = (
            self._results.by_seed(self._number, stream=stream, memory=memory, policy=name)
            for name in (policy, "random")
        )
        return {seed: 100 * (one[seed] / max(random[seed], 1.0) - 1) for seed in one.keys() & random.keys()}

    def tight(self, stream: str, policy: str, of: str) -> list[int]:
        """The memories where a policy leaves room to beat it: elsewhere memory holds nearly all that is worth it."""
        found = [m for m in self.memories if self.percent(stream, policy, of, m).mean() < 100 * _ROOM]
        return found or self.memories[:1]

    def deviation(self, stream: str, policy: str, memory: int) -> float:
        """By how many percent of their mean runs deviate."""
        runs = self.runs(stream, policy, memory)
        return 100 * float(runs.std() / max(runs.mean(), 1.0))

    def grown(self, stream: str, policy: str, fewer: int, more: int) -> Array:
        """By how many percent the results grow from one memory to another, in the same runs."""
        place = {"stream": stream, "policy": policy}
        return self._results.ahead(self._number, place | {"memory": more}, place | {"memory": fewer})

    def ahead(self, stream: str, policy: str, of: str, memory: int, part: float = 1.0) -> Interval:
        """The mean of `lead`, and how sure it is."""
        return Interval.of(self.lead(stream, policy, of, memory, part))


def claims_of_comparison(results: Results, memory: int = MEMORY) -> tuple[Claim, ...]:
    """What section 8 says of Figure 8."""
    counts = Counts(results)

    def ahead(
        policy: str, rivals: Sequence[str], streams: Iterable[str], part: float = 1.0
    ) -> dict[str, Interval]:
        return {
            f"{stream}, {rival}": counts.ahead(stream, policy, rival, memory, part)
            for stream in streams
            for rival in rivals
            if rival in counts.policies(stream)
        }

    drifting = [stream for stream in DRIFTING if stream in counts.streams]
    claims = [
        judged("offline beats all others", ahead("offline", ONLINE, counts.streams)),
        judged("heeb beats random, prob and life", ahead("heeb", RIVALS, counts.streams)),
        judged("life beats prob where there is a trend", ahead("life", ("prob",), drifting)),
        judged(
            f"random, though oblivious, is competitive there: at least {CLOSE} % of prob and of life",
            ahead("random", ("prob", "life"), drifting, CLOSE / 100),
        ),
    ]
    if len(drifting) > 1:
        claims.append(
            judged(
                "the advantage over random falls from TOWER to FLOOR",
                {
                    f"{more} over {less}": _smaller(counts.gains(more, memory), counts.gains(less, memory))
                    for more, less in itertools.pairwise(drifting)
                },
                unit="points",
            )
        )
    if "WALK" in counts.streams:
        claims.append(
            judged(
                f"no policy that cannot foresee comes within {100 - CLOSE} % of offline in WALK",
                {
                    policy: Interval.of(-counts.lead("WALK", policy, "offline", memory, CLOSE / 100))
                    for policy in counts.online("WALK")
                },
            )
        )
    if drifting:
        claims.append(
            judged(
                f"runs differ little but in WALK: the standard deviation is under {_ALIKE} %",
                {
                    f"{stream}, {policy}": Interval.exactly(_ALIKE - counts.deviation(stream, policy, memory))
                    for stream in drifting
                    for policy in ("offline", *counts.online(stream))
                },
            )
        )
    if "flow_expect" in counts.policies(counts.streams[0]):
        knows = [stream for stream in ("TOWER", "WALK") if stream in counts.streams]
        claims += [
            judged(
                "heeb beats even flow_expect in most cases",
                ahead("heeb", ("flow_expect",), counts.streams),
                needed="most",
            ),
            judged(
                "flow_expect, too, beats random, prob and life in TOWER and in WALK",
                ahead("flow_expect", RIVALS, knows),
            ),
        ]
    return tuple(claims)


def _smaller(more: Mapping[int, float], less: Mapping[int, float]) -> Interval:
    """By how much a number of one kind of runs is above that of another, seed by seed."""
    return Interval.of([more[seed] - less[seed] for seed in sorted(more.keys() & less.keys())])


def claims_of_memory(results: Results, stream: str) -> tuple[Claim, ...]:
    """What section 8 says of one of Figures 9 to 12."""
    counts = Counts(results.where(stream=stream))
    memories, most = counts.memories, counts.memories[-1]
    online = counts.online(stream)
    catches_up = stream in DRIFTING
    claims = [
        judged(
            "no policy falls by 1 % or more with more memory",
            {policy: _slowest(counts, stream, policy) for policy in ("offline", *online)},
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
    steps = [
        Interval.of(counts.grown(stream, policy, fewer, more) + 1)
        for fewer, more in itertools.pairwise(counts.memories)
    ]
    return min(steps, key=lambda step: step.mean)


def claims_of_caching(results: Results) -> tuple[Claim, ...]:
    """What section 8 says of Figure 15."""
    counts = Counts(Results({"stream": REAL} | dict(row) for row in results.rows), "hits")

    def best(policy: str, of: str) -> Interval:
        ahead = [counts.ahead(REAL, policy, of, memory) for memory in counts.memories]
        return max(ahead, key=lambda interval: interval.mean)

    claims = [
        judged(
            "temperatures follow the printed AR(1), 0.72, 5.59 and 4.22 (within 0.01)",
            {
                name: Interval.exactly(_PRINTED - abs(float(results.runs(name)[0]) - printed))
                for name, printed in MODEL.items()
            },
            unit="",
        ),
        judged(
            "random is within a fifth of the optimum, lfd: references are local",
            {
                f"{memory} rows": counts.ahead(REAL, "random", "lfd", memory, 0.8)
                for memory in counts.memories
            },
        ),
    ]
    for heeb in ALPHAS:
        if heeb not in counts.policies(REAL):
            continue
        claims += [
            judged(
                f"{heeb}: beats {rival} at every size where that has less than {_ROOM:.0%} of the optimum",
                {
                    f"{memory} rows": counts.ahead(REAL, heeb, rival, memory)
                    for memory in counts.tight(REAL, rival, "lfd")
                },
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


def claims_of_division(results: Results) -> tuple[Claim, ...]:
    """What section 8 says of Figure 16."""
    memories = sorted(results.values("memory"))

    def falls(*names: str) -> dict[str, Interval]:
        return {
            f"{less}, {memory} rows": _points(results, more, less, memory)
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


def _points(results: Results, more: str, less: str, memory: int) -> Interval:
    first, second = ({"streams": name, "memory": memory} for name in (more, less))
    one, other = results.paired("share of R", first, second)
    return Interval.of(one - other)


def claims_of_histograms(results: Results, *, noisy: bool) -> tuple[Claim, ...]:
    """What section 8 says of Figures 13 and 14."""
    counts = Counts(results)
    stream = NOISY if noisy else CALM
    part = 0.9 if noisy else 0.95

    def over(policy: str, of: str, memories: Sequence[int], part: float = 1.0) -> dict[str, Interval]:
        return {f"{memory} rows": counts.ahead(stream, policy, of, memory, part) for memory in memories}

    tight = counts.tight(stream, "random", "heeb")
    claims = [
        judged(
            f"heeb_histogram has at least {part:.0%} of heeb's results",
            over("heeb_histogram", "heeb", counts.memories, part),
        ),
        judged(
            f"heeb_histogram beats random where that has less than {_ROOM:.0%} of heeb's results",
            over("heeb_histogram", "random", tight),
        ),
        judged(
            "heeb_histogram is not above heeb by 1 % or more",
            {
                name: Interval(1 - mean, 1 - high, 1 - low)
                for name, (mean, low, high) in over("heeb_histogram", "heeb", counts.memories).items()
            },
        ),
    ]
    if noisy:
        claims.append(
            judged(
                "the advantage of both over random is smaller than with low variance",
                {
                    f"{policy}, {MEMORY} rows": _smaller(
                        *(counts.gains(s, MEMORY, policy) for s in (CALM, NOISY))
                    )
                    for policy in ("heeb", "heeb_histogram")
                },
                unit="points",
            )
        )
    return tuple(claims)


def _curves(results: Results) -> dict[str, Array]:
    """The benefit of each row, by how far ahead."""
    return {
        row: np.array([one["benefit"] for one in results.where(row=row).rows])
        for row in results.values("row")
    }


def claims_of_example(results: Results) -> tuple[Claim, ...]:
    """What section 5.1 says of Figure 2."""
    x, y, z = (_curves(results)[row] for row in "xyz")
    return (
        judged(
            "x is above y over any time",
            {"least difference": Interval.exactly(float((x - y).min()))},
            unit="results",
        ),
        judged(
            "x and z cross: x is ahead at first, z in the end",
            {
                "x ahead, at first": Interval.exactly(float(x[0] - z[0])),
                "z ahead, in the end": Interval.exactly(float(z[-1] - x[-1])),
            },
            unit="results",
        ),
    )


def claims_of_caching_benefits(results: Results) -> tuple[Claim, ...]:
    """What section 7.3 says of Figure 4."""
    curves = list(_curves(results).items())
    tiny = 1e-12
    return (
        judged(
            "the higher a row's value, the higher its benefit, over any time: the lowest value may go",
            {
                f"{high[0]} over {low[0]}": Interval.exactly(float((high[1] - low[1]).min()) + tiny)
                for low, high in itertools.pairwise(curves)
            },
            unit="results",
        ),
    )


def claims_of_joining_benefits(results: Results) -> tuple[Claim, ...]:
    """What section 7.3 says of Figure 5, corrected: only a row of S2 can dominate one of R2."""
    curves, tiny = _curves(results), 1e-12

    def over(high: str, low: str) -> Interval:
        return Interval.exactly(float((curves[high] - curves[low]).min()) + tiny)

    zero = {row: Interval.exactly(tiny - float(curves[row].max())) for row in ("R1", "S1")}
    return (
        judged("R1 and S1 bring nothing more", zero, unit="results"),
        judged(
            "within R2 and within S2 the higher value is above",
            {"R2": over("R2, far", "R2, near"), "S2": over("S2, far", "S2, near")},
            unit="results",
        ),
        judged(
            "a row of R2 may dominate one of S2 (as printed)",
            {f"{r} over {s}": over(r, s) for r in ("R2, near", "R2, far") for s in ("S2, near", "S2, far")},
            unit="results",
        ),
        judged(
            "a row of S2 may dominate one of R2 (corrected)",
            {"S2, far over R2, near": over("S2, far", "R2, near")},
            unit="results",
        ),
    )


def claims_of_walks(results: Results) -> tuple[Claim, ...]:
    """What section 7.5 says of Figure 6."""
    worth = {
        drift: {row["distance"]: row["benefit"] for row in results.where(drift=drift).rows}
        for drift in results.values("drift")
    }
    still = worth[0]
    tiny = 1e-12
    steps = [still[far] - still[far + 1] for far in range(8)]
    even = [abs(still[far] - still[-far]) for far in range(1, 9)]
    right = {
        f"drift {drift}": Interval.exactly(
            sum(far * curve[far] for far in _NEAR) / sum(curve[far] for far in _NEAR)
        )
        for drift, curve in worth.items()
        if drift
    }
    peaks = {
        f"drift {drift}, distance {drift * times}": Interval.exactly(
            curve[drift * times] - (curve[drift * times - 1] + curve[drift * times + 1]) / 2
        )
        for drift, curve in worth.items()
        if drift
        for times in (1, 2)
    }
    return (
        judged(
            "without drift the nearest is the best to keep, on either side alike",
            {
                "least step down": Interval.exactly(min(steps)),
                "alike": Interval.exactly(tiny - max(even)),
            },
            unit="",
        ),
        judged("with a drift what lies ahead is: the mean distance is above 0", right, unit=""),
        judged("what is away by a multiple of the drift is preferred to its neighbours", peaks, unit=""),
    )
