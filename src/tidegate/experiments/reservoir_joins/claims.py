"""The claims of section 5 about its figures."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from functools import partial
from typing import Final

import numpy as np

from tidegate.experiments.claims import ALL, Case, Claim, Runs, sorted_values, steps, within
from tidegate.experiments.reservoir_joins.measures import PRINTED, SIZE
from tidegate.experiments.results import Results

FORMS: Final = {"by ranks": "", "as printed": PRINTED}
FULL: Final = 0.95
"""A reservoir that holds this share of its size counts as full."""
STABLE: Final = 0.2
"""Two samples are equally uniform if their chi-squares differ by less than this."""
SHORTLY: Final = 5
"""How many recorded times count as shortly before the use."""

_by_form = partial(Claim, each={"form": tuple(FORMS)}, label="{form}")


def _name(case: Case, algorithm: str) -> str:
    return algorithm + FORMS[case["form"]]


def _last(results: Results) -> float:
    return float(max(results.values("time")))


def _time_of_use(results: Results) -> float:
    """The recorded time that is closest to the time of use, by default half of the run."""
    (use_at, *_) = results.values("use_at") or [_last(results) / 2]
    return float(min(results.values("time"), key=lambda time: abs(time - use_at)))


def _recorded(
    case: Case, number: str, algorithm: str, when: Mapping[int, float] | tuple[float, float]
) -> Runs:
    """The mean of a number over a closed interval of time, or at a different time for each run."""
    found: dict[int, list[float]] = {}
    for row in case.results.where(algorithm=_name(case, algorithm)).rows:
        seed, time = row["seed"], row["time"]
        low, high = when if isinstance(when, tuple) else (when.get(seed, math.nan),) * 2
        if low <= time <= high and number in row:
            found.setdefault(seed, []).append(row[number])
    return Runs({seed: float(np.mean(numbers)) for seed, numbers in found.items()})


def _begun(case: Case) -> Runs:
    """The first recorded time after PRJS's reservoir has grown, for each run where it has."""
    begun = Runs()
    for row in case.results.where(algorithm=_name(case, "PRJS")).rows:
        if row["time"] > row.get("grew", math.inf):
            begun[row["seed"]] = min(row["time"], begun.get(row["seed"], math.inf))
    return begun


def _rises(case: Case) -> float:
    first, second = (case("confidence", m=m).mean for m in case["step"])
    return second - first


def _saturates(case: Case) -> float:
    """A tenth of the largest rise, less the last."""
    rises = [_rises(Case(case.results, {"step": step})) for step in steps("m")(case.results)]
    return max(rises, default=0) / 10 - sum(rises[-1:])


CONFIDENCE: Final = (
    Claim(
        "uniformity confidence rises with m", _rises, {"step": steps("m")}, "{step[0]} to {step[1]}", "points"
    ),
    Claim(
        "and saturates (the last rise is less than a tenth of the largest)",
        _saturates,
        label="a tenth less the last",
        unit="points",
    ),
    Claim(
        "and never reaches 100 %",
        lambda case: 100 - max(row["confidence"] for row in case.results.rows),
        label="at most",
        unit="points",
    ),
)


def _at_the_end(case: Case, number: str, algorithm: str) -> Runs:
    return case(number, algorithm=_name(case, algorithm), time=_last(case.results))


def _is_full(case: Case) -> Runs:
    """By how many points PRJS's reservoir, when it is used, is above the share that counts as full."""
    used = {"algorithm": _name(case, "PRJS"), "time": _time_of_use(case.results)}
    return 100 * (case("held", **used) / case("size", **used) - FULL)


SIZES: Final = (
    _by_form(
        "PRJS ends with a larger sample than RJS",
        lambda case: _at_the_end(case, "held", "PRJS") - _at_the_end(case, "held", "RJS"),
        unit="results",
    ),
    _by_form(
        "RJS's sample never exceeds the initial size",
        lambda case: (
            SIZE + 0.5 - max(row["held"] for row in case.results.where(algorithm=_name(case, "RJS")).rows)
        ),
        unit="results",
    ),
    _by_form("PRJS's reservoir is full when it is used (at least 95 % of its size)", _is_full, unit="points"),
)
ONE_RUN: Final = (
    _by_form(
        "PRJS's sample shrinks when the reservoir grows",
        lambda case: _at_the_end(case, "fell by", "PRJS"),
        unit="results",
    ),
    _by_form(
        "and is soon larger than before",
        lambda case: _at_the_end(case, "held", "PRJS") - SIZE,
        unit="results",
    ),
)


def _growth(case: Case, step: tuple[int, int]) -> Runs:
    """How much larger PRJS's reservoir is for a later time of use."""
    sooner, later = (case("size", algorithm=_name(case, "PRJS"), use_at=use_at) for use_at in step)
    return later - sooner


def _half_of_steps(results: Results, *, large: bool) -> list[tuple[int, int]]:
    """The steps of the time of use where l is small, or where it is large: there growth may have ended."""
    half = len(results.values("use_at")) // 2
    pairs = list(steps("use_at")(results))
    return pairs[half:] if large else pairs[:half]


def _flattens(case: Case) -> Runs:
    """The growth a unit of time in the first step, less that in the last."""
    (first, *_, last) = steps("use_at")(case.results)
    return _speed(case, first) - _speed(case, last)


def _speed(case: Case, step: tuple[int, int]) -> Runs:
    return _growth(case, step) / (step[1] - step[0])


