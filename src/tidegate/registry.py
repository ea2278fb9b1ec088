"""Make objects of plain values: look up classes by name, also those that users define, and fill their fields."""

from __future__ import annotations

from dataclasses import fields
from typing import Any, TypeVar, get_args, get_type_hints

import numpy as np

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


def to_parameters(value: object) -> dict[str, Any]:
    """The arguments of a dataclass's constructor, as values that JSON can hold if those of its fields are plain."""
    given = fields(value)  # type: ignore[arg-type]
    return {field.name: _as_json(getattr(value, field.name)) for field in given if field.init}


def from_parameters(kind: type[T], parameters: dict[str, Any]) -> T:
    """The object of a dataclass that `to_parameters` described: models in it are made as its annotations say."""
    if not any(isinstance(value, dict) for value in parameters.values()):
        return kind(**parameters)
    try:
        hints = get_type_hints(kind)
    except NameError:  # an annotation that only type checkers resolve
        hints = {}
    return kind(**{name: _from_json(value, hints.get(name)) for name, value in parameters.items()})


def _as_json(value: object) -> object:
    if isinstance(value, np.ndarray):
        return value.tolist()
    if hasattr(value, "to_parameters"):
        return value.to_parameters()
    return [_as_json(part) for part in value] if isinstance(value, tuple) else value


def _from_json(value: object, hint: object) -> object:
    for kind in get_args(hint) or (hint,):
        if isinstance(value, dict) and hasattr(kind, "from_parameters"):
            return kind.from_parameters(value)
    return value
