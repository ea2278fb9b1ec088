"""Compare the core with other libraries in one run; on a shared machine, compare only ratios."""

from __future__ import annotations

import heapq
import time
from collections.abc import Callable
from functools import partial

import duckdb
import numpy as np
import polars as pl
from rich.console import Console
from rich.table import Table

from tidegate.engine import one_loop
from tidegate.engine.arrivals import Arrivals
from tidegate.engine.encode import encode
from tidegate.engine.join import Join
from tidegate.engine.operator import Operator, collected
from tidegate.engine.replay import Recording
from tidegate.engine.simulate import run
from tidegate.streams import Trace
from tidegate.types import Array, Budget, Window

ROWS, KEYS, SPAN = 750_000, 500_000, 1_000_000
WINDOW = 100_000


def seconds(
    work: Callable[[], object], repeats: int = 5, clock: Callable[[], float] = time.perf_counter
) -> float:
    """The shortest time of the repetitions, by this clock."""
    best = float("inf")
    for _ in range(repeats):
        start = clock()
        work()
        best = min(best, clock() - start)
    return best


def columns(rows: int, keys: int, span: int, seed: int) -> dict[str, Array]:
    """Uniform keys at uniform times."""
    rng = np.random.default_rng(seed)
    return {"key": rng.integers(0, keys, rows), "time": np.sort(rng.integers(0, span, rows))}


def numpy_join(left: dict[str, Array], right: dict[str, Array]) -> int:
    """A join in NumPy: sort one side by key, find the range of each row's key, expand, filter by time."""
    order = np.argsort(left["key"], kind="stable")
    keys = left["key"][order]
    first = np.searchsorted(keys, right["key"], side="left")
    count = np.searchsorted(keys, right["key"], side="right") - first
    r = np.repeat(np.arange(len(count)), count)
    within = np.arange(len(r)) - np.repeat(np.cumsum(count) - count, count)
    difference = right["time"][r] - left["time"][order[first[r] + within]]
    return int(np.count_nonzero(np.abs(difference) <= WINDOW))


def exact_joins(console: Console) -> None:
    """The exact join in large steps, compared with batch joins of the same rows."""
    left, right = columns(ROWS, KEYS, SPAN, 1), columns(ROWS, KEYS, SPAN, 2)
    window = Window(WINDOW, WINDOW)
    arrivals = encode(Trace.of(left), Trace.of(right), window, "=", None).arrivals
    frames = pl.DataFrame(left), pl.DataFrame(right)
    tables = frames[0].to_arrow(), frames[1].to_arrow()
    database = duckdb.connect()
    near = (pl.col("time_right") - pl.col("time")).is_between(-WINDOW, WINDOW)
    query = (
        f"select count(*) from l join r on l.key = r.key and r.time - l.time between {-WINDOW} and {WINDOW}"  # noqa: S608 - numbers of our own
    )
    database.register("l", tables[0])
    database.register("r", tables[1])

    def steps(size: int, *, pairs: bool = False) -> int:
        operator = Operator(Join(window))
        for step in arrivals.steps(arrivals.cuts(size), whole_instants=False):
            collected(operator.step(*step, pairs=pairs))
        return operator.tally.results

    contenders: dict[str, Callable[[], int]] = {
        "NumPy argsort + searchsorted": lambda: numpy_join(left, right),
        "Tidegate, steps of 100,000": lambda: steps(100_000),
        "Tidegate, steps of 100,000, forming pairs": lambda: steps(100_000, pairs=True),
        "Tidegate, one step of all": lambda: steps(2 * ROWS),
        "DuckDB, all cores": lambda: int((database.execute(query).fetchone() or (0,))[0]),
        "Polars, all cores": lambda: frames[0].join(frames[1], on="key").filter(near).height,
    }
    expected = numpy_join(left, right)
    times = {}
    for name, work in contenders.items():
        count = work()
        if count != expected:
            raise SystemExit(f"{name} found {count} results, NumPy {expected}")
        times[name] = seconds(work)
    table = Table(
        "exact join of 1.5 million rows", "million rows/s", "x NumPy", "x Polars", title_justify="left"
    )
    for name, best in times.items():
        rate = 2 * ROWS / best / 1e6
        ratios = (times[peer] / best for peer in (next(iter(times)), "Polars, all cores"))
        table.add_row(name, f"{rate:.1f}", *(f"{ratio:.2f}" for ratio in ratios))
    console.print(table)


