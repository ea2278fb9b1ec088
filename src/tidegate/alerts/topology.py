"""Which streams of a join may omit rows, and the length of the brackets that decide about it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations, pairwise
from typing import NamedTuple, Self

from tidegate.alerts.stores.bracket_store import Shape
from tidegate.alerts.validation import check_duration
from tidegate.types import InputError, Time, check_choice


class Omission(NamedTuple):
    """Which rows one stream may omit.

    Parameters
    ----------
    omega
        The length of the brackets; None if no row may be omitted.
    shape
        Which extremes must be kept, see `BracketStore`.
    reason
        The reason for this, in words.
    """

    omega: Time | None
    shape: Shape
    reason: str


@dataclass(frozen=True)
class Topology:
    """The streams of one alarm, and which pairs of them must be close in time.

    Parameters
    ----------
    edges
        The pairs of streams that are joined. Together they connect all streams.
    within
        The maximal difference of the times of two joined rows.
    shapes
        How the function depends on each stream; "quasiconvex" by default.

    Examples
    --------
    >>> star = Topology.star("machine", ["air", "surface"], within=10)
    >>> for name, omission in omittable(star).items():
    ...     print(name, omission.omega, omission.reason)
    machine None its partners air and surface are not joined to each other
    air 20 it is joined to machine only
    surface 20 it is joined to machine only
    >>> omittable(Topology.clique(["h", "a", "s"], within=10))["h"]
    Omission(omega=10, shape='quasiconvex', reason='its partners a and s are joined to each other')

    References
    ----------
    Optimization of Threshold Functions over Streams, section 4.
    """

    edges: tuple[tuple[str, str], ...]
    within: Time
    shapes: Mapping[str, Shape] = field(default_factory=dict)

    def __post_init__(self) -> None:
        check_duration(self.within, "within")
        object.__setattr__(self, "edges", tuple((left, right) for left, right in self.edges))
        if not self.edges:
            raise InputError("edges is empty; give the pairs of joined streams, such as [('a', 'b')]")
        for left, right in self.edges:
            if left == right:
                raise InputError(f"stream {left!r} is joined to itself; give pairs of different streams")
        for name, shape in self.shapes.items():
            if name not in self.streams:
                raise InputError(f"there is no stream {name!r}; the streams are: {', '.join(self.streams)}")
            check_choice(shape, Shape, f"shape of {name}")
        unconnected = [name for name in self.streams if name not in self.distances(self.streams[0])]
        if unconnected:
            raise InputError(
                f"{', '.join(unconnected)} and {self.streams[0]} are not connected; add a pair that joins them, or "
                "define separate alarms"
            )

    @classmethod
    def clique(cls, names: Sequence[str], within: Time, shapes: Mapping[str, Shape] | None = None) -> Self:
        """All pairs are joined: any two times differ by at most `within`."""
        return cls(tuple(combinations(_check_streams(names), 2)), within, shapes or {})

    @classmethod
    def near_clique(
        cls,
        names: Sequence[str],
        apart: tuple[str, str],
        within: Time,
        shapes: Mapping[str, Shape] | None = None,
    ) -> Self:
        """All pairs except `apart` are joined."""
        edges = tuple(pair for pair in combinations(_check_streams(names), 2) if set(pair) != set(apart))
        if len(edges) != len(names) * (len(names) - 1) // 2 - 1:
            raise InputError(f"apart={apart!r} is not a pair of {', '.join(names)}; give two of these names")
        return cls(edges, within, shapes or {})

    @classmethod
    def star(
        cls, centre: str, others: Sequence[str], within: Time, shapes: Mapping[str, Shape] | None = None
    ) -> Self:
        """One stream is joined to each of the others."""
        return cls(
            tuple((centre, name) for name in _check_streams([centre, *others])[1:]), within, shapes or {}
        )

    @classmethod
    def chain(cls, names: Sequence[str], within: Time, shapes: Mapping[str, Shape] | None = None) -> Self:
        """Each stream is joined to the next."""
        return cls(tuple(pairwise(_check_streams(names))), within, shapes or {})

    @property
    def streams(self) -> tuple[str, ...]:
        """The streams, in the order in which the edges first name them."""
        return tuple(dict.fromkeys(name for edge in self.edges for name in edge))

    def partners(self, name: str) -> tuple[str, ...]:
        """The streams that this stream is joined to."""
        if name not in self.streams:
            raise InputError(f"there is no stream {name!r}; the streams are: {', '.join(self.streams)}")
        joined = {right if left == name else left for left, right in self.edges if name in (left, right)}
        return tuple(other for other in self.streams if other in joined)

    def distances(self, name: str) -> dict[str, int]:
        """The distance of each stream from this one, in joins."""
        distances, queue = {name: 0}, [name]
        for current in queue:  # the queue grows meanwhile
            for other in self.partners(current):
                if other not in distances:
                    distances[other] = distances[current] + 1
                    queue.append(other)
        return distances

    def omission(self, name: str) -> Omission:
        """Which rows this stream may omit."""
        shape: Shape = self.shapes.get(name, "quasiconvex")
        partners = self.partners(name)
        if shape == "any":
            return Omission(None, shape, "the function may not be quasiconvex in it")
        for one, other in combinations(partners, 2):
            if other not in self.partners(one):
                return Omission(None, "any", f"its partners {one} and {other} are not joined to each other")
        if len(partners) == 1:
            return Omission(2 * self.within, shape, f"it is joined to {partners[0]} only")
        listed = f"{', '.join(partners[:-1])} and {partners[-1]}"
        return Omission(self.within, shape, f"its partners {listed} are joined to each other")


def omittable(*topologies: Topology) -> dict[str, Omission]:
    """Return which rows each stream may omit if several joins read it.

    The shortest brackets serve all joins. If one join needs all rows of a stream, none may be omitted. A stream in
    which one function increases and another decreases must keep its highest and lowest rows.

    Examples
    --------
    >>> pair, trio = Topology.clique(["a", "b"], within=4), Topology.clique(["a", "b", "c"], within=5)
    >>> {name: omission.omega for name, omission in omittable(pair, trio).items()}
    {'a': 5, 'b': 5, 'c': 5}
    """
    if not topologies:
        raise InputError("omittable needs at least one Topology")
    names = dict.fromkeys(name for topology in topologies for name in topology.streams)
    return {
        name: _strictest([topology.omission(name) for topology in topologies if name in topology.streams])
        for name in names
    }


def _strictest(omissions: Sequence[Omission]) -> Omission:
    """The omission that all joins allow."""
    for omission in omissions:
        if omission.omega is None:
            return omission
    shortest = min(omissions, key=lambda omission: omission.omega or 0)
    same_shape = len({omission.shape for omission in omissions}) == 1
    return shortest if same_shape else shortest._replace(shape="quasiconvex")


def _check_streams(names: Sequence[str]) -> list[str]:
    streams = list(names)
    if len(set(streams)) != len(streams) or len(streams) < 2:  # noqa: PLR2004 - a join needs two
        raise InputError(f"the streams are {streams!r}; give at least two different names")
    return streams
