"""Relations: tables of a database whose rows a stream is looked up in."""

from tidegate.relations.duckdb import DuckDB
from tidegate.relations.find import find
from tidegate.relations.postgresql import PostgreSQL
from tidegate.relations.relation import Relation, Source, UnreachableError
from tidegate.relations.sqlite import SQLite

__all__ = ["DuckDB", "PostgreSQL", "Relation", "SQLite", "Source", "UnreachableError", "find"]
