"""The measures: the importance of a policy on a workload. Policies are given by name and learn everything online."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, Final, NamedTuple

import numpy as np

from tidegate.engine import simulate
from tidegate.experiments.datasets import RecordedStreams, auctions, mentions, tasks
from tidegate.experiments.ijoin.measures import Workload
from tidegate.experiments.stochastic_streams.setups import SETUPS
from tidegate.experiments.windowed_joins import wan_trace
from tidegate.policies import Offline
from tidegate.streams import Aged, Correlated, Normal, StochasticPair, Trace
from tidegate.types import Condition, StepSize, Window

OPTIMUM: Final = "offline"
_TREND: Final = Window(25, 25)
"""Rows of two trends never match beyond this window. Walks are limited to it."""
_NORMAL: Final = Window(100, 100)
_WAN_RATE: Final = 5
"""Rows per second of each source of the WAN trace. A tenth of the paper's, so a window is shorter than the trace."""


@dataclass(frozen=True)
class Contest:
    """Two streams, their window, their steps, and how keys match."""

    both: Callable[[int, int], tuple[Trace, Trace]]
    window: Window
    step: StepSize = 1
    condition: Condition = "="


def _trends(name: str) -> Contest:
    return Contest(lambda rows, seed: StochasticPair(*SETUPS[name]).both(rows, seed), _TREND, "instant")


def _aged(shape: Any) -> Contest:  # noqa: ANN401 - one of its shapes
    return Contest(lambda rows, seed: Aged(shape).both(rows, seed), Window(500, 0))


def _correlated(correlation: Any) -> Contest:  # noqa: ANN401 - one of its correlations
    return Contest(lambda rows, seed: Correlated(correlation, skew=1.0).both(rows, seed), Window(500, 0))


def _with_importances(skew: float) -> Contest:
    return Contest(lambda rows, seed: Workload(skew=skew, seconds=rows / 5).both(seed), Window(25.0, 25.0))


def _wide_area() -> Contest:
    source = wan_trace.Wan(rate=_WAN_RATE)
    return Contest(
        lambda rows, seed: source.both(rows / _WAN_RATE, seed),
        wan_trace.WINDOW,
        condition=wan_trace.PREDICATE,
    )


def _normal_keys() -> Contest:
    """Five right rows come with each left row. Both together have as many rows as other workloads."""
    return Contest(lambda rows, seed: Normal().both(rows // 3, seed), _NORMAL)


CONTESTS: Final[dict[str, Contest]] = {
    "ages, increasing": _aged("increasing"),
    "ages, decreasing": _aged("decreasing"),
    "ages, bell": _aged("bell"),
    "keys, direct": _correlated("direct"),
    "keys, inverse": _correlated("inverse"),
    "keys, uncorrelated": _correlated("uncorrelated"),
    "trend, narrow": _trends("TOWER"),
    "trend, wide": _trends("ROOF"),
    "trend, uniform": _trends("FLOOR"),
    "walks": _trends("WALK"),
    "keys, normal": _normal_keys(),
    "wide area": _wide_area(),
    "importance, even": _with_importances(0.0),
    "importance, skewed": _with_importances(1.0),
}
RECORDED: Final[dict[str, tuple[Callable[[str], RecordedStreams], StepSize]]] = {
    "auctions": (auctions, 1),
    "tasks": (tasks, 1),
    "tickers": (mentions, "instant"),
}
"""The reader of each stream, and its steps. Mentions of all tickers come at the same time."""


def contest(*, workload: str, percent: int, policy: str, rows: int, seed: int) -> dict[str, float]:
    """The importance of a policy on a workload of the papers."""
    return _measure(_streams(workload, rows, seed), percent, policy, seed)


def recorded_contest(*, workload: str, percent: int, policy: str, data: str, seed: int) -> dict[str, float]:
    """The importance of a policy on recorded streams."""
    return _measure(_recorded(workload, data), percent, policy, seed)


class ContestStreams(NamedTuple):
    """The rows of a contest, the options of `simulate`, and the most rows that an unlimited join buffers."""

    left: Trace
    right: Trace
    options: Mapping[str, Any]
    full: int


@lru_cache(maxsize=4)
def _streams(workload: str, rows: int, seed: int) -> ContestStreams:
    one = CONTESTS[workload]
    return _contest_streams(*one.both(rows, seed), window=one.window, step=one.step, condition=one.condition)


@lru_cache(maxsize=3)
def _recorded(workload: str, data: str) -> ContestStreams:
    read, step = RECORDED[workload]
    left, right, window = read(data)
    return _contest_streams(left, right, window=window, step=step)


def _contest_streams(left: Trace, right: Trace, **options: Any) -> ContestStreams:  # noqa: ANN401 - as `simulate` has it
    left, right = _with_importance(left), _with_importance(right)
    return ContestStreams(left, right, options, int(simulate(left, right, **options).peak_rows))


def _with_importance(trace: Trace) -> Trace:
    """Rows without an importance get 1, so that the importance is the number of results."""
    return trace if trace.importance is not None else replace(trace, importance=np.ones(len(trace)))


def _measure(streams: ContestStreams, percent: int, policy: str, seed: int) -> dict[str, float]:
    memory = max(1, round(streams.full * percent / 100))
    chosen = Offline(weigh="importance") if policy == OPTIMUM else policy
    report = simulate(streams.left, streams.right, budget=memory, policy=chosen, seed=seed, **streams.options)
    return {"memory": memory, "importance": report.importance, "recall": report.recall}
