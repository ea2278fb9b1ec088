"""Durations as users write them ("10 minutes", timedelta, INTERVAL '90' SECOND), in microseconds."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator
from datetime import timedelta
from typing import Final, TypeAlias

from tidegate.types import FAR, InputError, Window

Duration: TypeAlias = "str | timedelta | None"

_UNITS: Final = {
    "microsecond": 1,
    "us": 1,
    "millisecond": 10**3,
    "ms": 10**3,
    "second": 10**6,
    "s": 10**6,
    "minute": 60 * 10**6,
    "min": 60 * 10**6,
    "m": 60 * 10**6,
    "hour": 3_600 * 10**6,
    "h": 3_600 * 10**6,
    "day": 86_400 * 10**6,
    "d": 86_400 * 10**6,
    "week": 604_800 * 10**6,
}
_ENDLESS: Final = frozenset(
    {
        "forever",
        "infinite",
        "infinity",
        "inf",
        "unbounded",
        "unlimited",
        "endless",
        "none",
        "null",
        "no end",
        "never",
    }
)
"""What users may write for a window without end."""
_PART: Final = re.compile(r"([+-]?\d+(?:\.\d+)?)\s*([a-z]+)")


def microseconds(value: str | timedelta, what: str) -> int:
    """Parse a duration.

    Examples
    --------
    >>> microseconds("1 minute 30 seconds", "window")
    90000000
    >>> microseconds("INTERVAL '-5' SECOND", "window")
    -5000000
    >>> microseconds("1 month", "window")
    Traceback (most recent call last):
    tidegate.InputError: window '1 month' is not a duration; write it like '10 minutes' or
    '1 hour 30 minutes' (weeks are the largest unit: a month has no fixed length)
    """
    if isinstance(value, timedelta):
        return value // timedelta(microseconds=1)
    if not isinstance(value, str):
        raise InputError(f"{what} {value!r} has no unit; write it like '10 minutes', or give a timedelta")
    text = re.sub(r"^\s*interval\b", "", value.lower()).replace("'", " ").strip()
    parts = _PART.findall(text)
    units = [_UNITS.get(unit) or _UNITS.get(unit.removesuffix("s")) for _, unit in parts]
    if not parts or _PART.sub("", text).strip() or None in units:
        raise InputError(
            f"{what} {value!r} is not a duration; write it like '10 minutes' or '1 hour 30 minutes' "
            "(weeks are the largest unit: a month has no fixed length)"
        )
    return round(sum(float(n) * unit for (n, _), unit in zip(parts, units, strict=True) if unit))


def parse_window(value: tuple[Duration, Duration] | Window) -> Window:
    """Parse a window of durations; None means no end."""
    if isinstance(value, Window):
        raise InputError(f"{value} has no unit; on Spark write window=('10 minutes', '0 seconds')")
    if not isinstance(value, tuple | list) or len(value) != 2:  # noqa: PLR2004 - left and right
        raise InputError(f"window {value!r} is not a pair; write window=('10 minutes', '0 seconds')")
    for given in value:
        if isinstance(given, str) and given.strip().lower() in _ENDLESS:
            raise InputError(
                f"window {given!r} is not a duration; a window without end is None: "
                "window=(None, '0 seconds') keeps left rows until the budget needs their room"
            )
    left, right = (None if span is None else microseconds(span, "window") for span in value)
    for span, written in zip((left, right), value, strict=True):
        if span is not None and abs(span) >= FAR:
            raise InputError(f"window {written!r} is longer than 73,000 years; use None for no end")
    if left is not None and right is not None and left + right < 0:
        raise InputError(f"window {tuple(value)!r} is empty: left + right must be at least 0")
    return Window(left, right)


@contextlib.contextmanager
def show_as_written(value: object, window: Window) -> Iterator[None]:
    """Let errors show a window as the user wrote it instead of in microseconds."""
    try:
        yield
    except InputError as error:
        if repr(window) not in str(error):
            raise
        raise InputError(str(error).replace(repr(window), repr(value))) from None
