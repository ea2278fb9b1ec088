"""The join: one operator for a step of one row and for a step of a hundred thousand.

The candidates of a step are the buffered rows and the arrivals. Code that keeps further columns of the rows, such as
their payload, keeps them in the same order and follows the positions that a step returns.
"""

from __future__ import annotations

from collections.abc import Generator, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Generic, TypeVar, overload

import numpy as np

from tidegate.engine.buffer import Buffer
from tidegate.engine.index import PAIRS_AT_A_TIME
from tidegate.engine.join_state import NO_ROWS, JoinState, StepOutcome
from tidegate.engine.matching import Matcher, Residual
from tidegate.engine.policy_retention import PolicyRetention
from tidegate.engine.removals import StepRemovals
from tidegate.engine.retention import JoinStep, Retention
from tidegate.engine.snapshot import pack, unpack
from tidegate.types import Budget, Pairs

if TYPE_CHECKING:
    from tidegate.engine.arrivals import Moment
    from tidegate.engine.join import Join
    from tidegate.engine.tally import Tally
    from tidegate.types import Array, Rows, Side, Time

Found = TypeVar("Found", bound=Pairs)
Found_co = TypeVar("Found_co", bound=Pairs, covariant=True)


class Operator(Generic[Found_co]):
    """A running join.

    Parameters
    ----------
    join
        What is joined, within what budget.
    retention
        What stays in memory, and which results are returned; by default the policy of the join decides what stays,
        and all results are returned.

    Examples
    --------
    >>> from tidegate.engine.arrivals import arrange
    >>> from tidegate.engine.join import Join
    >>> from tidegate.types import Window
    >>> stream = {"key": np.array([1, 2, 1]), "time": np.array([0, 1, 2])}
    >>> operator = Operator(Join(Window(5, 5), budget=Budget(rows=4)))
    >>> arrivals = arrange(stream, stream, Window(5, 5), None)
    >>> steps = arrivals.steps(arrivals.cuts(2), whole_instants=False)
    >>> sum(collected(operator.step(*step))[1].results for step in steps)
    5
    """

    @overload
    def __init__(self: Operator[Pairs], join: Join) -> None: ...

    @overload
    def __init__(self, join: Join, retention: Retention[Found_co]) -> None: ...

    def __init__(self, join: Join, retention: Retention[Any] | None = None) -> None:
        self.join = join
        self.retention: Retention[Any] = retention or PolicyRetention(join)
        self.state = JoinState(join.window)
        self.matcher = Matcher(join.window, join.condition, join.combine)

    @property
    def buffers(self) -> dict[Side, Buffer]:
        """The buffered rows of each side."""
        return self.state.buffers

    @property
    def tally(self) -> Tally:
        """What was counted since the start."""
        return self.state.tally

    @property
    def now(self) -> Time:
        """The time at the end of the last step."""
        return self.state.clocks.now

    @property
    def rows(self) -> int:
        """The number of buffered rows."""
        return self.state.rows

    @property
    def nbytes(self) -> int:
        """The bytes of the buffered rows, payload included."""
        return self.state.nbytes

    def limit(self, budget: Budget) -> None:
        """Change the budget from the next step on; with a smaller one that step removes more rows."""
        self.join = replace(self.join, budget=budget)

    def revalue(self, side: Side, importance: Array | None) -> None:
        """Change the importance of buffered rows, from the next step on."""
        rows = replace(self.state.buffers[side].rows, importance=importance)
        self.state.buffers[side] = Buffer.of(self.retention.revalued(rows))

    def step(
        self,
        left: Rows,
        right: Rows,
        moment: Moment,
        *,
        pairs: bool = False,
        residual: Residual | None = None,
        chunk: int = PAIRS_AT_A_TIME,
        remove_matched: bool = False,
    ) -> Generator[Found_co, None, StepOutcome]:
        """Join arrivals with buffered rows and with each other, then make room (or the other way round).

        Yields results in bounded chunks, as positions among the candidates, if `pairs`. A step must be run to its
        end: the state of an operator whose step was abandoned is undefined.

        Parameters
        ----------
        left, right
            The arrivals, each in order of time.
        moment
            The time, and the smallest times of later rows.
        pairs
            Whether to yield the results or only to count them.
        residual
            A further condition: a mask of the pairs that are results.
        chunk
            The maximum number of pairs that are formed at a time.
        remove_matched
            Whether to remove left rows that have a match, and report them. Not for samples.
        """
        state, before = self.state, self.tally.results
        step = JoinStep(self.join, state, self.matcher, moment, pairs, residual, chunk)
        self.retention.admit(step, left, right)
        step.removals = StepRemovals({side: len(buffer) for side, buffer in state.buffers.items()})
        if self.join.order == "shed-first":
            self.retention.make_room(step, moment.begin, matched=False)
        yield from self.retention.match(step)
        state.clocks = moment.clocks
        matched = NO_ROWS
        if remove_matched:
            matched = np.flatnonzero(step.candidates["left"].matches)
            step.removals.expire("left", matched)
        self.retention.make_room(step, moment.end)
        outcome = state.finish_step(
            step.candidates, step.removals, moment.clocks, state.tally.results - before, matched
        )
        self.retention.finish(step)
        return outcome

    def snapshot(self) -> bytes:
        """The whole state, as versioned bytes."""
        return pack(self.arrays())

    def arrays(self) -> dict[str, Array]:
        """The whole state, as named arrays that are valid until the next step."""
        return self.state.snapshot() | self.retention.arrays()

    def restore(self, data: bytes | Mapping[str, Array], *, learned: bool = True) -> None:
        """Continue from a snapshot, or from its arrays; a smaller budget takes effect at the next step.

        Without `learned`, what was learned is not restored, as for another policy. The same holds if the policy or
        sampler has other parameters that change what it learns.
        """
        arrays = data if isinstance(data, Mapping) else unpack(data)
        self.state.restore(arrays)
        self.retention.restore(arrays, self.state, learned=learned)


def results_by_row_number(operator: Operator[Found], left: Rows, right: Rows, moment: Moment) -> list[Found]:
    """Run a step to its end; return its results by row number."""
    ids = [
        np.append(buffer.rows.id, rows.id)
        for buffer, rows in zip(operator.buffers.values(), (left, right), strict=True)
    ]
    chunks, _ = collected(operator.step(left, right, moment, pairs=True))
    return [chunk.renumbered(ids[0], ids[1]) for chunk in chunks]


def collected(step: Generator[Found, None, StepOutcome]) -> tuple[list[Found], StepOutcome]:
    """Run a step to its end; return the results that it yielded and what it did."""
    chunks = []
    while True:
        try:
            chunks.append(next(step))
        except StopIteration as stop:
            return chunks, stop.value
