"""Sample single results, each with the same probability."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, ClassVar, Final

import numpy as np

from tidegate.sampling.samplers.match_forecaster import RowClasses
from tidegate.sampling.samplers.memory_model import MemoryModel, held_times
from tidegate.sampling.samplers.probability_levels import STEPS, probabilities_at, probability_at
from tidegate.sampling.samplers.sampler import SPREAD, Owners, RunningSampler, Sampler
from tidegate.sampling.samplers.uniform_owners import UniformOwners
from tidegate.types import Numbers

if TYPE_CHECKING:
    from tidegate.types import Array, Rows, Setting, Side, State

_MOST: Final = 2.0**31
"""The highest cutoff."""
_NO_CUTOFF: Final = 1 << 62


@dataclass(frozen=True)
class Uniform(Sampler):
    """Each result is in the sample with the same probability p, as long as p does not change.

    Instead of drawing for each match, a row draws once how many matches it skips before the next drawn one. If that
    one lies beyond the number of matches that the row expects, the row need not be buffered, which makes a sample
    cheaper than the join. But the expected number is only a forecast. So such a row is kept with a probability c,
    which is at least p, and each match beyond the expected ones is then drawn with probability p / c. Every result
    has the probability p, whatever the forecast is, and estimates are unbiased.

    A wrong forecast costs precision or memory instead. If it is too low, the additional results come from few rows,
    several from each, as in a cluster sample. Each result carries the probability c with which its row was kept
    (`shown`), and intervals take that into account. If the forecast is too high, rows are buffered without need, and
    p must be smaller.

    Parameters
    ----------
    p
        The probability of each result; None to follow the budget.
    model
        The expected number of matches of a row: a `Frequency`, an `AgeCurve` or a pair of them. "frequency" or "age"
        learns it; None chooses one.
    rates
        Rows per unit of time, left and right; None learns them.
    overflow
        The accepted probability of a memory overflow at any moment, if p follows from the budget.

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
    As printed, a row whose next drawn match lies beyond the expected number is always dropped. Its later matches are
    lost, and rows that expect less than one match are never sampled. The sample is biased wherever some rows have
    more matches than the model states: in user sessions, at rush hours, or where rows simply arrive at random.

    Here such a row is kept with the probability c = p * max(1, n/4), at most 1, if it expects n matches. On streams
    with bursts, rush hours and skewed keys, the variance with this choice was within a third of the best. A larger c
    leaves less memory for expected matches; with a smaller c, unexpected matches come from fewer rows.

    At a p for which the paper's formula gives half of the window, this needs 60 to 68 % of it (1 to 100 expected
    matches). Within a budget, p is lower accordingly.

    Learned frequencies are corrected by the matches that buffered rows really had (`ForecastCorrection`).

    A buffered row needs three bytes more than in a join (`uniform_owners`), or more if a number needs several bytes.
    """

    name: ClassVar[str] = "uniform"

    def start(self, setting: Setting) -> RunningSampler:
        """Bind to a join and return a running sampler."""
        return RunningUniform(self, setting)


class RunningUniform(RunningSampler):
    """A running `Uniform` sampler.

    The level of `control` follows from the memory, and gives the probability with which rows are kept beyond their
    expected matches. A reservoir that is filled from the sample may need fewer results (`limit_probability`). Then p
    is lower than the memory allows, and rows are kept with a higher probability.

    Attributes
    ----------
    certain
        The highest level at which a row is kept with probability 1.
    """

    state: ClassVar[State] = {**RunningSampler.state, "capped": Numbers(_limit=int)}

    def __init__(self, config: Uniform, setting: Setting) -> None:
        super().__init__(config, setting, base=1.0 if config.p is None else float(config.p))
        self.certain = -math.floor(STEPS * math.log2(1 / self.base))
        self._limit = 0

    @property
    def level(self) -> int:
        """The level of the probability of new draws."""
        return self.limited(self.control.level)

    def limited(self, level: int) -> int:
        """The level of the probability of new draws, where memory allows that of `level`."""
        return max(level, self._limit)

    @property
    def fraction(self) -> float:
        """The probability of new draws."""
        return min(1.0, probability_at(self.base, self.level))

    def limit_probability(self, fraction: float) -> None:
        """Limit the probability of new draws to just above this fraction: more results are not needed."""
        if 0 < fraction < self.base:
            self._limit = max(self._limit, self._level(fraction))
            self.control.limit(self._level(min(self.base, SPREAD * fraction)))

    def cutoffs(self, matches: Array) -> Array:
        """The number of the last match that rows wait for, from their expected matches; 0 while these are unknown."""
        return np.rint(np.where(np.isinf(matches), 0.0, np.minimum(matches, _MOST))).astype(np.int64)

    def hold_levels(self, cutoffs: Array, level: int | None = None) -> Array:
        """The level of the probability c with which rows are kept beyond these cutoffs."""
        above = np.rint(STEPS * np.log2(np.maximum(cutoffs / 4, 1.0))).astype(np.int64)
        levels: Array = np.maximum((self.control.level if level is None else level) - above, self.certain)
        return levels

    def admit(self, rows: Rows) -> tuple[Rows, Owners]:
        """Draw the first match of each arrival."""
        after_step = self.cutoffs(self.forecaster.forecast_arrivals(rows))
        none = np.zeros(len(rows), np.uint8)
        rows = replace(rows, policy_columns={"level": none, "wait": none, "hold": none})
        # In its own step a row is there anyway, so that a learned forecast need not limit it.
        cutoff = after_step if self.forecaster.learns == "nothing" else np.full(len(rows), _NO_CUTOFF)
        owners = UniformOwners(self, rows, cutoff, after_step)
        owners.begin()
        return rows, owners

    def thin(self, rows: dict[Side, Rows], held: float, room: float, *, lower: bool) -> dict[Side, Owners]:
        """Thin draws that were made with a higher probability."""
        if lower:
            self.control.lower(held, room, self.control.level)
        thinned: dict[Side, Owners] = {}
        for side, some in rows.items():
            owners = UniformOwners(self, some, self.cutoffs(self.forecaster.expected_matches(some)))
            owners.thin()
            thinned[side] = owners
        return thinned

    def owners_of(self, rows: Rows) -> Owners:
        """Return `Owners` that draw from the matches of these buffered rows."""
        return UniformOwners(self, rows, self.cutoffs(self.forecaster.expected_matches(rows)))

    def memory_model(self) -> MemoryModel | None:
        """Theorems 4.2 and 4.3 for matches at random times, and the rows that are kept beyond their cutoffs."""
        classes = self.forecaster.row_classes_of_sides()
        if classes is None:
            return None
        return _UniformMemory(self, classes, [self.cutoffs(some.matches) for some in classes])

    def kind(self) -> str:
        """What identifies its state; a state without the column `hold` has another kind."""
        return f"{super().kind()} held"


class _UniformMemory(MemoryModel):
    def __init__(self, sampling: RunningUniform, classes: list[RowClasses], cutoffs: list[Array]) -> None:
        self._sampling, self._classes, self._cutoffs = sampling, classes, cutoffs

    def rows(self, level: int) -> float:
        sampling, total = self._sampling, 0.0
        p = probability_at(sampling.base, sampling.limited(level))
        for some, cutoffs in zip(self._classes, self._cutoffs, strict=True):
            waiting = held_times(some.matches, cutoffs, p, some.widths, some.reached) / some.widths.sum()
            held = np.minimum(probabilities_at(sampling.base, sampling.hold_levels(cutoffs, level)), 1.0)
            total += float(some.rows @ (waiting + (1 - waiting) * held))
        return total
