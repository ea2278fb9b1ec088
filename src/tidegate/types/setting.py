"""What a policy or a sampler knows of its join, and what it tells about itself."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

from tidegate.types.budget import Budget
from tidegate.types.join_model import JoinModel
from tidegate.types.rows import Pairs, Rows
from tidegate.types.window import Array, Clocks, Combine, Condition, Order, Side, Time, Window


@dataclass(frozen=True)
class Buckets:
    """Ages from 0 on, in `count` buckets of equal width; the last one also has all older ages."""

    width: float
    count: int


@dataclass(frozen=True)
class Step:
    """What a policy observes of one step: the rows, the arrivals among them, and the matches.

    Parameters
    ----------
    number
        The number of the step.
    since, clocks
        The clocks of both sides before the step, and after it.
    rows, fresh
        For each side, the buffered rows and then the arrivals, and the position of the first arrival.
    hits
        The matches of each row in this step.
    ages
        For each side, the number of results by the age of the older row, in the buckets that the policy watches.
    importance
        The importance of this step's results.
    evicted
        The number of rows evicted since the policy last observed a step.
    step_hits
        The part of `hits` with arrivals of the same step, for each arrival. These results do not depend on which
        rows are kept.
    """

    number: int
    since: Clocks
    clocks: Clocks
    rows: dict[Side, Rows]
    fresh: dict[Side, int]
    hits: dict[Side, Array]
    ages: dict[Side, Array] = field(default_factory=dict)
    importance: float = 0.0
    evicted: int = 0
    step_hits: dict[Side, Array] = field(default_factory=dict)

    @property
    def now(self) -> Time:
        """The larger clock after the step."""
        return self.clocks.now

    def arrivals(self, side: Side) -> Rows:
        """The arrivals of a side."""
        return self.rows[side].take(slice(self.fresh[side], None))


@dataclass(frozen=True)
class Future:
    """Everything that will arrive, where the streams are recorded.

    Parameters
    ----------
    left, right
        The rows of each side, in order of arrival.
    steps
        For each row number, the step in which the row arrives.
    pairs
        The results of the exact join that count, by row number.
    importance
        The importance of each of these results, if rows have one.
    """

    left: Rows
    right: Rows
    steps: Array
    pairs: Pairs
    importance: Array | None = None


@dataclass(frozen=True)
class Setting:
    """What a policy may know of the join when it starts.

    Parameters
    ----------
    window, seed, partition, budget, order, condition
        As in `tidegate.engine.join.Join`.
    shares
        The budget of the shared pool, or of each side; None for a side without memory.
    future
        What will arrive, in a simulation, for a policy that needs it.
    integer_keys
        Whether keys are the user's own whole numbers (or times), not codes or hashes.
    combine
        How the importance of a result follows from that of its two rows.
    model
        What is learned of the streams: a policy asks it for the parts that it reads.
    """

    window: Window
    seed: int = 0
    partition: int = 0
    budget: Budget | None = None
    shares: tuple[Budget | None, ...] = ()
    order: Order = "probe-first"
    condition: Condition = "="
    future: Future | None = None
    integer_keys: bool = True
    combine: Combine = "min"
    model: JoinModel = field(default_factory=JoinModel, compare=False, repr=False)


class Learned(NamedTuple):
    """One estimate of a policy.

    Parameters
    ----------
    model
        The kind of estimate: "rate" (rows per unit of time), "share" (of a side's rows, by key; without a key, of
        all), "age" (expected matches of a row while its age is in a range), "maturity" (the age from which rows can
        be evicted), "offset" (the position
        of a side's stream), "benefit" (expected results of a row, by its distance from the other stream), or a
        parameter of a process, such as "LinearTrend.speed".
    side
        The side whose rows it describes.
    value
        The estimate.
    sample
        The number of rows that it is based on; None if it was given rather than learned, or not counted.
    key, begin, end
        The key, or the range of ages or distances; None without an end.
    """

    model: str
    side: Side
    value: float
    sample: float | None = None
    key: int | None = None
    begin: float | None = None
    end: float | None = None
