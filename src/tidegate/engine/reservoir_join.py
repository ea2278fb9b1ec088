"""A join and the reservoir that holds a sample of its results, within one budget.

After each step the reservoir reports the fraction of results that is still needed, and the memory that it leaves to
the join. The sampler lowers its probability to that fraction, and the join removes rows by the end of its next step.
A reservoir that grows is filled only from then on, so both together never exceed the budget.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, NamedTuple, Protocol

import numpy as np

from tidegate.engine.encode import encode_streams
from tidegate.engine.join import Join
from tidegate.engine.operator import Operator, results_by_row_number
from tidegate.engine.replay import Recording, replay
from tidegate.engine.sampler_retention import SamplerRetention
from tidegate.sampling.reservoirs.slots import Slots
from tidegate.types import SIDES, Budget, Pairs, Sampled

if TYPE_CHECKING:
    from tidegate.engine.arrivals import Moment
    from tidegate.sampling import RunningSampler, Sampler, SlotChanges
    from tidegate.sampling.reservoirs.ranked import RunningJoinReservoir
    from tidegate.types import Array, Condition, Rows, StepSize, Time, Window, WindowSpan


class ReservoirConfig(Protocol):
    """A reservoir as a user configures it, for example a `JoinReservoir`."""

    def start(self, seed: int = 0, partition: int = 0) -> RunningJoinReservoir:
        """Return an empty reservoir; seed and partition fix its draws."""
        ...


def settle(
    reservoir: RunningJoinReservoir, operator: Operator[Pairs], sampling: RunningSampler
) -> Iterator[SlotChanges]:
    """After a step, adapt reservoir and sampler to each other.

    The reservoir drops ranks that further results can no longer have. One that grows does so into memory that the
    join does not need. The sampler draws no more than is needed. Yields which results stay; run it to its end.
    """
    yield reservoir.offer(np.empty(0), lowest=sampling.fraction)
    if reservoir.grows:
        yield reservoir.advance(operator.now, sampling.required_budget())
        operator.limit(Budget(rows=reservoir.demand().rows))
    sampling.limit_probability(reservoir.demand().fraction)


class ReservoirJoin:
    """A running join with its reservoir.

    Parameters
    ----------
    join
        What is joined; its budget is what the reservoir leaves of its own.
    reservoir
        How many results are held, and within what budget.
    sampler
        Which results the reservoir is offered, as an object or by name.

    Attributes
    ----------
    operator, retention, reservoir
        The running join, what stays of its rows, and the running reservoir.
    """

    def __init__(self, join: Join, reservoir: ReservoirConfig, sampler: Sampler | str = "eq_cluster") -> None:
        self.reservoir = reservoir.start(join.seed)
        budget = Budget(rows=self.reservoir.demand().rows)
        bounded = replace(join, budget=budget)
        self.retention = SamplerRetention(bounded, sampler)
        self.operator = Operator(bounded, self.retention)
        self._slots = Slots()

    def step(self, left: Rows, right: Rows, moment: Moment) -> None:
        """Join arrivals, offer the sample to the reservoir, and let that grow if it can."""
        sample = Sampled.concat(results_by_row_number(self.operator, left, right, moment))
        found = {"left": sample.left, "right": sample.right, "owner": sample.owner, "shown": sample.shown}
        self._slots.put(found, self.reservoir.offer(sample.probability))
        for changes in settle(self.reservoir, self.operator, self.retention.sampling):
            if changes.kept is not None:
                self._slots.keep(changes.kept)

    def held(self) -> dict[str, Array]:
        """The held results by columns: the row numbers `left` and `right`, `owner`, and `shown`."""
        return self._slots.columns()


class ReservoirSample(NamedTuple):
    """The sample at some time.

    Parameters
    ----------
    time
        That time.
    left, right
        The results, as row numbers of the left and the right stream.
    owner
        The number of the older row of each result.
    shown
        The probability with which the sampler kept the owner. Results of one owner came together if it is below 1.
    """

    time: Time
    left: Array
    right: Array
    owner: Array
    shown: Array


@dataclass(frozen=True)
class ReservoirReport:
    """What a reservoir held over time.

    Parameters
    ----------
    times
        The end of each step. The next five have one value for each.
    held
        The number of results in the reservoir.
    size
        The number of results that it had room for.
    rows
        The number of rows that the join held.
    fraction
        The probability of new draws.
    results
        The estimated number of results of the join so far.
    samples
        The samples at the times `at`.
    """

    times: Array = field(repr=False)
    held: Array = field(repr=False)
    size: Array = field(repr=False)
    rows: Array = field(repr=False)
    fraction: Array = field(repr=False)
    results: Array = field(repr=False)
    samples: tuple[ReservoirSample, ...] = field(repr=False)

    @property
    def grew_at(self) -> float:
        """The time of the first growth; NaN if it never grew."""
        later = np.flatnonzero(self.size > self.size[:1])
        return float(self.times[later[0]]) if len(later) else float("nan")


def simulate_reservoir(
    left: object,
    right: object,
    *,
    window: Window | tuple[WindowSpan, WindowSpan],
    reservoir: ReservoirConfig,
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
        A `JoinReservoir` or a `ProgressiveJoinReservoir`; join and reservoir share its budget.
    sampler
        Which results the reservoir is offered, by name or as an object; see `tidegate.sampling`.
    at
        Times, ascending, at which the sample is recorded: at the end of the last step that has ended by then.
        By default only the last sample is recorded.
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
    Probabilities and memory are recomputed after each step, rather than after each result. RJS also lowers the
    fraction to what is needed, which the paper does only in PRJS; this does not change its sample.
    """
    return run_reservoir(
        left,
        right,
        lambda join: ReservoirJoin(join, reservoir, sampler),
        window=window,
        step=step,
        at=at,
        condition=condition,
        on=on,
        time=time,
        lateness=lateness,
        seed=seed,
    )


def run_reservoir(
    left: object,
    right: object,
    start: Callable[[Join], ReservoirJoin],
    *,
    window: Window | tuple[WindowSpan, WindowSpan],
    step: StepSize = 1,
    at: Sequence[Time] = (),
    condition: Condition = "=",
    on: str | Sequence[str] = "key",
    time: str = "time",
    lateness: Time | None = None,
    seed: int = 0,
) -> ReservoirReport:
    """Run what `start` makes of a join over two recorded streams; parameters as in `simulate_reservoir`."""
    encoded = encode_streams(left, right, window, condition, on=on, time=time, lateness=lateness)
    recording = Recording.of(encoded.arrivals, step)
    running = start(Join(encoded.window, condition=condition, seed=seed))
    recorded: list[tuple[float, ...]] = []
    samples: list[ReservoirSample] = []

    def record_sample(when: Time) -> None:
        found = running.held()
        left, right = (encoded.source[found[side]] for side in SIDES)
        samples.append(ReservoirSample(when, left, right, found["owner"], found["shown"]))

    pending = list(at)

    def run_step(left: Rows, right: Rows, moment: Moment) -> None:
        while pending and recorded and moment.now > pending[0]:
            record_sample(pending.pop(0))
        running.step(left, right, moment)

    for ended in replay(recording, running.operator, run_step):
        kept, join, sampling = running.reservoir, running.operator, running.retention.sampling
        recorded.append((ended.moment.now, len(kept), kept.size, join.rows, sampling.fraction, kept.results))
    if recorded:
        for when in pending if at else [recorded[-1][0]]:
            record_sample(when)
    times, held, size, rows, fraction, results = np.array(recorded).reshape(-1, 6).T
    return ReservoirReport(times, held, size, rows, fraction, results, tuple(samples))
