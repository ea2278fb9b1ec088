"""The state of a part of a join, as named arrays.

A class declares its state: the names of the saved arrays, and which attributes are in them. One walker, `Stateful`,
saves and restores them. The names are a format: checkpoints of earlier releases have them.

| field | attributes |
|---|---|
| `ArrayField` | an array |
| `Numbers` | some numbers, saved in one array |
| `TimeOrNone` | a time that may be missing |
| `Tuple` | a tuple of numbers |
| `Opposites` | a number for each side, one the negative of the other |
| `Record` | an object that consists of arrays |
| `Nested` | an object with a state of its own |
| `Unused` | none: what only other settings need |

The name of a `Record` or a `Nested` is the prefix of its names. If a name contains `{}`, the attribute is a mapping,
and the field applies to each of its values. `{}` stands for the key.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from copy import copy
from dataclasses import fields, is_dataclass
from functools import cache
from operator import attrgetter, itemgetter
from typing import Any, ClassVar, Protocol, Self, TypeAlias

import numpy as np

from tidegate.types.errors import InputError
from tidegate.types.window import SIDES, Array, Side, Time


class Field(ABC):
    """Which attributes of an object are saved in which arrays.

    Attributes
    ----------
    rests
        What follows the field's name in the names of its arrays; None for anything.
    required
        Whether a state without the field is refused. If it is not, the attributes keep their values.
    """

    rests: tuple[str, ...] | None = ("",)
    required: bool = True

    @abstractmethod
    def save(self, owner: object, name: str) -> dict[str, Array]:
        """The arrays of this field."""

    @abstractmethod
    def load(self, owner: object, name: str, state: dict[str, Array]) -> None:
        """Take the arrays of this field out of a state, and set the attributes."""

    def optional(self) -> Self:
        """The same field, for states that may lack it."""
        changed = copy(self)
        changed.required = False
        return changed

    def take(self, owner: object, name: str, state: dict[str, Array]) -> dict[str, Array] | None:
        """Take the arrays of this field out of a state; None if it lacks them."""
        if self.rests is None:
            names = [each for each in state if each.startswith(name)]
            found = {each.removeprefix(name): state.pop(each) for each in names}
            return found if found or self.required else None
        missing = [rest for rest in self.rests if name + rest not in state]
        if not missing:
            return {rest: state.pop(name + rest) for rest in self.rests}
        if self.required or len(missing) < len(self.rests):
            raise InputError(
                f"the saved state of {type(owner).__name__} has no {name + missing[0]!r}; "
                "restore the checkpoint from a copy, or start with a new one"
            )
        return None


State: TypeAlias = Mapping[str, "Field | tuple[Field, ...]"]


class Stateful(Protocol):
    """An object whose class declares its state.

    Attributes
    ----------
    state
        The fields by name. A name may have several fields.

    Examples
    --------
    >>> class Counter(Stateful):
    ...     state = {"counts": ArrayField("_counts"), "clock": Numbers(_now=float, rows=int)}
    ...     def __init__(self):
    ...         self._counts, self._now, self.rows = np.zeros(2), 0.5, 3
    >>> Counter().snapshot()
    {'counts': array([0., 0.]), 'clock': array([0.5, 3. ])}
    >>> Counter().restore({"counts": np.ones(2), "clock": np.array([7.0, 9.0])}).rows
    9
    """

    state: ClassVar[State] = {}

    def snapshot(self) -> dict[str, Array]:
        """The state, as named arrays."""
        arrays: dict[str, Array] = {}
        for name, field in _declared(type(self)):
            arrays |= field.save(self, name)
        return arrays

    def restore(self, state: dict[str, Array]) -> Self:
        """Continue from what `snapshot` returned."""
        rest = dict(state)
        for name, field in _declared(type(self)):
            field.load(self, name, rest)
        if rest:
            kept = f"the state {sorted(self.state)}" if self.state else "no state"
            raise InputError(
                f"{type(self).__name__} keeps {kept} but was given {sorted(rest)}; restore with its own"
            )
        self.after_restore()
        return self

    def after_restore(self) -> None:
        """Compute what follows from the state."""
        return


@cache
def _declared(kind: type[Stateful]) -> list[tuple[str, Field]]:
    """The fields. One that takes all names with its prefix is last; of several, that with the shortest prefix."""
    found = [
        (name, field)
        for name, given in kind.state.items()
        for field in (given if isinstance(given, tuple) else (given,))
    ]
    return sorted(found, key=lambda each: (each[1].rests is None, -len(each[0])))


class Numbers(Field):
    """Numbers that are saved in one array.

    Parameters
    ----------
    attributes
        For each attribute, in this order, what it is: `int`, `float`, `bool`, a `Time`; or an `np.ndarray`, a `dict`
        or a `tuple` of such, whose size does not change.
    """

    def __init__(self, **attributes: Any) -> None:  # noqa: ANN401 - types, and unions of them
        self._attributes = attributes
        # Otherwise whole numbers, or times as they are.
        self._dtype = np.float64 if {float, np.ndarray} & {*attributes.values()} else None
        self._longer = False

    def or_longer(self) -> Self:
        """The same field, for states whose array may have further numbers, which are not needed any more."""
        changed = copy(self)
        changed._longer = True  # noqa: SLF001 - a copy of itself
        return changed

    def save(self, owner: object, name: str) -> dict[str, Array]:
        """The arrays of this field."""
        numbers = [number for at in self._attributes for number in _numbers(getattr(owner, at))]
        return {name: np.array(numbers, self._dtype)}

    def load(self, owner: object, name: str, state: dict[str, Array]) -> None:
        """Take the arrays of this field out of a state, and set the attributes."""
        found = self.take(owner, name, state)
        if found is None:
            return
        numbers = found[""].ravel().tolist()
        size = sum(len(_numbers(getattr(owner, attribute))) for attribute in self._attributes)
        if len(numbers) < size or (len(numbers) > size and not self._longer):
            raise InputError(
                f"the saved state of {type(owner).__name__} has {len(numbers)} numbers in {name!r}, not {size}; "
                "restore the checkpoint from a copy, or start with a new one"
            )
        rest = iter(numbers)
        for attribute, kind in self._attributes.items():
            value = _with_numbers(getattr(owner, attribute), rest)
            setattr(owner, attribute, kind(value) if kind in {int, float, bool} else value)


def _numbers(value: Any) -> list[Time]:  # noqa: ANN401 - any of the kinds of `Numbers`
    if isinstance(value, np.ndarray):
        return value.ravel().tolist()
    if isinstance(value, dict | tuple):
        parts = value.values() if isinstance(value, dict) else value
        return [number for part in parts for number in _numbers(part)]
    return [value]


def _with_numbers(value: Any, numbers: Iterator[Time]) -> Any:  # noqa: ANN401 - as above
    """The same object with the next numbers."""
    if isinstance(value, np.ndarray):
        return np.fromiter(numbers, value.dtype, value.size).reshape(value.shape)
    if isinstance(value, dict):
        return {key: _with_numbers(part, numbers) for key, part in value.items()}
    if isinstance(value, tuple):
        return tuple(_with_numbers(part, numbers) for part in value)
    return next(numbers)


class Unused(Field):
    """What other settings save by names with this prefix, and these settings do not need."""

    rests = None
    required = False

    def save(self, owner: object, name: str) -> dict[str, Array]:  # noqa: ARG002 - nothing
        """Nothing."""
        return {}

    def load(self, owner: object, name: str, state: dict[str, Array]) -> None:
        """Take the arrays, and drop them."""
        self.take(owner, name, state)


class Attribute(Field):
    """A field of one attribute; with dots, an attribute of an attribute."""

    def __init__(self, attribute: str) -> None:
        self._get = attrgetter(attribute)
        self._holder, _, self._attribute = attribute.rpartition(".")

    @abstractmethod
    def encode(self, value: Any) -> dict[str, Array]:  # noqa: ANN401 - each kind has its own
        """The arrays of a value, by what follows the field's name."""

    @abstractmethod
    def decode(self, value: Any, arrays: dict[str, Array]) -> object:  # noqa: ANN401 - each kind has its own
        """The value of these arrays, from the one before; None to keep that one."""

    def save(self, owner: object, name: str) -> dict[str, Array]:
        """The arrays of this field."""
        value = self._get(owner)
        if "{}" not in name:
            return {name + rest: array for rest, array in self.encode(value).items()}
        return {
            name.replace("{}", key) + rest: array
            for key, each in sorted(_by_key(value).items(), key=itemgetter(0))
            for rest, array in self.encode(each).items()
        }

    def load(self, owner: object, name: str, state: dict[str, Array]) -> None:
        """Take the arrays of this field out of a state, and set the attribute."""
        value = self._get(owner)
        if "{}" in name:
            values = _by_key(value)
            # A key may begin with another one and a dot: the longer one first.
            for key in sorted(values, key=len, reverse=True) or SIDES:
                new = self._load(owner, name.replace("{}", key), state, values.get(key))
                if new is not None:
                    values[key] = new
        else:
            new = self._load(owner, name, state, value)
            if new is not None:
                setattr(attrgetter(self._holder)(owner) if self._holder else owner, self._attribute, new)

    def _load(self, owner: object, name: str, state: dict[str, Array], value: object) -> object:
        arrays = self.take(owner, name, state)
        return None if arrays is None else self.decode(value, arrays)


