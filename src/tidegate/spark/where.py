"""A further condition on pairs, written as a Spark SQL expression.

The expression is parsed and taken apart. Whatever looks at one side only, Spark computes beforehand as a hidden
column of that side, with all its functions and exactly its meaning. What is left are the few operators that
see both sides, and those are evaluated on the columns of candidate pairs, as SQL has it: null is unknown, NaN
is larger than any number and equal to itself. Nothing is ever evaluated as Python.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, TypeAlias, cast

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import sqlglot
from sqlglot import exp

from tidegate.types import InputError

if TYPE_CHECKING:
    from tidegate.types import Array, Side

Fetch: TypeAlias = "Callable[[Side, str], pa.Array]"
Node: TypeAlias = tuple[Any, ...]

_COMPARE: Final[dict[type[exp.Expression], str]] = {
    exp.EQ: "equal",
    exp.NEQ: "not_equal",
    exp.LT: "less",
    exp.LTE: "less_equal",
    exp.GT: "greater",
    exp.GTE: "greater_equal",
}
_CONNECT: Final[dict[type[exp.Expression], str]] = {exp.And: "and_kleene", exp.Or: "or_kleene"}
_ARITHMETIC: Final[dict[type[exp.Expression], str]] = {
    exp.Add: "add_checked",
    exp.Sub: "subtract_checked",
    exp.Mul: "multiply_checked",
}


class EntangledError(InputError):
    """An operator sees both sides that cannot be evaluated on pairs."""


@dataclass(frozen=True)
class Where:
    """A condition that was taken apart.

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
        mask: Array = pc.fill_null(_evaluated(self.tree, fetch), False).to_numpy(zero_copy_only=False)  # noqa: FBT003
        return mask


def parse(text: str, left: list[str], right: list[str]) -> exp.Expression:
    """Parse an expression over `l.` and `r.`, and qualify its bare names; such a name must be on one side only.

    Examples
    --------
    >>> parse("amount > r.price", ["amount"], ["price"]).sql("spark")
    '`l`.`amount` > `r`.`price`'
    """
    try:
        tree = sqlglot.parse_one(text, read="spark")
    except sqlglot.errors.SqlglotError as error:
        raise InputError(f"where={text!r} cannot be parsed: {error}") from error
    for column in tree.find_all(exp.Column):
        name, table = column.name, column.table
        owners = {"l": left, "r": right}
        if not table:
            found = [alias for alias, names in owners.items() if name in names]
            if len(found) != 1:
                where = "both sides" if found else "neither side"
                raise InputError(f"where={text!r}: column {name!r} is on {where}; write l.{name} or r.{name}")
            table = found[0]
        if table not in owners or name not in owners[table]:
            known = ", ".join([f"l.{n}" for n in left] + [f"r.{n}" for n in right])
            raise InputError(f"where={text!r}: there is no column {table}.{name}; there are {known}")
        column.replace(exp.column(name, table=table, quoted=True))
    return cast("exp.Expression", tree)


def take_apart(tree: exp.Expression) -> Where:
    """Separate what one side can compute from what needs both."""
    parts: dict[Side, dict[str, str]] = {"left": {}, "right": {}}
    return Where(_node(tree, parts), parts["left"], parts["right"])


def _node(tree: exp.Expression, parts: dict[Side, dict[str, str]]) -> Node:
    sides: set[Side] = {"left" if c.table == "l" else "right" for c in tree.find_all(exp.Column)}
    if len(sides) <= 1:
        side: Side = next(iter(sides), "left")
        name = f"w{len(parts[side])}"
        bare = tree.transform(lambda n: exp.column(n.name, quoted=True) if isinstance(n, exp.Column) else n)
        parts[side][name] = bare.sql("spark")
        return ("column", side, name)
    if isinstance(tree, exp.Paren):
        return _node(tree.this, parts)
    if isinstance(tree, exp.Not):
        return ("invert", _node(tree.this, parts))
    if isinstance(tree, exp.Abs):
        return ("abs_checked", _node(tree.this, parts))
    if isinstance(tree, exp.Between):
        low = exp.GTE(this=tree.this.copy(), expression=tree.args["low"].copy())
        high = exp.LTE(this=tree.this.copy(), expression=tree.args["high"].copy())
        return ("and_kleene", _node(low, parts), _node(high, parts))
    for kinds in (_COMPARE, _CONNECT, _ARITHMETIC):
        if type(tree) in kinds:
            return (kinds[type(tree)], _node(tree.this, parts), _node(tree.expression, parts))
    raise EntangledError(
        f"where: {tree.sql('spark')!r} looks at both sides; between the sides use comparisons, AND, OR, NOT, "
        "BETWEEN, +, -, * and abs (within one side any Spark SQL expression will do)"
    )


def _evaluated(node: Node, fetch: Fetch) -> pa.Array:
    if node[0] == "column":
        return fetch(node[1], node[2])
    operands = [_evaluated(operand, fetch) for operand in node[1:]]
    if node[0] in _COMPARE.values() and all(pa.types.is_floating(operand.type) for operand in operands):
        operands = [_ordered(operand) for operand in operands]
    return pc.call_function(node[0], operands)


def _ordered(floats: pa.Array) -> pa.Array:
    """Integers in the order of SQL's floats: -0.0 equals 0.0, and NaN equals itself above all numbers."""
    values = floats.cast(pa.float64()).fill_null(0.0).to_numpy(zero_copy_only=False) + 0.0
    bits = np.where(np.isnan(values), np.nan, values).view(np.int64)
    numbers = np.where(bits < 0, np.iinfo(np.int64).min - bits, bits)
    numbers[np.isnan(values)] = np.iinfo(np.int64).max
    return pa.array(numbers, mask=floats.is_null().to_numpy(zero_copy_only=False))
