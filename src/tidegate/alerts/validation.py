"""Checks of durations, times and values that are given to the classes of `tidegate.alerts`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tidegate.types import FAR, InputError

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from tidegate.types import Array, Time


def check_duration(value: Time, name: str) -> Time:
    """Return a duration as a plain number; refuse everything that is not a positive number."""
    if isinstance(value, bool) or not isinstance(value, int | float | np.integer | np.floating):
        raise InputError(f"{name} is {value!r}; give a number above 0")
    plain: Time = value.item() if isinstance(value, np.generic) else value
    if not 0 < plain < FAR:
        raise InputError(f"{name} is {plain!r}; give a number above 0 and below 2**61")
    return plain


def check_columns(times: ArrayLike, values: ArrayLike) -> tuple[Array, Array]:
    """Return times as 64-bit integers or floats, and values as floats; refuse columns of other types or lengths."""
    when, value = _column(times, "times"), _numbers(values)
    if when.ndim != 1 or when.shape != value.shape:
        raise InputError(
            f"times have shape {when.shape} and values {value.shape}; give two columns of one length"
        )
    if not len(when):
        return np.empty(0, np.int64), value
    if when.dtype.kind in "mM":
        if np.isnat(when).any():
            raise InputError("a time is NaT; leave out rows without a time, and count them")
        when = when.astype(f"{when.dtype.kind}8[us]").view(np.int64)
    elif when.dtype.kind not in "iuf":
        raise InputError(f"times of type {when.dtype} are not supported; give numbers or timestamps")
    first, last = when.min().item(), when.max().item()  # Python's integers do not overflow
    if not (first > -FAR and last < FAR):
        raise InputError(f"times range from {first} to {last}; give finite times within 2**61 of 0")
    return when.astype(np.float64 if when.dtype.kind == "f" else np.int64, copy=False), value


def check_row(time: Time, value: float) -> tuple[Time, float]:
    """Return the time and the value of one row as plain numbers."""
    if not isinstance(value, int | float | np.number | np.bool_):
        raise InputError(f"the value at time {time!r} is {value!r}; give a number")
    if value != value:  # noqa: PLR0124 - true for NaN only
        raise InputError(
            f"the value at time {time!r} is NaN, which cannot be ranked; leave out such rows, and count them"
        )
    if isinstance(time, int | float) and not isinstance(time, bool) and -FAR < time < FAR:
        return time, float(value)
    try:
        when, _ = check_columns([time], [value])
    except InputError as error:
        raise InputError(f"the time is {time!r}: {error}") from error
    plain: Time = when[0].item()
    return plain, float(value)


def _column(given: ArrayLike, name: str) -> Array:
    try:
        return np.asarray(given)
    except ValueError as error:
        raise InputError(f"the {name} are not a column: {error}; give one number per row") from error


def _numbers(given: ArrayLike) -> Array:
    values = _column(given, "values")
    try:
        if values.dtype.kind in "iufbO":
            return values.astype(np.float64, copy=False)
    except (TypeError, ValueError) as error:
        raise InputError(
            f"a value is not a number: {error}; give numbers, and NaN for missing values"
        ) from error
    raise InputError(f"values of type {values.dtype} are not supported; give numbers")
