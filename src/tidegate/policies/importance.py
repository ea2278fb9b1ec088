"""Keep the most important rows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Literal

import numpy as np

from tidegate.policies.policy import Policy, RunningPolicy
from tidegate.policies.ranking import FixedRanking
from tidegate.policies.selection import best
from tidegate.types import check_choice, other_side

if TYPE_CHECKING:
    from tidegate.policies.ranking import RecordedRun
    from tidegate.types import Array, Budget, Clocks, Rows, Setting, Side, Time

Equals = Literal["newest", "oldest"]


@dataclass(frozen=True)
class Importance(Policy):
    """Evict the least important row, whether or not it ever matches.

    For joins in which important rows are rare and find their partners anyway. An important row without a partner
    occupies memory until its window ends; `ijoin` detects such rows.

    Parameters
    ----------
    equals
        Which of equally important rows stay: the "newest" or the "oldest". Without importances every row has 1; then
        the first is `fifo` and the second is `until_expiry`.

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
    rows occupy the memory: the oldest stay. Here the newest stay by default, as with all policies: an older row has
    less of its window left. With `equals="oldest"` memory fills with rows that stay until they expire.
    """

    name: ClassVar[str] = "importance"
    use_when: ClassVar[str] = "Only the importance of a row counts, whether or not it ever matches."

    equals: Equals = "newest"

    def __post_init__(self) -> None:
        check_choice(self.equals, Equals, "equals")

    def is_fixed(self) -> bool:
        """Always, unless importance is redefined."""
        return True

    def start(self, setting: Setting) -> RunningPolicy:  # noqa: ARG002 - it needs nothing from it
        """Rank by importance, with the newest or the oldest of equal rows first."""
        return self if self.equals == "newest" else OldestImportance(self)

    def scores(self, rows: Rows, clock: Time) -> Array:  # noqa: ARG002 - importance does not depend on the time
        """Score by importance."""
        return importance_of(rows)


class OldestImportance(RunningPolicy):
    """A running `Importance` that keeps the oldest of equally important rows."""

    def __init__(self, config: Importance) -> None:
        self.config = config

    def __repr__(self) -> str:
        return repr(self.config)

    def ranking(self, run: RecordedRun) -> FixedRanking:
        """Rank by importance, then by arrival: each row has a rank of its own."""
        importance = run.merged(importance_of(run.left), importance_of(run.right))
        ranks = np.empty(len(importance))
        ranks[np.lexsort((-np.arange(len(importance)), importance))] = np.arange(len(importance))
        return FixedRanking(ranks)

    def scores(self, rows: Rows, clock: Time) -> Array:
        """Score by importance."""
        return self.config.scores(rows, clock)

    def keep(self, rows: dict[Side, Rows], budget: Budget, clocks: Clocks) -> dict[Side, Array]:
        """Mark the most important rows that fit; among equals the oldest."""
        scores = np.concatenate(
            [self.scores(some, clocks.of(other_side(side))) for side, some in rows.items()]
        )
        sizes = np.concatenate([some.sizes() for some in rows.values()]) if budget.unit == "bytes" else None
        stays = best(scores, [-some.id for some in rows.values()], sizes, budget)
        return dict(
            zip(rows, np.split(stays, np.cumsum([len(some) for some in rows.values()])[:-1]), strict=True)
        )


def importance_of(rows: Rows) -> Array:
    """The importance of rows; 1 for each if none is given."""
    return np.ones(len(rows)) if rows.importance is None else rows.importance
