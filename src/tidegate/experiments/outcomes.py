"""What became of cells, as it is kept: a folder of Parquet files, one or more a wave of cells."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np
import pyarrow as pa
from pyarrow import parquet

from tidegate.experiments.code import code_of
from tidegate.experiments.experiment import Cell, Experiment, Found
from tidegate.experiments.results import Results
from tidegate.types import InputError

SCHEMA: Final = pa.schema(
    [
        ("measure", pa.string()),
        ("settings", pa.string()),
        ("seed", pa.int32()),
        ("code", pa.string()),
        ("found", pa.string()),
        ("error", pa.string()),
        ("seconds", pa.float64()),
    ]
)
"""Settings and what was found are JSON: experiments differ in them. One of `found` and `error` is null. Seconds are
of the processor, whatever else the machine does."""


class Outcome(NamedTuple):
    """A line of the output."""

    measure: str
    settings: str
    seed: int
    code: str
    found: str | None
    error: str | None
    seconds: float

    @property
    def cell(self) -> Cell:
        """Which cell it is of."""
        return Cell(self.measure, self.settings, self.seed)


@dataclass(frozen=True)
class Plan:
    """What a worker must know to run a cell: how each measure is taken, by which code, and where data is."""

    measures: Mapping[str, Callable[..., Found]]
    codes: Mapping[str, str]
    data: Mapping[str, str]

    @classmethod
    def of(cls, experiments: Iterable[Experiment], data: Path | None) -> Plan:
        """The plan for some experiments."""
        chosen = list(experiments)
        measures: dict[str, Callable[..., Found]] = {}
        for one in chosen:
            if measures.setdefault(one.runs_as, one.measure) is not one.measure:
                raise InputError(
                    f"two measures are called {one.runs_as!r}, so that their cells would mix; give them names"
                )
        return cls(
            measures,
            {one.runs_as: code_of(one.measure) for one in chosen},
            {one.runs_as: str(data) for one in chosen if one.recorded},
        )

    def run(self, cell: Cell) -> Outcome:
        """Run a cell; one that fails tells why, and stops nothing else."""
        began = time.process_time()
        told = dict(json.loads(cell.settings))
        if cell.measure in self.data:
            told["data"] = self.data[cell.measure]
        found, failed = None, None
        try:
            measured = self.measures[cell.measure](**told, seed=cell.seed)
            rows = [measured] if isinstance(measured, Mapping) else list(measured)
            found = json.dumps(rows, default=_plain)
        except Exception as error:  # noqa: BLE001 - whatever it is, it is reported
            failed = f"{type(error).__name__}: {error}"
        seconds = time.process_time() - began
        return self.ended(cell, found, failed, seconds)

    def ended(self, cell: Cell, found: str | None, failed: str | None, seconds: float = 0.0) -> Outcome:
        """What became of a cell."""
        return Outcome(*cell, self.codes[cell.measure], found, failed, seconds)


def _plain(value: object) -> Any:  # noqa: ANN401 - whatever JSON holds
    if isinstance(value, np.generic):
        return value.item()
    raise TypeError(f"a cell measured {value!r}; let it tell numbers and words")


def write(outcomes: Iterable[Outcome], path: Path) -> None:
    """Keep outcomes in a file."""
    path.parent.mkdir(parents=True, exist_ok=True)
    parquet.write_table(pa.Table.from_pylist([one._asdict() for one in outcomes], SCHEMA), path)


def read(folder: Path, codes: Mapping[str, str]) -> dict[Cell, Outcome]:
    """What became of the cells that ran with the code of today; of several outcomes, one that did not fail."""
    kept: dict[Cell, Outcome] = {}
    for path in sorted(folder.rglob("*.parquet")):
        if any(part.startswith(("_", ".")) for part in path.relative_to(folder).parts):
            continue
        for row in parquet.read_table(path, schema=SCHEMA).to_pylist():
            one = Outcome(**row)
            if codes.get(one.measure) == one.code and (one.error is None or one.cell not in kept):
                kept[one.cell] = one
    return kept


def results_of(outcomes: Iterable[Outcome]) -> Results:
    """What was found, as rows of settings, seed and numbers."""
    return Results(
        json.loads(one.settings) | {"seed": one.seed} | row
        for one in outcomes
        if one.found is not None
        for row in json.loads(one.found)
    )
