"""Lines of text, as they come and as they leave, and the columns that they hold."""

from __future__ import annotations

import io
import select
from collections.abc import Iterator
from typing import TYPE_CHECKING, BinaryIO, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import csv, json

from tidegate.types import InputError

if TYPE_CHECKING:
    from tidegate.alerts.edge import Edge
    from tidegate.types import Array

_BLOCK: Final = 4 << 20


class Reader:
    """Reads keys, times and values out of lines; the kind of the times is that of the first block."""

    def __init__(self, config: Edge) -> None:
        self.config = config
        self.header: list[str] | None = None
        self.calendar = False
        self._kind: pa.DataType | None = None
        self._known = pa.array([], pa.string())

    def columns(self, text: bytes, count: int) -> tuple[Array, Array, Array]:
        """Read a block of lines."""
        wanted = [name for name in (self.config.time, self.config.value, self.config.key) if name is not None]
        try:
            table = self._csv(text, wanted) if self.config.form == "csv" else self._json(text)
        except (pa.ArrowInvalid, pa.ArrowKeyError) as error:
            raise InputError(f"lines cannot be read: {error}; mend them, or name other columns") from error
        missing = [name for name in wanted if name not in table.column_names]
        if missing:
            raise InputError(
                f"there is no {missing[0]!r} in the lines; there is {', '.join(table.column_names)}"
            )
        if table.num_rows != count:
            raise InputError(f"{count} lines hold {table.num_rows} rows; give one row a line")
        time = table[self.config.time].combine_chunks()
        if self._kind is None:
            self._kind = time.type
            self.calendar = pa.types.is_temporal(time.type)
            if (
                not self.calendar
                and not pa.types.is_integer(time.type)
                and not pa.types.is_floating(time.type)
            ):
                raise InputError(
                    f"{self.config.time} is {time.type}; name a column of numbers or calendar times"
                )
        if self.calendar:
            time = time.cast(pa.timestamp("us", getattr(time.type, "tz", None))).cast(pa.int64())
        if time.null_count or (not self.calendar and pa.types.is_floating(time.type)):
            time = time.cast(pa.float64())
        value = table[self.config.value].combine_chunks().cast(pa.float64())
        return self._codes(table, count), _plain(time), _plain(value)

    def _csv(self, text: bytes, names: list[str]) -> pa.Table:
        absent = [name for name in names if name not in (self.header or names)]
        if absent:
            raise InputError(f"there is no column {absent[0]!r}; there is {', '.join(self.header or ())}")
        types = {self.config.value: pa.float64()} | (
            {self.config.key: pa.string()} if self.config.key else {}
        )
        if self._kind is not None:
            types[self.config.time] = self._kind
        return csv.read_csv(
            pa.BufferReader(text),
            read_options=csv.ReadOptions(column_names=self.header, block_size=len(text)),
            convert_options=csv.ConvertOptions(include_columns=names, column_types=types),
        )

    def _json(self, text: bytes) -> pa.Table:
        fields = [(self.config.value, pa.float64())] + (
            [(self.config.time, self._kind)] if self._kind else []
        )
        if self.config.key and self._kind:
            fields.append((self.config.key, pa.string()))
        options = json.ParseOptions(
            explicit_schema=pa.schema(fields), unexpected_field_behavior="ignore" if self._kind else "infer"
        )
        return json.read_json(
            pa.BufferReader(text), json.ReadOptions(block_size=len(text) + 1), parse_options=options
        )

    def _codes(self, table: pa.Table, count: int) -> Array:
        if self.config.key is None:
            return np.zeros(count, np.int64)
        keys = table[self.config.key].combine_chunks().cast(pa.string()).fill_null("")
        codes = pc.index_in(keys, value_set=self._known)
        if codes.null_count:
            fresh = pc.unique(keys.filter(codes.is_null()))
            self._known = pa.concat_arrays([self._known, fresh])
            codes = pc.index_in(keys, value_set=self._known)
        numbers: Array = codes.cast(pa.int64()).to_numpy()
        return numbers


def blocks(source: BinaryIO, size: int = _BLOCK) -> Iterator[bytes]:
    """Whole lines, as many as are there at a time, at most about `size` bytes; the last line gets its end."""
    rest = b""
    while data := _available(source, size):
        cut = data.rfind(b"\n") + 1
        if cut:
            yield rest + data[:cut]
            rest = data[cut:]
        else:
            rest += data
    if rest:
        yield rest + b"\n"


def _available(source: BinaryIO, size: int) -> bytes:
    """What can be read without waiting for more, and at least a byte until the end."""
    read = getattr(source, "read1", source.read)
    parts = [read(size)]
    total = len(parts[0])
    while parts[-1] and total < size and _ready(source):
        parts.append(read(size - total))
        total += len(parts[-1])
    return b"".join(parts)


def _ready(source: BinaryIO) -> bool:
    try:
        return bool(select.select([source], [], [], 0)[0])
    except (io.UnsupportedOperation, OSError, ValueError, TypeError):
        return False


def names(header: bytes) -> list[str]:
    """The names of the columns."""
    table = csv.read_csv(pa.BufferReader(header + header))
    return list(table.column_names)


def split(text: bytes) -> pa.Array:
    """The lines with their ends, empty ones left out."""
    letters = np.frombuffer(text, np.uint8)
    ends = np.flatnonzero(letters == ord("\n")) + 1
    offsets = np.concatenate(([0], ends)).astype(np.int32)
    lines = pa.Array.from_buffers(pa.binary(), len(ends), [None, pa.py_buffer(offsets), pa.py_buffer(text)])
    length = np.diff(offsets)
    empty = (length == 1) | ((length == 2) & (letters[offsets[:-1]] == ord("\r")))  # noqa: PLR2004 - \r and \n
    return lines.take(pa.array(np.flatnonzero(~empty))) if empty.any() else lines


def joined(lines: pa.Array) -> bytes:
    """The bytes of the lines, one after another."""
    whole = pa.concat_arrays([lines])
    offsets = np.frombuffer(whole.buffers()[1], np.int32)[whole.offset : whole.offset + len(whole) + 1]
    return bytes(memoryview(whole.buffers()[2])[offsets[0] : offsets[-1]])


def _plain(column: pa.Array) -> Array:
    values: Array = column.to_numpy(zero_copy_only=False)
    return values
