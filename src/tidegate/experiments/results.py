"""What was measured, to be asked for by its settings."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from tidegate.types import Array, InputError


class Results:
    """Rows of settings, a seed and numbers, in the order of the grid.

    Where two configurations are compared, runs of the same seed are, so that what is common to both is not chance;
    a seed of which either failed is left out.

    Examples
    --------
    >>> results = Results.of({("age",): [3, 5], ("fifo",): [2, 4]}, axes=("policy",), number="results")
    >>> results.values("policy"), results.runs("results", policy="age").tolist()
    (['age', 'fifo'], [3.0, 5.0])
    >>> results.ahead("results", {"policy": "age"}, {"policy": "fifo"}).tolist()
    [33.3..., 33.3...]
    """

    def __init__(self, rows: Iterable[Mapping[str, Any]]) -> None:
        self.rows = list(rows)

    @classmethod
    def of(
        cls, runs: Mapping[tuple[Any, ...], Iterable[float]], *, axes: tuple[str, ...], number: str
    ) -> Results:
        """Runs of one number by the values of some axes."""
        return cls(
            dict(zip(axes, place, strict=True)) | {"seed": seed, number: value}
            for place, values in runs.items()
            for seed, value in enumerate(values)
        )

    def __len__(self) -> int:
        return len(self.rows)

    def values(self, axis: str) -> list[Any]:
        """The values of an axis, each once."""
        return list(dict.fromkeys(row[axis] for row in self.rows if axis in row))

    def where(self, **settings: object) -> Results:
        """Those of some settings."""
        return Results(
            row for row in self.rows if all(row.get(name) == value for name, value in settings.items())
        )

    def by_seed(self, number: str, **settings: object) -> dict[int, float]:
        """A number of each run."""
        return {row["seed"]: float(row[number]) for row in self.where(**settings).rows if number in row}

    def runs(self, number: str, **settings: object) -> Array:
        """A number, run by run."""
        found = self.by_seed(number, **settings)
        if not found:
            told = ", ".join(f"{name} {value}" for name, value in settings.items())
            raise InputError(f"no run of {told or 'anything'} tells of {number!r}; the others stand")
        return np.array([found[seed] for seed in sorted(found)])

    def paired(
        self, number: str, one: Mapping[str, object], other: Mapping[str, object]
    ) -> tuple[Array, Array]:
        """The same runs of two configurations."""
        first, second = self.by_seed(number, **one), self.by_seed(number, **other)
        seeds = sorted(first.keys() & second.keys())
        if not seeds:
            raise InputError(f"no run tells of {number!r} of both {dict(one)} and {dict(other)}")
        return np.array([first[seed] for seed in seeds]), np.array([second[seed] for seed in seeds])

    def ahead(
        self, number: str, one: Mapping[str, object], other: Mapping[str, object], part: float = 1.0
    ) -> Array:
        """By how many percent of the other's mean one is ahead of a part of it, run by run."""
        first, second = self.paired(number, one, other)
        return 100 * (first - part * second) / max(abs(float(second.mean())), 1e-12)
