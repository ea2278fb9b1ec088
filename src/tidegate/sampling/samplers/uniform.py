"""Sample single results, each with the same probability."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, ClassVar, Final

import numpy as np

from tidegate.compiled import kernel
from tidegate.sampling.samplers.match_forecaster import Kinds
from tidegate.sampling.samplers.memory_model import MemoryModel, held_times
from tidegate.sampling.samplers.probability_levels import (
    STEPS,
    narrowest,
    probabilities_at,
    probability_at,
    uniform_draw,
)
from tidegate.sampling.samplers.sampler import SPREAD, Owners, Picked, RunningSampler, Sampler
from tidegate.sampling.samplers.step_function import StepFunction, step_function, steps_below

if TYPE_CHECKING:
    from typing import Self

    from tidegate.types import Array, Rows, Setting, Side

_MOST: Final = 2.0**31
"""No row is believed to have more matches."""
_NO_CUTOFF: Final = 1 << 62
_NEAR: Final = 64
"""Up to this many matches ahead, the one that a row waits for is looked up."""
_HOLDING: Final = 0x2545F4914F6CDD1D
"""Sets apart the draw by which a row is held for matches beyond those that it expects."""
_BEYOND: Final = 0x1D872B41A8E1A2B3
"""Sets apart the draws of those matches."""
_ROUNDED: Final = 1e-9


@dataclass(frozen=True)
class Uniform(Sampler):
    """Each result is in the sample with the same probability p, as long as p does not change.

    Instead of drawing for each match, a row draws once how many matches it passes over before the next one that
    leaves. If that lies beyond the matches that it expects, it need not wait in memory: that is what makes a sample
    cheaper than the join. But what a row expects is only a belief. So such a row is held all the same with a
    probability c, which is at least p, and each of its matches beyond those expected then leaves with the
    probability p / c. Every result has the probability p, whatever was believed, and no estimate is biased.

    A wrong belief costs precision or memory instead. Results that nobody expected come from few rows, several from
    each, as in a cluster sample; each result tells the probability c with which its row was held (`shown`), and
    intervals take that into account. A belief in too many matches lets rows wait in vain, so that p must be smaller.

    Parameters
    ----------
    p
        The probability of each result; None for what the budget allows.
    model
        How many matches a row expects: a `Frequency`, an `AgeCurve` or a pair of them; "frequency" or "age" to learn
        it, or None for what suits the join.
    rates
        Rows a unit of time, left and right; None learns them.
    overflow
        The chance of overflow, at any moment, for which room is left when p follows from the budget.

    Examples
    --------
    >>> import tidegate as tg
    >>> stream = {"key": [1, 2] * 50, "time": range(100)}
    >>> sample = tg.simulate_sample(stream, stream, window=(99, 99), sampler=tg.sampling.Uniform(p=0.1))
    >>> sample.results, sample.exact, round(sample.estimate)
    (551, 5000, 5510)

    References
    ----------
    Memory-Limited Execution of Windowed Stream Joins, section 4.2 and figure 4. Section 4.1 of the paper on reservoir
    sampling over joins (Al-Kateb, Lee, Wang) repeats it as algorithm 3.

    Deviations
    ----------
    As printed, a row whose next match lies beyond the expected number is always dropped. All later matches are then
    lost, and rows that expect less than one are never sampled: a biased sample wherever some rows have more matches
    than the model says, as on user sessions, at rush hours, or where rows simply arrive at random.

    Here such a row stays with the probability c = p * max(1, n/4), at most 1, if it expects n matches. On streams
    with bursts, rush hours and skewed keys that choice was within a third of the best one for each: a larger c
    leaves less memory for expected matches, a smaller one makes unexpected matches come from fewer rows.

    At a p for which the paper's formula gives half of the window, that takes 60 to 68 % of it (1 to 100 expected
    matches). Within a budget, p is as low as the budget asks for.

    What is learned of keys is corrected by what rows that are held have met (`ForecastCorrection`).

    Beside what every buffered row has, among it its matches so far (`num`), a row takes three bytes: its level of
    probability, how many matches it waits for (`next - num`), and the level of c; where one needs more than a byte,
    all take more.
    """

    name: ClassVar[str] = "uniform"

    def start(self, setting: Setting) -> RunningSampler:
        """Bind to a join and return what runs."""
        return RunningUniform(self, setting)


@kernel
def skip(drawn: float, passes: float) -> int:
    """How many matches on from here the next one is that leaves: geometric, by one draw.

    `passes` is the logarithm of the chance to pass over a match.

    Examples
    --------
    >>> skip(0.0, np.log(0.75)), skip(0.5, np.log(0.75)), skip(0.99, -np.inf)
    (1, 3, 1)
    """
    return 1 + int(min(np.log1p(-drawn) / passes, 2.0**61))


@kernel
def _holding(base: float, hold: int, certain: int) -> float:
    """The probability of a level of holding; up to the level `certain` it is 1."""
    return 1.0 if hold <= certain else probability_at(base, hold)


@kernel
def _next_beyond(
    salt: int, base: float, certain: int, level: int, row: int, start: int, hold: int
) -> tuple[int, int]:
    """Of a row that is held: how far behind `start` its next match is that leaves, and the level of that one's p."""
    level = max(level, hold)
    leaves = min(1.0, probability_at(base, level) / _holding(base, hold, certain))
    return skip(uniform_draw(salt ^ _BEYOND, row, start), np.log1p(-leaves)), level


