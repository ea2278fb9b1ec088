"""Means and co-moments of columns, kept while rows arrive and old ones fade."""

from __future__ import annotations

from typing import TYPE_CHECKING, Self

import numpy as np

from tidegate.compiled import kernel

if TYPE_CHECKING:
    from tidegate.types import Array


class Moments:
    """What a regression needs to know of weighted rows, in memory that does not grow with them.

    Co-moments are about the mean, and batches are added up by their own means: nothing is lost to large numbers, nor
    does it matter how rows are cut into batches.

    Parameters
    ----------
    width
        How many columns there are.

    Examples
    --------
    >>> moments = Moments(2)
    >>> moments.fold(np.array([[0.0, 1.0], [1.0, 3.0]]), np.ones(2))
    >>> moments.fold(np.array([[2.0, 5.0]]), np.ones(1))
    >>> moments.mean, moments.spread[0, 1] / moments.spread[0, 0]
    (array([1., 3.]), np.float64(2.0))

    References
    ----------
    Updating Formulae and a Pairwise Algorithm for Computing Sample Variances (Chan, Golub and LeVeque, 1979).
    """

    def __init__(self, width: int) -> None:
        self.weight = 0.0
        self.mean = np.zeros(width)
        self.spread = np.zeros((width, width))

    def fade(self, kept: float) -> None:
        """Let all rows by now count for less."""
        self.weight *= kept
        self.spread *= kept

    def shift(self, by: Array) -> None:
        """Count each column from a point that lies so much higher."""
        self.mean -= by

    def fold(self, rows: Array, weights: Array) -> None:
        """Add rows."""
        weight, mean, spread = _moments(np.ascontiguousarray(rows, np.float64), weights)
        if weight > 0:
            apart, total = mean - self.mean, self.weight + weight
            self.spread += spread + np.outer(apart, apart) * (self.weight * weight / total)
            self.mean += apart * (weight / total)
            self.weight = total

    def snapshot(self) -> Array:
        """All of it in one column."""
        return np.concatenate(([self.weight], self.mean, self.spread.ravel()))

    def restore(self, state: Array) -> Self:
        """Take up what `snapshot` gave."""
        width = len(self.mean)
        self.weight = float(state[0])
        self.mean, self.spread = state[1 : width + 1].copy(), state[width + 1 :].reshape(width, width).copy()
        return self


@kernel
def _moments(rows: Array, weights: Array) -> tuple[float, Array, Array]:
    count, width = rows.shape
    total, mean, spread = 0.0, np.zeros(width), np.zeros((width, width))
    for i in range(count):
        total += weights[i]
        # The mean moves towards each row, so it never leaves the range of the rows.
        if total > 0.0:
            part = weights[i] / total
            for j in range(width):
                mean[j] += part * (rows[i, j] - mean[j])
    for i in range(count):
        for j in range(width):
            for k in range(width):
                spread[j, k] += weights[i] * (rows[i, j] - mean[j]) * (rows[i, k] - mean[k])
    return total, mean, spread
