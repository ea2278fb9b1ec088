"""Sample single results, each with the same chance and independently of all others."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cache
from statistics import NormalDist
from typing import TYPE_CHECKING, ClassVar, Final, Literal

import numpy as np

from tidegate.compiled import kernel
from tidegate.models.numbers import is_number
from tidegate.sampling.expecting import Kinds
from tidegate.sampling.fraction import Taking, cutoff_stairs, held_times, poisson_cutoffs
from tidegate.sampling.ladder import chance, coin, narrow
from tidegate.sampling.sampler import Owners, Sampler, Sampling
from tidegate.sampling.stairs import Stairs, climbed, stairs
from tidegate.types import InputError

if TYPE_CHECKING:
    from tidegate.sampling.expecting import Expecting
    from tidegate.types import Array, Rows, Setting, Side

_NEVER: Final = 2**31
_QUANTILE: Final = 0.999
_NONE: Final = np.empty(0, np.int64)
_NEAR: Final = 64
"""Matches up to this one are decided upon by a look."""


@dataclass(frozen=True)
class Uniform(Sampler):
    """Each result is in the sample with the same chance p, independently of every other.

    Instead of flipping a coin for each match, a row draws once how many matches it passes over before the next one
    that leaves. If that lies beyond all the matches that it may still have, the row is of no further use and leaves
    memory: that is what makes a sample cheaper than the join. So the sampler must know how many matches a row has,
    and it is only as good as that is known. A row that has more matches than the cutoff allows loses those beyond it
    (a model that expects too few biases the sample); one that has fewer waits in vain (a model that expects too many
    costs memory, so that p must be smaller).

    Parameters
    ----------
    p
        The chance of each result; None for what the budget allows.
    model
        How many matches a row expects: a `Frequency`, an `AgeCurve` or a pair of them; "frequency" or "age" to learn
        it, or None for what suits the join.
    rates
        Rows a unit of time, left and right; None learns them.
    overflow
        The chance of overflow, at any moment, for which room is left when p follows from the budget.
    cutoff
        Up to which of its matches a row is waited for: those that a Poisson variable of the expected mean exceeds no
        more often than `1 - cutoff`; or "mean" for the expected number itself, which is right only if every row has
        exactly that many. By default 0.999; without a budget, as long as p is 1, every match is waited for, so that
        the sample is the join.

    Examples
    --------
    >>> import tidegate as tg
    >>> stream = {"key": [1, 2] * 50, "time": range(100)}
    >>> sample = tg.simulate_sample(stream, stream, window=(99, 99), sampler=tg.sampling.Uniform(p=0.1))
    >>> sample.results, sample.exact, round(sample.estimate)
    (516, 5000, 5160)

    References
    ----------
    Memory-Limited Execution of Windowed Stream Joins, section 4.2 and figure 4. Section 4.1 of the paper on reservoir
    sampling over joins (Al-Kateb, Lee, Wang) repeats it as algorithm 3.

    Deviations
    ----------
    What is learned of keys is corrected by what rows that are held have met (`Correction`). The printed cutoff, the
    expected number, is a mean where rows arrive at random. Rows with more matches lose those
    beyond it, and rows that expect less than one lose all: a biased sample. Here the cutoff is a quantile; what still
    lies beyond it is, for 0.999, less than a thousandth of the matches of any row that expects at least one. A
    learned model counts one row more of each key than was seen.

    Theorems 4.2 and 4.3 hold for the printed cutoff and matches that come as if by a timetable, and are used for
    `cutoff="mean"`. For the quantile the memory is reckoned for matches that come at random (`held_time`); either is
    corrected by the memory that is really held.

    Beside what every buffered row has, among it its matches so far (`num`), a row takes two bytes: its level of
    probability, and how many matches it waits for (`next - num`); where one needs more than a byte, all take more.
    """

    name: ClassVar[str] = "uniform"

    cutoff: float | Literal["mean"] | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.cutoff in ("mean", None):
            return
        if not is_number(self.cutoff) or not 0.5 <= float(self.cutoff) < 1:  # noqa: PLR2004 - the median
            raise InputError(
                f"cutoff {self.cutoff!r} is not known; give a quantile from 0.5 to below 1, such as 0.999, or 'mean'"
            )

    def start(self, setting: Setting) -> Sampling:
        """Bind to a join and return what runs."""
        return UniformSampling(self, setting)

    def cutoffs(self, matches: Array) -> Array:
        """The number of the last match that is waited for, of rows that expect so many."""
        if self.cutoff == "mean":
            return np.floor(np.minimum(matches, float(_NEVER))).astype(np.int64)
        level = _QUANTILE if self.cutoff is None else self.cutoff
        z = NormalDist().inv_cdf(level)
        return poisson_cutoffs(matches, level, z, _stairs(level, z))


def _unending(matches: Array) -> Array:
    """Where all is wanted, every match is waited for."""
    return np.full(len(matches), _NEVER)


_stairs = cache(cutoff_stairs)


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


def _first(salt: int, ids: Array, cutoff: Array, p: float) -> Array:
    """DecideNextJoin for arrivals: how many matches each row waits for; 0 if it is of no use."""
    with np.errstate(divide="ignore"):
        passes = np.log1p(-p)
    # Nearly all rows wait for one of the next few matches or for none: whose draw that is can be looked up.
    return _waits(salt, ids, cutoff, passes, stairs(-np.expm1(np.arange(1, _NEAR) * passes), 1.0))


@kernel
def _waits(salt: int, ids: Array, cutoff: Array, passes: float, near: Stairs) -> Array:
    waits = np.empty(len(ids), np.int64)
    for i in range(len(ids)):
        drawn = coin(salt, ids[i], 0)
        ahead = 1 + climbed(near, drawn)
        if ahead == _NEAR <= cutoff[i]:
            ahead = skip(drawn, passes)
        waits[i] = ahead if ahead <= cutoff[i] else 0
    return waits


@kernel
def _joined(
    salt: int, owner: Array, ids: Array, num: Array, wait: Array, levels: Array, cutoff: Array,
    base: float, level: int, out: Array, out_levels: Array,
) -> int:  # fmt: skip
    """Join, for one match after the other: count it, let it leave if it is the one, and decide on the next."""
    passes, n = np.log1p(-chance(base, level)), 0
    for i in range(len(owner)):
        row = owner[i]
        num[row] += 1
        if wait[row] == 0:
            continue
        wait[row] -= 1
        if wait[row] == 0:
            out[n] = i
            out_levels[n] = levels[row]
            n += 1
            ahead = skip(coin(salt, ids[row], num[row]), passes)
            levels[row] = level
            wait[row] = ahead if num[row] + ahead <= cutoff[row] else 0
    return n


@kernel
def _rejected(
    salt: int, ids: Array, num: Array, wait: Array, levels: Array, base: float, level: int
) -> Array:
    """Let each match that is waited for stay so with the chance p'/p; returns the rows whose match does not."""
    p, n = chance(base, level), 0
    last, kept = level, 1.0
    rejected = np.empty(len(ids), np.int64)
    for i in range(len(ids)):
        if levels[i] >= level:
            continue
        if levels[i] != last:
            last = levels[i]
            kept = p / chance(base, last)
        # Apart from the draws of skips, and drawn once: a row's level only rises while it waits for the same match.
        if coin(~salt ^ level, ids[i], num[i] + wait[i]) >= kept:
            rejected[n] = i
            n += 1
        levels[i] = level
    return rejected[:n]


