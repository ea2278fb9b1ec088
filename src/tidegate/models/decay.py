"""The half-life of observations in learned models."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final

from tidegate.types import FAR, InputError

if TYPE_CHECKING:
    from tidegate.types import Time


REMEMBERED_WINDOWS: Final = 8
"""The default horizon of a learned model, in windows."""


def horizon_for(horizon: Time | None, window: Time) -> Time | None:
    """The given horizon, or the default for a window; None (no decay) for a window without end."""
    if horizon is not None:
        return horizon
    return REMEMBERED_WINDOWS * window if 0 < window < FAR else None


def half_life(horizon: Time | None) -> float:
    """The time after which an observation counts half: the horizon, or infinity without one."""
    if horizon is None:
        return math.inf
    if isinstance(horizon, bool) or not isinstance(horizon, int | float) or not 0 < horizon < math.inf:
        raise InputError(f"horizon={horizon!r} must be a positive duration, or None for no decay")
    return float(horizon)
