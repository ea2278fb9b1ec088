"""What a simulation measured."""

from __future__ import annotations

from dataclasses import dataclass, field

from tidegate.types.rows import Pairs
from tidegate.types.setting import Learned
from tidegate.types.window import Array


@dataclass(frozen=True)
class Report:
    """What was measured.

    `results` is the sum of `from_left`, `from_right` and `from_step`, by where the older partner was. `exact` is the
    number of results with an unlimited budget. Of the rows, `evicted` left for lack of memory, `expired` at the end
    of their window, `late` arrived beyond the allowed lateness, and `null_keys` could never match. `learned` are the
    estimates of the policy at the end.
    """

    results: int
    from_left: int
    from_right: int
    from_step: int
    exact: int
    importance: float
    exact_importance: float
    fairness: float
    peak_rows: int
    peak_bytes: int
    rows_left: int
    rows_right: int
    evicted: int
    expired: int
    late: int
    null_keys: int
    times: Array = field(repr=False)
    results_over_time: Array = field(repr=False)
    exact_over_time: Array = field(repr=False)
    pairs: Pairs | None = field(default=None, repr=False)
    learned: tuple[Learned, ...] = field(default=(), repr=False)

    @property
    def recall(self) -> float:
        """The fraction of the exact results that was produced; 1 when there were none to produce."""
        return self.results / self.exact if self.exact else 1.0
