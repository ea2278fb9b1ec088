"""The order in which the search for combinations goes through the streams of a join."""

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


class SearchPlan(NamedTuple):
    """How to search partners for arrivals of each stream.

    Attributes
    ----------
    order
        For arrivals of each stream, the order of the other streams.
    enumerated
        For arrivals of each stream, the number of streams whose rows are tried one by one: the first ones in this
        order. Of the others only the extremes are tried.
    shapes
        The code of each stream's shape.
    """

    order: Array
    enumerated: Array
    shapes: Array


def plan_search(topology: Topology) -> SearchPlan:
    """Plan the search, such that the extremes suffice for as many streams as possible."""
    streams = topology.streams
    orders, counts = [], []
    for own in streams:
        distances = topology.distances(own)
        by_extremes: list[str] = []
        for name in sorted(distances, key=lambda other: -distances[other])[:-1]:
            unjoined = not set(by_extremes) & set(topology.partners(name))
            others = len(streams) - len(by_extremes) - 1
            if (
                unjoined
                and topology.shapes.get(name) != "any"
                and len(_connected(topology, own, [*by_extremes, name])) == others
            ):
                by_extremes.append(name)
        one_by_one = _connected(topology, own, by_extremes)[1:]
        orders.append([streams.index(name) for name in one_by_one + by_extremes])
        counts.append(len(one_by_one))
    shapes = [_CODES[topology.shapes.get(name, "quasiconvex")] for name in streams]
    return SearchPlan(np.array(orders), np.array(counts), np.array(shapes))


def plan_upper_bound(topology: Topology, plan: SearchPlan) -> SearchPlan | None:
    """Plan a search for an upper bound of an arrival's alarms: by the extremes of every joined stream.

    None if that would save no work, if some streams are not joined, or if a shape has no such bound.
    """
    all_joined = all(len(topology.partners(name)) == len(topology.streams) - 1 for name in topology.streams)
    if not plan.enumerated.any() or not all_joined or "any" in topology.shapes.values():
        return None
    return plan._replace(enumerated=np.zeros_like(plan.enumerated))


def _connected(topology: Topology, own: str, without: list[str]) -> list[str]:
    """The streams that are connected to this one without some others, each after one that it is joined to."""
    connected = [own]
    for name in connected:  # the list grows meanwhile
        connected += [other for other in topology.partners(name) if other not in (*connected, *without)]
    return connected
