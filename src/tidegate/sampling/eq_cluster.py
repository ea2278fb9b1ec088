"""Sample rows with equal chances, each with all its matches."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from tidegate.sampling.cluster import ClusterSampling
from tidegate.sampling.fraction import Taking
from tidegate.sampling.ladder import chance
from tidegate.sampling.sampler import Sampler, Sampling
from tidegate.types import SIDES

if TYPE_CHECKING:
    from tidegate.types import Rows, Setting


@dataclass(frozen=True)
class EqCluster(Sampler):
    """Each row is taken up with the same chance and held until it expires, and all its matches leave.

    It needs no model of matches and is unbiased whatever arrives. The matches of one row are in the sample all or
    none, though: where they are alike, or some rows have far more than others, estimates vary more than those of
    `Uniform` or `PpsCluster`.

    Parameters
    ----------
    p
        The chance of each row; None for what the budget allows.
    model
        Not needed, and without effect on the sample; only a reservoir above it may ask for one. None learns none.
    rates
        Rows a unit of time, left and right, from which p follows; None learns them.
    overflow
        The chance of overflow, at any moment, for which room is left when p follows from the budget.

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
    When memory overflows p is lowered, for rows that are held, too; see `tidegate.sampling.sampler`.
    """

    name: ClassVar[str] = "eq_cluster"

    def start(self, setting: Setting) -> Sampling:
        """Bind to a join and return what runs."""
        return _Equal(self, setting, base=1.0 if self.p is None else float(self.p))


class _Equal(ClusterSampling):
    expects: ClassVar[bool] = False

    def offsets(self, rows: Rows) -> int:  # noqa: ARG002 - all alike
        return 0

    def theory(self) -> Taking | None:
        window = sum(self.expecting.rate(side) * self.expecting.span(side) for side in SIDES)
        return _Taking(self.base * window) if 0 < window < np.inf else None


class _Taking(Taking):
    def __init__(self, window: float) -> None:
        self._window = window

    def rows(self, level: int) -> float:
        return chance(self._window, level)
