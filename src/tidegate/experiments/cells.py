"""Run cells, and store their results in a folder of Parquet files.

A result is reused only while the code that measured it is unchanged, which a digest of the source files decides.
"""

from __future__ import annotations

import hashlib
import json
import re
import sys
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np
import pyarrow as pa
from pyarrow import parquet

from tidegate.experiments.experiment import Cell, Experiment, Measurement
from tidegate.experiments.results import Results
from tidegate.types import InputError

SCHEMA: Final = pa.schema(
    [
        ("measure", pa.string()),
        ("settings", pa.string()),
        ("seed", pa.int32()),
        ("code", pa.string()),
        ("values", pa.string()),
        ("error", pa.string()),
        ("seconds", pa.float64()),
    ]
)
"""Settings and values are JSON, since experiments differ in them. Either `values` or `error` is null. Seconds are
processor time, which does not depend on what else the machine does."""
_PACKAGE: Final = "tidegate.experiments"
_IMPORTS: Final = re.compile(rf"^from ({re.escape(_PACKAGE)}(?:\.\w+)+) import", re.MULTILINE)
_NOT_CORE: Final = ("experiments", "spark", "dashboard", "cli.py", "__main__.py", "pictures.py")
"""Parts of the package that cannot change what a cell measures."""


class CellResult(NamedTuple):
    """A row of the stored results."""

    measure: str
    settings: str
    seed: int
    code: str
    values: str | None
    error: str | None
    seconds: float

    @property
    def cell(self) -> Cell:
        """The cell that was run."""
        return Cell(self.measure, self.settings, self.seed)


@dataclass(frozen=True)
class CellRunner:
    """Runs cells: the function of each measure, the digest of its code, and its folder of recorded streams."""

    measures: Mapping[str, Callable[..., Measurement]]
    digests: Mapping[str, str]
    data: Mapping[str, str]

    @classmethod
    def for_experiments(cls, experiments: Iterable[Experiment], data: Path | None) -> CellRunner:
        """A runner for the cells of some experiments."""
        chosen = list(experiments)
        measures: dict[str, Callable[..., Measurement]] = {}
        for one in chosen:
            if measures.setdefault(one.measure_name, one.measure) is not one.measure:
                raise InputError(
                    f"two measures are called {one.measure_name!r}, so their results would mix; rename one of them"
                )
        return cls(
            measures,
            {one.measure_name: code_digest(one.measure) for one in chosen},
            {one.measure_name: str(data) for one in chosen if one.needs_data},
        )

    def run(self, cell: Cell) -> CellResult:
        """Run a cell. An exception becomes the `error` of the result."""
        began = time.process_time()
        settings = dict(json.loads(cell.settings))
        if cell.measure in self.data:
            settings["data"] = self.data[cell.measure]
        values, error = None, None
        try:
            measured = self.measures[cell.measure](**settings, seed=cell.seed)
            rows = [measured] if isinstance(measured, Mapping) else list(measured)
            values = json.dumps(rows, default=_to_json)
        except Exception as exception:  # noqa: BLE001 - any error is reported with its cell
            error = f"{type(exception).__name__}: {exception}"
        return self.result(cell, values, error, time.process_time() - began)

    def result(self, cell: Cell, values: str | None, error: str | None, seconds: float = 0.0) -> CellResult:
        """The result of a cell that has ended."""
        return CellResult(*cell, self.digests[cell.measure], values, error, seconds)


def _to_json(value: object) -> Any:  # noqa: ANN401 - any JSON value
    if isinstance(value, np.generic):
        return value.item()
    raise TypeError(f"a cell measured {value!r}; return numbers and strings only")


def write_results(results: Iterable[CellResult], path: Path) -> None:
    """Write results to a file."""
    path.parent.mkdir(parents=True, exist_ok=True)
    parquet.write_table(pa.Table.from_pylist([one._asdict() for one in results], SCHEMA), path)


def read_results(folder: Path, digests: Mapping[str, str]) -> dict[Cell, CellResult]:
    """The results of cells that ran with the current code. If a cell has several, one that did not fail."""
    results: dict[Cell, CellResult] = {}
    for path in sorted(folder.rglob("*.parquet")):
        if any(part.startswith(("_", ".")) for part in path.relative_to(folder).parts):
            continue
        for row in parquet.read_table(path, schema=SCHEMA).to_pylist():
            one = CellResult(**row)
            if digests.get(one.measure) == one.code and (one.error is None or one.cell not in results):
                results[one.cell] = one
    return results


def collect(results: Iterable[CellResult]) -> Results:
    """The values of all cells that did not fail, with their settings and seeds."""
    return Results(
        json.loads(one.settings) | {"seed": one.seed} | row
        for one in results
        if one.values is not None
        for row in json.loads(one.values)
    )


def code_digest(measure: Callable[..., object]) -> str:
    """A digest of the core, and of the modules of this package that a measure's module imports.

    Examples
    --------
    >>> from tidegate.experiments.windowed_joins.measures import age_recall
    >>> len(code_digest(age_recall))
    16
    """
    digest = hashlib.sha256(_core_digest())
    modules, visited = [measure.__module__], set[str]()
    while modules:
        name = modules.pop()
        file = getattr(sys.modules.get(name), "__file__", None)
        if name in visited or file is None:
            continue
        visited.add(name)
        source = Path(file).read_bytes()
        digest.update(source)
        modules += sorted(_IMPORTS.findall(source.decode()))
    return digest.hexdigest()[:16]


@cache
def _core_digest() -> bytes:
    root = Path(__file__).parents[1]
    digest = hashlib.sha256()
    for path in sorted(root.rglob("*.py")):
        if path.relative_to(root).parts[0] not in _NOT_CORE:
            digest.update(path.read_bytes())
    return digest.digest()
