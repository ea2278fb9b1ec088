"""Reading of lines of CSV or JSON: from a source into blocks, and from blocks into columns."""

from __future__ import annotations

import io
import re
import select
from bisect import bisect_left
from collections.abc import Callable, Iterator
from contextlib import suppress
from csv import Error as CsvError
from csv import reader as read_text
from itertools import islice
from json import JSONDecodeError, dumps, loads
from typing import TYPE_CHECKING, BinaryIO, Final, Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import csv, json

from tidegate.types import InputError

if TYPE_CHECKING:
    from tidegate.alerts.edge.filtering import Edge
    from tidegate.types import Array

LineFormat = Literal["csv", "json"]

_BLOCK_BYTES: Final = 4 << 20
_INTEGER: Final = pa.int64()
_FLOAT: Final = pa.float64()
_TIME_TYPES: Final = (
    _INTEGER,
    _FLOAT,
    *(pa.timestamp(unit, zone) for unit in ("us", "ns") for zone in (None, "UTC")),
)
_KEY_TYPES: Final = (pa.string(), _INTEGER)
_LARGEST_EXACT: Final = 2**53
"""Up to this number, every integer is exact as a float."""

_MAX_SHOWN: Final = 80
_MAX_MESSAGE: Final = 300
MAX_LINE_BYTES: Final = 1 << 20
"""The default of the maximal number of bytes of a line."""

_FIELD_NAME: Final = re.compile(r"\"((?:[^\"\\]|\\.)*)\"\s*:")
_OBJECT_THEN_NULL: Final = re.compile(rb"\}[ \t\r\n]*null")
_SPACES: Final = b" \t\r\n"
_BYTE_ORDER_MARK: Final = b"\xef\xbb\xbf"


class UnreadableError(InputError):
    """At least one of the lines cannot be read."""


class TooLongError(InputError):
    """A line is longer than the limit."""

    def __init__(self, number: int, longest: int) -> None:
        super().__init__(
            f"line {number} is longer than {longest:,} bytes; the lines before it were processed. Check the line "
            "ends, or allow longer lines with --max-line (in Python, max_line=)"
        )


