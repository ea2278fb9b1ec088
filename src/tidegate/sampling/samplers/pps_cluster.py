"""Sample rows with probability proportional to their expected matches, each with all its matches."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Final

import numpy as np

from tidegate.sampling.samplers.cluster import RunningCluster
from tidegate.sampling.samplers.memory_model import MemoryModel, proportional
from tidegate.sampling.samplers.probability_levels import LOWEST, STEPS
from tidegate.sampling.samplers.sampler import RunningSampler, Sampler

if TYPE_CHECKING:
    from tidegate.types import Array, Rows, Setting

LEAST: Final = 2.0**-7
"""The smallest number of expected matches, so that every row can be drawn."""
MOST: Final = 2.0**40


@dataclass(frozen=True)
class PpsCluster(Sampler):
    """Each row is drawn with probability proportional to its expected matches; all its matches are returned.

    For joins in which some rows have far more matches than others: those with many are rarely missed. A row of
    probability P stands for 1/P rows, so results must be weighted by one over their probability. A wrong model makes
    estimates vary more but never biases them, since results are weighted by the same probability.

    Parameters
    ----------
    p
        The probability of a row with one expected match; a row with n has min(1, p * n). It may exceed 1: rows with
        less than one expected match are then drawn more often. None to follow the budget.
    model
        The expected number of matches of a row: a `Frequency`, an `AgeCurve` or a pair of them (then all rows of a
        side have the same probability, as with `EqCluster`). "frequency" or "age" learns it; None chooses one.
    rates
        Rows per unit of time, left and right; None learns them.
    overflow
        The accepted probability of a memory overflow at any moment, if p follows from the budget.

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
    Probabilities are rounded to 16 levels per factor of two, so within 2.2 % of proportional; results are weighted by
    the rounded ones. Less than 1/128 expected matches count as 1/128, or an error of the model could exclude a row.
    The iteration that limits probabilities to 1 takes out the rows at the limit and divides the rest of the memory
    among the others, until none exceeds 1.
    """

    name: ClassVar[str] = "pps_cluster"
    highest: ClassVar[float] = MOST

    def start(self, setting: Setting) -> RunningSampler:
        """Bind to a join and return a running sampler."""
        return _RunningPpsCluster(self, setting, base=1.0, highest=-LOWEST if self.p is None else 0)


class _RunningPpsCluster(RunningCluster):
    def offsets(self, rows: Rows) -> Array:
        matches = self.forecaster.expected_matches(rows)
        # While matches are unknown, all rows have the same probability.
        expected = np.where(np.isinf(matches), 1.0, np.clip(matches, LEAST, MOST)) * (self.config.p or 1.0)
        offsets: Array = np.rint(STEPS * np.log2(expected)).astype(np.int64)
        return offsets

    def memory_model(self) -> MemoryModel | None:
        classes = self.forecaster.row_classes_of_sides()
        if classes is None:
            return None
        rows = np.concatenate([some.rows for some in classes])
        return _PpsClusterMemory(rows, np.maximum(np.concatenate([some.matches for some in classes]), LEAST))


class _PpsClusterMemory(MemoryModel):
    def __init__(self, rows: Array, expected: Array) -> None:
        self._rows, self._expected = rows, expected

    def rows(self, level: int) -> float:
        return float(self._rows @ np.minimum(1.0, 2.0 ** (-level / STEPS) * self._expected))

    def level(self, room: float, highest: int) -> int:
        constant = proportional(self._expected, self._rows, room)
        return highest if np.isinf(constant) else max(highest, int(np.ceil(-STEPS * np.log2(constant))))
