"""The cost of each policy compared with fifo, in one run; on a shared machine, compare only ratios."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Final

import numpy as np
from rich.console import Console
from rich.progress import track
from rich.table import Table

from tidegate.engine.encode import encode
from tidegate.engine.join import Join
from tidegate.engine.operator import Operator, collected
from tidegate.engine.simulate import simulate
from tidegate.models import AR1, AgeCurve, Frequency, LinearTrend, Noise, Process, RandomWalk
from tidegate.policies import (
    Age,
    Fifo,
    FlowExpect,
    Heeb,
    HeebHistogram,
    IJoin,
    Importance,
    Life,
    Policy,
    Prob,
    Random,
    Size,
)
from tidegate.streams import Trace
from tidegate.types import Budget, Window

if TYPE_CHECKING:
    from tidegate.engine.arrivals import Arrivals
    from tidegate.types import Array

_SKEW: Final = 1.5
BUDGETS: Final = (1_000, 100_000, 1_000_000)
STEPS: Final = {1: 40, 1_000: 20, 100_000: 30}
"""The number of measured steps of each size."""
SETS: Final = (("flow_expect", 10, 600), ("flow_expect", 50, 600), ("offline", 1_000, 100_000))
"""Policies that decide on sets: budget, and rows of both sides."""


def skewed(rows: int, budget: int, seed: int) -> dict[str, Array]:
    """Four times as many keys as rows in the budget, some more frequent; one row per unit of time."""
    draws = np.random.default_rng(seed).random(rows)
    importance = np.random.default_rng(seed + 100).random(rows)
    return {
        "key": (4 * budget * draws**_SKEW).astype(np.int64),
        "time": np.arange(rows),
        "importance": importance,
    }


def policies(budget: int) -> dict[str, Policy]:
    """Each policy, with a model and without."""
    curve = AgeCurve(np.linspace(0, budget, 65), np.linspace(0.1, 1, 64))
    shares = np.arange(4 * budget), np.diff(np.linspace(0, 1, 4 * budget + 1) ** (1 / _SKEW))
    return {
        "fifo": Fifo(),
        "random": Random(),
        "size": Size(),
        "size, by matches": Size(counts="matches"),
        "prob, given": Prob(Frequency(shares, shares)),
        "prob, learned": Prob(),
        "life, learned": Life(),
        "age, given": Age(curve),
        "age, learned": Age(),
        "heeb, learned": Heeb(),
        "heeb, trend": _both(LinearTrend(1, 0, Noise(4 * budget))),
        "heeb, trend of speed 0.9": _both(LinearTrend(0.9, 0, Noise(sigma=float(budget)))),
        "heeb, walk": _both(RandomWalk(0, Noise(sigma=5.0))),
        "heeb, AR(1)": _both(AR1(0.2 * budget, 0.9, budget / 2)),
        "heeb_histogram": HeebHistogram(),
        "importance": Importance(),
        "ijoin": IJoin(),
        "ijoin, expects prob": IJoin(expects=Prob()),
    }


def _both(process: Process) -> Heeb:
    return Heeb(process, process)


def recorded(budget: int, size: int, steps: int) -> Arrivals:
    """Rows that fill the buffer, and rows that are measured."""
    rows = budget + size * (steps + 2) // 2
    left, right = (Trace.of(skewed(rows, budget, seed)) for seed in (1, 2))
    return encode(left, right, Window(budget, budget), "=", None).arrivals


def measured(policy: Policy, arrivals: Arrivals, budget: int, size: int, steps: int) -> float:
    """Nanoseconds per row, with a full buffer."""
    window = Window(budget, budget)
    operator = Operator(Join(window, Budget(rows=budget), policy))
    # Large steps fill the buffer; the first ones of the measured size compile and warm up.
    filling = np.arange(0, 2 * budget, 100_000)[1:].tolist()
    ends = np.array([*filling, *range(2 * budget, len(arrivals), size)])
    cuts = np.stack([np.searchsorted(side.id, ends) for side in (arrivals.left, arrivals.right)], axis=1)
    times = []
    for left, right, moment in arrivals.steps(cuts, whole_instants=False):
        start = time.perf_counter()
        collected(operator.step(left, right, moment))
        times.append(time.perf_counter() - start)
    return float(np.median(times[-steps:])) / size * 1e9


def main() -> None:
    """Print nanoseconds per row for each step size, and a table of policies that decide on sets of rows."""
    console = Console()
    for size, steps in STEPS.items():
        costs = {
            budget: _costs(budget, size, steps)
            for budget in track(
                BUDGETS, f"steps of {size:,} rows", console=Console(stderr=True), transient=True
            )
        }
        title = f"ns per row (times fifo) in steps of {size:,} rows, buffer full, window = budget"
        table = Table("budget", *(f"{budget:,}" for budget in BUDGETS), title=title)
        for name in policies(1):
            cells = (f"{cost[name]:,.0f} ({cost[name] / cost['fifo']:.1f})" for cost in costs.values())
            table.add_row(name, *cells)
        console.print(table)
    console.print(_sets())


def _sets() -> Table:
    """The cost of policies that decide on sets of rows, one row per step: total seconds, and times fifo."""
    ahead = FlowExpect().ahead
    title = f"total seconds, one row per step, window = budget (flow_expect looks {ahead} rows ahead)"
    table = Table("policy", "budget", "rows", "seconds", "ms per row", "fifo", "times fifo", title=title)
    for name, budget, rows in track(SETS, "sets", console=Console(stderr=True), transient=True):
        seconds, fifo = (_whole(policy, budget, rows) for policy in (name, "fifo"))
        shown = (f"{seconds:.2f}", f"{seconds / rows * 1e3:.3g}", f"{fifo:.4f}", f"{seconds / fifo:,.0f}")
        table.add_row(name, f"{budget:,}", f"{rows:,}", *shown)
    return table


def _whole(policy: str, budget: int, rows: int) -> float:
    """Seconds for all rows, after a few that compile and warm up."""
    for count in (100, rows):
        left, right = (skewed(count // 2, budget, seed) for seed in (1, 2))
        start = time.perf_counter()
        simulate(left, right, window=(budget, budget), budget=budget, policy=policy, step=1)
    return time.perf_counter() - start


def _costs(budget: int, size: int, steps: int) -> dict[str, float]:
    arrivals = recorded(budget, size, steps)
    return {
        name: measured(policy, arrivals, budget, size, steps) for name, policy in policies(budget).items()
    }


if __name__ == "__main__":
    main()
