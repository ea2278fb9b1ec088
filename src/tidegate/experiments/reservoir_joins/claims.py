"""The claims of section 5 about its figures, judged by our measurements."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from functools import partial
from typing import Final

import numpy as np

from tidegate.experiments.claims import Claim, MeanInterval, judge, within
from tidegate.experiments.reservoir_joins.measures import PRINTED, SIZE
from tidegate.experiments.results import Results
from tidegate.types import Array

FORMS: Final = {"by ranks": "", "as printed": PRINTED}
FULL: Final = 0.95
"""A reservoir that holds this share of its size counts as full."""
STABLE: Final = 0.2
"""Two samples are equally uniform if their chi-squares differ by less than this."""
SHORTLY: Final = 5
"""How many recorded times count as shortly before the use."""


def claims_of_confidence(results: Results) -> tuple[Claim, ...]:
    """The claims of the paper about Figures 2 and 3."""
    counts = sorted(results.values("m"))
    curve = [float(results.runs("confidence", m=m)[0]) for m in counts]
    rises = {
        f"{a} to {b}": more - less
        for (a, less), (b, more) in itertools.pairwise(zip(counts, curve, strict=True))
    }
    steps = list(rises.values())
    return (
        judge(
            "uniformity confidence rises with m",
            {case: MeanInterval.exactly(rise) for case, rise in rises.items()},
            unit="points",
        ),
        judge(
            "and saturates (the last rise is less than a tenth of the largest)",
            {"a tenth less the last": MeanInterval.exactly(max(steps, default=0) / 10 - sum(steps[-1:]))},
            unit="points",
        ),
        judge("and never reaches 100 %", {"at most": MeanInterval.exactly(100 - max(curve))}, unit="points"),
    )


def _last(results: Results) -> float:
    return float(max(results.values("time")))


def _time_of_use(results: Results) -> float:
    """The recorded time that is closest to the time of use, by default half of the run."""
    (use_at, *_) = results.values("use_at") or [_last(results) / 2]
    return float(min(results.values("time"), key=lambda time: abs(time - use_at)))


def _difference(first: Mapping[int, float], second: Mapping[int, float]) -> Array:
    """The difference of two values, for the runs that have both."""
    return np.array([first[seed] - second[seed] for seed in sorted(first.keys() & second.keys())])


def claims_of_sizes(results: Results) -> tuple[Claim, ...]:
    """The claims of the paper about Figure 5."""
    last, used = _last(results), _time_of_use(results)
    ahead, within, full = {}, {}, {}
    for form, suffix in FORMS.items():
        rjs, prjs = f"RJS{suffix}", f"PRJS{suffix}"
        first, second = results.paired(
            "held", {"algorithm": prjs, "time": last}, {"algorithm": rjs, "time": last}
        )
        ahead[form] = MeanInterval.of(first - second)
        most = max(row["held"] for row in results.where(algorithm=rjs).rows)
        within[form] = MeanInterval.exactly(SIZE + 0.5 - most)
        there = {"algorithm": prjs, "time": used}
        full[form] = MeanInterval.of(
            100 * (results.runs("held", **there) / results.runs("size", **there) - FULL)
        )
    return (
        judge("PRJS ends with a larger sample than RJS", ahead, unit="results"),
        judge("RJS's sample never exceeds the initial size", within, unit="results"),
        judge("PRJS's reservoir is full when it is used (at least 95 % of its size)", full, unit="points"),
    )


def claims_of_one_run(results: Results) -> tuple[Claim, ...]:
    """The claims of the paper about Figure 6."""
    last = _last(results)
    fell, back = {}, {}
    for form, suffix in FORMS.items():
        there = {"algorithm": f"PRJS{suffix}", "time": last}
        fell[form] = MeanInterval.of(results.runs("fell by", **there))
        back[form] = MeanInterval.of(results.runs("held", **there) - SIZE)
    return (
        judge("PRJS's sample shrinks when the reservoir grows", fell, unit="results"),
        judge("and is soon larger than before", back, unit="results"),
    )


def claims_of_results(results: Results) -> tuple[Claim, ...]:
    """The claims of the paper about Figure 7. Since it saturates, the larger half of l may add nothing."""
    spans = sorted(results.values("use_at"))
    rises, stays, flattens = {}, {}, {}
    for form, suffix in FORMS.items():
        sizes = {span: results.by_seed("size", algorithm=f"PRJS{suffix}", use_at=span) for span in spans}
        for place, (a, b) in enumerate(itertools.pairwise(spans)):
            rise = _difference(sizes[b], sizes[a])
            if place < len(spans) // 2:
                rises[f"{form}, {a} to {b}"] = MeanInterval.of(rise)
            else:
                stays[f"{form}, {a} to {b}"] = MeanInterval.of(rise + SIZE / 10)
        if len(spans) > 2:  # noqa: PLR2004 - two rises to compare
            first, final = (
                {
                    seed: (sizes[b][seed] - sizes[a][seed]) / (b - a)
                    for seed in sizes[a].keys() & sizes[b].keys()
                }
                for a, b in (spans[:2], spans[-2:])
            )
            flattens[form] = MeanInterval.of(_difference(first, final))
    claims = [judge("the more results are to come, the more the reservoir grows", rises, unit="results")]
    if stays:
        claims.append(
            judge("and no less where l is large (within a tenth of the initial size)", stays, unit="results")
        )
    if flattens:
        claims.append(
            judge("which flattens out (growth a unit of time, first less last)", flattens, unit="results")
        )
    return tuple(claims)


def claims_of_initial_sizes(results: Results) -> tuple[Claim, ...]:
    """The claim at the beginning of section 5."""
    larger = {
        f"{form}, from {initial}": MeanInterval.of(
            results.runs("size", algorithm=f"PRJS{suffix}", initial=initial) - initial
        )
        for form, suffix in FORMS.items()
        for initial in sorted(results.values("initial"))
    }
    return (judge("PRJS's reservoir grows whatever its initial size", larger, unit="results"),)


def _recorded(
    results: Results, number: str, algorithm: str, when: Mapping[int, float] | tuple[float, float]
) -> dict[int, float]:
    """The mean of a number over a closed interval of time, or at a different time for each run; by seed."""
    found: dict[int, list[float]] = {}
    for row in results.where(algorithm=algorithm).rows:
        seed, time = row["seed"], row["time"]
        low, high = when if isinstance(when, tuple) else (when.get(seed, np.nan),) * 2
        if low <= time <= high and number in row:
            found.setdefault(seed, []).append(row[number])
    return {seed: float(np.mean(numbers)) for seed, numbers in found.items()}


def _begun(results: Results, algorithm: str) -> dict[int, float]:
    """The first recorded time after the reservoir has grown, for each run where it has."""
    begun: dict[int, float] = {}
    for row in results.where(algorithm=algorithm).rows:
        if row["time"] > row.get("grew", np.inf):
            begun[row["seed"]] = min(row["time"], begun.get(row["seed"], np.inf))
    return begun


def claims_of_uniformity(results: Results) -> tuple[Claim, ...]:
    """The claims of the paper about Figure 8. `chi-square` is 1 for a uniform sample and higher for a worse one."""
    used = _time_of_use(results)
    claims = []
    for number, label in (
        ("chi-square", "by keys"),
        ("of its size", "by keys, of a reservoir taken as full"),
        ("by time", "by when results came"),
    ):
        worse, damaged, recovers, stable = {}, {}, {}, {}
        for form, suffix in FORMS.items():
            rjs, prjs = f"RJS{suffix}", f"PRJS{suffix}"
            begun = _begun(results, prjs)
            since = (min(begun.values(), default=used), np.inf)
            grown = _recorded(results, number, prjs, begun)
            worse[form] = MeanInterval.of(
                _difference(_recorded(results, number, prjs, since), _recorded(results, number, rjs, since))
            )
            damaged[form] = MeanInterval.of(_difference(grown, _recorded(results, number, rjs, begun)))
            recovers[form] = MeanInterval.of(
                _difference(grown, _recorded(results, number, prjs, (used, used)))
            )
            early, late = (
                _recorded(results, number, rjs, when) for when in ((since[0], used), (used, np.inf))
            )
            stable[form] = within(STABLE, _difference(early, late))
        claims += [
            judge(f"RJS is more uniform than PRJS, {label}", worse, unit="chi-square"),
            judge(f"PRJS is less uniform than RJS once it has grown, {label}", damaged, unit="chi-square"),
            judge(f"PRJS recovers from its growth until its use, {label}", recovers, unit="chi-square"),
            judge(
                f"RJS is as uniform before the use as after, {label} (within {STABLE:g})",
                stable,
                unit="chi-square",
            ),
        ]
    return tuple(claims)


def claims_of_order(results: Results) -> tuple[Claim, ...]:
    """The claims of the paper about Figure 9."""
    fanouts = sorted(results.values("fanout"))
    claims = []
    for name, text in (
        ("PRJS", "PRJS is less uniform, the more sorted streams are"),
        ("RJS", f"RJS is not sensitive to order (within {STABLE:g})"),
    ):
        margins = {}
        for form, suffix in FORMS.items():
            means = [
                _recorded(results.where(fanout=fanout), "chi-square", f"{name}{suffix}", (0, np.inf))
                for fanout in fanouts
            ]
            for (a, more), (b, less) in itertools.pairwise(zip(fanouts, means, strict=True)):
                difference = _difference(more, less)
                margins[f"{form}, fanout {a} and {b}"] = (
                    MeanInterval.of(difference) if name == "PRJS" else within(STABLE, difference)
                )
        claims.append(judge(text, margins, unit="chi-square"))
    return tuple(claims)


def claims_of_averages(results: Results) -> tuple[Claim, ...]:
    """The claims of the paper about Figure 10."""
    used, last = _time_of_use(results), _last(results)
    shortly = [time for time in sorted(results.values("time")) if time < used][-SHORTLY:] or [used]
    before, crossed, closer, falls = {}, {}, {}, {}
    for form, suffix in FORMS.items():
        rjs, prjs = (partial(_recorded, results, "off", f"{name}{suffix}") for name in ("RJS", "PRJS"))
        begun = _begun(results, f"PRJS{suffix}")
        before[form] = MeanInterval.of(_difference(prjs(begun), rjs(begun)))
        span = (shortly[0], shortly[-1])
        crossed[form] = MeanInterval.of(_difference(rjs(span), prjs(span)))
        closer[form] = MeanInterval.of(_difference(rjs((used, used)), prjs((used, used))))
        falls[form] = MeanInterval.of(_difference(prjs(begun), prjs((last, last))))
    return (
        judge("right after it grew, PRJS's average is further off than RJS's", before, unit="of 1000"),
        judge(
            f"it is closer before it is used (the last {len(shortly)} recorded times)",
            crossed,
            unit="of 1000",
        ),
        judge("it is closer when it is used", closer, unit="of 1000"),
        judge("it gets closer from the growth to the end", falls, unit="of 1000"),
    )
