"""Results as a table: means over the runs, with the half of their interval."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from tidegate.experiments.claims import Interval
from tidegate.experiments.results import Results


@dataclass(frozen=True)
class Shown:
    """What is shown of results.

    Parameters
    ----------
    down
        The axes that the rows of the table stand for.
    numbers
        What is shown of each; words are shown as they are.
    across
        An axis whose values are columns, of the first of the numbers.

    Examples
    --------
    >>> results = Results.of({(1, "age"): [3, 5], (1, "fifo"): [2, 2]}, axes=("memory", "policy"), number="results")
    >>> Shown(("memory",), ("results",), across="policy").table(results)
    (('memory', 'age', 'fifo'), [('1', '4 ± 12.7', '2')])
    """

    down: tuple[str, ...]
    numbers: tuple[str, ...]
    across: str | None = None

    def table(self, results: Results) -> tuple[tuple[str, ...], list[tuple[str, ...]]]:
        """A header and rows."""
        columns: list[tuple[str, Any]]
        if self.across is None:
            columns = [(number, None) for number in self.numbers]
            header = (*self.down, *self.numbers)
        else:
            columns = [(self.numbers[0], value) for value in results.values(self.across)]
            header = (*self.down, *(str(value) for _, value in columns))
        places: dict[tuple[Any, ...], dict[tuple[str, Any], list[Any]]] = {}
        for row in results.rows:
            cells = places.setdefault(tuple(row.get(axis, "") for axis in self.down), {})
            which = None if self.across is None else row.get(self.across)
            for number in self.numbers:
                if number in row:
                    cells.setdefault((number, which), []).append(row[number])
        return header, [
            (*map(_plain, place), *(_told(cells.get(column, [])) for column in columns))
            for place, cells in places.items()
        ]


def _told(runs: list[Any]) -> str:
    if not runs:
        return "-"
    if any(isinstance(value, str) for value in runs):
        return str(runs[0])
    over = Interval.of(runs)
    if len(runs) == 1 or not np.ptp(runs):
        return number(over.mean)
    return f"{number(over.mean)} ± {number(over.half)}"


def number(value: float) -> str:
    """A number with as many digits as matter.

    Examples
    --------
    >>> number(12345.6), number(12.345), number(0.12345), number(7.0)
    ('12,346', '12.3', '0.123', '7')
    """
    if value == round(value) or abs(value) >= 100:  # noqa: PLR2004 - three digits
        return f"{value:,.0f}"
    return f"{value:.3g}"


def _plain(value: object) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)
