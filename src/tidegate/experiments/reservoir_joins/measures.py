"""The measures of the experiments."""

from __future__ import annotations

from functools import lru_cache
from typing import Final, NamedTuple

import numpy as np

from tidegate.engine import Join, simulate
from tidegate.engine.reservoir_join import (
    ReservoirConfig,
    ReservoirJoin,
    ReservoirReport,
    ReservoirSample,
    run_reservoir,
)
from tidegate.experiments.reservoir_joins.printed import (
    PrintedJoinReservoir,
    PrintedProgressiveJoinReservoir,
    PrintedReservoirJoin,
)
from tidegate.experiments.windowed_joins.printed_uniform import PrintedUniform
from tidegate.models import Frequency
from tidegate.sampling import (
    JoinReservoir,
    ProgressiveJoinReservoir,
    Uniform,
    expected_results,
    uniformity_confidence,
)
from tidegate.streams import Normal, Trace
from tidegate.types import Array

WINDOW: Final = (500, 500)
RATES: Final = (1.0, 5.0)
SIZE: Final = 100
HALF: Final = 1500
"""Half of the rows that both windows hold."""
UNIT_OF_TIME: Final = 6
"""Rows of both streams together."""
STEP: Final = 10
"""Units of time per step by default."""
PRINTED: Final = " as printed"
ALGORITHMS: Final = ("RJS", "PRJS", "RJS as printed", "PRJS as printed")
_PARTS: Final = 10
"""Periods with equally many results, for the uniformity over time."""


class Exact(NamedTuple):
    """All results of the join by time: when each arrived, the index of its key in `keys`, the left row's value."""

    keys: Array
    time: Array
    key: Array
    value: Array


def stream_of(fanout: int) -> Normal:
    """The streams of section 5.1; a fanout of 0 is for keys in random order."""
    return Normal(fanout=fanout or None)


@lru_cache(maxsize=2)
def _streams(units: int, fanout: int, seed: int) -> tuple[Trace, Trace, Exact]:
    left, right = stream_of(fanout).both(units, seed)
    pairs = simulate(left, right, window=WINDOW, step=600, collect=True).pairs
    assert pairs is not None  # noqa: S101 - collected
    assert left.value is not None  # noqa: S101 - the stream has it
    time = np.maximum(left.time[pairs.left], right.time[pairs.right])
    order = np.argsort(time, kind="stable")
    keys, key = np.unique(left.keys[0].to_numpy()[pairs.left][order], return_inverse=True)
    return left, right, Exact(keys, time[order], key, left.value[pairs.left][order])


def run_algorithm(
    algorithm: str,
    *,
    units: int,
    use_at: float,
    fanout: int,
    seed: int,
    every: int,
    initial: int = SIZE,
    step: int = STEP,
) -> tuple[ReservoirReport, Trace, Trace, Exact]:
    """Run an algorithm, and record its sample at regular times."""
    left, right, results = _streams(units, fanout, seed)
    stream, printed = stream_of(fanout), algorithm.endswith(PRINTED)
    growing = ProgressiveJoinReservoir(
        initial, HALF + SIZE, use_at, (stream.shares, stream.shares), RATES, WINDOW
    )
    progressive = algorithm.startswith("PRJS")
    known = (stream.keys, stream.shares)
    model = Frequency(known, known)

    def start(join: Join) -> ReservoirJoin:
        reservoir: ReservoirConfig
        if printed:
            fixed = PrintedJoinReservoir(initial, HALF + SIZE)
            reservoir = PrintedProgressiveJoinReservoir(growing) if progressive else fixed
            return PrintedReservoirJoin(join, reservoir, PrintedUniform(model=model, rates=RATES))
        reservoir = growing if progressive else JoinReservoir(initial, HALF + SIZE)
        return ReservoirJoin(join, reservoir, Uniform(model=model, rates=RATES))

    report = run_reservoir(
        left,
        right,
        start,
        window=WINDOW,
        step=step * UNIT_OF_TIME,
        at=range(every, units + 1, every),
        seed=seed,
    )
    return report, left, right, results


def confidence(*, m: int, k: int, r: int, delta: int, seed: int) -> dict[str, float]:  # noqa: ARG001 - nothing is drawn
    """Figures 2 and 3: equation 2, in percent."""
    return {"confidence": 100 * uniformity_confidence(k, r, delta, m)}


