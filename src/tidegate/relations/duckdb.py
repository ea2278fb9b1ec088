"""Relations in a DuckDB file."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

import pyarrow as pa

from tidegate.relations.relation import (
    Column,
    Relation,
    Source,
    UnreachableError,
    parts_of,
    plain,
    quoted,
    quoted_table,
)
from tidegate.types import InputError

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

T = TypeVar("T")


@dataclass(frozen=True)
class DuckDB(Relation):
    """A table or view of a DuckDB file.

    Keys go to DuckDB as an Arrow table and rows come back as one. The file is open, for reading only, while rows
    are fetched and not in between, since nobody may write it while it is.

    Parameters
    ----------
    path
        The file; every process of the query must see it under this name.
    table
        The table or view, with its schema if it is in another than `main`.
    """

    path: str
    table: str

    def __post_init__(self) -> None:
        object.__setattr__(self, "path", str(self.path))
        parts_of(self.table)

    @property
    def described(self) -> str:
        """What messages call it."""
        return f"{self.table!r} in the DuckDB file {self.path!r}"

    def open(self) -> Source:
        """Get ready to ask, in this process."""
        try:
            import duckdb  # noqa: F401, PLC0415 - only where it is used
        except ModuleNotFoundError as error:
            raise InputError("a DuckDB relation needs duckdb; run: pip install 'tidegate[lookup]'") from error
        return _DuckDBSource(self)


class _DuckDBSource(Source):
    def __init__(self, relation: DuckDB) -> None:
        self._relation = relation
        self._connection: DuckDBPyConnection | None = None

    def columns(self) -> list[Column]:
        table = quoted_table(self._relation.table)
        schema = self._asked(lambda c: c.sql(f"select * from {table} limit 0").to_arrow_table().schema)  # noqa: S608 - quoted
        return [Column(field.name, plain(field.type), str(field.type)) for field in schema]

    def rows(self, key: Column, keys: pa.Array, columns: Sequence[Column]) -> pa.Table:
        selected = ", ".join(f"r.{quoted(column.name)}" for column in (key, *columns))
        table, at = quoted_table(self._relation.table), quoted(key.name)

        def ask(connection: DuckDBPyConnection) -> pa.Table:
            connection.register("tidegate_wanted", pa.table({"key": keys}))
            return connection.sql(
                f"select {selected} from {table} r join tidegate_wanted w on r.{at} = w.key"  # noqa: S608 - quoted
            ).to_arrow_table()

        return self._asked(ask)

    def _asked(self, ask: Callable[[Any], T]) -> T:
        import duckdb  # noqa: PLC0415 - only where it is used

        try:
            if self._connection is None:
                self._connection = duckdb.connect(self._relation.path, read_only=True)
                # What two queries of a stream may do at once is Spark's to say.
                self._connection.execute("set threads = 1; set timezone = 'UTC'")
            return ask(self._connection)
        except duckdb.CatalogException as error:
            raise InputError(f"{self._relation.described}: {str(error).splitlines()[0]}") from error
        except duckdb.Error as error:
            self.close()
            raise UnreachableError(str(error).splitlines()[0]) from error

    def close(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None
