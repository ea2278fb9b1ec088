"""The syntax tree of a condition, and the SQL text that stands for it."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final, TypeAlias


@dataclass(frozen=True)
class Number:
    """A literal, 0 or more."""

    value: float


@dataclass(frozen=True)
class Name:
    """The value of a stream's row."""

    name: str


@dataclass(frozen=True)
class Call:
    """An operator or a function, on its operands; a minus sign is called `negate`."""

    function: str
    arguments: tuple[Node, ...]


Node: TypeAlias = Number | Name | Call

COMPARISONS: Final = (">", ">=", "<", "<=")
CONNECTIVES: Final = ("or", "and")
MANY: Final = ("greatest", "least")

BINDING: Final = {"or": 1, "and": 2} | dict.fromkeys(COMPARISONS, 3) | {"+": 4, "-": 4, "*": 5, "/": 5}
_UNARY: Final = 6
_EXACT: Final = 1e15
"""Below it a whole number is written with all its digits."""
RESERVED: Final = frozenset(
    (*CONNECTIVES, "not", "between", "case", "is", "in", "like", "div", "true", "false", "null")
)
"""Words of SQL that are not names, unless they are quoted."""


def names(tree: Node) -> tuple[str, ...]:
    """The inputs of an expression, in the order in which they first occur."""
    if isinstance(tree, Name):
        return (tree.name,)
    if isinstance(tree, Number):
        return ()
    return tuple(dict.fromkeys(name for part in tree.arguments for name in names(part)))


def sql(tree: Node) -> str:
    """Write an expression as SQL that `parse` and Spark read as the same tree.

    Examples
    --------
    >>> from tidegate.alerts.expressions.parsing import parse
    >>> sql(parse("a-(b-c) / (2*d)"))
    'a - (b - c) / (2 * d)'
    """
    return _written(tree, 0)


def is_condition(tree: Node) -> bool:
    """Whether it is true or false, not a number."""
    return isinstance(tree, Call) and tree.function in (*COMPARISONS, *CONNECTIVES)


def _written(tree: Node, binding: int) -> str:
    if isinstance(tree, Number):
        return f"{tree.value:.0f}" if tree.value.is_integer() and tree.value < _EXACT else repr(tree.value)
    if isinstance(tree, Name):
        plain = re.fullmatch(r"[^\W\d]\w*", tree.name) and tree.name.casefold() not in RESERVED
        return tree.name if plain else f"`{tree.name.replace('`', '``')}`"
    parts = tree.arguments
    if tree.function == "negate":
        # Two minus signs in a row would start a comment.
        inner = _written(parts[0], _UNARY + 1)
        return f"({'-' + inner})" if binding > _UNARY else f"-{inner}"
    own = BINDING.get(tree.function)
    if own is None:
        return f"{tree.function}({', '.join(_written(part, 0) for part in parts)})"
    # Operators bind to the left; comparisons do not chain.
    left, right = _written(parts[0], own + (own == BINDING[">"])), _written(parts[1], own + 1)
    line = f"{left} {tree.function.upper()} {right}"
    return f"({line})" if binding > own else line
