"""The claims of section 8 about its figures, judged by our measurements."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final, TypeAlias

from tidegate.experiments.claims import Claim, MeanInterval, judge
from tidegate.experiments.results import Results
from tidegate.experiments.stochastic_streams.measures import ALPHAS
from tidegate.experiments.stochastic_streams.setups import ALIKE, CALM, DRIFTING, MEMORY, NOISY, RIVALS
from tidegate.types import Array

ONLINE: Final = ("heeb", "flow_expect", *RIVALS)
"""The paper's online policies. `fifo` and, except in Figures 13 and 14, `heeb_histogram` are ours."""
_MAX_DEVIATION: Final = 5
"""The maximum deviation between runs in the paper, in percent."""
_NEARLY_ALL: Final = 0.95
"""A policy with this share of the best results can hardly be beaten."""
MODEL: Final = {"phi1": 0.72, "phi0": 5.59, "sigma": 4.22}
"""The printed parameters of Melbourne's temperatures."""
_PRINTED: Final = 0.01
CLOSE: Final = 95
"""A policy with this percentage of the offline optimum has caught up with it."""
REAL: Final = "REAL"
Judge: TypeAlias = Callable[[Results], tuple[Claim, ...]]


class PolicyResults:
    """Measurements, selected by stream, policy and memory."""

    def __init__(self, results: Results, number: str = "results") -> None:
        self._results, self._number = results, number
        self.streams, self.memories = results.values("stream"), sorted(results.values("memory"))

    def policies(self, stream: str) -> list[str]:
        """The policies that were run on a stream."""
        return self._results.where(stream=stream).values("policy")

    def online(self, stream: str) -> list[str]:
        """The paper's online policies among them."""
        return [policy for policy in self.policies(stream) if policy in ONLINE]

    def runs(self, stream: str, policy: str, memory: int) -> Array:
        """The results of each run."""
        return self._results.runs(self._number, stream=stream, policy=policy, memory=memory)

    def percent(self, stream: str, policy: str, of: str, memory: int) -> Array:
        """The results of each run in percent of the mean of another policy's."""
        return self.lead(stream, policy, of, memory, 0.0)

    def lead(self, stream: str, policy: str, of: str, memory: int, part: float = 1.0) -> Array:
        """How far one policy is ahead of a part of another's results, in percent of these, in the same runs."""
        place = {"stream": stream, "memory": memory}
        return self._results.percent_ahead(
            self._number, place | {"policy": policy}, place | {"policy": of}, part
        )

    def gains(self, stream: str, memory: int, policy: str = "heeb") -> dict[int, float]:
        """How many percent a policy is ahead of random, by seed."""
        one, random = (
            self._results.by_seed(self._number, stream=stream, memory=memory, policy=name)
            for name in (policy, "random")
        )
        return {seed: 100 * (one[seed] / max(random[seed], 1.0) - 1) for seed in one.keys() & random.keys()}

    def tight(self, stream: str, policy: str, of: str) -> list[int]:
        """The memories where a policy can be beaten. With more memory, nearly all useful rows fit."""
        memories = [
            m for m in self.memories if self.percent(stream, policy, of, m).mean() < 100 * _NEARLY_ALL
        ]
        return memories or self.memories[:1]

    def deviation(self, stream: str, policy: str, memory: int) -> float:
        """The standard deviation of runs, in percent of their mean."""
        runs = self.runs(stream, policy, memory)
        return 100 * float(runs.std() / max(runs.mean(), 1.0))

    def grown(self, stream: str, policy: str, fewer: int, more: int) -> Array:
        """How many percent results grow from one memory to another, in the same runs."""
        place = {"stream": stream, "policy": policy}
        return self._results.percent_ahead(self._number, place | {"memory": more}, place | {"memory": fewer})

    def ahead(self, stream: str, policy: str, of: str, memory: int, part: float = 1.0) -> MeanInterval:
        """The mean of `lead`, with its interval."""
        return MeanInterval.of(self.lead(stream, policy, of, memory, part))


