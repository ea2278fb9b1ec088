"""Functions that rise by one at a time, looked up rather than reckoned: for loops over many rows.

Where each rise lies is reckoned once. A coarse table tells how many rises lie before a stretch of the axis, so that
as a rule no more than a comparison is left to do.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

from tidegate.compiled import kernel

if TYPE_CHECKING:
    from tidegate.types import Array

_STRETCHES: Final = 1024


class Stairs(NamedTuple):
    """Where the function rises, ascending up to infinity, and how often it did before each stretch of the axis."""

    rises: Array
    before: Array
    stretches: float


def stairs(rises: Array, top: float) -> Stairs:
    """What `climbed` needs, for numbers from 0 to `top`.

    Examples
    --------
    >>> roots = stairs(np.array([1.0, 4.0, 9.0]), top=10.0)
    >>> climbed(roots, 0.5), climbed(roots, 4.0), climbed(roots, 4.1), climbed(roots, 10.0)
    (0, 1, 2, 3)
    """
    edges = np.linspace(0.0, top, _STRETCHES + 1)
    return Stairs(np.append(rises, np.inf), np.searchsorted(rises, edges), _STRETCHES / top)


@kernel
def climbed(steps: Stairs, number: float) -> int:
    """How many rises lie below a number."""
    count = steps.before[int(number * steps.stretches)]
    # Of two rises in one stretch there are few: all but those are found without a branch to be guessed.
    count += steps.rises[count] < number
    while steps.rises[count] < number:
        count += 1
    return int(count)