@kernel
def _pass_cutoff(
    salt: int, base: float, certain: int, level: int, i: int, decided: int, hold: int,
    ids: Array, num: Array, wait: Array, levels: Array, holds: Array,
) -> None:  # fmt: skip
    """Row i leaves none of the matches that it expects: hold it for further ones, or let it go (it waits for 0).

    Up to the match `decided` it is known which leave: none of these may be drawn again.
    """
    wait[i] = 0
    if uniform_draw(salt ^ _HOLDING, ids[i], 0) < _holding(base, hold, certain):
        start = max(decided, num[i])
        ahead, levels[i] = _next_beyond(salt, base, certain, level, ids[i], start, hold)
        wait[i] = start - num[i] + ahead
        holds[i] = hold - certain + 1


@kernel
def _begin(
    salt: int, base: float, certain: int, level: int, near: StepFunction, cutoff: Array, hold: Array,
    ids: Array, num: Array, wait: Array, levels: Array, holds: Array,
) -> None:  # fmt: skip
    """DecideNextJoin for arrivals."""
    passes = np.log1p(-probability_at(base, level))
    for i in range(len(ids)):
        drawn = uniform_draw(salt, ids[i], 0)
        # Nearly all rows wait for one of the next few matches or for none: which draw gives which can be looked up.
        ahead = 1 + steps_below(near, drawn)
        if ahead == _NEAR <= cutoff[i]:
            ahead = skip(drawn, passes)
        wait[i] = ahead
        levels[i] = level
        if ahead > cutoff[i]:
            _pass_cutoff(
                salt, base, certain, level, i, cutoff[i], hold[i], ids, num, wait, levels, holds
            )  # fmt: skip


@kernel
def _join(
    salt: int, base: float, certain: int, level: int, cutoff: Array, hold: Array, owner: Array,
    ids: Array, num: Array, wait: Array, levels: Array, holds: Array,
    out: Array, probability: Array, shown: Array,
) -> int:  # fmt: skip
    """Join, for one match after the other: count it, let it leave if it is the one, and decide on the next."""
    passes, n = np.log1p(-probability_at(base, level)), 0
    for i in range(len(owner)):
        row = owner[i]
        num[row] += 1
        if wait[row] == 0:
            continue
        wait[row] -= 1
        if wait[row] > 0:
            continue
        held = holds[row] + certain - 1
        out[n] = i
        probability[n] = probability_at(base, levels[row])
        shown[n] = _holding(base, held, certain) if holds[row] else 1.0
        n += 1
        if holds[row]:
            wait[row], levels[row] = _next_beyond(salt, base, certain, level, ids[row], num[row], held)
            continue
        wait[row] = skip(uniform_draw(salt, ids[row], num[row]), passes)
        levels[row] = level
        if num[row] + wait[row] > cutoff[row]:
            _pass_cutoff(
                salt, base, certain, level, row, cutoff[row], hold[row], ids, num, wait, levels, holds
            )  # fmt: skip
    return n


@kernel
def _end_step(
    salt: int, base: float, certain: int, level: int, cutoff: Array, hold: Array,
    ids: Array, num: Array, wait: Array, levels: Array, holds: Array,
) -> None:  # fmt: skip
    """Arrivals were there for all matches of their own step; from now on the cutoff holds."""
    for i in range(len(ids)):
        if holds[i] == 0 < wait[i] and num[i] + wait[i] > cutoff[i]:
            _pass_cutoff(
                salt, base, certain, level, i, cutoff[i], hold[i], ids, num, wait, levels, holds
            )  # fmt: skip


