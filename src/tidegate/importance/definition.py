"""The contract of every definition of importance: from the attributes of rows to a number each, by columns.

Importance is the user's to define, over the attributes of a row or over the side that it came from. A definition is
frozen, says what it is in values that JSON can hold, and is evaluated on whole columns. What it gives is a finite
number, 0 or more, for every row; a row that has no such number is refused, unless the definition has a default.

References
----------
iJoin, sections 1 and 3.1 (equation 1).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import MISSING, dataclass, field, fields
from typing import TYPE_CHECKING, Any, ClassVar, TypeAlias

import numpy as np
import pyarrow as pa

from tidegate.streams.trace import one_chunk
from tidegate.types import SIDES, InputError, refuse_class

if TYPE_CHECKING:
    from tidegate.importance.watched import Watched
    from tidegate.types import Array, Side

Stated: TypeAlias = "Definition | str | float | Mapping[Any, Any] | Sequence[Any]"
"""What a user may write for a definition; `Definition.of` reads it."""

Found: TypeAlias = "Callable[[Watched], Definition]"


@dataclass(frozen=True)
class Attributes:
    """The columns of some rows of one side.

    Parameters
    ----------
    side
        Which.
    count
        How many rows.
    columns
        What they have, by name.
    computed
        What Spark computed of them, by its SQL.
    """

    side: Side
    count: int
    columns: Mapping[str, pa.Array | pa.ChunkedArray]
    computed: Mapping[str, pa.Array | pa.ChunkedArray] = field(default_factory=dict)

    def column(self, name: str) -> pa.Array:
        """One of the columns, in one piece."""
        if name not in self.columns:
            have = ", ".join(self.columns) or "none"
            raise InputError(f"importance: {self.side} has no column {name!r} to go by; it has {have}")
        return in_one(self.columns[name])


class Definition(ABC):
    """What rows are worth.

    A definition of one's own is a frozen dataclass with a `kind`, whose fields are plain values.
    """

    kind: ClassVar[str]

    @staticmethod
    def of(value: Stated) -> Definition:
        """Read what the user wrote.

        A name is that column, a number is the same for all rows, a pair is one for the left and one for the right,
        and a mapping with a `kind` is what `plain` gives.

        Examples
        --------
        >>> Definition.of("price")
        Column(name='price', default=None)
        >>> Definition.of(["price", {"kind": "categories", "column": "topic", "values": {"sports": 2}}])
        Sides(left=Column(name='price', default=None),
              right=Categories(column='topic', values={'sports': 2.0}, default=None))
        """
        if isinstance(value, Definition):
            return value
        if isinstance(value, Mapping):
            return _described(value)
        refuse_class(value, "importance")
        kinds = _kinds()
        if isinstance(value, str):
            return kinds["column"](value)  # type: ignore[call-arg]
        if isinstance(value, int | float | np.number) and not isinstance(value, bool):
            return kinds["source"](value, value)  # type: ignore[call-arg]
        if isinstance(value, Sequence) and len(value) == len(SIDES):
            return kinds["sides"](*value)
        raise InputError(
            f"importance {value!r} is not a definition; give a column's name, a number, one of "
            "tidegate.importance, or a pair (left, right) of these"
        )

    @abstractmethod
    def worth(self, rows: Attributes) -> Array:
        """What each of these rows is worth; also for no rows at all, as long as their columns will do."""

    def parts(self) -> tuple[Definition, ...]:
        """The definitions that it is made of."""
        return ()

    def on(self, side: Side) -> Definition:  # noqa: ARG002 - most are the same on both
        """What it comes to on one side."""
        return self

    def settled(self, found: Found) -> Definition:  # noqa: ARG002 - most stand for themselves
        """The same with what was `found` in place of each `Watched`."""
        return self

    def plain(self) -> dict[str, Any]:
        """What makes it again (`of`), as values that JSON can hold."""
        told = {f.name: getattr(self, f.name) for f in fields(self)}  # type: ignore[arg-type]
        return {"kind": self.kind} | {name: _plain(v) for name, v in told.items() if v is not None}


def valued(definition: Definition, rows: Attributes) -> Array:
    """What each of some rows is worth; a definition must give every one a finite number, 0 or more.

    Examples
    --------
    >>> valued(Definition.of("price"), Attributes("left", 2, {"price": pa.array([3, 0.5])}))
    array([3. , 0.5])
    >>> valued(Definition.of("price"), Attributes("left", 2, {"price": pa.array([3, None])}))
    Traceback (most recent call last):
    tidegate.types.InputError: importance: left.price is null or NaN; fill it (coalesce), or give a default=
    """
    worth = definition.on(rows.side).worth(rows)
    checked(worth, f"{definition!r} on the {rows.side}")
    return worth


def checked(worth: Array, what: str) -> None:
    """Refuse importances that are not finite numbers, 0 or more."""
    bad = np.flatnonzero(~((worth >= 0) & (worth < np.inf)))
    if len(bad):
        raise InputError(
            f"importance: {what} is {worth[bad[0]]:g}; give a finite number, 0 or more, e.g. greatest(..., 0)"
        )


def number(value: object, what: str) -> float:
    """One importance that the user wrote."""
    fits = isinstance(value, int | float | np.number) and not isinstance(value, bool)
    if not fits or not 0 <= value < np.inf:  # type: ignore[operator]
        raise InputError(f"{what} is {value!r}; importance is a finite number, 0 or more")
    return float(value)  # type: ignore[arg-type]


def numbers(column: pa.Array, what: str) -> Array:
    """A column of numbers as floats; null is NaN."""
    kind = column.type
    if not (
        pa.types.is_integer(kind)
        or pa.types.is_floating(kind)
        or pa.types.is_decimal(kind)
        or pa.types.is_null(kind)
    ):
        raise InputError(
            f"importance: {what} is of type {kind}; give numbers, or say with Categories what each value is worth"
        )
    floats: Array = column.cast(pa.float64(), safe=False).to_numpy(zero_copy_only=False)
    return floats


def walk(definition: Definition) -> Iterator[Definition]:
    """A definition and all that it is made of."""
    yield definition
    for part in definition.parts():
        yield from walk(part)


def in_one(column: pa.Array | pa.ChunkedArray) -> pa.Array:
    """A column in one piece."""
    return column if isinstance(column, pa.Array) else one_chunk(column)


def _kinds() -> dict[str, type[Definition]]:
    return {cls.kind: cls for cls in Definition.__subclasses__()}


def _described(value: Mapping[str, Any]) -> Definition:
    known = _kinds()
    settings = dict(value)
    kind = settings.pop("kind", None)
    if not isinstance(kind, str) or kind not in known:
        raise InputError(
            f"importance of kind {kind!r} is not known; write kind = one of {', '.join(sorted(known))}"
        )
    wanted = {f.name: f.default for f in fields(known[kind])}  # type: ignore[arg-type]
    for name in settings:
        if name not in wanted:
            raise InputError(f"importance of kind {kind!r} has no {name!r}; it has {', '.join(wanted)}")
    absent = [name for name, default in wanted.items() if default is MISSING and name not in settings]
    if absent:
        raise InputError(f"importance of kind {kind!r} lacks {absent[0]!r}; it has {', '.join(wanted)}")
    return known[kind](**settings)


def _plain(value: object) -> object:
    if isinstance(value, Definition):
        return value.plain()
    if isinstance(value, Mapping):
        texts = all(isinstance(name, str) for name in value)
        return dict(value) if texts else [[name, part] for name, part in value.items()]
    return [_plain(part) for part in value] if isinstance(value, tuple) else value
