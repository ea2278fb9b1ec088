"""The claims of sections 4.3 and 6.2.4 about samples, judged by our measurements."""

from __future__ import annotations

import itertools

import numpy as np

from tidegate.experiments.claims import Claim, MeanInterval, judge
from tidegate.experiments.results import Results
from tidegate.types import Array

_EQ, _PPS = "EQ-CLUSTER", "PPS-CLUSTER"


def _lower(results: Results, one: str, other: str, number: str = "error", **place: object) -> MeanInterval:
    """How much one method's error is below another's, in percent of their mean, for each run."""
    first, second = results.paired(number, {"method": one, **place}, {"method": other, **place})
    return MeanInterval.of(200 * (second - first) / np.maximum(first + second, 1e-12))


def claims_of_memory(results: Results) -> tuple[Claim, ...]:
    """The claims of the paper about Figure 8."""
    percents = sorted(results.values("percent"))
    uniforms = _uniforms(results)
    less, more = percents[0], percents[1:]
    whole = percents[-1]
    return (
        judge(
            "PPS-CLUSTER's error is below EQ-CLUSTER's",
            {f"{p} %": _lower(results, _PPS, _EQ, percent=p) for p in percents},
        ),
        judge(
            f"UNIFORM's is below PPS-CLUSTER's at {less} %",
            {method: _lower(results, method, _PPS, percent=less) for method in uniforms},
        ),
        judge(
            "PPS-CLUSTER's is below UNIFORM's with more memory",
            {f"{m}, {p} %": _lower(results, _PPS, m, percent=p) for m in uniforms for p in more},
        ),
        judge(
            f"UNIFORM's error is not 0 at {whole} % (above 1 % of mu)",
            {
                m: MeanInterval.of(100 * results.runs("of the mean", method=m, percent=whole) - 1)
                for m in uniforms
            },
            unit="points",
        ),
    )


def claims_of_variance(results: Results) -> tuple[Claim, ...]:
    """The claims of the paper about Figure 9, where the left rows have the aggregated attribute."""
    least, *cvs = sorted(results.values("cv"))
    differences, ratios = {}, {}
    for cluster, uniform in itertools.product((_EQ, _PPS), _uniforms(results)):
        errors = {
            cv: results.paired("error", {"method": cluster, "cv": cv}, {"method": uniform, "cv": cv})
            for cv in (least, *cvs)
        }
        for cv in cvs:
            case = f"{cluster} and {uniform}, cv {least:g} to {cv:g}"
            (first, against), (then, against_then) = errors[least], errors[cv]
            differences[case] = MeanInterval.of(100 * (then - against_then - (first - against)))
            ratios[case] = MeanInterval.of(then / against_then - first / against)
    return (
        judge("cluster samples fall behind UNIFORM as variance grows, in points", differences, unit="points"),
        judge("and in proportion", ratios, unit="times"),
    )


def _uniforms(results: Results) -> list[str]:
    return [method for method in results.values("method") if method.startswith("UNIFORM")]


def claims_of_right_values(results: Results) -> tuple[Claim, ...]:
    """The claims of section 6.2.4 if the right rows have the aggregated attribute."""
    return (
        judge(
            "cluster samples' error is much below UNIFORM's (by a third)",
            {
                f"{cluster} and {uniform}, cv {cv:g}": MeanInterval.of(
                    -results.percent_ahead(
                        "error", {"method": cluster, "cv": cv}, {"method": uniform, "cv": cv}, 2 / 3
                    )
                )
                for cv in sorted(results.values("cv"))
                for cluster in (_EQ, _PPS)
                for uniform in _uniforms(results)
            },
        ),
    )


def claims_of_wrong_models(results: Results) -> tuple[Claim, ...]:
    """The claims of section 4.3 about a wrong n(s)."""
    uniforms = _uniforms(results)
    printed = [method for method in uniforms if method.endswith("printed")]
    others = [method for method in results.values("method") if method not in printed]
    factors = results.values("factor")
    least, most = min(factors), max(factors)
    heavier = {}
    for method in uniforms:
        first, second = results.paired(
            "memory", {"method": method, "factor": most}, {"method": method, "factor": 1.0}
        )
        heavier[method] = MeanInterval.of(100 * (first - second) / second - 2)
    return (
        judge(
            f"n(s) times {least:g}: UNIFORM as printed misses results (more than 2 %)",
            {m: MeanInterval.of(-2 - results.runs("bias", method=m, factor=least)) for m in printed},
        ),
        judge(f"n(s) times {most:g}: UNIFORM takes more memory (more than 2 %)", heavier),
        judge(
            "cluster samples, and UNIFORM as it is here, are unbiased for any n(s) (0 is within the interval)",
            {
                f"{m}, times {factor:g}": _zero_margin(results.runs("bias", method=m, factor=factor))
                for m in others
                for factor in factors
            },
        ),
    )


def _zero_margin(bias: Array) -> MeanInterval:
    """How far the interval of a bias extends beyond 0 on its nearer side: one number for all runs."""
    interval = MeanInterval.of(bias)
    return MeanInterval.exactly(min(interval.high, -interval.low))
