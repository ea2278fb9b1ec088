"""What section 5 says of its figures, held against what was measured."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from functools import partial
from typing import Final

import numpy as np

from tidegate.experiments.claims import Claim, Interval, judged
from tidegate.experiments.reservoir_joins.measured import PRINTED, SIZE
from tidegate.experiments.results import Results
from tidegate.types import Array

FORMS: Final = {"by ranks": "", "as printed": PRINTED}
FULL: Final = 0.95
"""A reservoir that holds so much of its size is taken to be full."""
STABLE: Final = 0.2
"""Chi-square within which two samples are taken to be as uniform."""
SHORTLY: Final = 5
"""Times noted shortly before the use."""


def claims_of_confidence(results: Results) -> tuple[Claim, ...]:
    """What the paper says of Figures 2 and 3."""
    counts = sorted(results.values("m"))
    curve = [float(results.runs("confidence", m=m)[0]) for m in counts]
    rises = {
        f"{a} to {b}": more - less
        for (a, less), (b, more) in itertools.pairwise(zip(counts, curve, strict=True))
    }
    steps = list(rises.values())
    return (
        judged(
            "uniformity confidence rises with m",
            {case: Interval.exactly(rise) for case, rise in rises.items()},
            unit="points",
        ),
        judged(
            "and saturates (the last rise is less than a tenth of the largest)",
            {"a tenth less the last": Interval.exactly(max(steps, default=0) / 10 - sum(steps[-1:]))},
            unit="points",
        ),
        judged("and never reaches 100 %", {"at most": Interval.exactly(100 - max(curve))}, unit="points"),
    )


def _last(results: Results) -> float:
    return float(max(results.values("time")))


def _used(results: Results) -> float:
    """The time noted that is closest to that of use: half of all, if no setting tells it."""
    (use_at, *_) = results.values("use_at") or [_last(results) / 2]
    return float(min(results.values("time"), key=lambda time: abs(time - use_at)))


def _apart(first: Mapping[int, float], second: Mapping[int, float]) -> Array:
    """By how much one number is above another, of the runs that tell both."""
    return np.array([first[seed] - second[seed] for seed in sorted(first.keys() & second.keys())])


def _within(most: float, apart: Array) -> Interval:
    """How far below `most` the mean of differences is, whatever its sign."""
    mean, low, high = Interval.of(apart)
    return Interval(most - abs(mean), most - max(high, -low), most - max(low, -high, 0.0))


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
        most = max(row["held"] for row in results.where(algorithm=rjs).rows)
        within[form] = Interval.exactly(SIZE + 0.5 - most)
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
    """What the paper says of Figure 7; that it saturates allows the larger half of l to add nothing."""
    spans = sorted(results.values("use_at"))
    rises, stays, flattens = {}, {}, {}
    for form, suffix in FORMS.items():
        sizes = {span: results.by_seed("size", algorithm=f"PRJS{suffix}", use_at=span) for span in spans}
        for place, (a, b) in enumerate(itertools.pairwise(spans)):
            rise = _apart(sizes[b], sizes[a])
            if place < len(spans) // 2:
                rises[f"{form}, {a} to {b}"] = Interval.of(rise)
            else:
                stays[f"{form}, {a} to {b}"] = Interval.of(rise + SIZE / 10)
        if len(spans) > 2:  # noqa: PLR2004 - two rises to compare
            first, final = (
                {
                    seed: (sizes[b][seed] - sizes[a][seed]) / (b - a)
                    for seed in sizes[a].keys() & sizes[b].keys()
                }
                for a, b in (spans[:2], spans[-2:])
            )
            flattens[form] = Interval.of(_apart(first, final))
    claims = [judged("the more results are to come, the more the reservoir grows", rises, unit="results")]
    if stays:
        claims.append(
            judged("and no less where l is large (within a tenth of the initial size)", stays, unit="results")
        )
    if flattens:
        claims.append(
            judged("which flattens out (growth a unit of time, first less last)", flattens, unit="results")
        )
    return tuple(claims)


def claims_of_initial_sizes(results: Results) -> tuple[Claim, ...]:
    """What section 5 says at its beginning."""
    larger = {
        f"{form}, from {initial}": Interval.of(
            results.runs("size", algorithm=f"PRJS{suffix}", initial=initial) - initial
        )
        for form, suffix in FORMS.items()
        for initial in sorted(results.values("initial"))
    }
    return (judged("PRJS's reservoir grows whatever its initial size", larger, unit="results"),)


def _noted(
    results: Results, number: str, algorithm: str, when: Mapping[int, float] | tuple[float, float]
) -> dict[int, float]:
    """The mean of a number over some time, the ends included, or at a time of each run's own; run by run."""
    found: dict[int, list[float]] = {}
    for row in results.where(algorithm=algorithm).rows:
        seed, time = row["seed"], row["time"]
        low, high = when if isinstance(when, tuple) else (when.get(seed, np.nan),) * 2
        if low <= time <= high and number in row:
            found.setdefault(seed, []).append(row[number])
    return {seed: float(np.mean(numbers)) for seed, numbers in found.items()}


