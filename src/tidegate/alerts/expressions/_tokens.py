"""The tokens of a condition: tokenized and parsed by sqlglot, and checked in between."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Lock
from typing import Any, ClassVar, Final, NamedTuple, NoReturn

from sqlglot import Dialect, Token, TokenType, exp
from sqlglot import Parser as SqlParser
from sqlglot import Tokenizer as SqlTokenizer
from sqlglot.errors import ErrorLevel, ParseError, TokenError

from tidegate.alerts.expressions.nodes import RESERVED
from tidegate.types import InputError

MAX_DEPTH: Final = 60
MAX_TOKENS: Final = 500
_MAX_CHARACTERS: Final = 100_000
_MAX_SHOWN: Final = 300
"""The number of characters of the text that an error message shows."""
_FRAMES_PER_LEVEL: Final = 40
"""The frames that sqlglot's parser needs at most for one level of nesting."""

_THRESHOLD: Final = "an alarm needs a threshold; compare with >, >=, < or <="
_OPERAND: Final = "expected a number, a name, a function or ("
_OPERATOR: Final = "expected an operator here, or the end"
_STRING: Final = "values are numbers, not strings; put a name into backticks"
_COMMENT: Final = "this starts a comment in SQL; write a - (-b), or remove the comment"
_REMEDIES: Final = {
    **dict.fromkeys(("=", "==", "<=>", "<>", "!="), f"{_THRESHOLD}, e.g. abs(a - b) >= 1"),
    "!": "invert the comparison instead",
    "^": "^ is a bitwise operation in Spark; write pow(x, 2)",
    "%": "a remainder is not supported; use floor",
    ".": "write the plain name of a stream's value, or put the whole name into backticks",
    "&&": "write AND",
    "||": "write OR",
    "'": _STRING,
    '"': _STRING,
    "not": "invert the comparison instead of NOT",
    "between": "write x >= 1 AND x <= 2 instead of BETWEEN",
    "case": "use greatest and least instead of CASE",
    "is": "a row without a value raises no alarm; remove IS",
    "in": f"{_THRESHOLD} instead of IN",
    "like": "values are numbers; compare with >, >=, < or <= instead of LIKE",
    "div": "write floor(a / b) instead of DIV",
    "true": "write a comparison instead of TRUE",
    "false": "write a comparison instead of FALSE",
    "null": "a row without a value raises no alarm; remove NULL",
}
_NO_QUOTE: Final = "\0"
"""The quote of strings for sqlglot, which needs one. A text that contains this character is refused."""
_NUMBER: Final = re.compile(r"(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?")
_WORD: Final = re.compile(r"[^\W\d]\w*")

_PREFIX: Final = "n"
_LEAVES: Final = {TokenType.NUMBER: "{}", TokenType.VAR: _PREFIX + "{}", TokenType.IDENTIFIER: _PREFIX + "{}"}
"""The types of operands, and the text that replaces an operand: the position of its token."""


class _Dialect(Dialect):
    """A subset of Spark SQL without strings, whose only keywords are AND and OR.

    All other words are names. `Tokens` refuses all other signs. Operators have the same precedence as in Spark.
    """

    class Tokenizer(SqlTokenizer):
        IDENTIFIERS: ClassVar[list[str | tuple[str, str]]] = ["`"]
        QUOTES: ClassVar[list[tuple[str, str] | str]] = [_NO_QUOTE]
        KEYWORDS: ClassVar[dict[str, TokenType]] = {
            "AND": TokenType.AND,
            "OR": TokenType.OR,
            ">=": TokenType.GTE,
            "<=": TokenType.LTE,
            **dict.fromkeys(("==", "<=>", "<>", "!=", "&&", "||"), TokenType.UNKNOWN),
        }

    class Parser(SqlParser):
        UNARY_PARSERS: ClassVar[dict[TokenType, Callable[..., Any]]] = {
            TokenType.DASH: SqlParser.UNARY_PARSERS[TokenType.DASH],
            TokenType.PLUS: lambda self: self.expression(Plus(this=self._parse_unary())),
        }


class Plus(exp.Unary):
    """A unary plus."""


class _Group(NamedTuple):
    """An open parenthesis: whether it holds the arguments of a function, and how deep it is nested."""

    call: bool
    depth: int


