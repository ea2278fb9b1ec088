"""What section 6 says of its figures, held against what was measured."""

from __future__ import annotations

import itertools
from typing import Final

import numpy as np

from tidegate.experiments.claims import Claim, Interval, judged
from tidegate.experiments.results import Results
from tidegate.types import Array

CLOSE: Final = 2.0
"""Points of recall within which two are taken to agree."""
_AGE, _RECENT, _EXPIRY = "age", "fifo", "until_expiry"
_EQ, _PPS = "EQ-CLUSTER", "PPS-CLUSTER"


def _points(results: Results, one: str, other: str, **place: object) -> Interval:
    first, second = results.paired("recall", {"policy": one, **place}, {"policy": other, **place})
    return Interval.of(100 * (first - second))


def claims_of_curve(results: Results) -> tuple[Claim, ...]:
    """What the paper says of Figure 5: the trace is made to meet it."""
    rows = {row["seed"]: row for row in results.rows}.values()
    near = [1.0 - abs(float(row["peak"]) - 63.0) for row in rows]
    best = [1.0 - abs(float(row["best age"]) - 68.8) for row in rows]
    return (
        judged("most results come at an age of about 63 s (within 1)", {"peak": Interval.of(near)}, unit="s"),
        judged("matches come fastest up to 68.8 s (within 1)", {"best age": Interval.of(best)}, unit="s"),
    )


def claims_of_wan(results: Results) -> tuple[Claim, ...]:
    """What the paper says of Figure 6."""
    percents = results.values("percent")
    part = [percent for percent in percents if percent < 55]  # noqa: PLR2004 - below k_opt of the window
    whole = [percent for percent in percents if percent >= 60]  # noqa: PLR2004 - above it
    apart = {
        f"{percent} %": Interval.of(CLOSE - 100 * abs(_gap(results, policy=_AGE, percent=percent)))
        for percent in percents
    }
    claims = [
        judged(
            "AGE beats RECENT and UNTIL-EXPIRY while memory is short",
            {
                f"{percent} %, {rival}": _points(results, _AGE, rival, percent=percent)
                for percent in part
                for rival in (_RECENT, _EXPIRY)
            },
            unit="points",
        ),
        judged(
            "RECENT produces nothing up to 40 % (less than 1 % recall)",
            {
                f"{percent} %": Interval.of(
                    1.0 - 100 * results.runs("recall", policy=_RECENT, percent=percent)
                )
                for percent in percents
                if percent <= 40  # noqa: PLR2004 - as the paper says
            },
            unit="points",
        ),
        judged("AGE is within 2 points of what theory predicts", apart, unit="points"),
    ]
    if whole:
        same = {
            f"{percent} %": Interval.of(
                CLOSE - abs(100 * _difference(results, _AGE, _RECENT, percent=percent))
            )
            for percent in whole
        }
        claims.append(judged("from k_opt on, AGE is RECENT (within 2 points)", same, unit="points"))
    return tuple(claims)


def _gap(results: Results, **place: object) -> Array:
    gap: Array = results.runs("recall", **place) - results.runs("predicted", **place)
    return gap


def _difference(results: Results, one: str, other: str, **place: object) -> Array:
    first, second = results.paired("recall", {"policy": one, **place}, {"policy": other, **place})
    difference: Array = first - second
    return difference


def claims_of_shapes(results: Results) -> tuple[Claim, ...]:
    """What the paper says of Figure 7."""
    percents, shapes = results.values("percent"), results.values("shape")
    # The bell's matches come fastest up to some two thirds of the window.
    below = [percent for percent in percents if percent <= 60]  # noqa: PLR2004 - as said
    claims = []
    if "INC" in shapes:
        ahead = {f"{p} %": _points(results, _AGE, _RECENT, shape="INC", percent=p) for p in percents}
        claims.append(judged("INC: AGE beats RECENT", ahead, unit="points"))
    if "DEC" in shapes:
        same = {
            f"{p} %": Interval.of(
                CLOSE - abs(100 * _difference(results, _AGE, _RECENT, shape="DEC", percent=p))
            )
            for p in percents
        }
        claims.append(judged("DEC: AGE is RECENT (within 2 points)", same, unit="points"))
    if "BELL" in shapes and below:
        ahead = {f"{p} %": _points(results, _AGE, _RECENT, shape="BELL", percent=p) for p in below}
        claims.append(judged("BELL: AGE beats RECENT while memory is short", ahead, unit="points"))
    apart = {
        f"{shape}, {percent} %": Interval.of(
            CLOSE - abs(100 * _gap(results, policy=_AGE, shape=shape, percent=percent))
        )
        for shape in shapes
        for percent in percents
    }
    claims.append(judged("AGE is within 2 points of what theory predicts", apart, unit="points"))
    return tuple(claims)


