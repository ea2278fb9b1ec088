"""Relations in a DuckDB file."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Final

import pyarrow as pa

from tidegate.relations.file import FileRelation, OpenFile
from tidegate.relations.relation import OpenRelation, RelationColumn, portable_type, quote_name, quote_table
from tidegate.types import InputError

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

_ATTACHED: Final = "tidegate_file"


@dataclass(frozen=True)
class DuckDB(FileRelation):
    """A table or view of a DuckDB file.

    Keys are sent to DuckDB as an Arrow table, and rows are returned as one. The file is open, for reading only, from
    the first query until `close`, which a task calls at its end: an open file cannot be written.

    Parameters
    ----------
    path
        The file; every process of the query must reach it by this path.
    table
        The table or view, with its schema if that is not `main`: "users", "sales.users" or ("sales", "users"). Write
        a name with a dot in a pair, or in double quotes: '"us.ers"'.
    """

    database: ClassVar[str] = "DuckDB"

    def open(self) -> OpenRelation:
        """Open it in this process."""
        try:
            import duckdb  # noqa: PLC0415 - only where it is used
        except ModuleNotFoundError as error:
            raise InputError("a DuckDB relation needs duckdb; run: pip install 'tidegate[lookup]'") from error
        return _OpenDuckDB(self, duckdb)


class _OpenDuckDB(OpenFile["DuckDBPyConnection"]):
    """An open file. `close` detaches it but keeps DuckDB running, since starting DuckDB takes much longer."""

    _engine: DuckDBPyConnection | None = None

    def columns(self) -> list[RelationColumn]:
        table = quote_table(self._relation.table)
        schema = self._query(lambda c: c.sql(f"select * from {table} limit 0").to_arrow_table().schema)  # noqa: S608 - quoted
        return [RelationColumn(field.name, portable_type(field.type), str(field.type)) for field in schema]

    def rows(self, key: RelationColumn, keys: pa.Array, columns: Sequence[RelationColumn]) -> pa.Table:
        selected = ", ".join(f"r.{quote_name(column.name)}" for column in (key, *columns))
        # A column that is read as text is compared as text. Otherwise DuckDB would parse keys as a uuid, and fail.
        compared = f"r.{quote_name(key.name)}" + ("::varchar" if key.type == pa.string() else "")

        def query(connection: DuckDBPyConnection) -> pa.Table:
            connection.register("tidegate_wanted", pa.table({"key": keys}))
            return connection.sql(
                f"select {selected} from {quote_table(self._relation.table)} r "  # noqa: S608 - quoted
                f"join tidegate_wanted w on {compared} = w.key"
            ).to_arrow_table()

        return self._query(query)

    def _connect(self) -> DuckDBPyConnection:
        if self._engine is None:
            # Parallelism is up to Spark.
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
            # The connection is broken. Closing it also closes the file.
            connection.close()
            self._engine = None

    def _is_permanent(self, error: Exception) -> bool:
        kinds = (self._driver.ProgrammingError, self._driver.DataError, self._driver.NotSupportedError)
        return isinstance(error, kinds)
