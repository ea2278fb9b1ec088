"""Arithmetic over the values of streams, as SQL writes it: text to a tree, and back.

The grammar is the part of Spark SQL that a threshold needs: numbers, names (also in backticks), `+ - * /`,
comparisons, AND and OR with Spark's precedence, and functions. What Spark reads differently than one may think is
refused: `^` is a bitwise operation there, `--` starts a comment. The tree is data; nothing is ever evaluated as
Python.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final, NamedTuple, NoReturn, TypeAlias

from tidegate.alerts.functions import FUNCTIONS
from tidegate.types import InputError


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

_BINDING: Final = {"or": 1, "and": 2} | dict.fromkeys(COMPARISONS, 3) | {"+": 4, "-": 4, "*": 5, "/": 5}
_UNARY: Final = 6
_ALIASES: Final = {"log": "ln", "power": "pow", "ceiling": "ceil", "signum": "sign"}
_DEEPEST: Final = 60
_EXACT: Final = 1e15  # below it a whole number is written with all its digits
_LONGEST: Final = 500

_TOKENS: Final = re.compile(
    r"""\s*(?:
    (?P<number>(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)
    | (?P<word>[^\W\d]\w*)
    | `(?P<quoted>(?:[^`]|``)+)`
    | (?P<comment>--|/\*)
    | (?P<operator><=>|<=|>=|<>|!=|==|\|\||&&|[-+*/%^(),.<>=!&|~])
    | (?P<string>['"])
    | (?P<end>$)
    | (?P<other>.)
    )""",
    re.VERBOSE,
)
_INSTEAD: Final = {
    **dict.fromkeys(
        ("=", "==", "<=>", "<>", "!="),
        "an alarm needs a threshold; compare with >, >=, < or <=, e.g. abs(a - b) >= 1",
    ),
    "!": "turn the comparison round instead",
    "^": "^ is a bitwise operation in Spark; write pow(x, 2)",
    "%": "a remainder is not supported; use floor",
    ".": "write the plain name of a stream's value, or put the whole name into backticks",
    "&&": "write AND",
    "||": "write OR",
}
_WORDS_INSTEAD: Final = {
    "not": "turn the comparison round instead of NOT",
    "between": "write x >= 1 AND x <= 2 instead of BETWEEN",
    "case": "use greatest and least instead of CASE",
    "is": "a row without a value raises no alarm, so there is no need for IS",
    "in": "an alarm needs a threshold; compare with >, >=, < or <= instead of IN",
    "like": "values are numbers; compare with >, >=, < or <= instead of LIKE",
    "div": "write floor(a / b) instead of DIV",
    "true": "compare something instead of TRUE",
    "false": "compare something instead of FALSE",
    "null": "a row without a value raises no alarm, so there is no need for NULL",
}


def parse(text: str) -> Node:
    """Read an expression or a condition.

    Examples
    --------
    >>> parse("a - 2 * b")
    Call(function='-', arguments=(Name(name='a'),
         Call(function='*', arguments=(Number(value=2.0), Name(name='b')))))
    >>> parse("a ^ 2 > 0")
    Traceback (most recent call last):
    tidegate.types.InputError: 'a ^ 2 > 0', at character 3 ('^'): ^ is a bitwise operation in Spark; write pow(x, 2)
    """
    if not isinstance(text, str):
        raise InputError(f"{text!r} is not an expression; write it as text, e.g. 'a - b > 1'")
    return _Parser(text).whole()


def names(tree: Node) -> tuple[str, ...]:
    """The inputs of an expression, in the order in which they first occur."""
    if isinstance(tree, Name):
        return (tree.name,)
    if isinstance(tree, Number):
        return ()
    return tuple(dict.fromkeys(name for part in tree.arguments for name in names(part)))


def inputs(text: str) -> tuple[str, ...]:
    """The inputs of an expression that is still text.

    Examples
    --------
    >>> inputs("ln(h / 100) - `surface temperature` > 0")
    ('h', 'surface temperature')
    """
    return names(parse(text))


def sql(tree: Node) -> str:
    """Write an expression as SQL that `parse` and Spark read as the same tree.

    Examples
    --------
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
        plain = re.fullmatch(r"[^\W\d]\w*", tree.name) and tree.name.casefold() not in _RESERVED
        return tree.name if plain else f"`{tree.name.replace('`', '``')}`"
    parts = tree.arguments
    if tree.function == "negate":
        # Two minus signs in a row would start a comment.
        inner = _written(parts[0], _UNARY + 1)
        return f"({'-' + inner})" if binding > _UNARY else f"-{inner}"
    own = _BINDING.get(tree.function)
    if own is None:
        return f"{tree.function}({', '.join(_written(part, 0) for part in parts)})"
    # Operators bind to the left; comparisons do not chain.
    left, right = _written(parts[0], own + (own == _BINDING[">"])), _written(parts[1], own + 1)
    line = f"{left} {tree.function.upper()} {right}"
    return f"({line})" if binding > own else line


_RESERVED: Final = frozenset((*_WORDS_INSTEAD, *CONNECTIVES))


class _Token(NamedTuple):
    kind: str
    text: str
    at: int


class _Parser:
    """Precedence climbing over tokens, with the place of each for what went wrong."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.tokens = [_token(found) for found in _TOKENS.finditer(text)]
        self.next = 0
        self.depth = 0

    def whole(self) -> Node:
        if len(self.tokens) > _LONGEST:
            self.refuse(
                self.tokens[_LONGEST], f"longer than {_LONGEST} words and signs; simplify the expression"
            )
        tree = self.binary(1)
        token = self.tokens[self.next]
        if token.kind != "end":
            self.refuse(token, "expected an operator here, or the end")
        spelled: dict[str, str] = {}
        for name in names(tree):
            if spelled.setdefault(name.casefold(), name) != name:
                raise InputError(
                    f"{self.text!r}: {spelled[name.casefold()]} and {name} are one column for Spark; spell it alike"
                )
        return tree

    def refuse(self, token: _Token, remedy: str) -> NoReturn:
        what = f" ({token.text!r})" if token.text else " (its end)"
        if token.kind == "word":
            remedy = _WORDS_INSTEAD.get(token.text.casefold(), remedy)
        elif token.kind == "operator":
            remedy = _INSTEAD.get(token.text, remedy)
        elif token.kind == "string":
            remedy = "values are numbers, not strings; put a name into backticks"
        elif token.kind == "comment":
            remedy = "this starts a comment in SQL; write a - (-b), or leave the comment out"
        raise InputError(f"{self.text!r}, at character {token.at + 1}{what}: {remedy}")

    def take(self, sign: str, remedy: str) -> None:
        token = self.tokens[self.next]
        if token.text != sign or token.kind != "operator":
            self.refuse(token, remedy)
        self.next += 1

    def binary(self, binding: int) -> Node:
        left = self.operand()
        while True:
            token = self.tokens[self.next]
            word = token.text.casefold() if token.kind in {"word", "operator"} else ""
            own = _BINDING.get(word, 0)
            if own < binding:
                return left
            self.next += 1
            at = self.next
            right = self.binary(own + 1)
            for side, start in ((left, token), (right, self.tokens[at])):
                if is_condition(side) != (word in CONNECTIVES):
                    wanted = (
                        "AND and OR connect comparisons" if word in CONNECTIVES else "compare numbers, once"
                    )
                    self.refuse(_Token("", start.text, start.at), f"{wanted}, e.g. a > 1 AND b > 2")
            left = Call(word, (left, right))

    def operand(self) -> Node:
        token = self.tokens[self.next]
        self.next += 1
        self.depth += 1
        if self.depth > _DEEPEST:
            self.refuse(token, f"nested more than {_DEEPEST} deep; simplify the expression")
        try:
            return self.nested(token)
        finally:
            self.depth -= 1

    def nested(self, token: _Token) -> Node:
        if token.kind == "operator" and token.text in "+-(" and token.text:
            if token.text == "(":
                tree = self.binary(1)
                self.take(")", "a parenthesis is not closed; add )")
                return tree
            tree = self.operand()
            if is_condition(tree):
                self.refuse(token, "a comparison has no sign; compare numbers")
            return Call("negate", (tree,)) if token.text == "-" else tree
        if token.kind == "number":
            return self.number(token)
        if token.kind == "quoted":
            return Name(token.text)
        if token.kind != "word" or token.text.casefold() in _RESERVED:
            self.refuse(token, "expected a number, a name, a function or (")
        after = self.tokens[self.next]
        return self.call(token) if (after.kind, after.text) == ("operator", "(") else Name(token.text)

    def number(self, token: _Token) -> Node:
        after = self.tokens[self.next]
        if after.kind == "word" and after.at == token.at + len(token.text):
            self.refuse(
                _Token("", token.text + after.text, token.at), "write a plain number, e.g. 2.5 or 1e3"
            )
        value = float(token.text)
        if value == float("inf"):
            self.refuse(token, "beyond what a 64-bit number holds")
        return Number(value)

    def call(self, token: _Token) -> Node:
        self.next += 1
        arguments: list[Node] = []
        while self.tokens[self.next].text != ")":
            if arguments:
                self.take(",", "expected , or ) after an argument")
            start = self.tokens[self.next]
            arguments.append(self.binary(1))
            if is_condition(arguments[-1]):
                self.refuse(_Token("", start.text, start.at), "a function takes numbers, not comparisons")
        self.next += 1
        name = token.text.casefold()
        if name == "log" and len(arguments) == 2:  # noqa: PLR2004 - log(base, x), as Spark has it
            return Call("/", (Call("ln", (arguments[1],)), Call("ln", (arguments[0],))))
        name = _ALIASES.get(name, name)
        known = (*FUNCTIONS, "pow", *MANY)
        if name not in known:
            self.refuse(token, f"function {token.text} is not known; there are {', '.join((*known, 'log'))}")
        least, most = (2, 2) if name == "pow" else (2, 10**6) if name in MANY else (1, 1)
        if not least <= len(arguments) <= most:
            wanted = f"at least {least}" if most > least else str(least)
            self.refuse(token, f"{token.text} takes {wanted}, not {len(arguments)} arguments")
        return Call(name, tuple(arguments))


def _token(found: re.Match[str]) -> _Token:
    kind = found.lastgroup or "end"
    text = found[kind].replace("``", "`") if kind == "quoted" else found[kind]
    return _Token(kind, text, found.start(kind) - (kind == "quoted"))
