"""What it costs to keep the rows that can decide an alarm, beside sorting them, all in one run.

Table 1 of Optimization of Threshold Functions over Streams: a million rows, ten an interval, more or less in order.
Stores are measured by processor time, beside a stable argsort of the rows by time as they come, which for rows in
order finds out only that they are, and beside one of the same rows shuffled, which has to sort. So is all that a
store does with rows in order but to tell which of them stay. All else is measured by the clock.
Rivals take a row at a time by the paper's algorithm, mended: on a linked list, or on a skip list.
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
from tidegate.alerts.stores.block_filter import needed
from tidegate.experiments.threshold_functions.measures import STREAMS
from tidegate.experiments.threshold_functions.paper_stores import LINKED_LIST, SKIP_LIST, one_by_one
from tidegate.streams import Readings, Trace
from tidegate.types import Array

ROWS: Final = 1_000_000
SIGMAS: Final = (0, 1, 10, 100, 1_000, 10_000, 100_000)
STEPS: Final = (ROWS, 10_000)
LISTED: Final = 1_000
"""Up to this disorder the linked list is measured: beyond it takes minutes."""
OMEGA: Final = 100
TABLE_1: Final = {name: STREAMS[name] for name in ("s-unif", "s-wiener")}


def stored(times: Array, values: Array, step: int) -> int:
    """Offer the rows to a store, so many at a time; tells how many stay."""
    store = BracketStore(OMEGA)
    for begin in range(0, len(times), step):
        store.extend(times[begin : begin + step], values[begin : begin + step])
    return len(store)


def copied(times: Array, values: Array, stays: Array) -> int:
    """Look over rows in order and take those that stay, of which it was told before; tells how many there are."""
    if np.isnan(values).any() or (times[1:] < times[:-1]).any():
        raise SystemExit("these rows are not in order")
    places = np.flatnonzero(stays)
    return min(len(column) for column in (times.take(places), values.take(places), places + 1))


def stores(console: Console) -> None:
    """Print Table 1: milliseconds, and times what a stable argsort takes, as rows come and shuffled."""
    shown = Table(
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
                _busy(partial(np.argsort, column, kind="stable"), repeats=5) for column in (times, shuffled)
            ]
            ways: dict[str, Callable[[], int]] = {
                str(step): partial(stored, times, values, step) for step in STEPS
            }
            if sigma <= LISTED:
                ways["linked list"] = partial(one_by_one, times, values, float(OMEGA), LINKED_LIST)
            ways["skip list"] = partial(one_by_one, times, values, float(OMEGA), SKIP_LIST)
            if len(kept := {way() for way in ways.values()}) > 1:
                raise SystemExit(f"{name}, sigma {sigma}: the ways keep {kept} rows; they must keep the same")
            took = {way: _busy(work) for way, work in ways.items()}
            cells = (
                f"{took[w] * 1e3:,.0f} ({took[w] / sorts[0]:.1f}, {took[w] / sorts[1]:.2f})"
                if w in took
                else "-"
                for w in (*map(str, STEPS), "linked list", "skip list")
            )
            shown.add_row(name, f"{sigma:,}", *(f"{sort * 1e3:.1f}" for sort in sorts), *cells)
    console.print(
        "a million rows kept by brackets: ms of processor time (times an argsort, one of them shuffled)"
    )
    console.print(shown)
    for name, stream in TABLE_1.items():
        trace = stream.trace(ROWS, seed=1)
        times, values = trace.time, np.asarray(trace.value)
        stays = needed(times, values, OMEGA, False, True, True)  # noqa: FBT003 - a kernel's flags
        least, told, sort = (
            _busy(work, repeats=9)
            for work in (
                partial(copied, times, values, stays),
                partial(needed, times, values, OMEGA, False, True, True),  # noqa: FBT003
                partial(np.argsort, times, kind="stable"),
            )
        )
        console.print(
            f"{name} in order: to look the rows over and copy those that stay takes {least * 1e3:.1f} ms, "
            f"{least / sort:.1f} times an argsort; to tell which stay, {told * 1e3:.1f} ms, {told / sort:.1f} times"
        )
    trace = STREAMS["s-unif"].trace(ROWS, seed=1)
    alike = _busy(partial(stored, trace.time, np.asarray(trace.value).round(1), ROWS))
    console.print(f"s-unif in order, one step, values rounded to a decimal, many equal: {alike * 1e3:.0f} ms")


def _busy(work: Callable[[], object], repeats: int = 3) -> float:
    """The least processor time that the work took, in seconds."""
    return seconds(work, repeats, time.process_time)


def matched(traces: dict[str, Trace], step: int) -> int:
    """Match streams of values, so many rows of each at a time; tells how many alarms there are."""
    finder = AlarmFinder(
        Topology.clique(list(traces), within=OMEGA), lambda of: sum(of.values()) - 0.98 * len(of)
    )
    found = 0
    for begin in range(0, 20_000, step):
        some = slice(begin, begin + step)
        rows = {name: (trace.time[some], np.asarray(trace.value)[some]) for name, trace in traces.items()}
        found += len(finder.step(rows, watermark=min(int(time[-1]) for time, _ in rows.values())))
    return found


def alarms(console: Console) -> None:
    """Print how many rows a second are matched, for two to four streams in a clique."""
    shown = Table("streams", "step", "rows/s", "alarms")
    for count in (2, 3, 4):
        names = [f"s{number}" for number in range(count)]
        traces = {name: Readings().trace(20_000, seed) for seed, name in enumerate(names)}
        for step in (100, 2_000, 20_000):
            found = matched(traces, step)
            took = seconds(partial(matched, traces, step), repeats=2)
            shown.add_row(str(count), f"{step:,} a stream", f"{count * 20_000 / took:,.0f}", f"{found:,}")
    console.print(shown)


def edge(console: Console) -> None:
    """Print how many readings a second the filter passes, from memory to memory."""
    trace = Readings("uniform").trace(ROWS, seed=3)
    rows = zip(trace.time.tolist(), np.asarray(trace.value).round(4).tolist(), strict=True)
    pairs = list(rows)
    texts = {
        "csv": "time,value\n" + "".join(f"{time},{value}\n" for time, value in pairs),
        "json": "".join(f'{{"time": {time}, "value": {value}}}\n' for time, value in pairs),
    }
    for form, text in texts.items():
        took = seconds(partial(_filtered, form, text.encode()), repeats=3)
        console.print(f"tidegate edge, {form}: {ROWS / took / 1e6:.1f} million readings a second")


def _filtered(form: str, text: bytes) -> None:
    Edge(omega=10 * OMEGA, form="csv" if form == "csv" else "json").run(io.BytesIO(text), io.BytesIO())


def main() -> None:
    """Measure stores, alarms and the filter."""
    console = Console()
    stores(console)
    alarms(console)
    edge(console)


if __name__ == "__main__":
    main()
