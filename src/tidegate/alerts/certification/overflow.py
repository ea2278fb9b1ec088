"""The ranges of inputs over which no part of an expression overflows 64-bit floats.

A value that overflows becomes infinite. Infinity minus infinity, or times 0, is NaN, which raises no alarm. So an
alarm could be lost if a row is kept in place of another, although the exact margin has the proven shape. Bounds of
every part of the expression show over which ranges of the inputs this cannot happen. They are rounded outwards, so
they also hold for values that are computed in floats.

The limit is 2**1000, not the largest float, just below 2**1024: sums of terms within the limit do not overflow in
any order. Underflow needs no such limit: it is a rounding error, and a divisor or an argument of a logarithm that
could be rounded to 0 counts as not defined.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, NamedTuple

import numpy as np

from tidegate.alerts.certification.enclosure import Enclosure, Jet
from tidegate.alerts.certification.intervals import Interval
from tidegate.alerts.certification.subdivision import Box, BoxProof, prove_on_box
from tidegate.alerts.expressions.nodes import Call, Node, Number, input_names, to_sql
from tidegate.types import Array

LARGEST: Final = 2.0**1000
_EXPONENTS: Final = (-10, 1000)
_MAX_PIECES: Final = 5_000
_MAX_PIECES_PER_TRIAL: Final = 512
_MAX_INPUTS_FOR_CORNERS: Final = 8


class OverflowLimits(NamedTuple):
    """The ranges of the inputs within which nothing overflows; or, if there are none, what overflows."""

    box: dict[str, tuple[float, float]]
    problem: str = ""


def overflow_limits(tree: Node, box: Box) -> OverflowLimits:
    """The ranges of the inputs over which an expression does not overflow.

    Finite ends are unchanged. Infinite ends are replaced by powers of 2, as large as possible: first by the same
    power for all inputs, then by a larger one for each input in turn.

    Examples
    --------
    >>> from tidegate.alerts.expressions.parsing import parse
    >>> overflow_limits(parse("exp(x) * y"), {"x": (0, np.inf), "y": (-1, 1)}).box
    {'x': (0, 512.0), 'y': (-1, 1)}
    >>> overflow_limits(parse("exp(x) * y"), {"x": (0, 800), "y": (-1, 1)}).problem
    'overflows: exp(x) can exceed 1e+301 with x in 0 .. 800'
    """
    open_ends = [name for name, ends in box.items() if np.isinf(ends).any()]
    if not open_ends:
        proof = _prove_no_overflow(tree, box, _MAX_PIECES)
        return OverflowLimits(dict(box), "" if proof.holds else _problem(tree, box, proof.unproven))
    least, most = _EXPONENTS
    smallest = {name: _smallest_exponent(box[name], least) for name in open_ends}

    def limited(exponents: dict[str, int]) -> dict[str, tuple[float, float]]:
        ranges = {
            name: _replace_infinite(box[name], 2.0 ** max(exponent, smallest[name]))
            for name, exponent in exponents.items()
        }
        return {**box, **ranges}

    def fits(exponents: dict[str, int]) -> bool:
        ranges = limited(exponents)
        return (
            not _overflows_at_corners(tree, ranges)
            and _prove_no_overflow(tree, ranges, _MAX_PIECES_PER_TRIAL).holds
        )

    start = _greatest(lambda exponent: fits(dict.fromkeys(open_ends, exponent)), least, most)
    if start is None:
        proof = _prove_no_overflow(tree, limited(dict.fromkeys(open_ends, least)), _MAX_PIECES)
        return OverflowLimits(dict(box), _problem(tree, box, proof.unproven or dict(box)))
    chosen = dict.fromkeys(open_ends, start)
    for name in open_ends if start < most else ():

        def fits_for_one(exponent: int, name: str = name) -> bool:
            return fits({**chosen, name: exponent})

        chosen[name] = _greatest(fits_for_one, start, most) or start
    return OverflowLimits(limited(chosen))


class _OverflowEnclosure(Enclosure):
    """Bounds that also require every part of the expression to be within the limit."""

    def jet(self, tree: Node) -> Jet:
        bounds = super().jet(tree)
        if not isinstance(tree, Number):
            self._require(to_sql(tree), (bounds.value.low >= -LARGEST) & (bounds.value.high <= LARGEST))
        return bounds


def _overflows_at_corners(tree: Node, box: Box) -> bool:
    """Whether the expression overflows at a corner of the box, or where some inputs are 0: a fast test."""
    if len(box) > _MAX_INPUTS_FOR_CORNERS:
        return False
    axes = [np.unique([low, min(max(0.0, low), high), high]) for low, high in box.values()]
    points = [axis.ravel() for axis in np.meshgrid(*axes)]
    bounds = _OverflowEnclosure({name: Interval.of(column) for name, column in zip(box, points, strict=True)})
    bounds.jet(tree)
    return bool(bounds.unmet)


def _prove_no_overflow(tree: Node, box: Box, max_pieces: int) -> BoxProof:
    def fits(piece: dict[str, Interval]) -> Array:
        bounds = _OverflowEnclosure(piece)
        bounds.jet(tree)
        shape = np.broadcast_shapes(*(ends.low.shape for ends in piece.values()))
        within = np.ones(shape, bool)
        for requirement in bounds.unmet:
            within &= ~np.broadcast_to(requirement.boxes, shape)
        return within

    return prove_on_box(box, fits, max_pieces)


def _problem(tree: Node, box: Box, unproven: Box) -> str:
    """A sentence: which part overflows first, and over which ranges of its inputs."""
    bounds = _OverflowEnclosure({name: Interval.of(*ends) for name, ends in unproven.items()})
    bounds.jet(tree)
    part = bounds.unmet[0].text if bounds.unmet else to_sql(tree)
    inputs = [name for name in input_names(tree) if name in _inputs_of_part(tree, part)]
    ranges = ", ".join(
        f"{name} in {box[name][0]:g} .. {box[name][1]:g}" for name in inputs or input_names(tree)
    )
    return f"overflows: {part} can exceed {LARGEST:.0e} with {ranges}"


def _inputs_of_part(tree: Node, text: str) -> tuple[str, ...]:
    """The inputs of the part of an expression whose SQL is this text."""
    if to_sql(tree) == text:
        return input_names(tree)
    parts = tree.arguments if isinstance(tree, Call) else ()
    return next((inputs for part in parts if (inputs := _inputs_of_part(part, text))), ())


def _smallest_exponent(ends: tuple[float, float], least: int) -> int:
    """The smallest power of 2 that is beyond the finite end, if there is one."""
    finite = [abs(end) for end in ends if np.isfinite(end) and end]
    return max([least, *(int(np.frexp(end)[1]) for end in finite)])


def _replace_infinite(ends: tuple[float, float], bound: float) -> tuple[float, float]:
    low, high = ends
    return (-bound if low == -np.inf else low), (bound if high == np.inf else high)


def _greatest(holds: Callable[[int], bool], least: int, most: int) -> int | None:
    """The greatest number for which it holds, if it holds up to some number; None if it holds for none."""
    if holds(most):
        return most
    if not holds(least):
        return None
    while most - least > 1:
        middle = (least + most) // 2
        least, most = (middle, most) if holds(middle) else (least, middle)
    return least
