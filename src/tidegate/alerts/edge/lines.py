"""Lines of text, as they come and as they leave, and the columns that they hold."""

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
from json import dumps, loads
from typing import TYPE_CHECKING, BinaryIO, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import csv, json

from tidegate.types import InputError

if TYPE_CHECKING:
    from tidegate.alerts.edge.filtering import Edge
    from tidegate.types import Array

_BLOCK: Final = 4 << 20
_WHOLE: Final = pa.int64()
_FRACTION: Final = pa.float64()
_TIMES: Final = (
    _WHOLE,
    _FRACTION,
    *(pa.timestamp(unit, zone) for unit in ("us", "ns") for zone in (None, "UTC")),
)
_KEYS: Final = (pa.string(), _WHOLE)
_EXACT: Final = 2**53
"""Up to here every whole number is a float, too."""

_SHOWN: Final = 80
_SAID: Final = 300
LONGEST_LINE: Final = 1 << 20
"""Bytes of a line at most, by default."""

_NULL_BEHIND: Final = re.compile(rb"\}[ \t\r\n]*null")
_SPACES: Final = b" \t\r\n"
_MARK: Final = b"\xef\xbb\xbf"
"""What some programs begin a file with."""


class UnreadableError(InputError):
    """One of the lines at least cannot be read."""


class TooLongError(InputError):
    """A line is longer than may be."""

    def __init__(self, number: int, longest: int) -> None:
        super().__init__(
            f"line {number} is longer than {longest:,} bytes; those before it were handled: see that lines end, or "
            "allow longer ones by --max-line (in Python, max_line=)"
        )


