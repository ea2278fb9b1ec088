"""Tables of databases in which the rows of a stream are looked up."""

from tidegate.relations.duckdb import DuckDB
from tidegate.relations.find import find
from tidegate.relations.postgresql import PostgreSQL
from tidegate.relations.relation import OpenRelation, Relation, UnreachableError
from tidegate.relations.sqlite import SQLite

__all__ = ["DuckDB", "OpenRelation", "PostgreSQL", "Relation", "SQLite", "UnreachableError", "find"]
