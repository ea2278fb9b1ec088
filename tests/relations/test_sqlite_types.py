"""The types of SQLite's columns, their values, and values that do not fit."""

from __future__ import annotations

import sqlite3
from datetime import date, datetime
from decimal import Decimal

import pyarrow as pa
import pytest

from tidegate.relations.sqlite_types import arrow_type, read_values, to_sqlite

MOMENT = datetime(2026, 1, 31, 12, 30, 59, 500_000)  # noqa: DTZ001 - SQLite's times have no zone
MIDNIGHT = datetime(2026, 1, 31)  # noqa: DTZ001
TIME = pa.timestamp("us")


@pytest.mark.parametrize(
    ("declared", "kind"),
    [
        ("INTEGER", pa.int64()),
        ("UNSIGNED BIG INT", pa.int64()),
        ("FLOATING POINT", pa.int64()),  # by SQLite's own first rule
        ("nvarchar(160)", pa.string()),
        ("CLOB", pa.string()),
        ("STRING", pa.string()),
        ("json", pa.string()),
        ("BLOB", pa.binary()),
        ("DOUBLE PRECISION", pa.float64()),
        ("BOOLEAN", pa.bool_()),
        ("NUMERIC(10,2)", pa.decimal128(10, 2)),
        ("decimal( 38 , 38 )", pa.decimal128(38, 38)),
        ("NUMBER(5)", pa.decimal128(5, 0)),
        ("NUMERIC(39,2)", None),
        ("NUMERIC(2,5)", None),
        ("NUMERIC(0)", None),
        ("NUMERIC", pa.float64()),
        ("MONEY", pa.float64()),
        ("DATETIME", TIME),
        ("TIMESTAMP", TIME),
        ("TIMESTAMP WITHOUT TIME ZONE", TIME),
        ("TIMESTAMPTZ", pa.timestamp("us", "UTC")),
        ("timestamp with time zone", pa.timestamp("us", "UTC")),
        ("DATE", pa.date32()),
        ("TIME", None),
        ("", None),
        (None, None),
    ],
)
def test_declared_types(declared: str | None, kind: pa.DataType | None) -> None:
    assert arrow_type(declared) == kind


@pytest.mark.parametrize(
    ("value", "kind", "expected"),
    [
        (0.99, pa.decimal128(10, 2), Decimal("0.99")),
        (7, pa.decimal128(10, 2), Decimal("7.00")),
        (-99999999.99, pa.decimal128(10, 2), Decimal("-99999999.99")),
        ("1.50", pa.decimal128(10, 2), Decimal("1.50")),
        ("1.5000", pa.decimal128(10, 2), Decimal("1.50")),
        (1e3, pa.decimal128(4, 0), Decimal(1000)),
        (0.0, pa.decimal128(1, 1), Decimal(0)),
        (
            "1234567890123456789012345678901234.5678",
            pa.decimal128(38, 4),
            Decimal("1234567890123456789012345678901234.5678"),
        ),
        ("2026-01-31 12:30:59.5", TIME, MOMENT),
        ("2026-01-31T12:30:59.500000Z", TIME, MOMENT),
        ("2026-01-31 13:00:59.5+00:30", TIME, MOMENT),
        ("2026-01-31 10:30:59.5-02:00", TIME, MOMENT),
        (1769862659.5, TIME, MOMENT),
        ("2026-01-31", TIME, MIDNIGHT),
        (1769817600, TIME, MIDNIGHT),
        (-1, TIME, datetime(1969, 12, 31, 23, 59, 59)),  # noqa: DTZ001
        (2461071.5, TIME, MIDNIGHT),
        ("2026-01-31", pa.date32(), date(2026, 1, 31)),
        ("2026-01-31 00:00:00", pa.date32(), date(2026, 1, 31)),
        (1769817600, pa.date32(), date(2026, 1, 31)),
        (2461071.5, pa.date32(), date(2026, 1, 31)),
        (2**53, pa.float64(), 2.0**53),
        (1, pa.bool_(), True),
    ],
)
def test_values(value: object, kind: pa.DataType, expected: object) -> None:
    assert read_values([None, value], kind).to_pylist() == [None, expected]


