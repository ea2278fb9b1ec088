"""In which order the streams of a join are taken, when combinations are searched for an arrival."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

from tidegate.types import Array

if TYPE_CHECKING:
    from tidegate.alerts.stores.bracket_store import Shape
    from tidegate.alerts.topology import Topology

QUASICONVEX, INCREASING, DECREASING = 0, 1, 2
_CODES: Final[dict[Shape, int]] = {
    "quasiconvex": QUASICONVEX,
    "increasing": INCREASING,
    "decreasing": DECREASING,
    "any": QUASICONVEX,
}


class Plan(NamedTuple):
    """For arrivals of each stream, in which order the others are taken, and how many of them row by row."""

    order: Array
    inner: Array
    shapes: Array


def planned(topology: Topology) -> Plan:
    """For arrivals of each stream, the order of the others; last those of which the extremes are enough."""
    streams = topology.streams
    orders, inner = [], []
    for own in streams:
        far = topology.distances(own)
        outer: list[str] = []
        for name in sorted(far, key=lambda other: -far[other])[:-1]:
            apart = not set(outer) & set(topology.partners(name))
            left = len(streams) - len(outer) - 1
            if (
                apart
                and topology.shapes.get(name) != "any"
                and len(_spread(topology, own, [*outer, name])) == left
            ):
                outer.append(name)
        taken = _spread(topology, own, outer)[1:]
        orders.append([streams.index(name) for name in taken + outer])
        inner.append(len(taken))
    shapes = [_CODES[topology.shapes.get(name, "quasiconvex")] for name in streams]
    return Plan(np.array(orders), np.array(inner), np.array(shapes))


def bounding(topology: Topology, plan: Plan) -> Plan | None:
    """A plan that bounds what an arrival can reach, from the extremes of each stream that is joined to it.

    None where that is no less work, or where a stream is not joined to all others or of a shape without such a bound.
    """
    all_joined = all(len(topology.partners(name)) == len(topology.streams) - 1 for name in topology.streams)
    if not plan.inner.any() or not all_joined or "any" in topology.shapes.values():
        return None
    return plan._replace(inner=np.zeros_like(plan.inner))


def _spread(topology: Topology, own: str, without: list[str]) -> list[str]:
    """The streams that hang together with this one without those, each after one that it is joined to."""
    found = [own]
    for name in found:
        found += [other for other in topology.partners(name) if other not in (*found, *without)]
    return found
