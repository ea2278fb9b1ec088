"""The contract of a relation: where its rows are, and the queries on an open one."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Final, TypeAlias

import pyarrow as pa

from tidegate.types import InputError

TableName: TypeAlias = str | Sequence[str]
"""A table, with its schema if necessary: "users", "sales.users", ("sales", "users")."""

_QUOTED: Final = re.compile(r'"(?:[^"]|"")+"')
_PARTS: Final = re.compile(r'(?:^|(?<=\.))(?:"(?:[^"]|"")+"(?=\.|$)|[^.]*)')
_MAX_PARTS: Final = 2


class UnreachableError(Exception):
    """The database did not answer; a retry may succeed."""


@dataclass(frozen=True)
class RelationColumn:
    """A column of a relation.

    Parameters
    ----------
    name
        The name in the database.
    type
        The Arrow type of its values; None if they cannot be read.
    declared
        The type that the database declares.
    usable_as_key
        Whether rows can be found by it; not if equal values may be stored in several ways.
    """

    name: str
    type: pa.DataType | None
    declared: str
    usable_as_key: bool = True


class OpenRelation(ABC):
    """A relation that is open, in one process.

    A temporary error of the database is raised as `UnreachableError`. After such an error, and after `close`, the
    next call opens the relation again.
    """

    keep_open: ClassVar[bool] = False
    """Whether it stays open between queries; an open file may block writers."""

    @abstractmethod
    def columns(self) -> list[RelationColumn]:
        """The columns."""

    @abstractmethod
    def rows(self, key: RelationColumn, keys: pa.Array, columns: Sequence[RelationColumn]) -> pa.Table:
        """All rows with one of these keys, by one query: the key, then the columns, in their types."""

    @abstractmethod
    def close(self) -> None:
        """Close the connection."""


@dataclass(frozen=True)
class Relation(ABC):
    """The location of the rows: plain configuration, which is sent to the processes that open it."""

    @property
    @abstractmethod
    def description(self) -> str:
        """The name in messages, without secrets."""

    @abstractmethod
    def open(self) -> OpenRelation:
        """Open it in this process."""


def quote_name(name: str) -> str:
    """A name in SQL, with any characters.

    Examples
    --------
    >>> quote_name('users"; drop table users; --')
    '"users""; drop table users; --"'
    """
    escaped = name.replace('"', '""')
    return f'"{escaped}"'


def split_table_name(table: TableName) -> tuple[str, ...]:
    """Split the name of a table into the name of its schema, if there is one, and its own.

    In a string, a dot separates the two unless it is in double quotes. In a pair, dots are part of the names.

    Examples
    --------
    >>> split_table_name("sales.users"), split_table_name('sales."us.ers"'), split_table_name(("sales", "us.ers"))
    (('sales', 'users'), ('sales', 'us.ers'), ('sales', 'us.ers'))
    """
    if isinstance(table, str):
        written = _PARTS.findall(table)
        plain_or_quoted = all(_QUOTED.fullmatch(part) or not part.startswith('"') for part in written)
        sound = plain_or_quoted and ".".join(written) == table
        names: list[object] = [
            part[1:-1].replace('""', '"') if _QUOTED.fullmatch(part) else part for part in written
        ]
    else:
        sound, names = isinstance(table, Sequence), list(table) if isinstance(table, Sequence) else []
    if not (sound and names and all(isinstance(part, str) and part and "\0" not in part for part in names)):
        raise InputError(
            f"table={table!r} is not a name; write 'users', 'sales.users' or ('sales', 'users') with a schema"
        )
    if len(names) > _MAX_PARTS:
        raise InputError(
            f"table={table!r} has {len(names)} names; give a schema and a table, and a name with a dot in double "
            """quotes, 'sales."us.ers"', or in a pair, ('sales', 'us.ers')"""
        )
    return tuple(map(str, names))


def check_table_name(table: TableName) -> TableName:
    """Check the name of a table, and return it."""
    parts = split_table_name(table)
    return table if isinstance(table, str) else parts


def quote_table(table: TableName) -> str:
    """The name of a table in SQL."""
    return ".".join(map(quote_name, split_table_name(table)))


_WIDER = {
    pa.uint8(): pa.int16(),
    pa.uint16(): pa.int32(),
    pa.uint32(): pa.int64(),
    pa.uint64(): pa.decimal128(20),
    pa.float16(): pa.float32(),
    pa.large_string(): pa.string(),
    pa.string_view(): pa.string(),
    pa.large_binary(): pa.binary(),
    pa.binary_view(): pa.binary(),
}
_SAME_TYPES = {
    pa.bool_(),
    pa.int8(),
    pa.int16(),
    pa.int32(),
    pa.int64(),
    pa.float32(),
    pa.float64(),
    pa.string(),
    pa.binary(),
    pa.date32(),
}


def portable_type(kind: pa.DataType) -> pa.DataType | None:
    """The type to which values are converted without loss; None if there is no such type.

    Examples
    --------
    >>> portable_type(pa.uint32()), portable_type(pa.time64("us"))
    (DataType(int64), None)
    """
    if kind in _WIDER or kind in _SAME_TYPES or pa.types.is_decimal128(kind):
        return _WIDER.get(kind, kind)
    if pa.types.is_dictionary(kind):
        return portable_type(kind.value_type)
    if pa.types.is_timestamp(kind) and kind.unit != "ns":
        return pa.timestamp("us", "UTC" if kind.tz else None)
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        inner = portable_type(kind.value_type)
        return None if inner is None else pa.list_(inner)
    if pa.types.is_struct(kind):
        inners = [(field.name, portable_type(field.type)) for field in kind.fields]
        return None if any(inner is None for _, inner in inners) else pa.struct(inners)
    return None
