"""Every database returns the requested rows, in the declared types."""

from __future__ import annotations

import pickle
import socket
import sqlite3
import subprocess
import sys
import traceback
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from urllib.parse import parse_qsl, urlsplit

import duckdb
import pyarrow as pa
import pytest

from tests import postgres
from tidegate import relations
from tidegate.relations import postgresql
from tidegate.relations.relation import Relation, RelationColumn, UnreachableError
from tidegate.types import InputError

ODD = 'us"ers; drop table x'


def rows(relation: Relation, key: str, keys: pa.Array, *names: str) -> dict[object, tuple[object, ...]]:
    source = relation.open()
    try:
        columns = {column.name: column for column in source.columns()}
        found = source.rows(columns[key], keys, [columns[name] for name in names])
        values = [
            column.cast(columns[name].type).to_pylist()
            for name, column in zip((key, *names), found.columns, strict=True)
        ]
    finally:
        source.close()
    return {row[0]: row[1:] for row in zip(*values, strict=True)}


def types(relation: Relation) -> dict[str, pa.DataType | None]:
    source = relation.open()
    try:
        return {column.name: column.type for column in source.columns()}
    finally:
        source.close()


def test_duckdb(tmp_path: Path) -> None:
    file = tmp_path / "a.duckdb"
    quote_name = ODD.replace('"', '""')
    with duckdb.connect(str(file)) as connection:
        connection.execute(
            f'create table "{quote_name}" as select range::integer as id, \'n\' || range as "na""me", '  # noqa: S608 - our own
            "(range / 4)::decimal(10, 2) as price, range::utinyint as small, 'b'::enum ('a', 'b') as kind, "
            "timestamptz '2026-01-01 00:00:00+00' as at, [1, 2] as list, {'x': range} as struct, "
            "time '12:00' as noon from range(5)"
        )
    relation = relations.DuckDB(str(file), ODD)
    assert types(relation) == {
        "id": pa.int32(),
        'na"me': pa.string(),
        "price": pa.decimal128(10, 2),
        "small": pa.int16(),
        "kind": pa.string(),
        "at": pa.timestamp("us", "UTC"),
        "list": pa.list_(pa.int32()),
        "struct": pa.struct([("x", pa.int64())]),
        "noon": None,
    }
    found = rows(relation, "id", pa.array([1, 3, 77]), 'na"me', "small", "kind", "at", "list", "struct")
    at = datetime(2026, 1, 1, tzinfo=UTC)
    assert found == {i: (f"n{i}", i, "b", at, [1, 2], {"x": i}) for i in (1, 3)}
    # Nobody keeps the file open.
    with duckdb.connect(str(file)) as connection:
        connection.execute("create table more (id integer)")


def test_sqlite(tmp_path: Path) -> None:
    file = tmp_path / "a ?#.sqlite"
    connection = sqlite3.connect(file)
    connection.execute(
        "create table users (id integer primary key, name varchar(9) collate nocase, score real, ok boolean, "
        "raw blob, day date)"
    )
    connection.executemany(
        "insert into users values (?, ?, ?, ?, ?, ?)",
        [
            (2**62, "Ann", 1.5, 1, b"\x00", "2026-01-01"),
            (2, "bob", 7, 0, None, None),
            (3, None, None, None, b"", None),
        ],
    )
    connection.commit()
    relation = relations.SQLite(str(file), "users")
    kinds = [pa.int64(), pa.string(), pa.float64(), pa.bool_(), pa.binary(), pa.date32()]
    assert list(types(relation).values()) == kinds
    found = rows(relation, "id", pa.array([2**62, 2, 3, 4]), "name", "score", "ok", "raw", "day")
    assert found == {
        2**62: ("Ann", 1.5, True, b"\x00", date(2026, 1, 1)),
        2: ("bob", 7.0, False, None, None),
        3: (None, None, None, b"", None),
    }
    assert rows(relation, "id", pa.array([9]), "name") == {}
    # The database ignores case here; the cache compares keys exactly.
    assert rows(relation, "name", pa.array(["ANN", "b'ob"]), "id") == {"Ann": (2**62,)}
    connection.execute("insert into users (id, score) values (9, 'much')")
    connection.commit()
    with pytest.raises(InputError, match=r"'score' of 'users' .* is declared REAL, but a value is not"):
        rows(relation, "id", pa.array([9]), "score")
    connection.close()


