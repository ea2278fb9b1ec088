"""A policy that keeps what is worth most."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from tidegate.policies import Need, Policy
from tidegate.types import Array, Rows, Time


@dataclass(frozen=True)
class Dearest(Policy):
    """Scores by importance as it is now."""

    needs: ClassVar[frozenset[Need]] = frozenset({"importance"})

    def scores(self, rows: Rows, now: Time) -> Array:
        assert rows.importance is not None
        return rows.importance