class LineReader:
    """Reads keys, times and values from blocks of lines; results do not depend on the blocks.

    A block is read with the types of the block before it, or else with the first types that fit: integer times may
    become floats, and times in seconds may get fractions. Keys are compared as text, as written.
    """

    def __init__(self, config: Edge) -> None:
        self.config = config
        self.header: list[str] | None = None
        self.lines_read = 0
        self._types = {config.value: _FLOAT, config.time: _INTEGER}
        if config.key is not None:
            self._types[config.key] = pa.string()
        self._time_kind = ""
        self._largest_time = 0
        self._known_keys = pa.array([], pa.string())

    @property
    def timestamps(self) -> bool:
        """Whether times are timestamps; these are read as microseconds."""
        return self._time_kind not in ("", "numbers")

    def read_columns(self, lines: pa.Array) -> tuple[Array, Array, Array]:
        """Read keys, times and values of a block of lines; the state is unchanged if one cannot be read."""
        columns = self.header or list(self._types)
        for name in self._types:
            if columns.count(name) != 1:
                if name in columns:
                    raise InputError(f"there are two columns {name!r}; rename one of them")
                raise InputError(f"there is no column {name!r}; the columns are: {_list_names(columns)}")
        table, time, self._types = self._read(lines)
        if not self._time_kind and self.config.format == "json":
            self._check_fields(table, lines)
        missing = time.is_null()
        if time.null_count < len(time):
            self._time_kind = _kind_of_times(self._types[self.config.time])
            if self._types[self.config.time] == _INTEGER:
                self._largest_time = max(self._largest_time, *map(abs, pc.min_max(time).as_py().values()))
        value = _to_numpy(pc.if_else(missing, None, table[self.config.value].combine_chunks()))
        return self._key_codes(table, len(lines)), _to_numpy(time.fill_null(0)), value

    def count_readable(self, lines: pa.Array) -> int:
        """The number of lines before the first one that cannot be read."""

        def fails(count: int) -> bool:
            try:
                self._read(lines.slice(0, count))
            except UnreadableError:
                return True
            return False

        return bisect_left(range(1, len(lines) + 1), 1, key=fails)

    def describe_error(self, text: bytes, readable: int, cause: UnreadableError) -> str:
        """An error message about the line after the readable ones of a block: its number, the text and the cause."""
        numbered = (
            (number, line) for number, line in enumerate(text.split(b"\n"), 1) if line not in (b"", b"\r")
        )
        number, line = next(islice(numbered, readable, None))
        try:
            self._read(pa.array([line + b"\n"]))
        except UnreadableError as error:
            cause = error  # the given one may be about another line of the block
        if self.config.format == "json" and isinstance(cause.__cause__, pa.ArrowInvalid):
            try:
                _fields(line)  # Arrow's error is about the first column, wherever the line stops being JSON
            except UnreadableError as error:
                cause = error
        shown = line.strip()[:_MAX_SHOWN].decode(errors="replace")
        message = str(cause) if len(str(cause)) <= _MAX_MESSAGE else f"{str(cause)[:_MAX_MESSAGE]}..."
        return (
            f"line {self.lines_read + number} cannot be read, {shown!r}: {message}; "
            "the lines before it were processed: correct it, and continue from there"
        )

    def _read(self, lines: pa.Array) -> tuple[pa.Table, pa.Array, dict[str, pa.DataType]]:
        """Read the columns, the times as numbers, and the types."""
        text, types = concatenate_lines(lines), self._types
        if self.config.format == "json":
            _check_objects(text, lines)
        try:
            table = self._parse(text, types)
        except pa.ArrowInvalid:
            types = {name: self._find_type(name, text) for name in types}
            table = self._parse(text, {name: kind for name, kind in types.items() if kind is not None})
        if table.num_rows != len(lines):
            raise UnreadableError(f"{len(lines)} lines contain {table.num_rows} rows; give one row per line")
        key = self.config.key
        if key is not None and types[key] is None:
            table, types = table.append_column(key, _as_written(key, lines)), types | {key: pa.string()}
        time = table[self.config.time].combine_chunks()
        if time.null_count < len(time):
            self._check_times(time)
        if pa.types.is_timestamp(time.type):
            try:
                time = time.cast(pa.timestamp("us", time.type.tz)).cast(_INTEGER)
            except pa.ArrowInvalid as error:
                raise UnreadableError(f"times finer than a microsecond are not supported: {error}") from error
        return table, time, types

    def _find_type(self, name: str, text: bytes) -> pa.DataType | None:
        """The first type with which a column can be read; None for keys of several types."""
        types = {self.config.value: (_FLOAT,), self.config.time: _TIME_TYPES}.get(name, _KEY_TYPES)
        first_error = None
        for kind in types:
            try:
                self._parse(text, {name: kind})
            except pa.ArrowInvalid as error:
                first_error = first_error or error
            else:
                return kind
        if types is _KEY_TYPES and self.config.format == "json":
            return None
        expected = {self.config.value: "a number", self.config.time: "a number or a timestamp"}.get(
            name, "text"
        )
        raise UnreadableError(f"{name} cannot be read as {expected}: {first_error}") from first_error

    def _check_times(self, time: pa.Array) -> None:
        kind = _kind_of_times(time.type)
        if self._time_kind and kind != self._time_kind:
            raise UnreadableError(
                f"{self.config.time} has {kind} after {self._time_kind}; give one or the other"
            )
        if time.type == _FLOAT and self._largest_time > _LARGEST_EXACT:
            raise UnreadableError(
                f"{self.config.time} has fractions after whole numbers that are too large for exact fractions; "
                "give whole numbers, or times since a later epoch"
            )

    def _check_fields(self, table: pa.Table, lines: pa.Array) -> None:
        for name in (self.config.time, self.config.key):
            if name is not None and table[name].null_count == len(lines):
                with suppress(UnreadableError):  # Arrow accepts some lines that are not JSON
                    fields = dict.fromkeys(field for line in lines.to_pylist() for field in _fields(line))
                    if name not in fields:
                        raise InputError(
                            f"there is no {name!r} in the lines; the fields are: {_list_names(list(fields))}"
                        )

    def _parse(self, text: bytes, types: dict[str, pa.DataType]) -> pa.Table:
        if self.config.format == "json":
            options = json.ParseOptions(
                explicit_schema=pa.schema(list(types.items())), unexpected_field_behavior="ignore"
            )
            size = json.ReadOptions(block_size=len(text) + 1)
            return json.read_json(pa.BufferReader(text), size, parse_options=options)
        return csv.read_csv(
            pa.BufferReader(text),
            read_options=csv.ReadOptions(column_names=self.header, block_size=len(text)),
            convert_options=csv.ConvertOptions(include_columns=list(types), column_types=types),
        )

    def _key_codes(self, table: pa.Table, count: int) -> Array:
        """Number the keys in the order in which they first occur."""
        if self.config.key is None:
            return np.zeros(count, np.int64)
        keys = table[self.config.key].combine_chunks().cast(pa.string()).fill_null("")
        codes = pc.index_in(keys, value_set=self._known_keys)
        if codes.null_count:
            new = pc.unique(keys.filter(codes.is_null()))
            self._known_keys = pa.concat_arrays([self._known_keys, new])
            codes = pc.index_in(keys, value_set=self._known_keys)
        numbers: Array = codes.cast(pa.int64()).to_numpy()
        return numbers


