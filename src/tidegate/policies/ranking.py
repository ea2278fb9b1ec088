"""How rows rank throughout a recorded run, where that depends on the arrivals and not on which rows are kept.

Such a run can be one compiled loop, because the policy decides nothing between its steps.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

from tidegate.compiled import inlined, kernel
from tidegate.draws import mix
from tidegate.models.age_curve import Tables, priorities
from tidegate.policies.abilities import FixedScores, RanksBeforehand
from tidegate.policies.trend_limits import UNREACHABLE
from tidegate.types import FAR, SIDES

if TYPE_CHECKING:
    from tidegate.policies.policy import RunningPolicy
    from tidegate.types import Array, Rows, Side, Time

_NUMBERS: Final = np.empty(0, np.float64)
_WHOLE: Final = np.empty(0, np.int64)
_BY_STEP: Final = np.empty((0, 2), np.float64)
_NO_CURVE: Final = Tables(_NUMBERS, _NUMBERS, _NUMBERS, _WHOLE, 0.0)
_WORTHLESS: Final = Tables(np.zeros(2), np.zeros(2), np.zeros(1), np.ones(2, np.int64), 0.0)
"""The curve of rows that find nothing at any age."""


class RecordedRun(NamedTuple):
    """What arrives in a run: the rows of each side in order of arrival, each row's step, and each step's time."""

    left: Rows
    right: Rows
    steps: Array
    nows: Array

    @property
    def rows(self) -> dict[Side, Rows]:
        """By side."""
        return {"left": self.left, "right": self.right}

    def counts(self) -> Array:
        """How many rows of each side each step brings."""
        counted = [np.bincount(self.steps[rows.id], minlength=len(self.nows)) for rows in self.rows.values()]
        return np.stack(counted, axis=1)

    def merged(self, left: Array, right: Array) -> Array:
        """A column by row number."""
        column = np.empty(len(self.steps), np.result_type(left, right))
        column[self.left.id], column[self.right.id] = left, right
        return column

    def last(self, columns: dict[Side, Array]) -> Array:
        """Of each side, what its last row has by each step; 0 before its first came."""
        ends = np.cumsum(self.counts(), axis=0)
        return np.stack(
            [
                np.concatenate((np.zeros(1, columns[side].dtype), columns[side]))[ends[:, i]]
                for i, side in enumerate(SIDES)
            ],
            axis=1,
        )

    def since(self) -> Array:
        """From when on each side brings what is still to come: after its last row, and after the time before now."""
        came = np.cumsum(self.counts(), axis=0) > 0
        times = self.last({side: np.floor(rows.time) for side, rows in self.rows.items()})
        since: Array = np.maximum(np.floor(self.nows)[:, None] - 1, np.where(came, times, -float(FAR)))
        return since


class Ranking(NamedTuple):
    """How rows rank: by one of the ways, of which the others are empty.

    Parameters
    ----------
    scores
        Of each row, for good; where `rates` are given, too, each counts by the other side's rate.
    salts
        Of each step, to draw with.
    curves
        Of each side: what rows are worth by age.
    codes, spans, horizon
        For shares of keys among the rows that came, or their counts where no rates are given: each row's key as a
        number from 0 on; how long rows of each side live, where that counts; and the half-life of an arrival.
    tables, starts, origins
        What rows of each side are worth by how far their key is from where the other side is: the tables, which key
        each begins with, and where each side is at each step.
    keys
        Of each row, for the tables.
    rates
        Of each side at each step, by which scores, shares and tables count.
    passes, since
        When the other side has passed each row's key for good, and what is still to come of each side at each step;
        empty where keys do not move.
    """

    scores: Array = _NUMBERS
    salts: Array = _WHOLE
    curves: tuple[Tables, Tables] = (_NO_CURVE, _NO_CURVE)
    codes: Array = _WHOLE
    spans: Array = _NUMBERS
    horizon: float = np.inf
    tables: tuple[Array, Array] = (_NUMBERS, _NUMBERS)
    starts: Array = _WHOLE
    origins: Array = np.empty((0, 2), np.int64)
    keys: Array = _WHOLE
    rates: Array = _BY_STEP
    passes: Array = _NUMBERS
    since: Array = _BY_STEP

    @classmethod
    def by_age(cls, left: Tables | None, right: Tables | None) -> Ranking:
        """Rank by curves; None for a side whose rows find nothing."""
        return cls(curves=(left or _WORTHLESS, right or _WORTHLESS))


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
    """How rows rank throughout a run; None if the policy has to be asked at every step."""
    if isinstance(policy, RanksBeforehand):
        return policy.ranking(run) if overrides_together(policy, "ranking", *_DECISIONS) else None
    if not isinstance(policy, FixedScores) or not overrides_together(policy, "is_fixed", *_DECISIONS):
        return None
    if not policy.is_fixed():
        return None
    return Ranking(run.merged(policy.scores(run.left, 0), policy.scores(run.right, 0)))


class Shares(NamedTuple):
    """What was counted of each side's keys: the weight of each, of all, and the time at which a row weighed 1."""

    weights: Array
    totals: Array
    began: Array


