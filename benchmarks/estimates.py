"""The cost of estimates from a million sampled results, by aggregate and design, and that of a pandas group-by."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Final

import numpy as np
import pandas as pd
import pyarrow as pa
from rich.console import Console
from rich.table import Table

from tidegate.sampling import estimate
from tidegate.sampling.estimates.sample_design import Design

ROWS: Final = 1_000_000
REPEATS: Final = 2
WHATS: Final = ("count(*)", "sum(price)", "avg(price)", "median(price)")
METHODS: Final[tuple[Design, ...]] = ("uniform", "pps_cluster", "counted")
GROUPS: Final = {"all": None, "10 groups": "few", "10,000 groups": "many"}


def sampled(rows: int = ROWS) -> pa.Table:
    """Results in clusters of about three, in order of time."""
    rng = np.random.default_rng(1)
    owner = rng.integers(0, rows // 3, rows)
    return pa.table(
        {
            "price": rng.lognormal(3, 1, rows),
            "few": rng.integers(0, 10, rows),
            "many": rng.integers(0, 10_000, rows),
            "owner": owner,
            "time": np.sort(rng.integers(0, 100_000, rows)),
            "probability": rng.uniform(0.1, 1, rows // 3)[owner],
            "share": np.full(rows, 0.1),
        }
    )


def seconds(run: Callable[[], object]) -> float:
    """The least processor time of several runs."""
    times = []
    for _ in range(REPEATS):
        start = time.process_time()
        run()
        times.append(time.process_time() - start)
    return min(times)


def main() -> None:
    """Print the seconds of each estimate."""
    sample = sampled()
    compiled = sample.slice(0, 10)
    for method in METHODS:
        estimate(compiled, "avg(price)", method=method, probability="share")
    shown = Table(
        "aggregate",
        "design",
        *GROUPS,
        "windows of 1 % every 0.5 %",
        title=f"processor seconds, {ROWS:,} results",
    )
    for what in WHATS:
        for method in METHODS:
            probability = "share" if method == "counted" else "probability"

            def measure(by: str | None, window: int | None, every: int | None) -> float:
                return seconds(
                    lambda: estimate(
                        sample,
                        what,  # noqa: B023 - called at once
                        by=by,
                        window=window,
                        every=every,
                        method=method,  # noqa: B023 - called at once
                        probability=probability,  # noqa: B023 - called at once
                    )
                )

            cells = [measure(by, None, None) for by in GROUPS.values()] + [measure(None, 1_000, 500)]
            shown.add_row(what, method, *(f"{cell:.3f}" for cell in cells))
    frame: pd.DataFrame = sample.to_pandas()
    plain = [
        seconds(frame["price"].sum),
        *(seconds(frame.groupby(by)["price"].sum) for by in ("few", "many")),
    ]
    shown.add_row("sum(price)", "pandas, no error bars", *(f"{cell:.3f}" for cell in plain), "")
    Console().print(shown)


if __name__ == "__main__":
    main()
