"""How much may be buffered."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import Final, Literal, TypeAlias

import numpy as np

from tidegate.types.errors import InputError, refuse_class

Split: TypeAlias = Literal["shared", "even", "optimal"] | tuple[int, int]
_UNITS = {
    "b": 1,
    "byte": 1,
    "bytes": 1,
    "kb": 10**3,
    "mb": 10**6,
    "gb": 10**9,
    "kib": 2**10,
    "mib": 2**20,
    "gib": 2**30,
}
_SIZE: Final = re.compile(r"\s*(?P<number>(?:\d{1,3}(?:[_,]\d{3})+|\d+)(?:\.\d+)?)\s*(?P<unit>[a-zA-Z]*)\s*")
"""A number, with commas or underscores between thousands, and a unit."""


@dataclass(frozen=True)
class Budget:
    """The maximum that is buffered after a step, in rows or bytes.

    Examples
    --------
    >>> Budget.of(100)
    Budget(rows=100, bytes=None)
    >>> Budget.of("100 rows")
    Budget(rows=100, bytes=None)
    >>> Budget(bytes="64 MB").bytes
    64000000
    """

    rows: int | None = None
    bytes: int | str | None = None

    @classmethod
    def of(cls, value: Budget | int | str | None) -> Budget | None:
        """Make a budget from the user's input: rows (1000, "1000 rows"), bytes ("64 MB"), or None for no limit."""
        if value is None or isinstance(value, Budget):
            return value
        refuse_class(value, "budget")
        if not isinstance(value, str):
            return cls(rows=value)
        found = _SIZE.fullmatch(value)
        if found is None or found["unit"].lower() not in ("", "row", "rows"):
            return cls(bytes=value)
        number = re.sub("[_,]", "", found["number"])
        if not number.isdecimal():
            raise InputError(f"budget {value!r} is not a whole number of rows; write it like '1000 rows'")
        return cls(rows=int(number))

    def __post_init__(self) -> None:
        if (self.rows is None) == (self.bytes is None):
            raise InputError(
                f"a budget is in rows or in bytes, got rows={self.rows!r} and bytes={self.bytes!r}; give one"
            )
        if isinstance(self.bytes, str):
            object.__setattr__(self, "bytes", _parse_bytes(self.bytes))
        if self.limit < 1:
            raise InputError(
                f"a budget of {self.limit} {self.unit} holds nothing; give at least 1, or None for no limit"
            )

    @property
    def unit(self) -> Literal["rows", "bytes"]:
        """The unit."""
        return "rows" if self.bytes is None else "bytes"

    @property
    def limit(self) -> int:
        """The number of rows or bytes."""
        value = self.rows if self.bytes is None else self.bytes
        if isinstance(value, np.integer):
            return int(value)
        if isinstance(value, bool) or not isinstance(value, int):
            raise InputError(
                f"a budget of {value!r} is not a whole number; give rows as an int, or bytes like '64 MB'"
            )
        return value

    def divided(self, parts: int) -> list[Budget]:
        """Divide into `parts` that add up to this budget, none empty."""
        if self.limit < parts:
            raise InputError(
                f"a budget of {self.limit} {self.unit} cannot be divided among {parts}; give at least {parts}"
            )
        share, extra = divmod(self.limit, parts)
        return [replace(self, **{self.unit: share + (i < extra)}) for i in range(parts)]


def _parse_bytes(text: str) -> int:
    found = _SIZE.fullmatch(text)
    unit = _UNITS.get(found["unit"].lower()) if found else None
    if found is None or unit is None:
        raise InputError(
            f"budget {text!r} is not a size; write it like '64 MB', '1.5 GiB' or '4096 B', or '1000 rows'"
        )
    return int(float(re.sub("[_,]", "", found["number"])) * unit)
