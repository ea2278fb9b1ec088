"""Which streams of a join may omit rows, and by brackets of what length."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations, pairwise
from typing import NamedTuple, Self

from tidegate.alerts.stores.bracket_store import Shape, check_length
from tidegate.types import InputError, Time, check_choice


class Omission(NamedTuple):
    """What one stream may omit.

    Parameters
    ----------
    omega
        The length of its brackets; None if nothing may be omitted.
    shape
        Which extremes must stay.
    reason
        Why.
    """

    omega: Time | None
    shape: Shape
    reason: str


@dataclass(frozen=True)
class Topology:
    """The streams of one alarm and which pairs of them must lie close in time.

    Parameters
    ----------
    edges
        The pairs of streams that are joined; every stream is in one, and all hang together.
    within
        How far apart the times of two joined rows may be.
    shapes
        How the function depends on a stream, where that is not "quasiconvex".

    Examples
    --------
    >>> star = Topology.star("machine", ["air", "surface"], within=10)
    >>> for name, told in omittable(star).items():
    ...     print(name, told.omega, told.reason)
    machine None its partners air and surface are not joined to each other
    air 20 it is joined to machine alone
    surface 20 it is joined to machine alone
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
        check_length(self.within, "within")
        object.__setattr__(self, "edges", tuple((left, right) for left, right in self.edges))
        if not self.edges:
            raise InputError("a join of no pairs of streams has no alarms; give edges such as [('a', 'b')]")
        for left, right in self.edges:
            if left == right:
                raise InputError(f"stream {left!r} is joined to itself; give pairs of two streams")
        for name, shape in self.shapes.items():
            if name not in self.streams:
                raise InputError(f"there is no stream {name!r}; there is {', '.join(self.streams)}")
            check_choice(shape, Shape, f"shape of {name}")
        apart = [name for name in self.streams if name not in self.distances(self.streams[0])]
        if apart:
            raise InputError(
                f"{', '.join(apart)} and {self.streams[0]} do not hang together; join them, or raise alarms apart"
            )

    @classmethod
    def clique(cls, names: Sequence[str], within: Time, shapes: Mapping[str, Shape] | None = None) -> Self:
        """All pairs are joined: all times lie within the bound of each other."""
        return cls(tuple(combinations(_several(names), 2)), within, shapes or {})

    @classmethod
    def near_clique(
        cls,
        names: Sequence[str],
        apart: tuple[str, str],
        within: Time,
        shapes: Mapping[str, Shape] | None = None,
    ) -> Self:
        """All pairs but one are joined."""
        edges = tuple(pair for pair in combinations(_several(names), 2) if set(pair) != set(apart))
        if len(edges) != len(names) * (len(names) - 1) // 2 - 1:
            raise InputError(f"{apart!r} is no pair of {', '.join(names)}; give two of them")
        return cls(edges, within, shapes or {})

    @classmethod
    def star(
        cls, centre: str, others: Sequence[str], within: Time, shapes: Mapping[str, Shape] | None = None
    ) -> Self:
        """One stream is joined to each of the others."""
        return cls(tuple((centre, name) for name in _several([centre, *others])[1:]), within, shapes or {})

    @classmethod
    def chain(cls, names: Sequence[str], within: Time, shapes: Mapping[str, Shape] | None = None) -> Self:
        """Each stream is joined to the next."""
        several = _several(names)
        return cls(tuple(pairwise(several)), within, shapes or {})

    @property
    def streams(self) -> tuple[str, ...]:
        """The streams, in the order in which they are first named."""
        return tuple(dict.fromkeys(name for edge in self.edges for name in edge))

    def partners(self, name: str) -> tuple[str, ...]:
        """The streams that this one is joined to."""
        if name not in self.streams:
            raise InputError(f"there is no stream {name!r}; there is {', '.join(self.streams)}")
        joined = {right if left == name else left for left, right in self.edges if name in (left, right)}
        return tuple(other for other in self.streams if other in joined)

    def distances(self, name: str) -> dict[str, int]:
        """How many joins away each stream is."""
        found, edge = {name: 0}, [name]
        while edge:
            edge = [other for one in edge for other in self.partners(one) if other not in found]
            found |= {
                other: 1 + min(found[one] for one in self.partners(other) if one in found) for other in edge
            }
        return found

    def omission(self, name: str) -> Omission:
        """What this stream may omit."""
        shape: Shape = self.shapes.get(name, "quasiconvex")
        partners = self.partners(name)
        if shape == "any":
            return Omission(None, shape, "the function is not known to be quasiconvex in it")
        for one, other in combinations(partners, 2):
            if other not in self.partners(one):
                return Omission(None, "any", f"its partners {one} and {other} are not joined to each other")
        if len(partners) == 1:
            return Omission(2 * self.within, shape, f"it is joined to {partners[0]} alone")
        listed = f"{', '.join(partners[:-1])} and {partners[-1]}"
        return Omission(self.within, shape, f"its partners {listed} are joined to each other")


def omittable(*topologies: Topology) -> dict[str, Omission]:
    """Tell for each stream what it may omit, if all these joins read it.

    The shortest brackets serve all, and a join for which nothing may be omitted decides alone. A stream in which one
    function rises and another falls must keep highest and lowest rows.

    Examples
    --------
    >>> pair, trio = Topology.clique(["a", "b"], within=4), Topology.clique(["a", "b", "c"], within=5)
    >>> {name: told.omega for name, told in omittable(pair, trio).items()}
    {'a': 5, 'b': 5, 'c': 5}
    """
    if not topologies:
        raise InputError("no join was given; give at least one Topology")
    names = dict.fromkeys(name for topology in topologies for name in topology.streams)
    return {
        name: _narrowest([topology.omission(name) for topology in topologies if name in topology.streams])
        for name in names
    }


def _narrowest(told: Iterable[Omission]) -> Omission:
    every = list(told)
    for omission in every:
        if omission.omega is None:
            return omission
    narrow = min(every, key=lambda omission: omission.omega or 0)
    return (
        narrow if len({omission.shape for omission in every}) == 1 else narrow._replace(shape="quasiconvex")
    )


def _several(names: Sequence[str]) -> list[str]:
    several = list(names)
    if len(set(several)) != len(several) or len(several) < 2:  # noqa: PLR2004 - a join is of two
        raise InputError(f"streams {several!r} make no join; give at least two, each once")
    return several
