"""Assigns rows to sliding windows of event time."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, NamedTuple

import numpy as np

from tidegate.types import Array, InputError, Time

_PAIRS_PER_PART: Final = 1 << 22
"""The number of pairs of a row and a window that are in memory at a time."""


class WindowRows(NamedTuple):
    """Pairs of a row and a window: the position of the row, and the end of the window (None without windows)."""

    rows: Array
    ends: Array | None


def windowed(times: Array, length: Time, every: Time | None) -> Iterator[WindowRows]:
    """Yield the rows of each window `[end - length, end)` that has one, several windows at a time.

    Ends are multiples of `every`, by default of `length`.

    Examples
    --------
    >>> [spans] = windowed(np.array([3, 12, 14]), 10, 5)
    >>> spans.rows.tolist(), spans.ends.tolist()
    ([0, 0, 1, 2, 1, 2], [5, 10, 15, 15, 20, 20])
    """
    interval = length if every is None else every
    for name, span in (("window", length), ("every", interval)):
        if isinstance(span, bool) or not isinstance(span, int | float | np.number) or not 0 < span < np.inf:
            raise InputError(f"{name} must be a positive length of time; got {span!r}")
    order = np.argsort(times, kind="stable")
    ordered = times[order]
    ends = _ends(ordered, length, interval)
    begins, stops = np.searchsorted(ordered, ends - length), np.searchsorted(ordered, ends)
    ends, begins, stops = (column[stops > begins] for column in (ends, begins, stops))
    sizes = stops - begins
    parts = np.cumsum(sizes) // _PAIRS_PER_PART
    for part in np.split(np.arange(len(ends)), np.flatnonzero(np.diff(parts)) + 1):
        if len(part):
            size = sizes[part]
            within = np.arange(size.sum()) - np.repeat(np.cumsum(size) - size, size)
            yield WindowRows(order[np.repeat(begins[part], size) + within], np.repeat(ends[part], size))


def _ends(ordered: Array, length: Time, interval: Time) -> Array:
    """The ends of all windows that may have a row, in order."""
    first = np.unique(np.floor_divide(ordered, interval)) + 1
    last = first + int(np.ceil(length / interval))
    # Each run of ends stops where the next one begins.
    last[:-1] = np.minimum(last[:-1], first[1:])
    count = (last - first).astype(np.int64)
    steps = np.arange(count.sum()) - np.repeat(np.cumsum(count) - count, count)
    ends: Array = (np.repeat(first, count) + steps) * interval
    return ends
