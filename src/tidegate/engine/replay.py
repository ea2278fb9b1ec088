"""Recorded streams, step by step: what all simulations share."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final, Generic, NamedTuple, Self, TypeVar

import numpy as np

from tidegate.engine.tally import Tally
from tidegate.types import InputError

if TYPE_CHECKING:
    from tidegate.engine.arrivals import Arrivals, Moment
    from tidegate.engine.operator import Operator
    from tidegate.types import Array, Rows, StepSize, Time

CHECKPOINTS: Final = 50
"""The maximum number of points in the curves of a report."""

Outcome = TypeVar("Outcome")


@dataclass(frozen=True)
class Recording:
    """Two recorded streams, and the steps in which they arrive.

    Parameters
    ----------
    arrivals
        The rows.
    cuts
        Where steps end, from `Arrivals.cuts`.
    checks
        The cuts at which the curve of results is read.
    start
        Count only results of rows that arrive from this time on.
    whole_instants
        Whether steps contain all rows of their times.
    """

    arrivals: Arrivals
    cuts: Array
    checks: Array
    start: Time | None = None
    whole_instants: bool = False

    @classmethod
    def of(cls, arrivals: Arrivals, step: StepSize, warmup: Time = 0) -> Self:
        """Cut arrivals into steps; results of rows that arrive less than `warmup` after the first do not count."""
        check_run(step, warmup)
        firsts = [at[0].item() for at in (arrivals.at_left, arrivals.at_right) if len(at)]
        start = min(firsts, default=0) + warmup if warmup else None
        cuts = arrivals.cuts(step, start)
        return cls(arrivals, cuts, _checks(cuts, arrivals, start), start, step == "instant")

    def coarse(self) -> Self:
        """The same streams in few steps, for the exact join: its results do not depend on steps."""
        return replace(self, cuts=self.checks, whole_instants=False)

    @property
    def begin(self) -> tuple[int, int]:
        """The rows of each side that arrive before results count."""
        return (0, 0) if self.start is None else self.arrivals.before(self.start)


class Replayed(NamedTuple, Generic[Outcome]):
    """One step that has ended.

    Parameters
    ----------
    moment
        Its time.
    arrived
        The number of rows of each side that have arrived by its end.
    counted
        Whether its results count.
    outcome
        What the function that runs a step returned.
    """

    moment: Moment
    arrived: tuple[int, int]
    counted: bool
    outcome: Outcome


def replay(
    recording: Recording, operator: Operator[Any], run_step: Callable[[Rows, Rows, Moment], Outcome]
) -> Iterator[Replayed[Outcome]]:
    """Run a step of the operator for each step of a recording; its tally has only what counts."""
    begin, arrived = recording.begin, (0, 0)
    for left, right, moment in recording.arrivals.steps(
        recording.cuts, whole_instants=recording.whole_instants
    ):
        if arrived == begin:
            operator.state.tally = Tally()
        outcome = run_step(left, right, moment)
        arrived = arrived[0] + len(left), arrived[1] + len(right)
        yield Replayed(moment, arrived, sum(arrived) > sum(begin), outcome)
    if arrived == begin:
        operator.state.tally = Tally()


def _checks(cuts: Array, arrivals: Arrivals, start: Time | None) -> Array:
    """At most `CHECKPOINTS` of the cuts, evenly spaced, including the last and the start of counting."""
    chosen = (
        cuts[np.linspace(0, len(cuts) - 1, min(len(cuts), CHECKPOINTS)).astype(np.int64)]
        if len(cuts)
        else cuts
    )
    if start is None or not any(arrivals.before(start)):
        return chosen
    return np.unique(np.concatenate((chosen, [arrivals.before(start)])), axis=0)


def check_run(step: StepSize, warmup: Time) -> None:
    """Refuse an invalid step or warmup."""
    if not np.isfinite(warmup) or warmup < 0:
        raise InputError(f"warmup {warmup!r} is not a span of time; give a finite number, at least 0")
    if step == "instant":
        return
    if isinstance(step, bool) or not isinstance(step, int | np.integer) or step < 1:
        raise InputError(f"step {step!r} is not known; use 1, a larger number of rows, or 'instant'")
