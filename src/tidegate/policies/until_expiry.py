"""Keep buffered rows until their windows end."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from tidegate.policies.policy import Policy

if TYPE_CHECKING:
    from tidegate.types import Array, Rows, Time


@dataclass(frozen=True)
class UntilExpiry(Policy):
    """A buffered row stays until it expires; arrivals are buffered only if there is free space.

    The best choice when partners arrive late in a row's window, as under an increasing age curve (bids at the
    end of an auction), and a poor one when the window has no end: the first rows then stay forever.

    Examples
    --------
    >>> import tidegate as tg
    >>> stream = {"key": [1, 2, 3, 1], "time": [0, 1, 2, 3]}
    >>> tg.simulate(stream, stream, window=(9, 9), budget=2, policy="until_expiry").results
    3

    References
    ----------
    Memory-Limited Execution of Windowed Stream Joins, section 6 (UNTIL-EXPIRY).
    """

    name: ClassVar[str] = "until_expiry"
    use_when: ClassVar[str] = "Partners arrive late in a row's window: bids at the end of an auction."

    def is_fixed(self) -> bool:
        """Always: the order of arrival does not change."""
        return True

    def scores(self, rows: Rows, clock: Time) -> Array:  # noqa: ARG002 - the order of arrival does not depend on it
        """Score by arrival: the earlier, the higher."""
        return -rows.id.astype(np.float64)
