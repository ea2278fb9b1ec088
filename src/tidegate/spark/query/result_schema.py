"""The columns of a join's results: where each comes from, how they leave a bucket, and how the user sees them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

from pyspark.sql import functions as F  # noqa: N812 - its usual name
from pyspark.sql.types import BooleanType, DataType, DoubleType, LongType, StructField, StructType

from tidegate.spark.bucket.join.plan import (
    LEFT_ONLY,
    UNCERTAIN,
    WITH_UNMATCHED,
    How,
    OutputColumn,
    SamplePlan,
)
from tidegate.spark.packing.arrow_types import arrow_type
from tidegate.spark.packing.columns import BATCH, OWNER, PROBABILITY, SHOWN, WEIGHT
from tidegate.spark.packing.type_encoding import encoded_type, encoding_of
from tidegate.types import InputError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from tidegate.spark.frames.keys import JoinKey
    from tidegate.spark.frames.side import SideFrame
    from tidegate.types import Side


@dataclass(frozen=True)
class ResultSchema:
    """The columns of a result.

    Parameters
    ----------
    fields
        All fields, as the user sees them: those of the two rows, then those that describe a result.
    sources
        For each field that comes from a row: the columns of the sides.
    """

    fields: StructType
    sources: tuple[OutputColumn, ...]

    @classmethod
    def of(
        cls,
        frames: dict[Side, SideFrame],
        keys: JoinKey,
        how: How,
        suffix: str,
        sampling: SamplePlan | None,
    ) -> Self:
        """The columns of the results of two sides; refuse names that would occur twice."""
        left, right = frames["left"], frames["right"]
        shared = dict(keys.shared)
        fields: list[StructField] = []
        sources: list[OutputColumn] = []

        def add(name: str, field: StructField, a: str | None, b: str | None, *, nullable: bool) -> None:
            if name.casefold() in [f.name.casefold() for f in fields]:
                raise InputError(
                    f"the result would have two columns {name!r}; rename one before the join, or choose another "
                    f"suffix than {suffix!r}"
                )
            fields.append(StructField(name, field.dataType, field.nullable or nullable, field.metadata))
            sources.append(OutputColumn(a, b, arrow_type(encoded_type(field.dataType, field.name))))

        for field in left.fields:
            both = shared.get(field.name) if how not in LEFT_ONLY else None
            other = right.column(both) if both else None
            source, nullable = field, False
            if how in ("right", "full"):
                nullable = right.by_name(both).nullable if both else True
                wider = keys.wider(field, right.by_name(both)) if both else field.dataType
                source = StructField(field.name, wider, field.nullable, field.metadata)
            add(field.name, source, left.column(field.name), other, nullable=nullable)
        if how not in LEFT_ONLY:
            left_names = {field.name.casefold() for field in left.fields}
            for field in right.fields:
                if field.name in shared.values():
                    continue
                name = field.name + suffix if field.name.casefold() in left_names else field.name
                add(name, field, None, right.column(field.name), nullable=how in ("left", "full"))
        added = _added_fields(how, sampling)
        for field in added:
            if field.name in [f.name.casefold() for f in fields]:
                raise InputError(
                    f"an input has a column {field.name!r}, which the result adds; rename it first"
                )
        return cls(StructType([*fields, *added]), tuple(sources))

    def name_of(self, side: Side, column: str) -> str | None:
        """The name of a column of a side in the result, if it is there."""
        return next(
            (
                name
                for name, source in zip(self.row_names, self.sources, strict=True)
                if (source.left if side == "left" else source.right) == column
            ),
            None,
        )

    @property
    def row_names(self) -> list[str]:
        """The names of the columns that come from rows."""
        return self.fields.names[: len(self.sources)]

    @property
    def row_types(self) -> dict[str, Any]:
        """The fields that come from rows, without metadata, as JSON."""
        fields = [
            StructField(field.name, field.dataType) for field in self.fields.fields[: len(self.sources)]
        ]
        described: dict[str, Any] = StructType(fields).jsonValue()
        return described

    @property
    def sent(self) -> StructType:
        """The columns that leave a bucket: those of rows are named o0, o1, ..., and encoded ones have other types."""
        return StructType(
            [
                StructField(
                    f"o{i}" if i < len(self.sources) else field.name,
                    encoded_type(field.dataType, field.name),
                    field.nullable,
                )
                for i, field in enumerate(self.fields)
            ]
        )

    def decode(self, results: DataFrame) -> DataFrame:
        """Results with the user's names, types and metadata."""
        columns = []
        for name, field in zip(results.columns, self.fields, strict=True):
            encoding, column = encoding_of(field.dataType, field.name), F.col(name)
            decoded = encoding.decode(column, nullable=field.nullable) if encoding else column
            columns.append(decoded.alias(field.name, metadata=field.metadata))
        return results.select(*columns)


def _added_fields(how: How, sampling: SamplePlan | None) -> list[StructField]:
    """The fields that describe a result."""
    kinds: dict[str, DataType] = {UNCERTAIN: BooleanType()} if how in WITH_UNMATCHED else {}
    if sampling:
        kinds |= {PROBABILITY: DoubleType(), WEIGHT: DoubleType(), OWNER: LongType(), SHOWN: DoubleType()}
    if sampling and sampling.reservoir:
        kinds |= {BATCH: LongType()}
    return [StructField(name, kind, nullable=False) for name, kind in kinds.items()]
