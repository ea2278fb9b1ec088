"""What stays in memory: the interface between the operator and a policy or a sampler."""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol, TypeVar

from tidegate.engine.join_state import excess
from tidegate.types import Pairs

if TYPE_CHECKING:
    from tidegate.engine.arrivals import EarliestTimes, Moment
    from tidegate.engine.join import Join
    from tidegate.engine.join_state import JoinState
    from tidegate.engine.matching import Matcher, Residual
    from tidegate.engine.removals import StepRemovals
    from tidegate.models import Payoff
    from tidegate.types import Array, Budget, Clocks, Learned, Rows, Side

Found_co = TypeVar("Found_co", bound=Pairs, covariant=True)


@dataclass
class JoinStep:
    """A step while it runs.

    Parameters
    ----------
    join, state, matcher
        Of the operator.
    moment
        The time, and the smallest times of later rows.
    pairs
        Whether to form the results, or only to count them.
    residual
        A further condition: a mask of the pairs that are results.
    chunk
        The maximum number of pairs that are formed at a time.

    Attributes
    ----------
    fresh
        For each side, the position of the first arrival among the candidates.
    removals
        The candidates that leave.
    hits
        For each side, the matches of each candidate, where they are counted in the step.
    """

    join: Join
    state: JoinState
    matcher: Matcher
    moment: Moment
    pairs: bool
    residual: Residual | None
    chunk: int
    fresh: dict[Side, int] = field(init=False)
    removals: StepRemovals = field(init=False)
    hits: dict[Side, Array] = field(init=False)

    def __post_init__(self) -> None:
        self.fresh = {side: len(buffer) for side, buffer in self.state.buffers.items()}

    @property
    def candidates(self) -> dict[Side, Rows]:
        """The buffered rows of each side, then the arrivals, as they are now."""
        return self.state.candidates()

    @property
    def clocks(self) -> Clocks:
        """The clocks after the step."""
        return self.moment.clocks

    def excess(self, sides: Sequence[Side], budget: Budget) -> int:
        """By how much the staying rows of some sides exceed a budget; negative if they fit."""
        return excess(self.candidates, self.removals, sides, budget)


class Retention(Protocol[Found_co]):
    """Chooses the rows that stay, and which results of a step are returned.

    In each step the operator calls `admit`, `match`, `make_room` and `finish`, in this order. With order "shed-first"
    it calls `make_room` before `match` too.
    """

    observed: int
    """The number of steps that it learned from."""

    def admit(self, step: JoinStep, left: Rows, right: Rows) -> None:
        """Append the arrivals to the buffers, with the columns that it keeps of them."""
        ...

    def match(self, step: JoinStep) -> Generator[Found_co, None, None]:
        """Find the results of the step, count them, and learn from them. Yields them in bounded chunks.

        The clocks of the state are still those before the step.
        """
        ...

    def make_room(self, step: JoinStep, floors: EarliestTimes, *, matched: bool = True) -> None:
        """Mark the rows that can match no row from `floors` on, then as many others as do not fit.

        If the arrivals have not been matched yet, none of them expires.
        """
        ...

    def finish(self, step: JoinStep) -> None:
        """Prepare the next step, after the marked rows have left."""
        ...

    def revalued(self, rows: Rows) -> Rows:
        """Buffered rows whose importance was redefined, with the columns that it keeps of them."""
        ...

    def payoffs(self) -> tuple[Payoff, Payoff] | None:
        """The expected results by memory on each side; None while unknown."""
        ...

    def learned(self) -> list[Learned]:
        """What it learned."""
        ...

    def describe(self) -> dict[str, object]:
        """Values for inspection that JSON can hold, beside what was learned."""
        ...

    def arrays(self) -> dict[str, Array]:
        """Its state, as named arrays that are valid until the next step."""
        ...

    def restore(self, arrays: Mapping[str, Array], state: JoinState, *, learned: bool) -> None:
        """Continue from what `arrays` returned, with a state that was restored; without `learned`, learn anew."""
        ...