class Reader:
    """Reads keys, times and values out of lines, however they are cut into blocks.

    A block is read with the types of the block before it, or else with the first that fit: whole times may become
    fractions, and seconds fractions of seconds. Keys are compared as text, as it was written.
    """

    def __init__(self, config: Edge) -> None:
        self.config = config
        self.header: list[str] | None = None
        self.passed = 0
        self._kinds = {config.value: _FRACTION, config.time: _WHOLE}
        if config.key is not None:
            self._kinds[config.key] = pa.string()
        self._sort = ""
        self._largest = 0
        self._known = pa.array([], pa.string())

    @property
    def calendar(self) -> bool:
        """Whether times are calendar times; they are read as microseconds then."""
        return self._sort not in ("", "numbers")

    def columns(self, lines: pa.Array) -> tuple[Array, Array, Array]:
        """Read a block of lines; of one that cannot be read nothing is remembered."""
        given = self.header or list(self._kinds)
        for name in self._kinds:
            if given.count(name) != 1:
                if name in given:
                    raise InputError(f"there are two columns {name!r}; rename one of them")
                raise InputError(f"there is no column {name!r}; there is {_listed(given)}")
        table, time, self._kinds = self._read(lines)
        if not self._sort and self.config.form == "json":
            self._check_fields(table, lines)
        blank = time.is_null()
        if time.null_count < len(time):
            self._sort = _sort(self._kinds[self.config.time])
            if self._kinds[self.config.time] == _WHOLE:
                self._largest = max(self._largest, *map(abs, pc.min_max(time).as_py().values()))
        value = _plain(pc.if_else(blank, None, table[self.config.value].combine_chunks()))
        return self._codes(table, len(lines)), _plain(time.fill_null(0)), value

    def readable(self, lines: pa.Array) -> int:
        """How many of the lines can be read, up to the first that cannot."""

        def fails(count: int) -> bool:
            try:
                self._read(lines.slice(0, count))
            except UnreadableError:
                return True
            return False

        return bisect_left(range(1, len(lines) + 1), 1, key=fails)

    def told(self, text: bytes, good: int, wrong: UnreadableError) -> str:
        """Which line of the block cannot be read, and why: the one behind so many good ones."""
        numbered = (
            (number, line) for number, line in enumerate(text.split(b"\n"), 1) if line not in (b"", b"\r")
        )
        number, line = next(islice(numbered, good, None))
        try:
            self._read(pa.array([line + b"\n"]))
        except UnreadableError as error:
            wrong = error  # what is said of more lines than this may not be of this
        shown = line.strip()[:_SHOWN].decode(errors="replace")
        said = str(wrong) if len(str(wrong)) <= _SAID else f"{str(wrong)[:_SAID]}..."
        return (
            f"line {self.passed + number} cannot be read, {shown!r}: {said}; "
            "the lines before it were handled: mend it, and go on from there"
        )

    def _read(self, lines: pa.Array) -> tuple[pa.Table, pa.Array, dict[str, pa.DataType]]:
        """The columns, the times as numbers, and the types."""
        text, kinds = joined(lines), self._kinds
        if self.config.form == "json":
            _check_objects(text, lines)
        try:
            table = self._table(text, kinds)
        except pa.ArrowInvalid:
            kinds = {name: self._kind(name, text) for name in kinds}
            table = self._table(text, {name: kind for name, kind in kinds.items() if kind is not None})
        if table.num_rows != len(lines):
            raise UnreadableError(f"{len(lines)} lines hold {table.num_rows} rows; give one row a line")
        key = self.config.key
        if key is not None and kinds[key] is None:
            table, kinds = table.append_column(key, _as_written(key, lines)), kinds | {key: pa.string()}
        time = table[self.config.time].combine_chunks()
        if time.null_count < len(time):
            self._check_times(time)
        if pa.types.is_timestamp(time.type):
            try:
                time = time.cast(pa.timestamp("us", time.type.tz)).cast(_WHOLE)
            except pa.ArrowInvalid as error:
                raise UnreadableError(
                    f"times finer than a microsecond cannot be told apart: {error}"
                ) from error
        return table, time, kinds

    def _kind(self, name: str, text: bytes) -> pa.DataType | None:
        """The first type with which a column can be read; None for keys of more than one."""
        kinds = {self.config.value: (_FRACTION,), self.config.time: _TIMES}.get(name, _KEYS)
        wrong = None
        for kind in kinds:
            try:
                self._table(text, {name: kind})
            except pa.ArrowInvalid as error:
                wrong = wrong or error
            else:
                return kind
        if kinds is _KEYS and self.config.form == "json":
            return None
        wanted = {self.config.value: "a number", self.config.time: "a number or a calendar time"}.get(
            name, "text"
        )
        raise UnreadableError(f"{name} cannot be read as {wanted}: {wrong}") from wrong

    def _check_times(self, time: pa.Array) -> None:
        sort = _sort(time.type)
        if self._sort and sort != self._sort:
            raise UnreadableError(f"{self.config.time} has {sort} after {self._sort}; give one or the other")
        if time.type == _FRACTION and self._largest > _EXACT:
            raise UnreadableError(
                f"{self.config.time} has fractions after whole numbers too large to be compared with them; "
                "give whole numbers, or count from later"
            )

    def _check_fields(self, table: pa.Table, lines: pa.Array) -> None:
        for name in (self.config.time, self.config.key):
            if name is not None and table[name].null_count == len(lines):
                with suppress(UnreadableError):  # what Arrow could skip is skipped here, too
                    fields = dict.fromkeys(field for line in lines.to_pylist() for field in _fields(line))
                    if name not in fields:
                        raise InputError(
                            f"there is no {name!r} in the lines; there is {_listed(list(fields))}"
                        )

    def _table(self, text: bytes, kinds: dict[str, pa.DataType]) -> pa.Table:
        if self.config.form == "json":
            options = json.ParseOptions(
                explicit_schema=pa.schema(list(kinds.items())), unexpected_field_behavior="ignore"
            )
            size = json.ReadOptions(block_size=len(text) + 1)
            return json.read_json(pa.BufferReader(text), size, parse_options=options)
        return csv.read_csv(
            pa.BufferReader(text),
            read_options=csv.ReadOptions(column_names=self.header, block_size=len(text)),
            convert_options=csv.ConvertOptions(include_columns=list(kinds), column_types=kinds),
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


def blocks(
    source: BinaryIO,
    size: int = _BLOCK,
    due: Callable[[], float | None] = lambda: None,
    cut_short: Callable[[], bool] = lambda: False,
    longest: int = LONGEST_LINE,
) -> Iterator[bytes]:
    """Whole lines, as many as are there at a time, at most about `size` bytes and one line more.

    Nothing is given where nothing came for as many seconds as `due` allows, if the source is one to be waited for.
    The last line gets its end, unless the source was `cut_short`: then it may be only the beginning of one. A line of
    which more than `longest` bytes came without an end raises `TooLongError`; a longer one that did end is given.
    """
    rest: list[bytes] = []
    waiting = passed = 0
    while True:
        wait = due()
        if wait is not None and not _ready(source, wait, unknown=True):
            yield b""
            continue
        data = _available(source, size)
        if not data:
            break
        cut = data.rfind(b"\n") + 1
        if cut:
            whole = b"".join((*rest, data[:cut]))
            passed += whole.count(b"\n")
            yield whole
            rest, waiting = [], 0
        rest.append(data[cut:])
        waiting += len(data) - cut
        if waiting > longest:
            raise TooLongError(passed + 1, longest)
    if waiting and not cut_short():
        yield b"".join((*rest, b"\n"))


def _available(source: BinaryIO, size: int) -> bytes:
    """What can be read without waiting for more, and at least a byte until the end."""
    read = getattr(source, "read1", source.read)
    parts = [read(size)]
    total = len(parts[0])
    while parts[-1] and total < size and _ready(source, 0, unknown=False):
        parts.append(read(size - total))
        total += len(parts[-1])
    return b"".join(parts)


def _ready(source: BinaryIO, wait: float, *, unknown: bool) -> bool:
    """Whether there is something to read, or the end, within so many seconds; `unknown` if none can tell."""
    try:
        return bool(select.select([source], [], [], wait)[0])
    except (io.UnsupportedOperation, OSError, ValueError, TypeError):
        return unknown


def names(header: bytes) -> list[str]:
    """The names of the columns."""
    try:
        text = header.removeprefix(_MARK).decode().rstrip("\r\n")
        found = next(read_text([text], strict=True), [])
    except (ValueError, CsvError) as error:
        raise InputError(
            f"line 1, the names of the columns, cannot be read: {error}; give names in UTF-8, with commas in between"
        ) from error
    if not found:
        raise InputError("line 1 is empty; give the names of the columns there")
    return found


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


def overlong(lines: pa.Array, longest: int) -> int | None:
    """The first line of more than `longest` bytes, its end aside, if there is one."""
    lengths = pc.binary_length(lines)
    if not len(lines) or pc.max(lengths).as_py() <= longest + 1:
        return None
    return int(pc.index(pc.greater(lengths, longest + 1), True).as_py())


def _check_objects(text: bytes, lines: pa.Array) -> None:
    """Refuse lines that are not an object: Arrow does not survive a null in place of one."""
    starts = np.frombuffer(lines.buffers()[1], np.int32)[lines.offset : lines.offset + len(lines)]
    first = np.frombuffer(lines.buffers()[2], np.uint8)[starts]
    odd = set(np.flatnonzero(first != ord("{")).tolist())
    if b"null" in text and _NULL_BEHIND.search(text):
        odd.update(
            np.flatnonzero(
                pc.match_substring_regex(lines, _NULL_BEHIND.pattern.decode()).to_numpy(zero_copy_only=False)
            )
        )
    for at in sorted(odd):
        line = lines[at].as_py().removeprefix(_MARK).strip(_SPACES)
        if not line.startswith(b"{") or (_NULL_BEHIND.search(line) and not _fields(line)):
            raise UnreadableError('it is not an object; give one a line, like {"time": 1, "value": 2}')


def _fields(line: bytes) -> dict[str, object]:
    """The fields of an object, with numbers as text."""
    try:
        found = loads(line, parse_int=str, parse_float=str)
    except RecursionError as error:
        raise UnreadableError("it is nested too deep; make it flatter") from error
    except ValueError as error:
        raise UnreadableError(f"it is not JSON: {error}") from error
    if not isinstance(found, dict):
        raise UnreadableError("it is not an object; give one a line")
    return found


def _listed(given: list[str]) -> str:
    """Names, of many the first only."""
    shown = [name if len(name) <= _SHOWN else f"{name[:_SHOWN]}..." for name in given[:_SHOWN]]
    return ", ".join(shown) + (f" and {len(given) - _SHOWN:,} more" if len(given) > _SHOWN else "")


def _sort(kind: pa.DataType) -> str:
    if not pa.types.is_timestamp(kind):
        return "numbers"
    return "calendar times" if kind.tz is None else "calendar times with a zone"


def _as_written(name: str, lines: pa.Array) -> pa.Array:
    """A field of all lines as text, whatever it is."""
    fields = [_fields(line).get(name) for line in lines.to_pylist()]
    return pa.array(
        [field if field is None or isinstance(field, str) else dumps(field) for field in fields], pa.string()
    )


def _plain(column: pa.Array) -> Array:
    values: Array = column.to_numpy(zero_copy_only=False)
    return values
