"""The importance of a result from that of its partners."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from tidegate.compiled import kernel

if TYPE_CHECKING:
    from tidegate.types import Array, Combine

_MIN, _MAX, _SUM, _PRODUCT, _MEAN = range(5)
COMBINES: Final[dict[Combine, int]] = {
    "min": _MIN,
    "max": _MAX,
    "sum": _SUM,
    "product": _PRODUCT,
    "mean": _MEAN,
}


@kernel
def combined(combine: int, a: float, b: float) -> float:
    """The importance of a result from its partners'."""
    if combine == _MIN:
        return min(a, b)
    if combine == _MAX:
        return max(a, b)
    if combine == _SUM:
        return a + b
    if combine == _PRODUCT:
        return a * b
    return (a + b) / 2.0


@kernel
def importances(combine: int, left: Array, right: Array, at_left: Array, at_right: Array) -> Array:
    """The importance of each of some pairs."""
    found = np.empty(len(at_left))
    for i in range(len(at_left)):
        found[i] = combined(combine, left[at_left[i]], right[at_right[i]])
    return found
