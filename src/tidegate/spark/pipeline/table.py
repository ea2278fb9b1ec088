"""Tables of a TOML file, read key by key.

What is wrong is noted under the name of its key, and reading goes on, so that the user learns of everything at
once. A key that nobody asked for is wrong too.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable
from pathlib import Path
from typing import Final, TypeVar

from tidegate.documents import parse_toml
from tidegate.types import InputError

T = TypeVar("T")
D = TypeVar("D")

_LARGEST: Final = 1 << 20
_MOST_UNKNOWN: Final = 20
_LONGEST_NOTE: Final = 1000
_KINDS: Final = {bool: "true or false", int: "a whole number", float: "a number", str: "a string"}


class Document:
    """A TOML file while it is read: its tables, and what is wrong with them."""

    def __init__(self, path: Path) -> None:
        """Parse the file; what is not TOML is refused at once."""
        self.path = path
        self._notes: list[str] = []
        self._tables: list[Table] = []
        try:
            with path.open("rb") as file:
                data = file.read(_LARGEST + 1)
        except OSError as error:
            raise InputError(
                f"{path}: cannot be read: {error.strerror}; give the path of a TOML file"
            ) from error
        if len(data) > _LARGEST:
            raise InputError(
                f"{path}: is larger than {_LARGEST >> 20} MiB; give a pipeline file, which is a page of text"
            )
        try:
            values = parse_toml(data.decode())
        except UnicodeDecodeError as error:
            raise InputError(f"{path}: not TOML: {error}; save it as UTF-8") from error
        except InputError as error:
            raise InputError(f"{path}: {error}") from error
        self.top = self.table("", values)

    def table(self, name: str, values: dict[str, object]) -> Table:
        """Take up a table under the name by which messages call it."""
        table = Table(self, name, values)
        self._tables.append(table)
        return table

    def note(self, key: str, message: str) -> None:
        """Note what is wrong with a key."""
        key, message = (_shortened(part) for part in (key, message))
        note = f"{self.path}: {key}: {message}"
        if note not in self._notes:  # a key may be read twice
            self._notes.append(note)

    @property
    def sound(self) -> bool:
        """Whether nothing was wrong so far."""
        return not self._notes

    def finish(self) -> None:
        """Refuse keys that nobody asked for, and raise if anything was wrong."""
        for table in self._tables:
            unknown = table.unknown()
            for key in unknown[:_MOST_UNKNOWN]:
                self.note(table.named(key), f"not a key here{self._hint(table, key)}")
            if len(unknown) > _MOST_UNKNOWN:
                self.note(table.named(unknown[_MOST_UNKNOWN]), f"and {len(unknown) - _MOST_UNKNOWN:,} more")
        if self._notes:
            raise InputError("\n".join(self._notes))

    def _hint(self, table: Table, key: str) -> str:
        near = difflib.get_close_matches(key, table.known, n=2, cutoff=0.6)
        if near:
            return f"; did you mean {' or '.join(near)}?"
        homes = [other.name for other in self._tables if key in other.known]
        if "" in homes:
            return f"; {key} stands at the top of the file, above the first [table]"
        if homes:
            return f"; {key} belongs in {' or '.join(f'[{home}]' for home in homes)}"
        return f"; there are {', '.join(sorted(table.known))}"


class Table:
    """One table: keys are asked for, and what was not asked for is left over."""

    def __init__(self, document: Document, name: str, values: dict[str, object]) -> None:
        """Made by `Document.table`."""
        self.name = name
        self.there = True
        self.known: set[str] = set()
        self._document = document
        self._values = values

    def __contains__(self, key: str) -> bool:
        return key in self._values

    def named(self, key: str) -> str:
        """A key's full name."""
        return f"{self.name}.{key}" if self.name else key

    def note(self, key: str, message: str) -> None:
        """Note what is wrong with a key; of a table that is not there, nothing more is said."""
        if self.there:
            self._document.note(self.named(key), message)

    def unknown(self) -> list[str]:
        """The keys that nobody asked for."""
        return [key for key in self._values if key not in self.known]

    def read(self, key: str, reader: Callable[[object], T], default: D) -> T | D:
        """Read a key, or take the default where it is missing or wrong; `reader` raises what is wrong."""
        self.known.add(key)
        if key not in self._values:
            return default
        try:
            return reader(self._values[key])
        except InputError as error:
            self.note(key, str(error))
            return default

    def need(self, key: str, remedy: str) -> None:
        """Note a key that must be there and is not."""
        self.known.add(key)
        if key not in self._values:
            self.note(key, f"missing; {remedy}")

    def table(self, key: str) -> Table:
        """A table within this one; empty where there is none."""
        found = self._document.table(self.named(key), self.read(key, table, {}))
        found.there = isinstance(self._values.get(key), dict)
        return found


def _shortened(text: str) -> str:
    return text if len(text) <= _LONGEST_NOTE else f"{text[:_LONGEST_NOTE]}..."


def expected(what: str, value: object) -> InputError:
    """The error for a value of the wrong kind."""
    return InputError(f"expected {what}, got {shown(value)}")


def shown(value: object) -> str:
    """A value as the file has it."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, dict):
        return "a table"
    return repr(value)


def _of(kind: type[T]) -> Callable[[object], T]:
    def reader(value: object) -> T:
        if type(value) is not kind:
            raise expected(_KINDS[kind], value)
        return value

    return reader


text: Final = _of(str)
flag: Final = _of(bool)
whole: Final = _of(int)


def filled(value: object) -> str:
    """A string that says something."""
    if not text(value).strip():
        raise InputError("is empty")
    return text(value)


def table(value: object) -> dict[str, object]:
    """A table."""
    if not isinstance(value, dict):
        raise expected("a table", value)
    return value


def at_least(least: int) -> Callable[[object], int]:
    """A whole number, `least` or more."""

    def reader(value: object) -> int:
        if whole(value) < least:
            raise InputError(f"{value} is too small; give at least {least}")
        return whole(value)

    return reader


def texts(value: object) -> tuple[str, ...]:
    """A list of strings, at least one."""
    if not isinstance(value, list) or not value or not all(isinstance(part, str) for part in value):
        raise expected('a list of strings like ["a", "b"]', value)
    return tuple(filled(part) for part in value)


def scalars(value: object) -> dict[str, str]:
    """Settings by name, as Spark takes them; `a.b = 1` is the setting "a.b"."""
    found: dict[str, str] = {}
    for key, part in table(value).items():
        if isinstance(part, dict):
            found |= {f"{key}.{inner}": setting for inner, setting in scalars(part).items()}
        elif isinstance(part, bool):
            found[key] = str(part).lower()
        elif isinstance(part, str | int | float):
            found[key] = str(part)
        else:
            raise InputError(f"{key}: expected a string, a number, or true or false, got {shown(part)}")
    return found
