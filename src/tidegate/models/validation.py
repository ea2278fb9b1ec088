"""Checks of arguments: numbers and columns. Each error names the value and the remedy."""

from __future__ import annotations

import numpy as np

from tidegate.types import Array, InputError


def column(values: object, what: str) -> Array:
    """A read-only copy as 64-bit floats, one-dimensional, not empty, finite."""
    try:
        copy = np.array(values, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise InputError(f"{what} {values!r} are not numbers; give a list or an array of numbers") from error
    if copy.ndim != 1 or not len(copy):
        raise InputError(f"{what} have the shape {copy.shape}; give a list of at least one number")
    if not np.isfinite(copy).all():
        raise InputError(f"{what} contain {copy[~np.isfinite(copy)][0]}; give finite numbers")
    copy.setflags(write=False)
    return copy


def ascending(values: Array, what: str) -> None:
    """Refuse a column that does not start at 0 or does not ascend strictly."""
    if values[0] != 0:
        raise InputError(f"{what} start at {values[0]:g}; start at 0")
    if len(wrong := np.flatnonzero(np.diff(values) <= 0)):
        at = wrong[0]
        raise InputError(
            f"{what} go from {values[at]:g} to {values[at + 1]:g}; each must be above the one before"
        )


def positive(value: float, what: str) -> float:
    """Refuse what is not a finite number above 0."""
    if not is_number(value):
        raise InputError(f"{what} is {value!r}; give a number above 0")
    if not 0 < value < np.inf:
        raise InputError(f"{what} is {value!r}; give a finite number above 0")
    return float(value)


def finite(value: float, what: str) -> float:
    """Refuse what is not a finite number."""
    if not is_number(value) or not np.isfinite(value):
        raise InputError(f"{what} is {value!r}; give a finite number")
    return float(value)


def is_number(value: object) -> bool:
    """Whether the value is a single number, not a boolean."""
    return isinstance(value, int | float | np.integer | np.floating) and not isinstance(value, bool)


def at_least_one(value: int, what: str, of: str = "steps") -> int:
    """Refuse what is not a whole number of at least 1."""
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < 1:
        raise InputError(f"{what} is {value!r}; give a whole number of {of}, at least 1")
    return int(value)


def like(argument: float | Array, value: float | np.floating | Array) -> float | Array:
    """A number for a number, an array for an array."""
    return np.asarray(value) if np.ndim(argument) else float(value)
