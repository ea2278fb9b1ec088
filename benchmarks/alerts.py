"""Measures the stores of `tidegate.alerts` relative to sorting, the search for alarms, and `tidegate edge`.

Table 1 of Optimization of Threshold Functions over Streams: a million rows, ten per interval, with different
disorder. The stores are measured in processor time, relative to two stable argsorts: of the times as they arrive,
which for ordered rows only checks the order, and of the same times shuffled. Two parts of a store are measured
separately for ordered rows: choosing the rows to keep, and checking and copying. The peers are the paper's
algorithm, corrected, on a linked list and on a skip list, one row at a time. Everything else is measured in
wall-clock time.
"""

from __future__ import annotations

import io
import time
from collections.abc import Callable
from functools import partial
from typing import Final

import numpy as np
from rich.console import Console
from rich.progress import track
from rich.table import Table

from benchmarks.core import seconds
from tidegate.alerts import AlarmFinder, BracketStore, Edge, Topology
from tidegate.alerts.stores.block_filter import needed_rows
from tidegate.experiments.threshold_functions.measures import STREAMS
from tidegate.experiments.threshold_functions.paper_stores import LINKED_LIST, SKIP_LIST, keep_one_by_one
from tidegate.streams import Readings, Trace
from tidegate.types import Array

ROWS: Final = 1_000_000
SIGMAS: Final = (0, 1, 10, 100, 1_000, 10_000, 100_000)
STEPS: Final = (ROWS, 10_000)
MAX_LIST_SIGMA: Final = 1_000
"""The largest disorder for which the linked list is measured; beyond it, it takes minutes."""
OMEGA: Final = 100
TABLE_1: Final = {name: STREAMS[name] for name in ("s-unif", "s-wiener")}


def run_store(times: Array, values: Array, step: int) -> int:
    """Offer the rows to a store in steps; returns how many are kept."""
    store = BracketStore(OMEGA)
    for begin in range(0, len(times), step):
        store.extend(times[begin : begin + step], values[begin : begin + step])
    return len(store)


def copy_kept(times: Array, values: Array, kept: Array) -> int:
    """Check ordered rows and copy the given ones; returns their number."""
    if np.isnan(values).any() or (times[1:] < times[:-1]).any():
        raise SystemExit("the rows are not in order")
    places = np.flatnonzero(kept)
    return min(len(column) for column in (times.take(places), values.take(places), places + 1))


def measure_stores(console: Console) -> None:
    """Print Table 1: milliseconds, and multiples of the two argsorts."""
    table = Table(
        "stream",
        "sigma",
        "argsort",
        "shuffled",
        *(f"steps of {step:,}" for step in STEPS),
        "linked list",
        "skip list",
    )
    for name, stream in track(TABLE_1.items(), console=Console(stderr=True), transient=True):
        for sigma in SIGMAS:
            trace = Readings(stream.values, disorder=sigma).trace(ROWS, seed=1)
            times, values = trace.time, np.asarray(trace.value)
            shuffled = np.random.default_rng(1).permutation(times)
            sorts = [
                _processor_time(partial(np.argsort, column, kind="stable"), repeats=5)
                for column in (times, shuffled)
            ]
            stores: dict[str, Callable[[], int]] = {
                str(step): partial(run_store, times, values, step) for step in STEPS
            }
            if sigma <= MAX_LIST_SIGMA:
                stores["linked list"] = partial(keep_one_by_one, times, values, float(OMEGA), LINKED_LIST)
            stores["skip list"] = partial(keep_one_by_one, times, values, float(OMEGA), SKIP_LIST)
            if len(kept := {run() for run in stores.values()}) > 1:
                raise SystemExit(
                    f"{name}, sigma {sigma}: the stores keep {kept} rows, but must keep the same"
                )
            taken = {store: _processor_time(run) for store, run in stores.items()}
            cells = (
                f"{taken[store] * 1e3:,.0f} ({taken[store] / sorts[0]:.1f}, {taken[store] / sorts[1]:.2f})"
                if store in taken
                else "-"
                for store in (*map(str, STEPS), "linked list", "skip list")
            )
            table.add_row(name, f"{sigma:,}", *(f"{sort * 1e3:.1f}" for sort in sorts), *cells)
    console.print(
        "brackets of a million rows: ms of processor time (multiples of the argsort, and of the shuffled one)"
    )
    console.print(table)
    _measure_ordered(console)


