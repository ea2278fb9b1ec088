"""A condition on pairs, evaluated on the columns of candidates as in SQL.

Null is unknown; NaN is larger than any number and equal to itself. `where.py` makes conditions from SQL text on the
driver; workers need only this module.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc

from tidegate.spark.join.float_order import ordered

if TYPE_CHECKING:
    from tidegate.types import Array, Side

Fetch: TypeAlias = "Callable[[Side, str], pa.Array]"
Node: TypeAlias = tuple[Any, ...]
"""A function of Arrow and its operands, or ("column", side, name)."""

COMPARISONS: Final = ("equal", "not_equal", "less", "less_equal", "greater", "greater_equal")


@dataclass(frozen=True)
class PairCondition:
    """A condition, with the parts that Spark computes beforehand.

    Parameters
    ----------
    tree
        What is evaluated on pairs.
    left, right
        What Spark computes beforehand: SQL by the name of the hidden column.
    """

    tree: Node
    left: dict[str, str]
    right: dict[str, str]

    def holds(self, fetch: Fetch) -> Array:
        """Mark the pairs for which the condition is true; unknown is not true."""
        mask: Array = pc.fill_null(evaluated(self.tree, fetch), False).to_numpy(zero_copy_only=False)  # noqa: FBT003 - a value
        return mask


def evaluated(node: Node, fetch: Fetch) -> pa.Array:
    """The value of a tree for each pair; `fetch` gives a column of one side."""
    if node[0] == "column":
        return fetch(node[1], node[2])
    operands = [evaluated(operand, fetch) for operand in node[1:]]
    if node[0] in COMPARISONS and any(pa.types.is_floating(operand.type) for operand in operands):
        operands = [_ordered(operand) for operand in operands]
    return pc.call_function(node[0], operands)


def _ordered(numbers: pa.Array) -> pa.Array:
    floats = numbers.cast(pa.float64(), safe=False)
    values = ordered(floats.fill_null(0.0).to_numpy(zero_copy_only=False))
    return pa.array(values, mask=floats.is_null().to_numpy(zero_copy_only=False))
