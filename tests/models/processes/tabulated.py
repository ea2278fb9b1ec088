"""A process given as a table of probabilities."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Self

import numpy as np

from tidegate.models import History, Process
from tidegate.types import Array

if TYPE_CHECKING:
    from numpy.typing import ArrayLike


@dataclass(frozen=True, eq=False)
class TabulatedProcess(Process):
    """Independent values, with the probability of each value at each time; no values outside these times."""

    independent: ClassVar[bool] = True
    chances: tuple[dict[int, float], ...]

    def at(self, time: int) -> dict[int, float]:
        return self.chances[time] if 0 <= time < len(self.chances) else {}

    def probability(self, history: History, ahead: Array, values: Array) -> Array:
        rows = [[self.at(history.now + d).get(v, 0.0) for d in ahead.tolist()] for v in values.tolist()]
        return np.array(rows).reshape(len(values), len(ahead))

    def likely(self, history: History, ahead: Array) -> Array:
        return np.array(sorted({v for d in ahead.tolist() for v in self.at(history.now + d)}), np.int64)

    @classmethod
    def fit(cls, values: ArrayLike) -> Self:
        raise NotImplementedError

    def intervals(self, values: Array) -> tuple[Array, Array]:
        raise NotImplementedError
