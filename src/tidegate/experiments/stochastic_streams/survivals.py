"""Survivals of Table 1 that no policy uses: they suit caching only."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tidegate.policies import Survival
from tidegate.types import Array


@dataclass(frozen=True, eq=False)
class Infinite(Survival):
    """Every row stays forever: ranks by the probability that it is used at all. For caching."""

    def at(self, ahead: Array) -> Array:
        """Always 1."""
        return np.ones(len(ahead))


@dataclass(frozen=True, eq=False)
class Inverse(Survival):
    """Falls as one over the steps: ranks by the expected inverse of the waiting time. For caching.

    Examples
    --------
    >>> Inverse().at(np.array([1, 2, 4]))
    array([1.  , 0.5 , 0.25])
    """

    def at(self, ahead: Array) -> Array:
        """One over the steps."""
        return 1.0 / np.asarray(ahead)
