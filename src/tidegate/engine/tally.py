"""What an operator counts while it runs."""

from __future__ import annotations

from dataclasses import asdict, dataclass, fields
from typing import TYPE_CHECKING, Self

import numpy as np

if TYPE_CHECKING:
    from tidegate.engine.ages import Origin
    from tidegate.types import Array, Learned, Pairs


@dataclass
class Tally:
    """Counts of one run; lifetimes are kept as sums, so that fairness needs no memory per row."""

    from_left: int = 0
    from_right: int = 0
    from_step: int = 0
    importance: float = 0.0
    evicted: int = 0
    expired: int = 0
    peak_rows: int = 0
    peak_bytes: int = 0
    lives: int = 0
    life_sum: float = 0.0
    life_squares: float = 0.0

    @property
    def results(self) -> int:
        """All results."""
        return self.from_left + self.from_right + self.from_step

    @property
    def fairness(self) -> float:
        """Jain's index over the lifetimes of all rows that have left; 1 when none has.

        References
        ----------
        iJoin, equation 4.

        Deviations
        ----------
        Rows still buffered are not counted: their lifetimes are not known yet.
        """
        return self.life_sum**2 / (self.lives * self.life_squares) if self.life_squares else 1.0

    def add(self, origin: Origin, results: int, importance: float = 0.0) -> None:
        """Count results by where their older rows were."""
        setattr(self, origin, getattr(self, origin) + results)
        self.importance += importance

    def record_lifetimes(self, lifetimes: Array) -> None:
        """Count rows that have left after these lifetimes."""
        self.lives += len(lifetimes)
        if len(lifetimes) == 1:  # as in most steps of few rows
            life = float(lifetimes[0])
            self.life_sum += life
            self.life_squares += life * life
            return
        lives = lifetimes.astype(np.float64)
        self.life_sum += float(lives.sum())
        self.life_squares += float(np.square(lives).sum())

    def record_held(self, rows: int, size: int) -> None:
        """Record the number of rows and bytes that are buffered after a step."""
        self.peak_rows = max(self.peak_rows, rows)
        self.peak_bytes = max(self.peak_bytes, size)

    def as_array(self) -> Array:
        """All counts, for a snapshot; counts beyond 2**53 would lose their last digits."""
        return np.array(list(asdict(self).values()), np.float64)

    @classmethod
    def from_array(cls, values: Array) -> Self:
        """Read what `as_array` wrote."""
        kinds = {"importance", "life_sum", "life_squares"}
        named = zip((f.name for f in fields(cls)), values.tolist(), strict=True)
        return cls(**{name: value if name in kinds else int(value) for name, value in named})


@dataclass(frozen=True)
class Measured:
    """The counts of a run, its results up to some times, its pairs by row number, and the policy's estimates."""

    tally: Tally
    times: Array
    curve: Array
    pairs: Pairs | None
    learned: tuple[Learned, ...] = ()
