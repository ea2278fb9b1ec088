"""The measures of the experiments."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cache, lru_cache
from typing import Any, Final, TypeAlias

import numpy as np

from tidegate.allocation import allocate, predict_recall
from tidegate.engine import simulate
from tidegate.engine.encode import encode
from tidegate.engine.join import Join
from tidegate.engine.operator import Operator, collected
from tidegate.engine.policy_retention import PolicyRetention
from tidegate.experiments.datasets import auctions, tasks
from tidegate.experiments.windowed_joins.period_monitoring import PeriodAge
from tidegate.experiments.windowed_joins.wan_trace import MICROS, PREDICATE, Wan, observed
from tidegate.experiments.windowed_joins.wan_trace import WINDOW as TWO_MINUTES
from tidegate.models import AgeCurve, Frequency, Payoff
from tidegate.policies import Age, Policy, Prob
from tidegate.streams import Aged, Correlated, Trace
from tidegate.streams.aged import Shape
from tidegate.streams.correlated import Correlation
from tidegate.types import Budget, StepSize, Window

WINDOW: Final = 500
FEW_ROWS: Final = 5
"""A step of this many rows takes about one unit of time."""
WAN_STEP: Final = 25
"""A step of this many rows takes a quarter of a second in the trace of section 6.1."""
SHAPES: Final[dict[str, Shape]] = {"INC": "increasing", "DEC": "decreasing", "BELL": "bell"}
CORRELATIONS: Final[dict[str, Correlation]] = {"DC": "direct", "IC": "inverse", "UC": "uncorrelated"}
LEARNED: Final = ", learned"
_SEED_STEP: Final = 1000
"""The difference between the seeds of several joins of a run."""

SyntheticPair: TypeAlias = Aged | Correlated


def curve_of(stream: Aged) -> AgeCurve:
    """The true age curve of the left rows."""
    return AgeCurve(stream.curve_edges, stream.curve_rates)


def frequencies_of(stream: Correlated) -> Frequency:
    """The true shares of the keys."""
    keys = np.arange(stream.keys)
    return Frequency((keys, stream.shares[0]), (keys, stream.shares[1]))


def full_window(stream: SyntheticPair) -> float:
    """The number of left rows that an unlimited join buffers."""
    return stream.true_rates[0] * WINDOW


@lru_cache(maxsize=4)
def _traces(stream: SyntheticPair, rows: int, seed: int) -> tuple[Trace, Trace]:
    return stream.both(rows, seed)


def recall_of(
    stream: SyntheticPair,
    memory: int,
    policy: Policy | str,
    *,
    rows: int,
    seed: int,
    step: StepSize = 1,
    warmup: float = 2 * WINDOW,
) -> float:
    """The recall of a policy with this memory for left rows, over results that need memory."""
    left, right = _traces(stream, rows, seed)
    report = simulate(
        left,
        right,
        window=(WINDOW, 0),
        budget=memory,
        split=(memory, 0),
        policy=policy,
        step=step,
        warmup=warmup,
    )
    return report.from_left / (report.exact - report.from_step)


@lru_cache(maxsize=2)
def _wan(seconds: float, seed: int) -> tuple[Trace, Trace, AgeCurve]:
    left, right = Wan().both(seconds, seed)
    report = simulate(left, right, window=TWO_MINUTES, condition=PREDICATE, step=1000, collect=True)
    assert report.pairs is not None  # noqa: S101 - collected
    return left, right, observed(left, right, (report.pairs.left, report.pairs.right))


def wan_curve(*, seconds: float, seed: int) -> list[dict[str, float]]:
    """Section 6.1: the age curve as shares of all matches per tenth of a second, with its peak and best age."""
    _, _, curve = _wan(seconds, seed)
    ages, shares = curve.edges[:-1] / MICROS, curve.rates / curve.total
    summary = {"peak": float(ages[np.argmax(shares)]), "best age": curve.best_age / MICROS}
    shown = np.flatnonzero((ages >= 55) & (ages < 80))  # noqa: PLR2004 - where there are matches
    return [summary | {"age": float(ages[i]), "share": float(shares[i])} for i in shown]


def wan_recall(*, policy: str, percent: int, seconds: float, seed: int) -> dict[str, float]:
    """Section 6.1: the recall of a policy, and the prediction by equation 3 and its counterparts."""
    left, right, curve = _wan(seconds, seed)
    rate = Wan().rate / MICROS
    memory = round(rate * curve.window * percent / 100)
    report = simulate(
        left,
        right,
        window=TWO_MINUTES,
        condition=PREDICATE,
        budget=memory,
        split=(memory, 0),
        policy=Age(curve) if policy == "age" else policy,
        step=WAN_STEP,
        warmup=2 * curve.window,
    )
    return {
        "memory": memory,
        "recall": report.from_left / (report.exact - report.from_step),
        "predicted": float(_payoff_of(curve, rate, policy)(memory)) / (rate * curve.total),
    }


def _payoff_of(curve: AgeCurve, rate: float, policy: str) -> Callable[[float], Any]:
    """The predicted results per unit of time, as a function of memory."""
    if policy.startswith("age"):
        return curve.payoff(rate).at
    return curve.recent(rate) if policy == "fifo" else curve.until_expiry(rate)


def age_recall(*, shape: str, percent: int, policy: str, rows: int, seed: int) -> dict[str, float]:
    """Section 6.2.2: measured and predicted recall of AGE (given and learned), RECENT and UNTIL-EXPIRY."""
    stream = Aged(SHAPES[shape])
    curve, rate = curve_of(stream), stream.true_rates[0]
    memory = round(full_window(stream) * percent / 100)
    chosen: Policy | str = {"age": Age(curve), "age" + LEARNED: Age()}.get(policy, policy)
    step = FEW_ROWS if policy.endswith(LEARNED) else 1
    recall = recall_of(stream, memory, chosen, rows=rows, seed=seed, step=step, warmup=4 * WINDOW)
    return {
        "recall": recall,
        "predicted": float(_payoff_of(curve, rate, policy)(memory)) / (rate * curve.total),
    }


def whole_keys_recall(stream: Correlated, memory: float) -> float:
    """The recall by section 3.3 as printed, which counts a key only if memory holds all of its rows."""
    left, right = stream.shares
    best_first = np.argsort(-right, kind="stable")
    results = (left * right)[best_first]
    fits = np.cumsum(full_window(stream) * left[best_first]) <= memory
    return float(results[fits].sum() / results.sum())


def prob_recall(
    *, correlation: str, skew: float, percent: int, policy: str, rows: int, learned_rows: int, seed: int
) -> dict[str, float]:
    """Section 3.3: the recall of PROB, given and learned, with its prediction, also as printed.

    Under inverse correlation few left rows have most of the matches, so given frequencies are measured on long
    traces. Learned frequencies are compared with given ones on the same short trace.
    """
    stream = Correlated(CORRELATIONS[correlation], skew=skew, shuffle=seed)
    model = frequencies_of(stream)
    memory = round(full_window(stream) * percent / 100)
    if policy.endswith(LEARNED):
        return {
            "recall": recall_of(stream, memory, "prob", rows=learned_rows, seed=seed, step=FEW_ROWS),
            "predicted": recall_of(stream, memory, Prob(model), rows=learned_rows, seed=seed),
        }
    return {
        "recall": recall_of(stream, memory, Prob(model), rows=rows, seed=seed),
        "predicted": predict_recall(model, memory, rates=stream.true_rates, window=(WINDOW, 0)),
        "as printed": whole_keys_recall(stream, memory),
    }


def _payoff(stream: SyntheticPair) -> Payoff:
    if isinstance(stream, Aged):
        return curve_of(stream).payoff(stream.true_rates[0])
    return frequencies_of(stream).payoff(rates=stream.true_rates, window=(WINDOW, 0))[0]


def allocated_recall(
    joins: Mapping[str, SyntheticPair], share: float, scheme: str, *, rows: int, seed: int
) -> dict[str, float]:
    """The recall of each join when memory is allocated among them; `share` is a part of what all could use."""
    payoffs = [_payoff(stream) for stream in joins.values()]
    # PROP divides by full windows. A payoff may reach its maximum with less, if old rows have no matches.
    memory: Sequence[int] = (
        allocate(payoffs, round(share * sum(map(full_window, joins.values())))).memory
        if scheme == "alloc"
        else [round(share * full_window(stream)) for stream in joins.values()]
    )
    measured: dict[str, float] = {}
    for place, ((name, stream), payoff, given) in enumerate(zip(joins.items(), payoffs, memory, strict=True)):
        policy: Policy = Age(curve_of(stream)) if isinstance(stream, Aged) else Prob(frequencies_of(stream))
        measured |= {
            f"recall of {name}": recall_of(stream, given, policy, rows=rows, seed=seed + _SEED_STEP * place),
            f"predicted of {name}": payoff.recall(given),
            f"memory of {name}": 100 * given / sum(map(full_window, joins.values())),
        }
    least = {
        what: min(value for name, value in measured.items() if name.startswith(what))
        for what in ("recall", "predicted")
    }
    return {"least recall": least["recall"], "predicted": least["predicted"]} | measured


def allocation_by_skew(*, skew: float, scheme: str, joins: str, rows: int, seed: int) -> dict[str, float]:
    """Figure 10: a join of each correlation, with a fifth of the memory that all would need.

    Joins of the same correlation are numbered, and each has its own streams.
    """
    named: dict[str, SyntheticPair] = {}
    for name in joins.split("+"):
        count = sum(other.startswith(name) for other in named)
        named[f"{name} {count + 1}" if count else name] = Correlated(
            CORRELATIONS[name], skew=skew, shuffle=seed
        )
    return allocated_recall(named, 0.2, scheme, rows=rows, seed=seed)


def allocation_by_power(*, power: float, scheme: str, rows: int, seed: int) -> dict[str, float]:
    """Figure 11: an increasing and a decreasing age curve, with half of the memory that both would need."""
    named: dict[str, SyntheticPair] = {name: Aged(SHAPES[name], power=power) for name in ("INC", "DEC")}
    return allocated_recall(named, 0.5, scheme, rows=rows, seed=seed)


def distance(learned: AgeCurve | None, true: AgeCurve) -> float:
    """The largest difference between two cumulative age curves, relative to all matches: `max |C - C'| / n`."""
    if learned is None:
        return 1.0
    ages = np.union1d(learned.edges, true.edges)
    return float(abs(learned.cumulative(ages) - true.cumulative(ages)).max() / true.total)


def learning_curve(
    stream: Aged, policy: Age, *, windows: int, memory: int, seed: int = 0
) -> list[dict[str, float]]:
    """Learn a curve online. For each window: the distance from the true curve, and the recall."""
    rate_left, rate_right = stream.true_rates
    # Gaps are random: a few more rows complete the last window.
    traces = stream.both(int(windows * WINDOW * rate_left * 1.05) + 50, seed)
    window = Window(WINDOW, 0)
    arrivals = encode(*traces, window, "=", None).arrivals
    join = Join(window, Budget(rows=memory), policy, split=(memory, 0))
    retention = PolicyRetention(join)
    operator = Operator(join, retention)
    windows_so_far: list[dict[str, float]] = []
    counted = 0
    for left, right, moment in arrivals.steps(arrivals.cuts(FEW_ROWS), whole_instants=False):
        collected(operator.step(left, right, moment))
        if moment.now < (len(windows_so_far) + 1) * WINDOW:
            continue
        now = stream if stream.then is None or moment.now < stream.then[0] + WINDOW / 2 else stream.later
        off = distance(retention.policy.curves["left"], curve_of(now))  # type: ignore[attr-defined]  # a running `Age`
        recall = (operator.tally.from_left - counted) / (rate_right * WINDOW)
        windows_so_far.append({"window": len(windows_so_far) + 1, "off": off, "recall": recall})
        counted = operator.tally.from_left
        if len(windows_so_far) == windows:
            break
    return windows_so_far


def learned_curve(
    *, curve: str, monitoring: str, windows: int, memory: int, seed: int
) -> list[dict[str, float]]:
    """Section 2.3: a constant curve ("INC"), or one that changes after half of the windows ("INC to DEC")."""
    first, _, then = curve.partition(" to ")
    change = (float(windows // 2 * WINDOW), SHAPES[then]) if then else None
    policy = {"sample": Age(), "memory": PeriodAge()}[monitoring]
    return learning_curve(Aged(SHAPES[first], then=change), policy, windows=windows, memory=memory, seed=seed)


@cache
def _recorded(stream: str, data: str) -> tuple[Trace, Trace, Window, float]:
    left, right, window = (auctions if stream == "auctions" else tasks)(data)
    span = float(window.reach("left"))
    buffered = np.mean([np.sum((left.time <= now) & (left.time >= now - span)) for now in right.time[::100]])
    return left, right, window, float(buffered)


def recorded_recall(*, stream: str, percent: int, policy: str, data: str, seed: int) -> dict[str, float]:
    """The recall on a recorded stream, one row per step. Everything is learned online."""
    left, right, window, buffered = _recorded(stream, data)
    memory = round(buffered * percent / 100)
    report = simulate(left, right, window=window, budget=memory, split=(memory, 0), policy=policy, seed=seed)
    return {"memory": memory, "recall": report.recall}
