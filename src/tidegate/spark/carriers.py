"""Types that Spark will not hand to Python: carried as others, and brought back bit for bit."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from pyspark.sql.types import (
    ArrayType,
    CalendarIntervalType,
    DataType,
    IntegerType,
    MapType,
    StringType,
    StructField,
    StructType,
    YearMonthIntervalType,
)

from tidegate.types import InputError


@dataclass(frozen=True)
class Carrier:
    """How a column travels: the SQL that makes it ready, its type on the way, the SQL that brings it back.

    `{}` stands for the column in both expressions. A column that is never null comes back by way of `filler`, so
    that Spark knows it still.
    """

    out: str
    type: DataType
    back: str
    filler: str

    def returned(self, column: str, *, nullable: bool) -> str:
        """The SQL that brings a column back."""
        back = self.back.format(column)
        return back if nullable else f"coalesce({back}, {self.filler})"


_REFUSED: Final = ("geography", "geometry")


def carrier(kind: DataType, name: str) -> Carrier | None:
    """How a column of this type travels; None: as it is."""
    if isinstance(kind, YearMonthIntervalType):
        return Carrier(
            "cast(cast({} as interval month) as int)",
            IntegerType(),
            f"cast(cast({{}} as interval month) as {kind.simpleString()})",
            f"cast(interval '0' month as {kind.simpleString()})",
        )
    if isinstance(kind, CalendarIntervalType):
        return Carrier("cast({} as string)", StringType(), "cast({} as interval)", "make_interval()")
    if kind.typeName().startswith(_REFUSED) or (_inner(kind) and any(_untravelled(k) for k in _inner(kind))):
        raise InputError(
            f"column {name!r} is of type {kind.simpleString()}, which Spark does not hand to Python; "
            "convert it (e.g. with st_asbinary, or cast its intervals to int) before the join and back after it"
        )
    return None


def _untravelled(kind: DataType) -> bool:
    refused = isinstance(kind, YearMonthIntervalType | CalendarIntervalType) or kind.typeName().startswith(
        _REFUSED
    )
    return refused or any(map(_untravelled, _inner(kind)))


def _inner(kind: DataType) -> list[DataType]:
    if isinstance(kind, ArrayType):
        return [kind.elementType]
    if isinstance(kind, MapType):
        return [kind.keyType, kind.valueType]
    if isinstance(kind, StructType):
        return [field.dataType for field in kind.fields]
    return []


def holds(kind: DataType, *kinds: type[DataType]) -> bool:
    """Whether the type is, or contains, one of these."""
    return isinstance(kind, kinds) or any(holds(inner, *kinds) for inner in _inner(kind))


def plain(field: StructField) -> StructField:
    """The field without Spark's note of a watermark, which would not hold for results."""
    kept = {name: value for name, value in (field.metadata or {}).items() if name != "spark.watermarkDelayMs"}
    return StructField(field.name, field.dataType, field.nullable, kept)