RESULTS: Final = (
    Claim(
        "the more results are to come, the more the reservoir grows",
        lambda case: _growth(case, case["step"]),
        {"form": tuple(FORMS), "step": partial(_half_of_steps, large=False)},
        "{form}, {step[0]} to {step[1]}",
        "results",
    ),
    Claim(
        "and no less where l is large (within a tenth of the initial size)",
        lambda case: _growth(case, case["step"]) + SIZE / 10,
        {"form": tuple(FORMS), "step": partial(_half_of_steps, large=True)},
        "{form}, {step[0]} to {step[1]}",
        "results",
    ),
    _by_form(
        "which flattens out (growth a unit of time, first less last)",
        _flattens,
        where=lambda case: len(case.results.values("use_at")) > 2,  # noqa: PLR2004 - two rises to compare
        unit="results",
    ),
)
INITIAL_SIZES: Final = (
    Claim(
        "PRJS's reservoir grows whatever its initial size",
        lambda case: case("size", algorithm=_name(case, "PRJS")) - case["initial"],
        {"form": tuple(FORMS), "initial": ALL},
        "{form}, from {initial}",
        "results",
    ),
)


def _worse_since_growth(case: Case, number: str) -> Runs:
    """How much higher PRJS's chi-square is than RJS's since its reservoir began to grow."""
    since = (_first_growth(case), math.inf)
    return _recorded(case, number, "PRJS", since) - _recorded(case, number, "RJS", since)


def _first_growth(case: Case) -> float:
    return min(_begun(case).values(), default=_time_of_use(case.results))


def _damage(case: Case, number: str) -> Runs:
    """How much higher PRJS's number is than RJS's right after its reservoir has grown."""
    begun = _begun(case)
    return _recorded(case, number, "PRJS", begun) - _recorded(case, number, "RJS", begun)


def _recovery(case: Case, number: str, until: float) -> Runs:
    """How much lower PRJS's number is at some time than right after its reservoir has grown."""
    return _recorded(case, number, "PRJS", _begun(case)) - _recorded(case, number, "PRJS", (until, until))


def _change(case: Case, number: str) -> Runs:
    """How much higher RJS's number is before the use than after."""
    used = _time_of_use(case.results)
    before, after = (_first_growth(case), used), (used, math.inf)
    return _recorded(case, number, "RJS", before) - _recorded(case, number, "RJS", after)


def _uniformity(number: str, label: str) -> Iterable[Claim]:
    """Claims about a chi-square, which is 1 for a uniform sample and higher for a worse one."""
    of_chi_square = partial(_by_form, unit="chi-square")
    return (
        of_chi_square(
            f"RJS is more uniform than PRJS, {label}", lambda case: _worse_since_growth(case, number)
        ),
        of_chi_square(
            f"PRJS is less uniform than RJS once it has grown, {label}", lambda case: _damage(case, number)
        ),
        of_chi_square(
            f"PRJS recovers from its growth until its use, {label}",
            lambda case: _recovery(case, number, _time_of_use(case.results)),
        ),
        of_chi_square(
            f"RJS is as uniform before the use as after, {label} (within {STABLE:g})",
            lambda case: within(STABLE, _change(case, number)),
        ),
    )


UNIFORMITY: Final = (
    *_uniformity("chi-square", "by keys"),
    *_uniformity("of its size", "by keys, of a reservoir taken as full"),
    *_uniformity("by time", "by when results came"),
)


def _rise_with_order(case: Case, algorithm: str) -> Runs:
    """How much lower chi-square is with the next fanout, which sorts streams less."""
    more, less = (
        _recorded(
            Case(case.results.where(fanout=fanout), {"form": case["form"]}),
            "chi-square",
            algorithm,
            (0, math.inf),
        )
        for fanout in case["step"]
    )
    return more - less


_by_order = partial(
    Claim,
    each={"form": tuple(FORMS), "step": steps("fanout")},
    label="{form}, fanout {step[0]} and {step[1]}",
    unit="chi-square",
)
ORDER: Final = (
    _by_order(
        "PRJS is less uniform, the more sorted streams are", lambda case: _rise_with_order(case, "PRJS")
    ),
    _by_order(
        f"RJS is not sensitive to order (within {STABLE:g})",
        lambda case: within(STABLE, _rise_with_order(case, "RJS")),
    ),
)


def _crossed(case: Case) -> Runs:
    """How much closer PRJS's average is than RJS's shortly before the use."""
    used = _time_of_use(case.results)
    times = [time for time in sorted_values(case.results, "time") if time < used][-SHORTLY:] or [used]
    return _closer(case, times[0], times[-1])


def _closer(case: Case, first: float, last: float) -> Runs:
    return _recorded(case, "off", "RJS", (first, last)) - _recorded(case, "off", "PRJS", (first, last))


_of_averages = partial(_by_form, unit="of 1000")
AVERAGES: Final = (
    _of_averages(
        "right after it grew, PRJS's average is further off than RJS's", lambda case: _damage(case, "off")
    ),
    _of_averages(f"it is closer before it is used (the last {SHORTLY} recorded times)", _crossed),
    _of_averages(
        "it is closer when it is used", lambda case: _closer(case, *[_time_of_use(case.results)] * 2)
    ),
    _of_averages(
        "it gets closer from the growth to the end",
        lambda case: _recovery(case, "off", _last(case.results)),
    ),
)
