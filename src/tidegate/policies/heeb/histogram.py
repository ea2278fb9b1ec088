"""Keep the rows at whose place most matches came, where it is only known in which way keys move."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, ClassVar, Final, Literal, Self

import numpy as np

from tidegate.draws import salt
from tidegate.models.adaptive_histogram import AdaptiveHistogram
from tidegate.policies.heeb.lifetime import Lifetime
from tidegate.policies.heeb.survival import Exponential
from tidegate.policies.heeb.tracked_rows import FollowedRows, Lessons
from tidegate.policies.policy import Policy, need_numbers
from tidegate.types import SIDES, InputError, Learned, as_part, check_choice, other_side, parts_of

if TYPE_CHECKING:
    from tidegate.types import Array, Rows, Setting, Side, Step, Time

Offset = Literal["mean", "last", "none"]
_BUCKETS: Final = 30
_ROWS: Final = 16.0
_MEMORY: Final = 4000.0
_TERM: Final = 10.0
_OFTEN: Final = 256
"""After how many lessons buckets are split and merged."""
_LONG: Final = 40.0
_FOLLOWED: Final = 1 << 12
"""How many rows of a side are followed at most; of more arrivals, a sample."""
_HORIZON: Final = 1000
"""The half-life of an observed lifetime, in steps."""


@dataclass(frozen=True)
class HeebHistogram(Policy):
    """A row is worth what rows at its place were seen to match, each match by how likely the row is still there.

    For streams of numbers that move together, timestamps, counters, levels, walks, of which nobody knows the
    parameters. What `heeb` reckons from a process, this learns: a row's place is how far its key lies from where the
    other stream is now, its mean or its last key; and what a row at that place may expect does not change, though
    keys do. A sample of all rows that arrive is followed, whether they are kept or not, and every `term` steps each
    teaches a histogram over the places what it would have matched.

    When not to use it: in each case below the policy in brackets had more results, in the mean of two runs of 2,000
    rows a side with 10 and 40 rows of memory.

    - A process is known or is found by `heeb`. It had 0.94 to 1.06 of `heeb`'s results on lines and levels, 0.87 on a
      line with rush hours, and 0.72 and 0.63 on two walks that go apart (with `offset="last"`).
    - Some keys are frequent and their neighbours are not (`prob`): 0.81 and 0.93 of it on Zipf keys in random order.
    - Age tells more than place (`fifo`, `age`). In user sessions that are numbered as they begin, a row that has just
      arrived belongs to a session that goes on; one at the same place that arrived long ago may not. It had 0.90 and
      0.84 of `fifo`, less than `random` (0.92 and 0.93 of it).
    - Keys are names, whose codes' nearness means nothing.

    Parameters
    ----------
    offset
        What places are measured from. "mean": the other stream's mean, for values around a line. "last": its last
        value, for walks. "none": 0, for streams that stay where they are.
    buckets
        How many buckets the histogram of a side has.
    rows
        Over how many rows the mean is taken, by exponential smoothing.
    memory
        After how many more lessons a lesson counts half.
    term
        How many steps a lesson takes.

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
    In the paper rows teach when they leave memory, by what they brought over how long they stayed. So only rows that
    the policy kept teach, for as long as it kept them: a place that is wrongly thought poor is never tried again,
    and what is learned depends on what was learned before. Here all rows teach alike, and the histogram is of the
    expected benefit itself: what a row would have matched within a term, and beyond it what the histogram has for
    the place where the row is by then. Rows are followed for six terms. The survival is exponential, with the mean
    lifetime that is observed, in steps. Scores change gradually from bucket to bucket. The mean lags behind a line
    by a constant, which moves all places alike. Lessons are forgotten by the number that follow them, not by time.
    Results of a row's own step do not count.
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

    def start(self, setting: Setting) -> Policy:
        """Begin to learn."""
        need_numbers(setting, "heeb_histogram asks where keys lie")
        return _Following(self, setting)

    def scores(self, rows: Rows, now: Time) -> Array:
        """Nothing is known before a join has started."""
        raise InputError(
            f"heeb_histogram has observed nothing to score {len(rows)} rows by at {now}; let a join start it"
        )


