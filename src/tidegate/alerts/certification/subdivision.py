"""A statement about every point of a box, proven by cutting the box until it is plain on every piece.

Bounds over a wide box are wide; over small ones they are close. Pieces on which the statement does not hold by its
bounds are halved along their longest axis, depth first, so that a place where it fails is cornered soon. Axes
without end are halved along a scale on which they are finite.
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


class Settled(NamedTuple):
    """Whether it holds everywhere, on how many pieces that was looked at, and else where it was given up."""

    holds: bool
    pieces: int
    stuck: dict[str, tuple[float, float]]


def settle(box: Box, holds: Callable[[dict[str, Interval]], Array], most: int) -> Settled:
    """Find out whether a statement holds on the whole box.

    Parameters
    ----------
    box
        The range of each input.
    holds
        Marks the pieces on which the statement surely holds.
    most
        How many pieces to look at before giving up.

    Examples
    --------
    >>> settle({"x": (1, 2)}, lambda piece: (piece["x"] * piece["x"] - piece["x"]).high < 2.1, 99).holds
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
        open_ = np.flatnonzero(~np.broadcast_to(holds(ranges), batch.shape[-1]))
        if not len(open_):
            continue
        width = batch[:, 1, open_] - batch[:, 0, open_]
        if not sides or pieces > most or width.max(axis=0).min() < _SMALLEST:
            at = open_[width.max(axis=0).argmin() if sides else 0]
            stuck = {name: (float(r.low[at]), float(r.high[at])) for name, r in ranges.items()}
            return Settled(holds=False, pieces=pieces, stuck=stuck)
        stack = np.concatenate([stack, _halved(batch[..., open_], width.argmax(axis=0))], axis=-1)
    return Settled(holds=True, pieces=pieces, stuck={})


def spread(low: float, high: float, at: Array) -> Array:
    """Places between two ends for numbers from 0 to 1: evenly, or ever farther apart towards an infinite end."""
    with np.errstate(divide="ignore", invalid="ignore"):
        if np.isinf(low) and np.isinf(high):
            turned = 2 * at - 1
            return np.asarray(turned / (1 - abs(turned)))
        if np.isinf(high):
            return np.asarray(low + at / (1 - at))
        if np.isinf(low):
            return np.asarray(high - (1 - at) / at)
    if np.isinf(high - low):
        return low * (1 - at) + high * at
    # Both forms rise with `at`, so that no piece is turned round by rounding.
    return np.where(at == 1, high, np.minimum(low + (high - low) * at, high))


def _ranges(box: Box, sides: list[str], batch: Array) -> dict[str, Interval]:
    ranges = {name: Interval.of(np.full(batch.shape[-1], ends[0])) for name, ends in box.items()}
    for name, cuts in zip(sides, batch, strict=True):
        ranges[name] = Interval(*(spread(*box[name], cut) for cut in cuts))
    return ranges


def _halved(batch: Array, axis: Array) -> Array:
    pieces = np.arange(batch.shape[-1])
    lower, upper = batch.copy(), batch.copy()
    middle = batch[axis, :, pieces].mean(axis=1)
    lower[axis, 1, pieces] = middle
    upper[axis, 0, pieces] = middle
    return np.concatenate([lower, upper], axis=-1)
