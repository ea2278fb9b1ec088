"""Compare joins on Spark in a window of many micro-batches, with narrow and with wide rows.

With a window of two micro-batches, half of all results have both rows in one micro-batch, and need no memory. With
twenty micro-batches, almost all results need memory. `python -m benchmarks.long_window --help` lists the options.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
from collections.abc import Sequence
from functools import partial
from pathlib import Path

from rich.console import Console
from rich.table import Table

from benchmarks.spark import (
    DEFAULT_STORE,
    SECONDS,
    STATE_FORMAT_4,
    Contenders,
    bounded_join,
    own_join,
    shares,
    take_turns,
    write,
)
from tidegate.spark.session.configuration import PROVIDER
from tidegate.spark.session.local import local_session

WARM = 2
"""The micro-batch that fills the window, and the first of the usual size."""


def main(
    rows: int = 50_000,
    window: int = 20,
    payloads: Sequence[int] = (16, 500),
    batches: int = 6,
    turns: int = 1,
) -> None:
    """Measure rows per second in steady state, and the share of results that is found.

    Parameters
    ----------
    rows
        The number of rows per micro-batch, both sides together.
    window
        The length of the window in micro-batches, past and future together.
    payloads
        The length of each row's string in bytes; each gives a table.
    batches
        The number of measured micro-batches, after the window is full.
    turns
        The number of runs of each query; the fastest counts.
    """
    console = Console()
    spark = local_session("bench", memory="6g")
    try:
        for payload in payloads:
            with tempfile.TemporaryDirectory() as folder:
                # A row's window lasts half of that before it, and half after it.
                side = window // 2
                inside = write(Path(folder), rows, WARM + batches, window=side, payload=payload, filled=True)[
                    WARM:
                ]
                seconds = SECONDS * side
                own = partial(own_join, seconds=seconds)
                contenders: Contenders = {
                    "Spark's own, default store": ({PROVIDER: DEFAULT_STORE}, own),
                    "Spark's own, RocksDB, state format 4": (STATE_FORMAT_4, own),
                    "Tidegate, a tenth of the window": ({}, bounded_join(rows * window // 10, seconds)),
                    "Tidegate, no limit": ({}, bounded_join(None, seconds)),
                }
                measured = take_turns(spark, Path(folder), contenders, turns, WARM)
            every = max(m.results for runs in measured.values() for m in runs)
            table = Table(
                f"window of {window} micro-batches of {rows:,} rows, {payload} bytes of payload",
                "thousand rows/s",
                "results",
                "of all",
                "across micro-batches",
                "state MB",
            )
            for name, runs in measured.items():
                best = max(runs, key=lambda m: m.rate)
                table.add_row(
                    name,
                    f"{best.rate / 1e3:.1f}",
                    f"{best.results:,.0f}",
                    *shares(best.results, every, inside),
                    f"{best.state_bytes / 1e6:.1f}" if best.state_bytes else "",
                )
            console.print(table)
            console.print(
                f"{statistics.median(inside):,.0f} results per micro-batch have both rows in it and need no memory"
            )
    finally:
        spark.stop()


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=50_000, help="rows per micro-batch, both sides together")
    parser.add_argument(
        "--window", type=int, default=20, help="length of the window in micro-batches, past and future"
    )
    parser.add_argument(
        "--payloads", type=int, nargs="+", default=[16, 500], help="lengths of a row's string in bytes"
    )
    parser.add_argument("--batches", type=int, default=6, help="number of measured micro-batches")
    parser.add_argument(
        "--turns", type=int, default=1, help="number of runs of each query; the fastest counts"
    )
    return parser.parse_args()


if __name__ == "__main__":
    main(**vars(_options()))
