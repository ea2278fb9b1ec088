"""Relations in an SQLite file."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import pyarrow as pa

from tidegate.relations.file import FileRelation, OpenFile
from tidegate.relations.relation import (
    OpenRelation,
    RelationColumn,
    quote_name,
    quote_table,
    split_table_name,
)
from tidegate.relations.sqlite_types import arrow_type, has_one_representation, read_values, to_sqlite
from tidegate.types import InputError


@dataclass(frozen=True)
class SQLite(FileRelation):
    """A table or view of an SQLite file, read by Python's own driver.

    SQLite does not enforce declared types. A column is read as the declared type, and a value that does not fit is an
    error; see `sqlite_types` for the rules. TIME and columns without a type cannot be read.

    Parameters
    ----------
    path
        The file; every process of the query must reach it by this path.
    table
        The table or view, with its schema if necessary: "users", "main.users" or ("main", "users").
        Write a name with a dot in a pair, or in double quotes: '"us.ers"'.
    """

    database: ClassVar[str] = "SQLite"

    def open(self) -> OpenRelation:
        """Open it in this process."""
        return _OpenSQLite(self, sqlite3)


class _OpenSQLite(OpenFile[sqlite3.Connection]):
    def columns(self) -> list[RelationColumn]:
        *schema, table = split_table_name(self._relation.table)
        found = self._query(
            lambda c: c.execute(
                "select name, type from pragma_table_info(?, ?)", (table, schema[0] if schema else "main")
            ).fetchall()
        )
        if not found:
            raise InputError(f"{self._relation.description} does not exist; name an existing table or view")
        return [
            RelationColumn(
                name,
                kind := arrow_type(declared),
                declared or "no type",
                kind is None or has_one_representation(kind),
            )
            for name, declared in found
        ]

    def rows(self, key: RelationColumn, keys: pa.Array, columns: Sequence[RelationColumn]) -> pa.Table:
        selected = ", ".join(f"r.{quote_name(column.name)}" for column in (key, *columns))
        table, at = quote_table(self._relation.table), quote_name(key.name)

        def query(connection: sqlite3.Connection) -> list[tuple[object, ...]]:
            connection.execute("delete from temp.tidegate_wanted")
            connection.executemany(
                "insert into temp.tidegate_wanted values (?)", ((to_sqlite(key),) for key in keys.to_pylist())
            )
            return connection.execute(
                f"select {selected} from temp.tidegate_wanted w join {table} r on r.{at} = w.key"  # noqa: S608 - quoted
            ).fetchall()

        found = list(zip(*self._query(query), strict=True)) or [()] * (1 + len(columns))
        arrays = [self._column(column, values) for column, values in zip((key, *columns), found, strict=True)]
        return pa.table(arrays, [f"c{i}" for i in range(len(arrays))])

    def _column(self, column: RelationColumn, values: Sequence[object]) -> pa.Array:
        try:
            return read_values(values, column.type)
        except (ValueError, pa.ArrowTypeError) as error:
            raise InputError(
                f"{column.name!r} of {self._relation.description} is declared {column.declared}, but a value is not "
                f"({error}); correct it, or exclude the column with columns="
            ) from error

    def _connect(self) -> sqlite3.Connection:
        uri = Path(self._relation.path).absolute().as_uri() + "?mode=ro"
        connection = sqlite3.connect(uri, uri=True, isolation_level=None)
        # Without a type: keys are stored unchanged, and compared by the rules of the relation's column.
        connection.execute("create temp table tidegate_wanted (key)")
        return connection

    def _disconnect(self, connection: sqlite3.Connection) -> None:
        connection.close()

    def _is_permanent(self, error: Exception) -> bool:
        # The code of an invalid statement. Locked, missing and damaged files have other codes.
        invalid = getattr(error, "sqlite_errorcode", None) == sqlite3.SQLITE_ERROR
        return invalid or isinstance(error, sqlite3.ProgrammingError)
