"""Memory-Limited Execution of Windowed Stream Joins (Srivastava, Widom): sections 3, 5 and 6.2.

Each claim has a function that measures it and returns plain records, which tests read, and one that makes a
table of them. All count from_left results only, as the paper does, and begin after a warm-up.

Deviations
----------
The generator's true rates are 0.8 of the nominal ones, so that a full window holds 400 rows; memory is in
percent of those, and theory uses the true rates. Where a model is learned, steps are of some rows, about one
unit of time, rather than of one; results within a step need no memory and are left out of account.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple, TypeAlias

import numpy as np

from tidegate.allocation import Scheme, allocate, predict_recall
from tidegate.engine import simulate
from tidegate.engine.encode import encode
from tidegate.engine.operator import Join, Operator, collected
from tidegate.experiments import recorded
from tidegate.experiments.reproduced import Reproduced
from tidegate.models import AgeCurve, Frequency, Payoff
from tidegate.policies import Age, Policy, Prob
from tidegate.streams import Aged, Correlated, Trace
from tidegate.streams.aged import Shape
from tidegate.streams.correlated import Correlation
from tidegate.types import Budget, Report, StepSize, Window

WINDOW: Final = 500
FEW_ROWS: Final = 5
"""A step of this many rows takes about one unit of time."""
SHAPES: Final[dict[str, Shape]] = {"INC": "increasing", "DEC": "decreasing", "BELL": "bell"}
CORRELATIONS: Final[dict[str, Correlation]] = {"DC": "direct", "IC": "inverse", "UC": "uncorrelated"}
PERCENTS: Final = tuple(range(10, 100, 10))

Paired: TypeAlias = Aged | Correlated


class Compared(NamedTuple):
    """A recall, measured and predicted."""

    stream: str
    percent: int
    policy: str
    measured: float
    predicted: float


class Allocated(NamedTuple):
    """The recalls of several joins within one memory, measured and predicted, by a parameter of the streams."""

    parameter: float
    scheme: Scheme
    memory: list[int]
    measured: list[float]
    predicted: list[float]


class Followed(NamedTuple):
    """A curve learned online: how far off it is at the end of each window, and the recall of that window."""

    stream: str
    monitoring: str
    off: list[float]
    recall: list[float]


def curve_of(stream: Aged) -> AgeCurve:
    """The true age curve of the left."""
    return AgeCurve(stream.curve_edges, stream.curve_rates)


def frequencies_of(stream: Correlated) -> Frequency:
    """The true shares of the keys."""
    keys = np.arange(stream.keys)
    return Frequency((keys, stream.shares[0]), (keys, stream.shares[1]))


def full_window(stream: Paired) -> float:
    """Left rows that an unlimited join holds."""
    return stream.true_rates[0] * WINDOW


def measured_recall(
    traces: Iterable[tuple[Trace, Trace]],
    memory: int,
    policy: Policy | str,
    *,
    step: StepSize = 1,
    warmup: float = 2 * WINDOW,
) -> float:
    """The recall over several traces taken together."""
    found = needed = 0
    for left, right in traces:
        report: Report = simulate(
            left,
            right,
            window=(WINDOW, 0),
            budget=memory,
            split=(memory, 0),
            policy=policy,
            step=step,
            warmup=warmup,
        )
        found += report.from_left
        needed += report.exact - report.from_step
    return found / needed


def age_against_theory(
    percents: Sequence[int] = PERCENTS,
    shapes: Sequence[str] = tuple(SHAPES),
    *,
    rows: int = 4000,
    seeds: int = 2,
    warmup: float = 4 * WINDOW,
) -> list[Compared]:
    """AGE, given and learned, RECENT and UNTIL-EXPIRY against equation 3 and its like."""
    compared = []
    for name in shapes:
        stream = Aged(SHAPES[name])
        curve, rate = curve_of(stream), stream.true_rates[0]
        traces = [stream.both(rows, seed) for seed in range(seeds)]
        full = rate * curve.total
        ways: tuple[tuple[str, Policy | str, StepSize, Callable[[float], Any]], ...] = (
            ("age", Age(curve), 1, curve.payoff(rate).at),
            ("age, learned", Age(), FEW_ROWS, curve.payoff(rate).at),
            ("fifo", "fifo", 1, curve.recent(rate)),
            ("until_expiry", "until_expiry", 1, curve.until_expiry(rate)),
        )
        for percent in percents:
            memory = round(full_window(stream) * percent / 100)
            for label, policy, step, paid in ways:
                recall = measured_recall(traces, memory, policy, step=step, warmup=warmup)
                compared.append(Compared(name, percent, label, recall, float(paid(memory)) / full))
    return compared


def whole_keys_recall(stream: Correlated, memory: float) -> float:
    """The recall by section 3.3 as it is printed: only keys of which memory holds every row count."""
    left, right = stream.shares
    best_first = np.argsort(-right, kind="stable")
    pays = (left * right)[best_first]
    held = np.cumsum(full_window(stream) * left[best_first]) <= memory
    return float(pays[held].sum() / pays.sum())


def prob_against_theory(
    percents: Sequence[int] = (10, 20, 50),
    skews: Sequence[float] = (1.0, 2.0),
    *,
    rows: int = 100_000,
    learned_rows: int = 4000,
    seeds: int = 3,
) -> list[Compared]:
    """PROB, given and learned, against section 3.3, with the key that is held in part and as printed.

    Under inverse correlation few left rows have most of the matches, so that a short trace says little about
    the formula: the given frequencies are measured on long ones, and then on the short ones of the learned.
    """
    compared = []
    for name, correlation in CORRELATIONS.items():
        for skew in skews:
            stream = Correlated(correlation, skew=skew)
            model = frequencies_of(stream)
            long = [stream.both(rows, seed) for seed in range(seeds)]
            short = [stream.both(learned_rows, seed) for seed in range(seeds)]
            for percent in percents:
                memory = round(full_window(stream) * percent / 100)
                predicted = predict_recall(model, memory, rates=stream.true_rates, window=(WINDOW, 0))
                given = measured_recall(long, memory, Prob(model))
                here = measured_recall(short, memory, Prob(model))
                learned = measured_recall(short, memory, "prob", step=FEW_ROWS)
                label = f"{name}, Z={skew:g}"
                compared += [
                    Compared(label, percent, "prob", given, predicted),
                    Compared(label, percent, "prob, as printed", given, whole_keys_recall(stream, memory)),
                    Compared(label, percent, "prob, learned against given", learned, here),
                ]
    return compared


def _payoff(stream: Paired) -> Payoff:
    if isinstance(stream, Aged):
        return curve_of(stream).payoff(stream.true_rates[0])
    return frequencies_of(stream).payoff(rates=stream.true_rates, window=(WINDOW, 0))[0]


def _knowing(stream: Paired) -> Policy:
    return Age(curve_of(stream)) if isinstance(stream, Aged) else Prob(frequencies_of(stream))


def allocated(
    joins: Sequence[Paired], share: float, parameter: float, *, rows: int, seeds: int, step: StepSize
) -> list[Allocated]:
    """Run joins with their memory allocated by ALLOC and by PROP; `share` is that of all they could use."""
    total = round(share * sum(map(full_window, joins)))
    payoffs = [_payoff(stream) for stream in joins]
    traces = [[stream.both(rows, seed) for seed in range(seeds)] for stream in joins]
    found = []
    schemes: tuple[Scheme, ...] = ("alloc", "prop")
    for scheme in schemes:
        # PROP divides by what windows hold; a payoff may be full with less, where rows match nothing late.
        memory = (
            allocate(payoffs, total).memory
            if scheme == "alloc"
            else [round(share * full_window(stream)) for stream in joins]
        )
        measured = [
            measured_recall(some, rows, _knowing(stream), step=step)
            for stream, some, rows in zip(joins, traces, memory, strict=True)
        ]
        predicted = [payoff.recall(rows) for payoff, rows in zip(payoffs, memory, strict=True)]
        found.append(Allocated(parameter, scheme, memory, measured, predicted))
    return found


def allocated_by_skew(
    skews: Sequence[float] = (0.0, 0.5, 1.0, 1.5, 2.0),
    correlations: Sequence[str] = ("DC", "IC"),
    *,
    rows: int = 50_000,
    seeds: int = 3,
) -> list[Allocated]:
    """Figure 10: a join of each correlation, with a fifth of the memory that all would need."""
    found = []
    for skew in skews:
        joins = [Correlated(CORRELATIONS[name], skew=skew) for name in correlations]
        found += allocated(joins, 0.2, skew, rows=rows, seeds=seeds, step=1)
    return found


def allocated_by_power(
    powers: Sequence[float] = (1.0, 2.0, 3.0, 4.0), *, rows: int = 4000, seeds: int = 2
) -> list[Allocated]:
    """Figure 11: an increasing and a decreasing age curve, with half of the memory that both would need."""
    found = []
    for power in powers:
        joins = [Aged("increasing", power=power), Aged("decreasing", power=power)]
        found += allocated(joins, 0.5, power, rows=rows, seeds=seeds, step=1)
    return found


def distance(learned: AgeCurve | None, true: AgeCurve) -> float:
    """The largest difference between the matches by an age, of all that a row has (`max |C - C'| / n`)."""
    if learned is None:
        return 1.0
    ages = np.union1d(learned.edges, true.edges)
    return float(abs(learned.cumulative(ages) - true.cumulative(ages)).max() / true.total)


def follow(stream: Aged, policy: Age, *, windows: int, memory: int, seed: int = 0) -> Followed:
    """Learn a curve online and compare it with the true one at the end of every window."""
    rate_left, rate_right = stream.true_rates
    # Gaps are drawn: a few rows more see the last window through.
    traces = stream.both(int(windows * WINDOW * rate_left * 1.05) + 50, seed)
    window = Window(WINDOW, 0)
    arrivals = encode(*traces, window, "=", None).arrivals
    operator = Operator(Join(window, Budget(rows=memory), policy, split=(memory, 0)))
    label = stream.shape if stream.then is None else f"{stream.shape} to {stream.then[1]}"
    followed = Followed(str(label), policy.monitoring, [], [])
    counted = 0
    for left, right, moment in arrivals.steps(arrivals.cuts(FEW_ROWS), whole_instants=False):
        collected(operator.step(left, right, moment))
        if moment.now < (len(followed.off) + 1) * WINDOW:
            continue
        now = stream if stream.then is None or moment.now < stream.then[0] + WINDOW / 2 else stream.later
        followed.off.append(distance(operator.policy.curves["left"], curve_of(now)))  # type: ignore[attr-defined]  # `Age` at work
        followed.recall.append((operator.tally.from_left - counted) / (rate_right * WINDOW))
        counted = operator.tally.from_left
        if len(followed.off) == windows:
            break
    return followed


def curves_learned(*, windows: int = 12, seeds: int = 2, memory: int = 80) -> list[Followed]:
    """Curves that stay, and curves that change after half of the windows; the mean over seeds."""
    half = windows // 2 * WINDOW
    streams = [Aged(shape) for shape in SHAPES.values()]
    streams += [
        Aged("increasing", then=(half, "decreasing")),
        Aged("decreasing", then=(half, "increasing")),
    ]
    found = []
    for policy in (Age(), Age(monitoring="memory")):
        for stream in streams:
            runs = [follow(stream, policy, windows=windows, memory=memory, seed=s) for s in range(seeds)]
            means = [np.mean([getattr(run, what) for run in runs], axis=0) for what in ("off", "recall")]
            found.append(runs[0]._replace(off=means[0].tolist(), recall=means[1].tolist()))
    return found


def on_recordings(folder: str | Path, percents: Sequence[int] = (10, 20, 40)) -> list[tuple[str, ...]]:
    """Recalls on recorded streams, a row at a time; everything is learned as the stream goes by."""
    rows = []
    for name, load in (("auctions", recorded.auctions), ("tasks", recorded.tasks)):
        left, right, window = load(folder)
        span = float(window.length("left"))
        held = np.mean([np.sum((left.time <= now) & (left.time >= now - span)) for now in right.time[::100]])
        for percent in percents:
            memory = round(held * percent / 100)
            recalls = [
                simulate(left, right, window=window, budget=memory, split=(memory, 0), policy=policy).recall
                for policy in RIVALS
            ]
            rows.append((name, f"{percent} %", str(memory), *(f"{recall:.3f}" for recall in recalls)))
    return rows


RIVALS: Final = ("age", "prob", "fifo", "until_expiry")


def figure7() -> Reproduced:
    """Figure 7: recall by memory on age-based data, measured and (predicted)."""
    return _by_policy("Windowed joins, Figure 7: recall, measured (predicted)", age_against_theory())


def prob() -> Reproduced:
    """Section 3.3: recall by memory on frequency-based data, measured and (predicted)."""
    return _by_policy("Windowed joins, section 3.3: recall, measured (predicted)", prob_against_theory())


def _by_policy(title: str, compared: list[Compared]) -> Reproduced:
    policies = list(dict.fromkeys(point.policy for point in compared))
    cells: dict[tuple[str, int], list[str]] = {}
    for point in compared:
        text = f"{point.measured:.3f} ({point.predicted:.3f})"
        cells.setdefault((point.stream, point.percent), []).append(text)
    rows = [(stream, f"{percent} %", *found) for (stream, percent), found in cells.items()]
    apart = [
        max(abs(point.measured - point.predicted) for point in compared if point.policy == policy)
        for policy in policies
    ]
    rows.append(("largest difference", "", *(f"{difference:.3f}" for difference in apart)))
    return Reproduced(title, ("stream", "memory", *policies), rows)


def figure10() -> Reproduced:
    """Figure 10: two joins by frequencies share a memory."""
    return _of_allocations("Windowed joins, Figure 10: DC and IC in 20 %", "Z", allocated_by_skew())


def figure10_with_uc() -> Reproduced:
    """The same with a third join."""
    found = allocated_by_skew(correlations=("DC", "IC", "UC"))
    return _of_allocations("Windowed joins, as Figure 10: DC, IC and UC in 20 %", "Z", found)


def figure11() -> Reproduced:
    """Figure 11: two joins by age share a memory."""
    return _of_allocations("Windowed joins, Figure 11: INC and DEC in 50 %", "p", allocated_by_power())


def _of_allocations(title: str, parameter: str, found: list[Allocated]) -> Reproduced:
    rows = [
        (
            f"{one.parameter:g}",
            one.scheme,
            ", ".join(map(str, one.memory)),
            *(", ".join(f"{recall:.3f}" for recall in recalls) for recalls in (one.measured, one.predicted)),
            f"{min(one.measured):.3f} ({min(one.predicted):.3f})",
        )
        for one in found
    ]
    header = (parameter, "scheme", "memory", "recall, measured", "recall, predicted", "least")
    return Reproduced(title, header, rows)


def learned_curves() -> Reproduced:
    """Section 2.3: how far a curve that is learned online is from the true one, window by window."""
    found = curves_learned()
    rows = [
        (one.stream, one.monitoring, what, *(f"{value:.2f}" for value in values))
        for one in found
        for what, values in (("off", one.off), ("recall", one.recall))
    ]
    windows = (str(number + 1) for number in range(len(found[0].off)))
    return Reproduced(
        "Windowed joins, section 2.3: curves learned online, a fifth of the memory",
        ("curve", "monitoring", "", *windows),
        rows,
    )


def recordings(folder: str | Path) -> Reproduced:
    """AGE and its rivals on recorded streams."""
    return Reproduced(
        "Windowed joins: recall on recorded streams, learned online",
        ("stream", "memory", "rows", *RIVALS),
        on_recordings(folder),
    )
