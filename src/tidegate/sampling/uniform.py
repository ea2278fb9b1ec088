"""Sample single results, each with the same chance and independently of all others."""

from __future__ import annotations

from dataclasses import dataclass, replace
from statistics import NormalDist
from typing import TYPE_CHECKING, ClassVar, Final, Literal

import numpy as np

from tidegate.compiled import kernel
from tidegate.models.numbers import is_number
from tidegate.sampling.expecting import Kinds
from tidegate.sampling.fraction import Taking, held_times, poisson_cutoff
from tidegate.sampling.ladder import chance, coin, narrow
from tidegate.sampling.sampler import Owners, Sampler, Sampling
from tidegate.types import SIDES, InputError

if TYPE_CHECKING:
    from tidegate.sampling.expecting import Expecting
    from tidegate.types import Array, Rows, Setting

_NEVER: Final = 2**31
_QUANTILE: Final = 0.999


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
        exactly that many. By default 0.999; with p=1 and no budget every match is waited for, so that the sample is
        the join.

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
    The printed cutoff, the expected number, is a mean where rows arrive at random. Rows with more matches lose those
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
        return _cutoffs(matches, level, NormalDist().inv_cdf(level))


def _unending(matches: Array) -> Array:
    """Where all is wanted, every match is waited for."""
    return np.full(len(matches), _NEVER)


@kernel
def _cutoffs(matches: Array, level: float, z: float) -> Array:
    found = np.empty(len(matches), np.int64)
    for i in range(len(matches)):
        found[i] = poisson_cutoff(matches[i], level, z)
    return found


@kernel
def skip(drawn: float, p: float) -> int:
    """How many matches on from here the next one is that leaves: geometric, by one draw.

    Examples
    --------
    >>> skip(0.0, 0.25), skip(0.5, 0.25), skip(0.99, 1.0)
    (1, 3, 1)
    """
    if p >= 1.0:
        return 1
    return 1 + int(min(np.log1p(-drawn) / np.log1p(-p), 2.0**61))


@kernel
def _decided(salt: int, ids: Array, num: Array, cutoff: Array, p: float) -> Array:
    """DecideNextJoin: how many matches each row waits for; 0 if it is of no further use."""
    wait = np.empty(len(ids), np.int64)
    for i in range(len(ids)):
        ahead = skip(coin(salt, ids[i], num[i]), p)
        wait[i] = ahead if num[i] + ahead <= cutoff[i] else 0
    return wait


@kernel
def _joined(
    salt: int, owner: Array, ids: Array, num: Array, wait: Array, levels: Array, cutoff: Array,
    base: float, level: int, out: Array, out_levels: Array,
) -> int:  # fmt: skip
    """Join, for one match after the other: count it, let it leave if it is the one, and decide on the next."""
    p, n = chance(base, level), 0
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
            ahead = skip(coin(salt, ids[row], num[row]), p)
            levels[row] = level
            wait[row] = ahead if num[row] + ahead <= cutoff[row] else 0
    return n


@kernel
def _thinned(
    salt: int, ids: Array, num: Array, wait: Array, levels: Array, cutoff: Array, base: float, level: int
) -> None:
    """Let each match that is waited for stay so with the chance p'/p; else decide on the next one behind it."""
    p = chance(base, level)
    for i in range(len(ids)):
        if levels[i] >= level:
            continue
        following = num[i] + wait[i]
        # Apart from the draws of skips, and drawn once: a row's level only rises while it waits for the same match.
        if coin(~salt ^ level, ids[i], following) >= p / chance(base, levels[i]):
            wait[i] += skip(coin(salt, ids[i], following), p)
            if num[i] + wait[i] > cutoff[i]:
                wait[i] = 0
        levels[i] = level


class UniformSampling(Sampling):
    """`Uniform` at work."""

    skips: ClassVar[bool] = True

    def __init__(self, config: Uniform, setting: Setting) -> None:
        super().__init__(config, setting, base=1.0 if config.p is None else float(config.p))
        self._patient = config.cutoff is None and config.p == 1 and setting.budget is None
        self._cutoffs = _unending if self._patient else config.cutoffs
        self._printed = config.cutoff == "mean"

    def cutoffs(self, rows: Rows) -> Array:
        """The number of the last match that is waited for, of each row."""
        return self._cutoffs(self.expecting.matches(rows))

    def admitted(self, rows: Rows) -> tuple[Rows, Array]:
        """Decide for each arrival on the first match that leaves."""
        wait = _decided(self.salt, rows.id, rows.matches, self.cutoffs(rows), self.fraction)
        level = np.full(len(rows), self.control.level)
        return replace(rows, level=narrow(level), wait=narrow(wait)), wait == 0

    def thinned(self, rows: Rows) -> tuple[Rows, Array]:
        """Thin what was decided with a higher probability."""
        waiting = Waiting(self, rows)
        # Who must make room before anything is known cannot wait for ever: only for as many as came so far.
        unknown = waiting.cutoff >= _NEVER
        waiting.cutoff[unknown] = waiting.num[unknown] + self.expecting.seen
        _thinned(
            self.salt, waiting.id, waiting.num, waiting.wait, waiting.level, waiting.cutoff, self.base,
            self.control.level,
        )  # fmt: skip
        columns, gone = waiting.ended()
        return replace(rows, **columns), gone  # type: ignore[arg-type]

    def begin(self, rows: Rows, *, buffered: bool) -> Owners:  # noqa: ARG002 - all tell what they wait for
        """Make ready to pick from the matches of these rows."""
        return Waiting(self, rows)

    def theory(self) -> Taking | None:
        """Theorems 4.2 and 4.3 for the printed cutoff, else the same for matches that come at random."""
        kinds = [self.expecting.kinds(side) for side in SIDES]
        known = [some for some in kinds if some is not None]
        if len(known) < len(kinds) or self._patient:
            return None
        if self._printed:
            return _Printed(self.base, self.expecting)
        return _AtRandom(self.base, known, [self._cutoffs(some.matches) for some in known])


class Waiting(Owners):
    """Rows and the match that each of them waits for."""

    def __init__(self, sampling: UniformSampling, rows: Rows) -> None:
        assert rows.wait is not None, "rows of this sampler wait for a match"  # noqa: S101 - an invariant
        assert rows.level is not None, "rows of a sampler have their level"  # noqa: S101 - an invariant
        self._sampling = sampling
        self.id, self.num = rows.id, rows.matches.copy()
        self.wait, self.level = rows.wait.astype(np.int64), rows.level.astype(np.int64)
        self.cutoff = sampling.cutoffs(rows)

    def picked(self, owner: Array) -> tuple[Array, Array]:
        """Count these matches and tell which of them leave."""
        out, levels = np.empty(len(owner), np.int64), np.empty(len(owner), np.int64)
        sampling = self._sampling
        n = _joined(
            sampling.salt, owner, self.id, self.num, self.wait, self.level, self.cutoff,
            sampling.base, sampling.control.level, out, levels,
        )  # fmt: skip
        return out[:n], levels[:n]

    def ended(self) -> tuple[dict[str, Array], Array]:
        """What is noted of the rows now; one that waits for nothing is of no further use."""
        columns = {"matches": self.num, "level": narrow(self.level), "wait": narrow(self.wait)}
        return columns, self.wait == 0


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