def test_sqlite_with_types_of_a_public_database(tmp_path: Path) -> None:
    """As public databases declare their columns: NVARCHAR(160), NUMERIC(10,2), DATETIME."""
    file = tmp_path / "shop.sqlite"
    connection = sqlite3.connect(file)
    connection.execute(
        "create table [Invoice] ([InvoiceId] INTEGER NOT NULL, [InvoiceDate] DATETIME NOT NULL, "
        "[BillingCity] NVARCHAR(40), [Total] NUMERIC(10,2) NOT NULL, [Tax] DECIMAL, "
        "constraint [PK_Invoice] primary key ([InvoiceId]))"
    )
    connection.executemany(
        "insert into Invoice values (?, ?, ?, ?, ?)",
        [(1, "2026-01-01 00:00:00", "Oslo", 1.98, 1), (2, "2026-01-31T12:30", None, 14, 0.5)],
    )
    connection.commit()
    connection.close()
    relation = relations.SQLite(str(file), "Invoice")
    assert list(types(relation).values()) == [
        pa.int64(),
        pa.timestamp("us"),
        pa.string(),
        pa.decimal128(10, 2),
        pa.float64(),
    ]
    found = rows(relation, "InvoiceId", pa.array([1, 2]), "InvoiceDate", "BillingCity", "Total", "Tax")
    assert found == {
        1: (datetime(2026, 1, 1), "Oslo", Decimal("1.98"), 1.0),  # noqa: DTZ001 - without a zone
        2: (datetime(2026, 1, 31, 12, 30), None, Decimal("14.00"), 0.5),  # noqa: DTZ001
    }
    prices = pa.array([Decimal("1.98"), Decimal("14.00"), Decimal("0.01")], pa.decimal128(10, 2))
    assert rows(relation, "Total", prices, "InvoiceId") == {Decimal("1.98"): (1,), Decimal("14.00"): (2,)}
    usable = {column.name: column.usable_as_key for column in relation.open().columns()}
    assert [name for name, one in usable.items() if not one] == ["InvoiceDate"]


@pytest.mark.parametrize("kind", [relations.DuckDB, relations.SQLite])
def test_missing_files_tables_and_columns(
    kind: type[relations.DuckDB | relations.SQLite], tmp_path: Path
) -> None:
    file = tmp_path / "file"
    with pytest.raises(UnreachableError):
        kind(str(file), "users").open().columns()
    if kind is relations.DuckDB:
        duckdb.connect(str(file)).close()
    else:
        sqlite3.connect(file).close()
        file.touch()
    with pytest.raises(InputError, match="users"):
        kind(str(file), "users").open().columns()


@pytest.mark.parametrize("kind", [relations.DuckDB, relations.SQLite])
def test_permanent_errors_differ_from_temporary_ones(
    kind: type[relations.DuckDB | relations.SQLite], tmp_path: Path
) -> None:
    """A column was dropped while the query ran: a retry would fail again."""
    file = tmp_path / "file"
    connection = duckdb.connect(str(file)) if kind is relations.DuckDB else sqlite3.connect(file)
    connection.execute("create table users (id integer, name text)")
    connection.commit()
    connection.close()
    column = RelationColumn("id", pa.int32(), "integer")
    for table, key in (("users", "gone"), ("gone", "id")):
        with pytest.raises(InputError, match=f"'{table}' in the .* file .*gone"):
            kind(str(file), table).open().rows(replace(column, name=key), pa.array([1]), [])
    file.unlink()
    with pytest.raises(UnreachableError):
        kind(str(file), "users").open().rows(column, pa.array([1]), [])