def sizes(
    *, algorithm: str, units: int, use_at: int, every: int, step: int, seed: int
) -> list[dict[str, float]]:
    """Figures 5 and 6: the size of the sample over time."""
    report, _, _, _ = run_algorithm(
        algorithm, units=units, use_at=use_at, fanout=0, seed=seed, every=every, step=step
    )
    at = np.searchsorted(report.times, np.arange(every, units + 1, every), "right") - 1
    # A reservoir that grows evicts some results, but refills so fast that only single steps show it.
    grown = np.flatnonzero(np.diff(report.size) > 0)
    fell = max((float(report.held[step] - report.held[step + 1]) for step in grown), default=0.0)
    summary = _grown(report) | {"fell by": fell, "peak": float((report.rows + report.held).max())}
    return [
        summary
        | {"time": (i + 1) * every, "held": float(report.held[place]), "size": float(report.size[place])}
        for i, place in enumerate(at)
    ]


def by_results(*, algorithm: str, use_at: int, seed: int, initial: int = SIZE) -> dict[str, float]:
    """Figure 7: the size at the time of use, by the number of expected results or by the initial size."""
    report, _, _, _ = run_algorithm(
        algorithm, units=use_at, use_at=use_at, fanout=0, seed=seed, every=use_at, initial=initial
    )
    shares = stream_of(0).shares
    results = expected_results((shares, shares), use_at, rates=RATES, window=WINDOW)
    return {"l": round(results), "size": float(report.size[-1]), "held": float(report.held[-1])}


def over_time(*, algorithm: str, units: int, every: int, fanout: int, seed: int) -> list[dict[str, float]]:
    """Figures 8 to 10: the uniformity of the sample by keys and by time, and the error of its average."""
    report, left, right, results = run_algorithm(
        algorithm, units=units, use_at=units / 2, fanout=fanout, seed=seed, every=every
    )
    assert left.value is not None  # noqa: S101 - the stream has it
    keys, count = left.keys[0].to_numpy(), len(results.keys)
    measured: list[dict[str, float]] = []
    for sample in report.samples:
        so_far = int(np.searchsorted(results.time, sample.time, "right"))
        if not so_far or not len(sample.left):
            continue
        place = int(np.searchsorted(report.times, sample.time, "right")) - 1
        counts = np.bincount(np.searchsorted(results.keys, keys[sample.left]), minlength=count)
        share = np.bincount(results.key[:so_far], minlength=count) / so_far
        measured.append(
            _grown(report)
            | {
                "time": float(sample.time),
                "held": float(len(sample.left)),
                "chi-square": chi_square(counts, len(sample.left) * share),
                "of its size": chi_square(counts, float(report.size[place]) * share),
                "by time": _by_time(sample, left, right, results.time[:so_far]),
                "off": abs(float(left.value[sample.left].mean()) - float(results.value[:so_far].mean())),
            }
        )
    return measured


def chi_square(counts: Array, expected: Array) -> float:
    """Equation 9, divided so that the mean is 1 for a uniform sample.

    Examples
    --------
    >>> chi_square(np.array([2, 4, 0]), np.array([3.0, 3.0, 0.0]))
    0.666...
    """
    possible = expected > 0
    total = float(((counts[possible] - expected[possible]) ** 2 / expected[possible]).sum())
    return total / max(1, int(possible.sum()) - 1)


def _by_time(sample: ReservoirSample, left: Trace, right: Trace, times: Array) -> float:
    """Chi-square over periods with equally many results, by the time when results arrived."""
    edges = times[(np.arange(1, _PARTS) * len(times)) // _PARTS]
    arrived = np.maximum(left.time[sample.left], right.time[sample.right])
    counts = np.bincount(np.searchsorted(edges, arrived, "right"), minlength=_PARTS)
    share = np.bincount(np.searchsorted(edges, times, "right"), minlength=_PARTS) / len(times)
    return chi_square(counts, len(arrived) * share)


def _grown(report: ReservoirReport) -> dict[str, float]:
    return {} if np.isnan(report.grew_at) else {"grew": report.grew_at}
