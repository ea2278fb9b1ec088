"""Streams that follow a stochastic process: one row at each time step."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

import numpy as np

from tidegate.streams.stream import Pair, Stream
from tidegate.streams.trace import Trace

if TYPE_CHECKING:
    from tidegate.types import Array


class ValueSampler(Protocol):
    """A source of values; every process in `tidegate.models` is one."""

    def sample(self, count: int, rng: np.random.Generator) -> Array:
        """Draw the values of the times 0 to `count - 1`."""


@dataclass(frozen=True)
class Stochastic(Stream):
    """The values of a process as keys, at the times 0, 1, 2 and so on.

    Parameters
    ----------
    process
        The process of the keys: `LinearTrend`, `RandomWalk`, `AR1` or another one of `tidegate.models`.

    Examples
    --------
    >>> from tidegate.models import AR1
    >>> temperatures = Stochastic(AR1(phi0=5.59, phi1=0.72, sigma=4.22)).trace(3650)
    >>> fitted = AR1.fit(temperatures.keys[0].to_numpy())
    >>> round(fitted.phi0, 1), round(fitted.phi1, 2), round(fitted.sigma, 1)
    (5.6, 0.72, 4.2)

    References
    ----------
    On Joining and Caching Stochastic Streams, sections 3 and 8 (REAL).
    """

    process: ValueSampler

    def trace(self, rows: int, seed: int = 0) -> Trace:
        """Draw the first `rows` rows."""
        keys = self.process.sample(rows, np.random.default_rng(seed))
        return Trace.of({"key": keys, "time": np.arange(rows)})


@dataclass(frozen=True)
class StochasticPair(Pair):
    """Two independent streams that follow processes, with one row each at every time step.

    Parameters
    ----------
    left, right
        The process of the keys of each side.

    Examples
    --------
    >>> import tidegate as tg
    >>> lagging = tg.models.LinearTrend(speed=1, offset=-1, noise=tg.models.Noise(bound=10, sigma=1.0))
    >>> leading = tg.models.LinearTrend(speed=1, offset=0, noise=tg.models.Noise(bound=15, sigma=2.0))
    >>> left, right = StochasticPair(lagging, leading).both(1000)
    >>> heeb = tg.policies.Heeb(lagging, leading)
    >>> tg.simulate(left, right, window=(None, None), budget=5, step="instant", policy=heeb).recall > 0.9
    True

    References
    ----------
    On Joining and Caching Stochastic Streams, section 8 (TOWER, ROOF, FLOOR, WALK).
    """

    left: ValueSampler
    right: ValueSampler

    def both(self, rows: int, seed: int = 0) -> tuple[Trace, Trace]:
        """The first `rows` rows of either side."""
        seeds = np.random.SeedSequence(seed).generate_state(2).tolist()
        return Stochastic(self.left).trace(rows, seeds[0]), Stochastic(self.right).trace(rows, seeds[1])
