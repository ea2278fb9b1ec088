"""Keep the rows whose like has paid, where it is only known in which way keys move."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Final, Literal, Self

import numpy as np

from tidegate.draws import salt
from tidegate.models.histogram import Histogram
from tidegate.policies.departures import Departed, Departures
from tidegate.policies.policy import Policy, need_numbers
from tidegate.types import SIDES, InputError, Learned, as_part, check_choice, other_side, parts_of

if TYPE_CHECKING:
    from tidegate.types import Array, Rows, Setting, Side, Step, Time

Offset = Literal["mean", "last", "none"]
_ROWS: Final = 16.0
_MEMORY: Final = 1000.0
_TERM: Final = 10.0
_NOTHING: Final = 1 / 32
_OFTEN: Final = 64
"""After how many lessons buckets are split and merged."""
_LONG: Final = 40.0
_FOLLOWED: Final = 1 << 12
"""How many rows of a side are followed at most; of more in memory, a sample."""


@dataclass(frozen=True)
class HeebHistogram(Policy):
    """A row is worth what rows at its place have brought while they were held, by how long that took.

    For streams of numbers that move together, timestamps, counters, levels, walks, of which nobody knows the
    parameters. What `heeb` reckons from a process, this learns: a row's place is how far its key lies from where the
    other stream is now, its mean or its last key; and what a row at that place brings does not change, though keys
    do. When a row leaves memory, two histograms over the places learn how many results it brought since it was let
    in, and for how many steps it stayed. A row is scored by the quotient of both at its present place.
    At most some thousand rows of a side are followed so, a sample if there are more.

    Keys must be numbers in which nearness means something; of names, their codes' nearness means nothing.

    Parameters
    ----------
    offset
        What places are measured from. "mean": the other stream's mean, for values around a line. "last": its last
        value, for walks. "none": 0, for streams that stay where they are.
    buckets
        How many buckets each histogram has.
    rows
        Over how many rows the mean is taken, by exponential smoothing.
    memory
        After how many more lessons a lesson counts half.
    term
        After how many steps a row that stays is taken to have left and come again.

    Examples
    --------
    >>> import numpy as np
    >>> import tidegate as tg
    >>> time, rng = np.arange(2000), np.random.default_rng(1)
    >>> left, right = ({"time": time, "key": time + rng.integers(-8, 9, 2000)} for _ in range(2))
    >>> settings = dict(window=(None, None), budget=8, step="instant")
    >>> [tg.simulate(left, right, policy=name, **settings).results for name in ("heeb_histogram", "prob", "random")]
    [951, 150, 811]

    References
    ----------
    On Joining and Caching Stochastic Streams, section 6.2.

    Deviations
    ----------
    In the paper a row teaches only when it leaves. One that is wrongly thought worth holding then never teaches, and
    memory fills up with such rows; here a row that stays teaches after every `term`, and is taken for a new one at
    its present place. The paper takes the mean of inverse lifetimes; rows that were dropped soon weigh too much in
    it, so this is the inverse of the mean, which measured better. Scores go over smoothly from bucket to bucket,
    since equal ones would leave it to age who stays, and next to nothing counts as nothing. The mean lags behind a
    line, by a constant, which moves all places alike. Lessons are forgotten by the number that follow them, not by
    time. A row that is dropped in the step in which it came was never in memory and teaches nothing; results of a
    row's own step do not count.
    """

    name: ClassVar[str] = "heeb_histogram"
    by_key: ClassVar[bool] = True

    offset: Offset = "mean"
    buckets: int = 10
    rows: float = _ROWS
    memory: float = _MEMORY
    term: float = _TERM

    def __post_init__(self) -> None:
        check_choice(self.offset, Offset, "offset")
        Histogram(self.buckets)
        for what in ("rows", "memory", "term"):
            value = getattr(self, what)
            if isinstance(value, bool) or not isinstance(value, int | float) or not 1 <= value < np.inf:
                raise InputError(f"{what} is {value!r}; give a finite number, at least 1")

    def start(self, setting: Setting) -> Policy:
        """Begin to learn."""
        need_numbers(setting, "heeb_histogram asks where keys lie")
        return _Watching(self, setting)

    def scores(self, rows: Rows, now: Time) -> Array:
        """Nothing is known before a join has started."""
        raise InputError(
            f"heeb_histogram has observed nothing to score {len(rows)} rows by at {now}; let a join start it"
        )


class _Watching(Policy):
    """`HeebHistogram` at work."""

    def __init__(self, config: HeebHistogram, setting: Setting) -> None:
        self.config = config
        self._at: dict[Side, float] = dict.fromkeys(SIDES, np.nan)  # where each stream is
        self._departures: dict[Side, Departures] = {
            side: Departures(_FOLLOWED, salt(setting)) for side in SIDES
        }
        self._lessons: dict[Side, _Lessons] = {side: _Lessons(config) for side in SIDES}

    def __repr__(self) -> str:
        return repr(self.config)

    def observe(self, step: Step) -> None:
        """Follow both streams, and learn from the rows that have left since the last step."""
        for side in SIDES:
            self._at[side] = self._moved(self._at[side], step.rows[side].key[step.fresh[side] :])
        for side, rows in step.rows.items():
            fresh = step.fresh[side]
            places = self._places(side, rows.key)
            gone = self._departures[side].observe(rows, fresh, places, step.number, self.config.term)
            if len(gone.place):
                self._lessons[side].learn(gone)

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
        """Score by what rows at this place brought, a step that they stayed."""
        return self._lessons[rows.side].worth(self._places(rows.side, rows.key))

    def learned(self) -> list[Learned]:
        """Where each stream is, and by place what rows brought while they were held, and for how many steps."""
        told = [Learned("offset", side, at) for side, at in self._at.items() if not np.isnan(at)]
        for side, lessons in self._lessons.items():
            told += [
                Learned(model, side, mean, weight, None, begin, end)
                for model, histogram in lessons.named().items()
                for begin, end, mean, weight in histogram.buckets()
                if weight > 0
            ]
        return told

    def snapshot(self) -> dict[str, Array]:
        """What was learned, and who is followed."""
        state = {"at": np.array([*self._at.values()])}
        for side in SIDES:
            for part in (self._departures[side], self._lessons[side]):
                state |= as_part(side, part.snapshot())
        return state

    def restore(self, state: dict[str, Array]) -> Self:
        """Take up what `snapshot` gave."""
        self._at = dict(zip(SIDES, state["at"].tolist(), strict=True))
        parts = parts_of(state)
        for side in SIDES:
            self._departures[side].restore(parts[side])
            self._lessons[side].restore(parts[side])
        return self


class _Lessons:
    """What rows of one side brought, and how long they stayed, by place."""

    def __init__(self, config: HeebHistogram) -> None:
        self._memory = config.memory
        self._brought, self._stayed = Histogram(config.buckets), Histogram(config.buckets)
        self._since = 0  # it last adapted

    def learn(self, gone: Departed) -> None:
        """Learn from rows that have left."""
        kept = 2.0 ** (-len(gone.place) / self._memory)
        self._since += len(gone.place)
        for histogram, values in ((self._brought, gone.results), (self._stayed, gone.steps)):
            histogram.forget(kept)
            histogram.observe(gone.place, values)
            if self._since >= _OFTEN:
                histogram.adapt()
        self._since %= _OFTEN

    def worth(self, places: Array) -> Array:
        """Results to be expected at these places, weighed down by the wait."""
        brought = self._brought.mean(places)
        # What is next to nothing is nothing: else rows stay for ever whose mean, of results long ago, nears 0.
        brought[brought < _NOTHING * self._brought.most()] = 0.0
        return brought / np.maximum(self._stayed.mean(places), 1.0)

    def named(self) -> dict[str, Histogram]:
        """Each histogram by what it is of."""
        return {"brought": self._brought, "stayed": self._stayed}

    def snapshot(self) -> dict[str, Array]:
        """What was learned, as plain arrays."""
        parts = ((what, histogram.snapshot()) for what, histogram in self.named().items())
        state = {f"{what}_{name}": array for what, part in parts for name, array in part.items()}
        return state | {"since": np.array([self._since])}

    def restore(self, state: dict[str, Array]) -> None:
        """Take up what `snapshot` gave."""
        self._since = int(state["since"][0])
        for what, histogram in self.named().items():
            start = f"{what}_"
            histogram.restore({n.removeprefix(start): a for n, a in state.items() if n.startswith(start)})
