"""The claims of sections 4.3 and 6.2.4 about samples."""

from __future__ import annotations

import itertools
import operator
from collections.abc import Callable, Iterable
from functools import partial
from typing import Final

from tidegate.experiments.claims import ALL, Case, Claim, Runs, from_first, part, percent_ahead
from tidegate.experiments.results import Results

_EQ, _PPS = "EQ-CLUSTER", "PPS-CLUSTER"


def _uniforms(results: Results) -> list[str]:
    return [method for method in results.values("method") if method.startswith("UNIFORM")]


def _lower(case: Case, one: str, other: str) -> Runs:
    """How much one method's error is below another's, in percent of their mean, for each run."""
    first, second = case("error", method=one), case("error", method=other)
    return 200 * (second - first) / (first + second).at_least(1e-12)


MEMORY: Final = (
    Claim(
        "PPS-CLUSTER's error is below EQ-CLUSTER's",
        lambda case: _lower(case, _PPS, _EQ),
        {"percent": ALL},
        "{percent} %",
    ),
    Claim(
        "UNIFORM's is below PPS-CLUSTER's at 10 %",
        lambda case: _lower(case, case["uniform"], _PPS),
        {"uniform": _uniforms, "percent": part("percent", 0, 1)},
        "{uniform}",
    ),
    Claim(
        "PPS-CLUSTER's is below UNIFORM's with more memory",
        lambda case: _lower(case, _PPS, case["uniform"]),
        {"uniform": _uniforms, "percent": part("percent", 1)},
        "{uniform}, {percent} %",
    ),
    Claim(
        "UNIFORM's error is not 0 at 100 % (above 1 % of mu)",
        lambda case: 100 * case("of the mean", method=case["uniform"]) - 1,
        {"uniform": _uniforms, "percent": part("percent", -1)},
        "{uniform}",
        "points",
    ),
)


def _falls_behind(case: Case, compare: Callable[[Runs, Runs], Runs]) -> Runs:
    """How much a cluster sample's error, compared with that of UNIFORM, grows from the lowest variance on."""
    cluster, uniform = case["methods"]
    first, then = (
        compare(case("error", method=cluster, cv=cv), case("error", method=uniform, cv=cv))
        for cv in case["step"]
    )
    return then - first


def _clusters_and_uniforms(results: Results) -> Iterable[tuple[str, str]]:
    return itertools.product((_EQ, _PPS), _uniforms(results))


_by_variance = partial(
    Claim,
    each={"methods": _clusters_and_uniforms, "step": from_first("cv")},
    label="{methods[0]} and {methods[1]}, cv {step[0]:g} to {step[1]:g}",
)
# The left rows have the aggregated attribute.
VARIANCE: Final = (
    _by_variance(
        "cluster samples fall behind UNIFORM as variance grows, in points",
        lambda case: 100 * _falls_behind(case, operator.sub),
        unit="points",
    ),
    _by_variance("and in proportion", lambda case: _falls_behind(case, operator.truediv), unit="times"),
)


def _below_two_thirds(case: Case) -> Runs:
    cluster, uniform = (case("error", method=method) for method in case["methods"])
    return -percent_ahead(cluster, uniform, 2 / 3)


# The right rows have the aggregated attribute.
RIGHT_VALUES: Final = (
    Claim(
        "cluster samples' error is much below UNIFORM's (by a third)",
        _below_two_thirds,
        {"cv": ALL, "methods": _clusters_and_uniforms},
        "{methods[0]} and {methods[1]}, cv {cv:g}",
    ),
)


def _heavier(case: Case) -> Runs:
    most, right = (case("memory", factor=factor) for factor in (case["factor"], 1.0))
    return 100 * (most - right) / right - 2


def _zero_margin(bias: Runs) -> float:
    """How far the interval of a bias extends beyond 0 on its nearer side: one number for all runs."""
    return min(bias.interval.high, -bias.interval.low)


WRONG_MODELS: Final = (
    Claim(
        "n(s) times 0.5: UNIFORM as printed misses results (more than 2 %)",
        lambda case: -2 - case("bias"),
        {"method": ("UNIFORM as printed",), "factor": part("factor", 0, 1)},
        "{method}",
    ),
    Claim(
        "n(s) times 2: UNIFORM takes more memory (more than 2 %)",
        _heavier,
        {"method": _uniforms, "factor": part("factor", -1)},
        "{method}",
    ),
    Claim(
        "cluster samples, and UNIFORM as it is here, are unbiased for any n(s) (0 is within the interval)",
        lambda case: _zero_margin(case("bias")),
        {"method": ALL, "factor": ALL},
        "{method}, times {factor:g}",
        where=lambda case: case["method"] != "UNIFORM as printed",
    ),
)
