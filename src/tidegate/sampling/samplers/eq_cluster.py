"""Sample rows with equal probability, each with all its matches."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from tidegate.sampling.samplers.cluster import RunningCluster
from tidegate.sampling.samplers.memory_model import MemoryModel
from tidegate.sampling.samplers.probability_levels import probability_at
from tidegate.sampling.samplers.sampler import RunningSampler, Sampler
from tidegate.types import SIDES

if TYPE_CHECKING:
    from tidegate.types import Rows, Setting


@dataclass(frozen=True)
class EqCluster(Sampler):
    """Each row is drawn with the same probability and held until it expires, and all its matches are returned.

    It needs no model of matches and is unbiased whatever arrives. But the sample has all matches of a row or none.
    If they are similar, or some rows have far more than others, estimates vary more than with `Uniform` or
    `PpsCluster`.

    Parameters
    ----------
    p
        The probability of each row; None to follow the budget.
    model
        Has no effect on the sample; a reservoir may use it. By default no model is learned.
    rates
        Rows per unit of time, left and right, from which p follows; None learns them.
    overflow
        The accepted probability of a memory overflow at any moment, if p follows from the budget.

    Examples
    --------
    >>> import tidegate as tg
    >>> stream = {"key": [1, 2, 1, 2, 1, 2], "time": [0, 1, 2, 3, 4, 5]}
    >>> whole = tg.simulate_sample(stream, stream, window=(9, 9), sampler=tg.sampling.EqCluster(p=1.0))
    >>> whole.results, whole.exact
    (18, 18)

    References
    ----------
    Memory-Limited Execution of Windowed Stream Joins, section 4.3.1 (EQ-CLUSTER).

    Deviations
    ----------
    When memory overflows, p is lowered, also for held rows; see `tidegate.sampling.samplers.sampler`.
    """

    name: ClassVar[str] = "eq_cluster"

    def start(self, setting: Setting) -> RunningSampler:
        """Bind to a join and return a running sampler."""
        return _RunningEqCluster(self, setting, base=1.0 if self.p is None else float(self.p))


class _RunningEqCluster(RunningCluster):
    needs_forecast: ClassVar[bool] = False

    def offsets(self, rows: Rows) -> int:  # noqa: ARG002 - all rows have the same probability
        return 0

    def memory_model(self) -> MemoryModel | None:
        window = sum(self.forecaster.rate(side) * self.forecaster.span(side) for side in SIDES)
        return _EqClusterMemory(self.base * window) if 0 < window < np.inf else None


class _EqClusterMemory(MemoryModel):
    def __init__(self, window: float) -> None:
        self._window = window

    def rows(self, level: int) -> float:
        return probability_at(self._window, level)
