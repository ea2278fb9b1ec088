"""What each sampler costs beside fifo, all in one run: only the ratios mean something on a shared machine."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

import numpy as np
from rich.console import Console
from rich.table import Table

from benchmarks.policies import recorded
from tidegate.engine.operator import Join, Operator, collected
from tidegate.engine.sampling_operator import SamplingOperator
from tidegate.sampling import EqCluster, PpsCluster, Sampler, Uniform
from tidegate.types import Budget, Window

if TYPE_CHECKING:
    from tidegate.engine.arrivals import Arrivals

BUDGETS: Final = (1_000, 100_000, 1_000_000)
STEPS: Final = {1_000: 20, 100_000: 10}
"""How many steps of each size are measured."""
SAMPLERS: Final[dict[str, Sampler]] = {
    "uniform": Uniform(),
    "uniform, p=0.1": Uniform(p=0.1),
    "eq_cluster": EqCluster(),
    "pps_cluster": PpsCluster(),
}


def operators(budget: int) -> dict[str, Callable[[], Operator]]:
    """Fifo and every sampler, in half the rows that both windows hold."""
    join = Join(Window(budget, budget), Budget(rows=budget))

    def sampling(sampler: Sampler) -> Callable[[], Operator]:
        return lambda: SamplingOperator(join, sampler)

    return {"fifo": lambda: Operator(join)} | {name: sampling(sampler) for name, sampler in SAMPLERS.items()}


def measured(operator: Operator, arrivals: Arrivals, budget: int, size: int, steps: int) -> float:
    """Nanoseconds a row, with a full buffer; results are formed."""
    filling = np.arange(0, 2 * budget, 100_000)[1:].tolist()
    ends = np.array([*filling, *range(2 * budget, len(arrivals), size)])
    cuts = np.stack([np.searchsorted(side.id, ends) for side in (arrivals.left, arrivals.right)], axis=1)
    times = []
    for left, right, moment in arrivals.steps(cuts, whole_instants=False):
        start = time.perf_counter()
        collected(operator.step(left, right, moment, pairs=True))
        times.append(time.perf_counter() - start)
    return float(np.median(times[-steps:])) / size * 1e9


def main() -> None:
    """Print a table a step size: nanoseconds a row, and times fifo."""
    console = Console()
    for size, steps in STEPS.items():
        table = Table("budget", *(f"{budget:,}" for budget in BUDGETS))
        table.title = f"ns a row (times fifo) in steps of {size:,} rows, window = budget"
        costs = []
        for budget in BUDGETS:
            arrivals = recorded(budget, size, steps)
            made = operators(budget)
            costs.append({n: measured(make(), arrivals, budget, size, steps) for n, make in made.items()})
        for name in operators(1):
            table.add_row(name, *(f"{some[name]:,.0f} ({some[name] / some['fifo']:.1f})" for some in costs))
        console.print(table)


if __name__ == "__main__":
    main()