@kernel
def _wait_on(salt: int, rows: Array, ids: Array, num: Array, wait: Array, cutoff: Array, p: float) -> None:
    """Decide on the next match behind the one that these rows waited for; `cutoff` is of these alone."""
    passes = np.log1p(-p)
    for i in range(len(rows)):
        row = rows[i]
        following = num[row] + wait[row]
        following += skip(coin(salt, ids[row], following), passes)
        wait[row] = following - num[row] if following <= cutoff[i] else 0


class UniformSampling(Sampling):
    """`Uniform` at work."""

    def __init__(self, config: Uniform, setting: Setting) -> None:
        super().__init__(config, setting, base=1.0 if config.p is None else float(config.p))
        self._boundless = config.cutoff is None and self.base == 1 and setting.budget is None
        self._cutoff_of = config.cutoffs
        self._printed = config.cutoff == "mean"

    @property
    def _patient(self) -> bool:
        """Whether every match is waited for: without a budget, and unless a reservoir needs but a part of them."""
        return self._boundless and self.control.level == 0

    def _cutoffs(self, matches: Array) -> Array:
        return _unending(matches) if self._patient else self._cutoff_of(matches)

    def cutoffs(self, rows: Rows) -> Array:
        """The number of the last match that is waited for, of each row."""
        return self._cutoffs(self.expecting.matches(rows))

    def admitted(self, rows: Rows) -> tuple[Rows, Owners]:
        """Decide for each arrival on the first match that leaves."""
        cutoff = last = self._cutoffs(self.expecting.foretold(rows))
        if self.expecting.learns != "nothing":
            # In the step itself a row is there anyway, and need not go by what was learned of its key.
            cutoff = np.maximum(last, _NEAR - 1)
        wait = _first(self.salt, rows.id, cutoff, self.fraction)
        level = self.control.level
        rows = replace(rows, level=np.full(len(rows), level, np.min_scalar_type(level)), wait=narrow(wait))
        return rows, Waiting(self, rows, cutoff, last)

    def thinned(self, rows: dict[Side, Rows], held: float, room: float, *, lower: bool) -> dict[Side, Owners]:
        """Thin what was decided with a higher probability."""
        if lower:
            self.control.lower(held, room, self.control.level)
        return {side: self._thinned(some) for side, some in rows.items()}

    def _thinned(self, rows: Rows) -> Owners:
        waiting = Waiting(self, rows, _NONE)
        again = _rejected(
            self.salt, waiting.id, waiting.num, waiting.wait, waiting.level, self.base, self.control.level
        )
        if len(again):
            cutoff = self.cutoffs(rows.take(again))
            # Who must make room before anything is known cannot wait for ever: only for as many as came so far.
            unknown = cutoff >= _NEVER
            cutoff[unknown] = waiting.num[again[unknown]] + self.expecting.seen
            _wait_on(self.salt, again, waiting.id, waiting.num, waiting.wait, cutoff, self.fraction)
        return waiting

    def begin(self, rows: Rows) -> Owners:
        """Make ready to pick from the matches of these rows."""
        return Waiting(self, rows, self.cutoffs(rows))

    def theory(self) -> Taking | None:
        """Theorems 4.2 and 4.3 for the printed cutoff, else the same for matches that come at random."""
        kinds = self.expecting.kinds_of_both()
        if kinds is None or self._patient:
            return None
        if self._printed:
            return _Printed(self.base, self.expecting)
        return _AtRandom(self.base, kinds, [self._cutoffs(some.matches) for some in kinds])


