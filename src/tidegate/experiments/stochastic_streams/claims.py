"""The claims of section 8 about its figures."""

from __future__ import annotations

import itertools
import math
import operator
from collections.abc import Callable
from dataclasses import replace
from typing import Final

from tidegate.experiments.claims import (
    ALL,
    Case,
    Claim,
    MeanInterval,
    Runs,
    Values,
    part,
    percent_ahead,
    sorted_values,
    steps,
)
from tidegate.experiments.results import Results
from tidegate.experiments.stochastic_streams.measures import ALPHAS
from tidegate.experiments.stochastic_streams.setups import (
    ALIKE,
    CALM,
    DRIFTING,
    MEMORIES,
    MEMORY,
    NOISY,
    RIVALS,
)

ONLINE: Final = ("heeb", "flow_expect", *RIVALS)
"""The paper's online policies. `fifo` and, except in Figures 13 and 14, `heeb_histogram` are ours."""
_MAX_DEVIATION: Final = 5
"""The maximum deviation between runs in the paper, in percent."""
_NEARLY_ALL: Final = 95
"""A policy with this percentage of the best results can hardly be beaten."""
MODEL: Final = {"phi1": 0.72, "phi0": 5.59, "sigma": 4.22}
"""The printed parameters of Melbourne's temperatures."""
CLOSE: Final = 95
"""A policy with this percentage of the offline optimum has caught up with it."""


def _ahead(case: Case, policy: str, of: str, part: float = 1.0, number: str = "results") -> Runs:
    """How far one policy is ahead of a part of another's results, in percent of these, in the same runs."""
    return percent_ahead(case(number, policy=policy), case(number, policy=of), part)


def _gain(case: Case, policy: str = "heeb", **settings: object) -> Runs:
    """How many percent a policy is ahead of random."""
    one, random = (case("results", policy=name, **settings) for name in (policy, "random"))
    return 100 * (one / random.at_least(1.0) - 1)


def _was_run(case: Case) -> bool:
    """Whether the rival of a case was run on its stream."""
    return case.has(policy=case["rival"])


def _deviation(case: Case) -> float:
    """The standard deviation of runs, in percent of their mean."""
    runs = case("results")
    squares = (runs - runs.mean) * (runs - runs.mean)
    return 100 * math.sqrt(squares.mean) / max(runs.mean, 1.0)


def _drifting(results: Results) -> list[str]:
    return [stream for stream in DRIFTING if stream in results.values("stream")]


def _beats(
    text: str, policy: str, rivals: tuple[str, ...], streams: Values = ALL, part: float = 1.0
) -> Claim:
    """A policy has more results than a part of its rivals'."""
    return Claim(
        text,
        lambda case: _ahead(case, policy, case["rival"], part),
        {"stream": streams, "rival": rivals, "memory": (MEMORY,)},
        "{stream}, {rival}",
        where=_was_run,
    )


COMPARISON: Final = (
    _beats("offline beats all others", "offline", ONLINE),
    _beats("heeb beats random, prob and life", "heeb", RIVALS),
    _beats("life beats prob where there is a trend", "life", ("prob",), DRIFTING),
    _beats(
        f"random is competitive there, although it uses no model: at least {CLOSE} % of prob and of life",
        "random",
        ("prob", "life"),
        DRIFTING,
        CLOSE / 100,
    ),
    Claim(
        "the advantage over random falls from TOWER to FLOOR",
        lambda case: operator.sub(*(_gain(case, stream=stream) for stream in case["step"])),
        {"step": lambda results: itertools.pairwise(_drifting(results)), "memory": (MEMORY,)},
        "{step[0]} over {step[1]}",
        "points",
    ),
    Claim(
        f"no online policy comes within {100 - CLOSE} % of offline in WALK",
        lambda case: -_ahead(case, case["rival"], "offline", CLOSE / 100),
        {"stream": ("WALK",), "rival": ONLINE, "memory": (MEMORY,)},
        "{rival}",
        where=_was_run,
    ),
    Claim(
        f"runs differ little but in WALK: the standard deviation is under {_MAX_DEVIATION} %",
        lambda case: _MAX_DEVIATION - _deviation(case),
        {"stream": DRIFTING, "policy": ("offline", *ONLINE), "memory": (MEMORY,)},
        "{stream}, {policy}",
        where=Case.has,
    ),
    replace(_beats("heeb beats even flow_expect in most cases", "heeb", ("flow_expect",)), required="most"),
    replace(
        _beats(
            "flow_expect also beats random, prob and life in TOWER and in WALK",
            "flow_expect",
            RIVALS,
            ("TOWER", "WALK"),
        ),
        where=lambda case: _was_run(case) and case.has(policy="flow_expect"),
    ),
)


def _slowest_growth(case: Case) -> MeanInterval:
    """The smallest growth from one memory to the next in percent."""
    growths = [
        percent_ahead(case("results", memory=more), case("results", memory=fewer)).interval
        for fewer, more in steps("memory")(case.results)
    ]
    return min(growths, key=lambda growth: growth.mean)


def _needed(case: Case, policy: str) -> float:
    """The memory with which a policy catches up with offline; twice the largest one if it never does."""
    memories = sorted_values(case.results, "memory")
    for memory in memories:
        results, best = (case("results", policy=name, memory=memory) for name in (policy, "offline"))
        if percent_ahead(results, best, 0.0).mean >= CLOSE:
            return float(memory)
    return 2 * float(memories[-1])