def test_duckdb_keys_that_are_read_as_text(tmp_path: Path) -> None:
    number = "00000000-0000-0000-0000-000000000003"
    with duckdb.connect(str(tmp_path / "a.duckdb")) as connection:
        connection.execute(f"create table t as select 1 as id, '{number}'::uuid as u, 'b'::enum ('b') as e")
    relation = relations.DuckDB(str(tmp_path / "a.duckdb"), "t")
    assert rows(relation, "u", pa.array(["no number", number]), "id") == {number: (1,)}
    assert rows(relation, "e", pa.array(["c", "b"]), "id") == {"b": (1,)}


def test_duckdb_closes_the_file_and_opens_it_again(tmp_path: Path) -> None:
    file = tmp_path / "it's.duckdb"
    write = (
        f"import duckdb; duckdb.connect({str(file)!r}).execute('create or replace table t as select 1 as id')"
    )

    def written() -> bool:
        program = [sys.executable, "-c", write]
        return subprocess.run(program, check=False, stderr=subprocess.DEVNULL).returncode == 0  # noqa: S603 - ours

    assert written()
    opened = relations.DuckDB(str(file), "t").open()
    for _ in range(2):
        assert [column.name for column in opened.columns()] == ["id"]
        assert not written()
        opened.close()
        assert written()


DOTTED = ['"a.b"', ("a.b",), ["a.b"], 'main."a.b"', ("main", "a.b")]


@pytest.mark.parametrize("table", DOTTED)
@pytest.mark.parametrize("kind", [relations.DuckDB, relations.SQLite])
def test_names_may_have_dots(
    kind: type[relations.DuckDB | relations.SQLite], table: str | tuple[str, ...], tmp_path: Path
) -> None:
    file = tmp_path / "a.b.file"
    connection = duckdb.connect(str(file)) if kind is relations.DuckDB else sqlite3.connect(file)
    connection.execute('create table "a.b" ("i.d" integer, "na.m`e" varchar)')
    connection.execute("""insert into "a.b" values (1, 'one')""")
    connection.commit()
    connection.close()
    relation = kind(str(file), table)
    assert rows(relation, "i.d", pa.array([1, 2], pa.int32()), "na.m`e") == {1: ("one",)}
    assert pickle.loads(pickle.dumps(relation)) == relation  # noqa: S301 - our own
    assert hash(relation) == hash(kind(str(file), table))


def test_duckdb_schemas_may_have_dots(tmp_path: Path) -> None:
    with duckdb.connect(str(tmp_path / "a.duckdb")) as connection:
        connection.execute(
            """create schema "s.t"; create table "s.t"."a.b" as select 1 as id, 'x' as "v.w" """
        )
    for table in (("s.t", "a.b"), '"s.t"."a.b"'):
        assert rows(relations.DuckDB(str(tmp_path / "a.duckdb"), table), "id", pa.array([1]), "v.w") == {
            1: ("x",)
        }


@pytest.mark.parametrize(
    "table",
    ["", "a..b", ".", "a\0b", 7, "a.b.c", (), ("a", ""), ("a", 7), ("a", "b", "c"), '"a.b', '"a"b"', '""'],
)
def test_invalid_table_names_are_refused(table: str) -> None:
    with pytest.raises(InputError, match=r"is not a name|has 3 names; give .*in double quotes"):
        relations.SQLite("x", table)


