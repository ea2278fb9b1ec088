"""Keep a random choice of rows."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np

from tidegate.draws import draws, mix, salt
from tidegate.models import LinearTrend
from tidegate.policies.policy import Policy
from tidegate.policies.ranking import PASSED, Ranking
from tidegate.policies.reach import Reach, check_trends, remade

if TYPE_CHECKING:
    from tidegate.policies.ranking import Course
    from tidegate.types import Array, Rows, Setting, Step, Time


@dataclass(frozen=True)
class Random(Policy):
    """Make room by dropping rows at random, newcomers among them: the baseline that a policy has to beat.

    The draw is a hash of the seed, the time and the row's number, so that a step that is run again
    drops the same rows, in any process.

    Parameters
    ----------
    seed
        Fixes the draws; by default it comes from the join's seed and partition.
    left, right
        For keys that move: the line that each side's keys follow. Rows whose key the other side has passed for good
        go before all others.

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

    def start(self, setting: Setting) -> Policy:
        """Draw from the join's seed unless one was given."""
        seeded = self if self.seed is not None else replace(self, seed=salt(setting))
        reach = Reach.of(self.left, self.right, setting)
        return seeded if reach is None else _Aware(seeded, reach)

    @classmethod
    def made_of(cls, parameters: dict[str, Any]) -> Self:
        """Make it again from what `parameters` told."""
        return cls(**parameters | remade(parameters))

    def salts(self, times: Array) -> Array:
        """What the draws of all rows have in common at each of these times."""
        seed = np.uint64(int(self.seed or 0) % 2**64)
        salts: Array = mix(times.view(np.uint64) ^ seed).view(np.int64)
        return salts

    def ranking(self, course: Course) -> Ranking:
        """By its draws."""
        return Ranking(salts=self.salts(course.nows))

    def scores(self, rows: Rows, now: Time) -> Array:
        """Score by a draw that is fresh at each time."""
        # 53 bits, so that a draw is the same as an integer and as a float.
        return draws(rows.id, self.salts(np.array([now]))) * 2.0**53


class _Aware(Policy):
    """`Random` at work where keys move."""

    def __init__(self, config: Random, reach: Reach) -> None:
        self.config, self._reach = config, reach

    def __repr__(self) -> str:
        return repr(self.config)

    def observe(self, step: Step) -> None:
        """Take note of when rows came."""
        self._reach.observe(step)

    def ranking(self, course: Course) -> Ranking:
        """By its draws, and by what will be passed when."""
        return self.config.ranking(course)._replace(passes=self._reach.passes(course), since=course.since())

    def scores(self, rows: Rows, now: Time) -> Array:
        """Score by a draw; what the other side has passed, below all."""
        return np.where(self._reach.left(rows, now) > 0, self.config.scores(rows, now), PASSED)

    def snapshot(self) -> dict[str, Array]:
        """When rows came."""
        return self._reach.snapshot()

    def restore(self, state: dict[str, Array]) -> Self:
        """Take up what `snapshot` gave."""
        self._reach.restore(state)
        return self
