"""How fast what was learned is forgotten."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final

from tidegate.types import FAR, InputError

if TYPE_CHECKING:
    from tidegate.types import Time


REMEMBERED_WINDOWS: Final = 8
"""The horizon of a learned model, in windows, where none is given."""


def remembered(horizon: Time | None, window: Time) -> Time | None:
    """The horizon that was given, or that which suits a window; None, to forget nothing, for one without end."""
    if horizon is not None:
        return horizon
    return REMEMBERED_WINDOWS * window if 0 < window < FAR else None


def half_life(horizon: Time | None) -> float:
    """The time after which an arrival counts half: the horizon, or infinity where nothing is forgotten."""
    if horizon is None:
        return math.inf
    if isinstance(horizon, bool) or not isinstance(horizon, int | float) or not 0 < horizon < math.inf:
        raise InputError(
            f"horizon={horizon!r} is not a time; give a number above 0, or None to forget nothing"
        )
    return float(horizon)
