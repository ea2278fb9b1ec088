"""Tables of databases, in which the rows of a stream are looked up.

| module | contents |
|---|---|
| `relation` | the contract: `Relation` and `OpenRelation` |
| `duckdb`, `sqlite`, `postgresql` | one database each |
| `file` | the common part of DuckDB and SQLite |
| `sqlite_types` | the types of SQLite's columns |
| `address` | a relation from a path or URL |
"""

from tidegate.relations.address import as_relation
from tidegate.relations.duckdb import DuckDB
from tidegate.relations.postgresql import PostgreSQL
from tidegate.relations.relation import OpenRelation, Relation, UnreachableError
from tidegate.relations.sqlite import SQLite

__all__ = ["DuckDB", "OpenRelation", "PostgreSQL", "Relation", "SQLite", "UnreachableError", "as_relation"]
