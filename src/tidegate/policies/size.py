"""Keep the rows whose keys were seen most often on the other side."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Literal

from tidegate.models.validation import at_least_one
from tidegate.policies.policy import Policy, RunningPolicy
from tidegate.policies.prob import Prob, RunningProb, ShareRanking
from tidegate.types import check_choice, other_side

if TYPE_CHECKING:
    from tidegate.policies.ranking import RecordedRun
    from tidegate.types import Array, Rows, Setting, Time

Counts = Literal["keys", "matches"]


@dataclass(frozen=True)
class Size(Policy):
    """Score a row by how often its key has arrived on the other side so far: the largest output.

    It is `prob` without decay: all rows since the start count equally. For keys whose frequencies do not change.
    If they change, use `prob`; if matches depend on age rather than on the key, use `age`.

    Parameters
    ----------
    counts
        "keys": rows of the other side with the row's key, whether or not they matched it. "matches": results of the
        row itself; this is 0 before the first match, but also works if keys match other than by equality.
    capacity
        How many keys of each side are counted one by one, as for `prob`.

    Examples
    --------
    >>> import numpy as np
    >>> import tidegate as tg
    >>> rng = np.random.default_rng(1)
    >>> left, right = ({"key": np.minimum(rng.zipf(1.5, 2000), 100), "time": np.arange(2000)} for _ in range(2))
    >>> settings = dict(window=(100, 100), budget=20, split="even", order="shed-first")
    >>> policies = "size", tg.policies.Size(counts="matches"), "fifo"
    >>> [round(tg.simulate(left, right, policy=policy, **settings).recall, 2) for policy in policies]
    [0.21, 0.03, 0.1]

    References
    ----------
    iJoin, section 5 (SIZE); Semantic Approximation of Data Stream Joins (Das, Gehrke and Riedewald, 2005): PROB.

    Deviations
    ----------
    The iJoin paper gives no rule for SIZE but refers to Das, Gehrke and Riedewald, whose PROB keeps the rows whose
    key is most frequent on the other side; so does this policy. No simple rule yields the paper's Table 3(b). In
    steps of more than 8,192 rows a side, a sample of them is counted. Among equal counts the newest rows stay.
    """

    name: ClassVar[str] = "size"
    use_when: ClassVar[str] = "Keys recur with frequencies that never change."

    counts: Counts = "keys"
    capacity: int | None = None

    def __post_init__(self) -> None:
        check_choice(self.counts, Counts, "counts")
        if self.capacity is not None:
            at_least_one(self.capacity, "capacity", "keys")
        object.__setattr__(self, "by_key", self.counts == "keys")

    def start(self, setting: Setting) -> RunningPolicy:
        """Count keys, or use the matches that the join counts."""
        return KeyCountSize(self, setting) if self.counts == "keys" else MatchCountSize(self)


class MatchCountSize(RunningPolicy):
    """A running `Size` that scores by the results of each row."""

    def __init__(self, config: Size) -> None:
        self.config = config

    def __repr__(self) -> str:
        return repr(self.config)

    def scores(self, rows: Rows, clock: Time) -> Array:  # noqa: ARG002 - past matches do not depend on the time
        """Score by results so far."""
        return rows.matches


class KeyCountSize(RunningProb):
    """A running `Size` that counts keys since the start."""

    def __init__(self, config: Size, setting: Setting) -> None:
        super().__init__(Prob(capacity=config.capacity), setting, forgets=False)
        self._size = config

    def __repr__(self) -> str:
        return repr(self._size)

    def ranking(self, run: RecordedRun) -> ShareRanking | None:
        """Rank by counts, without rates: a side with more rows has higher counts."""
        ranking = super().ranking(run)
        return ranking._replace(rates=ranking.rates[:0]) if isinstance(ranking, ShareRanking) else None

    def scores(self, rows: Rows, clock: Time) -> Array:  # noqa: ARG002 - counts do not depend on the time
        """Score by how often the other side brought the key."""
        return self.learner.count(other_side(rows.side), rows.key)