@kernel
def no_shares(ranking: Ranking) -> Shares:
    """Before the first row."""
    keys = ranking.codes.max() + 1 if len(ranking.codes) > 0 else 0
    return Shares(np.zeros((2, keys)), np.zeros(2), np.full(2, np.nan))


@inlined
def count_share(shares: Shares, code: int, side: int, now: float, horizon: float) -> None:
    """Count a row that came."""
    if np.isnan(shares.began[side]):
        shares.began[side] = now
    weight = np.exp2((now - shares.began[side]) / horizon)
    shares.weights[side, code] += weight
    shares.totals[side] += weight


@kernel
def scores_of(
    ranking: Ranking, shares: Shares, rows: Array, on_right: Array, step: int, now: Time, times: Array
) -> Array:
    """The scores of these rows after a step."""
    if len(ranking.curves[0].edges) > 0:
        scores = _by_age(ranking.curves, rows, on_right, now - times[rows])
    elif len(ranking.salts) > 0:
        scores = _drawn(rows, ranking.salts[step])
    elif len(ranking.codes) > 0:
        scores = _by_share(ranking, shares, rows, on_right, step)
        if len(ranking.spans) > 0:
            _weigh_by_life(ranking, scores, rows, on_right, step, now, times)
    else:
        scores = _by_place(ranking, rows, on_right, step)
    if len(ranking.passes) > 0:
        passes, since = ranking.passes, ranking.since[step]
        for i in range(len(rows)):
            if passes[rows[i]] - since[1 - on_right[rows[i]]] <= 0:
                scores[i] = UNREACHABLE
    return scores


# Each way has a loop of its own, over arrays of its own: a loop that passed all of a ranking along would spend its
# time on counting references to what it does not use.


@kernel
def _by_age(curves: tuple[Tables, Tables], rows: Array, on_right: Array, ages: Array) -> Array:
    scores, of_right = priorities(ages, curves[0]), priorities(ages, curves[1])
    for i in range(len(rows)):
        if on_right[rows[i]]:
            scores[i] = of_right[i]
    return scores


@kernel
def _drawn(rows: Array, salt: int) -> Array:
    scores = np.empty(len(rows))
    for i in range(len(rows)):
        # 53 bits, so that a draw is the same as an integer and as a float.
        scores[i] = mix(np.uint64(rows[i] ^ salt)) >> np.uint64(11)
    return scores


@kernel
def _by_share(ranking: Ranking, shares: Shares, rows: Array, on_right: Array, step: int) -> Array:
    """The share of each row's key on the other side; times that side's rate, unless lives count and bring it in.

    Without rates, how often the other side brought the key.
    """
    scores = np.empty(len(rows))
    codes, weights, totals = ranking.codes, shares.weights, shares.totals
    if len(ranking.rates) == 0:
        for i in range(len(rows)):
            scores[i] = weights[1 - on_right[rows[i]], codes[rows[i]]]
        return scores
    rates = ranking.rates[step]
    alone = len(ranking.spans) > 0
    for i in range(len(rows)):
        other = 1 - on_right[rows[i]]
        share = weights[other, codes[rows[i]]]
        if totals[other] > 0:
            share /= totals[other]
        scores[i] = share if alone else share * rates[other]
    return scores


@kernel
def _weigh_by_life(
    ranking: Ranking, scores: Array, rows: Array, on_right: Array, step: int, now: Time, times: Array
) -> None:
    spans, rates, passes = ranking.spans, ranking.rates[step], ranking.passes
    for i in range(len(rows)):
        row, side = rows[i], on_right[rows[i]]
        left = max(spans[side] - (now - times[row]), 0.0)
        if len(passes) > 0:
            left = max(min(left, passes[row] - ranking.since[step, 1 - side]), 0.0)
        scores[i] *= rates[1 - side] * left


@kernel
def _by_place(ranking: Ranking, rows: Array, on_right: Array, step: int) -> Array:
    scores = np.empty(len(rows))
    keys, starts, origins, rates = ranking.keys, ranking.starts, ranking.origins[step], ranking.rates[step]
    left, right = ranking.tables
    for i in range(len(rows)):
        side = on_right[rows[i]]
        place = keys[rows[i]] - origins[1 - side] - starts[side]
        scores[i] = (right[place] if side else left[place]) * rates[1 - side]
    return scores
