"""What a policy gets of a workload, by its name alone: whatever it knows, it has learned on the way."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, Final

import numpy as np

from tidegate.engine import simulate
from tidegate.experiments.ijoin.measured import Workload
from tidegate.experiments.recorded import auctions, mentions, tasks
from tidegate.experiments.stochastic_streams.setups import SETUPS
from tidegate.policies import Offline
from tidegate.streams import Aged, Correlated, StochasticPair, Trace
from tidegate.types import StepSize, Window

OPTIMUM: Final = "offline"
_TREND: Final = Window(25, 25)
"""Beyond that no rows of two trends are partners; walks are cut off there."""


@dataclass(frozen=True)
class Contest:
    """Two streams, their window, and how they are cut into steps."""

    both: Callable[[int, int], tuple[Trace, Trace]]
    window: Window
    step: StepSize = 1


def _trends(name: str) -> Contest:
    return Contest(lambda rows, seed: StochasticPair(*SETUPS[name]).both(rows, seed), _TREND, "instant")


def _aged(shape: Any) -> Contest:  # noqa: ANN401 - one of its shapes
    return Contest(lambda rows, seed: Aged(shape).both(rows, seed), Window(500, 0))


def _frequent(correlation: Any) -> Contest:  # noqa: ANN401 - one of its correlations
    return Contest(lambda rows, seed: Correlated(correlation, skew=1.0).both(rows, seed), Window(500, 0))


def _important(skew: float) -> Contest:
    return Contest(lambda rows, seed: Workload(skew=skew, seconds=rows / 5).both(seed), Window(25.0, 25.0))


CONTESTS: Final[dict[str, Contest]] = {
    "ages, increasing": _aged("increasing"),
    "ages, decreasing": _aged("decreasing"),
    "ages, bell": _aged("bell"),
    "keys, direct": _frequent("direct"),
    "keys, inverse": _frequent("inverse"),
    "keys, uncorrelated": _frequent("uncorrelated"),
    "trend, narrow": _trends("TOWER"),
    "trend, wide": _trends("ROOF"),
    "trend, uniform": _trends("FLOOR"),
    "walks": _trends("WALK"),
    "importance, even": _important(0.0),
    "importance, skewed": _important(1.0),
}
RECORDED: Final = {"auctions": auctions, "tasks": tasks, "tickers": mentions}


def contest(*, workload: str, percent: int, policy: str, rows: int, seed: int) -> dict[str, float]:
    """What a policy gets of a workload of the papers."""
    return _won(*_streams(workload, rows, seed), percent, policy, seed)


def recorded_contest(*, workload: str, percent: int, policy: str, data: str, seed: int) -> dict[str, float]:
    """What a policy gets of recorded streams."""
    return _won(*_recorded(workload, data), percent, policy, seed)


@lru_cache(maxsize=4)
def _streams(workload: str, rows: int, seed: int) -> tuple[Trace, Trace, Window, StepSize, int]:
    one = CONTESTS[workload]
    left, right = (_worthy(trace) for trace in one.both(rows, seed))
    return left, right, one.window, one.step, _full(left, right, one.window)


@lru_cache(maxsize=3)
def _recorded(workload: str, data: str) -> tuple[Trace, Trace, Window, StepSize, int]:
    left, right, window = RECORDED[workload](data)
    left, right = _worthy(left), _worthy(right)
    return left, right, window, 1, _full(left, right, window)


def _worthy(trace: Trace) -> Trace:
    """Rows of which nobody said what they are worth are worth 1, so that importance is the number of results."""
    return trace if trace.importance is not None else replace(trace, importance=np.ones(len(trace)))


def _full(left: Trace, right: Trace, window: Window) -> int:
    """The rows that an unlimited join holds at most."""
    return int(simulate(left, right, window=window, step=100).peak_rows)


def _won(
    left: Trace,
    right: Trace,
    window: Window,
    step: StepSize,
    full: int,
    percent: int,
    policy: str,
    seed: int,
) -> dict[str, float]:
    memory = max(1, round(full * percent / 100))
    chosen = Offline(weigh="importance") if policy == OPTIMUM else policy
    report = simulate(left, right, window=window, budget=memory, policy=chosen, step=step, seed=seed)
    return {"memory": memory, "importance": report.importance, "recall": report.recall}