class Tokens:
    """The tokens of a text. Each is of an allowed type, and may follow the token before it.

    Whether operands are numbers or comparisons is not checked here.
    """

    def __init__(self, text: str) -> None:
        self.text = text
        if len(text) > _MAX_CHARACTERS:
            raise InputError(
                f"{shortened(text)} has {len(text):,} characters; write an expression of at most {_MAX_CHARACTERS:,}"
            )
        if _NO_QUOTE in text:
            self.refuse(text.index(_NO_QUOTE), _NO_QUOTE, _OPERAND)
        try:
            self.tokens = _with_fractions(_Dialect().tokenize(text))
        except TokenError as error:
            self.refuse(text.rfind("`"), "`", "a name in backticks is not closed; add a backtick", error)
        if len(self.tokens) >= MAX_TOKENS:
            self.refuse_token(
                MAX_TOKENS - 1, f"more than {MAX_TOKENS} names, numbers and signs; simplify the expression"
            )
        self._check_comments()
        self.depth = self._signs = 0
        self._groups: list[_Group] = []
        self._after_operand = False
        for at, token in enumerate(self.tokens):
            self._CHECKS.get(token.token_type, Tokens._check_other)(self, at)
        if not self._after_operand:
            self.refuse_token(len(self.tokens), _OPERAND)
        if self._groups:
            self.refuse_token(len(self.tokens), self._missing_after_operand())

    def refuse(self, start: int, what: str, remedy: str, cause: Exception | None = None) -> NoReturn:
        """Raise an error about the part of the text that begins at `start`."""
        part = f" ({what!r})" if what else " (its end)"
        raise InputError(f"{shortened(self.text)}, at character {start + 1}{part}: {remedy}") from cause

    def refuse_token(self, at: int, remedy: str) -> NoReturn:
        """Raise an error about a token, or about the end of the text."""
        if at == len(self.tokens):
            self.refuse(len(self.text), "", remedy)
        token = self.tokens[at]
        self.refuse(token.start, token.text, remedy)

    def parse(self) -> exp.Expression:
        """Parse the tokens by sqlglot; each leaf of the tree has the position of its token as its name."""
        numbered = [
            _token(token.token_type, _LEAVES[token.token_type].format(at), token.start, token.end)
            if token.token_type in _LEAVES
            else token
            for at, token in enumerate(self.tokens)
        ]
        parser = _Dialect().parser(error_level=ErrorLevel.IMMEDIATE)
        with _deeper_recursion(_FRAMES_PER_LEVEL * (self.depth + 10)):
            try:
                (tree,) = parser.parse_into(exp.Condition, numbered, self.text)
            except (ParseError, RecursionError) as error:
                problem = str(error).splitlines()[0]
                raise InputError(f"{shortened(self.text)}: {problem}; simplify the expression") from error
        assert isinstance(tree, exp.Expression)  # noqa: S101 - checked tokens are an expression
        return tree

    def _check_comments(self) -> None:
        """Refuse comments, which the tokenizer skips."""
        ends = [0, *(token.end + 1 for token in self.tokens)]
        starts = [*(token.start for token in self.tokens), len(self.text)]
        for end, start in zip(ends, starts, strict=True):
            skipped = self.text[end:start]
            if skipped.strip():
                place = start - len(skipped.lstrip())
                self.refuse(place, self.text[place : place + 2], _COMMENT)

    def _missing_after_operand(self) -> str:
        """The remedy for an operand that no operator follows."""
        if not self._groups:
            return _OPERATOR
        return (
            "expected , or ) after an argument"
            if self._groups[-1].call
            else "a parenthesis is not closed; add )"
        )

    def _is_call(self, at: int) -> bool:
        """Whether the token is the name of a function."""
        following = self.tokens[at + 1 : at + 2]
        return (
            self.tokens[at].token_type is TokenType.VAR
            and bool(following)
            and following[0].token_type is TokenType.L_PAREN
        )

    def _check_depth(self, at: int) -> int:
        depth = (self._groups[-1].depth if self._groups else 0) + self._signs + 1
        self.depth = max(self.depth, depth)
        if depth > MAX_DEPTH:
            self.refuse_token(at, f"nested more than {MAX_DEPTH} deep; simplify the expression")
        return depth

    def _check_leaf(self, at: int) -> None:
        if self._after_operand:
            self._check_suffix(at)
            self.refuse_token(at, _remedy(self.tokens[at].text, self._missing_after_operand()))
        self._check_word(at)
        self._check_depth(at)
        if not self._is_call(at):
            self._after_operand, self._signs = True, 0

    def _check_suffix(self, at: int) -> None:
        """Refuse a number that letters follow, such as 2.5D."""
        number, word = self.tokens[at - 1 : at + 1]
        if number.token_type is TokenType.NUMBER and number.end + 1 == word.start:
            self.refuse(number.start, number.text + word.text, "write a plain number, e.g. 2.5 or 1e3")

    def _check_word(self, at: int) -> None:
        token = self.tokens[at]
        if token.token_type is TokenType.NUMBER and not _NUMBER.fullmatch(token.text):
            self.refuse_token(at, "write a plain number, e.g. 2.5 or 1e3")
        if token.token_type is TokenType.IDENTIFIER and not token.text:
            self.refuse(token.start, "``", "a name is empty; write it between the backticks")
        if token.token_type is not TokenType.VAR:
            return
        if token.text.casefold() in RESERVED:
            self.refuse_token(at, _remedy(token.text, _OPERAND))
        if not _WORD.fullmatch(token.text):
            plain = _WORD.match(token.text)
            odd = plain.end() if plain else 0
            self.refuse(token.start + odd, token.text[odd], _OPERATOR if odd else _OPERAND)

    def _check_open(self, at: int) -> None:
        if self._after_operand:
            self.refuse_token(at, self._missing_after_operand())
        self._groups.append(_Group(at > 0 and self._is_call(at - 1), self._check_depth(at)))
        self._signs = 0

    def _check_close(self, at: int) -> None:
        if not self._groups:
            self.refuse_token(at, _OPERATOR if self._after_operand else _OPERAND)
        empty = self._groups[-1].call and self.tokens[at - 1].token_type is TokenType.L_PAREN
        if not self._after_operand and not empty:
            self.refuse_token(at, _OPERAND)
        self._groups.pop()
        self._after_operand, self._signs = True, 0

    def _check_comma(self, at: int) -> None:
        if not self._after_operand:
            self.refuse_token(at, _OPERAND)
        if not self._groups or not self._groups[-1].call:
            self.refuse_token(at, self._missing_after_operand())
        self._after_operand, self._signs = False, 0

    def _check_sign(self, at: int) -> None:  # noqa: ARG002 - a sign can follow everything
        self._signs = 0 if self._after_operand else self._signs + 1
        self._after_operand = False

    def _check_binary(self, at: int) -> None:
        if not self._after_operand:
            self.refuse_token(at, _OPERAND)
        self._after_operand, self._signs = False, 0

    def _check_other(self, at: int) -> None:
        self.refuse_token(
            at,
            _remedy(self.tokens[at].text, self._missing_after_operand() if self._after_operand else _OPERAND),
        )

    _CHECKS: ClassVar[dict[TokenType, Callable[[Tokens, int], None]]] = {
        **dict.fromkeys(_LEAVES, _check_leaf),
        **dict.fromkeys((TokenType.PLUS, TokenType.DASH), _check_sign),
        **dict.fromkeys((TokenType.STAR, TokenType.SLASH, TokenType.AND, TokenType.OR), _check_binary),
        **dict.fromkeys((TokenType.GT, TokenType.GTE, TokenType.LT, TokenType.LTE), _check_binary),
        TokenType.L_PAREN: _check_open,
        TokenType.R_PAREN: _check_close,
        TokenType.COMMA: _check_comma,
    }


