"""The claims of section 6 about its figures, judged by our measurements."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from typing import Final

from tidegate.experiments.claims import Claim, MeanInterval, judge, within
from tidegate.experiments.results import Results
from tidegate.types import Array

CLOSE: Final = 2.0
"""Two recalls agree within this many points."""
SKEWED: Final = 1.0
"""From this skew on, joins differ. Without skew all keys and all joins are the same."""
_AGE, _RECENT, _EXPIRY = "age", "fifo", "until_expiry"


def _points(results: Results, one: str, other: str, **place: object) -> MeanInterval:
    return MeanInterval.of(_difference(results, one, other, **place))


def _difference(results: Results, one: str, other: str, **place: object) -> Array:
    """How many points of recall one policy is ahead of another, for each run."""
    first, second = results.paired("recall", {"policy": one, **place}, {"policy": other, **place})
    difference: Array = 100 * (first - second)
    return difference


def _gap(results: Results, **place: object) -> Array:
    """How many points a recall is above the predicted one, for each run."""
    gap: Array = 100 * (results.runs("recall", **place) - results.runs("predicted", **place))
    return gap


def claims_of_curve(results: Results) -> tuple[Claim, ...]:
    """The claims of the paper about Figure 5. The trace was generated to meet them."""
    rows = {row["seed"]: row for row in results.rows}.values()
    near = [1.0 - abs(float(row["peak"]) - 63.0) for row in rows]
    best = [1.0 - abs(float(row["best age"]) - 68.8) for row in rows]
    return (
        judge(
            "most results come at an age of about 63 s (within 1)", {"peak": MeanInterval.of(near)}, unit="s"
        ),
        judge("matches come fastest up to 68.8 s (within 1)", {"best age": MeanInterval.of(best)}, unit="s"),
    )


def claims_of_wan(results: Results) -> tuple[Claim, ...]:
    """The claims of the paper about Figure 6."""
    percents = sorted(results.values("percent"))
    part = [percent for percent in percents if percent < 55]  # noqa: PLR2004 - below k_opt of the window
    whole = [percent for percent in percents if percent >= 60]  # noqa: PLR2004 - above it
    claims = [
        judge(
            "AGE beats RECENT until k_opt, and UNTIL-EXPIRY",
            {
                f"{percent} %, {rival}": _points(results, _AGE, rival, percent=percent)
                for rival, where in ((_RECENT, part), (_EXPIRY, percents))
                for percent in where
            },
            unit="points",
        ),
        judge(
            "RECENT produces nothing up to 40 % (less than 1 % recall)",
            {
                f"{percent} %": MeanInterval.of(
                    1.0 - 100 * results.runs("recall", policy=_RECENT, percent=percent)
                )
                for percent in percents
                if percent <= 40  # noqa: PLR2004 - as in the paper
            },
            unit="points",
        ),
        judge(
            "AGE is within 2 points of what theory predicts",
            {f"{p} %": within(CLOSE, _gap(results, policy=_AGE, percent=p)) for p in percents},
            unit="points",
        ),
    ]
    if whole:
        same = {f"{p} %": within(CLOSE, _difference(results, _AGE, _RECENT, percent=p)) for p in whole}
        claims.append(judge("from k_opt on, AGE is RECENT (within 2 points)", same, unit="points"))
    return tuple(claims)


def claims_of_shapes(results: Results) -> tuple[Claim, ...]:
    """The claims of the paper about Figure 7."""
    percents, shapes = sorted(results.values("percent")), results.values("shape")
    # The bell's matches come fastest up to an age of 65 % of the window.
    below = [percent for percent in percents if percent < 65]  # noqa: PLR2004 - see above
    above = [percent for percent in percents if percent not in below]

    def ahead(shape: str, where: list[int]) -> dict[str, MeanInterval]:
        return {f"{p} %": _points(results, _AGE, _RECENT, shape=shape, percent=p) for p in where}

    def same(shape: str, where: list[int]) -> dict[str, MeanInterval]:
        return {
            f"{p} %": within(CLOSE, _difference(results, _AGE, _RECENT, shape=shape, percent=p))
            for p in where
        }

    def far(percent: int) -> MeanInterval:
        first, second = results.paired(
            "recall",
            {"policy": _AGE, "shape": "DEC", "percent": percent},
            {"policy": _AGE, "shape": "INC", "percent": percent},
        )
        return MeanInterval.of(100 * (first - second) - 10)

    claims = []
    if "INC" in shapes:
        claims.append(judge("INC: AGE beats RECENT", ahead("INC", percents), unit="points"))
    if "DEC" in shapes:
        claims.append(judge("DEC: AGE is RECENT (within 2 points)", same("DEC", percents), unit="points"))
    if "BELL" in shapes and below:
        claims.append(judge("BELL: AGE beats RECENT until k_opt", ahead("BELL", below), unit="points"))
    if "BELL" in shapes and above:
        text = "BELL: from k_opt on, AGE is RECENT (within 2 points)"
        claims.append(judge(text, same("BELL", above), unit="points"))
    if {"INC", "DEC"} <= set(shapes):
        text = "recall differs greatly by shape (DEC's is more than 10 points above INC's)"
        claims.append(judge(text, {f"{p} %": far(p) for p in percents}, required="most", unit="points"))
    margins = {
        f"{shape}, {percent} %": within(CLOSE, _gap(results, policy=_AGE, shape=shape, percent=percent))
        for shape in shapes
        for percent in percents
    }
    claims.append(judge("AGE is within 2 points of what theory predicts", margins, unit="points"))
    return tuple(claims)


def claims_of_frequencies(results: Results) -> tuple[Claim, ...]:
    """Section 3.3: the formula, including the key that fits in part."""
    prob = results.where(policy="prob")
    margins = {
        f"{one}, Z={skew:g}, {percent} %": within(
            3.0, _gap(prob, correlation=one, skew=skew, percent=percent)
        )
        for one in prob.values("correlation")
        for skew in prob.values("skew")
        for percent in prob.values("percent")
    }
    return (
        judge("PROB is within 3 points of section 3.3, if a key held in part counts", margins, unit="points"),
    )


def _least(results: Results, one: Mapping[str, object], other: Mapping[str, object]) -> Array:
    """How many points one lowest recall is above another, for each run."""
    first, second = results.paired("least recall", one, other)
    least: Array = 100 * (first - second)
    return least


def _gains(results: Results, parameter: str, values: list[float]) -> dict[str, MeanInterval]:
    """How many points ALLOC's lowest recall is above PROP's."""
    return {
        f"{parameter} {value:g}": MeanInterval.of(
            _least(results, {parameter: value, "scheme": "alloc"}, {parameter: value, "scheme": "prop"})
        )
        for value in values
    }


def _memory_difference(
    results: Results, parameter: str, values: list[float], hard: str, easy: str
) -> dict[str, MeanInterval]:
    """How much more memory ALLOC gives to the hard join than to the easy one."""
    alloc = results.where(scheme="alloc")
    return {
        f"{parameter} {value:g}": MeanInterval.of(
            alloc.runs(f"memory of {hard}", **{parameter: value})
            - alloc.runs(f"memory of {easy}", **{parameter: value})
        )
        for value in values
    }


def claims_of_skew(results: Results) -> tuple[Claim, ...]:
    """The claims of the paper about Figure 10, for skews where joins differ and for all measured skews."""
    values = sorted(results.values("skew"))
    skewed = [skew for skew in values if skew >= SKEWED]

    def falls(skews: list[float]) -> dict[str, MeanInterval]:
        return {
            f"{more:g} below {less:g}": MeanInterval.of(
                _least(results, {"skew": less, "scheme": "prop"}, {"skew": more, "scheme": "prop"})
            )
            for less, more in itertools.pairwise(skews)
        }

    def stays(skews: list[float]) -> dict[str, MeanInterval]:
        first, *others = skews
        return {
            f"{skew:g} against {first:g}": within(
                10.0, _least(results, {"skew": skew, "scheme": "alloc"}, {"skew": first, "scheme": "alloc"})
            )
            for skew in others
        }

    claims = []
    if len(skewed) > 1:
        since = f"from Z = {skewed[0]:g} on"
        claims = [
            judge(
                f"{since}, ALLOC's least recall is above PROP's",
                _gains(results, "skew", skewed),
                unit="points",
            ),
            judge(f"{since}, with more skew PROP's falls", falls(skewed), unit="points"),
            judge(f"{since}, ALLOC's stays (within 10 points)", stays(skewed), unit="points"),
            judge(
                f"{since}, ALLOC gives less memory to IC than to DC",
                _memory_difference(results, "skew", skewed, "DC", "IC"),
            ),
        ]
    if values != skewed:
        claims += [
            judge(f"from Z = {values[0]:g} on, with more skew PROP's falls", falls(values), unit="points"),
            judge(
                f"from Z = {values[0]:g} on, ALLOC's stays (within 10 points)", stays(values), unit="points"
            ),
        ]
    return tuple(claims)


def claims_of_power(results: Results) -> tuple[Claim, ...]:
    """The claims of the paper about Figure 11."""
    values = sorted(results.values("power"))

    def difference(one: float, other: float, scheme: str) -> Array:
        return _least(results, {"power": one, "scheme": scheme}, {"power": other, "scheme": scheme})

    return (
        judge("ALLOC's least recall is above PROP's", _gains(results, "power", values), unit="points"),
        judge(
            "with a higher exponent ALLOC's least recall rises",
            {
                f"{more:g} above {less:g}": MeanInterval.of(difference(more, less, "alloc"))
                for less, more in itertools.pairwise(values)
            },
            unit="points",
        ),
        judge(
            "and PROP's stays (within 2 points)",
            {
                f"{value:g} against {values[0]:g}": within(CLOSE, difference(value, values[0], "prop"))
                for value in values[1:]
            },
            unit="points",
        ),
        judge(
            "ALLOC gives less memory to DEC than to INC",
            _memory_difference(results, "power", values, "INC", "DEC"),
        ),
    )


def claims_of_more_joins(results: Results) -> tuple[Claim, ...]:
    """The claims of the paper about more than the joins of Figure 10."""

    def gains(joins: str, skew: float) -> dict[int, float]:
        alloc, prop = (
            results.by_seed("least recall", joins=joins, skew=skew, scheme=scheme)
            for scheme in ("alloc", "prop")
        )
        return {seed: 100 * (alloc[seed] - prop[seed]) for seed in alloc.keys() & prop.keys()}

    def more(joins: str, than: str) -> dict[str, MeanInterval]:
        margins = {}
        for skew in sorted(results.values("skew")):
            first, second = gains(joins, skew), gains(than, skew)
            margins[f"Z = {skew:g}"] = MeanInterval.of(
                [first[seed] - second[seed] for seed in sorted(first.keys() & second.keys())]
            )
        return margins

    return (
        judge(
            "with one more hard join (DC) ALLOC gains less over PROP",
            more("DC+IC", "DC+IC+DC"),
            unit="points",
        ),
        judge("with one more easy join (IC) it gains more", more("DC+IC+IC", "DC+IC"), unit="points"),
    )


def claims_of_learning(results: Results) -> tuple[Claim, ...]:
    """Section 2.3: a constant curve is learned within some windows."""
    last = max(results.values("window"))
    steady = [curve for curve in results.values("curve") if " to " not in curve]
    near = {
        f"{curve}, {how}": MeanInterval.of(
            10 - 100 * results.runs("off", curve=curve, monitoring=how, window=last)
        )
        for curve in steady
        for how in results.values("monitoring")
    }
    return (judge("a curve that is learned online is within 10 % of the true one in the end", near),)
