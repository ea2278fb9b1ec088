"""Frozen dataclasses with arrays, compared by value and written as JSON."""

from __future__ import annotations

from dataclasses import fields
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from _typeshed import DataclassInstance


class ValueObject:
    """Base of frozen dataclasses that hold arrays: equality by value, and conversion to plain values.

    Subclasses are declared with `eq=False`, since the generated comparison fails on arrays.
    """

    def to_parameters(self: DataclassInstance) -> dict[str, Any]:
        """The arguments of the constructor, as values that JSON can hold."""
        return {field.name: _as_json(getattr(self, field.name)) for field in fields(self) if field.init}

    @cached_property
    def _key(self) -> tuple[object, ...]:
        return tuple(map(repr, self.to_parameters().values()))  # type: ignore[misc]

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and isinstance(other, ValueObject) and self._key == other._key

    def __hash__(self) -> int:
        return hash(self._key)


def _as_json(value: object) -> object:
    if isinstance(value, np.ndarray):
        return value.tolist()
    if isinstance(value, ValueObject):
        return value.to_parameters()  # type: ignore[misc]
    return [_as_json(part) for part in value] if isinstance(value, tuple) else value