def nested_loop(left: dict[str, Array], right: dict[str, Array], reach: int, chunk: int = 256) -> int:
    """A nested loop in NumPy for comparisons: every left row with every right row, in chunks of left rows."""
    results = 0
    for start in range(0, len(left["key"]), chunk):
        key, when = (left[name][start : start + chunk, None] for name in ("key", "time"))
        results += int(np.count_nonzero((key < right["key"]) & (np.abs(right["time"] - when) <= reach)))
    return results


def comparisons(console: Console) -> None:
    """`l.key < r.key` in one step of all rows: the cost should grow with the results only."""
    table = Table(
        "l.key < r.key, one step", "results", "x the nested loop in NumPy", "x the time at 10,000 rows"
    )
    for share in (None, 0.01, 1.0):
        first = 0.0
        for rows in (10_000, 20_000, 40_000):
            left, right = columns(rows, rows, rows, 9), columns(rows, rows, rows, 10)
            reach = 1 if share is None else int(share * rows)
            window = Window(reach, reach)
            arrivals = encode(Trace.of(left), Trace.of(right), window, "<", None).arrivals
            cuts = arrivals.cuts(2 * rows)
            join = Join(window, condition="<")
            recording = Recording(arrivals, cuts, cuts)
            results = run(recording, join).tally.results
            if results != nested_loop(left, right, reach):
                raise SystemExit(f"{results} results, not as many as the nested loop")
            took = seconds(partial(run, recording, join), 3)
            loop = seconds(partial(nested_loop, left, right, reach), 1)
            first = first or took
            title = f"{rows:,} rows per side, window {reach:,}"
            table.add_row(title, f"{results:,}", f"{loop / took:.1f}", f"{took / first:.1f}")
    console.print(table)


def python_heap(rows: list[tuple[int, int, int]], window: int, budget: int) -> int:
    """A join for fifo only, with dictionaries and a heap."""
    buffered: tuple[dict[int, dict[int, int]], ...] = ({}, {})
    heap: list[tuple[int, int, int, int]] = []
    results = 0
    for number, (now, side, key) in enumerate(rows):
        for then in buffered[1 - side].get(key, {}).values():
            results += now - then <= window
        buffered[side].setdefault(key, {})[number] = now
        heapq.heappush(heap, (now, number, side, key))
        while heap and (now - heap[0][0] > window or len(heap) > budget):
            _, old, old_side, old_key = heapq.heappop(heap)
            del buffered[old_side][old_key][old]
    return results


def python_scores(rows: list[tuple[int, int, int]], window: int, budget: int) -> int:
    """A join with fifo as a score: each step scores all rows and evicts the lowest."""
    buffered: list[tuple[int, int, int]] = []
    results = 0
    for now, side, key in rows:
        results += sum(s != side and k == key and now - t <= window for t, s, k in buffered)
        buffered.append((now, side, key))
        buffered = [row for row in buffered if now - row[0] <= window]
        if len(buffered) > budget:
            scores = [t for t, _, _ in buffered]
            buffered.pop(scores.index(min(scores)))
    return results


