"""Samplers choose what stays: a sample of the results is returned, and rows leave that own no sampled result."""

from __future__ import annotations

from collections.abc import Generator, Mapping
from typing import TYPE_CHECKING, Final

import numpy as np

from tidegate.engine.buffer import Buffer
from tidegate.engine.sampled_step import SampledStep, write_owners
from tidegate.sampling import find
from tidegate.types import FOREVER, SIDES, Budget, InputError, Rows, Sampled, Step, as_part, parts_of

if TYPE_CHECKING:
    from tidegate.engine.arrivals import EarliestTimes
    from tidegate.engine.join import Join
    from tidegate.engine.join_state import JoinState
    from tidegate.engine.retention import JoinStep
    from tidegate.models import Payoff
    from tidegate.sampling import Owners, Sampler
    from tidegate.types import Array, Learned, Side

_ROW_BYTES: Final = 32
"""The bytes of a row without a sampler's columns: key, time, number and matches."""


class SamplerRetention:
    """What stays is drawn by a sampler: memory is freed by lowering the probability with which rows are sampled.

    Parameters
    ----------
    join
        What is joined, within what budget. The sides share the budget, and arrivals are matched before rows are
        removed; the policy of the join is not used.
    sampler
        Which results are returned, as an object or by name.

    Examples
    --------
    >>> from tidegate.engine.arrivals import arrange
    >>> from tidegate.engine.join import Join
    >>> from tidegate.engine.operator import Operator, collected
    >>> from tidegate.sampling import EqCluster
    >>> from tidegate.types import Window
    >>> stream = {"key": np.array([1, 2, 1]), "time": np.array([0, 1, 2])}
    >>> join = Join(Window(5, 5))
    >>> operator = Operator(join, SamplerRetention(join, EqCluster(p=1.0)))
    >>> arrivals = arrange(stream, stream, Window(5, 5), None)
    >>> steps = arrivals.steps(arrivals.cuts(2), whole_instants=False)
    >>> chunks = [chunk for step in steps for chunk in collected(operator.step(*step, pairs=True))[0]]
    >>> sorted(np.concatenate([chunk.owner for chunk in chunks]).tolist())
    [0, 0, 1, 2, 4]
    """

    def __init__(self, join: Join, sampler: Sampler | str) -> None:
        if join.order != "probe-first" or join.split != "shared":
            raise InputError(
                f"a sampled join needs order='probe-first' and split='shared'; "
                f"got order={join.order!r} and split={join.split!r}"
            )
        if join.budget and join.budget.unit == "bytes" and join.budget.limit <= _ROW_BYTES:
            raise InputError(
                f"budget must be more than {_ROW_BYTES} bytes, the size of one row; got {join.budget.limit} bytes"
            )
        self.sampling = find(sampler).start(join.setting())
        self.observed = 0

    def admit(self, step: JoinStep, left: Rows, right: Rows) -> None:
        """Append the arrivals that may own a sampled result."""
        self._tracked = self.sampling.forecaster.track(step.candidates)
        self.sampling.observe({"left": left, "right": right}, step.clocks)
        arriving: dict[Side, Owners] = {}
        for rows in (left, right):
            admitted, arriving[rows.side] = self.sampling.admit(rows)
            step.state.append(admitted)
        self._drawing = SampledStep(step, self.sampling, arriving)

    def match(self, step: JoinStep) -> Generator[Sampled, None, None]:
        """Sample the results, and let the sampler learn from all of them; yields positions among the candidates."""
        for sampled in self._drawing.draw():
            if step.pairs:
                yield sampled
        state, forecaster, rows = step.state, self.sampling.forecaster, step.candidates
        forecaster.observe_tracked(self._tracked, rows, state.clocks, step.clocks)
        since, ages = state.since(step.clocks), self._drawing.ages.by_side()
        forecaster.observe_matches(Step(state.number, since, step.clocks, rows, step.fresh, {}, ages))

    def make_room(self, step: JoinStep, floors: EarliestTimes, *, matched: bool = True) -> None:  # noqa: ARG002 - matched always
        """Mark rows that own no further match, then lower the probability until the others fit."""
        for side, rows in step.candidates.items():
            removed = np.zeros(len(rows), bool)
            for exhausted in self._drawing.exhausted[side]:
                removed[exhausted] = True
            removed[step.state.expired(rows, floors)] = True
            step.removals.expire(side, np.flatnonzero(removed))
        budget = step.join.budget or Budget(rows=FOREVER)
        # Rows with a higher probability than new draws are thinned to that first: it may be enough.
        lower = False
        while (over := step.excess(SIDES, budget)) > 0:
            places = {side: step.removals.staying(side) for side in SIDES}
            staying = {side: rows.take(places[side]) for side, rows in step.candidates.items()}
            thinned = self.sampling.thin(staying, over + budget.limit, budget.limit, lower=lower)
            lower = True
            for side, owners in thinned.items():
                write_owners(step.state.buffers[side], owners, places[side])
                step.removals.evict(side, places[side][owners.exhausted()])

    def finish(self, step: JoinStep) -> None:
        """Compute the probability of the draws of the next step."""
        self.sampling.update_probability(step.clocks.now, step.state.rows, _room(step.join, step.state))
        # They refer to the columns of the arrivals.
        del self._tracked, self._drawing

    def thin(self, join: Join, state: JoinState) -> None:
        """Between steps, thin rows that were drawn with a higher probability to that of new draws."""
        rows = state.candidates()
        for side, owners in self.sampling.thin(rows, state.rows, _room(join, state), lower=False).items():
            write_owners(state.buffers[side], owners, slice(0, len(rows[side])))
            state.buffers[side].drop(np.flatnonzero(owners.exhausted()))

    def revalued(self, rows: Rows) -> Rows:
        """The rows as they are: a sampler does not use their importance."""
        return rows

    def payoffs(self) -> tuple[Payoff, Payoff] | None:
        """A sampler does not predict results by memory."""
        return None

    def learned(self) -> list[Learned]:
        """A sampler does not report what it learned."""
        return []

    def describe(self) -> dict[str, object]:
        """The probability of new draws, and how often memory overflowed."""
        return {
            "sampler": self.sampling.config.name,
            "fraction": self.sampling.fraction,
            "lowered": self.sampling.control.lowered,
        }

    def arrays(self) -> dict[str, Array]:
        """The state of the sampler, as named arrays that are valid until the next step."""
        kind = np.frombuffer(self.sampling.kind().encode(), np.uint8)
        return as_part("sampler", self.sampling.snapshot()) | {"kind": kind}

    def restore(self, arrays: Mapping[str, Array], state: JoinState, *, learned: bool = True) -> None:
        """Continue with the state of the sampler; rows that another one chose are no sample by this, and leave."""
        if learned and arrays["kind"].tobytes().decode() == self.sampling.kind():
            self.sampling.restore(parts_of(arrays)["sampler"])
        else:
            state.buffers = {side: Buffer(side) for side in SIDES}


def _room(join: Join, state: JoinState) -> float:
    """How many rows the budget holds."""
    budget = join.budget or Budget(rows=FOREVER)
    if budget.unit == "rows" or not state.rows:
        return budget.limit
    return budget.limit / (state.nbytes / state.rows)
