"""Frozen dataclasses with arrays, compared by value and written as JSON."""

from __future__ import annotations

from functools import cached_property
from typing import Any, ClassVar, Self, TypeVar

from tidegate.registry import from_parameters, to_parameters
from tidegate.types import InputError

T = TypeVar("T")


class ValueObject:
    """Base of frozen dataclasses that hold arrays: equality by value, and conversion to plain values.

    Subclasses are declared with `eq=False`, since the generated comparison fails on arrays.

    Attributes
    ----------
    family
        What a class is called of which there are several; its name is then one of the parameters.
    """

    family: ClassVar[str] = ""

    def to_parameters(self) -> dict[str, Any]:
        """The arguments of the constructor, as values that JSON can hold."""
        kind = {self.family: type(self).__name__} if self.family else {}
        return kind | to_parameters(self)

    @classmethod
    def from_parameters(cls, parameters: dict[str, Any]) -> Self:
        """The object that `to_parameters` described."""
        if not cls.family:
            return from_parameters(cls, parameters)
        kinds = {kind.__name__: kind for kind in _with_subclasses(cls)}
        name = parameters.get(cls.family)
        if name not in kinds:
            raise InputError(f"{cls.family} {name!r} is not known; use one of {', '.join(sorted(kinds))}")
        rest = {each: value for each, value in parameters.items() if each != cls.family}
        return from_parameters(kinds[name], rest)

    @cached_property
    def _key(self) -> tuple[object, ...]:
        return tuple(map(repr, self.to_parameters().values()))

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and isinstance(other, ValueObject) and self._key == other._key

    def __hash__(self) -> int:
        return hash(self._key)


def _with_subclasses(kind: type[T]) -> list[type[T]]:
    return [kind, *(deeper for each in kind.__subclasses__() for deeper in _with_subclasses(each))]
