"""Long windows and wide rows: what the join's state costs, beside Spark's own join on the same files, in one run.

With a window of two micro-batches half of all results have both rows in one micro-batch, and need no memory. With
one of twenty micro-batches nearly all of them need it. `python -m benchmarks.state --help` has the options.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
from collections.abc import Sequence
from functools import partial
from pathlib import Path

from pyspark.sql import SparkSession
from rich.console import Console
from rich.table import Table

from benchmarks.spark import (
    DEFAULT_STORE,
    SECONDS,
    STATE_FORMAT_2,
    STATE_FORMAT_4,
    Contenders,
    QueryMeasurement,
    bounded_join,
    own_join,
    shares,
    take_turns,
    write,
)
from tidegate.spark.session.configuration import STATE_STORE_PROVIDER
from tidegate.spark.session.local import local_session

WARM = 2
"""The micro-batch that fills the window, and the first of the usual size."""
PEER = "Spark's own, RocksDB, state format 4"


def main(
    rows: int = 50_000,
    windows: Sequence[int] = (20,),
    payloads: Sequence[int] = (16, 500),
    budgets: Sequence[int] = (),
    batches: int = 10,
    turns: int = 3,
) -> None:
    """Measure rows a second in steady state, bytes written, workers' memory, and how many results are found.

    Parameters
    ----------
    rows
        How many a micro-batch has, both sides together.
    windows
        How many micro-batches a window has, a row's past and future together; a table each.
    payloads
        How many bytes the random string of each row has; a table each.
    budgets
        Budgets in rows beside a tenth of the window.
    batches
        How many micro-batches are measured, after the window is full.
    turns
        How often each query runs; medians are shown.
    """
    console = Console(width=150)
    spark = local_session("bench", memory="6g")
    try:
        for window in windows:
            for payload in payloads:
                console.print(_measured(spark, rows, window, payload, budgets, batches, turns))
    finally:
        spark.stop()


def _measured(
    spark: SparkSession,
    rows: int,
    window: int,
    payload: int,
    budgets: Sequence[int],
    batches: int,
    turns: int,
) -> Table:
    with tempfile.TemporaryDirectory() as folder:
        # A row's window lasts half of that before it, and half after it.
        side = max(1, window // 2)
        inside = write(Path(folder), rows, WARM + batches, window=side, payload=payload, filled=True)[WARM:]
        seconds = SECONDS * side
        own = partial(own_join, seconds=seconds)
        contenders: Contenders = {
            "Spark's own, default store": ({STATE_STORE_PROVIDER: DEFAULT_STORE}, own),
            "Spark's own, RocksDB, state format 2": (STATE_FORMAT_2, own),
            PEER: (STATE_FORMAT_4, own),
            "Tidegate, a tenth of the window": ({}, bounded_join(rows * window // 10, seconds)),
            **{f"Tidegate, {budget:,} rows": ({}, bounded_join(budget, seconds)) for budget in budgets},
            "Tidegate, no limit": ({}, bounded_join(None, seconds)),
        }
        found = take_turns(spark, Path(folder), contenders, turns, WARM)
    every = max(m.results for runs in found.values() for m in runs)
    table = Table(
        f"window of {window} micro-batches of {rows:,} rows, {payload} bytes of payload",
        "thousand rows/s",
        "of format 4",
        "of all results",
        "across micro-batches",
        "state MB",
        "MB written a micro-batch",
        "largest worker MB",
    )
    peer = _median(found[PEER], "rate")
    for name, runs in found.items():
        rate, results = _median(runs, "rate"), _median(runs, "results")
        state = _median(runs, "state_bytes")
        table.add_row(
            name,
            f"{rate / 1e3:.1f}",
            f"{rate / peer:.2f}",
            *shares(results, every, inside),
            f"{state / 1e6:.1f}" if state else "",
            f"{_median(runs, 'written_bytes') / 1e6:.1f}",
            f"{_median(runs, 'worker_bytes') / 1e6:.0f}" if name.startswith("Tidegate") else "",
        )
    return table


def _median(runs: Sequence[QueryMeasurement], name: str) -> float:
    return float(statistics.median(getattr(run, name) for run in runs))


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=50_000, help="rows of a micro-batch, both sides together")
    parser.add_argument(
        "--windows", type=int, nargs="+", default=[20], help="micro-batches of a window, past and future"
    )
    parser.add_argument("--payloads", type=int, nargs="+", default=[16, 500], help="bytes of a row's string")
    parser.add_argument("--budgets", type=int, nargs="*", default=[], help="further budgets in rows")
    parser.add_argument("--batches", type=int, default=10, help="micro-batches that are measured")
    parser.add_argument("--turns", type=int, default=3, help="how often each query runs; medians are shown")
    return parser.parse_args()


if __name__ == "__main__":
    main(**vars(_options()))
