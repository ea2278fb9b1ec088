"""From the user's definition of importance to the valuation that workers run."""

from __future__ import annotations

from pyspark.errors import PySparkException
from pyspark.sql import functions as F  # noqa: N812 - its usual name
from pyspark.sql.types import NumericType

from tidegate.importance import Definition, DefinitionFile, DefinitionLike, Expression
from tidegate.importance.definition import walk
from tidegate.spark.bucket.join.valuation import Valuation, as_double
from tidegate.spark.frames.side import SideFrame
from tidegate.spark.packing.arrow_types import arrow_type
from tidegate.types import InputError, Side


def read_importance(
    importance: DefinitionLike, frames: dict[Side, SideFrame], *, streaming: bool
) -> Valuation:
    """Read a definition of importance, and refuse one that cannot be computed from the columns of these sides."""
    definition = Definition.of(importance)
    contents = {file: file.read() for file in walk(definition) if isinstance(file, DefinitionFile)}
    if not streaming:
        definition, contents = definition.with_files(lambda file: contents[file].definition), {}
    types = {
        side: {
            field.name: arrow_type(field.dataType)
            for field, encoding in zip(frame.fields, frame.encodings, strict=True)
            if encoding is None
        }
        for side, frame in frames.items()
    }
    valuation = Valuation(
        definition,
        contents,
        {side: {name: frames[side].column(name) for name in names} for side, names in types.items()},
        types,
        {side: _name_expressions(definition, side, frame) for side, frame in frames.items()},
    )
    valuation.check(valuation.resolve(contents))
    return valuation


def _name_expressions(definition: Definition, side: Side, frame: SideFrame) -> dict[str, str]:
    """Check the SQL expressions of a definition, and name a hidden column for each."""
    expressions = [part.sql for part in walk(definition.on(side)) if isinstance(part, Expression)]
    computed = {sql: f"v{i}" for i, sql in enumerate(dict.fromkeys(expressions))}
    for sql in computed:
        empty = frame.empty()
        try:
            kind = empty.select(F.expr(sql)).schema.fields[0].dataType
            # With other columns and inside a cast, Spark refuses aggregates and generators.
            empty.select("*", F.expr(as_double(sql)).alias("v")).schema  # noqa: B018 - for the errors that it raises
        except PySparkException as error:
            raise InputError(
                f"importance: {sql!r} on the {side}: {str(error).splitlines()[0]}; "
                f"it has {', '.join(frame.names)}"
            ) from error
        if not isinstance(kind, NumericType):
            raise InputError(
                f"importance: {sql!r} on the {side} is of type {kind.simpleString()}; it must be a number"
            )
    return computed
