"""A condition on pairs, evaluated on the columns of candidates as in SQL.

Null is unknown; NaN is larger than any number and equal to itself. `where_parser.py` builds conditions from SQL
text on the driver. Workers need only this module.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc

from tidegate.spark.packing.columns import to_sortable_integers

if TYPE_CHECKING:
    from tidegate.types import Array, Side

Fetch: TypeAlias = "Callable[[Side, str], pa.Array]"
Node: TypeAlias = tuple[Any, ...]
"""An Arrow function and its operands, or ("column", side, name)."""

COMPARISONS: Final = ("equal", "not_equal", "less", "less_equal", "greater", "greater_equal")


@dataclass(frozen=True)
class PairCondition:
    """A condition on pairs, and the hidden columns that it needs.

    Parameters
    ----------
    tree
        The expression that is evaluated on pairs.
    left, right
        By side, the hidden columns that Spark computes before the join: SQL by name of the column.
    """

    tree: Node
    left: dict[str, str]
    right: dict[str, str]

    def hidden_columns(self, side: Side) -> dict[str, str]:
        """The hidden columns of one side."""
        return self.left if side == "left" else self.right

    def mask(self, fetch: Fetch) -> Array:
        """Mark the pairs for which the condition is true; unknown is not true."""
        mask: Array = pc.fill_null(evaluate(self.tree, fetch), False).to_numpy(zero_copy_only=False)  # noqa: FBT003 - a value
        return mask


def evaluate(node: Node, fetch: Fetch) -> pa.Array:
    """The value of a tree for each pair; `fetch` gives a column of one side."""
    if node[0] == "column":
        return fetch(node[1], node[2])
    operands = [evaluate(operand, fetch) for operand in node[1:]]
    if node[0] in COMPARISONS and any(pa.types.is_floating(operand.type) for operand in operands):
        operands = [_to_sortable(operand) for operand in operands]
    return pc.call_function(node[0], operands)


def _to_sortable(numbers: pa.Array) -> pa.Array:
    floats = numbers.cast(pa.float64(), safe=False)
    values = to_sortable_integers(floats.fill_null(0.0).to_numpy(zero_copy_only=False))
    return pa.array(values, mask=floats.is_null().to_numpy(zero_copy_only=False))
