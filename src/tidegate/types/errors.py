"""The error of invalid input, and checks that raise it."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Sequence
from functools import cache
from typing import get_args


class InputError(ValueError):
    """What the user gave cannot be used; the message names the value and the remedy."""

    __module__ = "tidegate"  # the name that users know


_members = cache(get_args)  # called at every step


def check_choice(value: object, kind: object, what: str) -> None:
    """Refuse a value that is not one of the Literal type's members, and list them."""
    known = _members(kind)
    if not isinstance(value, str) or value not in known:
        listed = ", ".join(map(repr, known))
        raise InputError(f"{what} {value!r} is not known; use one of {listed}{perhaps(value, known)}")


def perhaps(value: object, known: Iterable[str]) -> str:
    """The most similar of the known names, as the end of a message; empty if none is similar.

    Examples
    --------
    >>> perhaps("Random", ["fifo", "random"])
    "; did you mean 'random'?"
    """
    near = difflib.get_close_matches(str(value).casefold(), list(known), n=1) if value else []
    return f"; did you mean {near[0]!r}?" if near else ""


def refuse_class(value: object, what: str, given: str = "...") -> None:
    """Refuse a class where one of its objects is needed; `given` are its arguments, for the message."""
    if isinstance(value, type):
        raise InputError(f"{what} is the class {value.__name__}; call it: {value.__name__}({given})")


def first_missing(names: Iterable[str], have: Sequence[str]) -> str | None:
    """The first of `names` that is not among `have`."""
    return next((name for name in names if name not in have), None)