@pytest.fixture(scope="module")
def server() -> Iterator[postgres.Server]:
    with postgres.server() as running:
        running.execute(
            "create type mood as enum ('sad', 'glad')",
            "create schema sales",
            """create table sales."Us""ers" as select g::int4 as id, ('n' || g)::varchar(9) as name,
               g::numeric(10, 2) / 4 as loose, (g::numeric / 4)::numeric(10, 2) as price, 'glad'::mood as mood,
               timestamptz '2026-01-01 00:00:00+00' + g * interval '1 day' as at,
               timestamp '2026-01-01 00:00:00' as wall,
               date '2026-01-01' + g as day, ('00000000-0000-0000-0000-00000000000' || g)::uuid as number,
               '{"a": 1}'::jsonb as extra, decode('00ff', 'hex') || decode('0' || g, 'hex') as raw, g = 1 as first,
               g::float4 as short, '12:00'::time as noon from generate_series(1, 5) g""",
            "create type text_mood as enum ('sad', 'glad')",
            "create table padded (code char(6) primary key, other char(4), mood text_mood)",
            "insert into padded values ('ab', 'x', 'sad'), (' c', null, 'glad'), ('', 'y', null)",
            "create view loose as select code::bpchar as code, other from padded",
            "create table hidden (id integer)",
            "create domain positive as integer check (value > 0)",
            "create domain price as numeric(10, 2)",
            'create schema "s.t"',
            """create table "s.t"."a.b" as select 1::positive as "i.d", 1.5::price as "pri.ce",
               0.00012::numeric(3, 5) as small, 12000::numeric(2, -3) as big, 'NaN'::numeric(10, 2) as nan""",
            'create table "a.b" (id integer)',
            "create role guest login password 's3cr@t'",
        )
        yield running


def test_postgresql(server: postgres.Server) -> None:
    relation = relations.PostgreSQL(server.dsn, 'sales.Us"ers')
    kinds = types(relation)
    assert {name for name, kind in kinds.items() if kind is None} == {"loose", "noon"}
    assert kinds["price"] == pa.decimal128(10, 2)
    names = [name for name, kind in kinds.items() if kind is not None and name != "id"]
    found = rows(relation, "id", pa.array([1, 3, 2**40]), *names)
    assert set(found) == {1, 3}
    assert dict(zip(names, found[3], strict=True)) == {
        "name": "n3",
        "price": Decimal("0.75"),
        "mood": "glad",
        "at": datetime(2026, 1, 4, tzinfo=UTC),
        "wall": datetime(2026, 1, 1),  # noqa: DTZ001 - without a zone
        "day": date(2026, 1, 4),
        "number": "00000000-0000-0000-0000-000000000003",
        "extra": '{"a": 1}',
        "raw": b"\x00\xff\x03",
        "first": False,
        "short": 3.0,
    }


@pytest.mark.parametrize("table", ['"s.t"."a.b"', ("s.t", "a.b")])
def test_postgresql_names_with_dots_domains_and_unusual_scales(
    server: postgres.Server, table: str | tuple[str, str]
) -> None:
    relation = relations.PostgreSQL(server.dsn, table)
    assert types(relation) == {
        "i.d": pa.int32(),
        "pri.ce": pa.decimal128(10, 2),
        "small": pa.decimal128(5, 5),
        "big": pa.decimal128(5, 0),
        "nan": pa.decimal128(10, 2),
    }
    assert rows(relation, "i.d", pa.array([1, 2]), "pri.ce", "small", "big") == {
        1: (Decimal("1.50"), Decimal("0.00012"), Decimal(12000))
    }
    found = rows(relation, "pri.ce", pa.array([Decimal("1.50")], pa.decimal128(10, 2)), "i.d")
    assert found == {Decimal("1.50"): (1,)}
    with pytest.raises(InputError, match=r"'nan' of .* is declared numeric\(10,2\), .*'NaN'"):
        rows(relation, "i.d", pa.array([1]), "nan")
    for other in ('"a.b"', ("a.b",), ("public", "a.b")):
        assert list(types(relations.PostgreSQL(server.dsn, other))) == ["id"]


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("name", "n3"),
        ("price", Decimal("0.75")),
        ("at", datetime(2026, 1, 4, tzinfo=UTC)),
        ("day", date(2026, 1, 4)),
        ("number", "00000000-0000-0000-0000-000000000003"),
        ("raw", b"\x00\xff\x03"),
    ],
)
def test_postgresql_keys(server: postgres.Server, key: str, value: object) -> None:
    relation = relations.PostgreSQL(server.dsn, 'sales.Us"ers')
    other = {"number": "no number"}.get(key, value)
    keys = pa.array([value, other], types(relation)[key])
    assert rows(relation, key, keys, "id") == {value: (3,)}