def read_blocks(
    source: BinaryIO,
    size: int = _BLOCK_BYTES,
    due: Callable[[], float | None] = lambda: None,
    cut_short: Callable[[], bool] = lambda: False,
    max_line: int = MAX_LINE_BYTES,
) -> Iterator[bytes]:
    """Read blocks of whole lines: all that are available, up to about `size` bytes and one line.

    A block is empty if nothing arrived within the seconds that `due` returns; only sources with a file descriptor
    can be waited for. A last line without an end gets one, unless the source was `cut_short`: then the line may be
    incomplete and is dropped. If more than `max_line` bytes arrive without a line end, `TooLongError` is raised;
    longer lines that do end are returned.
    """
    incomplete: list[bytes] = []
    incomplete_bytes = lines_read = 0
    while True:
        wait = due()
        if wait is not None and not _is_ready(source, wait, unknown=True):
            yield b""
            continue
        data = _read_available(source, size)
        if not data:
            break
        cut = data.rfind(b"\n") + 1
        if cut:
            block = b"".join((*incomplete, data[:cut]))
            lines_read += block.count(b"\n")
            yield block
            incomplete, incomplete_bytes = [], 0
        incomplete.append(data[cut:])
        incomplete_bytes += len(data) - cut
        if incomplete_bytes > max_line:
            raise TooLongError(lines_read + 1, max_line)
    if incomplete_bytes and not cut_short():
        yield b"".join((*incomplete, b"\n"))


def _read_available(source: BinaryIO, size: int) -> bytes:
    """Read what is available; waits for at least one byte. Empty at the end of the source."""
    read = getattr(source, "read1", source.read)
    parts = [read(size)]
    total = len(parts[0])
    while parts[-1] and total < size and _is_ready(source, 0, unknown=False):
        parts.append(read(size - total))
        total += len(parts[-1])
    return b"".join(parts)


def _is_ready(source: BinaryIO, wait: float, *, unknown: bool) -> bool:
    """Whether data or the end of the source is available within `wait` seconds; `unknown` if this is not testable."""
    try:
        return bool(select.select([source], [], [], wait)[0])
    except (io.UnsupportedOperation, OSError, ValueError, TypeError):
        return unknown


def read_header(header: bytes) -> list[str]:
    """Read the names of the columns."""
    try:
        text = header.removeprefix(_BYTE_ORDER_MARK).decode().rstrip("\r\n")
        names = next(read_text([text], strict=True), [])
    except (ValueError, CsvError) as error:
        raise InputError(
            f"line 1, the names of the columns, cannot be read: {error}; give names in UTF-8, separated by commas"
        ) from error
    if not names:
        raise InputError("line 1 is empty; it must contain the names of the columns")
    return names


