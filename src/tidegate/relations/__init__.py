"""Relations: tables of a database whose rows a stream is looked up in."""

from tidegate.relations.duckdb import DuckDB
from tidegate.relations.find import find
from tidegate.relations.postgresql import PostgreSQL
from tidegate.relations.relation import OpenRelation, Relation, UnreachableError
from tidegate.relations.sqlite import SQLite

__all__ = ["DuckDB", "OpenRelation", "PostgreSQL", "Relation", "SQLite", "UnreachableError", "find"]