class Waiting(Owners):
    """Rows and the match that each of them waits for; after the step, for none behind the `last`."""

    def __init__(
        self, sampling: UniformSampling, rows: Rows, cutoff: Array, last: Array | None = None
    ) -> None:
        assert rows.wait is not None, "rows of this sampler wait for a match"  # noqa: S101 - an invariant
        assert rows.level is not None, "rows of a sampler have their level"  # noqa: S101 - an invariant
        self._sampling = sampling
        self.id, self.num = rows.id, rows.matches.copy()
        self.wait, self.level = rows.wait.astype(np.int64), rows.level.astype(np.int64)
        self._cutoff, self._last = cutoff, last

    def picked(self, owner: Array) -> tuple[Array, Array]:
        """Count these matches and tell which of them leave."""
        out, levels = np.empty(len(owner), np.int64), np.empty(len(owner), np.int64)
        sampling = self._sampling
        n = _joined(
            sampling.salt, owner, self.id, self.num, self.wait, self.level, self._cutoff,
            sampling.base, sampling.control.level, out, levels,
        )  # fmt: skip
        return out[:n], levels[:n]

    def useless(self) -> Array:
        """Which rows wait for nothing."""
        none: Array = self.wait == 0
        return none if self._last is None else none | (self.num + self.wait > self._last)

    def noted(self) -> dict[str, Array]:
        """What is noted of the rows now."""
        return {"matches": self.num, "level": narrow(self.level), "wait": narrow(self.wait)}


class _Printed(Taking):
    def __init__(self, base: float, expecting: Expecting) -> None:
        self._base, self._expecting = base, expecting

    def rows(self, level: int) -> float:
        return self._expecting.printed(chance(self._base, level)) or 0.0


class _AtRandom(Taking):
    def __init__(self, base: float, kinds: list[Kinds], cutoffs: list[Array]) -> None:
        self._base, self._kinds, self._cutoffs = base, kinds, cutoffs

    def rows(self, level: int) -> float:
        p, total = chance(self._base, level), 0.0
        for kinds, cutoffs in zip(self._kinds, self._cutoffs, strict=True):
            part = held_times(kinds.matches, cutoffs, p, kinds.widths, kinds.reached) / kinds.widths.sum()
            total += float(kinds.rows @ part)
        return total
