"""What only some running policies can do: each ability is a protocol with one method.

The operator checks once, when a policy starts, which abilities it has.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, Protocol, Self, runtime_checkable

if TYPE_CHECKING:
    from tidegate.models import Payoff
    from tidegate.policies.ranking import Ranking, RecordedRun
    from tidegate.types import Array, Buckets, Budget, Clocks, Learned, Rows, Side


@runtime_checkable
class DecidesOnSets(Protocol):
    """Decides which rows stay together, instead of scoring each row."""

    def keep(self, rows: dict[Side, Rows], budget: Budget, clocks: Clocks) -> dict[Side, Array]:
        """Mark the rows that stay within a budget that these sides share."""


@runtime_checkable
class PredictsPayoff(Protocol):
    """Has a model of the results by memory."""

    def payoffs(self) -> tuple[Payoff, Payoff] | None:
        """The expected results by memory of the left and of the right side; None while unknown."""


@runtime_checkable
class WatchesAges(Protocol):
    """Learns at which ages rows match."""

    def watches(self) -> dict[Side, Buckets]:
        """The ages at which matches are counted for `Step.ages`, for both sides or neither."""


@runtime_checkable
class KeepsColumns(Protocol):
    """Keeps columns of its own in `Rows.policy_columns`, which `observe` may write to."""

    def policy_columns(self, rows: Rows) -> dict[str, Array]:
        """The columns of rows that have just arrived."""


@runtime_checkable
class RevaluesColumns(KeepsColumns, Protocol):
    """Keeps columns that depend on the importance of the rows."""

    def revalued_columns(self, rows: Rows) -> dict[str, Array]:
        """The columns of buffered rows whose importance was redefined."""


@runtime_checkable
class ReportsLearned(Protocol):
    """Reports what it learned."""

    def learned(self) -> list[Learned]:
        """The current estimates, for reports and inspection."""


@runtime_checkable
class FixedScores(Protocol):
    """Scores that may be fixed when a row arrives."""

    def is_fixed(self) -> bool:
        """Whether the score of a row never changes after its arrival, and nothing is learned."""


@runtime_checkable
class RanksBeforehand(Protocol):
    """Knows how rows rank in a recorded run, where that depends on the arrivals alone."""

    def ranking(self, run: RecordedRun) -> Ranking | None:
        """How rows rank throughout a run that has just started; None if it depends on which rows are kept.

        Afterwards the policy has learned from all arrivals of the run.
        """


class Abilities(NamedTuple):
    """A running policy by ability; None for each that it lacks."""

    sets: DecidesOnSets | None
    payoff: PredictsPayoff | None
    ages: WatchesAges | None
    columns: KeepsColumns | None
    revaluation: RevaluesColumns | None

    @classmethod
    def of(cls, policy: object) -> Self:
        """Check which abilities a policy has."""
        return cls(
            policy if isinstance(policy, DecidesOnSets) else None,
            policy if isinstance(policy, PredictsPayoff) else None,
            policy if isinstance(policy, WatchesAges) else None,
            policy if isinstance(policy, KeepsColumns) else None,
            policy if isinstance(policy, RevaluesColumns) else None,
        )


def learned_by(policy: object) -> list[Learned]:
    """What a policy learned; nothing if it does not report it."""
    return policy.learned() if isinstance(policy, ReportsLearned) else []
