"""The common part of relations in a file: an embedded database that is closed between tasks."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Generic, TypeVar

from tidegate.relations.relation import OpenRelation, Relation, TableName, UnreachableError, check_table_name
from tidegate.types import InputError

T = TypeVar("T")
Connection = TypeVar("Connection")


@dataclass(frozen=True)
class FileRelation(Relation):
    """A table or view of a file.

    Parameters
    ----------
    path
        The file; every process of the query must reach it by this path. A relative path starts from the current
        folder.
    table
        The table or view, with its schema if necessary: "users", "sales.users" or ("sales", "users"). Write a name
        with a dot in a pair, or in double quotes: '"us.ers"'.
    """

    database: ClassVar[str]
    """The name of the database in messages."""

    path: str
    table: TableName

    def __post_init__(self) -> None:
        # A worker may run in another folder.
        object.__setattr__(self, "path", str(Path(self.path).absolute()))
        object.__setattr__(self, "table", check_table_name(self.table))

    @property
    def description(self) -> str:
        """The name in messages."""
        return f"{self.table!r} in the {self.database} file {self.path!r}"


class OpenFile(OpenRelation, Generic[Connection]):
    """A file that is opened, for reading only, by the first query and stays open until `close`.

    Parameters
    ----------
    relation
        The file and the table.
    driver
        The database's module, whose exceptions all derive from its `Error`.
    """

    def __init__(self, relation: FileRelation, driver: Any) -> None:  # noqa: ANN401 - modules have no common type
        self._relation, self._driver = relation, driver
        self._connection: Connection | None = None

    @abstractmethod
    def _connect(self) -> Connection:
        """Open the file."""

    @abstractmethod
    def _disconnect(self, connection: Connection) -> None:
        """Close the file."""

    @abstractmethod
    def _is_permanent(self, error: Exception) -> bool:
        """Whether the same query would fail again if it is repeated."""

    def _query(self, query: Callable[[Connection], T]) -> T:
        try:
            if self._connection is None:
                self._connection = self._connect()
            return query(self._connection)
        except self._driver.Error as error:
            self.close()
            message = str(error).splitlines()[0]
            if self._is_permanent(error):
                raise InputError(f"{self._relation.description}: {message}") from error
            raise UnreachableError(message) from error

    def close(self) -> None:
        """Close the file."""
        connection, self._connection = self._connection, None
        if connection is not None:
            self._disconnect(connection)
