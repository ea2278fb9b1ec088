"""Relations in a DuckDB file."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Final

import pyarrow as pa

from tidegate.relations.file import FileRelation, OpenFile
from tidegate.relations.relation import OpenRelation, RelationColumn, portable_type, quoted, quoted_table
from tidegate.types import InputError

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

_ATTACHED: Final = "tidegate_file"


@dataclass(frozen=True)
class DuckDB(FileRelation):
    """A table or view of a DuckDB file.

    Keys go to DuckDB as an Arrow table and rows come back as one. The file is open, for reading only, from the
    first query until `close`, which a task calls at its end, since the file cannot be written in the meantime.

    Parameters
    ----------
    path
        The file; every process of the query must see it under this name.
    table
        The table or view, with its schema if it is in another than `main`: "users", "sales.users" or
        ("sales", "users"). Write a name with a dot in a pair, or in double quotes: '"us.ers"'.
    """

    database: ClassVar[str] = "DuckDB"

    def open(self) -> OpenRelation:
        """Get ready to ask, in this process."""
        try:
            import duckdb  # noqa: PLC0415 - only where it is used
        except ModuleNotFoundError as error:
            raise InputError("a DuckDB relation needs duckdb; run: pip install 'tidegate[lookup]'") from error
        return _OpenDuckDB(self, duckdb)


class _OpenDuckDB(OpenFile["DuckDBPyConnection"]):
    """To start DuckDB takes much longer than to attach a file to one that runs: it stays, and the file does not."""

    _engine: DuckDBPyConnection | None = None

    def columns(self) -> list[RelationColumn]:
        table = quoted_table(self._relation.table)
        schema = self._query(lambda c: c.sql(f"select * from {table} limit 0").to_arrow_table().schema)  # noqa: S608 - quoted
        return [RelationColumn(field.name, portable_type(field.type), str(field.type)) for field in schema]

    def rows(self, key: RelationColumn, keys: pa.Array, columns: Sequence[RelationColumn]) -> pa.Table:
        selected = ", ".join(f"r.{quoted(column.name)}" for column in (key, *columns))
        # A column that becomes text is compared as text: DuckDB would parse every key as a uuid, say, and fail.
        at = f"r.{quoted(key.name)}" + ("::varchar" if key.type == pa.string() else "")

        def ask(connection: DuckDBPyConnection) -> pa.Table:
            connection.register("tidegate_wanted", pa.table({"key": keys}))
            return connection.sql(
                f"select {selected} from {quoted_table(self._relation.table)} r "  # noqa: S608 - quoted
                f"join tidegate_wanted w on {at} = w.key"
            ).to_arrow_table()

        return self._query(ask)

    def _connect(self) -> DuckDBPyConnection:
        if self._engine is None:
            # Spark decides how many queries run at once.
            self._engine = self._driver.connect(":memory:", config={"threads": 1})
            self._engine.execute("set timezone = 'UTC'")
        path = self._relation.path.replace("'", "''")
        self._engine.execute(f"attach '{path}' as {_ATTACHED} (read_only)")
        self._engine.execute(f"use {_ATTACHED}")
        return self._engine

    def _disconnect(self, connection: DuckDBPyConnection) -> None:
        try:
            connection.execute(f"use memory; detach {_ATTACHED}")
        except self._driver.Error:
            # It is broken; with it goes the file.
            connection.close()
            self._engine = None

    def _is_permanent(self, error: Exception) -> bool:
        kinds = (self._driver.ProgrammingError, self._driver.DataError, self._driver.NotSupportedError)
        return isinstance(error, kinds)
