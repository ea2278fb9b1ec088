"""Sample rows with chances proportional to the matches they expect, each with all its matches."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Final

import numpy as np

from tidegate.sampling.cluster import ClusterSampling
from tidegate.sampling.fraction import Taking, proportional
from tidegate.sampling.ladder import LOWEST, STEPS
from tidegate.sampling.sampler import Sampler, Sampling

if TYPE_CHECKING:
    from tidegate.types import Array, Rows, Setting

LEAST: Final = 2.0**-7
"""No row counts as expecting fewer matches, so that none is beyond all chance."""
MOST: Final = 2.0**40


@dataclass(frozen=True)
class PpsCluster(Sampler):
    """Each row is taken up with a chance proportional to the matches it expects; all its matches leave.

    For joins in which some rows have far more matches than others: those with many are hardly ever missed. A row with
    the chance P stands for 1/P rows, so results have to be weighed by one over their probability. What the model
    says wrong about a row makes estimates vary more, and never biases them: the same wrong chance weighs its results.

    Parameters
    ----------
    p
        The chance of a row that expects one match, so that one that expects n has the chance p * n, or 1 if that is
        more. It may exceed 1: rows that expect less than one match are then drawn more often. None for what the
        budget allows.
    model
        How many matches a row expects: a `Frequency`, an `AgeCurve` or a pair of them (then all rows of a side have
        the same chance, as with `EqCluster`); "frequency" or "age" to learn it, or None for what suits the join.
    rates
        Rows a unit of time, left and right; None learns them.
    overflow
        The chance of overflow, at any moment, for which room is left when p follows from the budget.

    Examples
    --------
    >>> import tidegate as tg
    >>> stream = {"key": [1, 2, 1, 2, 1, 2], "time": [0, 1, 2, 3, 4, 5]}
    >>> whole = tg.simulate_sample(stream, stream, window=(9, 9), sampler="pps_cluster")
    >>> whole.results, whole.exact
    (18, 18)

    References
    ----------
    Memory-Limited Execution of Windowed Stream Joins, section 4.3.1 (PPS-CLUSTER) and its footnote 2.

    Deviations
    ----------
    Chances are rounded to one of sixteen to an octave, so within 2.2 % of proportional; results are weighed by the
    rounded ones. A row that expects less than 1/128 of a match counts as expecting that, or the model's error could
    exclude it for good. The iteration that caps chances at 1 finds which rows are capped, takes them out and divides
    the rest of the memory among the others, until no other exceeds 1.
    """

    name: ClassVar[str] = "pps_cluster"
    highest: ClassVar[float] = MOST

    def start(self, setting: Setting) -> Sampling:
        """Bind to a join and return what runs."""
        return _Proportional(self, setting, base=1.0, highest=-LOWEST if self.p is None else 0)


class _Proportional(ClusterSampling):
    def offsets(self, rows: Rows) -> Array:
        matches = self.expecting.matches(rows)
        # Where nothing is known yet all rows are alike.
        expected = np.where(np.isinf(matches), 1.0, np.clip(matches, LEAST, MOST)) * (self.config.p or 1.0)
        offsets: Array = np.rint(STEPS * np.log2(expected)).astype(np.int64)
        return offsets

    def theory(self) -> Taking | None:
        kinds = self.expecting.kinds_of_both()
        if kinds is None:
            return None
        rows = np.concatenate([some.rows for some in kinds])
        return _Taking(rows, np.maximum(np.concatenate([some.matches for some in kinds]), LEAST))


class _Taking(Taking):
    def __init__(self, there: Array, expected: Array) -> None:
        self._there, self._expected = there, expected

    def rows(self, level: int) -> float:
        return float(self._there @ np.minimum(1.0, 2.0 ** (-level / STEPS) * self._expected))

    def level(self, room: float, highest: int) -> int:
        constant = proportional(self._expected, self._there, room)
        return highest if np.isinf(constant) else max(highest, int(np.ceil(-STEPS * np.log2(constant))))