def _by_key(value: Any) -> dict[str, Any]:  # noqa: ANN401 - a mapping, or a named tuple
    return value if isinstance(value, dict) else value._asdict()


class ArrayField(Attribute):
    """An array.

    Parameters
    ----------
    attribute
        Its name.
    shape
        The shape of an array of several dimensions, which is saved in one; -1 for what the length gives.
    """

    def __init__(self, attribute: str, shape: tuple[int, ...] = (-1,)) -> None:
        super().__init__(attribute)
        self._shape = shape

    def encode(self, value: Array) -> dict[str, Array]:
        """A copy in one dimension."""
        return {"": value.flatten()}

    def decode(self, value: Array, arrays: dict[str, Array]) -> Array:  # noqa: ARG002 - replaced
        """A copy in its shape."""
        return arrays[""].reshape(self._shape).copy()


class TimeOrNone(Attribute):
    """A time, or None; saved as an array of at most one number."""

    def encode(self, value: Time | None) -> dict[str, Array]:
        """The time, if there is one."""
        return {"": np.array([] if value is None else [value])}

    def decode(self, value: Time | None, arrays: dict[str, Array]) -> Time | None:  # noqa: ARG002 - replaced
        """The time, if there is one."""
        return next(iter(arrays[""].tolist()), None)


