"""Keep the rows that have produced most results."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from tidegate.policies.policy import Policy

if TYPE_CHECKING:
    from tidegate.types import Array, Rows, Time


@dataclass(frozen=True)
class Size(Policy):
    """What has matched most so far will go on to: the largest output, by the plainest of estimates.

    Needs no model and no memory beside a count a row, but knows nothing of a row before its first matches:
    use `prob` where keys recur and `age` where matches depend on age.

    Examples
    --------
    >>> import tidegate as tg
    >>> stream = {"key": [1, 2, 1, 3, 1, 4, 1], "time": [0, 1, 2, 3, 4, 5, 6]}
    >>> [tg.simulate(stream, stream, window=(4, 4), budget=3, policy=name).results for name in ("size", "fifo")]
    [11, 10]

    References
    ----------
    iJoin, section 5 (SIZE).

    Deviations
    ----------
    The paper names the scheme but gives no rule, and no simple rule yields its Table 3(b).
    """

    name: ClassVar[str] = "size"

    def scores(self, rows: Rows, now: Time) -> Array:  # noqa: ARG002 - past matches do not depend on the time
        """Score by results so far."""
        return rows.matches
