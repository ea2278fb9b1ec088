"""Look up classes by name, including classes that users define."""

from __future__ import annotations

from typing import TypeVar

from tidegate.types import InputError, perhaps, refuse_class

T = TypeVar("T")


def classes_by_name(classes: list[type[T]]) -> dict[str, type[T]]:
    """These classes and their subclasses by name; a class that only inherits its name is not listed."""
    by_name: dict[str, type[T]] = {}
    pending = list(classes)
    while pending:
        cls = pending.pop()
        pending += cls.__subclasses__()
        if "name" in vars(cls):
            by_name[vars(cls)["name"]] = cls
    return by_name


def find_class(name: object, known: dict[str, type[T]], what: str) -> type[T]:
    """The class of that name; the error for an unknown name lists all names and the most similar one.

    Examples
    --------
    >>> find_class("floot", {"int": int, "float": float}, "number")
    Traceback (most recent call last):
    tidegate.InputError: number 'floot' is not known; use one of float, int; did you mean 'float'?
    """
    refuse_class(name, what, "")
    if not isinstance(name, str) or name not in known:
        names = sorted(known)
        raise InputError(f"{what} {name!r} is not known; use one of {', '.join(names)}{perhaps(name, names)}")
    return known[name]