def _with_fractions(found: list[Token]) -> list[Token]:
    """Join a dot and the number that follows it, so that `.5` is one number."""
    tokens: list[Token] = []
    for token in found:
        dot = tokens[-1] if tokens else None
        if (
            dot is not None
            and dot.token_type is TokenType.DOT
            and token.token_type is TokenType.NUMBER
            and "." not in token.text
            and dot.end + 1 == token.start
        ):
            tokens[-1] = _token(TokenType.NUMBER, f".{token.text}", dot.start, token.end)
        else:
            tokens.append(token)
    return tokens


def _token(kind: TokenType, text: str, start: int, end: int) -> Token:
    return Token(kind, text, start=start, end=end)


def token_position(leaf: exp.Expression) -> int:
    """The position of the token of a leaf or a function."""
    return int(leaf.name.removeprefix(_PREFIX))


def _remedy(text: str, otherwise: str) -> str:
    return _REMEDIES.get(text.casefold(), otherwise)


def shortened(text: str) -> str:
    """The text as error messages show it."""
    return repr(text if len(text) <= _MAX_SHOWN else f"{text[:_MAX_SHOWN]}...")


_RECURSION: Final = Lock()


@contextmanager
def _deeper_recursion(frames: int) -> Iterator[None]:
    """Raise the recursion limit; one thread at a time, so that each restores the limit that it found."""
    with _RECURSION:
        before = sys.getrecursionlimit()
        sys.setrecursionlimit(before + frames)
        try:
            yield
        finally:
            sys.setrecursionlimit(before)