def split_lines(text: bytes) -> pa.Array:
    """Split a text into its lines, with their ends; without empty lines."""
    letters = np.frombuffer(text, np.uint8)
    ends = np.flatnonzero(letters == ord("\n")) + 1
    offsets = np.concatenate(([0], ends)).astype(np.int32)
    lines = pa.Array.from_buffers(pa.binary(), len(ends), [None, pa.py_buffer(offsets), pa.py_buffer(text)])
    length = np.diff(offsets)
    empty = (length == 1) | ((length == 2) & (letters[offsets[:-1]] == ord("\r")))  # noqa: PLR2004 - \r and \n
    return lines.take(pa.array(np.flatnonzero(~empty))) if empty.any() else lines


def concatenate_lines(lines: pa.Array) -> bytes:
    """The bytes of all lines."""
    whole = pa.concat_arrays([lines])
    offsets = np.frombuffer(whole.buffers()[1], np.int32)[whole.offset : whole.offset + len(whole) + 1]
    return bytes(memoryview(whole.buffers()[2])[offsets[0] : offsets[-1]])


def find_long_line(lines: pa.Array, max_line: int) -> int | None:
    """The position of the first line with more than `max_line` bytes before its end; None if there is none."""
    lengths = pc.binary_length(lines)
    if not len(lines) or pc.max(lengths).as_py() <= max_line + 1:
        return None
    return int(pc.index(pc.greater(lengths, max_line + 1), True).as_py())


def _check_objects(text: bytes, lines: pa.Array) -> None:
    """Refuse lines that are not objects: Arrow crashes on a null in place of an object."""
    starts = np.frombuffer(lines.buffers()[1], np.int32)[lines.offset : lines.offset + len(lines)]
    first = np.frombuffer(lines.buffers()[2], np.uint8)[starts]
    suspicious = set(np.flatnonzero(first != ord("{")).tolist())
    if b"null" in text and _OBJECT_THEN_NULL.search(text):
        matches = pc.match_substring_regex(lines, _OBJECT_THEN_NULL.pattern.decode())
        suspicious.update(np.flatnonzero(matches.to_numpy(zero_copy_only=False)))
    for at in sorted(suspicious):
        line = lines[at].as_py().removeprefix(_BYTE_ORDER_MARK).strip(_SPACES)
        if not line.startswith(b"{") or (_OBJECT_THEN_NULL.search(line) and not _fields(line)):
            raise UnreadableError('it is not an object; give one per line, like {"time": 1, "value": 2}')


def _fields(line: bytes) -> dict[str, object]:
    """The fields of an object, with numbers as text."""
    try:
        found = loads(line, parse_int=str, parse_float=str)
    except RecursionError as error:
        raise UnreadableError("it is nested too deep; give flat objects") from error
    except ValueError as error:
        raise UnreadableError(f"it is not JSON: {error}{_field_of(error)}") from error
    if not isinstance(found, dict):
        raise UnreadableError("it is not an object; give one per line")
    return found


def _field_of(error: ValueError) -> str:
    """The field of an object in which it stops being JSON, for a message."""
    if not isinstance(error, JSONDecodeError):
        return ""
    names = _FIELD_NAME.findall(error.doc[: error.pos])
    return f", in or after the field {names[-1][:_MAX_SHOWN]!r}" if names else ""


def _list_names(names: list[str]) -> str:
    """The names for a message: the first ones if there are many, each shortened."""
    shown = [name if len(name) <= _MAX_SHOWN else f"{name[:_MAX_SHOWN]}..." for name in names[:_MAX_SHOWN]]
    more = len(names) - _MAX_SHOWN
    return ", ".join(shown) + (f" and {more:,} more" if more > 0 else "")


def _kind_of_times(kind: pa.DataType) -> str:
    if not pa.types.is_timestamp(kind):
        return "numbers"
    return "timestamps" if kind.tz is None else "timestamps with a time zone"


def _as_written(name: str, lines: pa.Array) -> pa.Array:
    """A field of all lines as text, for fields of several types."""
    fields = [_fields(line).get(name) for line in lines.to_pylist()]
    return pa.array(
        [field if field is None or isinstance(field, str) else dumps(field) for field in fields], pa.string()
    )


def _to_numpy(column: pa.Array) -> Array:
    values: Array = column.to_numpy(zero_copy_only=False)
    return values