def _begun(results: Results, algorithm: str) -> dict[int, float]:
    """The first time noted after a reservoir has grown, of each run where it has."""
    begun: dict[int, float] = {}
    for row in results.where(algorithm=algorithm).rows:
        if row["time"] > row.get("grew", np.inf):
            begun[row["seed"]] = min(row["time"], begun.get(row["seed"], np.inf))
    return begun


def claims_of_uniformity(results: Results) -> tuple[Claim, ...]:
    """What the paper says of Figure 8; `chi-square` is 1 for a uniform sample, higher for a worse one."""
    used = _used(results)
    claims = []
    for number, told in (
        ("chi-square", "by keys"),
        ("of its size", "by keys, of a reservoir taken as full"),
        ("by time", "by when results came"),
    ):
        worse, damaged, recovers, stable = {}, {}, {}, {}
        for form, suffix in FORMS.items():
            rjs, prjs = f"RJS{suffix}", f"PRJS{suffix}"
            begun = _begun(results, prjs)
            since = (min(begun.values(), default=used), np.inf)
            grown = _noted(results, number, prjs, begun)
            worse[form] = Interval.of(
                _apart(_noted(results, number, prjs, since), _noted(results, number, rjs, since))
            )
            damaged[form] = Interval.of(_apart(grown, _noted(results, number, rjs, begun)))
            recovers[form] = Interval.of(_apart(grown, _noted(results, number, prjs, (used, used))))
            early, late = (_noted(results, number, rjs, when) for when in ((since[0], used), (used, np.inf)))
            stable[form] = _within(STABLE, _apart(early, late))
        claims += [
            judged(f"RJS is more uniform than PRJS, {told}", worse, unit="chi-square"),
            judged(f"PRJS is less uniform than RJS once it has grown, {told}", damaged, unit="chi-square"),
            judged(f"PRJS recovers from its growth until its use, {told}", recovers, unit="chi-square"),
            judged(
                f"RJS is as uniform before the use as after, {told} (within {STABLE:g})",
                stable,
                unit="chi-square",
            ),
        ]
    return tuple(claims)


def claims_of_order(results: Results) -> tuple[Claim, ...]:
    """What the paper says of Figure 9."""
    fanouts = sorted(results.values("fanout"))
    claims = []
    for name, text in (
        ("PRJS", "PRJS is less uniform, the more sorted streams are"),
        ("RJS", f"RJS is not sensitive to order (within {STABLE:g})"),
    ):
        margins = {}
        for form, suffix in FORMS.items():
            means = [
                _noted(results.where(fanout=fanout), "chi-square", f"{name}{suffix}", (0, np.inf))
                for fanout in fanouts
            ]
            for (a, more), (b, less) in itertools.pairwise(zip(fanouts, means, strict=True)):
                apart = _apart(more, less)
                margins[f"{form}, fanout {a} and {b}"] = (
                    Interval.of(apart) if name == "PRJS" else _within(STABLE, apart)
                )
        claims.append(judged(text, margins, unit="chi-square"))
    return tuple(claims)


def claims_of_averages(results: Results) -> tuple[Claim, ...]:
    """What the paper says of Figure 10."""
    used, last = _used(results), _last(results)
    shortly = [time for time in sorted(results.values("time")) if time < used][-SHORTLY:] or [used]
    before, crossed, closer, falls = {}, {}, {}, {}
    for form, suffix in FORMS.items():
        rjs, prjs = (partial(_noted, results, "off", f"{name}{suffix}") for name in ("RJS", "PRJS"))
        begun = _begun(results, f"PRJS{suffix}")
        before[form] = Interval.of(_apart(prjs(begun), rjs(begun)))
        span = (shortly[0], shortly[-1])
        crossed[form] = Interval.of(_apart(rjs(span), prjs(span)))
        closer[form] = Interval.of(_apart(rjs((used, used)), prjs((used, used))))
        falls[form] = Interval.of(_apart(prjs(begun), prjs((last, last))))
    return (
        judged("right after it grew, PRJS's average is further off than RJS's", before, unit="of 1000"),
        judged(
            f"it is closer before it is used (the last {len(shortly)} times noted)", crossed, unit="of 1000"
        ),
        judged("it is closer when it is used", closer, unit="of 1000"),
        judged("it gets closer from the growth to the end", falls, unit="of 1000"),
    )