class _Following(Policy):
    """`HeebHistogram` at work."""

    def __init__(self, config: HeebHistogram, setting: Setting) -> None:
        self.config = config
        self._at: dict[Side, float] = dict.fromkeys(SIDES, np.nan)  # where each stream is
        spans = setting.window.lifetimes()
        self._followed: dict[Side, FollowedRows] = {
            side: FollowedRows(_FOLLOWED, salt(setting), config.term, float(spans[side])) for side in SIDES
        }
        self._benefits: dict[Side, _Benefits] = {side: _Benefits(config) for side in SIDES}
        self._lifetime = Lifetime(_HORIZON)

    def __repr__(self) -> str:
        return repr(self.config)

    def observe(self, step: Step) -> None:
        """Follow both streams, and learn what rows at each place match."""
        self._lifetime.observe(replace(step, now=step.number))
        kept = float(np.exp(-1 / Exponential.about(1 + (self._lifetime.mean() or 1.0)).alpha))
        arrived = {side: step.arrivals(side) for side in SIDES}
        for side in SIDES:
            self._at[side] = self._moved(self._at[side], arrived[side].key)
        for side in SIDES:
            other = other_side(side)
            if np.isnan(self._at[other]):
                continue
            lessons = self._followed[side].observe(
                arrived[side],
                arrived[other].key,
                self._at[other],
                step=step.number,
                now=float(step.now),
                kept=kept,
            )
            if len(lessons.place):
                self._benefits[side].learn(lessons)

    def _moved(self, at: float, keys: Array) -> float:
        """Where a stream is after these keys."""
        if self.config.offset == "none":
            return 0.0
        if not len(keys):
            return at
        if self.config.offset == "last":
            return float(keys[-1])
        # What is older has no weight that matters.
        recent = keys[-int(_LONG * self.config.rows) :].astype(np.float64)
        at = recent[0] if np.isnan(at) else at
        weights = (1 - 1 / self.config.rows) ** np.arange(len(recent), -1, -1)
        weights[1:] /= self.config.rows
        return float(weights[0] * at + weights[1:] @ recent)

    def _places(self, side: Side, keys: Array) -> Array:
        """How far keys of a side are from where the other stream is; 0 while it has brought nothing."""
        at = self._at[other_side(side)]
        return np.zeros(len(keys)) if np.isnan(at) else keys - at

    def scores(self, rows: Rows, now: Time) -> Array:  # noqa: ARG002 - the streams' places tell the time
        """Score by what rows at this place may expect."""
        return self._benefits[rows.side].histogram.mean(self._places(rows.side, rows.key))

    def learned(self) -> list[Learned]:
        """Where each stream is, and by place what rows may expect to match while they stay."""
        told = [Learned("offset", side, at) for side, at in self._at.items() if not np.isnan(at)]
        for side, benefits in self._benefits.items():
            told += [
                Learned("benefit", side, mean, weight, None, begin, end)
                for begin, end, mean, weight in benefits.histogram.buckets()
                if weight > 0
            ]
        return told

    def snapshot(self) -> dict[str, Array]:
        """What was learned, and which rows are followed."""
        state = {"at": np.array([*self._at.values()])} | as_part("lifetime", self._lifetime.snapshot())
        for side in SIDES:
            state |= as_part(side, self._followed[side].snapshot())
            state |= as_part(f"benefit_{side}", self._benefits[side].snapshot())
        return state

    def restore(self, state: dict[str, Array]) -> Self:
        """Take up what `snapshot` gave."""
        self._at = dict(zip(SIDES, state["at"].tolist(), strict=True))
        parts = parts_of(state)
        self._lifetime.restore(parts["lifetime"])
        for side in SIDES:
            self._followed[side].restore(parts[side])
            self._benefits[side].restore(parts[f"benefit_{side}"])
        return self


class _Benefits:
    """What rows of one side may expect, by place."""

    def __init__(self, config: HeebHistogram) -> None:
        self._memory = config.memory
        self.histogram = AdaptiveHistogram(config.buckets)
        self._since = 0  # it last adapted

    def learn(self, lessons: Lessons) -> None:
        """Learn from rows that were followed for a term."""
        expected = lessons.gained + lessons.left * self.histogram.mean(lessons.later)
        self.histogram.forget(2.0 ** (-len(lessons.place) / self._memory))
        self.histogram.observe(lessons.place, expected)
        self._since += len(lessons.place)
        if self._since >= _OFTEN:
            self.histogram.adapt()
            self._since %= _OFTEN

    def snapshot(self) -> dict[str, Array]:
        """What was learned, as plain arrays."""
        return self.histogram.snapshot() | {"since": np.array([self._since])}

    def restore(self, state: dict[str, Array]) -> None:
        """Take up what `snapshot` gave."""
        self._since = int(state["since"][0])
        self.histogram.restore(state)
