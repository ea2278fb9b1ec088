"""Proofs that an expression rises, falls or has a single valley in one of its inputs, wherever the others stand.

Rules of composition come first (`curvature`). Where they do not suffice, derivatives are bounded on small boxes:

- a first derivative that is nowhere below 0 means rising, one that is nowhere above 0 falling;
- what is monotone for each setting of the others, by the rules, has the direction of its derivative at one place;
- if on each box the first derivative is not 0, or the second is nowhere below 0, what once rises goes on rising:
  there is at most one valley. Boxes overlap a little, so that no kink is lost between two.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Literal, NamedTuple

import numpy as np

from tidegate.alerts.certification.curvature import Curve, curve
from tidegate.alerts.certification.enclosure import Enclosure
from tidegate.alerts.certification.intervals import ZERO, Interval
from tidegate.alerts.certification.subdivision import Box, Settled, settle, spread
from tidegate.alerts.expressions.nodes import Node, sql
from tidegate.types import Array

KnownShape = Literal["quasiconvex", "increasing", "decreasing"]
"""A `Shape` by which rows may be omitted: any but "any"."""


class Proof(NamedTuple):
    """What is proven, and by what."""

    shape: KnownShape
    why: str


@dataclass(frozen=True)
class Prover:
    """One input of an expression that is defined on the whole box.

    Parameters
    ----------
    tree
        The expression.
    by
        The input.
    box
        The range of each input.
    most
        How many boxes to look at for one proof.

    Examples
    --------
    >>> from tidegate.alerts.expressions.parsing import parse
    >>> Prover(parse("exp(x) - x"), "x", {"x": (-5.0, 5.0)}).valley()
    Proof(shape='quasiconvex', why='exp(x) - x is quasiconvex in it, by composition')
    """

    tree: Node
    by: str
    box: Box
    most: int = 20_000

    @cached_property
    def rules(self) -> Curve:
        """What the rules of composition say."""
        return curve(self.tree, self.by, {name: Interval.of(*ends) for name, ends in self.box.items()})

    def increasing(self) -> Proof | None:
        """Whether it rises."""
        how = "by composition" if self.rules.rises else self._by_slope(1.0)
        return Proof("increasing", f"{sql(self.tree)} rises with it, {how}") if how else None

    def decreasing(self) -> Proof | None:
        """Whether it falls."""
        how = "by composition" if self.rules.falls else self._by_slope(-1.0)
        return Proof("decreasing", f"{sql(self.tree)} falls with it, {how}") if how else None

    def valley(self) -> Proof | None:
        """Whether it is quasiconvex."""
        if self.rules.quasiconvex:
            return Proof("quasiconvex", f"{sql(self.tree)} is quasiconvex in it, by composition")
        found = settle(self.box, self._at_most_a_valley, self.most)
        how = f"by its derivatives on {_counted(found)}"
        return (
            Proof("quasiconvex", f"{sql(self.tree)} has no more than one valley in it, {how}")
            if found.holds
            else None
        )

    def _by_slope(self, sign: float) -> str:
        """How its direction is known from its derivative; nothing if it is not."""
        if self.rules.monotone:
            place = float(spread(*self.box[self.by], np.array(0.5)))
            one_place = {**self.box, self.by: (place, place)}
            if settle(one_place, lambda piece: _signed(self._slopes(piece)[0], sign) > 0, self.most).holds:
                return "by composition, and by its derivative at one place"
        found = settle(self.box, lambda piece: _signed(self._slopes(piece)[0], sign) >= 0, self.most)
        return f"by its derivative on {_counted(found)}" if found.holds else ""

    def _at_most_a_valley(self, piece: dict[str, Interval]) -> Array:
        low, high = self.box[self.by]
        own = piece[self.by]
        wider = Interval(np.nextafter(own.low, -np.inf), np.nextafter(own.high, np.inf)).clipped(low, high)
        slope, bend = self._slopes({**piece, self.by: wider})
        return (slope.low > 0) | (slope.high < 0) | (bend.low >= 0)

    def _slopes(self, piece: dict[str, Interval]) -> tuple[Interval, Interval]:
        _, slope, bend = Enclosure(piece, self.by).jet(self.tree)
        return slope or ZERO, bend or ZERO


def _signed(slope: Interval, sign: float) -> Array:
    """The least slope, in the direction that is asked for."""
    return slope.low if sign > 0 else -slope.high


def _counted(found: Settled) -> str:
    return f"{found.pieces} box{'es' if found.pieces > 1 else ''}"
