"""The measures: processor time of each store, and rows kept near gaps."""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import cache
from typing import Final

import numpy as np

from tidegate.alerts import BracketStore
from tidegate.compiled import kernel
from tidegate.experiments.threshold_functions.measures import STREAMS
from tidegate.experiments.threshold_functions.paper_stores import LINKED_LIST, SKIP_LIST, keep_one_by_one
from tidegate.streams import Readings
from tidegate.types import Array

OMEGA: Final = 100
SORTED_ARRAYS: Final = "sorted arrays"
_WARM_UP_ROWS: Final = 100
_ROWS_PER_BURST: Final = 400
_ROWS_PER_BIN: Final = 10


def _run_sorted_arrays(times: Array, values: Array) -> int:
    store = BracketStore(OMEGA)
    store.extend(times, values)
    return len(store)


STORES: Final[dict[str, Callable[[Array, Array], int]]] = {
    SORTED_ARRAYS: _run_sorted_arrays,
    "linked list": lambda times, values: keep_one_by_one(times, values, float(OMEGA), LINKED_LIST),
    "skip list": lambda times, values: keep_one_by_one(times, values, float(OMEGA), SKIP_LIST),
}


def store_seconds(stream: str, sigma: int, store: str, rows: int, seed: int) -> dict[str, float]:
    """The processor time of a store for rows with some disorder, and the share of inverted pairs."""
    trace = Readings(STREAMS[stream].values, disorder=sigma).trace(rows, seed)
    times, values = trace.time, np.asarray(trace.value)
    _compile(store)
    began = time.process_time()
    kept = STORES[store](times, values)
    seconds = time.process_time() - began
    return {"seconds": seconds, "kept %": 100 * kept / rows, "inverted": inverted(times)}


@cache
def _compile(store: str) -> None:
    """Compile the store before it is measured."""
    trace = Readings().trace(_WARM_UP_ROWS)
    STORES[store](trace.time, np.asarray(trace.value))


def inverted(times: Array) -> float:
    """The share of all pairs of rows that arrive in reverse order.

    Examples
    --------
    >>> inverted(np.array([1, 2, 3])), inverted(np.array([30, 20, 10]))
    (0.0, 1.0)
    """
    ranks = np.empty(len(times), np.int64)
    ranks[np.argsort(times, kind="stable")] = np.arange(len(times))
    return _inversions(ranks) / (len(times) * (len(times) - 1) / 2)


@kernel
def _inversions(ranks: Array) -> int:
    """The number of pairs in reverse order, counted by a binary indexed tree of ranks."""
    size = len(ranks)
    tree = np.zeros(size + 1, np.int64)
    found = 0
    for row in range(size):
        at, below = ranks[row] + 1, 0
        while at > 0:
            below += tree[at]
            at -= at & -at
        found += row - below
        at = ranks[row] + 1
        while at <= size:
            tree[at] += 1
            at += at & -at
    return found


def near_gaps(stream: str, density: int, rows: int, seed: int) -> list[dict[str, float]]:
    """The share of rows kept, by the distance in rows to the next gap. A gap is wider than an interval."""
    generator = STREAMS[stream]
    trace = generator.trace(rows, seed)
    omega = density * generator.spacing
    burst = np.arange(rows) // _ROWS_PER_BURST
    store = BracketStore(omega)
    store.extend(trace.time + burst * 2 * omega, np.asarray(trace.value))
    within = np.arange(rows) % _ROWS_PER_BURST
    away = np.minimum(within, _ROWS_PER_BURST - 1 - within) // _ROWS_PER_BIN
    whole = burst < rows // _ROWS_PER_BURST
    kept = np.bincount(away[store.ids][whole[store.ids]], minlength=away.max() + 1)
    total = np.bincount(away[whole])
    return [
        {"rows from the gap": _ROWS_PER_BIN * (number + 0.5), "kept %": 100 * kept_rows / all_rows}
        for number, (kept_rows, all_rows) in enumerate(zip(kept.tolist(), total.tolist(), strict=True))
    ]