@kernel
def _thin(
    salt: int, base: float, certain: int, level: int, cutoff: Array, hold: Array,
    ids: Array, num: Array, wait: Array, levels: Array, holds: Array,
) -> None:  # fmt: skip
    """Thin what was decided with higher probabilities than those of new draws."""
    p = probability_at(base, level)
    passes = np.log1p(-p)
    for i in range(len(ids)):
        if wait[i] == 0:
            continue
        at, held = num[i] + wait[i], holds[i] + certain - 1
        if holds[i] == 0:
            if levels[i] >= level:
                continue
            # Apart from the draws of skips, and drawn once: a row's level only rises while it waits for one match.
            rejected = uniform_draw(~salt ^ level, ids[i], at) >= p / probability_at(base, levels[i])
            levels[i] = level
            if rejected:
                following = at + skip(uniform_draw(salt, ids[i], at), passes)
                wait[i] = following - num[i]
                if following > cutoff[i]:
                    # Where less is expected now than when the rejected match was drawn, that one lies beyond.
                    decided = max(cutoff[i], at)
                    _pass_cutoff(
                        salt, base, certain, level, i, decided, hold[i], ids, num, wait, levels, holds
                    )  # fmt: skip
            continue
        lower = max(held, hold[i])
        # Of a draw that was below the higher probability, nothing else is known.
        if lower > held and uniform_draw(salt ^ _HOLDING, ids[i], 0) >= _holding(base, lower, certain):
            wait[i] = 0
            continue
        holds[i] = lower - certain + 1
        # With this probability the match that it waits for would leave now; it is to be one of a level.
        now = probability_at(base, levels[i]) * _holding(base, lower, certain) / _holding(base, held, certain)
        new = max(level, int(np.ceil(STEPS * np.log2(base / now) - _ROUNDED)))
        if new > levels[i] and uniform_draw(~salt ^ new, ids[i], at) >= probability_at(base, new) / now:
            ahead, new = _next_beyond(salt, base, certain, level, ids[i], at, lower)
            wait[i] += ahead
        levels[i] = new


class RunningUniform(RunningSampler):
    """`Uniform` at work.

    The level of `control` says what memory allows, and so with which probability rows are held. A reservoir above
    may need fewer results than that gives (`cap`): p is then lower, and rows are held more often than they need be.
    """

    def __init__(self, config: Uniform, setting: Setting) -> None:
        super().__init__(config, setting, base=1.0 if config.p is None else float(config.p))
        self.certain = -math.floor(STEPS * math.log2(1 / self.base))
        self.capped = 0

    @property
    def level(self) -> int:
        """That of the probability of new draws."""
        return max(self.control.level, self.capped)

    @property
    def fraction(self) -> float:
        """The probability of new draws."""
        return min(1.0, probability_at(self.base, self.level))

    def cap(self, fraction: float) -> None:
        """Let new draws have no higher probability than one just above this fraction: more would be of no use."""
        if 0 < fraction < self.base:
            self.capped = max(self.capped, self._level(fraction))
            self.control.cap(self._level(min(self.base, SPREAD * fraction)))

    def cutoffs(self, matches: Array) -> Array:
        """The number of the last match that rows wait for, by the matches they expect; 0 while these are unknown."""
        return np.rint(np.where(np.isinf(matches), 0.0, np.minimum(matches, _MOST))).astype(np.int64)

    def holds(self, cutoffs: Array, level: int | None = None) -> Array:
        """The level of the probability with which rows are held beyond these cutoffs."""
        above = np.rint(STEPS * np.log2(np.maximum(cutoffs / 4, 1.0))).astype(np.int64)
        holds: Array = np.maximum((self.control.level if level is None else level) - above, self.certain)
        return holds

    def admitted(self, rows: Rows) -> tuple[Rows, Owners]:
        """Decide for each arrival on the first match that leaves."""
        last = self.cutoffs(self.forecaster.foretold(rows))
        none = np.zeros(len(rows), np.uint8)
        rows = replace(rows, notes={"level": none, "wait": none, "hold": none})
        # In the step itself a row is there anyway, and need not go by what was learned of its key.
        cutoff = last if self.forecaster.learns == "nothing" else np.full(len(rows), _NO_CUTOFF)
        waiting = UniformOwners(self, rows, cutoff, last)
        waiting.begin()
        return rows, waiting

    def thinned(self, rows: dict[Side, Rows], held: float, room: float, *, lower: bool) -> dict[Side, Owners]:
        """Thin what was decided with a higher probability."""
        if lower:
            self.control.lower(held, room, self.control.level)
        thinned: dict[Side, Owners] = {}
        for side, some in rows.items():
            waiting = UniformOwners(self, some, self.cutoffs(self.forecaster.matches(some)))
            waiting.thin()
            thinned[side] = waiting
        return thinned

    def begin(self, rows: Rows) -> Owners:
        """Make ready to pick from the matches of these rows."""
        return UniformOwners(self, rows, self.cutoffs(self.forecaster.matches(rows)))

    def theory(self) -> MemoryModel | None:
        """Theorems 4.2 and 4.3, for matches that come at random, and with the rows that are held beyond them."""
        kinds = self.forecaster.kinds_of_both()
        if kinds is None:
            return None
        return _UniformMemory(self, kinds, [self.cutoffs(some.matches) for some in kinds])

    def kind(self) -> str:
        """What its state is of; rows of a state without columns for held rows are dropped."""
        return f"{super().kind()} held"

    def snapshot(self) -> dict[str, Array]:
        """What was learned and decided, as plain arrays."""
        return super().snapshot() | {"capped": np.array([self.capped])}

    def restore(self, state: dict[str, Array]) -> Self:
        """Take up what `snapshot` gave."""
        self.capped = int(state.pop("capped")[0])
        return super().restore(state)


