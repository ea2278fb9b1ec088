"""Proof of a statement about every point of a box, by dividing the box until bounds prove it on every piece.

Bounds over a wide box are wide, and over small boxes they are tight. Pieces on which the bounds do not prove the
statement are halved along their longest axis, depth first, so that a point where it fails is found soon. Infinite
axes are halved on a scale on which they are finite.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple

import numpy as np

from tidegate.alerts.certification.intervals import Interval
from tidegate.types import Array

Box = Mapping[str, tuple[float, float]]

_BATCH = 512
_SMALLEST = 2.0**-45


class BoxProof(NamedTuple):
    """The result of `prove_on_box`.

    Attributes
    ----------
    holds
        Whether the statement was proven on the whole box.
    pieces
        The number of pieces that were examined.
    unproven
        A piece on which it was not proven; empty if there is none.
    """

    holds: bool
    pieces: int
    unproven: dict[str, tuple[float, float]]


def prove_on_box(box: Box, holds: Callable[[dict[str, Interval]], Array], max_pieces: int) -> BoxProof:
    """Try to prove a statement on the whole box.

    Parameters
    ----------
    box
        The range of each input.
    holds
        Returns for each piece whether its bounds prove the statement.
    max_pieces
        The number of pieces after which the attempt ends.

    Examples
    --------
    >>> def is_below(piece):
    ...     return (piece["x"] * piece["x"] - piece["x"]).high < 2.1
    >>> prove_on_box({"x": (1, 2)}, is_below, max_pieces=99).holds
    True
    """
    sides = [name for name, (low, high) in box.items() if low < high]
    stack = np.zeros((len(sides), 2, 1))
    stack[:, 1] = 1.0
    pieces = 0
    while stack.shape[-1]:
        batch, stack = stack[..., -_BATCH:], stack[..., :-_BATCH]
        pieces += batch.shape[-1]
        ranges = _ranges(box, sides, batch)
        unproven = np.flatnonzero(~np.broadcast_to(holds(ranges), batch.shape[-1]))
        if not len(unproven):
            continue
        width = batch[:, 1, unproven] - batch[:, 0, unproven]
        if not sides or pieces > max_pieces or width.max(axis=0).min() < _SMALLEST:
            at = unproven[width.max(axis=0).argmin() if sides else 0]
            piece = {name: (float(r.low[at]), float(r.high[at])) for name, r in ranges.items()}
            return BoxProof(holds=False, pieces=pieces, unproven=piece)
        stack = np.concatenate([stack, _halve(batch[..., unproven], width.argmax(axis=0))], axis=-1)
    return BoxProof(holds=True, pieces=pieces, unproven={})


def points_between(low: float, high: float, at: Array) -> Array:
    """Map numbers from 0 to 1 to points between two ends: evenly, or on a scale that reaches infinite ends."""
    with np.errstate(divide="ignore", invalid="ignore"):
        if np.isinf(low) and np.isinf(high):
            signed = 2 * at - 1
            return np.asarray(signed / (1 - abs(signed)))
        if np.isinf(high):
            return np.asarray(low + at / (1 - at))
        if np.isinf(low):
            return np.asarray(high - (1 - at) / at)
    if np.isinf(high - low):
        return low * (1 - at) + high * at
    # Never decreases with `at`, in spite of rounding, so that the ends of a piece stay in order.
    return np.where(at == 1, high, np.minimum(low + (high - low) * at, high))


def _ranges(box: Box, sides: list[str], batch: Array) -> dict[str, Interval]:
    ranges = {name: Interval.of(np.full(batch.shape[-1], ends[0])) for name, ends in box.items()}
    for name, cuts in zip(sides, batch, strict=True):
        ranges[name] = Interval(*(points_between(*box[name], cut) for cut in cuts))
    return ranges


def _halve(batch: Array, axis: Array) -> Array:
    pieces = np.arange(batch.shape[-1])
    lower, upper = batch.copy(), batch.copy()
    middle = batch[axis, :, pieces].mean(axis=1)
    lower[axis, 1, pieces] = middle
    upper[axis, 0, pieces] = middle
    return np.concatenate([lower, upper], axis=-1)