def by_memory(stream: str) -> tuple[Claim, ...]:
    """The claims about one of Figures 9 to 12."""
    catches_up = stream in DRIFTING
    most = max(MEMORIES)
    factor, words = (1, "no more rows than") if stream == "FLOOR" else (2, "half of the rows that")
    claims = (
        Claim(
            "no policy falls by 1 % or more with more memory",
            lambda case: MeanInterval(*(growth + 1 for growth in _slowest_growth(case))),
            {"stream": (stream,), "policy": ("offline", *ONLINE)},
            "{policy}",
            where=Case.has,
        ),
        Claim(
            f"with {most} rows {'every' if catches_up else 'no'} policy is within {100 - CLOSE} % of offline",
            lambda case: (1 if catches_up else -1) * _ahead(case, case["rival"], "offline", CLOSE / 100),
            {"stream": (stream,), "memory": part("memory", -1), "rival": ONLINE},
            "{rival}",
            where=_was_run,
        ),
        Claim(
            f"heeb gets this close with {words} random, prob and life need",
            # Whole numbers: adding one makes equality count.
            lambda case: _needed(case, case["rival"]) - factor * _needed(case, "heeb") + 1,
            {"stream": (stream,), "rival": RIVALS},
            "{rival}",
            "rows",
            where=_was_run,
        ),
    )
    return claims if catches_up else claims[:2]


def _tight(policy: str, best: str, number: str = "results") -> Callable[[Results], list[int]]:
    """The memories where a policy can be beaten. With more memory, nearly all useful rows fit."""

    def memories(results: Results) -> list[int]:
        measured = sorted_values(results, "memory")
        cases = [Case(results, {"memory": memory}) for memory in measured]
        able = [
            case["memory"] for case in cases if _ahead(case, policy, best, 0.0, number).mean < _NEARLY_ALL
        ]
        return able or measured[:1]

    return memories


def _best_lead(case: Case, policy: str, of: str) -> MeanInterval:
    """The largest lead of a policy at any size of the cache."""
    leads = [
        _ahead(Case(case.results, {"memory": memory}), policy, of, number="hits").interval
        for memory in case.results.values("memory")
    ]
    return max(leads, key=lambda lead: lead.mean)


def _caching(heeb: str) -> tuple[Claim, ...]:
    """The claims about HEEB with one alpha."""

    def was_run(case: Case) -> bool:
        return case.has(policy=heeb)

    return (
        *(
            Claim(
                f"{heeb}: beats {rival} at every size where that has less than {_NEARLY_ALL}% of the optimum",
                lambda case, rival=rival: _ahead(case, heeb, rival, number="hits"),  # type: ignore[misc]
                {"memory": _tight(rival, "lfd", "hits")},
                "{memory} rows",
                where=was_run,
            )
            for rival in ("random", "lru", "lfu")
        ),
        Claim(
            f"{heeb}: beats lru and lfu by as much as 20 % at some size",
            lambda case: MeanInterval(*(lead - 20 for lead in _best_lead(case, heeb, case["rival"]))),
            {"rival": ("lru", "lfu")},
            "{rival}",
            where=was_run,
        ),
    )


CACHING: Final = (
    Claim(
        "temperatures follow the printed AR(1), 0.72, 5.59 and 4.22 (within 0.01)",
        lambda case: 0.01 - abs(case.results.rows[0][case["parameter"]] - MODEL[case["parameter"]]),
        {"parameter": tuple(MODEL)},
        "{parameter}",
        unit="",
    ),
    Claim(
        "random is within a fifth of the optimum, lfd: references are local",
        lambda case: _ahead(case, "random", "lfd", 0.8, "hits"),
        {"memory": ALL},
        "{memory} rows",
    ),
    *itertools.chain.from_iterable(map(_caching, ALPHAS)),
)


def _share_falls(case: Case) -> Runs:
    more, less = (case("share of R", streams=streams) for streams in case["step"])
    return more - less


DIVISION: Final = (
    Claim(
        "the more R lags, the less memory it has",
        _share_falls,
        {"memory": ALL, "step": [(ALIKE, "R lags by 2"), ("R lags by 2", "R lags by 4")]},
        "{step[1]}, {memory} rows",
        "points",
    ),
    Claim(
        "the more S varies, the more memory R has",
        lambda case: -_share_falls(case),
        {"memory": ALL, "step": [(ALIKE, "S varies by 2"), ("S varies by 2", "S varies by 4")]},
        "{step[1]}, {memory} rows",
        "points",
    ),
)


def by_histograms(*, noisy: bool) -> tuple[Claim, ...]:
    """The claims about Figures 13 and 14."""
    stream, share = (NOISY, 0.9) if noisy else (CALM, 0.95)

    def tight(results: Results) -> list[int]:
        return _tight("random", "heeb")(results.where(stream=stream))

    claims = (
        Claim(
            f"heeb_histogram has at least {share:.0%} of heeb's results",
            lambda case: _ahead(case, "heeb_histogram", "heeb", share),
            {"stream": (stream,), "memory": ALL},
            "{memory} rows",
        ),
        Claim(
            f"heeb_histogram beats random where that has less than {_NEARLY_ALL}% of heeb's results",
            lambda case: _ahead(case, "heeb_histogram", "random"),
            {"stream": (stream,), "memory": tight},
            "{memory} rows",
        ),
        Claim(
            "heeb_histogram is not above heeb by 1 % or more",
            lambda case: 1 - _ahead(case, "heeb_histogram", "heeb"),
            {"stream": (stream,), "memory": ALL},
            "{memory} rows",
        ),
        Claim(
            "the advantage of both over random is smaller than with low variance",
            lambda case: operator.sub(*(_gain(case, case["which"], stream=one) for one in (CALM, NOISY))),
            {"which": ("heeb", "heeb_histogram"), "memory": (MEMORY,)},
            "{which}, {memory} rows",
            "points",
        ),
    )
    return claims if noisy else claims[:3]
