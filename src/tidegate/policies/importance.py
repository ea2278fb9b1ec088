"""Keep the rows that matter most by themselves."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from tidegate.policies.policy import Need, Policy

if TYPE_CHECKING:
    from tidegate.types import Array, Rows, Time


@dataclass(frozen=True)
class Importance(Policy):
    """The least important row goes, whether or not it ever matches.

    For joins in which what matters is rare and finds its partners anyway. Rows of great importance and no partner
    block memory for as long as their windows last; `ijoin` notices those.

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
    """

    name: ClassVar[str] = "importance"
    needs: ClassVar[frozenset[Need]] = frozenset({"importance"})

    def is_fixed(self) -> bool:
        """It is, unless importance is redefined."""
        return True

    def scores(self, rows: Rows, now: Time) -> Array:  # noqa: ARG002 - what matters now matters later
        """Score by importance."""
        return importance_of(rows)


def importance_of(rows: Rows) -> Array:
    """What rows are said to be worth; where nobody said, all alike."""
    return np.ones(len(rows)) if rows.importance is None else rows.importance
