"""The draws of `Uniform`: which match of each row is drawn next, and which rows need not be buffered.

A row is either within its expected matches or beyond them. Within, it draws how many matches it skips before the next
drawn one; the row need not be buffered if that one lies beyond the cutoff, its expected number of matches. Then the
row is kept with a probability c, and its matches beyond the cutoff are drawn with probability p / c each.

The state of a row is three integers:

| column | meaning |
|---|---|
| `wait` | the number of matches up to and including the next drawn one; 0 for a row that is not needed |
| `level` | the level of the probability of that match |
| `hold` | 0 within the cutoff; beyond it, the level of c, counted from 1 at `certain` |

Levels of c up to `certain` stand for a probability of 1. All draws are hashes of the row's number, the match and a
salt.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Protocol

import numpy as np

from tidegate.compiled import kernel
from tidegate.sampling.samplers.probability_levels import STEPS, narrowest, probability_at, uniform_draw
from tidegate.sampling.samplers.sampler import DrawnMatches, Owners
from tidegate.sampling.samplers.step_function import StepFunction, step_function, steps_below

if TYPE_CHECKING:
    from tidegate.types import Array, Rows

_TABLE_SIZE: Final = 64
"""Skips shorter than this are found in a table."""
_HOLD_SALT: Final = 0x2545F4914F6CDD1D
"""Separates the draw by which a row is kept beyond its cutoff from other draws."""
_BEYOND_CUTOFF_SALT: Final = 0x1D872B41A8E1A2B3
"""Separates the draws of matches beyond the cutoff from other draws."""
_ROUNDING: Final = 1e-9


class UniformDraws(Protocol):
    """What the draws of `Uniform` depend on; see `RunningUniform`."""

    salt: int
    base: float
    certain: int

    @property
    def level(self) -> int:
        """The level of the probability of new draws."""
        ...

    @property
    def fraction(self) -> float:
        """The probability of new draws."""
        ...

    def hold_levels(self, cutoffs: Array, level: int | None = None) -> Array:
        """The level of the probability with which rows are kept beyond these cutoffs."""
        ...


class UniformOwners(Owners):
    """Rows of `Uniform`, each with the match that is drawn next.

    Parameters
    ----------
    sampling
        The running sampler.
    rows
        The rows, with the columns `wait`, `level` and `hold`.
    cutoff
        The number of the last match that each row waits for without being kept by a draw.
    cutoff_after_step
        The same from the end of this step on; by default it does not change.
    """

    def __init__(
        self, sampling: UniformDraws, rows: Rows, cutoff: Array, cutoff_after_step: Array | None = None
    ) -> None:
        self._sampling = sampling
        self.id, self.num = rows.id, rows.matches.copy()
        self.wait, self.level, self.hold = (
            rows.policy_columns[name].astype(np.int64) for name in ("wait", "level", "hold")
        )
        self._cutoff = cutoff
        self._cutoff_after_step = cutoff if cutoff_after_step is None else cutoff_after_step
        self._hold_level = sampling.hold_levels(self._cutoff_after_step)

    @property
    def _settings(self) -> tuple[int, float, int, int]:
        sampling = self._sampling
        return sampling.salt, sampling.base, sampling.certain, sampling.level

    @property
    def _rows(self) -> tuple[Array, Array, Array, Array, Array]:
        return self.id, self.num, self.wait, self.level, self.hold

    def begin(self) -> None:
        """Draw the first match of arrivals."""
        with np.errstate(divide="ignore"):
            log_skip = np.log1p(-self._sampling.fraction)
        table = step_function(-np.expm1(np.arange(1, _TABLE_SIZE) * log_skip), 1.0)
        _begin(*self._settings, table, self._cutoff, self._hold_level, *self._rows)

    def thin(self) -> None:
        """Lower the probability of earlier draws to that of new ones."""
        _thin(*self._settings, self._cutoff, self._hold_level, *self._rows)

    def draw(self, owner: Array) -> DrawnMatches:
        """Count these matches and return which of them are drawn."""
        out, probability, shown = np.empty(len(owner), np.int64), np.empty(len(owner)), np.empty(len(owner))
        n = _draw(
            *self._settings, self._cutoff, self._hold_level, owner, *self._rows, out, probability, shown
        )
        return DrawnMatches(out[:n], probability[:n], shown[:n])

    def end_step(self) -> None:
        """Decide which arrivals are needed after their own step."""
        if self._cutoff_after_step is not self._cutoff:
            _end_step(*self._settings, self._cutoff_after_step, self._hold_level, *self._rows)

    def exhausted(self) -> Array:
        """A mask of rows that wait for no match."""
        none: Array = self.wait == 0
        return none

    def matches(self) -> Array:
        """The number of matches of each row, counted by `draw`."""
        return self.num

    def policy_columns(self) -> dict[str, Array]:
        """The columns `level`, `wait` and `hold`."""
        columns = {"level": self.level, "wait": self.wait, "hold": self.hold}
        return {name: narrowest(column) for name, column in columns.items()}


@kernel
def skip_length(drawn: float, log_skip: float) -> int:
    """The number of matches up to and including the next drawn one: geometric, from one draw.

    `log_skip` is the logarithm of the probability that a match is not drawn.

    Examples
    --------
    >>> skip_length(0.0, np.log(0.75)), skip_length(0.5, np.log(0.75)), skip_length(0.99, -np.inf)
    (1, 3, 1)
    """
    return 1 + int(min(np.log1p(-drawn) / log_skip, 2.0**61))


@kernel
def _hold_probability(base: float, hold_level: int, certain: int) -> float:
    """The probability with which a row is kept; up to the level `certain` it is 1."""
    return 1.0 if hold_level <= certain else probability_at(base, hold_level)


@kernel
def _next_beyond(
    salt: int, base: float, certain: int, level: int, row: int, start: int, hold_level: int
) -> tuple[int, int]:
    """The next drawn match of a row that is kept: its distance from `start`, and the level of its probability."""
    level = max(level, hold_level)
    p = min(1.0, probability_at(base, level) / _hold_probability(base, hold_level, certain))
    return skip_length(uniform_draw(salt ^ _BEYOND_CUTOFF_SALT, row, start), np.log1p(-p)), level


@kernel
def _pass_cutoff(
    salt: int, base: float, certain: int, level: int, i: int, decided: int, hold_level: int,
    ids: Array, num: Array, wait: Array, levels: Array, holds: Array,
) -> None:  # fmt: skip
    """Row i has no drawn match up to its cutoff: keep it for further matches, or let it wait for none.

    Up to the match `decided` it is known which are drawn: none of these may be drawn again.
    """
    wait[i] = 0
    if uniform_draw(salt ^ _HOLD_SALT, ids[i], 0) < _hold_probability(base, hold_level, certain):
        start = max(decided, num[i])
        ahead, levels[i] = _next_beyond(salt, base, certain, level, ids[i], start, hold_level)
        wait[i] = start - num[i] + ahead
        holds[i] = hold_level - certain + 1


@kernel
def _begin(
    salt: int, base: float, certain: int, level: int, table: StepFunction, cutoff: Array, hold_level: Array,
    ids: Array, num: Array, wait: Array, levels: Array, holds: Array,
) -> None:  # fmt: skip
    """DecideNextJoin of the paper, for arrivals."""
    log_skip = np.log1p(-probability_at(base, level))
    for i in range(len(ids)):
        drawn = uniform_draw(salt, ids[i], 0)
        # Nearly all rows wait for one of the next few matches or for none, so the table replaces a logarithm.
        ahead = 1 + steps_below(table, drawn)
        if ahead == _TABLE_SIZE <= cutoff[i]:
            ahead = skip_length(drawn, log_skip)
        wait[i] = ahead
        levels[i] = level
        if ahead > cutoff[i]:
            _pass_cutoff(
                salt, base, certain, level, i, cutoff[i], hold_level[i], ids, num, wait, levels, holds
            )  # fmt: skip


@kernel
def _draw(
    salt: int, base: float, certain: int, level: int, cutoff: Array, hold_level: Array, owner: Array,
    ids: Array, num: Array, wait: Array, levels: Array, holds: Array,
    out: Array, probability: Array, shown: Array,
) -> int:  # fmt: skip
    """Join of the paper, match by match: count it, return it if it is the drawn one, and draw the next."""
    log_skip, n = np.log1p(-probability_at(base, level)), 0
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
        shown[n] = _hold_probability(base, held, certain) if holds[row] else 1.0
        n += 1
        if holds[row]:
            wait[row], levels[row] = _next_beyond(salt, base, certain, level, ids[row], num[row], held)
            continue
        wait[row] = skip_length(uniform_draw(salt, ids[row], num[row]), log_skip)
        levels[row] = level
        if num[row] + wait[row] > cutoff[row]:
            _pass_cutoff(
                salt, base, certain, level, row, cutoff[row], hold_level[row], ids, num, wait, levels, holds
            )  # fmt: skip
    return n


@kernel
def _end_step(
    salt: int, base: float, certain: int, level: int, cutoff: Array, hold_level: Array,
    ids: Array, num: Array, wait: Array, levels: Array, holds: Array,
) -> None:  # fmt: skip
    """In their own step arrivals have all matches; from now on the cutoff applies."""
    for i in range(len(ids)):
        if holds[i] == 0 < wait[i] and num[i] + wait[i] > cutoff[i]:
            _pass_cutoff(
                salt, base, certain, level, i, cutoff[i], hold_level[i], ids, num, wait, levels, holds
            )  # fmt: skip


@kernel
def _thin(
    salt: int, base: float, certain: int, level: int, cutoff: Array, hold_level: Array,
    ids: Array, num: Array, wait: Array, levels: Array, holds: Array,
) -> None:  # fmt: skip
    """Thin draws that were made with a higher probability than new ones."""
    p = probability_at(base, level)
    log_skip = np.log1p(-p)
    for i in range(len(ids)):
        if wait[i] == 0:
            continue
        at, held = num[i] + wait[i], holds[i] + certain - 1
        if holds[i] == 0:
            if levels[i] >= level:
                continue
            # A draw of its own, made once: the level of a row only rises while it waits for one match.
            rejected = uniform_draw(~salt ^ level, ids[i], at) >= p / probability_at(base, levels[i])
            levels[i] = level
            if rejected:
                following = at + skip_length(uniform_draw(salt, ids[i], at), log_skip)
                wait[i] = following - num[i]
                if following > cutoff[i]:
                    # If the cutoff is lower now than when the rejected match was drawn, that match is beyond it.
                    decided = max(cutoff[i], at)
                    _pass_cutoff(
                        salt, base, certain, level, i, decided, hold_level[i], ids, num, wait, levels, holds
                    )  # fmt: skip
            continue
        lower = max(held, hold_level[i])
        # All that is known of this draw is that it was below the higher probability.
        if lower > held and uniform_draw(salt ^ _HOLD_SALT, ids[i], 0) >= _hold_probability(
            base, lower, certain
        ):
            wait[i] = 0
            continue
        holds[i] = lower - certain + 1
        # The probability of the awaited match, now that c is lower; thinning rounds it down to a level.
        new_hold, old_hold = _hold_probability(base, lower, certain), _hold_probability(base, held, certain)
        now = probability_at(base, levels[i]) * new_hold / old_hold
        new = max(level, int(np.ceil(STEPS * np.log2(base / now) - _ROUNDING)))
        if new > levels[i] and uniform_draw(~salt ^ new, ids[i], at) >= probability_at(base, new) / now:
            ahead, new = _next_beyond(salt, base, certain, level, ids[i], at, lower)
            wait[i] += ahead
        levels[i] = new
