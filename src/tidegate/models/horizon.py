"""How fast what was learned is forgotten."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from tidegate.types import InputError

if TYPE_CHECKING:
    from tidegate.types import Time


def half_life(horizon: Time | None) -> float:
    """The time after which an arrival counts half: the horizon, or infinity where nothing is forgotten."""
    if horizon is None:
        return math.inf
    if isinstance(horizon, bool) or not isinstance(horizon, int | float) or not 0 < horizon < math.inf:
        raise InputError(
            f"horizon={horizon!r} is not a time; give a number above 0, or None to forget nothing"
        )
    return float(horizon)
