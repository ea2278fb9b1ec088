"""Classes that users call by name: each that has one, their own included once it is defined."""

from __future__ import annotations

from typing import TypeVar

from tidegate.types import InputError, perhaps, refuse_class

T = TypeVar("T")


def named(classes: list[type[T]]) -> dict[str, type[T]]:
    """These classes and all below them, by name; one that merely inherits a name is not listed."""
    found: dict[str, type[T]] = {}
    waiting = list(classes)
    while waiting:
        cls = waiting.pop()
        waiting += cls.__subclasses__()
        if "name" in vars(cls):
            found[vars(cls)["name"]] = cls
    return found


def called(name: object, known: dict[str, type[T]], what: str) -> type[T]:
    """The class of that name; if there is none, all names are listed, and the one that may be meant.

    Examples
    --------
    >>> called("floot", {"int": int, "float": float}, "number")
    Traceback (most recent call last):
    tidegate.types.InputError: number 'floot' is not known; use one of float, int; did you mean 'float'?
    """
    refuse_class(name, what, "")
    if not isinstance(name, str) or name not in known:
        names = sorted(known)
        raise InputError(f"{what} {name!r} is not known; use one of {', '.join(names)}{perhaps(name, names)}")
    return known[name]
