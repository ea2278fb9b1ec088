"""Keep the rows at whose offset most matches were observed, for streams that move in an unknown way."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, ClassVar, Final, Literal

import numpy as np

from tidegate.draws import salt
from tidegate.models.adaptive_histogram import AdaptiveHistogram
from tidegate.policies.heeb.lifetime import Lifetime
from tidegate.policies.heeb.survival import Exponential
from tidegate.policies.heeb.tracked_rows import TrackedArrivals, TrackedMatches
from tidegate.policies.policy import Policy, RunningPolicy, check_integer_keys
from tidegate.types import (
    SIDES,
    Clocks,
    InputError,
    Learned,
    Nested,
    Numbers,
    Stateful,
    check_choice,
    other_side,
)

if TYPE_CHECKING:
    from tidegate.types import Array, Rows, Setting, Side, State, Step, Time

Offset = Literal["mean", "last", "none"]
_BUCKETS: Final = 30
_ROWS: Final = 16.0
_MEMORY: Final = 4000.0
_TERM: Final = 10.0
_ADAPT_AFTER: Final = 256
"""The number of observations after which buckets are split and merged."""
_SMOOTHED: Final = 40.0
"""Older rows than this number of mean lengths have no weight in the mean."""
_TRACKED: Final = 1 << 12
"""The maximum number of tracked rows of a side; of more arrivals, a sample is tracked."""
_HORIZON: Final = 1000
"""The half-life of an observed lifetime, in steps."""


@dataclass(frozen=True)
class HeebHistogram(Policy):
    """Score a row by the observed matches of rows at its offset, weighted by the probability of staying in memory.

    For streams of numbers that move together (timestamps, counters, levels, walks) with unknown parameters. While
    `heeb` computes expected results from a process, this policy learns them. The offset of a row is the distance of
    its key from the current position of the other stream: its mean or its last key. The expected results at an
    offset do not change, though keys do. A sample of all arrivals is tracked, whether they are kept or not. Every
    `term` steps, the matches that each tracked row would have had are added to a histogram over the offsets.

    When not to use it: in each case below the policy in brackets had more results, in the mean of two runs of 2,000
    rows a side with 10 and 40 rows of memory.

    - A process is known or is found by `heeb`. It had 0.94 to 1.06 of `heeb`'s results on lines and levels, 0.87 on a
      line with rush hours, and 0.72 and 0.63 on two walks that drift apart (with `offset="last"`).
    - Some keys are frequent and their neighbours are not (`prob`): 0.81 and 0.93 of it on Zipf keys in random order.
    - Matches depend on age more than on the offset (`fifo`, `age`). In user sessions that are numbered as they begin,
      a new row belongs to an active session; an old row at the same offset may not. It had 0.90 and 0.84 of `fifo`,
      less than `random` (0.92 and 0.93 of it).
    - Keys are names, so that the distance between their codes means nothing.

    Parameters
    ----------
    offset
        The position that offsets are measured from. "mean": the other stream's mean, for values around a line.
        "last": its last value, for walks. "none": 0, for streams that do not move.
    buckets
        The number of buckets in the histogram of a side.
    rows
        The length of the mean in rows, by exponential smoothing.
    memory
        The half-life of an observation, in observations.
    term
        The number of steps of an observation.

    Examples
    --------
    >>> import numpy as np
    >>> import tidegate as tg
    >>> time, rng = np.arange(2000), np.random.default_rng(1)
    >>> left, right = ({"time": time, "key": time + rng.integers(-8, 9, 2000)} for _ in range(2))
    >>> settings = dict(window=(None, None), budget=8, step="instant")
    >>> [tg.simulate(left, right, policy=name, **settings).results for name in ("heeb_histogram", "prob", "random")]
    [1073, 150, 811]

    References
    ----------
    On Joining and Caching Stochastic Streams, section 6.2.

    Deviations
    ----------
    In the paper, rows are observed when they leave memory: their results over their time in memory. So only rows that
    the policy kept are observed, as long as it kept them. An offset with a wrong low estimate is never tried again,
    and what is learned depends on earlier estimates. Here all rows are observed equally, and the histogram is of the
    expected benefit itself: the matches within a term, and beyond it the histogram's value at the offset that the
    row has then. Rows are tracked for six terms. The survival is exponential, with the observed mean lifetime, in
    steps. Scores are interpolated between buckets. The mean lags behind a line by a constant, which shifts all
    offsets equally. Observations decay by the number of later ones, not by time. Results of a row's own step do
    not count.
    """

    name: ClassVar[str] = "heeb_histogram"
    use_when: ClassVar[str] = "Keys are numbers that move together, in a way that no known process describes."
    by_key: ClassVar[bool] = True

    offset: Offset = "mean"
    buckets: int = _BUCKETS
    rows: float = _ROWS
    memory: float = _MEMORY
    term: float = _TERM

    def __post_init__(self) -> None:
        check_choice(self.offset, Offset, "offset")
        AdaptiveHistogram(self.buckets)
        for what in ("rows", "memory", "term"):
            value = getattr(self, what)
            if isinstance(value, bool) or not isinstance(value, int | float) or not 1 <= value < np.inf:
                raise InputError(f"{what} is {value!r}; give a finite number, at least 1")

    def start(self, setting: Setting) -> RunningPolicy:
        """Start to learn."""
        check_integer_keys(setting, "heeb_histogram computes with keys")
        return RunningHeebHistogram(self, setting)


class RunningHeebHistogram(RunningPolicy):
    """A running `HeebHistogram`."""

    state: ClassVar[State] = {
        "at": Numbers(_positions=dict),
        "lifetime.": Nested("_lifetime"),
        "{}.": Nested("_tracked"),
        "benefit_{}.": Nested("_benefits"),
    }

    def __init__(self, config: HeebHistogram, setting: Setting) -> None:
        self.config = config
        self._positions: dict[Side, float] = dict.fromkeys(SIDES, np.nan)
        spans = setting.window.lifetimes()
        self._tracked: dict[Side, TrackedArrivals] = {
            side: TrackedArrivals(
                _TRACKED, salt(setting.seed, setting.partition), config.term, float(spans[side])
            )
            for side in SIDES
        }
        self._benefits: dict[Side, BenefitHistogram] = {side: BenefitHistogram(config) for side in SIDES}
        self._lifetime = Lifetime(_HORIZON)

    def __repr__(self) -> str:
        return repr(self.config)

    def observe(self, step: Step) -> None:
        """Update the positions of both streams, and learn the matches of rows at each offset."""
        in_steps = Clocks.both(step.number)
        self._lifetime.learn(replace(step, clocks=in_steps))
        kept = float(np.exp(-1 / Exponential.near_lifetime(1 + (self._lifetime.mean() or 1.0)).alpha))
        arrived = {side: step.arrivals(side) for side in SIDES}
        for side in SIDES:
            self._positions[side] = self._moved(self._positions[side], arrived[side].key)
        for side in SIDES:
            other = other_side(side)
            if np.isnan(self._positions[other]):
                continue
            observed = self._tracked[side].observe(
                arrived[side],
                arrived[other].key,
                self._positions[other],
                step=step.number,
                now=float(step.clocks.of(other)),
                kept=kept,
            )
            if len(observed.offset):
                self._benefits[side].learn(observed)

    def _moved(self, at: float, keys: Array) -> float:
        """The position of a stream after these keys."""
        if self.config.offset == "none":
            return 0.0
        if not len(keys):
            return at
        if self.config.offset == "last":
            return float(keys[-1])
        # Older rows have no significant weight.
        recent = keys[-int(_SMOOTHED * self.config.rows) :].astype(np.float64)
        at = recent[0] if np.isnan(at) else at
        weights = (1 - 1 / self.config.rows) ** np.arange(len(recent), -1, -1)
        weights[1:] /= self.config.rows
        return float(weights[0] * at + weights[1:] @ recent)

    def _offsets(self, side: Side, keys: Array) -> Array:
        """The distance of keys of a side from the position of the other stream; 0 before its first row."""
        at = self._positions[other_side(side)]
        return np.zeros(len(keys)) if np.isnan(at) else keys - at

    def scores(self, rows: Rows, clock: Time) -> Array:  # noqa: ARG002 - the positions of the streams change with time
        """Score by the expected results at each offset."""
        return self._benefits[rows.side].histogram.mean(self._offsets(rows.side, rows.key))

    def learned(self) -> list[Learned]:
        """The position of each stream, and the expected results by offset."""
        learned = [Learned("offset", side, at) for side, at in self._positions.items() if not np.isnan(at)]
        for side, benefits in self._benefits.items():
            learned += [
                Learned("benefit", side, mean, weight, None, begin, end)
                for begin, end, mean, weight in benefits.histogram.buckets()
                if weight > 0
            ]
        return learned


class BenefitHistogram(Stateful):
    """The expected results of rows of one side, by offset."""

    state: ClassVar[State] = {"": Nested("histogram"), "since": Numbers(_since=int)}

    def __init__(self, config: HeebHistogram) -> None:
        self._memory = config.memory
        self.histogram = AdaptiveHistogram(config.buckets)
        self._since = 0  # observations since the buckets were adapted

    def learn(self, observed: TrackedMatches) -> None:
        """Learn from rows that were tracked for a term."""
        expected = observed.matches + observed.survival * self.histogram.mean(observed.later)
        self.histogram.forget(2.0 ** (-len(observed.offset) / self._memory))
        self.histogram.observe(observed.offset, expected)
        self._since += len(observed.offset)
        if self._since >= _ADAPT_AFTER:
            self.histogram.adapt()
            self._since %= _ADAPT_AFTER
