"""Floats as integers that sort in the order of SQL."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from tidegate.types import Array


def to_sortable_integers(floats: Array) -> Array:
    """Convert floats to integers in SQL's order: -0.0 equals 0.0, and NaN equals itself and exceeds all numbers.

    Examples
    --------
    >>> low, zero, minus, high, nan = to_sortable_integers(np.array([-1.5, 0.0, -0.0, np.inf, np.nan]))
    >>> bool(low < zero == minus < high < nan)
    True
    """
    values = floats.astype(np.float64) + 0.0
    bits = values.view(np.int64)
    numbers = np.where(bits < 0, np.iinfo(np.int64).min - bits, bits)
    numbers[np.isnan(values)] = np.iinfo(np.int64).max
    return numbers
