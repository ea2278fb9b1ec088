"""The measures: rows kept by the definition, and rows kept by Algorithm 1 as printed."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import numpy as np

from tidegate.alerts import AlarmFinder, Alarms, BracketStore, Shape, Topology, certify
from tidegate.compiled import kernel
from tidegate.experiments import datasets
from tidegate.streams import Readings
from tidegate.types import Array

STREAMS: Final = {
    "s-unif": Readings("uniform"),
    "s-wiener": Readings("wiener"),
    "Gamma-Wiener": Readings("wiener", "gamma", spacing=1.0),
    "uniform values": Readings("uniform", "gamma", spacing=1.0),
}
_GAMMA: Final = "(ln(h/100) + 18.678*a/(257.14+a))"
FORMULAS: Final = {
    "dew point": f"257.14*{_GAMMA} / (18.678 - {_GAMMA}) > s",
    "as printed": f"{_GAMMA} > s",
}
"""The surface is colder than the dew point: by the Magnus formula solved for the temperature, and as printed."""
DOMAIN: Final = {"h": (1.0, 100.0), "a": (-40.0, 60.0), "s": (-40.0, 60.0)}


def kept_shares(times: Array, values: Array, omega: float) -> tuple[float, float]:
    """The shares of rows that are kept by the definition and by the algorithm as printed."""
    store = BracketStore(omega)
    store.extend(times, values)
    return len(store) / len(times), float(kept_as_printed(times, values, omega).mean())


def kept_on_stream(stream: str, density: int, rows: int, seed: int) -> dict[str, float]:
    """The rows kept of a generated stream, with `density` rows per interval on average."""
    generator = STREAMS[stream]
    trace = generator.trace(rows, seed)
    return _shares(density, *kept_shares(trace.time, np.asarray(trace.value), density * generator.spacing))


DEBS, GENERATED = RECORDING_AND_GENERATED = ("DEBS", "Gamma-Wiener")
"""A recording, and the generated stream that it is compared with."""


def kept_on_recording(stream: str, density: int, data: str | Path, seed: int) -> dict[str, float]:
    """The same for the recording of the DEBS 2012 Grand Challenge, or for equally many generated rows."""
    times, values = datasets.power(data)
    if stream == GENERATED:
        return kept_on_stream(GENERATED, density, len(times), seed)
    gap = (times[-1] - times[0]) / (len(times) - 1)
    return _shares(density, *kept_shares(times, values, density * gap))


def dew_point_alarms(hours: int, data: str | Path, seed: int, formula: str = "dew point") -> dict[str, float]:  # noqa: ARG001 - there is one recording
    """The rows kept for the dew point alarm, and its alarms compared with those of a full join."""
    streams = datasets.forest(data)
    alarm = certify(FORMULAS[formula], DOMAIN)
    every_row: dict[str, Shape] = dict.fromkeys(streams, "any")
    omitting, full = (
        AlarmFinder(
            Topology.clique(list(streams), within=60 * hours, shapes=shapes),
            alarm.condition.margin,
            threshold=alarm.condition.threshold,
        )
        for shapes in (alarm.shapes(), every_row)
    )
    found, every = (_raised(finder.step(streams)) for finder in (omitting, full))
    rows = sum(len(times) for times, _ in streams.values())
    return {
        "kept %": 100 * sum(map(len, omitting.stores.values())) / rows,
        "alarms": len(every),
        "missed": len(every - found),
        "invented": len(found - every),
    }


def _raised(alarms: Alarms) -> set[tuple[int, int, float]]:
    """The stream and the row that raised each alarm, and by how much the threshold was exceeded."""
    number = np.choose(alarms.stream, list(alarms.id.values()))
    return set(zip(alarms.stream.tolist(), number.tolist(), alarms.level.tolist(), strict=True))


def _shares(density: int, share: float, printed: float) -> dict[str, float]:
    return {
        "kept %": 100 * share,
        "kept of an interval": share * density,
        "as printed %": 100 * printed,
        "as printed of an interval": printed * density,
    }


@kernel
def kept_as_printed(times: Array, values: Array, omega: float) -> Array:  # noqa: C901 - one compiled loop
    """Which rows Algorithm 1 keeps as it is printed, for rows in order of distinct times.

    Its scan to the right begins at the row before the new one, at a negative distance.
    """
    size = len(times)
    before = np.arange(-1, size - 1)
    after = np.full(size, -1)
    # Distances to the closest row: left above, left below, right above, right below.
    distance = np.full((4, size), np.inf)
    kept = np.ones(size, np.bool_)
    last = -1
    for row in range(size):
        before[row] = -1
        for direction in range(2):
            at = last
            while at >= 0:
                gap = times[row] - times[at] if direction == 0 else times[at] - times[row]
                own, other = 2 * direction, 2 - 2 * direction
                if (distance[own, row] < np.inf and distance[own + 1, row] < np.inf) or gap > omega:
                    break
                further = before[at] if direction == 0 else after[at]
                if values[at] != values[row]:
                    above = values[at] > values[row]
                    side, opposite = own + (not above), other + above
                    distance[side, row] = min(distance[side, row], gap)
                    distance[opposite, at] = min(distance[opposite, at], gap)
                    if (
                        distance[0, at] + distance[2, at] <= omega
                        and distance[1, at] + distance[3, at] <= omega
                    ):
                        kept[at] = False
                        if after[at] >= 0:
                            before[after[at]] = before[at]
                        else:
                            last = before[at]
                        if before[at] >= 0:
                            after[before[at]] = after[at]
                at = further
        if distance[0, row] + distance[2, row] <= omega and distance[1, row] + distance[3, row] <= omega:
            kept[row] = False
            continue
        before[row] = last
        if last >= 0:
            after[last] = row
        last = row
    return kept