def unit_step_joins(console: Console) -> None:
    """Steps of one row, compared with plain Python."""
    window, budget = 10_000, 1_000
    left, right = columns(100_000, 1_000, 200_000, 3), columns(100_000, 1_000, 200_000, 4)
    arrivals = encode(Trace.of(left), Trace.of(right), Window(window, window), "=", None).arrivals
    merged = sorted(
        (int(t), side, int(k))
        for side, rows in enumerate((arrivals.left, arrivals.right))
        for t, k in zip(rows.time, rows.key, strict=True)
    )
    recording = Recording(arrivals, arrivals.cuts(1), arrivals.cuts(len(arrivals)))
    table = Table("step=1, budget 1,000", "thousand rows/s", "x scoring", "x heap")
    base = {
        "plain Python, scoring all rows in each step": len(merged)
        / 50
        / seconds(lambda: python_scores(merged[: len(merged) // 50], window, budget), 1),
        "plain Python, fifo with a heap": len(merged)
        / seconds(lambda: python_heap(merged, window, budget), 3),
    }
    for policy in ("fifo", "until_expiry", "random"):
        join = Join(Window(window, window), Budget(rows=budget), policy)
        took = seconds(partial(one_loop.run, recording, join))
        base[f"Tidegate, {policy}"] = len(merged) / took
    scoring, heap = list(base.values())[:2]
    for name, rate in base.items():
        table.add_row(name, f"{rate / 1e3:.0f}", f"{rate / scoring:.1f}", f"{rate / heap:.1f}")
    console.print(table)


def flatness(console: Console) -> None:
    """Cost per row by budget and by number of keys, in steps of 10,000 rows; the cases alternate."""
    window = Window(500_000, 500_000)
    budgets = {f"budget {budget:,}": (budget, KEYS) for budget in (100, 1_000, 10_000, 100_000)}
    domains = {f"{keys:,} keys": (10_000, keys) for keys in (1_000, 100_000, 10_000_000)}
    recorded: dict[int, Arrivals] = {}
    for keys in {keys for _, keys in (budgets | domains).values()}:
        left, right = (Trace.of(columns(ROWS, keys, SPAN, seed)) for seed in (5, 6))
        recorded[keys] = encode(left, right, window, "=", None).arrivals

    def joined(budget: int, keys: int) -> int:
        cuts = recorded[keys].cuts(10_000)
        recording = Recording(recorded[keys], cuts, cuts)
        return run(recording, Join(window, Budget(rows=budget))).tally.results

    table = Table(
        "steps of 10,000 rows, fifo", "million rows/s", "results per row", "x the first of its group"
    )
    for group in (budgets, domains):
        results = {case: joined(*case) for case in group.values()}
        best = dict.fromkeys(results, float("inf"))
        for _ in range(8):
            for case in best:
                best[case] = min(best[case], seconds(partial(joined, *case), 1))
        first = next(iter(best.values()))
        for title, case in group.items():
            speed = f"{2 * ROWS / best[case] / 1e6:.1f}"
            table.add_row(title, speed, f"{results[case] / (2 * ROWS):.2f}", f"{first / best[case]:.2f}")
    console.print(table)


def memory(console: Console) -> None:
    """The bytes of buffers, compared with those of their rows."""
    window = Window(300_000, 300_000)
    left, right = (Trace.of(columns(ROWS, KEYS, SPAN, seed)) for seed in (7, 8))
    arrivals = encode(left, right, window, "=", None).arrivals
    operator = Operator(Join(window))
    for step in arrivals.steps(arrivals.cuts(50_000), whole_instants=False):
        collected(operator.step(*step))
    buffered = sum(column.nbytes for b in operator.buffers.values() for column in b._columns.values())  # noqa: SLF001 - what it measures
    table = Table("memory of an exact join's buffers", "rows", "MB", "x the rows' own bytes")
    table.add_row(
        "after the last step",
        f"{operator.rows:,}",
        f"{buffered / 1e6:.1f}",
        f"{buffered / operator.nbytes:.2f}",
    )
    console.print(table)


def main() -> None:
    """Run all measurements."""
    console = Console()
    for part in (exact_joins, comparisons, unit_step_joins, flatness, memory):
        part(console)


if __name__ == "__main__":
    main()
