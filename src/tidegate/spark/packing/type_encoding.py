"""Types that Spark will not hand to Python: carried as others, at any depth, and brought back bit for bit.

An interval of years or months goes as its whole months, a calendar interval as its text, and the fields of a struct
that holds one under names of our own, since Arrow knows no two of one name. One cast reaches into arrays, maps and
structs on the way out, and leaves nulls, empty values and the order of a map alone. On the way back each is rebuilt
around its intervals instead: no cast of a whole could promise what is never null.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, TypeAlias

from pyspark.sql import Column
from pyspark.sql import functions as F  # noqa: N812 - its usual name
from pyspark.sql.types import (
    ArrayType,
    CalendarIntervalType,
    DataType,
    IntegerType,
    MapType,
    StringType,
    StructField,
    StructType,
    UserDefinedType,
    YearMonthIntervalType,
)

from tidegate.types import InputError

_Swaps: TypeAlias = Mapping[type[DataType], DataType]

_MONTH: Final = YearMonthIntervalType(YearMonthIntervalType.MONTH, YearMonthIntervalType.MONTH)
_MONTHS: Final[_Swaps] = {CalendarIntervalType: StringType(), YearMonthIntervalType: _MONTH}
_TRAVEL: Final[_Swaps] = {CalendarIntervalType: StringType(), YearMonthIntervalType: IntegerType()}


@dataclass(frozen=True)
class Carrier:
    """How a column of a type travels, and how it comes back."""

    kind: DataType

    @property
    def type(self) -> DataType:
        """Its type on the way."""
        return _swapped(self.kind, _TRAVEL)

    def sent(self, column: Column) -> Column:
        """The column made ready."""
        # Loose, since a stream's plan may forget what is never null, and a cast that claims it would fail.
        months, travel = (_swapped(self.kind, swaps, loose=True) for swaps in (_MONTHS, _TRAVEL))
        return column.cast(months).cast(travel)

    def returned(self, column: Column, *, nullable: bool) -> Column:
        """The column brought back."""
        return _rebuilt(column, self.kind, nullable=nullable)


def carrier(kind: DataType, name: str) -> Carrier | None:
    """How a column of this type travels; None: as it is."""
    if not _refused(kind):
        return None
    stuck = _stuck(kind)
    if stuck is not None:
        raise InputError(
            f"column {name!r} is of type {kind.simpleString()}; Spark does not hand the intervals in "
            f"{stuck.simpleString()} to Python and cannot rebuild it: convert these to strings or integers before "
            "the join and back after it"
        )
    return Carrier(kind)


def holds(kind: DataType, *kinds: type[DataType]) -> bool:
    """Whether the type is, or contains, one of these."""
    return isinstance(kind, kinds) or any(holds(inner, *kinds) for inner in _inner(kind))


def plain(field: StructField) -> StructField:
    """The field without Spark's note of a watermark, which would not hold for results."""
    kept = {name: value for name, value in (field.metadata or {}).items() if name != "spark.watermarkDelayMs"}
    return StructField(field.name, field.dataType, field.nullable, kept)


def _inner(kind: DataType) -> list[DataType]:
    if isinstance(kind, ArrayType):
        return [kind.elementType]
    if isinstance(kind, MapType):
        return [kind.keyType, kind.valueType]
    if isinstance(kind, StructType):
        return [field.dataType for field in kind.fields]
    if isinstance(kind, UserDefinedType):
        return [kind.sqlType()]
    return []


def _refused(kind: DataType) -> bool:
    """Whether Arrow has no form for the type: intervals, and structs with two fields of one name."""
    doubled = isinstance(kind, StructType) and len(set(kind.names)) < len(kind.names)
    return doubled or isinstance(kind, tuple(_TRAVEL)) or any(map(_refused, _inner(kind)))


def _stuck(kind: DataType) -> DataType | None:
    """The part that cannot be rebuilt: a user's own type, or a map whose keys Spark cannot order."""
    if isinstance(kind, UserDefinedType) and _refused(kind):
        return kind
    if isinstance(kind, MapType) and any(holds(k, CalendarIntervalType) for k in _inner(kind.keyType)):
        return kind
    return next(filter(None, map(_stuck, _inner(kind))), None)


def _swapped(kind: DataType, swaps: _Swaps, *, loose: bool = False) -> DataType:
    """The type on its way; `loose` if anything in it may be null."""
    if isinstance(kind, ArrayType):
        return ArrayType(_swapped(kind.elementType, swaps, loose=loose), loose or kind.containsNull)
    if isinstance(kind, MapType):
        key, value = (_swapped(k, swaps, loose=loose) for k in (kind.keyType, kind.valueType))
        return MapType(key, value, loose or kind.valueContainsNull)
    if isinstance(kind, StructType):
        names = [f"f{i}" for i in range(len(kind))] if _refused(kind) else kind.names
        inner = [_swapped(f.dataType, swaps, loose=loose) for f in kind.fields]
        return StructType(
            [
                StructField(name, k, loose or f.nullable, f.metadata)
                for name, k, f in zip(names, inner, kind.fields, strict=True)
            ]
        )
    return swaps.get(type(kind), kind)


def _rebuilt(column: Column, kind: DataType, *, nullable: bool) -> Column:
    """What travelled as it was; what is never null is known to be so."""
    if not _refused(kind):
        return column
    if isinstance(kind, ArrayType):
        return F.transform(column, lambda e: _rebuilt(e, kind.elementType, nullable=kind.containsNull))
    if isinstance(kind, MapType):
        # Each only where it must be: Spark makes 0.0 of a key of -0.0 that it rebuilds.
        if _refused(kind.keyType):
            column = F.transform_keys(column, lambda k, _: _rebuilt(k, kind.keyType, nullable=False))
        if _refused(kind.valueType):
            may = kind.valueContainsNull
            column = F.transform_values(column, lambda _, v: _rebuilt(v, kind.valueType, nullable=may))
        return column
    if isinstance(kind, StructType):
        if nullable:
            # Inside a list without nulls Spark still knows which fields are never null; an empty one gives null.
            one = F.array_compact(F.array(column))
            return F.get(F.transform(one, lambda s: _rebuilt(s, kind, nullable=False)), F.lit(0))
        return F.struct(
            *(
                _rebuilt(column[f"f{i}"], f.dataType, nullable=f.nullable).alias(f.name, metadata=f.metadata)
                for i, f in enumerate(kind.fields)
            )
        )
    interval = column.cast(_MONTHS[type(kind)]).cast(kind)
    return interval if nullable or kind != CalendarIntervalType() else F.coalesce(interval, F.make_interval())
