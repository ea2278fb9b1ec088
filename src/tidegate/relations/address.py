"""Relations from the address of a server or file."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

from tidegate.relations.duckdb import DuckDB
from tidegate.relations.postgresql import PostgreSQL
from tidegate.relations.relation import Relation, TableName
from tidegate.relations.sqlite import SQLite
from tidegate.types import InputError

_FILES: Final[dict[str, type[DuckDB | SQLite]]] = {
    ".duckdb": DuckDB,
    ".ddb": DuckDB,
    ".sqlite": SQLite,
    ".sqlite3": SQLite,
    ".db": SQLite,
}
_PATH: Final = re.compile(r"[\w./\\+-]+")
"""Text that contains no password: neither an address of a server nor settings."""


def as_relation(relation: Relation | str | Path, table: TableName | None = None) -> Relation:
    """Return the relation itself, or a table of a server (given its URL) or of a file.

    Examples
    --------
    >>> as_relation("users.duckdb", "users")
    DuckDB(path='.../users.duckdb', table='users')
    >>> as_relation("postgresql://ann:secret@db/shop", "users")
    PostgreSQL(table='users')
    >>> as_relation("users.csv", "users")
    Traceback (most recent call last):
    tidegate.InputError: 'users.csv' is not a relation; give 'postgresql://...', a file that ends in .duckdb,
    .ddb, .sqlite, .sqlite3, .db, or a relation such as tidegate.relations.DuckDB(...)
    """
    if isinstance(relation, Relation):
        if table is not None:
            raise InputError(f"table={table!r} with {relation!r}, which has a table already; leave it out")
        return relation
    if not isinstance(relation, str | Path):
        raise InputError(f"a {type(relation).__name__} is not a relation; use one of tidegate.relations")
    if table is None:
        raise InputError("a path or URL needs table=, the table or view to look rows up in")
    if str(relation).startswith(("postgresql://", "postgres://")):
        return PostgreSQL(str(relation), table)
    kind = None if _is_server(str(relation)) else _FILES.get(Path(relation).suffix.lower())
    if kind is None:
        start = str(relation).partition("://")[0]
        shown = repr(start) if _PATH.fullmatch(start) else "this text (not shown, it may contain a password)"
        raise InputError(
            f"{shown} is not a relation; give 'postgresql://...', a file that ends in "
            f"{', '.join(_FILES)}, or a relation such as tidegate.relations.DuckDB(...)"
        )
    return kind(str(relation), table)


def _is_server(text: str) -> bool:
    """Whether the text is an address of a server, with any suffix."""
    return "://" in text or "password=" in text.lower()
