"""Relations in an SQLite file."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import pyarrow as pa

from tidegate.relations.file import FileRelation, OpenFile
from tidegate.relations.relation import OpenRelation, RelationColumn, parts_of, quoted, quoted_table
from tidegate.relations.sqlite_types import is_one_form, read, stored, type_of
from tidegate.types import InputError


@dataclass(frozen=True)
class SQLite(FileRelation):
    """A table or view of an SQLite file, read by Python's own driver.

    SQLite declares types and does not enforce them. A column is read as it is declared; a value that does not fit is
    an error that names it. `sqlite_types` has the rules. Not to be had are TIME and columns without a type.

    Parameters
    ----------
    path
        The file; every process of the query must see it under this name.
    table
        The table or view, with its schema if necessary: "users", "main.users" or ("main", "users").
        Write a name with a dot in a pair, or in double quotes: '"us.ers"'.
    """

    database: ClassVar[str] = "SQLite"

    def open(self) -> OpenRelation:
        """Get ready to ask, in this process."""
        return _OpenSQLite(self, sqlite3)


class _OpenSQLite(OpenFile[sqlite3.Connection]):
    def columns(self) -> list[RelationColumn]:
        *schema, table = parts_of(self._relation.table)
        found = self._query(
            lambda c: c.execute(
                "select name, type from pragma_table_info(?, ?)", (table, schema[0] if schema else "main")
            ).fetchall()
        )
        if not found:
            raise InputError(f"{self._relation.described} does not exist; name an existing table or view")
        return [
            RelationColumn(
                name, kind := type_of(declared), declared or "no type", kind is None or is_one_form(kind)
            )
            for name, declared in found
        ]

    def rows(self, key: RelationColumn, keys: pa.Array, columns: Sequence[RelationColumn]) -> pa.Table:
        selected = ", ".join(f"r.{quoted(column.name)}" for column in (key, *columns))
        table, at = quoted_table(self._relation.table), quoted(key.name)

        def ask(connection: sqlite3.Connection) -> list[tuple[object, ...]]:
            connection.execute("delete from temp.tidegate_wanted")
            connection.executemany(
                "insert into temp.tidegate_wanted values (?)", ((stored(key),) for key in keys.to_pylist())
            )
            return connection.execute(
                f"select {selected} from temp.tidegate_wanted w join {table} r on r.{at} = w.key"  # noqa: S608 - quoted
            ).fetchall()

        found = list(zip(*self._query(ask), strict=True)) or [()] * (1 + len(columns))
        arrays = [self._column(column, values) for column, values in zip((key, *columns), found, strict=True)]
        return pa.table(arrays, [f"c{i}" for i in range(len(arrays))])

    def _column(self, column: RelationColumn, values: Sequence[object]) -> pa.Array:
        try:
            return read(values, column.type)
        except (ValueError, pa.ArrowTypeError) as error:
            raise InputError(
                f"{column.name!r} of {self._relation.described} is declared {column.declared}, and a value is not "
                f"({error}); correct it, or leave the column out by columns="
            ) from error

    def _connect(self) -> sqlite3.Connection:
        uri = Path(self._relation.path).absolute().as_uri() + "?mode=ro"
        connection = sqlite3.connect(uri, uri=True, isolation_level=None)
        # No type: a key is compared as what it is, and then as the relation's column takes it.
        connection.execute("create temp table tidegate_wanted (key)")
        return connection

    def _disconnect(self, connection: sqlite3.Connection) -> None:
        connection.close()

    def _is_permanent(self, error: Exception) -> bool:
        # Its code for a statement that is wrong; files that are locked, gone or torn have codes of their own.
        wrong = getattr(error, "sqlite_errorcode", None) == sqlite3.SQLITE_ERROR
        return wrong or isinstance(error, sqlite3.ProgrammingError)