@pytest.mark.parametrize("table", ["padded", "loose"])
def test_postgresql_char_is_text_without_its_padding(server: postgres.Server, table: str) -> None:
    relation = relations.PostgreSQL(server.dsn, table)
    keys = pa.array(["ab", "ab ", " c", "c", "", "longer than six"])
    assert rows(relation, "code", keys, "other") == {"ab": ("x",), " c": (None,), "": ("y",)}


def test_postgresql_enumeration_that_is_named_like_text(server: postgres.Server) -> None:
    relation = relations.PostgreSQL(server.dsn, "padded")
    assert rows(relation, "mood", pa.array(["sad", "glad", "other"]), "code") == {
        "sad": ("ab",),
        "glad": (" c",),
    }


def test_postgresql_errors_contain_no_password(server: postgres.Server) -> None:
    with pytest.raises(InputError, match=r"'nobody' in PostgreSQL at 127\.0\.0\.1.* does not exist"):
        relations.PostgreSQL(server.dsn, "nobody").open().columns()
    with pytest.raises(InputError, match=r"column .*nope.* does not exist"):
        relations.PostgreSQL(server.dsn, 'sales.Us"ers').open().rows(
            RelationColumn("id", pa.int32(), "integer"),
            pa.array([1]),
            [RelationColumn("nope", pa.int32(), "integer")],
        )
    guest = relations.PostgreSQL(server.dsn.replace("tester", "guest"), "hidden").open()
    with pytest.raises(InputError, match="permission denied"):
        guest.rows(RelationColumn("id", pa.int32(), "integer"), pa.array([1]), [])
    guest.close()
    for dsn in (server.dsn.replace("tester", "nobody"), server.dsn.replace(str(server.port), "1")):
        with pytest.raises(UnreachableError) as caught:
            relations.PostgreSQL(dsn, "users").open().columns()
        assert "s3cr" not in str(caught.value)
        assert caught.value.__cause__ is None
    relation = relations.PostgreSQL(server.dsn, "users")
    assert "s3cr" not in repr(relation) + relation.description
    assert relation.without_secret("error: s3cr@t and s3cr%40t") == "error: *** and ***"
    more = relations.PostgreSQL("postgresql://h/d?password=a%2Bb&sslpassword=k%20ey&host=a", "users")
    assert more.without_secret("a%2Bb a+b k%20ey k ey") == "*** *** *** ***"
    assert pickle.loads(pickle.dumps(relation)) == relation  # noqa: S301 - our own


def test_a_silent_postgresql_server_is_unreachable(monkeypatch: pytest.MonkeyPatch) -> None:
    """The host accepts the connection, and the server never answers."""
    pytest.importorskip("adbc_driver_postgresql")
    monkeypatch.setitem(postgresql._DEADLINES, "connect_timeout", 2)
    monkeypatch.delenv("PGCONNECT_TIMEOUT", raising=False)
    with socket.create_server(("127.0.0.1", 0)) as silent, ThreadPoolExecutor(1) as aside:
        dsn = f"postgresql://ann@127.0.0.1:{silent.getsockname()[1]}/d?sslmode=disable"
        asked = aside.submit(relations.PostgreSQL(dsn, "users").open().columns)
        try:
            with pytest.raises(UnreachableError, match="timeout"):
                asked.result(timeout=120)
        finally:
            silent.accept()[0].close()  # lest it waits for ever


