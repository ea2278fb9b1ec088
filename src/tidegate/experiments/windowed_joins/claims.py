"""What section 6 says of its figures, held against what was measured."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from typing import Final

import numpy as np

from tidegate.experiments.claims import Claim, Interval, judged
from tidegate.experiments.results import Results
from tidegate.types import Array

CLOSE: Final = 2.0
"""Points of recall within which two are taken to agree."""
SKEWED: Final = 1.0
"""Without skew all keys are alike, and so are joins: from this one on they differ."""
_AGE, _RECENT, _EXPIRY = "age", "fifo", "until_expiry"
_EQ, _PPS = "EQ-CLUSTER", "PPS-CLUSTER"


def _points(results: Results, one: str, other: str, **place: object) -> Interval:
    return Interval.of(_difference(results, one, other, **place))


def _difference(results: Results, one: str, other: str, **place: object) -> Array:
    """By how many points of recall one policy is ahead of another, run by run."""
    first, second = results.paired("recall", {"policy": one, **place}, {"policy": other, **place})
    difference: Array = 100 * (first - second)
    return difference


def _gap(results: Results, **place: object) -> Array:
    """By how many points a recall is above the predicted one, run by run."""
    gap: Array = 100 * (results.runs("recall", **place) - results.runs("predicted", **place))
    return gap


def _within(most: float, apart: Array) -> Interval:
    """How far below `most` the mean of differences is, whatever its sign."""
    mean, low, high = Interval.of(apart)
    return Interval(most - abs(mean), most - max(high, -low), most - max(low, -high, 0.0))


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
    percents = sorted(results.values("percent"))
    part = [percent for percent in percents if percent < 55]  # noqa: PLR2004 - below k_opt of the window
    whole = [percent for percent in percents if percent >= 60]  # noqa: PLR2004 - above it
    claims = [
        judged(
            "AGE beats RECENT until k_opt, and UNTIL-EXPIRY",
            {
                f"{percent} %, {rival}": _points(results, _AGE, rival, percent=percent)
                for rival, where in ((_RECENT, part), (_EXPIRY, percents))
                for percent in where
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
        judged(
            "AGE is within 2 points of what theory predicts",
            {f"{p} %": _within(CLOSE, _gap(results, policy=_AGE, percent=p)) for p in percents},
            unit="points",
        ),
    ]
    if whole:
        same = {f"{p} %": _within(CLOSE, _difference(results, _AGE, _RECENT, percent=p)) for p in whole}
        claims.append(judged("from k_opt on, AGE is RECENT (within 2 points)", same, unit="points"))
    return tuple(claims)


def claims_of_shapes(results: Results) -> tuple[Claim, ...]:
    """What the paper says of Figure 7."""
    percents, shapes = sorted(results.values("percent")), results.values("shape")
    # The bell's matches come fastest up to an age of 65 % of the window.
    below = [percent for percent in percents if percent < 65]  # noqa: PLR2004 - as said
    above = [percent for percent in percents if percent not in below]

    def ahead(shape: str, where: list[int]) -> dict[str, Interval]:
        return {f"{p} %": _points(results, _AGE, _RECENT, shape=shape, percent=p) for p in where}

    def same(shape: str, where: list[int]) -> dict[str, Interval]:
        return {
            f"{p} %": _within(CLOSE, _difference(results, _AGE, _RECENT, shape=shape, percent=p))
            for p in where
        }

    def far(percent: int) -> Interval:
        first, second = results.paired(
            "recall",
            {"policy": _AGE, "shape": "DEC", "percent": percent},
            {"policy": _AGE, "shape": "INC", "percent": percent},
        )
        return Interval.of(100 * (first - second) - 10)

    claims = []
    if "INC" in shapes:
        claims.append(judged("INC: AGE beats RECENT", ahead("INC", percents), unit="points"))
    if "DEC" in shapes:
        claims.append(judged("DEC: AGE is RECENT (within 2 points)", same("DEC", percents), unit="points"))
    if "BELL" in shapes and below:
        claims.append(judged("BELL: AGE beats RECENT until k_opt", ahead("BELL", below), unit="points"))
    if "BELL" in shapes and above:
        text = "BELL: from k_opt on, AGE is RECENT (within 2 points)"
        claims.append(judged(text, same("BELL", above), unit="points"))
    if {"INC", "DEC"} <= set(shapes):
        text = "recall differs greatly by shape (DEC's is more than 10 points above INC's)"
        claims.append(judged(text, {f"{p} %": far(p) for p in percents}, needed="most", unit="points"))
    apart = {
        f"{shape}, {percent} %": _within(CLOSE, _gap(results, policy=_AGE, shape=shape, percent=percent))
        for shape in shapes
        for percent in percents
    }
    claims.append(judged("AGE is within 2 points of what theory predicts", apart, unit="points"))
    return tuple(claims)


def claims_of_frequencies(results: Results) -> tuple[Claim, ...]:
    """Section 3.3: the formula, with the key that is held in part."""
    given = results.where(policy="prob")
    apart = {
        f"{one}, Z={skew:g}, {percent} %": _within(
            3.0, _gap(given, correlation=one, skew=skew, percent=percent)
        )
        for one in given.values("correlation")
        for skew in given.values("skew")
        for percent in given.values("percent")
    }
    return (
        judged("PROB is within 3 points of section 3.3, if a key held in part counts", apart, unit="points"),
    )


def _least(results: Results, one: Mapping[str, object], other: Mapping[str, object]) -> Array:
    """By how many points one least recall is above another, run by run."""
    first, second = results.paired("least recall", one, other)
    least: Array = 100 * (first - second)
    return least


def _gains(results: Results, parameter: str, values: list[float]) -> dict[str, Interval]:
    """By how many points ALLOC's least recall is above PROP's."""
    return {
        f"{parameter} {value:g}": Interval.of(
            _least(results, {parameter: value, "scheme": "alloc"}, {parameter: value, "scheme": "prop"})
        )
        for value in values
    }


def _spared(
    results: Results, parameter: str, values: list[float], hard: str, easy: str
) -> dict[str, Interval]:
    """How much more memory ALLOC gives to the hard join than to the easy one."""
    given = results.where(scheme="alloc")
    return {
        f"{parameter} {value:g}": Interval.of(
            given.runs(f"memory of {hard}", **{parameter: value})
            - given.runs(f"memory of {easy}", **{parameter: value})
        )
        for value in values
    }


def claims_of_skew(results: Results) -> tuple[Claim, ...]:
    """What the paper says of Figure 10: from a skew on where joins differ, and of all skews that were measured."""
    values = sorted(results.values("skew"))
    skewed = [skew for skew in values if skew >= SKEWED]

    def falls(skews: list[float]) -> dict[str, Interval]:
        return {
            f"{more:g} below {less:g}": Interval.of(
                _least(results, {"skew": less, "scheme": "prop"}, {"skew": more, "scheme": "prop"})
            )
            for less, more in itertools.pairwise(skews)
        }

    def stays(skews: list[float]) -> dict[str, Interval]:
        first, *others = skews
        return {
            f"{skew:g} against {first:g}": _within(
                10.0, _least(results, {"skew": skew, "scheme": "alloc"}, {"skew": first, "scheme": "alloc"})
            )
            for skew in others
        }

    claims = []
    if len(skewed) > 1:
        since = f"from Z = {skewed[0]:g} on"
        claims = [
            judged(
                f"{since}, ALLOC's least recall is above PROP's",
                _gains(results, "skew", skewed),
                unit="points",
            ),
            judged(f"{since}, with more skew PROP's falls", falls(skewed), unit="points"),
            judged(f"{since}, ALLOC's stays (within 10 points)", stays(skewed), unit="points"),
            judged(
                f"{since}, ALLOC gives less memory to IC than to DC",
                _spared(results, "skew", skewed, "DC", "IC"),
            ),
        ]
    if values != skewed:
        claims += [
            judged(f"from Z = {values[0]:g} on, with more skew PROP's falls", falls(values), unit="points"),
            judged(
                f"from Z = {values[0]:g} on, ALLOC's stays (within 10 points)", stays(values), unit="points"
            ),
        ]
    return tuple(claims)


def claims_of_power(results: Results) -> tuple[Claim, ...]:
    """What the paper says of Figure 11."""
    values = sorted(results.values("power"))

    def apart(one: float, other: float, scheme: str) -> Array:
        return _least(results, {"power": one, "scheme": scheme}, {"power": other, "scheme": scheme})

    return (
        judged("ALLOC's least recall is above PROP's", _gains(results, "power", values), unit="points"),
        judged(
            "with a higher exponent ALLOC's least recall rises",
            {
                f"{more:g} above {less:g}": Interval.of(apart(more, less, "alloc"))
                for less, more in itertools.pairwise(values)
            },
            unit="points",
        ),
        judged(
            "and PROP's stays (within 2 points)",
            {
                f"{value:g} against {values[0]:g}": _within(CLOSE, apart(value, values[0], "prop"))
                for value in values[1:]
            },
            unit="points",
        ),
        judged("ALLOC gives less memory to DEC than to INC", _spared(results, "power", values, "INC", "DEC")),
    )


def claims_of_more_joins(results: Results) -> tuple[Claim, ...]:
    """What the paper says of more joins than those of Figure 10."""

    def gains(joins: str, skew: float) -> dict[int, float]:
        alloc, prop = (
            results.by_seed("least recall", joins=joins, skew=skew, scheme=scheme)
            for scheme in ("alloc", "prop")
        )
        return {seed: 100 * (alloc[seed] - prop[seed]) for seed in alloc.keys() & prop.keys()}

    def more(joins: str, than: str) -> dict[str, Interval]:
        margins = {}
        for skew in sorted(results.values("skew")):
            first, second = gains(joins, skew), gains(than, skew)
            margins[f"Z = {skew:g}"] = Interval.of(
                [first[seed] - second[seed] for seed in sorted(first.keys() & second.keys())]
            )
        return margins

    return (
        judged(
            "with one more hard join (DC) ALLOC gains less over PROP",
            more("DC+IC", "DC+IC+DC"),
            unit="points",
        ),
        judged("with one more easy join (IC) it gains more", more("DC+IC+IC", "DC+IC"), unit="points"),
    )


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
    percents = sorted(results.values("percent"))
    uniforms = _uniforms(results)
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
    """What the paper says of Figure 9, where the aggregated attribute is the left's, by its relative error."""
    least, *cvs = sorted(results.values("cv"))
    apart, ratio = {}, {}
    for cluster, uniform in itertools.product((_EQ, _PPS), _uniforms(results)):
        errors = {
            cv: results.paired("error", {"method": cluster, "cv": cv}, {"method": uniform, "cv": cv})
            for cv in (least, *cvs)
        }
        for cv in cvs:
            case = f"{cluster} and {uniform}, cv {least:g} to {cv:g}"
            (first, against), (then, against_then) = errors[least], errors[cv]
            apart[case] = Interval.of(100 * (then - against_then - (first - against)))
            ratio[case] = Interval.of(then / against_then - first / against)
    return (
        judged("cluster samples fall behind UNIFORM as variance grows, in points", apart, unit="points"),
        judged("and in proportion", ratio, unit="times"),
    )


