"""The layout of a join: what is stored with its state, and compared when the query continues from a checkpoint."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tidegate.spark.query.evolution import is_plain_column
from tidegate.spark.query.sql_to_arrow import arrow_expressions

if TYPE_CHECKING:
    from tidegate.spark.bucket.join.pair_condition import PairCondition
    from tidegate.spark.bucket.join.plan import How, SamplePlan
    from tidegate.spark.bucket.join.valuation import Valuation
    from tidegate.spark.frames.keys import JoinKey
    from tidegate.spark.frames.side import SideFrame
    from tidegate.spark.query.arrow_expression import ArrowExpression
    from tidegate.spark.query.result_schema import ResultSchema
    from tidegate.types import Side


def join_layout(
    frames: dict[Side, SideFrame],
    keys: JoinKey,
    *,
    buckets: int,
    how: How,
    where: PairCondition | None,
    valuation: Valuation | None,
    sampling: SamplePlan | None,
    result: ResultSchema,
    name: str,
    streaming: bool,
) -> dict[str, Any]:
    """The layout of a join or a sample, as values that JSON can represent."""
    layout: dict[str, Any] = {
        "name": name,
        "buckets": buckets,
        "how": how,
        "on": keys.described,
        "where": None if where is None else [where.left, where.right, repr(where.tree)],
        "importance": valuation.computed if valuation and any(valuation.computed.values()) else None,
        "time": [frame.time for frame in frames.values()],
    }
    for side, frame in frames.items():
        layout[f"{side} columns"] = frame.described
        layout[f"{side} required"] = [field.name for field in frame.fields if not field.nullable]
        layout[f"{side} keys"] = list(keys.columns[side])
    if streaming:
        layout["computable"] = _computable(frames, where, valuation)
    if sampling:
        layout["sample"] = sampling.described
    if sampling and sampling.reservoir:
        layout["reservoir"] = {"columns": result.row_types}
    return layout


def _computable(
    frames: dict[Side, SideFrame], where: PairCondition | None, valuation: Valuation | None
) -> dict[str, dict[Side, dict[str, ArrowExpression]]]:
    """By use and side, the expressions that can be computed for rows that were buffered before they were used."""
    expressions: dict[str, dict[Side, dict[str, ArrowExpression]]] = {"where": {}, "importance": {}}
    for side, frame in frames.items():
        parts = where.hidden_columns(side) if where else {}
        new = [sql for sql in parts.values() if not is_plain_column(sql)]
        expressions["where"][side] = arrow_expressions(frame, new)
        numbers = valuation.computed[side] if valuation else ()
        expressions["importance"][side] = arrow_expressions(frame, numbers, as_double=True)
    return expressions
