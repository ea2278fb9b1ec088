"""How many results each policy finds, by workload and budget: the README's table of recall.

Every workload has 20,000 left rows, only that of the demo has as many as the demo. A budget is a share of the rows
that an exact join buffers at the same time. All policies learn while they run; `offline` knows the future and is the
best possible.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from rich.console import Console
from rich.progress import track
from rich.table import Table

from tidegate.engine.simulate import simulate
from tidegate.spark.demo import DemoScale
from tidegate.spark.demo.stream import DemoStream
from tidegate.streams import Auctions, OneToOne, RushHours, Sessions, Trace, Zipf

if TYPE_CHECKING:
    from collections.abc import Callable

BUDGETS: Final = (0.01, 0.1, 0.5)
POLICIES: Final = ("fifo", "random", "until_expiry", "prob", "age", "heeb")
_ROWS: Final = 20_000


@dataclass(frozen=True)
class Workload:
    """Two streams and a window.

    Parameters
    ----------
    name
        What joins what, in the README's words.
    streams
        Makes the two streams.
    window
        How long a row of each side stays joinable.
    step
        How many rows arrive together.
    """

    name: str
    streams: Callable[[], tuple[Trace, Trace]]
    window: tuple[float, float]
    step: int = 100


def _independent(skew: float) -> tuple[Trace, Trace]:
    keys = Zipf(keys=2_000, skew=skew)
    return keys.trace(_ROWS, seed=1), keys.trace(_ROWS, seed=2)


WORKLOADS: Final = (
    Workload(
        "purchases and clicks of accounts, a few very active (the demo)",
        lambda: DemoStream(DemoScale(), 0).traces(DemoScale.files),
        (DemoScale.minutes, 0),
        DemoScale.clicks,
    ),
    Workload("keys by Zipf's law, skew 1", lambda: _independent(1.0), (1_000, 1_000)),
    Workload(
        "auctions, and bids near their end", lambda: Auctions(600.0, lateness=3.0).both(_ROWS, 1), (600, 0)
    ),
    Workload("partners that come soon", lambda: OneToOne().both(_ROWS, 1), (500, 0)),
    Workload("user sessions: keys that begin and end", lambda: Sessions().both(_ROWS, 1), (500, 500)),
    Workload("rush hours", lambda: RushHours().both(_ROWS, 1), (500, 500)),
    Workload("equally frequent keys, at any age", lambda: _independent(0.0), (1_000, 1_000)),
)


def main() -> None:
    """Print the recall of each policy, by workload and budget."""
    table = Table("workload", "budget", *POLICIES, "best possible")
    for workload in track(WORKLOADS, "Simulating"):
        left, right = workload.streams()
        needed = simulate(left, right, window=workload.window, step=workload.step).peak_rows
        for share in BUDGETS:
            budget = max(1, int(share * needed))
            recalls = [
                simulate(
                    left, right, window=workload.window, budget=budget, policy=policy, step=workload.step
                ).recall
                for policy in (*POLICIES, "offline")
            ]
            table.add_row(workload.name, f"{share:.0%}", *(f"{recall:.2f}" for recall in recalls))
    Console(width=150).print(table)


if __name__ == "__main__":
    main()