@pytest.mark.parametrize(
    ("value", "kind", "message"),
    [
        (0.999, pa.decimal128(10, 2), r"0\.999 is not a number of 10 digits, 2 of them after the point"),
        (0.1 + 0.2, pa.decimal128(10, 2), r"0\.30000000000000004 is not a number"),
        (100000000, pa.decimal128(10, 2), "100000000 is not a number of 10 digits"),
        ("much", pa.decimal128(10, 2), "'much' is not a number"),
        (b"1", pa.decimal128(10, 2), "b'1' is not a number"),
        (float("inf"), pa.decimal128(10, 2), "inf is not a number"),
        ("NaN", pa.decimal128(10, 2), "'NaN' is not a number"),
        (2**53 + 1, pa.float64(), "9007199254740993 is not a number that a float can represent"),
        ("1.5", pa.float64(), "'1.5' is not a number that a float can represent"),
        ("false", pa.bool_(), "'false' is not 0 or 1"),
        ("yesterday", TIME, "'yesterday' is not a date or time; write it like"),
        ("2026-02-30", TIME, "'2026-02-30' is not a date or time: day is out of range"),
        ("12:30", TIME, "'12:30' is not a date or time"),
        ("2026-01-31 12:30:59.1234567", TIME, "has fractions of a microsecond"),
        ("0001-01-01 00:00+01:00", TIME, "is not a date or time"),
        (2461072, TIME, "2461072 may be seconds since 1970 or a Julian day; convert it in a view"),
        (0, TIME, "0 may be seconds since 1970 or a Julian day"),
        (1769817600000, TIME, "1769817600000 is not a number of seconds .*milliseconds, divide it by 1000"),
        (1e300, TIME, r"1e\+300 is not a number of seconds"),
        (float("nan"), TIME, "nan is not a number of seconds"),
        (b"2026-01-31", TIME, "b'2026-01-31' is not a date or time"),
        ("2026-01-31 12:30:00", pa.date32(), "has a time of day and is not a date; declare it DATETIME"),
        (1769817601, pa.date32(), "1769817601 has a time of day and is not a date"),
        (5.0, pa.string(), "5.0|Expected bytes"),
    ],
)
def test_values_that_do_not_fit_are_refused(value: object, kind: pa.DataType, message: str) -> None:
    with pytest.raises((ValueError, pa.ArrowTypeError), match=message):
        read_values([value], kind)


def test_decimal_keys_are_compared_as_sqlite_stores_them() -> None:
    connection = sqlite3.connect(":memory:")
    connection.execute("create table t (d numeric(20, 4))")
    texts = ["0.99", "7", "-1.5", "123456789012.3456", "9007199254740993", "0.0001"]
    connection.executemany("insert into t values (?)", [(text,) for text in texts])
    for text in texts:
        found = connection.execute("select d from t where d = ?", (to_sqlite(Decimal(text)),)).fetchall()
        assert [read_values(row, pa.decimal128(20, 4)).to_pylist() for row in found] == [[Decimal(text)]]


def test_times_equal_those_of_sqlite() -> None:
    """SQLite's own functions return the same for each of the three representations."""
    connection = sqlite3.connect(":memory:")
    for value in (
        "2026-01-31 12:30:59",
        "1999-12-31",
        1769862659,
        2461071.25,
        2440587.5,
        253402300799,
        -86400,
    ):
        modifier = ", 'auto'" if not isinstance(value, str) else ""
        (expected,) = connection.execute(f"select datetime(?{modifier})", (value,)).fetchone()
        assert read_values([value], TIME).to_pylist() == [datetime.fromisoformat(expected)]
