"""From what the user states about importance to what workers are told."""

from __future__ import annotations

from pyspark.errors import PySparkException
from pyspark.sql import functions as F  # noqa: N812 - its usual name
from pyspark.sql.pandas.types import to_arrow_type
from pyspark.sql.types import NumericType

from tidegate.importance import Definition, DefinitionFile, DefinitionLike, Expression
from tidegate.importance.definition import walk
from tidegate.policies import Policy
from tidegate.spark.frames.side import SideFrame
from tidegate.spark.join.valuation import Valuation
from tidegate.spark.packing.columns import travelled
from tidegate.types import InputError, Side


def stated(
    importance: DefinitionLike | None, frames: dict[Side, SideFrame], policy: Policy, *, streaming: bool
) -> Valuation | None:
    """Read a definition, and refuse what could not value the rows of these sides."""
    if importance is None:
        check_needs(policy, importance)
        return None
    given = Definition.of(importance)
    found = {file: file.read() for file in walk(given) if isinstance(file, DefinitionFile)}
    if not streaming:
        given, found = given.with_files(lambda file: found[file].definition), {}
    types = {
        side: {
            field.name: travelled(to_arrow_type(field.dataType, timezone="UTC"))
            for field, carried in zip(frame.fields, frame.carriers, strict=True)
            if carried is None
        }
        for side, frame in frames.items()
    }
    valuation = Valuation(
        given,
        found,
        {side: {name: frames[side].column(name) for name in names} for side, names in types.items()},
        types,
        {side: _computed(given, side, frame) for side, frame in frames.items()},
    )
    valuation.check(valuation.settled(found))
    return valuation


def check_needs(policy: Policy, importance: DefinitionLike | None) -> None:
    """Refuse a policy that ranks by importance where there is none."""
    if importance is None and "importance" in policy.needs:
        raise InputError(
            f"policy {policy.label()!r} needs to know what rows are worth; give importance=, such as the name of a "
            "column, or one of tidegate.importance"
        )


def parts(valuation: Valuation | None, side: Side) -> dict[str, str]:
    """What Spark computes of each row beforehand: SQL by the name of the hidden column."""
    computed = valuation.computed[side] if valuation else {}
    return {name: _as_number(sql) for sql, name in computed.items()}


def _computed(given: Definition, side: Side, frame: SideFrame) -> dict[str, str]:
    """Name a hidden column for each of Spark's expressions, once Spark has said that it understands them."""
    expressions = [part.sql for part in walk(given.on(side)) if isinstance(part, Expression)]
    computed = {sql: f"v{i}" for i, sql in enumerate(dict.fromkeys(expressions))}
    for sql in computed:
        empty = frame.empty()
        try:
            kind = empty.select(F.expr(sql)).schema.fields[0].dataType
            # Beside other columns and within a cast, neither an aggregate nor a generator passes.
            empty.select("*", F.expr(_as_number(sql)).alias("v")).schema  # noqa: B018 - asked for what it raises
        except PySparkException as error:
            raise InputError(
                f"importance: {sql!r} on the {side}: {str(error).splitlines()[0]}; "
                f"it has {', '.join(frame.names)}"
            ) from error
        if not isinstance(kind, NumericType):
            raise InputError(
                f"importance: {sql!r} on the {side} is of type {kind.simpleString()}; write a number"
            )
    return computed


def _as_number(sql: str) -> str:
    return f"cast(({sql}) as double)"
