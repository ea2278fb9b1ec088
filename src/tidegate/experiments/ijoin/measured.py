"""Section 5's workload under its schemes, run by run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final, NamedTuple

import numpy as np

from tidegate.engine.simulate import simulate
from tidegate.policies import Heeb, IJoin, Policy, Prob
from tidegate.streams import Trace, Zipf
from tidegate.types import Array, Combine, Order, Report, Split, StepSize, Window

RUNS: Final = 10
EXACT: Final = "EXACT"
"""The scheme without a limit of memory, under which nobody has to go."""
UNPRODUCTIVE: Final = 3.0


@dataclass(frozen=True)
class Workload:
    """Categories of some importance, at random.

    Parameters
    ----------
    memory, window, domain
        As in Table 5: rows, seconds, distinct values.
    skew
        0 for values that are equally frequent, 1 for the classic law; the paper does not say.
    level
        Whether all values are equally important (section 5.3).
    rate
        Rows a second of both streams together. The paper prints 100 to 200, but Table 6 counts 1,000 makings of
        room in 100 seconds, and 80 results: that is 10.
    seconds
        How long it runs.

    Deviations
    ----------
    Which values are frequent, and which important, is drawn for each run. Importance belongs to the value, and is
    whole, from 1 to 100. It is not redefined.
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
        worth = np.ones(self.domain) if self.level else rng.integers(1, 101, self.domain).astype(float)
        rows = round(self.rate / 2 * self.seconds)
        traces = (values.trace(rows, seed=2 * seed + which) for which in range(2))
        left, right = (replace(trace, importance=worth[trace.keys[0].to_numpy()]) for trace in traces)
        return left, right


class Measured(NamedTuple):
    """What a scheme gets of a workload in each run, the same runs for all schemes."""

    case: str
    scheme: str
    importance: Array
    size: Array
    fairness: Array
    computed: Array


def schemes(unproductive: float = UNPRODUCTIVE) -> dict[str, str | Policy]:
    """The schemes that section 5 compares; IJOIN also as printed; and ours, that expects instead of looking back."""
    return {
        EXACT: "fifo",
        "FIFO": "fifo",
        "RAND": "random",
        "SIZE": "size",
        "GREEDY": "importance",
        "IJOIN": IJoin(unproductive=unproductive),
        "IJOIN as printed": IJoin(maturity=2.0, unproductive=unproductive, immature="priority"),
        "expected": IJoin(expects=Prob()),
        "expected by heeb": IJoin(expects=Heeb()),
    }


def measured(
    case: str,
    streams: Sequence[tuple[Trace, Trace]],
    compared: Mapping[str, str | Policy],
    *,
    window: Window,
    memory: int,
    order: Order = "shed-first",
    split: Split = "even",
    step: StepSize = 1,
    combine: Combine = "min",
) -> list[Measured]:
    """Run streams under some schemes."""
    found = []
    for scheme, policy in compared.items():
        limit = None if scheme == EXACT else memory
        reports = [
            simulate(
                left, right, window=window, budget=limit, policy=policy, split=split, order=order, step=step,
                combine=combine, seed=seed,
            )
            for seed, (left, right) in enumerate(streams)
        ]  # fmt: skip
        found.append(
            Measured(
                case,
                scheme,
                importance=np.array([report.importance for report in reports]),
                size=np.array([report.results for report in reports]),
                fairness=np.array([report.fairness for report in reports]),
                computed=np.array([_computed(report) for report in reports]),
            )
        )
    return found


def workload_measured(
    case: str,
    workload: Workload,
    compared: Mapping[str, str | Policy],
    runs: int = RUNS,
    order: Order = "shed-first",
) -> list[Measured]:
    """Run a workload under some schemes."""
    streams = [workload.both(seed) for seed in range(runs)]
    window = Window(workload.window, workload.window)
    return measured(case, streams, compared, window=window, memory=workload.memory, order=order)


def _computed(report: Report) -> float:
    """How often priorities were computed."""
    return next((told.value for told in report.learned if told.model == "recomputations"), 0.0)
