"""What it costs to keep the rows that can decide an alarm, beside sorting them, all in one run.

Table 1 of Optimization of Threshold Functions over Streams: a million rows, ten an interval, more or less in order.
Stores are measured by processor time, beside a stable argsort of the rows by time, which for rows in order finds out
only that they are, and beside one by value, which has to sort. All else is measured by the clock.
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
from tidegate.compiled import kernel
from tidegate.draws import scattered
from tidegate.experiments.threshold_functions.measured import STREAMS
from tidegate.streams import Readings, Trace
from tidegate.types import Array

ROWS: Final = 1_000_000
SIGMAS: Final = (0, 1, 10, 100, 1_000, 10_000, 100_000)
STEPS: Final = (ROWS, 10_000)
LISTED: Final = 1_000
"""Up to this disorder the linked list is measured: beyond it takes minutes."""
OMEGA: Final = 100
TABLE_1: Final = {name: STREAMS[name] for name in ("s-unif", "s-wiener")}
_LEVELS: Final = 10


@kernel
def _place(times: Array, links: Array, last: int, time: float) -> int:
    """The last node that is not later: from the end of a linked list, or from above in a skip list."""
    levels = links.shape[0] - 1
    if levels == 1:
        node = last
        while node > 0 and times[node] > time:
            node = links[1, node]
        return node
    node = 0
    for level in range(levels - 1, -1, -1):
        down = level + 1 if level else 0
        while links[down, node] >= 0 and times[links[down, node]] <= time:
            node = links[down, node]
    return node


@kernel
def _height(node: int, levels: int) -> int:
    drawn, height = scattered(node), 1
    while height < levels and not drawn & np.uint64(3):
        drawn >>= np.uint64(2)
        height += 1
    return height


@kernel
def _join(times: Array, links: Array, node: int, after: int) -> None:
    links[0, node], links[1, node] = links[0, after], after
    if links[0, after] >= 0:
        links[1, links[0, after]] = node
    links[0, after] = node
    levels = links.shape[0] - 1
    height, at = _height(node, levels), 0
    for down in range(levels, 1, -1):
        while links[down, at] >= 0 and times[links[down, at]] <= times[node]:
            at = links[down, at]
        if down <= height:
            links[down, node] = links[down, at]
            links[down, at] = node


@kernel
def _leave(times: Array, links: Array, node: int) -> None:
    links[0, links[1, node]] = links[0, node]
    if links[0, node] >= 0:
        links[1, links[0, node]] = links[1, node]
    levels = links.shape[0] - 1
    height, at = _height(node, levels), 0
    if height == 1:
        return
    for down in range(levels, 1, -1):
        while links[down, at] >= 0 and times[links[down, at]] < times[node]:
            at = links[down, at]
        if down <= height:
            links[down, at] = links[down, node]


@kernel
def one_by_one(times: Array, values: Array, omega: float, levels: int) -> int:
    """Algorithm 1 with its scan to the right mended, for distinct times and values; tells how many rows stay."""
    size = len(times)
    # Node 0 is the head. Links: next, previous, then next on each level above.
    when, worth = np.empty(size + 1), np.empty(size + 1)
    when[0], worth[0] = -np.inf, 0.0
    links = np.full((levels + 1, size + 1), -1, np.int64)
    near = np.full((4, size + 1), np.inf)  # left above, left below, right above, right below
    count = last = 0
    for row in range(size):
        node = row + 1
        when[node], worth[node] = times[row], values[row]
        after = _place(when, links, last, when[node])
        begins = after
        for way in range(2):
            mine, its = 2 * way, 2 - 2 * way
            at = after if way == 0 else links[0, begins]
            while at > 0 and (near[mine, node] == np.inf or near[mine + 1, node] == np.inf):
                apart = abs(when[node] - when[at])
                if apart > omega:
                    break
                further = links[1 - way, at]
                above = worth[at] > worth[node]
                side, other = mine + (not above), its + above
                near[side, node] = min(near[side, node], apart)
                near[other, at] = min(near[other, at], apart)
                if near[0, at] + near[2, at] <= omega and near[1, at] + near[3, at] <= omega:
                    if at == begins:
                        begins = links[1, at]
                    if at == last:
                        last = links[1, at]
                    _leave(when, links, at)
                    count -= 1
                at = further
        if near[0, node] + near[2, node] > omega or near[1, node] + near[3, node] > omega:
            _join(when, links, node, begins)
            count += 1
            if begins == last:
                last = node
    return count


def stored(times: Array, values: Array, step: int) -> int:
    """Offer the rows to a store, so many at a time; tells how many stay."""
    store = BracketStore(OMEGA)
    for begin in range(0, len(times), step):
        store.extend(times[begin : begin + step], values[begin : begin + step])
    return len(store)


def stores(console: Console) -> None:
    """Print Table 1: milliseconds, and times what a stable argsort takes, by time and by value."""
    shown = Table(
        "stream",
        "sigma",
        "argsort by time",
        "by value",
        *(f"steps of {step:,}" for step in STEPS),
        "linked list",
        "skip list",
    )
    for name, stream in track(TABLE_1.items(), console=Console(stderr=True), transient=True):
        for sigma in SIGMAS:
            trace = Readings(stream.values, disorder=sigma).trace(ROWS, seed=1)
            times, values = trace.time, np.asarray(trace.value)
            sorts = [
                _busy(partial(np.argsort, column, kind="stable"), repeats=5) for column in (times, values)
            ]
            ways: dict[str, Callable[[], int]] = {
                str(step): partial(stored, times, values, step) for step in STEPS
            }
            if sigma <= LISTED:
                ways["linked list"] = partial(one_by_one, times, values, float(OMEGA), 1)
            ways["skip list"] = partial(one_by_one, times, values, float(OMEGA), _LEVELS)
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
    console.print("a million rows kept by brackets: ms of processor time (times argsort by time, by value)")
    console.print(shown)
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
