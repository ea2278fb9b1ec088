"""The scores of rows of both sides inside a compiled loop, whichever policy ranks them.

Numba compiles a loop once for all policies if the ranking always has the same type. So the ranking of one policy is a
field of `LoopRanking`, and the fields of the others are empty. The formulas are those of the policies' own files.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, Self

from tidegate.compiled import kernel
from tidegate.policies.age import AgeRanking, age_scores
from tidegate.policies.heeb.heeb import DistanceRanking, distance_scores
from tidegate.policies.life import weigh_by_time_left
from tidegate.policies.prob import ShareRanking, share_scores
from tidegate.policies.random import DrawRanking, draw_scores
from tidegate.policies.ranking import FixedRanking
from tidegate.policies.trend_limits import lower_unreachable, remaining_times

if TYPE_CHECKING:
    from tidegate.policies.prob import KeyShares
    from tidegate.policies.ranking import Ranking
    from tidegate.types import Array, Time


class LoopRanking(NamedTuple):
    """The rankings of all policies; one of them is filled in."""

    fixed: FixedRanking = FixedRanking()
    draws: DrawRanking = DrawRanking()
    ages: AgeRanking = AgeRanking()
    shares: ShareRanking = ShareRanking()
    distances: DistanceRanking = DistanceRanking()

    @classmethod
    def of(cls, ranking: Ranking) -> Self:
        """Fill in one ranking."""
        if isinstance(ranking, DrawRanking):
            return cls(draws=ranking)
        if isinstance(ranking, AgeRanking):
            return cls(ages=ranking)
        if isinstance(ranking, ShareRanking):
            return cls(shares=ranking)
        if isinstance(ranking, DistanceRanking):
            return cls(distances=ranking)
        return cls(fixed=ranking)


@kernel
def changing_scores(
    ranking: LoopRanking, counted: KeyShares, rows: Array, on_right: Array, step: int, now: Time, times: Array
) -> Array:
    """The scores of these rows after a step, where scores are not fixed.

    `rows` are row numbers; `on_right` and `times` are columns by row number.
    """
    if len(ranking.ages.left.edges) > 0:
        return age_scores(ranking.ages, rows, on_right, now - times[rows])
    if len(ranking.draws.salts) > 0:
        scores = draw_scores(rows, ranking.draws.salts[step])
        limits = ranking.draws.limits
        if len(limits.last_times) > 0:
            lower_unreachable(scores, remaining_times(limits, rows, on_right, step))
        return scores
    if len(ranking.shares.codes) > 0:
        scores = share_scores(ranking.shares, counted, rows, on_right, step)
        limits = ranking.shares.limits
        remaining = remaining_times(limits, rows, on_right, step)
        if len(ranking.shares.spans) > 0:
            weigh_by_time_left(ranking.shares, scores, rows, on_right, step, now, times, remaining)
        if len(limits.last_times) > 0:
            lower_unreachable(scores, remaining)
        return scores
    return distance_scores(ranking.distances, rows, on_right, step)