def test_a_postgresql_statement_timeout_is_temporary(server: postgres.Server) -> None:
    """The server limits how long a query may wait for a lock."""
    dsn = f"{server.dsn}?options=-c%20statement_timeout%3D2000"
    from adbc_driver_postgresql import dbapi  # noqa: PLC0415 - only where there is a server

    source = relations.PostgreSQL(dsn, "hidden").open()
    column = RelationColumn("id", pa.int32(), "integer")
    with dbapi.connect(server.dsn) as other, other.cursor() as cursor:
        cursor.execute("lock table hidden")
        with pytest.raises(UnreachableError, match="statement timeout"):
            source.rows(column, pa.array([1]), [])
        other.rollback()
    assert source.rows(column, pa.array([1]), []).num_rows == 0
    source.close()


def test_postgresql_time_limits_of_the_url_and_defaults(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def deadlines(dsn: str) -> dict[str, str]:
        address = relations.PostgreSQL(dsn, "t").address
        assert address.startswith(dsn)
        return dict(parse_qsl(urlsplit(address).query, strict_parsing=True))

    monkeypatch.delenv("PGCONNECT_TIMEOUT", raising=False)
    ours = {name: str(value) for name, value in postgresql._DEADLINES.items()}
    for dsn in ("postgresql://", "postgresql://h", "postgresql://h/d?"):
        assert deadlines(dsn) == ours
    given = {"sslmode": "require", "connect_timeout": "3"}
    assert deadlines("postgresql://h/d?sslmode=require&connect_timeout=3") == ours | given
    monkeypatch.setenv("PGCONNECT_TIMEOUT", "4")
    assert "connect_timeout" not in deadlines("postgresql://h/d")


@pytest.mark.parametrize(
    "dsn",
    [
        "host=x password=s3cr3t",
        "postgresql://a:s3cr 3t@h/d",
        "postgresql://a:s3cr:3t@h:p/d",
        "postgresql://a:s3cr/3t@h/d",
        "postgresql://a:5/s3cr3t@h/d",
        "postgresql://a:5?s3cr3t@h/d",
        "postgresql://a:5#s3cr3t@h/d",
        "postgresql://a:s3cr@3t@h/d",
        "postgresql://a:[s3cr3t@h/d",
        7,
    ],
)
def test_an_invalid_address_is_refused_without_showing_it(dsn: str) -> None:
    with pytest.raises(InputError, match="dsn=") as caught:
        relations.PostgreSQL(dsn, "users")
    shown = "".join(traceback.format_exception(caught.value))
    assert "s3cr" not in shown, "the causes are shown, too"
    assert "3t" not in shown


def test_relations_by_address() -> None:
    assert relations.as_relation("a/b.db", "t") == relations.SQLite("a/b.db", "t")
    assert relations.as_relation(Path("b.duckdb"), "t") == relations.DuckDB("b.duckdb", "t")
    assert relations.as_relation("postgres://h/d", "t") == relations.PostgreSQL("postgres://h/d", "t")
    given = relations.SQLite("a", "t")
    assert relations.as_relation(given) is given
    for call, message in [
        ((given, "t"), "has a table already"),
        (("a.db",), "needs table="),
        ((7, "t"), "a int is not a relation"),
        (("mysql://u:s3cr3t@h/d", "t"), "'mysql' is not a relation"),
        (("mysql://u:s3cr3t@h/d.db", "t"), "'mysql' is not a relation"),
        (("jdbc:postgresql:ann/s3cr3t@h", "t"), "this text .* is not a relation"),
        (("host=db user=ann password=s3cr3t", "t"), "this text .* is not a relation"),
        (("host=db password=s3cr3t dbname=shop.db", "t"), "this text .* is not a relation"),
    ]:
        with pytest.raises(InputError, match=message) as caught:
            relations.as_relation(*call)  # type: ignore[arg-type]
        assert "s3cr" not in str(caught.value)
