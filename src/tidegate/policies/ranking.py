"""How rows rank throughout a recorded run, where that depends on the arrivals and not on which rows are kept.

Such a run can be one compiled loop (`tidegate.engine.one_loop`): the policy decides nothing between its steps.
Each policy that can do this has a ranking of its own, in its own file: the columns that its compiled score needs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple, TypeAlias

import numpy as np

from tidegate.policies.abilities import FixedScores, RanksBeforehand
from tidegate.types import FAR, SIDES

if TYPE_CHECKING:
    from tidegate.policies.age import AgeRanking
    from tidegate.policies.heeb.heeb import DistanceRanking
    from tidegate.policies.policy import RunningPolicy
    from tidegate.policies.prob import ShareRanking
    from tidegate.policies.random import DrawRanking
    from tidegate.types import Array, Rows, Side

NO_NUMBERS: Final = np.empty(0, np.float64)
NO_INTEGERS: Final = np.empty(0, np.int64)
NO_STEPS: Final = np.empty((0, 2), np.float64)


class RecordedRun(NamedTuple):
    """What arrives in a run: the rows of each side in order of arrival, each row's step, and each step's time."""

    left: Rows
    right: Rows
    steps: Array
    nows: Array

    @property
    def rows(self) -> dict[Side, Rows]:
        """The rows by side."""
        return {"left": self.left, "right": self.right}

    def counts(self) -> Array:
        """The number of rows of each side in each step."""
        counted = [np.bincount(self.steps[rows.id], minlength=len(self.nows)) for rows in self.rows.values()]
        return np.stack(counted, axis=1)

    def merged(self, left: Array, right: Array) -> Array:
        """A column by row number."""
        column = np.empty(len(self.steps), np.result_type(left, right))
        column[self.left.id], column[self.right.id] = left, right
        return column

    def last(self, columns: dict[Side, Array]) -> Array:
        """For each step, the value of each side's last row; 0 before its first row."""
        ends = np.cumsum(self.counts(), axis=0)
        return np.stack(
            [
                np.concatenate((np.zeros(1, columns[side].dtype), columns[side]))[ends[:, i]]
                for i, side in enumerate(SIDES)
            ],
            axis=1,
        )

    def since(self) -> Array:
        """For each step, the time after which the next rows of each side arrive (`last_complete`)."""
        arrived = np.cumsum(self.counts(), axis=0) > 0
        times = self.last({side: np.floor(rows.time) for side, rows in self.rows.items()})
        latest = np.where(arrived, times, -float(FAR))
        since: Array = last_complete(self.nows[:, None], latest)
        return since


def last_complete(now: Array | float, latest: Array | float) -> Array:
    """The last whole time whose row of a side has arrived, given the time of its latest row.

    In steps of one row, the row of the current time may not have arrived yet.
    """
    complete: Array = np.maximum(np.floor(now) - 1, latest)
    return complete


class FixedRanking(NamedTuple):
    """Rank by scores that are fixed when a row arrives.

    Parameters
    ----------
    scores
        The score of each row, by row number.
    rates
        For each step, the rate of each side, by which the scores of the other side are multiplied; empty for none.
    """

    scores: Array = NO_NUMBERS
    rates: Array = NO_STEPS


Ranking: TypeAlias = "FixedRanking | DrawRanking | AgeRanking | ShareRanking | DistanceRanking"


def overrides_together(thing: object, method: str, *others: str) -> bool:
    """Whether no subclass overrides one of `others` without overriding `method` too.

    A subclass that inherits `method` and overrides one of the others may no longer do what `method` states.

    Examples
    --------
    >>> class Ranked:
    ...     def scores(self): ...
    ...     def ranking(self): ...
    >>> class Changed(Ranked):
    ...     def scores(self): ...
    >>> overrides_together(Ranked(), "ranking", "scores"), overrides_together(Changed(), "ranking", "scores")
    (True, False)
    """
    classes = type(thing).__mro__
    first = {
        name: next((i for i, c in enumerate(classes) if name in vars(c)), len(classes))
        for name in (method, *others)
    }
    return all(first[method] <= first[name] for name in others)


_DECISIONS: Final = ("scores", "observe", "keep")
"""The methods of a running policy that decide which rows stay."""


def ranking_of(policy: RunningPolicy, run: RecordedRun) -> Ranking | None:
    """How rows rank throughout a run; None if the policy has to score at every step."""
    if isinstance(policy, RanksBeforehand):
        return policy.ranking(run) if overrides_together(policy, "ranking", *_DECISIONS) else None
    if not isinstance(policy, FixedScores) or not overrides_together(policy, "is_fixed", *_DECISIONS):
        return None
    if not policy.is_fixed():
        return None
    return FixedRanking(run.merged(policy.scores(run.left, 0), policy.scores(run.right, 0)))
