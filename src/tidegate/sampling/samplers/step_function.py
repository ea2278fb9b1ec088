"""Step functions that rise by one at each step, evaluated by table lookup in loops over many rows.

The positions of the steps are computed once. A coarse table has the number of steps before each section of the axis,
so that usually one comparison remains.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

from tidegate.compiled import kernel

if TYPE_CHECKING:
    from tidegate.types import Array

_SECTIONS: Final = 1024


class StepFunction(NamedTuple):
    """The positions of the steps, up to infinity, and the number of steps before each section of the axis."""

    rises: Array
    before: Array
    sections: float


def step_function(rises: Array, top: float) -> StepFunction:
    """Prepare `steps_below` for numbers from 0 to `top`.

    Examples
    --------
    >>> roots = step_function(np.array([1.0, 4.0, 9.0]), top=10.0)
    >>> steps_below(roots, 0.5), steps_below(roots, 4.0), steps_below(roots, 4.1), steps_below(roots, 10.0)
    (0, 1, 2, 3)
    """
    edges = np.linspace(0.0, top, _SECTIONS + 1)
    return StepFunction(np.append(rises, np.inf), np.searchsorted(rises, edges), _SECTIONS / top)


@kernel
def steps_below(steps: StepFunction, number: float) -> int:
    """The number of steps below a number."""
    count = steps.before[int(number * steps.sections)]
    # Few sections have two steps: all others need no branch that the processor has to predict.
    count += steps.rises[count] < number
    while steps.rises[count] < number:
        count += 1
    return int(count)
