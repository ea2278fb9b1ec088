"""Recorded streams: arrays, data frames, Arrow tables, CSV and Parquet files."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import numpy as np
import pyarrow as pa
from pyarrow import csv, parquet

from tidegate.arrow_columns import one_chunk
from tidegate.types import FAR, InputError, first_missing

if TYPE_CHECKING:
    from tidegate.types import Array

OPTIONAL = ("importance", "value")
_NONE = np.empty(0)


@dataclass(frozen=True)
class Trace:
    """One stream, by columns.

    Parameters
    ----------
    keys
        The key columns as Arrow arrays, in the order in which they were named.
    time
        64-bit integers or floats; calendar times become microseconds.
    importance, value
        Optional columns of floats; importance is 0 or more.
    table
        All given columns, if the trace was read from a table.

    Examples
    --------
    >>> trace = Trace.of({"key": ["a", "b"], "time": [1.5, 2.0]})
    >>> len(trace), trace.time
    (2, array([1.5, 2. ]))
    """

    keys: tuple[pa.Array, ...]
    time: Array
    importance: Array | None = None
    value: Array | None = None
    table: pa.Table | None = field(default=None, repr=False)

    def __len__(self) -> int:
        return len(self.time)

    @classmethod
    def of(
        cls, data: object, *, on: str | Sequence[str] = "key", time: str = "time", what: str = "stream"
    ) -> Self:
        """Read columns: from a trace, a mapping of arrays, a data frame or an Arrow table."""
        if isinstance(data, cls):
            return data
        names = [on] if isinstance(on, str) else list(on)
        if not names:
            raise InputError("no key column was named; write on='key' or on=['a', 'b']")
        table = columnar(data, what)
        absent = first_missing([*names, time], table.column_names)
        if absent is not None:
            have = ", ".join(table.column_names) or "none"
            raise InputError(
                f"{what} has no column {absent!r} (its columns: {have}); name yours with on= and time="
            )
        extra = {n: _floats(table.column(n), f"{what}.{n}") for n in OPTIONAL if n in table.column_names}
        if (extra.get("importance", _NONE) < 0).any():
            raise InputError(
                f"{what}.importance has {extra['importance'].min():g}; give 0 or more in every row"
            )
        keys = tuple(one_chunk(table.column(name)) for name in names)
        return cls(keys, times_of(table.column(time), f"{what}.{time}"), **extra, table=table)

    @classmethod
    def from_csv(cls, path: str | Path, *, on: str | Sequence[str] = "key", time: str = "time") -> Self:
        """Read a CSV file with a header."""
        return cls.of(csv.read_csv(path), on=on, time=time, what=Path(path).name)

    @classmethod
    def from_parquet(cls, path: str | Path, *, on: str | Sequence[str] = "key", time: str = "time") -> Self:
        """Read a Parquet file."""
        return cls.of(parquet.read_table(path), on=on, time=time, what=Path(path).name)


def columnar(data: object, what: str) -> pa.Table:
    """Read columns as a table: from a mapping of arrays, a data frame or an Arrow table."""
    if isinstance(data, pa.Table):
        return data
    if isinstance(data, pa.RecordBatch):
        return pa.Table.from_batches([data])
    if isinstance(data, Mapping):
        columns = {name: _array(column, f"{what}.{name}") for name, column in data.items()}
        lengths = {name: len(column) for name, column in columns.items()}
        if len(set(lengths.values())) > 1:
            listed = ", ".join(f"{name} {length}" for name, length in lengths.items())
            raise InputError(
                f"the columns of {what} differ in length: {listed}; give one value per row in each"
            )
        return pa.table(columns)
    if type(data).__module__.split(".")[0] == "pandas" and hasattr(data, "columns"):
        return _from_pandas(data, what)
    if hasattr(data, "__arrow_c_stream__"):
        return pa.table(data)
    if hasattr(data, "toArrow"):
        raise InputError(f"{what} is a Spark DataFrame; give {what}.toArrow() or {what}.toPandas()")
    raise InputError(
        f"{what} is a {type(data).__name__}; give a dict of arrays, a data frame or an Arrow table"
    )


def _from_pandas(frame: Any, what: str) -> pa.Table:  # noqa: ANN401 - pandas may not be installed
    """The columns of a pandas DataFrame, and the levels of its index that have a name."""
    levels = {name: frame.index.get_level_values(name) for name in frame.index.names if name is not None}
    duplicate = next(
        (name for name, count in Counter(map(str, [*frame.columns, *levels])).items() if count > 1), None
    )
    if duplicate is not None:
        raise InputError(f"{what} has two columns {duplicate!r}; rename or drop one")
    columns = {str(name): frame[name] for name in frame.columns} | {
        str(n): level for n, level in levels.items()
    }
    return pa.table({name: _array(column, f"{what}.{name}") for name, column in columns.items()})


def _array(column: object, what: str) -> pa.Array | pa.ChunkedArray:
    if isinstance(column, pa.Array | pa.ChunkedArray):
        return column
    try:
        # NaN is how NumPy and pandas write null.
        return pa.array(column, from_pandas=True)
    except (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError, TypeError) as error:
        raise InputError(
            f"{what} cannot be read as a column: {error}; give one flat array of one type"
        ) from error


def times_of(column: pa.ChunkedArray, what: str) -> Array:
    """Times as numbers: 64-bit integers or floats; calendar times become microseconds."""
    kind = column.type
    if pa.types.is_null(kind) and not len(column):
        return np.empty(0, np.int64)
    calendar = pa.types.is_timestamp(kind) or pa.types.is_date(kind)
    if not (calendar or pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_null(kind)):
        raise InputError(f"{what} is of type {kind}; give numbers or timestamps")
    target = pa.float64() if pa.types.is_floating(kind) else pa.int64()
    try:
        micros = column.cast(pa.timestamp("us", getattr(kind, "tz", None))) if calendar else column
        numbers = micros.cast(target)
    except pa.ArrowInvalid as error:
        raise InputError(
            f"{what} does not fit ({error}); round to microseconds, or to 64-bit integers"
        ) from error
    values: Array = numbers.fill_null(0).to_numpy()
    far = ~(np.abs(values) < FAR) if target == pa.float64() else (values >= FAR) | (values <= -FAR)
    bad = np.flatnonzero(far | column.is_null().to_numpy())
    if len(bad):
        at = int(bad[0])
        raise InputError(
            f"{what} has {column[at].as_py()!r} at row {at}; give every row a finite time below 2**61"
        )
    return values


def _floats(column: pa.ChunkedArray, what: str) -> Array:
    try:
        values: Array = column.cast(pa.float64()).to_numpy(zero_copy_only=False)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
        raise InputError(f"{what} is of type {column.type}; give numbers") from error
    bad = np.flatnonzero(~np.isfinite(values))
    if len(bad):
        raise InputError(
            f"{what} has {float(values[bad[0]])} at row {bad[0]}; give a finite number in every row"
        )
    return values