def claims_of_frequencies(results: Results) -> tuple[Claim, ...]:
    """Section 3.3: the formula, with the key that is held in part."""
    given = results.where(policy="prob")
    apart = {
        f"{one}, Z={skew:g}, {percent} %": Interval.of(
            3.0 - abs(100 * _gap(given, correlation=one, skew=skew, percent=percent))
        )
        for one in given.values("correlation")
        for skew in given.values("skew")
        for percent in given.values("percent")
    }
    return (
        judged("PROB is within 3 points of section 3.3, if a key held in part counts", apart, unit="points"),
    )


def claims_of_allocation(results: Results, parameter: str) -> tuple[Claim, ...]:
    """What the paper says of Figures 10 and 11."""
    values = results.values(parameter)
    least = {
        (value, scheme): results.runs("least recall", **{parameter: value, "scheme": scheme})
        for value in values
        for scheme in results.values("scheme")
    }
    ahead = {}
    for value in values:
        first, second = results.paired(
            "least recall", {parameter: value, "scheme": "alloc"}, {parameter: value, "scheme": "prop"}
        )
        # Where both give the same, they are as good.
        ahead[f"{parameter} {value:g}"] = Interval.of(100 * (first - second) + 0.5)
    claims = [
        judged("ALLOC's least recall is no lower than PROP's (within half a point)", ahead, unit="points")
    ]
    first, last = values[0], values[-1]
    if parameter == "skew":
        claims += [
            judged(
                "with more skew PROP's least recall falls",
                {
                    f"{more:g} below {less:g}": Interval.of(100 * (least[less, "prop"] - least[more, "prop"]))
                    for less, more in itertools.pairwise(values)
                },
                unit="points",
            ),
            judged(
                "with more skew ALLOC's least recall stays (within 10 points)",
                {
                    f"{value:g} against {first:g}": Interval.of(
                        10 - abs(100 * (least[value, "alloc"] - least[first, "alloc"]))
                    )
                    for value in values[1:]
                },
                unit="points",
            ),
        ]
    else:
        claims += [
            judged(
                "with a higher exponent ALLOC's least recall rises",
                {
                    f"{more:g} above {less:g}": Interval.of(
                        100 * (least[more, "alloc"] - least[less, "alloc"])
                    )
                    for less, more in itertools.pairwise(values)
                },
                unit="points",
            ),
            judged(
                "and PROP's stays (within 2 points)",
                {
                    f"{last:g} against {first:g}": Interval.of(
                        CLOSE - abs(100 * (least[last, "prop"] - least[first, "prop"]))
                    )
                },
                unit="points",
            ),
        ]
    return tuple(claims)


def claims_of_learning(results: Results) -> tuple[Claim, ...]:
    """Section 2.3: a curve that stays is learned within some windows."""
    last = max(results.values("window"))
    steady = [curve for curve in results.values("curve") if " to " not in curve]
    near = {
        f"{curve}, {how}": Interval.of(
            10 - 100 * results.runs("off", curve=curve, monitoring=how, window=last)
        )
        for curve in steady
        for how in results.values("monitoring")
    }
    return (judged("a curve that is learned online is within 10 % of the true one in the end", near),)


def _lower(results: Results, one: str, other: str, number: str = "error", **place: object) -> Interval:
    """By how many percent of the mean of both one method's error is below another's, run by run."""
    first, second = results.paired(number, {"method": one, **place}, {"method": other, **place})
    return Interval.of(200 * (second - first) / np.maximum(first + second, 1e-12))


