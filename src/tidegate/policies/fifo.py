"""Keep the newest rows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from tidegate.policies.policy import Policy

if TYPE_CHECKING:
    from tidegate.types import Array, Rows, Time


@dataclass(frozen=True)
class Fifo(Policy):
    """First in, first out: the oldest row is evicted.

    The best choice when partners arrive soon after a row, as under a decreasing age curve, and the usual
    behaviour of systems that "drop the oldest". The windowed-joins paper calls it RECENT.

    Examples
    --------
    >>> import tidegate as tg
    >>> stream = {"key": [1, 2, 3, 1], "time": [0, 1, 2, 3]}
    >>> tg.simulate(stream, stream, window=(9, 9), budget=2, policy="fifo").results
    4

    References
    ----------
    Memory-Limited Execution of Windowed Stream Joins, section 6 (RECENT); iJoin, section 1.1 (FIFO).
    """

    name: ClassVar[str] = "fifo"
    use_when: ClassVar[str] = "Partners arrive soon after a row; also the baseline that drops the oldest."

    def is_fixed(self) -> bool:
        """Always: the time of a row does not change."""
        return True

    def scores(self, rows: Rows, clock: Time) -> Array:  # noqa: ARG002 - the time shifts all scores equally
        """Score by time: the newer, the higher."""
        return rows.time