class Tuple(Attribute):
    """A tuple of numbers, or None, of which nothing is saved.

    Parameters
    ----------
    attribute
        Its name.
    dtype
        The type of the numbers.
    """

    def __init__(self, attribute: str, dtype: type[np.generic]) -> None:
        super().__init__(attribute)
        self._dtype = dtype

    def encode(self, value: tuple[Time, ...] | None) -> dict[str, Array]:
        """The numbers."""
        return {} if value is None else {"": np.array(value, self._dtype)}

    def decode(self, value: object, arrays: dict[str, Array]) -> tuple[Time, ...]:  # noqa: ARG002 - replaced
        """The numbers."""
        return tuple(arrays[""].astype(self._dtype).tolist())


class Opposites(Attribute):
    """A number for each side, that of the right the negative of that of the left, which is saved."""

    def encode(self, value: dict[Side, Time]) -> dict[str, Array]:
        """The number of the left."""
        return {"": np.array([value["left"]], np.float64)}

    def decode(self, value: object, arrays: dict[str, Array]) -> dict[Side, Time]:  # noqa: ARG002 - replaced
        """The numbers of both sides."""
        [left] = arrays[""].tolist()
        return {"left": left, "right": -left}


class Record(Attribute):
    """An object that consists of arrays, none of which changes; or None, of which nothing is saved.

    Parameters
    ----------
    attribute
        Its name.
    kind
        Its class: a named tuple or a dataclass.
    copied
        Whether restored arrays are copies. They need not be if a property takes them and does not keep them.
    """

    def __init__(self, attribute: str, kind: type, *, copied: bool = True) -> None:
        super().__init__(attribute)
        self._kind, self._copied = kind, copied
        self.rests = (
            tuple(field.name for field in fields(kind) if field.init) if is_dataclass(kind) else kind._fields  # type: ignore[attr-defined]
        )

    def encode(self, value: object) -> dict[str, Array]:
        """Its arrays."""
        return {} if value is None else {name: getattr(value, name) for name in self.rests or ()}

    def decode(self, value: object, arrays: dict[str, Array]) -> object:  # noqa: ARG002 - replaced
        """A new object."""
        return self._kind(**{name: array.copy() if self._copied else array for name, array in arrays.items()})


class Nested(Attribute):
    """An object with `snapshot` and `restore`, or None, of which nothing is saved or restored."""

    rests = None

    def encode(self, value: Stateful | None) -> dict[str, Array]:
        """Its state."""
        return {} if value is None else value.snapshot()

    def decode(self, value: Stateful | None, arrays: dict[str, Array]) -> Stateful | None:
        """The object that continues from its state."""
        return None if value is None else value.restore(arrays)


def as_part(name: str, state: Mapping[str, Array]) -> dict[str, Array]:
    """A snapshot as part of a larger one: its arrays by names that `parts_of` separates."""
    return {f"{name}.{each}": array for each, array in state.items()}


def parts_of(state: Mapping[str, Array]) -> dict[str, dict[str, Array]]:
    """Split a snapshot into its parts, whose names are before the dots.

    Examples
    --------
    >>> import numpy as np
    >>> rate = {"left": np.array([1]), "right": np.array([2])}
    >>> parts_of({"clock": np.array([3])} | as_part("rate", rate))
    {'clock': {'': array([3])}, 'rate': {'left': array([1]), 'right': array([2])}}
    """
    parts: dict[str, dict[str, Array]] = {}
    for name, array in state.items():
        part, _, rest = name.partition(".")
        parts.setdefault(part, {})[rest] = array
    return parts
