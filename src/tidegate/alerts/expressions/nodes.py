"""The syntax tree of a condition, and its SQL text."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final, TypeAlias


@dataclass(frozen=True)
class Number:
    """A number literal; never negative."""

    value: float


@dataclass(frozen=True)
class Name:
    """A name: the value of the stream with this name."""

    name: str


@dataclass(frozen=True)
class Call:
    """An operator or a function with its operands; the function of a unary minus is `negate`."""

    function: str
    arguments: tuple[Node, ...]


Node: TypeAlias = Number | Name | Call

COMPARISONS: Final = (">", ">=", "<", "<=")
CONNECTIVES: Final = ("or", "and")
VARIADIC: Final = ("greatest", "least")

PRECEDENCE: Final = {"or": 1, "and": 2} | dict.fromkeys(COMPARISONS, 3) | {"+": 4, "-": 4, "*": 5, "/": 5}
_UNARY_PRECEDENCE: Final = 6
_LARGEST_PLAIN_NUMBER: Final = 1e15
"""Whole numbers below this are written with all their digits."""
RESERVED: Final = frozenset(
    (*CONNECTIVES, "not", "between", "case", "is", "in", "like", "div", "true", "false", "null")
)
"""SQL keywords, which are names only in backticks."""


def input_names(tree: Node) -> tuple[str, ...]:
    """The names in an expression, in the order in which they first occur."""
    if isinstance(tree, Name):
        return (tree.name,)
    if isinstance(tree, Number):
        return ()
    return tuple(dict.fromkeys(name for part in tree.arguments for name in input_names(part)))


def to_sql(tree: Node) -> str:
    """Write an expression as SQL that `parse` and Spark read as the same tree.

    Examples
    --------
    >>> from tidegate.alerts.expressions.parsing import parse
    >>> to_sql(parse("a-(b-c) / (2*d)"))
    'a - (b - c) / (2 * d)'
    """
    return _to_sql(tree, 0)


def is_condition(tree: Node) -> bool:
    """Whether an expression is true or false, and not a number."""
    return isinstance(tree, Call) and tree.function in (*COMPARISONS, *CONNECTIVES)


def _to_sql(tree: Node, context: int) -> str:
    """Write an expression, in parentheses if its precedence is below that of its context."""
    if isinstance(tree, Number):
        return (
            f"{tree.value:.0f}"
            if tree.value.is_integer() and tree.value < _LARGEST_PLAIN_NUMBER
            else repr(tree.value)
        )
    if isinstance(tree, Name):
        plain = re.fullmatch(r"[^\W\d]\w*", tree.name) and tree.name.casefold() not in RESERVED
        return tree.name if plain else f"`{tree.name.replace('`', '``')}`"
    parts = tree.arguments
    if tree.function == "negate":
        # Two minus signs in a row would start a comment.
        inner = _to_sql(parts[0], _UNARY_PRECEDENCE + 1)
        return f"(-{inner})" if context > _UNARY_PRECEDENCE else f"-{inner}"
    own = PRECEDENCE.get(tree.function)
    if own is None:
        return f"{tree.function}({', '.join(_to_sql(part, 0) for part in parts)})"
    # Operators are left-associative; comparisons do not chain.
    left, right = _to_sql(parts[0], own + (own == PRECEDENCE[">"])), _to_sql(parts[1], own + 1)
    text = f"{left} {tree.function.upper()} {right}"
    return f"({text})" if context > own else text