def claims_of_comparison(results: Results, memory: int = MEMORY) -> tuple[Claim, ...]:
    """The claims of section 8 about Figure 8."""
    counts = PolicyResults(results)

    def ahead(
        policy: str, rivals: Sequence[str], streams: Iterable[str], part: float = 1.0
    ) -> dict[str, MeanInterval]:
        return {
            f"{stream}, {rival}": counts.ahead(stream, policy, rival, memory, part)
            for stream in streams
            for rival in rivals
            if rival in counts.policies(stream)
        }

    drifting = [stream for stream in DRIFTING if stream in counts.streams]
    claims = [
        judge("offline beats all others", ahead("offline", ONLINE, counts.streams)),
        judge("heeb beats random, prob and life", ahead("heeb", RIVALS, counts.streams)),
        judge("life beats prob where there is a trend", ahead("life", ("prob",), drifting)),
        judge(
            f"random is competitive there, although it uses no model: at least {CLOSE} % of prob and of life",
            ahead("random", ("prob", "life"), drifting, CLOSE / 100),
        ),
    ]
    if len(drifting) > 1:
        claims.append(
            judge(
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
            judge(
                f"no online policy comes within {100 - CLOSE} % of offline in WALK",
                {
                    policy: MeanInterval.of(-counts.lead("WALK", policy, "offline", memory, CLOSE / 100))
                    for policy in counts.online("WALK")
                },
            )
        )
    if drifting:
        claims.append(
            judge(
                f"runs differ little but in WALK: the standard deviation is under {_MAX_DEVIATION} %",
                {
                    f"{stream}, {policy}": MeanInterval.exactly(
                        _MAX_DEVIATION - counts.deviation(stream, policy, memory)
                    )
                    for stream in drifting
                    for policy in ("offline", *counts.online(stream))
                },
            )
        )
    if "flow_expect" in counts.policies(counts.streams[0]):
        forecast_streams = [stream for stream in ("TOWER", "WALK") if stream in counts.streams]
        claims += [
            judge(
                "heeb beats even flow_expect in most cases",
                ahead("heeb", ("flow_expect",), counts.streams),
                required="most",
            ),
            judge(
                "flow_expect also beats random, prob and life in TOWER and in WALK",
                ahead("flow_expect", RIVALS, forecast_streams),
            ),
        ]
    return tuple(claims)


def _smaller(more: Mapping[int, float], less: Mapping[int, float]) -> MeanInterval:
    """How much one number is above another, for the seeds that both have."""
    return MeanInterval.of([more[seed] - less[seed] for seed in sorted(more.keys() & less.keys())])


def claims_of_memory(results: Results, stream: str) -> tuple[Claim, ...]:
    """The claims of section 8 about one of Figures 9 to 12."""
    counts = PolicyResults(results.where(stream=stream))
    memories, most = counts.memories, counts.memories[-1]
    online = counts.online(stream)
    catches_up = stream in DRIFTING
    claims = [
        judge(
            "no policy falls by 1 % or more with more memory",
            {policy: _slowest(counts, stream, policy) for policy in ("offline", *online)},
        ),
        judge(
            f"with {most} rows {'every' if catches_up else 'no'} policy is within {100 - CLOSE} % of offline",
            {
                policy: MeanInterval.of((1 if catches_up else -1) * lead)
                for policy in online
                for lead in [counts.lead(stream, policy, "offline", most, CLOSE / 100)]
            },
        ),
    ]
    if catches_up:
        # A policy that never gets there counts as needing twice the largest memory.
        least = {
            policy: next(
                (m for m in memories if counts.percent(stream, policy, "offline", m).mean() >= CLOSE),
                2 * most,
            )
            for policy in online
        }
        factor, words = (1, "no more rows than") if stream == "FLOOR" else (2, "half of the rows that")
        claims.append(
            judge(
                f"heeb gets this close with {words} random, prob and life need",
                # Whole numbers: adding one makes equality count.
                {
                    rival: MeanInterval.exactly(least[rival] - factor * least["heeb"] + 1)
                    for rival in RIVALS
                    if rival in least
                },
                unit="rows",
            )
        )
    return tuple(claims)


def _slowest(counts: PolicyResults, stream: str, policy: str) -> MeanInterval:
    """The smallest growth from one memory to the next in percent, plus 1."""
    steps = [
        MeanInterval.of(counts.grown(stream, policy, fewer, more) + 1)
        for fewer, more in itertools.pairwise(counts.memories)
    ]
    return min(steps, key=lambda step: step.mean)


def claims_of_caching(results: Results) -> tuple[Claim, ...]:
    """The claims of section 8 about Figure 15."""
    counts = PolicyResults(Results({"stream": REAL} | dict(row) for row in results.rows), "hits")

    def best(policy: str, of: str) -> MeanInterval:
        ahead = [counts.ahead(REAL, policy, of, memory) for memory in counts.memories]
        return max(ahead, key=lambda interval: interval.mean)

    claims = [
        judge(
            "temperatures follow the printed AR(1), 0.72, 5.59 and 4.22 (within 0.01)",
            {
                name: MeanInterval.exactly(_PRINTED - abs(float(results.runs(name)[0]) - printed))
                for name, printed in MODEL.items()
            },
            unit="",
        ),
        judge(
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
            judge(
                f"{heeb}: beats {rival} at every size where that has less than {_NEARLY_ALL:.0%} of the optimum",
                {
                    f"{memory} rows": counts.ahead(REAL, heeb, rival, memory)
                    for memory in counts.tight(REAL, rival, "lfd")
                },
            )
            for rival in ("random", "lru", "lfu")
        ]
        claims.append(
            judge(
                f"{heeb}: beats lru and lfu by as much as 20 % at some size",
                {
                    rival: MeanInterval(*(number - 20 for number in best(heeb, rival)))
                    for rival in ("lru", "lfu")
                },
            )
        )
    return tuple(claims)


def claims_of_division(results: Results) -> tuple[Claim, ...]:
    """The claims of section 8 about Figure 16."""
    memories = sorted(results.values("memory"))

    def falls(*names: str) -> dict[str, MeanInterval]:
        return {
            f"{less}, {memory} rows": _points(results, more, less, memory)
            for memory in memories
            for more, less in itertools.pairwise(names)
        }

    varied = falls(ALIKE, "S varies by 2", "S varies by 4").items()
    rises = {case: MeanInterval(-mean, -high, -low) for case, (mean, low, high) in varied}
    return (
        judge(
            "the more R lags, the less memory it has",
            falls(ALIKE, "R lags by 2", "R lags by 4"),
            unit="points",
        ),
        judge("the more S varies, the more memory R has", rises, unit="points"),
    )


def _points(results: Results, more: str, less: str, memory: int) -> MeanInterval:
    first, second = ({"streams": name, "memory": memory} for name in (more, less))
    one, other = results.paired("share of R", first, second)
    return MeanInterval.of(one - other)


def claims_of_histograms(results: Results, *, noisy: bool) -> tuple[Claim, ...]:
    """The claims of section 8 about Figures 13 and 14."""
    counts = PolicyResults(results)
    stream = NOISY if noisy else CALM
    part = 0.9 if noisy else 0.95

    def over(policy: str, of: str, memories: Sequence[int], part: float = 1.0) -> dict[str, MeanInterval]:
        return {f"{memory} rows": counts.ahead(stream, policy, of, memory, part) for memory in memories}

    tight = counts.tight(stream, "random", "heeb")
    claims = [
        judge(
            f"heeb_histogram has at least {part:.0%} of heeb's results",
            over("heeb_histogram", "heeb", counts.memories, part),
        ),
        judge(
            f"heeb_histogram beats random where that has less than {_NEARLY_ALL:.0%} of heeb's results",
            over("heeb_histogram", "random", tight),
        ),
        judge(
            "heeb_histogram is not above heeb by 1 % or more",
            {
                name: MeanInterval(1 - mean, 1 - high, 1 - low)
                for name, (mean, low, high) in over("heeb_histogram", "heeb", counts.memories).items()
            },
        ),
    ]
    if noisy:
        claims.append(
            judge(
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
