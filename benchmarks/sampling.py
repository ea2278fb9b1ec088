"""The cost of each sampler relative to `fifo`, measured in one run: on a shared machine, compare ratios only."""

from __future__ import annotations

import os
import time
from typing import Any, Final

import numpy as np
from rich.console import Console
from rich.table import Table

from benchmarks.policies import recorded
from tidegate.engine.join import Join
from tidegate.engine.operator import Operator, collected
from tidegate.engine.sampler_retention import SamplerRetention
from tidegate.sampling import EqCluster, PpsCluster, Sampler, Uniform
from tidegate.types import Budget, Window

BUDGETS: Final = (1_000, 100_000, 1_000_000)
STEPS: Final = {1_000: 20, 100_000: 25}
"""The number of measured steps of each size."""
SAMPLERS: Final[dict[str, Sampler]] = {
    "uniform": Uniform(),
    "uniform, p=0.1": Uniform(p=0.1),
    "eq_cluster": EqCluster(),
    "pps_cluster": PpsCluster(),
}


def operators(budget: int) -> dict[str, Operator[Any]]:
    """`fifo` and every sampler, with a budget of half the rows of both windows."""
    join = Join(Window(budget, budget), Budget(rows=budget))
    sampled = {name: Operator(join, SamplerRetention(join, sampler)) for name, sampler in SAMPLERS.items()}
    return {"fifo": Operator(join)} | sampled


def measure(budget: int, size: int, steps: int) -> dict[str, tuple[float, float]]:
    """Processor and wall time in nanoseconds per row, with a full buffer; results are formed.

    All take turns at each step, so that other load on the machine affects all equally.
    """
    arrivals = recorded(budget, size, steps)
    filling = np.arange(0, 2 * budget, 100_000)[1:].tolist()
    ends = np.array([*filling, *range(2 * budget, len(arrivals), size)])
    cuts = np.stack([np.searchsorted(side.id, ends) for side in (arrivals.left, arrivals.right)], axis=1)
    running = operators(budget)
    times: dict[str, list[tuple[float, float]]] = {name: [] for name in running}
    for left, right, moment in arrivals.steps(cuts, whole_instants=False):
        for name, operator in running.items():
            begun = time.process_time(), time.perf_counter()
            collected(operator.step(left, right, moment, pairs=True))
            times[name].append((time.process_time() - begun[0], time.perf_counter() - begun[1]))
    medians = {name: np.median(some[-steps:], axis=0) / size * 1e9 for name, some in times.items()}
    return {name: (float(cpu), float(wall)) for name, (cpu, wall) in medians.items()}


def main() -> None:
    """Print a table for each step size: processor time per row, and ratios to `fifo` by processor and wall time."""
    console = Console()
    for size, steps in STEPS.items():
        table = Table("budget", *(f"{budget:,}" for budget in BUDGETS))
        load = os.getloadavg()[0]
        table.title = (
            f"processor ns a row (times fifo; by wall) in steps of {size:,} rows, medians of {steps}, "
            f"window = budget, load average {load:.1f}"
        )
        costs = [measure(budget, size, steps) for budget in BUDGETS]
        for name in operators(1):
            ratios = [(some[name][0], *np.divide(some[name], some["fifo"])) for some in costs]
            table.add_row(name, *(f"{ns:,.0f} ({cpu:.1f}; {wall:.1f})" for ns, cpu, wall in ratios))
        console.print(table)


if __name__ == "__main__":
    main()
