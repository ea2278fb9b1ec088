"""Cells: how long each store takes, and what gaps between rows do to what is kept."""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import cache
from typing import Final

import numpy as np

from tidegate.alerts import BracketStore
from tidegate.compiled import kernel
from tidegate.experiments.threshold_functions.measured import STREAMS
from tidegate.experiments.threshold_functions.rivals import LINKED_LIST, SKIP_LIST, one_by_one
from tidegate.streams import Readings
from tidegate.types import Array

OMEGA: Final = 100
OURS: Final = "sorted arrays"
_WARM: Final = 100
_BURST: Final = 400
_BIN: Final = 10


def _sorted(times: Array, values: Array) -> int:
    store = BracketStore(OMEGA)
    store.extend(times, values)
    return len(store)


STORES: Final[dict[str, Callable[[Array, Array], int]]] = {
    OURS: _sorted,
    "linked list": lambda times, values: one_by_one(times, values, float(OMEGA), LINKED_LIST),
    "skip list": lambda times, values: one_by_one(times, values, float(OMEGA), SKIP_LIST),
}


def time_of(stream: str, sigma: int, store: str, rows: int, seed: int) -> dict[str, float]:
    """Seconds that a store takes for rows that arrive more or less in order, and how disordered they are."""
    trace = Readings(STREAMS[stream].values, disorder=sigma).trace(rows, seed)
    times, values = trace.time, np.asarray(trace.value)
    _compiled(store)
    began = time.process_time()
    kept = STORES[store](times, values)
    seconds = time.process_time() - began
    return {"seconds": seconds, "kept %": 100 * kept / rows, "inverted": inverted(times)}


@cache
def _compiled(store: str) -> None:
    """Let it be compiled before it is measured."""
    trace = Readings().trace(_WARM)
    STORES[store](trace.time, np.asarray(trace.value))


def inverted(times: Array) -> float:
    """The share of all pairs of rows of which the later one arrived first.

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
    """Pairs that are not in order, by a binary indexed tree of the ranks that have come."""
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
    """The share of rows kept, by how many rows away the next gap is, where a gap is wider than an interval."""
    made = STREAMS[stream]
    trace = made.trace(rows, seed)
    omega = density * made.spacing
    burst = np.arange(rows) // _BURST
    store = BracketStore(omega)
    store.extend(trace.time + burst * 2 * omega, np.asarray(trace.value))
    within = np.arange(rows) % _BURST
    away = np.minimum(within, _BURST - 1 - within) // _BIN
    whole = burst < rows // _BURST
    kept = np.bincount(away[store.ids][whole[store.ids]], minlength=away.max() + 1)
    there = np.bincount(away[whole])
    return [
        {"rows from the gap": _BIN * (number + 0.5), "kept %": 100 * some / every}
        for number, (some, every) in enumerate(zip(kept.tolist(), there.tolist(), strict=True))
    ]
