"""What relations in a file have in common: the database runs within the process, and lets go between tasks."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Generic, TypeVar

from tidegate.relations.relation import OpenRelation, Relation, TableName, UnreachableError, named
from tidegate.types import InputError

T = TypeVar("T")
Connection = TypeVar("Connection")


@dataclass(frozen=True)
class FileRelation(Relation):
    """A table or view of a file.

    Parameters
    ----------
    path
        The file; every process of the query must see it under this name. A relative one starts from where this is
        called.
    table
        The table or view, with its schema if need be: "users", "sales.users" or ("sales", "users"). A name with a dot
        stands in a pair, or in double quotes: '"us.ers"'.
    """

    database: ClassVar[str]
    """What messages call the database."""

    path: str
    table: TableName

    def __post_init__(self) -> None:
        # A worker may have been started elsewhere.
        object.__setattr__(self, "path", str(Path(self.path).absolute()))
        object.__setattr__(self, "table", named(self.table))

    @property
    def described(self) -> str:
        """What messages call it."""
        return f"{self.table!r} in the {self.database} file {self.path!r}"


class OpenFile(OpenRelation, Generic[Connection]):
    """A file that is opened, for reading only, by the first question and stays so until `close`.

    Parameters
    ----------
    relation
        Where the file is.
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
    def _is_lasting(self, error: Exception) -> bool:
        """Whether the same question would fail again, however often it is asked."""

    def _asked(self, ask: Callable[[Connection], T]) -> T:
        try:
            if self._connection is None:
                self._connection = self._connect()
            return ask(self._connection)
        except self._driver.Error as error:
            self.close()
            told = str(error).splitlines()[0]
            if self._is_lasting(error):
                raise InputError(f"{self._relation.described}: {told}") from error
            raise UnreachableError(told) from error

    def close(self) -> None:
        """Let go of the file."""
        connection, self._connection = self._connection, None
        if connection is not None:
            self._disconnect(connection)
