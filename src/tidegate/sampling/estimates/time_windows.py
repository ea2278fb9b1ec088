"""Sliding windows of event time, by columns."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, NamedTuple

import numpy as np

from tidegate.types import Array, InputError, Time

_AT_ONCE: Final = 1 << 22
"""How many pairs of a row and a window are held at once."""


class WindowRows(NamedTuple):
    """Which rows lie in which windows: the rows' places, and the ends of the windows; None where there are none."""

    rows: Array
    ends: Array | None


def windowed(times: Array, length: Time, every: Time | None) -> Iterator[WindowRows]:
    """Tell for each window `[end - length, end)` that holds a row which rows it holds, some windows at a time.

    Ends are multiples of `every`; `length` if that is None.

    Examples
    --------
    >>> [spans] = windowed(np.array([3, 12, 14]), 10, 5)
    >>> spans.rows.tolist(), spans.ends.tolist()
    ([0, 0, 1, 2, 1, 2], [5, 10, 15, 15, 20, 20])
    """
    apart = length if every is None else every
    for name, span in (("window", length), ("every", apart)):
        if isinstance(span, bool) or not isinstance(span, int | float | np.number) or not 0 < span < np.inf:
            raise InputError(f"{name}={span!r} is not a length of time; give a number above 0")
    order = np.argsort(times, kind="stable")
    clock = times[order]
    ends = _ends(clock, length, apart)
    begins, stops = np.searchsorted(clock, ends - length), np.searchsorted(clock, ends)
    ends, begins, stops = (column[stops > begins] for column in (ends, begins, stops))
    sizes = stops - begins
    parts = np.cumsum(sizes) // _AT_ONCE
    for part in np.split(np.arange(len(ends)), np.flatnonzero(np.diff(parts)) + 1):
        if len(part):
            size = sizes[part]
            within = np.arange(size.sum()) - np.repeat(np.cumsum(size) - size, size)
            yield WindowRows(order[np.repeat(begins[part], size) + within], np.repeat(ends[part], size))


def _ends(clock: Array, length: Time, apart: Time) -> Array:
    """The ends of all windows that may hold a row, in order."""
    first = np.unique(np.floor_divide(clock, apart)) + 1
    last = first + int(np.ceil(length / apart))
    # Each run of ends stops where the next one takes over.
    last[:-1] = np.minimum(last[:-1], first[1:])
    count = (last - first).astype(np.int64)
    steps = np.arange(count.sum()) - np.repeat(np.cumsum(count) - count, count)
    found: Array = (np.repeat(first, count) + steps) * apart
    return found