def claims_of_memory(results: Results) -> tuple[Claim, ...]:
    """What the paper says of Figure 8."""
    percents = results.values("percent")
    uniforms = [method for method in results.values("method") if method.startswith("UNIFORM")]
    less, more = percents[0], percents[1:]
    whole = percents[-1]
    return (
        judged(
            "PPS-CLUSTER's error is below EQ-CLUSTER's",
            {f"{p} %": _lower(results, _PPS, _EQ, percent=p) for p in percents},
        ),
        judged(
            f"UNIFORM's is below PPS-CLUSTER's at {less} %",
            {method: _lower(results, method, _PPS, percent=less) for method in uniforms},
        ),
        judged(
            "PPS-CLUSTER's is below UNIFORM's with more memory",
            {f"{m}, {p} %": _lower(results, _PPS, m, percent=p) for m in uniforms for p in more},
        ),
        judged(
            f"UNIFORM's error is not 0 at {whole} % (above 1 % of mu)",
            {
                m: Interval.of(100 * results.runs("of the mean", method=m, percent=whole) - 1)
                for m in uniforms
            },
            unit="points",
        ),
    )


def claims_of_variance(results: Results) -> tuple[Claim, ...]:
    """What the paper says of Figure 9, where the aggregated attribute is the left's."""
    cvs = results.values("cv")
    apart, ratio = {}, {}
    for cluster in (_EQ, _PPS):
        gaps, ratios = [], []
        for cv in (cvs[0], cvs[-1]):
            of, uniform = results.paired(
                "of the mean", {"method": cluster, "cv": cv}, {"method": "UNIFORM", "cv": cv}
            )
            gaps.append(of - uniform)
            ratios.append(of / uniform)
        apart[cluster] = Interval.of(100 * (gaps[1] - gaps[0]))
        ratio[cluster] = Interval.of(ratios[1] - ratios[0] - 0.05)
    return (
        judged("cluster samples fall behind UNIFORM as variance grows, in points", apart, unit="points"),
        judged("and in proportion (by 0.05)", ratio, unit="times"),
    )


def claims_of_right_values(results: Results) -> tuple[Claim, ...]:
    """What section 6.2.4 says where the aggregated attribute is the right's."""
    return (
        judged(
            "cluster samples' error is much below UNIFORM's (by a third)",
            {
                f"{cluster}, cv {cv:g}": Interval.of(_third(results, cluster, cv))
                for cluster in (_EQ, _PPS)
                for cv in results.values("cv")
            },
        ),
    )


def _third(results: Results, cluster: str, cv: float) -> Array:
    """By how many percent of UNIFORM's error a cluster sample's is below two thirds of it."""
    ahead: Array = -results.ahead(
        "of the mean", {"method": cluster, "cv": cv}, {"method": "UNIFORM", "cv": cv}, 2 / 3
    )
    return ahead


def claims_of_wrong_models(results: Results) -> tuple[Claim, ...]:
    """What section 4.3 says of a wrong n(s)."""
    methods = results.values("method")
    uniforms = [method for method in methods if method.startswith("UNIFORM")]
    clusters = [method for method in methods if method not in uniforms]
    factors = results.values("factor")
    least, most = min(factors), max(factors)
    heavier = {}
    for method in uniforms:
        first, second = results.paired(
            "memory", {"method": method, "factor": most}, {"method": method, "factor": 1.0}
        )
        heavier[method] = Interval.of(100 * (first - second) / second - 2)
    return (
        judged(
            f"n(s) times {least:g}: UNIFORM misses results (more than 2 %)",
            {m: Interval.of(-2 - results.runs("bias", method=m, factor=least)) for m in uniforms},
        ),
        judged(f"n(s) times {most:g}: UNIFORM takes more memory (more than 2 %)", heavier),
        judged(
            "cluster samples are unbiased whatever n(s) (0 is within the interval)",
            {
                f"{m}, times {factor:g}": _holding(results.runs("bias", method=m, factor=factor))
                for m in clusters
                for factor in factors
            },
        ),
    )


def _holding(bias: Array) -> Interval:
    """By how much the interval of a bias reaches beyond 0 on its nearer side: one number of all runs."""
    over = Interval.of(bias)
    return Interval.exactly(min(over.high, -over.low))