def _uniforms(results: Results) -> list[str]:
    return [method for method in results.values("method") if method.startswith("UNIFORM")]


def claims_of_right_values(results: Results) -> tuple[Claim, ...]:
    """What section 6.2.4 says where the aggregated attribute is the right's."""
    return (
        judged(
            "cluster samples' error is much below UNIFORM's (by a third)",
            {
                f"{cluster} and {uniform}, cv {cv:g}": Interval.of(
                    -results.ahead(
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
    """What section 4.3 says of a wrong n(s)."""
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
        heavier[method] = Interval.of(100 * (first - second) / second - 2)
    return (
        judged(
            f"n(s) times {least:g}: UNIFORM as printed misses results (more than 2 %)",
            {m: Interval.of(-2 - results.runs("bias", method=m, factor=least)) for m in printed},
        ),
        judged(f"n(s) times {most:g}: UNIFORM takes more memory (more than 2 %)", heavier),
        judged(
            "cluster samples, and UNIFORM as it is here, are unbiased whatever n(s) (0 is within the interval)",
            {
                f"{m}, times {factor:g}": _holding(results.runs("bias", method=m, factor=factor))
                for m in others
                for factor in factors
            },
        ),
    )


def _holding(bias: Array) -> Interval:
    """By how much the interval of a bias reaches beyond 0 on its nearer side: one number of all runs."""
    over = Interval.of(bias)
    return Interval.exactly(min(over.high, -over.low))
