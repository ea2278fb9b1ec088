"""What section 6 says of its figures, held against what was measured."""

from __future__ import annotations

import itertools
from typing import Final

from tidegate.experiments.claims import Claim, Interval, judged
from tidegate.experiments.results import Results
from tidegate.types import Array

CLOSE: Final = 2.0
"""Points of recall within which two are taken to agree."""
_AGE, _RECENT, _EXPIRY = "age", "fifo", "until_expiry"


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
