"""What a policy gets of a workload, by its name alone: whatever it knows, it has learned on the way."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, Final, NamedTuple

import numpy as np

from tidegate.engine import simulate
from tidegate.experiments.ijoin.measured import Workload
from tidegate.experiments.recorded import Recorded, auctions, mentions, tasks
from tidegate.experiments.stochastic_streams.setups import SETUPS
from tidegate.experiments.windowed_joins import wan
from tidegate.policies import Offline
from tidegate.streams import Aged, Correlated, Normal, StochasticPair, Trace
from tidegate.types import Condition, StepSize, Window

OPTIMUM: Final = "offline"
_TREND: Final = Window(25, 25)
"""Beyond that no rows of two trends are partners; walks are cut off there."""
_NORMAL: Final = Window(100, 100)
_A_SECOND: Final = 5
"""Rows of either source of the WAN trace, a tenth of the paper's: two minutes of them are fewer than all rows."""


@dataclass(frozen=True)
class Contest:
    """Two streams, their window, how they are cut into steps, and how keys match."""

    both: Callable[[int, int], tuple[Trace, Trace]]
    window: Window
    step: StepSize = 1
    condition: Condition = "="


def _trends(name: str) -> Contest:
    return Contest(lambda rows, seed: StochasticPair(*SETUPS[name]).both(rows, seed), _TREND, "instant")


def _aged(shape: Any) -> Contest:  # noqa: ANN401 - one of its shapes
    return Contest(lambda rows, seed: Aged(shape).both(rows, seed), Window(500, 0))


def _frequent(correlation: Any) -> Contest:  # noqa: ANN401 - one of its correlations
    return Contest(lambda rows, seed: Correlated(correlation, skew=1.0).both(rows, seed), Window(500, 0))


def _important(skew: float) -> Contest:
    return Contest(lambda rows, seed: Workload(skew=skew, seconds=rows / 5).both(seed), Window(25.0, 25.0))


def _far() -> Contest:
    source = wan.Wan(rate=_A_SECOND)
    return Contest(
        lambda rows, seed: source.both(rows / _A_SECOND, seed), wan.WINDOW, condition=wan.PREDICATE
    )


def _unequal() -> Contest:
    """Five rows of the right come with one of the left: as many rows of both as other workloads have."""
    return Contest(lambda rows, seed: Normal().both(rows // 3, seed), _NORMAL)


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
    "keys, normal": _unequal(),
    "wide area": _far(),
    "importance, even": _important(0.0),
    "importance, skewed": _important(1.0),
}
RECORDED: Final[dict[str, tuple[Callable[[str], Recorded], StepSize]]] = {
    "auctions": (auctions, 1),
    "tasks": (tasks, 1),
    "tickers": (mentions, "instant"),
}
"""What reads each, and its steps: mentions of all tickers come at once."""


def contest(*, workload: str, percent: int, policy: str, rows: int, seed: int) -> dict[str, float]:
    """What a policy gets of a workload of the papers."""
    return _won(_streams(workload, rows, seed), percent, policy, seed)


def recorded_contest(*, workload: str, percent: int, policy: str, data: str, seed: int) -> dict[str, float]:
    """What a policy gets of recorded streams."""
    return _won(_recorded(workload, data), percent, policy, seed)


class Drawn(NamedTuple):
    """The rows of a contest, what `simulate` is told of them, and how many an unlimited join holds at most."""

    left: Trace
    right: Trace
    told: Mapping[str, Any]
    full: int


@lru_cache(maxsize=4)
def _streams(workload: str, rows: int, seed: int) -> Drawn:
    one = CONTESTS[workload]
    return _drawn(*one.both(rows, seed), window=one.window, step=one.step, condition=one.condition)


@lru_cache(maxsize=3)
def _recorded(workload: str, data: str) -> Drawn:
    read, step = RECORDED[workload]
    left, right, window = read(data)
    return _drawn(left, right, window=window, step=step)


def _drawn(left: Trace, right: Trace, **told: Any) -> Drawn:  # noqa: ANN401 - as `simulate` has it
    left, right = _worthy(left), _worthy(right)
    return Drawn(left, right, told, int(simulate(left, right, **told).peak_rows))


def _worthy(trace: Trace) -> Trace:
    """Rows of which nobody said what they are worth are worth 1, so that importance is the number of results."""
    return trace if trace.importance is not None else replace(trace, importance=np.ones(len(trace)))


def _won(drawn: Drawn, percent: int, policy: str, seed: int) -> dict[str, float]:
    memory = max(1, round(drawn.full * percent / 100))
    chosen = Offline(weigh="importance") if policy == OPTIMUM else policy
    report = simulate(drawn.left, drawn.right, budget=memory, policy=chosen, seed=seed, **drawn.told)
    return {"memory": memory, "importance": report.importance, "recall": report.recall}
