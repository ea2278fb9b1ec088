"""What section 5 says of its figures, held against what was measured."""

from __future__ import annotations

import itertools
from typing import Final

import numpy as np

from tidegate.experiments.claims import Claim, Interval, judged
from tidegate.experiments.reservoir_joins.measured import PRINTED, SIZE
from tidegate.experiments.results import Results
from tidegate.types import Array

FORMS: Final = {"by ranks": "", "as printed": PRINTED}
FULL: Final = 0.95
"""A reservoir that holds so much of its size is taken to be full."""


def claims_of_confidence(results: Results) -> tuple[Claim, ...]:
    """What the paper says of Figures 2 and 3."""
    counts = results.values("m")
    curve = [float(results.runs("confidence", m=m)[0]) for m in counts]
    rises = {
        f"{a} to {b}": Interval.exactly(curve[i + 1] - curve[i])
        for i, (a, b) in enumerate(itertools.pairwise(counts))
    }
    return (
        judged("uniformity confidence rises with m", rises, unit="points"),
        judged(
            "and never reaches 100 %", {f"m {counts[-1]}": Interval.exactly(100 - curve[-1])}, unit="points"
        ),
    )


def _last(results: Results) -> float:
    return float(max(results.values("time")))


def _used(results: Results) -> float:
    """The time of use: half of all."""
    half = _last(results) / 2
    return float(min(results.values("time"), key=lambda time: abs(time - half)))


def claims_of_sizes(results: Results) -> tuple[Claim, ...]:
    """What the paper says of Figure 5."""
    last, used = _last(results), _used(results)
    ahead, within, full = {}, {}, {}
    for form, suffix in FORMS.items():
        rjs, prjs = f"RJS{suffix}", f"PRJS{suffix}"
        first, second = results.paired(
            "held", {"algorithm": prjs, "time": last}, {"algorithm": rjs, "time": last}
        )
        ahead[form] = Interval.of(first - second)
        within[form] = Interval.of(SIZE + 0.5 - results.runs("held", algorithm=rjs, time=last))
        there = {"algorithm": prjs, "time": used}
        full[form] = Interval.of(100 * (results.runs("held", **there) / results.runs("size", **there) - FULL))
    return (
        judged("PRJS ends with a larger sample than RJS", ahead, unit="results"),
        judged("RJS's sample never exceeds the initial size", within, unit="results"),
        judged("PRJS's reservoir is full when it is used (at least 95 % of its size)", full, unit="points"),
    )


def claims_of_one_run(results: Results) -> tuple[Claim, ...]:
    """What the paper says of Figure 6."""
    last = _last(results)
    fell, back = {}, {}
    for form, suffix in FORMS.items():
        there = {"algorithm": f"PRJS{suffix}", "time": last}
        fell[form] = Interval.of(results.runs("fell by", **there))
        back[form] = Interval.of(results.runs("held", **there) - SIZE)
    return (
        judged("PRJS's sample shrinks when the reservoir grows", fell, unit="results"),
        judged("and is soon larger than before", back, unit="results"),
    )


def claims_of_results(results: Results) -> tuple[Claim, ...]:
    """What the paper says of Figure 7."""
    spans = results.values("use_at")
    rises, flattens = {}, {}
    for form, suffix in FORMS.items():
        runs = [results.runs("size", algorithm=f"PRJS{suffix}", use_at=span) for span in spans]
        for (a, some), (b, more) in itertools.pairwise(zip(spans, runs, strict=True)):
            rises[f"{form}, {a} to {b}"] = Interval.of(_common(more, some))
        if len(runs) > 2:  # noqa: PLR2004 - two rises to compare
            first = _common(runs[1], runs[0]) / (spans[1] - spans[0])
            final = _common(runs[-1], runs[-2]) / (spans[-1] - spans[-2])
            flattens[form] = Interval.of(_common(first, final))
    claims = [judged("the more results are to come, the more the reservoir grows", rises, unit="results")]
    if flattens:
        claims.append(
            judged("which flattens out (growth a unit of time, first less last)", flattens, unit="results")
        )
    return tuple(claims)


