"""Keep the rows that matter most by themselves."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Literal

import numpy as np

from tidegate.policies.policy import Policy
from tidegate.policies.ranking import Ranking
from tidegate.policies.selection import best
from tidegate.types import check_choice

if TYPE_CHECKING:
    from tidegate.policies.ranking import Course
    from tidegate.types import Array, Budget, Rows, Setting, Side, Time

Equals = Literal["newest", "oldest"]


@dataclass(frozen=True)
class Importance(Policy):
    """The least important row goes, whether or not it ever matches.

    For joins in which what matters is rare and finds its partners anyway. Rows of great importance and no partner
    block memory for as long as their windows last; `ijoin` notices those.

    Parameters
    ----------
    equals
        Who stays of equally important rows: the "newest" or the "oldest". Without importances, where every row
        has 1, the first is as `fifo` and the second as `until_expiry`.

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
    The paper does not say who goes of equally important rows. Its section 5.3, where all are, has a few rows occupy
    the memory: the oldest stay. Here the newest do unless told otherwise, as with all policies: an older row has less
    of its window left, and `equals="oldest"` fills the memory with rows that stay until they expire.
    """

    name: ClassVar[str] = "importance"
    use_when: ClassVar[str] = "Only the importance of a row counts, whether or not it ever matches."

    equals: Equals = "newest"

    def __post_init__(self) -> None:
        check_choice(self.equals, Equals, "equals")

    def is_fixed(self) -> bool:
        """It is, unless importance is redefined."""
        return True

    def start(self, setting: Setting) -> Policy:  # noqa: ARG002 - it needs nothing from it
        """Rank by importance alone, or let the oldest of equals stay."""
        return self if self.equals == "newest" else _KeepingOldest(self)

    def scores(self, rows: Rows, now: Time) -> Array:  # noqa: ARG002 - what matters now matters later
        """Score by importance."""
        return importance_of(rows)


class _KeepingOldest(Policy):
    """`Importance` at work where the oldest of equals stay."""

    def __init__(self, config: Importance) -> None:
        self.config = config

    def __repr__(self) -> str:
        return repr(self.config)

    def ranking(self, course: Course) -> Ranking:
        """By importance, then by arrival: a place of its own for each row."""
        worth = course.merged(importance_of(course.left), importance_of(course.right))
        places = np.empty(len(worth))
        places[np.lexsort((-np.arange(len(worth)), worth))] = np.arange(len(worth))
        return Ranking(places)

    def scores(self, rows: Rows, now: Time) -> Array:
        """Score by importance."""
        return self.config.scores(rows, now)

    def keep(self, rows: dict[Side, Rows], budget: Budget, now: Time) -> dict[Side, Array]:
        """Mark the most important rows that fit; of equals the oldest."""
        scores = np.concatenate([self.scores(some, now) for some in rows.values()])
        sizes = np.concatenate([some.sizes() for some in rows.values()]) if budget.unit == "bytes" else None
        stays = best(scores, [-some.id for some in rows.values()], sizes, budget)
        return dict(
            zip(rows, np.split(stays, np.cumsum([len(some) for some in rows.values()])[:-1]), strict=True)
        )


def importance_of(rows: Rows) -> Array:
    """The importance of rows; 1 for each where none is given."""
    return np.ones(len(rows)) if rows.importance is None else rows.importance