class UniformOwners(Owners):
    """Rows and the match that each of them waits for, up to the `cutoff`; after the step, up to the `last`."""

    def __init__(
        self, sampling: RunningUniform, rows: Rows, cutoff: Array, last: Array | None = None
    ) -> None:
        self._sampling = sampling
        self.id, self.num = rows.id, rows.matches.copy()
        self.wait, self.level, self.hold = (
            rows.notes[name].astype(np.int64) for name in ("wait", "level", "hold")
        )
        self._cutoff, self._last = cutoff, cutoff if last is None else last
        self._hold = sampling.holds(self._last)

    @property
    def _draws(self) -> tuple[int, float, int, int]:
        sampling = self._sampling
        return sampling.salt, sampling.base, sampling.certain, sampling.level

    @property
    def _rows(self) -> tuple[Array, Array, Array, Array, Array]:
        return self.id, self.num, self.wait, self.level, self.hold

    def begin(self) -> None:
        """Decide on the first match of arrivals."""
        with np.errstate(divide="ignore"):
            passes = np.log1p(-self._sampling.fraction)
        near = step_function(-np.expm1(np.arange(1, _NEAR) * passes), 1.0)
        _begin(*self._draws, near, self._cutoff, self._hold, *self._rows)

    def thin(self) -> None:
        """Lower the probability of what was decided to that of new draws."""
        _thin(*self._draws, self._cutoff, self._hold, *self._rows)

    def picked(self, owner: Array) -> Picked:
        """Count these matches and tell which of them leave."""
        out, probability, shown = np.empty(len(owner), np.int64), np.empty(len(owner)), np.empty(len(owner))
        n = _join(*self._draws, self._cutoff, self._hold, owner, *self._rows, out, probability, shown)
        return Picked(out[:n], probability[:n], shown[:n])

    def end_step(self) -> None:
        """Decide which arrivals wait for a match behind the last."""
        if self._last is not self._cutoff:
            _end_step(*self._draws, self._last, self._hold, *self._rows)

    def useless(self) -> Array:
        """Which rows wait for nothing."""
        none: Array = self.wait == 0
        return none

    def matches(self) -> Array:
        """The matches of each row, counted while they were picked."""
        return self.num

    def notes(self) -> dict[str, Array]:
        """The level of each row's probability, how many matches until the next one that leaves, and `hold`.

        `hold` is the level of the probability with which a row is held for matches beyond those expected of it;
        0 for a row that is not held.
        """
        columns = {"level": self.level, "wait": self.wait, "hold": self.hold}
        return {name: narrowest(column) for name, column in columns.items()}


class _UniformMemory(MemoryModel):
    def __init__(self, sampling: RunningUniform, kinds: list[Kinds], cutoffs: list[Array]) -> None:
        self._sampling, self._kinds, self._cutoffs = sampling, kinds, cutoffs

    def rows(self, level: int) -> float:
        sampling, total = self._sampling, 0.0
        p = probability_at(sampling.base, max(level, sampling.capped))
        for kinds, cutoffs in zip(self._kinds, self._cutoffs, strict=True):
            part = held_times(kinds.matches, cutoffs, p, kinds.widths, kinds.reached) / kinds.widths.sum()
            held = np.minimum(probabilities_at(sampling.base, sampling.holds(cutoffs, level)), 1.0)
            total += float(kinds.rows @ (part + (1 - part) * held))
        return total
