"""The types of SQLite's columns, and the conversion of their values.

SQLite stores integers, floats, text and bytes in any column. The declared type is only a preference (its affinity:
https://www.sqlite.org/datatype3.html). The first matching rule decides:

| declared | is read as |
|---|---|
| contains BOOL | boolean; 0 is false, other whole numbers are true |
| contains INT | 64-bit integers |
| contains CHAR, CLOB or TEXT; STRING, UUID, JSON, XML | text |
| contains BLOB | bytes |
| contains REAL, FLOA or DOUB | 64-bit floats |
| DATETIME, TIMESTAMP | timestamps without a zone; with TZ or ZONE in the name, in UTC |
| DATE | dates |
| TIME, no type | not supported |
| NAME(p, s), such as DECIMAL(10, 2) and NUMERIC(10, 2) | decimals of p digits, s of them after the point |
| others, such as NUMERIC | 64-bit floats |

A decimal that SQLite stores as a float becomes the shortest decimal with this float value, so 0.99 is 0.99. It must
not have more digits than declared; nothing is rounded.

Dates and times may be stored in the three ways that SQLite documents: ISO text ("2026-01-31", "2026-01-31
12:30:59.5", also with T instead of the space, and with a time zone, Z or +01:00, which is converted to UTC), seconds
since 1970, and Julian days. Numbers are interpreted as by SQLite's modifier 'auto': below 5,373,484.5 as Julian
days, else as seconds. An integer below this number could be either, and one after the year 9999 may be in
milliseconds: both are refused.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from datetime import date, datetime, timedelta
from decimal import Decimal, InvalidOperation
from typing import Final

import pyarrow as pa

_CONTAINED: Final = {
    "BOOL": pa.bool_(),
    "INT": pa.int64(),
    "CHAR": pa.string(),
    "CLOB": pa.string(),
    "TEXT": pa.string(),
    "BLOB": pa.binary(),
    "REAL": pa.float64(),
    "FLOA": pa.float64(),
    "DOUB": pa.float64(),
}
"""The types by a part of the declared type, in the order of SQLite's rules."""

_NAMED: Final = dict.fromkeys(("STRING", "UUID", "JSON", "XML"), pa.string()) | {
    "DATE": pa.date32(),
    "": None,
}
_SCALED: Final = re.compile(r"[A-Z ]+\(\s*(\d+)\s*(?:,\s*(\d+)\s*)?\)")
_MAX_DIGITS: Final = 38
_INTEGER_LIMIT: Final = 2**63
_LARGEST_EXACT: Final = 2**53
"""Up to this number, every integer is exact as a float."""

_TIME: Final = re.compile(
    r"(\d{4})-(\d\d)-(\d\d)(?:[ T](\d\d):(\d\d)(?::(\d\d)(?:\.(\d+))?)?)?\s*(Z|[+-]\d\d:\d\d)?", re.IGNORECASE
)
_EPOCH: Final = datetime(1970, 1, 1)  # noqa: DTZ001 - SQLite's times have no time zone
_EPOCH_IN_DAYS: Final = 2440587.5
_LAST_JULIAN_DAY: Final = 5373484.5
_FIRST_SECOND: Final = -62135596800
"""The first second of the year 1, the first year of Python and Spark."""
_END: Final = 253402300800
"""The first second of the year 10000."""


def arrow_type(declared: str | None) -> pa.DataType | None:
    """The type of the values of a column with this declared type; None if it is not supported.

    Examples
    --------
    >>> arrow_type("NVARCHAR(160)"), arrow_type("NUMERIC(10,2)"), arrow_type("DATETIME"), arrow_type("TIME")
    (DataType(string), Decimal128Type(decimal128(10, 2)), TimestampType(timestamp[us]), None)
    """
    name = (declared or "").strip().upper()
    contained = next((kind for part, kind in _CONTAINED.items() if part in name), None)
    if contained is not None or name in _NAMED:
        return contained or _NAMED[name]
    if name.startswith(("DATETIME", "TIMESTAMP")):
        return pa.timestamp("us", "UTC" if name.endswith(("TZ", "ZONE")) and "WITHOUT" not in name else None)
    if name.startswith("TIME"):
        return None
    if scaled := _SCALED.fullmatch(name):
        digits, scale = int(scaled[1]), int(scaled[2] or 0)
        return pa.decimal128(digits, scale) if max(1, scale) <= digits <= _MAX_DIGITS else None
    return pa.float64()


def has_one_representation(kind: pa.DataType) -> bool:
    """Whether SQLite stores equal values of a type in the same way, so that they can be compared with a key."""
    return not (pa.types.is_timestamp(kind) or pa.types.is_date(kind))


