"""Relations in a PostgreSQL database."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Final
from urllib.parse import unquote, urlsplit

import pyarrow as pa
import pyarrow.compute as pc

from tidegate.relations.relation import (
    OpenRelation,
    Relation,
    RelationColumn,
    TableName,
    UnreachableError,
    check_table_name,
    quote_name,
    quote_table,
)
from tidegate.types import InputError

_TYPES: Final = {
    "bool": pa.bool_(),
    "int2": pa.int16(),
    "int4": pa.int32(),
    "int8": pa.int64(),
    "float4": pa.float32(),
    "float8": pa.float64(),
    "text": pa.string(),
    "varchar": pa.string(),
    "bpchar": pa.string(),
    "name": pa.string(),
    "bytea": pa.binary(),
    "date": pa.date32(),
    "timestamp": pa.timestamp("us"),
    "timestamptz": pa.timestamp("us", "UTC"),
}
_AS_TEXT: Final = ("uuid", "json", "jsonb")
_TEXTS: Final = re.compile(r"text|name|character varying(\(\d+\))?")
_PADDED: Final = re.compile(r"bpchar|character\(\d+\)")
_SECRETS: Final = ("password", "sslpassword")
_DEADLINES: Final = {
    "connect_timeout": 10,
    "keepalives_idle": 10,
    "keepalives_interval": 5,
    "keepalives_count": 2,
    "tcp_user_timeout": 20_000,
}
"""After what time a silent server counts as unreachable: settings of libpq, in seconds; the last in milliseconds."""
_NUMERIC: Final = re.compile(r"numeric\((\d+),(-?\d+)\)")
_MAX_DIGITS: Final = 38
_UUID: Final = "^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$"

# The search path resolves names, as in any other query.
_COLUMNS: Final = """
select a.attname::text, t.typname::text, t.typtype::text,
  case when d.typtype = 'd' then format_type(t.oid, d.typtypmod) else format_type(t.oid, a.atttypmod) end
from pg_attribute a join pg_type d on d.oid = a.atttypid
  join pg_type t on t.oid = case when d.typtype = 'd' then d.typbasetype else d.oid end
