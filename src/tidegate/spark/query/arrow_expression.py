"""The values of expressions of one side for buffered rows; `sql_to_arrow.py` describes them on the driver."""

from __future__ import annotations

from typing import Any, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc

from tidegate.arrow_columns import one_chunk
from tidegate.spark.bucket.join.pair_condition import evaluate

ArrowExpression: TypeAlias = list[Any]
"""An operation and its operands: `["column", name]`, `["value", value, kind]`, `["cast", kind, operand]`,
`["when", condition, operand]`, or the name of an Arrow function and its operands."""


def compute(expression: ArrowExpression, table: pa.Table) -> pa.Array:
    """The values of an expression for rows with these columns.

    Examples
    --------
    >>> table = pa.table({"c0": pa.array([1, None, 3], pa.int32())})
    >>> compute(["add_checked", ["column", "c0"], ["value", 800, "int32"]], table).to_pylist()
    [801, None, 803]
    """
    operation, *operands = expression
    if operation == "column":
        return one_chunk(table.column(operands[0]))
    if operation == "value":
        return pa.repeat(pa.scalar(operands[0], pa.type_for_alias(operands[1])), table.num_rows)
    if operation == "cast":
        return compute(operands[1], table).cast(pa.type_for_alias(operands[0]))
    if operation == "when":
        # Only where the condition holds: elsewhere the computation may fail.
        holds = pc.fill_null(compute(operands[0], table), False)  # noqa: FBT003 - a value
        values = compute(operands[1], table.filter(holds))
        return pc.replace_with_mask(pa.nulls(table.num_rows, values.type), holds, values)
    values = [compute(operand, table) for operand in operands]
    places = [("column", "left", str(i)) for i in range(len(values))]
    return evaluate((operation, *places), lambda _, name: values[int(name)])
