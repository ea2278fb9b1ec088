"""Parsing of conditions: SQL text to a syntax tree, with sqlglot's tokenizer and its grammar of Spark SQL.

A condition may use the part of Spark SQL that a threshold needs: numbers, names (also in backticks), `+ - * /`,
comparisons, AND and OR, and functions. Everything else is refused, with its position in the text and a remedy.

1. `Tokens` gets the tokens from sqlglot and checks them: allowed types only, no comments, each token after one that
   it may follow, and within the limits on length and nesting.
2. sqlglot parses the tokens. Names and numbers are first replaced by the positions of their tokens. So `interval` or
   `date` is a name like any other, and the position of every leaf in the text is known.
3. `_TreeBuilder` converts sqlglot's tree. It refuses types of nodes that are not listed.

The result is data. Nothing is evaluated as Python or as SQL.

Deviations
----------
`^` is refused because it is a bitwise operation in Spark, and `--` because it starts a comment there. sqlglot drops
a unary plus; here it is kept, since a sign before a comparison is an error. sqlglot's parser needs some twenty frames
of Python's stack for each pair of parentheses, so the recursion limit is raised while it runs.
"""

from __future__ import annotations

from typing import Final, NoReturn

from sqlglot import exp

from tidegate.alerts.expressions._tokens import MAX_TOKENS, Plus, Tokens, shortened, token_position
from tidegate.alerts.expressions.evaluation import FUNCTIONS
from tidegate.alerts.expressions.nodes import (
    CONNECTIVES,
    VARIADIC,
    Call,
    Name,
    Node,
    Number,
    input_names,
    is_condition,
)
from tidegate.types import InputError

_ALIASES: Final = {"log": "ln", "power": "pow", "ceiling": "ceil", "signum": "sign"}
_NUMBERS_ONLY: Final = "a comparison compares two numbers, e.g. a > 1 AND b > 2"
_COMPARISONS_ONLY: Final = "AND and OR connect comparisons, e.g. a > 1 AND b > 2"
_OPERATORS: Final[dict[type[exp.Expression], str]] = {
    exp.GT: ">",
    exp.GTE: ">=",
    exp.LT: "<",
    exp.LTE: "<=",
    exp.Add: "+",
    exp.Sub: "-",
    exp.Mul: "*",
    exp.Div: "/",
    exp.And: "and",
    exp.Or: "or",
}


def parse(text: str) -> Node:
    """Parse an expression or a condition.

    Examples
    --------
    >>> parse("a - 2 * b")
    Call(function='-', arguments=(Name(name='a'),
         Call(function='*', arguments=(Number(value=2.0), Name(name='b')))))
    >>> parse("a ^ 2 > 0")
    Traceback (most recent call last):
    tidegate.InputError: 'a ^ 2 > 0', at character 3 ('^'): ^ is a bitwise operation in Spark; write pow(x, 2)
    """
    if not isinstance(text, str):
        raise InputError(f"{text!r} is not an expression; write it as text, e.g. 'a - b > 1'")
    tokens = Tokens(text)
    tree = _TreeBuilder(tokens).build(tokens.parse())
    spellings: dict[str, str] = {}
    for name in input_names(tree):
        if (first := spellings.setdefault(name.casefold(), name)) != name:
            raise InputError(
                f"{shortened(text)}: {first} and {name} are the same column for Spark; use one spelling"
            )
    return tree


class _TreeBuilder:
    """Converts a tree of sqlglot; refuses types of nodes that are not listed."""

    def __init__(self, tokens: Tokens) -> None:
        self.tokens = tokens

    def build(self, tree: exp.Expression) -> Node:
        """Convert a node and its operands."""
        kind = type(tree)
        if kind is exp.Paren:
            return self.build(tree.this)
        if kind is exp.Literal:
            return self._number(tree)
        if kind is exp.Column:
            return Name(self.tokens.tokens[token_position(tree)].text)
        if kind is exp.Anonymous:
            return self._call(tree)
        if kind in {exp.Neg, Plus}:
            operand = self.build(tree.this)
            if is_condition(operand):
                self._refuse(tree, "a comparison cannot have a sign; compare numbers")
            return Call("negate", (operand,)) if kind is exp.Neg else operand
        if kind not in _OPERATORS:
            self._refuse(
                tree, f"{tree.key} is not supported; use + - * /, comparisons, AND, OR and functions"
            )
        return self._binary(_OPERATORS[kind], tree)

    def _refuse(self, tree: exp.Expression, remedy: str) -> NoReturn:
        """Raise an error about a part of the text, which begins with the first of its leaves."""
        leaves = [token_position(leaf) for leaf in tree.find_all(exp.Literal, exp.Column, exp.Anonymous)]
        self.tokens.refuse_token(min(leaves), remedy)

    def _binary(self, function: str, tree: exp.Expression) -> Node:
        sides = self.build(tree.this), self.build(tree.expression)
        for side, part in zip(sides, (tree.this, tree.expression), strict=True):
            if is_condition(side) != (function in CONNECTIVES):
                self._refuse(part, _COMPARISONS_ONLY if function in CONNECTIVES else _NUMBERS_ONLY)
        return Call(function, sides)

    def _number(self, tree: exp.Expression) -> Node:
        at = token_position(tree)
        value = float(self.tokens.tokens[at].text)
        if value == float("inf"):
            self.tokens.refuse_token(at, "beyond the range of 64-bit floats; write a smaller number")
        return Number(value)

    def _call(self, tree: exp.Expression) -> Node:
        at = token_position(tree)
        written = self.tokens.tokens[at].text
        arguments = tuple(map(self.build, tree.expressions))
        for argument, part in zip(arguments, tree.expressions, strict=True):
            if is_condition(argument):
                self._refuse(part, "a function takes numbers, not comparisons")
        name = written.casefold()
        if name == "log" and len(arguments) == 2:  # noqa: PLR2004 - log(base, x), as in Spark
            return Call("/", (Call("ln", (arguments[1],)), Call("ln", (arguments[0],))))
        name = _ALIASES.get(name, name)
        known = (*FUNCTIONS, "pow", *VARIADIC)
        if name not in known:
            self.tokens.refuse_token(
                at, f"function {written} is not supported; use one of {', '.join((*known, 'log'))}"
            )
        low, high = (2, 2) if name == "pow" else (2, MAX_TOKENS) if name in VARIADIC else (1, 1)
        if not low <= len(arguments) <= high:
            expected = f"at least {low}" if high > low else str(low)
            self.tokens.refuse_token(at, f"{written} takes {expected} arguments, not {len(arguments)}")
        return Call(name, arguments)