def _measure_ordered(console: Console) -> None:
    """Print the parts of a store's time for ordered rows, and the time with many equal values."""
    for name, stream in TABLE_1.items():
        trace = stream.trace(ROWS, seed=1)
        times, values = trace.time, np.asarray(trace.value)
        kept = needed_rows(times, values, OMEGA, False, True, True)  # noqa: FBT003 - a kernel's flags
        copying, choosing, sort = (
            _processor_time(work, repeats=9)
            for work in (
                partial(copy_kept, times, values, kept),
                partial(needed_rows, times, values, OMEGA, False, True, True),  # noqa: FBT003
                partial(np.argsort, times, kind="stable"),
            )
        )
        console.print(
            f"{name} in order: checking the rows and copying the kept ones takes {copying * 1e3:.1f} ms, "
            f"{copying / sort:.1f} times an argsort; choosing {choosing * 1e3:.1f} ms, {choosing / sort:.1f} times"
        )
    trace = STREAMS["s-unif"].trace(ROWS, seed=1)
    rounded = _processor_time(partial(run_store, trace.time, np.asarray(trace.value).round(1), ROWS))
    console.print(f"s-unif in order, one step, values rounded to one decimal: {rounded * 1e3:.0f} ms")


def _processor_time(work: Callable[[], object], repeats: int = 3) -> float:
    """The least processor time of several runs, in seconds."""
    return seconds(work, repeats, time.process_time)


def count_alarms(traces: dict[str, Trace], step: int) -> int:
    """Search the alarms of several streams, in steps of some rows per stream; returns their number."""
    finder = AlarmFinder(
        Topology.clique(list(traces), within=OMEGA), lambda values: sum(values.values()) - 0.98 * len(values)
    )
    found = 0
    for begin in range(0, 20_000, step):
        some = slice(begin, begin + step)
        rows = {name: (trace.time[some], np.asarray(trace.value)[some]) for name, trace in traces.items()}
        found += len(finder.step(rows, watermark=min(int(time[-1]) for time, _ in rows.values())))
    return found


def measure_alarms(console: Console) -> None:
    """Print the rows per second that `AlarmFinder` matches, for two to four streams in a clique."""
    table = Table("streams", "step", "rows/s", "alarms")
    for count in (2, 3, 4):
        names = [f"s{number}" for number in range(count)]
        traces = {name: Readings().trace(20_000, seed) for seed, name in enumerate(names)}
        for step in (100, 2_000, 20_000):
            found = count_alarms(traces, step)
            duration = seconds(partial(count_alarms, traces, step), repeats=2)
            table.add_row(
                str(count), f"{step:,} per stream", f"{count * 20_000 / duration:,.0f}", f"{found:,}"
            )
    console.print(table)


def measure_edge(console: Console) -> None:
    """Print the readings per second that the filter processes, from memory to memory."""
    trace = Readings("uniform").trace(ROWS, seed=3)
    rows = zip(trace.time.tolist(), np.asarray(trace.value).round(4).tolist(), strict=True)
    pairs = list(rows)
    texts = {
        "csv": "time,value\n" + "".join(f"{time},{value}\n" for time, value in pairs),
        "json": "".join(f'{{"time": {time}, "value": {value}}}\n' for time, value in pairs),
    }
    for line_format, text in texts.items():
        duration = seconds(partial(_run_edge, line_format, text.encode()), repeats=3)
        console.print(
            f"tidegate edge, {line_format}: {ROWS / duration / 1e6:.1f} million readings per second"
        )


def _run_edge(line_format: str, text: bytes) -> None:
    config = Edge(omega=10 * OMEGA, format="csv" if line_format == "csv" else "json")
    config.run(io.BytesIO(text), io.BytesIO())


def main() -> None:
    """Measure stores, alarms and the filter."""
    console = Console()
    measure_stores(console)
    measure_alarms(console)
    measure_edge(console)


if __name__ == "__main__":
    main()
