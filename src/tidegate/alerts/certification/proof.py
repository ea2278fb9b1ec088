"""Proofs that an expression is increasing, decreasing or quasiconvex in one input, for all values of the others.

Rules of composition come first (`curvature`). Where they do not suffice, derivatives are bounded on small boxes:

- It is increasing if the first derivative is nowhere negative, and decreasing if it is nowhere positive.
- If the rules prove that it is monotone for all values of the others, the sign of the derivative at one point is
  enough.
- It is quasiconvex if on each box the first derivative is not 0, or the second is nowhere negative: once it
  increases, it goes on increasing. Boxes overlap a little, so that no kink between two is missed.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Literal, NamedTuple

import numpy as np

from tidegate.alerts.certification.curvature import CurveShape, curve_shape
from tidegate.alerts.certification.enclosure import Enclosure
from tidegate.alerts.certification.intervals import ZERO, Interval
from tidegate.alerts.certification.subdivision import Box, BoxProof, points_between, prove_on_box
from tidegate.alerts.expressions.nodes import Node, to_sql
from tidegate.types import Array

KnownShape = Literal["quasiconvex", "increasing", "decreasing"]
"""A `Shape` by which rows may be omitted: all except "any"."""


class ShapeProof(NamedTuple):
    """A proven shape, and how it was proven."""

    shape: KnownShape
    reason: str


@dataclass(frozen=True)
class ShapeProver:
    """Proves the shape of an expression in one input. The expression must be defined on the whole box.

    Parameters
    ----------
    tree
        The expression.
    by
        The input.
    box
        The range of each input.
    max_pieces
        The maximal number of boxes for one proof.

    Examples
    --------
    >>> from tidegate.alerts.expressions.parsing import parse
    >>> ShapeProver(parse("exp(x) - x"), "x", {"x": (-5.0, 5.0)}).prove_quasiconvex()
    ShapeProof(shape='quasiconvex', reason='exp(x) - x is quasiconvex in it, by composition')
    """

    tree: Node
    by: str
    box: Box
    max_pieces: int = 20_000

    @cached_property
    def by_composition(self) -> CurveShape:
        """The shape by the rules of composition."""
        return curve_shape(self.tree, self.by, {name: Interval.of(*ends) for name, ends in self.box.items()})

    def prove_increasing(self) -> ShapeProof | None:
        """Try to prove that it is increasing."""
        how = "by composition" if self.by_composition.increasing else self._prove_by_slope(1.0)
        return ShapeProof("increasing", f"{to_sql(self.tree)} increases with it, {how}") if how else None

    def prove_decreasing(self) -> ShapeProof | None:
        """Try to prove that it is decreasing."""
        how = "by composition" if self.by_composition.decreasing else self._prove_by_slope(-1.0)
        return ShapeProof("decreasing", f"{to_sql(self.tree)} decreases with it, {how}") if how else None

    def prove_quasiconvex(self) -> ShapeProof | None:
        """Try to prove that it is quasiconvex."""
        text = f"{to_sql(self.tree)} is quasiconvex in it"
        if self.by_composition.quasiconvex:
            return ShapeProof("quasiconvex", f"{text}, by composition")
        proof = prove_on_box(self.box, self._bends_upwards, self.max_pieces)
        if not proof.holds:
            return None
        return ShapeProof("quasiconvex", f"{text}, by its derivatives on {_box_count(proof)}")

    def _prove_by_slope(self, sign: float) -> str:
        """How the derivative proves the direction; empty if it does not."""

        def least_slope(piece: dict[str, Interval]) -> Array:
            slope, _ = self._derivatives(piece)
            return slope.low if sign > 0 else -slope.high

        if self.by_composition.monotone:
            point = float(points_between(*self.box[self.by], np.array(0.5)))
            one_point = {**self.box, self.by: (point, point)}
            if prove_on_box(one_point, lambda piece: least_slope(piece) > 0, self.max_pieces).holds:
                return "by composition, and by its derivative at one point"
        proof = prove_on_box(self.box, lambda piece: least_slope(piece) >= 0, self.max_pieces)
        return f"by its derivative on {_box_count(proof)}" if proof.holds else ""

    def _bends_upwards(self, piece: dict[str, Interval]) -> Array:
        """Whether on each piece the slope is not 0, or the second derivative is nowhere negative."""
        low, high = self.box[self.by]
        own = piece[self.by]
        wider = Interval(np.nextafter(own.low, -np.inf), np.nextafter(own.high, np.inf)).clipped(low, high)
        slope, bend = self._derivatives({**piece, self.by: wider})
        return (slope.low > 0) | (slope.high < 0) | (bend.low >= 0)

    def _derivatives(self, piece: dict[str, Interval]) -> tuple[Interval, Interval]:
        _, slope, bend = Enclosure(piece, self.by).jet(self.tree)
        return slope or ZERO, bend or ZERO


def _box_count(proof: BoxProof) -> str:
    return f"{proof.pieces} box{'es' if proof.pieces > 1 else ''}"
