"""Keep the most important rows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from tidegate.policies.policy import Policy

if TYPE_CHECKING:
    from tidegate.types import Array, Rows, Time


@dataclass(frozen=True)
class Importance(Policy):
    """Evict the least important row, whether or not it ever matches.

    For joins in which important rows are rare and find their partners anyway. An important row without a partner
    occupies memory until its window ends; `ijoin` detects such rows.

    Examples
    --------
    >>> import tidegate as tg
    >>> alerts = {"key": [1, 2, 3], "time": [0, 1, 2], "importance": [5, 1, 1]}
    >>> causes = {"key": [1], "time": [3], "importance": [5]}
    >>> one = dict(window=(9, 0), budget=1)
    >>> [tg.simulate(alerts, causes, policy=name, **one).importance for name in ("importance", "fifo")]
    [5.0, 0.0]

    References
    ----------
    iJoin, section 4 (GREEDY).

    Deviations
    ----------
    The paper does not state which of equally important rows is evicted. In its section 5.3, where all are equal, some
    rows occupy the memory: the oldest stay. Here the newest stay, as with all policies: an older row has less of its
    window left. `tidegate.experiments.ijoin.greedy` is the other choice.
    """

    name: ClassVar[str] = "importance"
    use_when: ClassVar[str] = "Only the importance of a row counts, whether or not it ever matches."

    def is_fixed(self) -> bool:
        """Always, unless importance is redefined."""
        return True

    def scores(self, rows: Rows, clock: Time) -> Array:  # noqa: ARG002 - importance does not depend on the time
        """Score by importance."""
        return importance_of(rows)


def importance_of(rows: Rows) -> Array:
    """The importance of rows; 1 for each if none is given."""
    return np.ones(len(rows)) if rows.importance is None else rows.importance
