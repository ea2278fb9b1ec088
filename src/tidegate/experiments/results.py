"""Measurements, selected by their settings."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from tidegate.types import Array, InputError


class Results:
    """Rows of settings, a seed and numbers, in the order of the grid.

    Examples
    --------
    >>> results = Results.from_runs({("age",): [3, 5], ("fifo",): [2, 4]}, axes=("policy",), number="results")
    >>> results.values("policy"), results.runs("results", policy="age").tolist()
    (['age', 'fifo'], [3.0, 5.0])
    """

    def __init__(self, rows: Iterable[Mapping[str, Any]]) -> None:
        self.rows = list(rows)

    @classmethod
    def from_runs(
        cls, runs: Mapping[tuple[Any, ...], Iterable[float]], *, axes: tuple[str, ...], number: str
    ) -> Results:
        """Results from the runs of one number, by the values of the axes."""
        return cls(
            dict(zip(axes, place, strict=True)) | {"seed": seed, number: value}
            for place, values in runs.items()
            for seed, value in enumerate(values)
        )

    def __len__(self) -> int:
        return len(self.rows)

    def values(self, axis: str) -> list[Any]:
        """The distinct values of an axis."""
        return list(dict.fromkeys(row[axis] for row in self.rows if axis in row))

    def where(self, **settings: object) -> Results:
        """The results with these settings."""
        return Results(
            row for row in self.rows if all(row.get(name) == value for name, value in settings.items())
        )

    def by_seed(self, number: str, **settings: object) -> dict[int, float]:
        """A number of each run, by seed."""
        return {row["seed"]: float(row[number]) for row in self.where(**settings).rows if number in row}

    def runs(self, number: str, **settings: object) -> Array:
        """A number of each run, in the order of the seeds."""
        by_seed = self.by_seed(number, **settings)
        if not by_seed:
            described = ", ".join(f"{name} {value}" for name, value in settings.items())
            raise InputError(f"no finished run with {described or 'any settings'} has measured {number!r}")
        return np.array([by_seed[seed] for seed in sorted(by_seed)])
