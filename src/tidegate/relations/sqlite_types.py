"""What SQLite's declared types mean, and what its values are then.

SQLite stores whole numbers, floats, text and bytes, whatever a column is declared; the declaration only says which
of them is preferred (its affinity: https://www.sqlite.org/datatype3.html). The first rule that fits is taken:

| declared | is read as |
|---|---|
| contains BOOL | boolean; 0 is false, other whole numbers are true |
| contains INT | whole numbers of 64 bits |
| contains CHAR, CLOB or TEXT; STRING, UUID, JSON, XML | text |
| contains BLOB | bytes |
| contains REAL, FLOA or DOUB | floats of 64 bits |
| DATETIME, TIMESTAMP | timestamps without a zone; with TZ or ZONE in the name, in UTC |
| DATE | dates |
| TIME, no type | nothing: the column cannot be had |
| NAME(p, s), such as DECIMAL(10, 2) and NUMERIC(10, 2) | decimals of p digits, s of them behind the point |
| others, such as NUMERIC | floats of 64 bits |

A decimal that SQLite holds as a float is the shortest one that gives this float, so 0.99 is 0.99. It must have no
more digits than are declared; nothing is rounded.

Dates and times may be held in the three ways that SQLite documents: ISO text ("2026-01-31", "2026-01-31 12:30:59.5",
with T for the blank, with Z or +01:00 behind it, which is converted to UTC), seconds since 1970, and Julian days.
Numbers are read as SQLite reads them with its modifier 'auto': below 5,373,484.5 Julian days, else seconds. But a
whole number below that could be either, and one beyond the year 9999 is perhaps a number of milliseconds: both are
refused.
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
"""By what a declared type contains, in SQLite's own order of rules."""

_NAMED: Final = dict.fromkeys(("STRING", "UUID", "JSON", "XML"), pa.string()) | {
    "DATE": pa.date32(),
    "": None,
}
_SCALED: Final = re.compile(r"[A-Z ]+\(\s*(\d+)\s*(?:,\s*(\d+)\s*)?\)")
_MOST_DIGITS: Final = 38
_WHOLE: Final = 2**63
_LARGEST: Final = 2**53
"""Up to here every whole number is a float."""

_TIME: Final = re.compile(
    r"(\d{4})-(\d\d)-(\d\d)(?:[ T](\d\d):(\d\d)(?::(\d\d)(?:\.(\d+))?)?)?\s*(Z|[+-]\d\d:\d\d)?", re.IGNORECASE
)
_EPOCH: Final = datetime(1970, 1, 1)  # noqa: DTZ001 - SQLite's times have no zone
_EPOCH_IN_DAYS: Final = 2440587.5
_LAST_JULIAN_DAY: Final = 5373484.5
_FIRST_SECOND: Final = -62135596800
"""Of the year 1, the first that Python and Spark have."""
_END: Final = 253402300800
"""The first second of the year 10000."""


def type_of(declared: str | None) -> pa.DataType | None:
    """What a column of a declared type is read as; None if it cannot be had.

    Examples
    --------
    >>> type_of("NVARCHAR(160)"), type_of("NUMERIC(10,2)"), type_of("DATETIME"), type_of("TIME")
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
        return pa.decimal128(digits, scale) if max(1, scale) <= digits <= _MOST_DIGITS else None
    return pa.float64()


def is_one_form(kind: pa.DataType) -> bool:
    """Whether SQLite holds equal values of the type in one way, so that they can be compared with a key."""
    return not (pa.types.is_timestamp(kind) or pa.types.is_date(kind))


def stored(key: object) -> object:
    """A key as SQLite compares it: a decimal is a whole number or a float there."""
    if not isinstance(key, Decimal):
        return key
    return int(key) if key == int(key) and abs(key) < _WHOLE else float(key)


def read(values: Sequence[object], kind: pa.DataType) -> pa.Array:
    """Values that SQLite gave, as an array.

    Raises
    ------
    ValueError
        Which value does not fit.
    """
    convert = _converter(kind)
    if convert is not None:
        values = [None if value is None else convert(value) for value in values]
    return pa.array(values, kind)


def _converter(kind: pa.DataType) -> Callable[[object], object] | None:
    if kind == pa.bool_():
        return _truth
    if kind == pa.float64():
        return _fraction
    if pa.types.is_decimal(kind):
        return lambda value: _decimal(value, kind.precision, kind.scale)
    if pa.types.is_date(kind):
        return _day
    if pa.types.is_timestamp(kind):
        return _moment
    return None


def _truth(value: object) -> bool:
    if not isinstance(value, int):
        raise ValueError(f"{value!r} is not 0 or 1")  # noqa: TRY004 - whatever does not fit is one kind of error
    return bool(value)


def _fraction(value: object) -> float:
    if isinstance(value, int) and abs(value) <= _LARGEST:
        return float(value)
    if not isinstance(value, float):
        raise ValueError(f"{value!r} is not a number that a float holds")  # noqa: TRY004 - as above
    return value


def _decimal(value: object, digits: int, scale: int) -> Decimal:
    try:
        # The shortest text that gives this float is what was written.
        found = Decimal(repr(value) if isinstance(value, float) else value)  # type: ignore[arg-type]  # refused below
    except (InvalidOperation, TypeError, ValueError):
        found = Decimal("NaN")
    _, figures, point = found.as_tuple()
    if isinstance(point, int):
        zeros = len(figures) - len("".join(map(str, figures)).rstrip("0"))
        if not any(figures) or (-(point + zeros) <= scale and len(figures) + point <= digits - scale):
            return found
    raise ValueError(f"{value!r} is not a number of {digits} digits, {scale} of them behind the point")


def _day(value: object) -> date:
    moment = _moment(value)
    if moment != datetime(moment.year, moment.month, moment.day):  # noqa: DTZ001 - as it is
        raise ValueError(
            f"{value!r} is not a date but a time of day; declare it DATETIME, or cut the time off"
        )
    return moment.date()


def _moment(value: object) -> datetime:
    try:
        if isinstance(value, str):
            return _of_text(value)
        if isinstance(value, int):
            return _of_seconds(value)
        if isinstance(value, float):
            return _of_days(value) if 0 <= value < _LAST_JULIAN_DAY else _of_seconds(value)
    except OverflowError:
        pass
    raise ValueError(f"{value!r} is not a date or time; write it like '2026-01-31 12:30:59'")


def _of_text(text: str) -> datetime:
    found = _TIME.fullmatch(text.strip())
    if found is None:
        raise ValueError(f"{text!r} is not a date or time; write it like '2026-01-31 12:30:59'")
    *whole, fraction, zone = found.groups()
    if fraction is not None and fraction[6:].strip("0"):
        raise ValueError(f"{text!r} is finer than a microsecond; round it")
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


def _of_seconds(value: float) -> datetime:
    if isinstance(value, int) and 0 <= value < _LAST_JULIAN_DAY:
        raise ValueError(
            f"{value!r} is a number of seconds since 1970 or a Julian day; convert it in a view, by "
            "datetime(..., 'unixepoch') or datetime(..., 'julianday')"
        )
    if not _FIRST_SECOND <= value < _END:
        raise ValueError(
            f"{value!r} is not a number of seconds since 1970 within the years 1 to 9999; if it counts "
            "milliseconds, divide it by 1000 in a view"
        )
    return _EPOCH + timedelta(microseconds=round(value * 1_000_000))


def _of_days(value: float) -> datetime:
    # To the millisecond, as SQLite has it: a float holds no more of a Julian day.
    return _EPOCH + timedelta(milliseconds=round((value - _EPOCH_IN_DAYS) * 86_400_000))
