"""Types that Spark cannot send to Python: encoded as other types, at any depth, and decoded without loss.

| type | encoded as |
|---|---|
| interval of years and months | its number of months, an integer |
| calendar interval | its text |
| struct that contains an interval or a duplicate field name | the same struct with the field names f0, f1, ... |

A cast encodes a whole column, arrays, maps and structs included. It keeps nulls, empty values and the order of a map.
Decoding rebuilds each array, map and struct around its intervals instead, because a cast of the whole column would
not keep which parts are never null.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, TypeAlias

from pyspark.sql import Column
from pyspark.sql import functions as F  # noqa: N812 - its usual name
from pyspark.sql.types import (
    ArrayType,
    AtomicType,
    CalendarIntervalType,
    DataType,
    GeographyType,
    GeometryType,
    IntegerType,
    MapType,
    StringType,
    StructField,
    StructType,
    UserDefinedType,
    VariantType,
    YearMonthIntervalType,
)

from tidegate.types import InputError

_TypeReplacements: TypeAlias = Mapping[type[DataType], DataType]

_MONTH: Final = YearMonthIntervalType(YearMonthIntervalType.MONTH, YearMonthIntervalType.MONTH)
_INTERMEDIATE_TYPES: Final[_TypeReplacements] = {
    CalendarIntervalType: StringType(),
    YearMonthIntervalType: _MONTH,
}
_WITH_PARTS: Final = (VariantType, GeographyType, GeometryType)
"""The types that Spark calls atomic, and sends as structs."""
_ENCODED_TYPES: Final[_TypeReplacements] = {
    CalendarIntervalType: StringType(),
    YearMonthIntervalType: IntegerType(),
}


@dataclass(frozen=True)
class TypeEncoding:
    """Encodes a column of a type that Spark cannot send to Python, and decodes it."""

    kind: DataType

    @property
    def type(self) -> DataType:
        """The encoded type."""
        return _replace_types(self.kind, _ENCODED_TYPES)

    def encode(self, column: Column) -> Column:
        """Encode a column."""
        # All parts nullable: a stream's plan may not know that a part is never null, and then a strict cast fails.
        intermediate, encoded = (
            _replace_types(self.kind, replacements, all_nullable=True)
            for replacements in (_INTERMEDIATE_TYPES, _ENCODED_TYPES)
        )
        return column.cast(intermediate).cast(encoded)

    def decode(self, column: Column, *, nullable: bool) -> Column:
        """Decode a column; `nullable` states whether it may be null."""
        return _decode(column, self.kind, nullable=nullable)


def encoding_of(kind: DataType, name: str) -> TypeEncoding | None:
    """The encoding of a column of this type; None if Spark can send it unchanged."""
    if not _needs_encoding(kind):
        return None
    undecodable = _undecodable_part(kind)
    if undecodable is not None:
        raise InputError(
            f"column {name!r} is of type {kind.simpleString()}; Spark cannot send the intervals in "
            f"{undecodable.simpleString()} to Python, nor rebuild it; convert them to strings or integers before the "
            "join, and back after it"
        )
    return TypeEncoding(kind)


def encoded_type(kind: DataType, name: str = "") -> DataType:
    """The type in which Spark sends a column of this type."""
    encoding = encoding_of(kind, name)
    return encoding.type if encoding else kind


def contains_type(kind: DataType, *kinds: type[DataType]) -> bool:
    """Whether the type is, or contains, one of these types."""
    return isinstance(kind, kinds) or any(contains_type(inner, *kinds) for inner in _inner(kind))


def is_atomic(kind: DataType) -> bool:
    """Whether values of this type have no parts."""
    return isinstance(kind, AtomicType) and not isinstance(kind, _WITH_PARTS)


def without_watermark(field: StructField) -> StructField:
    """The field without the metadata of a watermark, which does not apply to results."""
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


def _needs_encoding(kind: DataType) -> bool:
    """Whether Arrow has no form for the type: intervals, and structs with two fields of the same name."""
    has_duplicate_names = isinstance(kind, StructType) and len(set(kind.names)) < len(kind.names)
    return (
        has_duplicate_names
        or isinstance(kind, tuple(_ENCODED_TYPES))
        or any(map(_needs_encoding, _inner(kind)))
    )


def _undecodable_part(kind: DataType) -> DataType | None:
    """The part that cannot be decoded: a user-defined type, or a map whose keys Spark cannot order."""
    if isinstance(kind, UserDefinedType) and _needs_encoding(kind):
        return kind
    if isinstance(kind, MapType) and any(
        contains_type(k, CalendarIntervalType) for k in _inner(kind.keyType)
    ):
        return kind
    return next(filter(None, map(_undecodable_part, _inner(kind))), None)


def _replace_types(
    kind: DataType, replacements: _TypeReplacements, *, all_nullable: bool = False
) -> DataType:
    """The type with its parts replaced; with `all_nullable`, every part of it may be null."""
    if isinstance(kind, ArrayType):
        return ArrayType(
            _replace_types(kind.elementType, replacements, all_nullable=all_nullable),
            all_nullable or kind.containsNull,
        )
    if isinstance(kind, MapType):
        key, value = (
            _replace_types(k, replacements, all_nullable=all_nullable) for k in (kind.keyType, kind.valueType)
        )
        return MapType(key, value, all_nullable or kind.valueContainsNull)
    if isinstance(kind, StructType):
        names = [f"f{i}" for i in range(len(kind))] if _needs_encoding(kind) else kind.names
        inner = [_replace_types(f.dataType, replacements, all_nullable=all_nullable) for f in kind.fields]
        return StructType(
            [
                StructField(name, k, all_nullable or f.nullable, f.metadata)
                for name, k, f in zip(names, inner, kind.fields, strict=True)
            ]
        )
    return replacements.get(type(kind), kind)


def _decode(column: Column, kind: DataType, *, nullable: bool) -> Column:
    """Decode a column; parts that are never null stay so in the schema."""
    if not _needs_encoding(kind):
        return column
    if isinstance(kind, ArrayType):
        return F.transform(column, lambda e: _decode(e, kind.elementType, nullable=kind.containsNull))
    if isinstance(kind, MapType):
        # Rebuild only what must be: Spark changes a key of -0.0 that it rebuilds into 0.0.
        if _needs_encoding(kind.keyType):
            column = F.transform_keys(column, lambda k, _: _decode(k, kind.keyType, nullable=False))
        if _needs_encoding(kind.valueType):
            values_nullable = kind.valueContainsNull
            column = F.transform_values(
                column, lambda _, v: _decode(v, kind.valueType, nullable=values_nullable)
            )
        return column
    if isinstance(kind, StructType):
        if nullable:
            # In an array without nulls, Spark keeps which fields are never null. An empty array gives null.
            array_of_one = F.array_compact(F.array(column))
            return F.get(F.transform(array_of_one, lambda s: _decode(s, kind, nullable=False)), F.lit(0))
        return F.struct(
            *(
                _decode(column[f"f{i}"], f.dataType, nullable=f.nullable).alias(f.name, metadata=f.metadata)
                for i, f in enumerate(kind.fields)
            )
        )
    interval = column.cast(_INTERMEDIATE_TYPES[type(kind)]).cast(kind)
    return interval if nullable or kind != CalendarIntervalType() else F.coalesce(interval, F.make_interval())
