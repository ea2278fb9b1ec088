"""What a relation is: where rows are, and what can be asked of it once it is open."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Final, TypeAlias

import pyarrow as pa

from tidegate.types import InputError

TableName: TypeAlias = str | Sequence[str]
"""A table, with its schema if need be: "users", "sales.users", ("sales", "users")."""

_QUOTED: Final = re.compile(r'"(?:[^"]|"")+"')
_PARTS: Final = re.compile(r'(?:^|(?<=\.))(?:"(?:[^"]|"")+"(?=\.|$)|[^.]*)')
_MOST_PARTS: Final = 2


class UnreachableError(Exception):
    """The database did not answer; it may if asked again."""


@dataclass(frozen=True)
class Column:
    """A column of a relation.

    Parameters
    ----------
    name
        What the database calls it.
    type
        What its values are in Arrow; None where they cannot be had.
    declared
        What the database says its type is.
    keyed
        Whether rows can be found by it; not where one value can be written in several ways.
    """

    name: str
    type: pa.DataType | None
    declared: str
    keyed: bool = True


class OpenRelation(ABC):
    """A relation that is open, in one process.

    What the database reports by an exception that may pass leaves as `UnreachableError`; after one, and after
    `close`, the next call opens it anew.
    """

    lasting: ClassVar[bool] = False
    """Whether it should stay open while nothing is asked; a file that is open may keep others from writing."""

    @abstractmethod
    def columns(self) -> list[Column]:
        """What columns there are."""

    @abstractmethod
    def rows(self, key: Column, keys: pa.Array, columns: Sequence[Column]) -> pa.Table:
        """All rows that have one of these keys, by one query: the key, then the columns, of their types."""

    @abstractmethod
    def close(self) -> None:
        """Let go of the database."""


@dataclass(frozen=True)
class Relation(ABC):
    """Where the rows are: plain configuration, which travels to the processes that open it."""

    @property
    @abstractmethod
    def described(self) -> str:
        """What messages call it; without any secret."""

    @abstractmethod
    def open(self) -> OpenRelation:
        """Get ready to ask, in this process."""


def quoted(name: str) -> str:
    """A name as SQL takes it, whatever is in it.

    Examples
    --------
    >>> quoted('users"; drop table users; --')
    '"users""; drop table users; --"'
    """
    escaped = name.replace('"', '""')
    return f'"{escaped}"'


def parts_of(table: TableName) -> tuple[str, ...]:
    """A table's name, with that of its schema in front if there is one.

    A dot in a text parts the two, unless it stands between double quotes; in a pair of names it is a dot.

    Examples
    --------
    >>> parts_of("sales.users"), parts_of('sales."us.ers"'), parts_of(("sales", "us.ers"))
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
    if len(names) > _MOST_PARTS:
        raise InputError(
            f"table={table!r} has {len(names)} names; give a schema and a table, and a name with a dot in double "
            """quotes, 'sales."us.ers"', or in a pair, ('sales', 'us.ers')"""
        )
    return tuple(map(str, names))


def named(table: TableName) -> TableName:
    """A table's name as it was given, if it is one."""
    parts = parts_of(table)
    return table if isinstance(table, str) else parts


def quoted_table(table: TableName) -> str:
    """A table's name as SQL takes it."""
    return ".".join(map(quoted, parts_of(table)))


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
_PLAIN = {
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


def plain(kind: pa.DataType) -> pa.DataType | None:
    """The type in which values of another can be handed on without loss; None where there is none.

    Examples
    --------
    >>> plain(pa.uint32()), plain(pa.dictionary(pa.int8(), pa.string())), plain(pa.time64("us"))
    (DataType(int64), DataType(string), None)
    """
    if kind in _WIDER or kind in _PLAIN or pa.types.is_decimal128(kind):
        return _WIDER.get(kind, kind)
    if pa.types.is_dictionary(kind):
        return plain(kind.value_type)
    if pa.types.is_timestamp(kind) and kind.unit != "ns":
        return pa.timestamp("us", "UTC" if kind.tz else None)
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        inner = plain(kind.value_type)
        return None if inner is None else pa.list_(inner)
    if pa.types.is_struct(kind):
        inners = [(field.name, plain(field.type)) for field in kind.fields]
        return None if any(inner is None for _, inner in inners) else pa.struct(inners)
    return None
