"""A trace like that of section 6.1: two sources send to one server, one of them over a wide-area network."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np

from tidegate.models import AgeCurve
from tidegate.streams import Trace
from tidegate.types import Array, Band, Window

MICROS: Final = 1_000_000
WINDOW: Final = Window(120 * MICROS, 0)
PREDICATE: Final = Band(59_900_000, 60_100_000)
"""A right row's own time is a minute after a left row's, within a tenth of a second."""
_GRAIN: Final = MICROS // 10


@dataclass(frozen=True)
class Wan:
    """Rows with the time of their source's clock as key, and the time of their arrival at the server.

    Parameters
    ----------
    rate
        Rows per second of each source.
    skew
        How many seconds the clock of the remote source is behind, plus the minimum latency of its rows.
    latency
        The mean of the remaining latency in seconds, the sum of two exponential variables: time in queues.
    near
        The same for the other source, which is on the server's machine.

    Deviations
    ----------
    The paper states the two rates, the predicate and the window. It also states that most results come at an age of
    about 63 seconds, and that the average rate of matches is highest at an age of 68.8. Skew and latency are not
    stated, and were chosen to give these two ages. No row is lost, although UDP may lose some.
    """

    rate: float = 50.0
    skew: float = 1.8
    latency: float = 2.4
    near: float = 0.002

    def both(self, seconds: float, seed: int = 0) -> tuple[Trace, Trace]:
        """The near and the remote source, in order of arrival."""
        count = round(self.rate * seconds)
        sent = np.arange(count) / self.rate
        traces = []
        for which, (late, mean) in enumerate(((0.0, self.near), (self.skew, self.latency))):
            rng = np.random.default_rng((seed, which))
            arrived = sent + late + rng.gamma(2.0, mean / 2, count)
            order = np.argsort(arrived, kind="stable")
            traces.append(Trace.of({"key": _whole(sent)[order], "time": _whole(arrived)[order]}))
        return traces[0], traces[1]


def _whole(seconds: Array) -> Array:
    whole: Array = np.rint(seconds * MICROS).astype(np.int64)
    return whole


def observed(
    left: Trace, right: Trace, partners: tuple[Array, Array], *, whole_life: bool = True
) -> AgeCurve:
    """The age curve of a trace from one pass: matches of a left row by age, in bins of a tenth of a second.

    Parameters
    ----------
    left, right
        The trace.
    partners
        The rows of all its results.
    whole_life
        Whether to count only rows with their whole window in the trace.
    """
    ages = right.time[partners[1]] - left.time[partners[0]]
    last = int(left.time[-1]) - int(WINDOW.reach("left"))
    lived = left.time <= last if whole_life else np.ones(len(left), bool)
    ages = ages[lived[partners[0]]]
    edges = np.arange(0, WINDOW.reach("left") + 1, _GRAIN)
    counts, _ = np.histogram(ages, edges)
    return AgeCurve(edges, counts / max(int(lived.sum()), 1))