def _common(first: Array, second: Array) -> Array:
    count = min(len(first), len(second))
    difference: Array = first[:count] - second[:count]
    return difference


def _over(results: Results, number: str, algorithm: str, low: float, high: float) -> Array:
    """The mean of a number over some time, run by run."""
    rows = [row for row in results.where(algorithm=algorithm).rows if low < row["time"] <= high]
    seeds = sorted({row["seed"] for row in rows})
    return np.array([np.mean([row[number] for row in rows if row["seed"] == seed]) for seed in seeds])


def _grown(results: Results, algorithm: str) -> float:
    """When the last run's reservoir has grown; its end if it has not."""
    return max(
        (float(row["grew"]) for row in results.where(algorithm=algorithm).rows if "grew" in row),
        default=_last(results),
    )


def _moments(results: Results, algorithm: str) -> tuple[float, float]:
    """The first time noted after all reservoirs have grown, and the one of use."""
    after = [time for time in results.values("time") if time > _grown(results, algorithm)]
    return (min(after) if after else _last(results)), _used(results)


def claims_of_uniformity(results: Results) -> tuple[Claim, ...]:
    """What the paper says of Figure 8; `chi-square` is 1 for a uniform sample, higher for a worse one."""
    claims = []
    for number, told in (
        ("chi-square", "by keys"),
        ("of its size", "by keys, of a reservoir taken as full"),
        ("by time", "by when results came"),
    ):
        worse, recovers = {}, {}
        for form, suffix in FORMS.items():
            rjs, prjs = f"RJS{suffix}", f"PRJS{suffix}"
            begun, used = _moments(results, prjs)
            worse[form] = Interval.of(
                _common(
                    _over(results, number, prjs, begun - 1, np.inf),
                    _over(results, number, rjs, begun - 1, np.inf),
                )
            )
            recovers[form] = Interval.of(
                _common(
                    _over(results, number, prjs, begun - 1, begun),
                    _over(results, number, prjs, used - 1, used),
                )
            )
        claims += [
            judged(f"RJS is more uniform than PRJS, {told}", worse, unit="chi-square"),
            judged(f"PRJS recovers from its growth until its use, {told}", recovers, unit="chi-square"),
        ]
    return tuple(claims)


def claims_of_order(results: Results) -> tuple[Claim, ...]:
    """What the paper says of Figure 9."""
    fanouts = sorted(results.values("fanout"))
    claims = []
    for name, text in (
        ("PRJS", "PRJS is less uniform, the more sorted streams are"),
        ("RJS", "RJS is not sensitive to order (within 0.5)"),
    ):
        margins = {}
        for form, suffix in FORMS.items():
            means = [
                _over(results.where(fanout=fanout), "chi-square", f"{name}{suffix}", 0, np.inf)
                for fanout in fanouts
            ]
            for (a, more), (b, less) in itertools.pairwise(zip(fanouts, means, strict=True)):
                apart = _common(more, less)
                margins[f"{form}, fanout {a} and {b}"] = Interval.of(
                    apart if name == "PRJS" else 0.5 - abs(apart)
                )
        claims.append(judged(text, margins, unit="chi-square"))
    return tuple(claims)


def claims_of_averages(results: Results) -> tuple[Claim, ...]:
    """What the paper says of Figure 10."""
    used = _used(results)
    before: dict[str, Interval] = {}
    after: dict[str, Interval] = {}
    for form, suffix in FORMS.items():
        rjs, prjs = f"RJS{suffix}", f"PRJS{suffix}"
        begun, _ = _moments(results, prjs)
        for margins, time, sign in ((before, begun, 1), (after, used, -1)):
            first, second = results.paired(
                "off", {"algorithm": prjs, "time": time}, {"algorithm": rjs, "time": time}
            )
            margins[f"{form}, at {time:g}"] = Interval.of(sign * (first - second))
    return (
        judged("soon after it grew, PRJS's average is further off than RJS's", before, unit="of 1000"),
        judged("when it is used, it is closer", after, unit="of 1000"),
    )