where a.attrelid = to_regclass($1) and a.attnum > 0 and not a.attisdropped order by a.attnum
"""


@dataclass(frozen=True)
class PostgreSQL(Relation):
    """A table or view of a PostgreSQL database, read by its ADBC driver, which returns Arrow columns.

    Each process of the query keeps one connection, and opens a new one if it fails. `numeric(p, s)` is read as a
    decimal; uuid, json and enumerations as text; `char(n)` without its padding; a domain as its base type.

    A server is unreachable if it does not complete a connection within 10 s, or if its host is silent for 20 s. The
    URL can set other limits (`?connect_timeout=30&tcp_user_timeout=60000`).

    Parameters
    ----------
    dsn
        A URL, "postgresql://user:password@host:port/database". Neither messages nor `repr` show the password. It is
        sent to the workers; it is not needed if these have a `.pgpass` file.
    table
        The table or view, with its schema if that is not in the search path: "users", "sales.users" or
        ("sales", "users"). Write a name with a dot in a pair, or in double quotes: '"us.ers"'.
    """

    dsn: str = field(repr=False)
    table: TableName

    def __post_init__(self) -> None:
        object.__setattr__(self, "table", check_table_name(self.table))
        scheme = self.dsn.partition("://")[0] if isinstance(self.dsn, str) else None
        if scheme not in ("postgresql", "postgres") or re.search(r"\s", self.dsn):
            raise InputError(
                "dsn= is not a PostgreSQL URL; write it like 'postgresql://user@host:5432/database', with %20 for "
                "a space"
            )
        # Neither the text nor the exception is shown: both may contain a part of a password.
        try:
            url = urlsplit(self.dsn)
            _ = url.port
        except ValueError:
            raise InputError(
                "the host or port in dsn= cannot be read; write %40 for @, %3A for :, %2F for / in a password"
            ) from None
        if "@" in url.path + url.query + url.fragment or url.netloc.count("@") > 1:
            raise InputError(
                "dsn= has an @ that is not before the host; write %40 for @, %2F for /, %3F for ?, %23 for # "
                "in a password"
            )

    @property
    def description(self) -> str:
        """The name in messages, without secrets."""
        url = urlsplit(self.dsn)
        where = f"{url.hostname or 'localhost'}:{url.port or 5432}{url.path}"
        return f"{self.table!r} in PostgreSQL at {where}"

    @property
    def address(self) -> str:
        """The URL with all time limits: without them, a query would wait forever for a host that vanished."""
        given = {unquote(pair.partition("=")[0]) for pair in urlsplit(self.dsn).query.split("&")}
        if "PGCONNECT_TIMEOUT" in os.environ:
            given.add("connect_timeout")
        missing = [f"{name}={value}" for name, value in _DEADLINES.items() if name not in given]
        return "&".join([self.dsn if "?" in self.dsn else f"{self.dsn}?", *missing]).replace("?&", "?")

    def open(self) -> OpenRelation:
        """Open it in this process."""
        try:
            import adbc_driver_postgresql  # noqa: F401, PLC0415 - only where it is used
        except ModuleNotFoundError as error:
            raise InputError(
                f"a PostgreSQL relation needs {error.name}; run: pip install 'tidegate[lookup]'"
            ) from error
        return _OpenPostgreSQL(self)

    def without_secret(self, message: str) -> str:
        """A message without passwords."""
        url = urlsplit(self.dsn)
        given = (pair.partition("=") for pair in url.query.split("&"))
        secrets = [url.password, *(value for name, _, value in given if unquote(name) in _SECRETS)]
        forms = {form for secret in secrets if secret for form in (secret, unquote(secret))}
        for form in sorted(forms, key=len, reverse=True):  # one may be part of another
            message = message.replace(form, "***")
        return message


class _OpenPostgreSQL(OpenRelation):
    keep_open: ClassVar[bool] = True

    def __init__(self, relation: PostgreSQL) -> None:
        self._relation = relation
        self._connection: Any = None

    def columns(self) -> list[RelationColumn]:
        found = self._query(_COLUMNS, pa.array([quote_table(self._relation.table)]))
        if not found.num_rows:
            raise InputError(f"{self._relation.description} does not exist; name an existing table or view")
        return [
            RelationColumn(row[0], _type_of(*row[1:]), row[3])
            for row in zip(*found.to_pydict().values(), strict=True)
        ]

    def rows(self, key: RelationColumn, keys: pa.Array, columns: Sequence[RelationColumn]) -> pa.Table:
        selected = ", ".join(_selected(column) for column in (key, *columns))
        table, (match, sent) = quote_table(self._relation.table), _matching(key, keys)
        # A list of one element is one parameter: all keys.
        wanted = pa.ListArray.from_arrays(pa.array([0, len(sent)], pa.int32()), sent)
        found = self._query(f"select {selected} from {table} where {match}", wanted)  # noqa: S608 - quoted
        arrays = [
            self._number(column, values) if pa.types.is_decimal(column.type) else values
            for column, values in zip((key, *columns), found.columns, strict=True)
        ]
        return pa.table(arrays, found.column_names)

    def _number(self, column: RelationColumn, values: pa.ChunkedArray) -> pa.ChunkedArray:
        try:
            return values.cast(column.type)
        except pa.ArrowInvalid as error:
            raise InputError(
                f"{column.name!r} of {self._relation.description} is declared {column.declared}, but Spark has no "
                f"such decimal ({error}); correct it, or exclude the column with columns="
            ) from error

    def _query(self, sql: str, parameter: pa.Array) -> pa.Table:
        import adbc_driver_manager  # noqa: PLC0415 - only where it is used
        from adbc_driver_postgresql import dbapi  # noqa: PLC0415

        try:
            if self._connection is None:
                self._connection = dbapi.connect(self._relation.address, autocommit=True)
            with self._connection.cursor() as cursor:
                cursor.execute(sql, pa.RecordBatch.from_arrays([parameter], ["keys"]))
                return cursor.fetch_arrow_table()
        except adbc_driver_manager.ProgrammingError as error:
            message = self._relation.without_secret(str(error).splitlines()[0])
            raise InputError(f"{self._relation.description}: {message}") from None
        except adbc_driver_manager.Error as error:
            self.close()
            # Without the cause, which may contain the address.
            raise UnreachableError(self._relation.without_secret(str(error).splitlines()[0])) from None

    def close(self) -> None:
        import adbc_driver_manager  # noqa: PLC0415 - only where it is used

        connection, self._connection = self._connection, None
        if connection is not None:
            try:
                connection.close()
            except adbc_driver_manager.Error:
                return  # closed already


def _type_of(name: str, sort: str, declared: str) -> pa.DataType | None:
    if numeric := _NUMERIC.fullmatch(declared):
        # With a negative or a large scale, all digits are before the point, or far after it.
        digits, scale = map(int, numeric.groups())
        digits, scale = (digits - scale, 0) if scale < 0 else (max(digits, scale), scale)
        return pa.decimal128(digits, scale) if digits <= _MAX_DIGITS else None
    return pa.string() if name in _AS_TEXT or sort == "e" else _TYPES.get(name)


def _selected(column: RelationColumn) -> str:
    """The column in a select list; as text if the driver does not return its own type."""
    return quote_name(column.name) + (
        "::text" if pa.types.is_decimal(column.type) or _becomes_text(column) else ""
    )


def _becomes_text(column: RelationColumn) -> bool:
    """Whether a column that is not text in PostgreSQL is read as text."""
    return bool(column.type == pa.string() and not _TEXTS.fullmatch(column.declared))


def _matching(key: RelationColumn, keys: pa.Array) -> tuple[str, pa.Array]:
    """The condition and its keys. Keys are compared in the column's own type, so that an index on it is used."""
    name = quote_name(key.name)
    if pa.types.is_integer(key.type):
        return f"{name} = any($1)", keys.cast(pa.int64())
    if key.declared == "uuid":
        # Other texts match no uuid, and PostgreSQL would fail to parse them.
        return f"{name} = any($1::text[]::uuid[])", keys.filter(pc.match_substring_regex(keys, _UUID))
    if _PADDED.fullmatch(key.declared):
        return f"{name} = any($1::text[]::bpchar[])", keys
    if _becomes_text(key):
        return f"{name}::text = any($1)", keys
    if key.type in (pa.string(), pa.binary()):
        return f"{name} = any($1)", keys
    return f"{name} = any($1::text[]::{key.declared}[])", keys.cast(pa.string())
