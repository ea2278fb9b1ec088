"""A join and the reservoir that holds a sample of its results, within one budget.

After each step the reservoir says which fraction of the results is still of use, and what memory it leaves; the
sampler below lowers its probability to that, and the join makes room by the end of its next step. A reservoir that
grows fills from then on only, so that what both hold never exceeds the budget.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

import numpy as np

from tidegate.engine.encode import encode
from tidegate.engine.operator import Join, collected
from tidegate.engine.sampling_operator import SamplingOperator
from tidegate.engine.simulate import check_run
from tidegate.sampling import JoinReservoir, ProgressiveJoinReservoir, Taken
from tidegate.sampling.printed_join import PrintedJoinReservoir
from tidegate.sampling.progressive_join import PrintedProgressiveJoin, RunningProgressiveJoin
from tidegate.sampling.slots import Slots
from tidegate.streams import Trace
from tidegate.types import SIDES, Budget, Sampled, Window

if TYPE_CHECKING:
    from tidegate.engine.arrivals import Moment
    from tidegate.sampling import Sampler
    from tidegate.sampling.ranks import RankedReservoir
    from tidegate.types import Array, Condition, Rows, StepSize, Time, WindowSpan

AnyReservoir: TypeAlias = JoinReservoir | ProgressiveJoinReservoir


def settled(reservoir: RankedReservoir, operator: SamplingOperator) -> Iterator[Taken]:
    """After a step: hold no rank below which results may stay hidden from now on, nor sample more than is of use.

    A reservoir that grows does so into what the join can do without. Tells who stays; to be run to its end.
    """
    yield reservoir.offer(np.empty(0), least=operator.sampling.fraction)
    if isinstance(reservoir, RunningProgressiveJoin | PrintedProgressiveJoin):
        yield _advanced(reservoir, operator)
        operator.limit(Budget(rows=reservoir.wants().rows))
    operator.sampling.cap(reservoir.wants().fraction)
    if isinstance(reservoir, PrintedJoinReservoir):
        # It does not ask with which probability each result was shown, so that all must have the same.
        operator.thin()


def _advanced(
    reservoir: RunningProgressiveJoin | PrintedProgressiveJoin, operator: SamplingOperator
) -> Taken:
    if isinstance(reservoir, PrintedProgressiveJoin):
        return reservoir.advance(operator.now)
    return reservoir.advance(operator.now, operator.sampling.needs())


class ReservoirJoin:
    """A running join with its reservoir.

    Parameters
    ----------
    join
        What is joined; its budget is what the reservoir leaves of its own.
    reservoir
        How many results are held, and within what budget.
    sampler
        Which results the reservoir is shown, as an object or by name.

    Attributes
    ----------
    operator, reservoir
        The two.
    """

    def __init__(self, join: Join, reservoir: AnyReservoir, sampler: Sampler | str = "eq_cluster") -> None:
        self.reservoir = reservoir.start(join.seed)
        budget = Budget(rows=self.reservoir.wants().rows)
        self.operator = SamplingOperator(replace(join, budget=budget), sampler)
        self._slots = Slots()

    def step(self, left: Rows, right: Rows, moment: Moment) -> None:
        """Join arrivals, show the reservoir what is sampled, and let it grow if it does."""
        buffers = self.operator.buffers.values()
        ids = [np.append(old.rows.id, new.id) for old, new in zip(buffers, (left, right), strict=True)]
        chunks = collected(self.operator.step(left, right, moment))[0]
        shown = Sampled.concat([chunk for chunk in chunks if isinstance(chunk, Sampled)])
        found = {"left": ids[0][shown.left], "right": ids[1][shown.right]}
        found |= {"owner": shown.owner, "shown": shown.shown}
        self._slots.put(found, self.reservoir.offer(shown.probability))
        for taken in settled(self.reservoir, self.operator):
            if taken.kept is not None:
                self._slots.keep(taken.kept)

    def held(self) -> dict[str, Array]:
        """Of each result that is held, its rows' numbers, left and right, its owner's, and `shown`."""
        return self._slots.columns()


class Held(NamedTuple):
    """The sample at some time.

    Parameters
    ----------
    time
        When that was.
    left, right
        Its results, as row numbers of the left and the right stream.
    owner
        Whose each is, by a number that the older of its rows alone has.
    shown
        With what probability the sampler below showed it: results of one owner, where that draws rows, together.
    """

    time: Time
    left: Array
    right: Array
    owner: Array
    shown: Array


@dataclass(frozen=True)
class ReservoirReport:
    """What was held.

    At the end of the step at each of `times` so many results were `held` in a reservoir that had room for `size`, the
    join held so many `rows`, and `fraction` was the probability of new draws. `results` is how many results the join
    had had by then, as the reservoir tells. `samples` are what was held at the times asked for.
    """

    times: Array = field(repr=False)
    held: Array = field(repr=False)
    size: Array = field(repr=False)
    rows: Array = field(repr=False)
    fraction: Array = field(repr=False)
    results: Array = field(repr=False)
    samples: tuple[Held, ...] = field(repr=False)

    @property
    def grew_at(self) -> float:
        """The time of the first growth; NaN if there was none."""
        later = np.flatnonzero(self.size > self.size[:1])
        return float(self.times[later[0]]) if len(later) else float("nan")


def simulate_reservoir(
    left: object,
    right: object,
    *,
    window: Window | tuple[WindowSpan, WindowSpan],
    reservoir: AnyReservoir,
    sampler: Sampler | str = "eq_cluster",
    step: StepSize = 1,
    at: Sequence[Time] = (),
    condition: Condition = "=",
    on: str | Sequence[str] = "key",
    time: str = "time",
    lateness: Time | None = None,
    seed: int = 0,
) -> ReservoirReport:
    """Hold a sample of the join of two recorded streams in a reservoir, within one budget for both.

    Parameters
    ----------
    left, right, window, step, condition, on, time, lateness
        As in `simulate`.
    reservoir
        A `JoinReservoir` or a `ProgressiveJoinReservoir`; its budget is that of join and reservoir.
    sampler
        Which results the reservoir is shown, by name or as an object; see `tidegate.sampling`.
    at
        Times, ascending, at which the sample is noted: at the end of the last step that is over by then. Without any,
        the last sample is noted.
    seed
        Fixes all draws.

    Examples
    --------
    >>> import numpy as np
    >>> from tidegate.sampling import JoinReservoir
    >>> rng = np.random.default_rng(0)
    >>> clicks, views = ({"key": rng.integers(0, 50, 4000), "time": np.arange(4000)} for _ in range(2))
    >>> report = simulate_reservoir(
    ...     clicks, views, window=(500, 500), reservoir=JoinReservoir(size=100, budget=300), step=100
    ... )
    >>> len(report.samples[-1].left), bool((report.rows + report.held).max() <= 300)
    (100, True)

    References
    ----------
    Reservoir Sampling over Memory-Limited Stream Joins, section 4: its join-sampling and reservoir-sampling phases.

    Deviations
    ----------
    Probabilities and memory are reckoned anew after each step, rather than after each result. RJS lowers the
    fraction to what is of use, too, which the paper has PRJS do alone: that takes nothing from its sample.
    """
    traces = [Trace.of(d, on=on, time=time, what=what) for d, what in ((left, "left"), (right, "right"))]
    span = Window.of(window)
    if all(trace.time.dtype.kind == "i" for trace in traces):
        span = span.whole()
    check_run(step, 0)
    running = ReservoirJoin(Join(span, condition=condition, seed=seed), reservoir, sampler)
    encoded = encode(traces[0], traces[1], span, condition, lateness)
    watched: list[tuple[float, ...]] = []
    samples: list[Held] = []

    def note(when: Time) -> None:
        found = running.held()
        left, right = (encoded.source[found[side]] for side in SIDES)
        samples.append(Held(when, left, right, found["owner"], found["shown"]))

    due = list(at)
    for lefts, rights, moment in encoded.arrivals.steps(
        encoded.arrivals.cuts(step), whole_instants=step == "instant"
    ):
        while due and watched and moment.now > due[0]:
            note(due.pop(0))
        running.step(lefts, rights, moment)
        kept, join = running.reservoir, running.operator
        watched.append((moment.now, len(kept), kept.size, join.rows, join.sampling.fraction, kept.results))
    if watched:
        for when in due if at else [watched[-1][0]]:
            note(when)
    times, held, size, rows, fraction, results = np.array(watched).reshape(-1, 6).T
    return ReservoirReport(times, held, size, rows, fraction, results, tuple(samples))
