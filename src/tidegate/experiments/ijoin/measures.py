"""The measures: one scheme on the workload of section 5, or on recorded streams."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cache, lru_cache
from typing import Final, get_args

import numpy as np

from tidegate.engine.report import Report
from tidegate.engine.simulate import simulate
from tidegate.experiments.datasets import RecordedStreams, mentions
from tidegate.experiments.ijoin.greedy import Greedy
from tidegate.experiments.ijoin.lazy_ijoin import LazyIJoin, Recompute
from tidegate.policies import Heeb, IJoin, Offline, Policy, Prob
from tidegate.streams import Trace, Zipf
from tidegate.types import InputError, Order, Split, StepSize, Window

EXACT: Final = "EXACT"
"""The scheme without a memory limit, which evicts nothing."""
UNPRODUCTIVE: Final = 3.0


@dataclass(frozen=True)
class Workload:
    """Random values, each with an importance.

    Parameters
    ----------
    memory, window, domain
        As in Table 5: rows, seconds, distinct values.
    skew
        0 for equally frequent values, 1 for the classic Zipf law. The paper does not state it.
    level
        Whether all values are equally important (section 5.3).
    rate
        Rows per second of both streams together. The paper prints 100 to 200, but Table 6 counts 1,000 evictions in
        100 seconds, and 80 results, which is a rate of 10.
    seconds
        How long it runs.

    Deviations
    ----------
    Each run draws which values are frequent and which are important. Importance belongs to the value, is a whole
    number from 1 to 100, and does not change.
    """

    memory: int = 10
    window: float = 25.0
    domain: int = 100
    skew: float = 0.0
    level: bool = False
    rate: float = 10.0
    seconds: float = 100.0

    def both(self, seed: int) -> tuple[Trace, Trace]:
        """R and S of one run."""
        rng = np.random.default_rng((seed, 1))
        values = Zipf(self.domain, self.skew, self.rate / 2, "poisson", "anywhere", shuffle=seed)
        importance = np.ones(self.domain) if self.level else rng.integers(1, 101, self.domain).astype(float)
        rows = round(self.rate / 2 * self.seconds)
        traces = (values.trace(rows, seed=2 * seed + which) for which in range(2))
        left, right = (replace(trace, importance=importance[trace.keys[0].to_numpy()]) for trace in traces)
        return left, right


def schemes(unproductive: float = UNPRODUCTIVE) -> dict[str, str | Policy]:
    """The schemes of section 5, IJOIN as printed, and ours, which use expected instead of past matches."""
    return {
        EXACT: "fifo",
        "FIFO": "fifo",
        "RAND": "random",
        "SIZE": "size",
        "GREEDY": Greedy(),
        "IJOIN": IJoin(unproductive=unproductive),
        "IJOIN as printed": IJoin(maturity=2.0, unproductive=unproductive, immature="priority"),
        "expected": IJoin(expects=Prob()),
        "expected by heeb": IJoin(expects=Heeb()),
    }


@lru_cache(maxsize=8)
def _both(workload: Workload, seed: int) -> tuple[Trace, Trace]:
    return workload.both(seed)


def section5(
    *,
    scheme: str,
    seed: int,
    memory: int = Workload.memory,
    window: float = Workload.window,
    domain: int = Workload.domain,
    skew: float = Workload.skew,
    level: bool = Workload.level,
    unproductive: float = UNPRODUCTIVE,
    order: Order = "shed-first",
    seconds: float = Workload.seconds,
) -> dict[str, float]:
    """The results of a scheme on the workload of section 5, with the same runs for all schemes."""
    workload = Workload(memory, float(window), domain, skew, level, seconds=seconds)
    left, right = _both(replace(workload, memory=Workload.memory), seed)
    span = Window(workload.window, workload.window)
    return _measure(
        left, right, scheme, policy_of(scheme, unproductive), span, memory, seed=seed, order=order
    )


def policy_of(scheme: str, unproductive: float = UNPRODUCTIVE) -> str | Policy:
    """The policy of a scheme of section 5 or Table 6, of iJoin with a fairness ("ijoin 0.25"), or of ours."""
    name, _, fairness = scheme.partition(" ")
    if name == "ijoin":
        return IJoin(fairness=float(fairness))
    known: dict[str, str | Policy] = schemes(unproductive) | {
        how: LazyIJoin(recompute=how) for how in get_args(Recompute)
    }
    known |= {"OPTIMUM": Offline(weigh="importance"), "expected by age": IJoin(expects="age")}
    if scheme not in known:
        raise InputError(f"unknown scheme {scheme!r}; use one of {', '.join(known)}")
    return known[scheme]


MENTIONS_PER_DAY: Final = 2880
"""Of all tickers together."""


@cache
def _mentions(data: str) -> RecordedStreams:
    return mentions(data)


def ticker_importance(*, scheme: str, percent: int, data: str, seed: int) -> dict[str, float]:
    """The results of a scheme on mentions of ten tickers, joined with the price of the day."""
    left, right, window = _mentions(data)
    memory = MENTIONS_PER_DAY * percent // 100
    policy = policy_of(scheme, 0.12 * float(window.reach("left")))
    return _measure(
        left,
        right,
        scheme,
        policy,
        window,
        memory,
        seed=seed,
        order="probe-first",
        split=(memory, 0),
        step="instant",
    )


def _measure(
    left: Trace,
    right: Trace,
    scheme: str,
    policy: str | Policy,
    window: Window,
    memory: int,
    *,
    seed: int,
    order: Order,
    split: Split = "even",
    step: StepSize = 1,
) -> dict[str, float]:
    limit = None if scheme == EXACT else memory
    report = simulate(
        left,
        right,
        window=window,
        budget=limit,
        policy=policy,
        split=split,
        order=order,
        step=step,
        seed=seed,
    )
    return {
        "importance": report.importance,
        "size": report.results,
        "fairness": report.fairness,
        "computed": _computed(report),
    }


def _computed(report: Report) -> float:
    """How often priorities were computed."""
    return next((one.value for one in report.learned if one.model == "recomputations"), 0.0)
