"""UNIFORM as the papers print it, for their figures."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from tidegate.models import sample_rows
from tidegate.sampling import RunningSampler, Uniform
from tidegate.sampling.samplers.memory_model import MemoryModel
from tidegate.sampling.samplers.probability_levels import LOWEST, probability_at
from tidegate.sampling.samplers.uniform import RunningUniform

if TYPE_CHECKING:
    from tidegate.types import Array, Setting

_NEVER: Final = 4 * LOWEST
"""A level whose probability is 0."""


@dataclass(frozen=True)
class PrintedUniform(Uniform):
    """UNIFORM that drops each row whose next match lies beyond the expected number.

    Later matches of such rows cannot be sampled, so the sample is biased unless every row has exactly the expected
    number of matches. Parameters are those of `Uniform`.

    Examples
    --------
    >>> import tidegate as tg
    >>> stream = {"key": [1, 2] * 50, "time": range(100)}
    >>> model = tg.models.Frequency({1: 0.5, 2: 0.5}, {1: 0.5, 2: 0.5})
    >>> sampler = PrintedUniform(p=0.1, model=model, rates=(0.5, 0.5))
    >>> sample = tg.simulate_sample(stream, stream, window=(99, 99), sampler=sampler)
    >>> sample.exact, sample.estimate < 0.9 * sample.exact
    (5000, True)

    References
    ----------
    Memory-Limited Execution of Windowed Stream Joins, figure 4, theorems 4.2 and 4.3. Reservoir Sampling over
    Memory-Limited Stream Joins, algorithm 3.
    """

    def start(self, setting: Setting) -> RunningSampler:
        """Bind to a join and return a running sampler."""
        return _RunningPrintedUniform(self, setting)


class _RunningPrintedUniform(RunningUniform):
    def cutoffs(self, matches: Array) -> Array:
        return np.floor(np.minimum(matches, 2.0**31)).astype(np.int64)

    def hold_levels(self, cutoffs: Array, level: int | None = None) -> Array:  # noqa: ARG002 - rows are never kept
        return np.full(len(cutoffs), _NEVER)

    def memory_model(self) -> MemoryModel | None:
        current = self.forecaster.current_model()
        return None if current is None else _PrintedMemory(self.base, *current)


class _PrintedMemory(MemoryModel):
    """Theorems 4.2 and 4.3."""

    def __init__(
        self, base: float, model: object, rates: tuple[float, float], window: tuple[float, float]
    ) -> None:
        self._base, self._model, self._rates, self._window = base, model, rates, window

    def rows(self, level: int) -> float:
        p = min(1.0, probability_at(self._base, level))
        return sample_rows(self._model, p, rates=self._rates, window=self._window)  # type: ignore[arg-type]  # of one of the types it takes
