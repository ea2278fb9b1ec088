"""How the condition `where=` of a join is applied: to pairs of rows in a bucket, or to whole results."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Self

from pyspark.errors import PySparkException
from pyspark.sql import functions as F  # noqa: N812 - its usual name
from pyspark.sql.types import BooleanType
from sqlglot import exp

from tidegate.spark.frames.explained_plan import analyzed_plan
from tidegate.spark.packing.arrow_types import arrow_type
from tidegate.spark.query.where_parser import (
    TwoSidedExpressionError,
    check_types,
    parse,
    split_condition,
    to_sql,
)
from tidegate.types import SIDES, InputError

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame

    from tidegate.spark.bucket.join.pair_condition import PairCondition
    from tidegate.spark.bucket.join.plan import How
    from tidegate.spark.frames.side import SideFrame
    from tidegate.spark.query.result_schema import ResultSchema
    from tidegate.types import Side


@dataclass(frozen=True)
class WhereClause:
    """A checked condition; without one, both parts are None.

    Parameters
    ----------
    pairs
        The condition on pairs of rows.
    results
        Only for an inner join, if an operator uses both sides and cannot be evaluated on pairs: the syntax tree of
        the condition, which filters whole results.
    """

    pairs: PairCondition | None = None
    results: exp.Expression | None = None

    @classmethod
    def of(cls, where: str | None, frames: dict[Side, SideFrame], how: How) -> Self:
        """Parse and check a condition."""
        if where is None:
            return cls()
        tree = parse(where, frames["left"].names, frames["right"].names)
        _check_same_meaning(where, tree, frames)
        try:
            pairs = split_condition(tree)
            types = {side: _part_types(frames[side], pairs.hidden_columns(side)) for side in SIDES}
            check_types(pairs, types, where)
        except TwoSidedExpressionError:
            if how != "inner":
                raise
            return cls(results=tree)
        return cls(pairs)

    def hidden_columns(self, side: Side) -> dict[str, str]:
        """The hidden columns that Spark computes before the join: SQL by name of the column."""
        return self.pairs.hidden_columns(side) if self.pairs else {}

    def filter(self, results: DataFrame, frames: dict[Side, SideFrame], schema: ResultSchema) -> DataFrame:
        """The results for which the condition holds, as far as it was not applied to pairs."""
        if self.results is None:
            return results
        return results.where(_rewrite_for_results(self.results, frames, schema))


def _check_same_meaning(where: str, tree: exp.Expression, frames: dict[Side, SideFrame]) -> None:
    """Check, on empty DataFrames, that Spark accepts the condition and parses it as we do."""
    both = frames["left"].empty().alias("l").crossJoin(frames["right"].empty().alias("r"))
    try:
        selected = both.select(F.expr(where).alias("holds"))
        kind = selected.schema.fields[0].dataType
    except PySparkException as error:
        raise InputError(f"where={where!r}: {str(error).splitlines()[0]}") from error
    if not isinstance(kind, BooleanType):
        raise InputError(
            f"where={where!r} is of type {kind.simpleString()}; it must be a condition, which is true or false"
        )
    rewritten = to_sql(tree)
    if _plan_without_ids(selected) != _plan_without_ids(both.select(F.expr(rewritten).alias("holds"))):
        raise InputError(f"where={where!r} would be parsed as {rewritten!r}; write it in simpler SQL")


def _plan_without_ids(frame: DataFrame) -> str:
    """The analyzed plan of a DataFrame without the ids of columns."""
    return re.sub(r"#\d+L?", "", analyzed_plan(frame)).casefold()


def _part_types(frame: SideFrame, parts: dict[str, str]) -> dict[str, pa.DataType]:
    schema = frame.empty().select(*(F.expr(sql).alias(name) for name, sql in parts.items())).schema
    try:
        for field in schema.fields:
            if "collate" in field.dataType.simpleString():
                raise TwoSidedExpressionError(
                    f"where compares {field.dataType.simpleString()} between the sides; use lower(...)"
                )
        return {field.name: arrow_type(field.dataType) for field in schema.fields}
    except PySparkException as error:
        raise TwoSidedExpressionError(
            f"where: {str(error).splitlines()[0]}; cast it to a number or a string"
        ) from error


def _rewrite_for_results(tree: exp.Expression, frames: dict[Side, SideFrame], schema: ResultSchema) -> str:
    """Rewrite a condition on pairs in SQL over the result's columns."""
    names: dict[tuple[str, str], str] = {}
    for name, source in zip(schema.row_names, schema.sources, strict=True):
        for alias, side, column in (("l", "left", source.left), ("r", "right", source.right)):
            if column is not None:
                names[alias, frames[side].names[frames[side].columns.index(column)]] = name  # type: ignore[index]

    def rename(node: exp.Expression) -> exp.Expression:
        if isinstance(node, exp.Column):
            return exp.column(names[node.table, node.name], quoted=True)
        return node

    return to_sql(tree.transform(rename))
