"""Results as a table: means over the runs, with half the length of their intervals."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from tidegate.experiments.claims import MeanInterval
from tidegate.experiments.results import Results


@dataclass(frozen=True)
class TableLayout:
    """What the rows and columns of a table are.

    Parameters
    ----------
    rows
        The axes that have a row for each combination of values.
    numbers
        The numbers in each row. Words are shown unchanged.
    columns
        An axis that has a column for each value, with the first of the numbers.

    Examples
    --------
    >>> runs = {(1, "age"): [3, 5], (1, "fifo"): [2, 2]}
    >>> results = Results.from_runs(runs, axes=("memory", "policy"), number="results")
    >>> TableLayout(("memory",), ("results",), columns="policy").table(results)
    (('memory', 'age', 'fifo'), [('1', '4 ± 12.7', '2')])
    """

    rows: tuple[str, ...]
    numbers: tuple[str, ...]
    columns: str | None = None

    def table(self, results: Results) -> tuple[tuple[str, ...], list[tuple[str, ...]]]:
        """A header and rows."""
        shown: list[tuple[str, Any]]
        if self.columns is None:
            shown = [(number, None) for number in self.numbers]
            header = (*self.rows, *self.numbers)
        else:
            shown = [(self.numbers[0], value) for value in results.values(self.columns)]
            header = (*self.rows, *(str(value) for _, value in shown))
        places: dict[tuple[Any, ...], dict[tuple[str, Any], list[Any]]] = {}
        for row in results.rows:
            cells = places.setdefault(tuple(row.get(axis, "") for axis in self.rows), {})
            which = None if self.columns is None else row.get(self.columns)
            for number in self.numbers:
                if number in row:
                    cells.setdefault((number, which), []).append(row[number])
        return header, [
            (*map(_format_setting, place), *(_format_runs(cells.get(column, [])) for column in shown))
            for place, cells in places.items()
        ]


def _format_runs(runs: list[Any]) -> str:
    if not runs:
        return "-"
    if any(isinstance(value, str) for value in runs):
        return str(runs[0])
    interval = MeanInterval.of(runs)
    if len(runs) == 1 or not np.ptp(runs):
        return format_number(interval.mean)
    return f"{format_number(interval.mean)} ± {format_number(interval.half)}"


def format_number(value: float) -> str:
    """A number with three significant digits.

    Examples
    --------
    >>> format_number(12345.6), format_number(12.345), format_number(0.12345), format_number(7.0)
    ('12,346', '12.3', '0.123', '7')
    """
    if value == round(value) or abs(value) >= 100:  # noqa: PLR2004 - three digits
        return f"{value:,.0f}"
    return f"{value:.3g}"


def _format_setting(value: object) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)
