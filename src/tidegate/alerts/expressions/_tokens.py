"""The tokens of a condition, from sqlglot's tokenizer, and errors that name a position in its text."""

from __future__ import annotations

import re
from typing import ClassVar, Final, NoReturn

from sqlglot import Dialect, Token, TokenType
from sqlglot import Tokenizer as SqlTokenizer
from sqlglot.errors import TokenError

from tidegate.alerts.expressions.nodes import RESERVED
from tidegate.types import InputError

MAX_TOKENS: Final = 500
_MAX_CHARACTERS: Final = 100_000
_MAX_SHOWN: Final = 300
"""The number of characters of the text that an error message shows."""

_THRESHOLD: Final = "an alarm needs a threshold; compare with >, >=, < or <="
OPERAND: Final = "expected a number, a name, a function or ("
OPERATOR: Final = "expected an operator here, or the end"
_PLAIN_NUMBER: Final = "write a plain number, e.g. 2.5 or 1e3"
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

LEAVES: Final = (TokenType.NUMBER, TokenType.VAR, TokenType.IDENTIFIER)
"""The types of numbers and names."""


class _Dialect(Dialect):
    """The signs and words of Spark SQL, without strings. The only keywords are AND and OR; other words are names."""

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


class Tokens:
    """The tokens of a text that is not too long and has no comments."""

    def __init__(self, text: str) -> None:
        self.text = text
        if len(text) > _MAX_CHARACTERS:
            raise InputError(
                f"{shortened(text)} has {len(text):,} characters; write an expression of at most {_MAX_CHARACTERS:,}"
            )
        if _NO_QUOTE in text:
            self.refuse(text.index(_NO_QUOTE), _NO_QUOTE, OPERAND)
        try:
            self.tokens = _with_fractions(_Dialect().tokenize(text))
        except TokenError as error:
            self.refuse(text.rfind("`"), "`", "a name in backticks is not closed; add a backtick", error)
        if len(self.tokens) >= MAX_TOKENS:
            self.refuse_token(
                MAX_TOKENS - 1, f"more than {MAX_TOKENS} names, numbers and signs; simplify the expression"
            )
        self._check_comments()

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

    def refuse_unexpected(self, at: int, expected: str) -> NoReturn:
        """Raise an error about a token that does not belong here, or about the end of the text."""
        if at == len(self.tokens):
            self.refuse_token(at, expected)
        before, token = self.tokens[max(at - 1, 0)], self.tokens[at]
        if (
            TokenType.NUMBER is before.token_type
            and before.end + 1 == token.start
            and token.token_type in LEAVES
        ):
            self.refuse(before.start, before.text + token.text, _PLAIN_NUMBER)  # such as 2.5D
        self.refuse_token(at, _REMEDIES.get(token.text.casefold(), expected))

    def check_leaf(self, at: int) -> None:
        """Refuse a number or a name that is not written plainly."""
        token = self.tokens[at]
        if token.token_type is TokenType.NUMBER and not _NUMBER.fullmatch(token.text):
            self.refuse_token(at, _PLAIN_NUMBER)
        if token.token_type is TokenType.IDENTIFIER and not token.text:
            self.refuse(token.start, "``", "a name is empty; write it between the backticks")
        if token.token_type is not TokenType.VAR:
            return
        if token.text.casefold() in RESERVED:
            self.refuse_unexpected(at, OPERAND)
        if not _WORD.fullmatch(token.text):
            plain = _WORD.match(token.text)
            odd = plain.end() if plain else 0
            self.refuse(token.start + odd, token.text[odd], OPERATOR if odd else OPERAND)

    def _check_comments(self) -> None:
        """Refuse comments, which the tokenizer skips."""
        ends = [0, *(token.end + 1 for token in self.tokens)]
        starts = [*(token.start for token in self.tokens), len(self.text)]
        for end, start in zip(ends, starts, strict=True):
            skipped = self.text[end:start]
            if skipped.strip():
                place = start - len(skipped.lstrip())
                self.refuse(place, self.text[place : place + 2], _COMMENT)


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
            tokens[-1] = Token(TokenType.NUMBER, f".{token.text}", start=dot.start, end=token.end)
        else:
            tokens.append(token)
    return tokens


def shortened(text: str) -> str:
    """The text as error messages show it."""
    return repr(text if len(text) <= _MAX_SHOWN else f"{text[:_MAX_SHOWN]}...")
