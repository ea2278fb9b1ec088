"""GREEDY: keep the most important rows, and among equally important ones the oldest."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from tidegate.policies import Importance, RunningPolicy
from tidegate.policies.importance import importance_of
from tidegate.policies.ranking import FixedRanking
from tidegate.policies.selection import best
from tidegate.types import other_side

if TYPE_CHECKING:
    from tidegate.policies.ranking import RecordedRun
    from tidegate.types import Array, Budget, Clocks, Rows, Setting, Side, Time


@dataclass(frozen=True)
class Greedy(Importance):
    """`Importance` that keeps the oldest of equally important rows, so memory fills with rows until they expire.

    Examples
    --------
    >>> import tidegate as tg
    >>> offers = {"key": [1, 2], "time": [0, 1]}
    >>> orders = {"key": [1], "time": [2]}
    >>> [tg.simulate(offers, orders, policy=one, window=(9, 0), budget=1).results for one in (Importance(), Greedy())]
    [0, 1]

    References
    ----------
    iJoin, sections 4 and 5.3: where all rows are equally important, some rows occupy the memory.
    """

    def start(self, setting: Setting) -> RunningPolicy:  # noqa: ARG002 - it needs nothing from it
        """Rank by importance, with the oldest of equal rows first."""
        return RunningGreedy(self)


class RunningGreedy(RunningPolicy):
    """A running `Greedy`."""

    def __init__(self, config: Greedy) -> None:
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
