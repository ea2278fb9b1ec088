"""Steps of few rows: one compiled loop compares every arrival with every row of the other side.

Building an index over two arrivals costs more than comparing them with ten buffered rows. The loop finds what the
`Index` finds, in the same order, so that sums of importance are equal to the last digit; a test checks that.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np

from tidegate.compiled import inlined, kernel
from tidegate.engine.ages import note_age
from tidegate.engine.combining import combined
from tidegate.engine.index import in_window

if TYPE_CHECKING:
    from tidegate.engine.ages import Watch
    from tidegate.engine.index import Axes
    from tidegate.types import Array

MAX_COMPARISONS: Final = 1 << 12
"""Up to this number of pairs, comparing all of them takes less time than building an index."""


@inlined
def _joins(left: Axes, right: Axes, at: int, to: int, reaches: Any) -> Any:
    return left.key[at] == right.key[to] and in_window(
        left.left[at], left.right[at], right.left[to], right.right[to], reaches[0], reaches[1]
    )


@inlined
def _worth(combine: int, indexed: Array, probing: Array, at: int, to: int) -> Any:
    return combined(combine, indexed[at], probing[to]) if len(indexed) and len(probing) else 0.0


@kernel
def nested_loop_count(
    left: Axes,
    right: Axes,
    fresh: tuple[int, int],
    reaches: Any,
    hits: tuple[Array, Array],
    step_hits: tuple[Array, Array],
    worths: tuple[Array, Array],
    combine: int,
    watches: tuple[Watch, Watch, Watch],
) -> tuple[tuple[int, int, int], tuple[float, float, float]]:
    """Count the results of arrivals, which begin at `fresh`: with the right buffer, each other, and the left buffer.

    `reaches` are the window's two lengths; `step_hits` are the part of `hits` with arrivals of the same step. Returns
    the three counts, then the three sums of importance.
    """
    n, m = len(left.key), len(right.key)
    watched = watches[0].counts.shape[1] > 0
    counts = np.zeros(3, np.int64)
    sums = np.zeros(3)
    for to in range(m):
        origin = 0 if to < fresh[1] else 1
        for at in range(fresh[0], n):
            if _joins(left, right, at, to, reaches):
                counts[origin] += 1
                hits[0][at] += 1
                hits[1][to] += 1
                if origin == 1:
                    step_hits[0][at] += 1
                    step_hits[1][to] += 1
                sums[origin] += _worth(combine, worths[0], worths[1], at, to)
                if watched:
                    note_age(watches[origin], right.left[to], left.left[at])
    for at in range(fresh[0]):
        for to in range(fresh[1], m):
            if _joins(left, right, at, to, reaches):
                counts[2] += 1
                hits[0][at] += 1
                hits[1][to] += 1
                sums[2] += _worth(combine, worths[1], worths[0], to, at)
                if watched:
                    note_age(watches[2], left.right[at], right.right[to])
    return (counts[0], counts[1], counts[2]), (sums[0], sums[1], sums[2])
