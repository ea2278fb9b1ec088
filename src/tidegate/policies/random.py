"""Keep a random selection of rows."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, ClassVar, NamedTuple

import numpy as np

from tidegate.compiled import kernel
from tidegate.draws import hash64, mix, salt
from tidegate.models import LinearTrend
from tidegate.policies.policy import Policy, RunningPolicy
from tidegate.policies.ranking import NO_INTEGERS
from tidegate.policies.trend_limits import (
    RunLimits,
    TrendLimits,
    check_trends,
    lower_unreachable,
)
from tidegate.types import Nested

if TYPE_CHECKING:
    from tidegate.policies.ranking import RecordedRun
    from tidegate.types import Array, Rows, Setting, State, Step, Time


@dataclass(frozen=True)
class Random(Policy):
    """Evict rows at random, arrivals included: the baseline that a policy has to beat.

    The draw is a hash of the seed, the time and the row's number. So a repeated step evicts the same rows, in any
    process.

    Parameters
    ----------
    seed
        Fixes the draws; by default it comes from the join's seed and partition.
    left, right
        For keys that move: the line that each side's keys follow. Rows whose key the other side cannot bring any more
        are evicted first.

    Examples
    --------
    >>> import tidegate as tg
    >>> stream = {"key": [1, 2, 3, 1], "time": [0, 1, 2, 3]}
    >>> tg.simulate(stream, stream, window=(9, 9), budget=2, policy=tg.policies.Random(seed=1)).results
    4

    References
    ----------
    iJoin, section 1.1 (RAND); On Joining and Caching Stochastic Streams, section 8 (RAND).
    """

    name: ClassVar[str] = "random"
    use_when: ClassVar[str] = "A baseline that every other policy should beat."

    seed: int | None = None
    left: LinearTrend | None = None
    right: LinearTrend | None = None

    def __post_init__(self) -> None:
        check_trends(self.left, self.right)

    def start(self, setting: Setting) -> RunningPolicy:
        """Draw from the join's seed unless one was given."""
        seeded = self if self.seed is not None else replace(self, seed=salt(setting.seed, setting.partition))
        limits = TrendLimits.of(self.left, self.right, setting)
        return seeded if limits is None else TrendRandom(seeded, limits)

    def salts(self, times: Array) -> Array:
        """The salt of the draws at each of these times."""
        seed = np.uint64(int(self.seed or 0) % 2**64)
        salts: Array = mix(times.view(np.uint64) ^ seed).view(np.int64)
        return salts

    def ranking(self, run: RecordedRun) -> DrawRanking:
        """Rank by draws."""
        return DrawRanking(self.salts(run.nows))

    def scores(self, rows: Rows, clock: Time) -> Array:
        """Score by a draw that is independent at each time."""
        return draw_scores(rows.id, self.salts(np.array([clock]))[0])


class DrawRanking(NamedTuple):
    """Rank by draws: the salt of each step, and the limits of keys."""

    salts: Array = NO_INTEGERS
    limits: RunLimits = RunLimits()


@kernel
def draw_scores(ids: Array, salt: int) -> Array:
    """Score rows by draws, which are whole numbers of 53 bits: the same as integers and as floats."""
    scores = np.empty(len(ids))
    for i in range(len(ids)):
        scores[i] = hash64(ids[i] ^ salt) >> np.uint64(11)
    return scores


class TrendRandom(RunningPolicy):
    """A running `Random` where keys follow trends."""

    state: ClassVar[State] = {"": Nested("_limits")}

    def __init__(self, config: Random, limits: TrendLimits) -> None:
        self.config, self._limits = config, limits

    def __repr__(self) -> str:
        return repr(self.config)

    def observe(self, step: Step) -> None:
        """Remember the times of the last rows."""
        self._limits.observe(step)

    def ranking(self, run: RecordedRun) -> DrawRanking:
        """Rank by draws, and by when keys arrive for the last time."""
        return self.config.ranking(run)._replace(limits=self._limits.throughout(run))

    def scores(self, rows: Rows, clock: Time) -> Array:
        """Score by a draw; rows whose key cannot arrive any more rank last."""
        scores = self.config.scores(rows, clock)
        lower_unreachable(scores, self._limits.remaining(rows, clock))
        return scores
