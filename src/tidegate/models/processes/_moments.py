"""Decayed means and co-moments of columns, updated while rows arrive."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

import numpy as np

from tidegate.compiled import kernel
from tidegate.types import Numbers, Stateful

if TYPE_CHECKING:
    from tidegate.types import Array, State


class WeightedMoments(Stateful):
    """The weighted moments of rows that a regression needs, in constant memory.

    Co-moments are about the mean, and each batch is added by its own mean. So large numbers lose no digits, and the
    division into batches does not matter.

    Parameters
    ----------
    width
        The number of columns.

    Examples
    --------
    >>> moments = WeightedMoments(2)
    >>> moments.add(np.array([[0.0, 1.0], [1.0, 3.0]]), np.ones(2))
    >>> moments.add(np.array([[2.0, 5.0]]), np.ones(1))
    >>> moments.mean, moments.spread[0, 1] / moments.spread[0, 0]
    (array([1., 3.]), np.float64(2.0))

    References
    ----------
    Updating Formulae and a Pairwise Algorithm for Computing Sample Variances (Chan, Golub and LeVeque, 1979).
    """

    state: ClassVar[State] = {
        "": Numbers(weight=float, mean=np.ndarray, spread=np.ndarray)
    }  # all of it in one array

    def __init__(self, width: int) -> None:
        self.weight = 0.0
        self.mean = np.zeros(width)
        self.spread = np.zeros((width, width))

    def decay(self, factor: float) -> None:
        """Multiply the weight of all rows so far by a factor."""
        self.weight *= factor
        self.spread *= factor

    def shift_origin(self, by: Array) -> None:
        """Move the origin of each column up by `by`."""
        self.mean -= by

    def add(self, rows: Array, weights: Array) -> None:
        """Add rows."""
        weight, mean, spread = _moments(np.ascontiguousarray(rows, np.float64), weights)
        if weight > 0:
            difference, total = mean - self.mean, self.weight + weight
            self.spread += spread + np.outer(difference, difference) * (self.weight * weight / total)
            self.mean += difference * (weight / total)
            self.weight = total


@kernel
def _moments(rows: Array, weights: Array) -> tuple[float, Array, Array]:
    count, width = rows.shape
    total, mean, spread = 0.0, np.zeros(width), np.zeros((width, width))
    for i in range(count):
        total += weights[i]
        # The mean moves towards each row, so that it stays in the range of the rows.
        if total > 0.0:
            part = weights[i] / total
            for j in range(width):
                mean[j] += part * (rows[i, j] - mean[j])
    for i in range(count):
        for j in range(width):
            for k in range(width):
                spread[j, k] += weights[i] * (rows[i, j] - mean[j]) * (rows[i, k] - mean[k])
    return total, mean, spread