def to_sqlite(key: object) -> object:
    """A key as SQLite stores it: decimals as integers or floats."""
    if not isinstance(key, Decimal):
        return key
    return int(key) if key == int(key) and abs(key) < _INTEGER_LIMIT else float(key)


def read_values(values: Sequence[object], kind: pa.DataType) -> pa.Array:
    """Convert values of SQLite to an Arrow array.

    Raises
    ------
    ValueError
        A value does not fit the type; the message shows it.
    """
    convert = _converter(kind)
    if convert is not None:
        values = [None if value is None else convert(value) for value in values]
    return pa.array(values, kind)


def _converter(kind: pa.DataType) -> Callable[[object], object] | None:
    if kind == pa.bool_():
        return _to_bool
    if kind == pa.float64():
        return _to_float
    if pa.types.is_decimal(kind):
        return lambda value: _to_decimal(value, kind.precision, kind.scale)
    if pa.types.is_date(kind):
        return _to_date
    if pa.types.is_timestamp(kind):
        return _to_datetime
    return None


def _to_bool(value: object) -> bool:
    if not isinstance(value, int):
        raise ValueError(f"{value!r} is not 0 or 1")  # noqa: TRY004 - one type of error for all values that do not fit
    return bool(value)


def _to_float(value: object) -> float:
    if isinstance(value, int) and abs(value) <= _LARGEST_EXACT:
        return float(value)
    if not isinstance(value, float):
        raise ValueError(f"{value!r} is not a number that a float can represent")  # noqa: TRY004 - as above
    return value


def _to_decimal(value: object, digits: int, scale: int) -> Decimal:
    try:
        # The shortest text of this float is the number that was written.
        found = Decimal(repr(value) if isinstance(value, float) else value)  # type: ignore[arg-type]  # refused below
    except (InvalidOperation, TypeError, ValueError):
        found = Decimal("NaN")
    _, figures, point = found.as_tuple()
    if isinstance(point, int):
        zeros = len(figures) - len("".join(map(str, figures)).rstrip("0"))
        if not any(figures) or (-(point + zeros) <= scale and len(figures) + point <= digits - scale):
            return found
    raise ValueError(f"{value!r} is not a number of {digits} digits, {scale} of them after the point")


def _to_date(value: object) -> date:
    moment = _to_datetime(value)
    if moment != datetime(moment.year, moment.month, moment.day):  # noqa: DTZ001 - as it is
        raise ValueError(
            f"{value!r} has a time of day and is not a date; declare it DATETIME, or remove the time"
        )
    return moment.date()


def _to_datetime(value: object) -> datetime:
    try:
        if isinstance(value, str):
            return _parse_time(value)
        if isinstance(value, int):
            return _from_seconds(value)
        if isinstance(value, float):
            return _from_julian_days(value) if 0 <= value < _LAST_JULIAN_DAY else _from_seconds(value)
    except OverflowError:
        pass
    raise ValueError(f"{value!r} is not a date or time; write it like '2026-01-31 12:30:59'")


def _parse_time(text: str) -> datetime:
    found = _TIME.fullmatch(text.strip())
    if found is None:
        raise ValueError(f"{text!r} is not a date or time; write it like '2026-01-31 12:30:59'")
    *whole, fraction, zone = found.groups()
    if fraction is not None and fraction[6:].strip("0"):
        raise ValueError(f"{text!r} has fractions of a microsecond; round it")
    micros = int((fraction or "")[:6].ljust(6, "0"))
    try:
        year, month, day, hour, minute, second = (int(part or 0) for part in whole)
        moment = datetime(year, month, day, hour, minute, second, micros)  # noqa: DTZ001 - as it is
    except ValueError as error:
        raise ValueError(f"{text!r} is not a date or time: {error}") from error
    if zone is not None and zone.upper() != "Z":
        shift = timedelta(hours=int(zone[1:3]), minutes=int(zone[4:]))
        moment += -shift if zone[0] == "+" else shift
    return moment


def _from_seconds(value: float) -> datetime:
    if isinstance(value, int) and 0 <= value < _LAST_JULIAN_DAY:
        raise ValueError(
            f"{value!r} may be seconds since 1970 or a Julian day; convert it in a view, with "
            "datetime(..., 'unixepoch') or datetime(..., 'julianday')"
        )
    if not _FIRST_SECOND <= value < _END:
        raise ValueError(
            f"{value!r} is not a number of seconds since 1970 within the years 1 to 9999; if it counts "
            "milliseconds, divide it by 1000 in a view"
        )
    return _EPOCH + timedelta(microseconds=round(value * 1_000_000))


def _from_julian_days(value: float) -> datetime:
    # Rounded to milliseconds, as SQLite does: floats of Julian days are not more exact.
    return _EPOCH + timedelta(milliseconds=round((value - _EPOCH_IN_DAYS) * 86_400_000))
