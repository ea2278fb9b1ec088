"""Parse untrusted TOML text in time proportional to its length.

The time of Python's parser grows with the square of the number of parts of a dotted key, or faster. It fails with
unclear errors on deep nesting and long numbers. So one pass over the tokens refuses all three before parsing.
"""

from __future__ import annotations

import re
import tomllib
from typing import Any, Final

from tidegate.types import InputError

_MAX_DEPTH: Final = 64
_MAX_WORD: Final = 1000
_TOKENS: Final = re.compile(
    r'''
    (?P<string>"""(?:[^"\\]|\\.|"(?!""))*+"{3,5}+|\'\'\'(?:[^']|'(?!''))*+\'{3,5}+
        |"(?!"")(?:[^"\\\n]|\\[^\n])*+"|\'(?!\'\')[^'\n]*+\')
    | (?P<unclosed>["'])
    | (?P<comment>\#[^\n]*+)
    | (?P<word>[A-Za-z0-9_+-]++)
    | (?P<open>[\[{])
    | (?P<close>[\]}])
    | (?P<dot>\.)
    | (?P<end>[\n=,])
    | (?P<other>[^"'\#A-Za-z0-9_+\-\[{\]}.\n=,]++)
    ''',
    re.VERBOSE | re.DOTALL,
)


def parse_toml(text: str) -> dict[str, Any]:
    """Parse a TOML document.

    Raises
    ------
    InputError
        It is not TOML, has more than 64 levels or parts of a key, or a number or key of more than 1,000 characters.

    Examples
    --------
    >>> parse_toml("a.b = [1, 2]")
    {'a': {'b': [1, 2]}}
    >>> parse_toml("a = " + "[" * 1000)
    Traceback (most recent call last):
    tidegate.InputError: line 1: nested more than 64 deep; use fewer levels
    """
    # Some editors write a byte order mark.
    text = text.removeprefix("\ufeff")
    _check_shape(text)
    try:
        return tomllib.loads(text)
    except (ValueError, RecursionError) as error:
        raise InputError(f"not TOML: {error}") from error


def _check_shape(text: str) -> None:
    depth = dots = 0
    for token in _TOKENS.finditer(text):
        kind = token.lastgroup
        if kind == "unclosed":
            # The parser refuses it, too.
            return
        if kind == "dot":
            dots += 1
        elif kind in {"open", "close", "end"}:
            depth += (kind == "open") - (kind == "close")
            dots = 0
        if depth > _MAX_DEPTH:
            raise _refusal(text, token, f"nested more than {_MAX_DEPTH} deep; use fewer levels")
        if dots >= _MAX_DEPTH:
            raise _refusal(text, token, f"a key of more than {_MAX_DEPTH} parts; use fewer dots")
        if kind == "word" and token.end() - token.start() > _MAX_WORD:
            what = f"a number or key of more than {_MAX_WORD:,} characters; shorten it, or write it in quotes"
            raise _refusal(text, token, what)


def _refusal(text: str, token: re.Match[str], what: str) -> InputError:
    return InputError(f"line {text.count(chr(10), 0, token.start()) + 1}: {what}")
