"""Parsing of conditions: SQL text to a syntax tree, with sqlglot's tokenizer.

A condition may use the part of Spark SQL that a threshold needs: numbers, names (also in backticks), `+ - * /`,
comparisons, AND and OR, and functions, with the precedence that they have in Spark. Everything else is refused, with
its position in the text and a remedy. So `interval` or `date` is a name like any other. The result is data. Nothing
is evaluated as Python or as SQL.

Deviations
----------
`^` is refused because it is a bitwise operation in Spark, and `--` because it starts a comment there. A sign before a
comparison is an error.
"""

from __future__ import annotations

from typing import Final, NoReturn

from sqlglot import TokenType

from tidegate.alerts.expressions._tokens import LEAVES, MAX_TOKENS, OPERAND, OPERATOR, Tokens, shortened
from tidegate.alerts.expressions.evaluation import FUNCTIONS
from tidegate.alerts.expressions.nodes import (
    CONNECTIVES,
    PRECEDENCE,
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
MAX_DEPTH: Final = 60
_SIGNS: Final = (TokenType.PLUS, TokenType.DASH)


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
    tree = _Parser(tokens).parse()
    spellings: dict[str, str] = {}
    for name in input_names(tree):
        if (first := spellings.setdefault(name.casefold(), name)) != name:
            raise InputError(
                f"{shortened(text)}: {first} and {name} are the same column for Spark; use one spelling"
            )
    return tree


class _Parser:
    """A parser by operator precedence: operators of higher precedence, then those to the left, are applied first."""

    def __init__(self, tokens: Tokens) -> None:
        self.tokens = tokens
        self.at = self.depth = 0

    def parse(self) -> Node:
        """The tree of all tokens."""
        tree = self._operation()
        if self.at < len(self.tokens.tokens):
            self.tokens.refuse_unexpected(self.at, OPERATOR)
        return tree

    def _next(self) -> TokenType | None:
        """The type of the next token; None at the end."""
        tokens = self.tokens.tokens
        return tokens[self.at].token_type if self.at < len(tokens) else None

    def _operation(self, lowest: int = 1) -> Node:
        """An operand and the operators that follow it, down to the lowest precedence."""
        start = self.at
        tree = self._operand()
        while (kind := self._next()) is not None and kind not in LEAVES:
            function = self.tokens.tokens[self.at].text.casefold()
            precedence = PRECEDENCE.get(function, 0)
            if precedence < lowest:
                break
            self.at += 1
            sides = {start: tree, self.at: self._operation(precedence + 1)}
            for first, side in sides.items():
                if is_condition(side) != (function in CONNECTIVES):
                    self._refuse(first, _COMPARISONS_ONLY if function in CONNECTIVES else _NUMBERS_ONLY)
            tree = Call(function, tuple(sides.values()))
        return tree

    def _operand(self) -> Node:
        at, kind = self.at, self._next()
        if kind not in (*LEAVES, *_SIGNS, TokenType.L_PAREN):
            self.tokens.refuse_unexpected(at, OPERAND)
        if self.depth >= MAX_DEPTH:
            self.tokens.refuse_token(at, f"nested more than {MAX_DEPTH} deep; simplify the expression")
        self.at += 1
        if kind in LEAVES:
            return self._leaf(at)
        self.depth += 1
        if kind is TokenType.L_PAREN:
            tree = self._operation()
            self._close("a parenthesis is not closed; add )")
        else:
            tree = self._operand()
            if is_condition(tree):
                self._refuse(at, "a comparison cannot have a sign; compare numbers")
            if kind is TokenType.DASH:
                tree = Call("negate", (tree,))
        self.depth -= 1
        return tree

    def _leaf(self, at: int) -> Node:
        self.tokens.check_leaf(at)
        token = self.tokens.tokens[at]
        if token.token_type is TokenType.VAR and self._next() is TokenType.L_PAREN:
            return self._call(at, token.text)
        if token.token_type is not TokenType.NUMBER:
            return Name(token.text)
        if (value := float(token.text)) == float("inf"):
            self.tokens.refuse_token(at, "beyond the range of 64-bit floats; write a smaller number")
        return Number(value)

    def _arguments(self) -> tuple[Node, ...]:
        """The arguments of a function, whose parenthesis opens here."""
        arguments: list[Node] = []
        self.depth += 1
        self.at += 1
        more = self._next() is not TokenType.R_PAREN
        while more:
            start = self.at
            arguments.append(self._operation())
            if is_condition(arguments[-1]):
                self._refuse(start, "a function takes numbers, not comparisons")
            more = self._next() is TokenType.COMMA
            self.at += more
        self._close("expected , or ) after an argument")
        self.depth -= 1
        return tuple(arguments)

    def _close(self, expected: str) -> None:
        if self._next() is not TokenType.R_PAREN:
            self.tokens.refuse_unexpected(self.at, expected)
        self.at += 1

    def _refuse(self, start: int, remedy: str) -> NoReturn:
        """Raise an error about the first number or name from a token on."""
        while self.tokens.tokens[start].token_type not in LEAVES:
            start += 1
        self.tokens.refuse_token(start, remedy)

    def _call(self, at: int, written: str) -> Node:
        arguments = self._arguments()
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
