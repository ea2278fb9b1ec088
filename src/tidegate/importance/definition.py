"""The contract of a definition of importance: a number for each row, from the columns of its side.

Users define importance by the attributes of a row or by its side. A definition is frozen, can be written as JSON,
and is evaluated on whole columns. Importance is a finite number, 0 or more. A row without such a number is refused,
unless the definition has a default.

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

from tidegate.arrow_columns import one_chunk
from tidegate.types import SIDES, InputError, refuse_class

if TYPE_CHECKING:
    from tidegate.importance.definition_file import DefinitionFile
    from tidegate.types import Array, Side

DefinitionLike: TypeAlias = "Definition | str | float | Mapping[Any, Any] | Sequence[Any]"
"""The ways to write a definition; `Definition.of` reads them."""

ReadFile: TypeAlias = "Callable[[DefinitionFile], Definition]"


@dataclass(frozen=True)
class Attributes:
    """The columns of some rows of one side.

    Parameters
    ----------
    side
        The side of the rows.
    count
        The number of rows.
    columns
        The columns by name.
    computed
        Columns that Spark computed, by their SQL expression.
    """

    side: Side
    count: int
    columns: Mapping[str, pa.Array | pa.ChunkedArray]
    computed: Mapping[str, pa.Array | pa.ChunkedArray] = field(default_factory=dict)

    def column(self, name: str) -> pa.Array:
        """A column as one array."""
        if name not in self.columns:
            have = ", ".join(self.columns) or "none"
            raise InputError(f"importance: {self.side} has no column {name!r}; it has {have}")
        return as_array(self.columns[name])


class Definition(ABC):
    """The importance of rows.

    To write another one, derive a frozen dataclass with a `kind` of its own and plain values as fields.
    """

    kind: ClassVar[str]

    @staticmethod
    def of(value: DefinitionLike) -> Definition:
        """Read a definition.

        | value | definition |
        |---|---|
        | a name | that column |
        | a number | the same importance for all rows |
        | a pair | one definition for the left side and one for the right |
        | a mapping with a `kind` | the output of `to_dict` |

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
            return _from_mapping(value)
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
    def evaluate(self, rows: Attributes) -> Array:
        """The importance of each row; for no rows too, if the columns are suitable."""

    def parts(self) -> tuple[Definition, ...]:
        """The definitions that it combines."""
        return ()

    def on(self, side: Side) -> Definition:  # noqa: ARG002 - most are the same on both
        """The definition for one side."""
        return self

    def with_files(self, read: ReadFile) -> Definition:  # noqa: ARG002 - most read no file
        """The same with every `DefinitionFile` replaced by the definition that `read` returns for it."""
        return self

    def to_dict(self) -> dict[str, Any]:
        """The definition as values that JSON can hold, which `of` reads."""
        values = {f.name: getattr(self, f.name) for f in fields(self)}  # type: ignore[arg-type]
        return {"kind": self.kind} | {name: _as_json(v) for name, v in values.items() if v is not None}


def evaluate_importance(definition: Definition, rows: Attributes) -> Array:
    """The importance of each row, checked: a finite number, 0 or more.

    Examples
    --------
    >>> evaluate_importance(Definition.of("price"), Attributes("left", 2, {"price": pa.array([3, 0.5])}))
    array([3. , 0.5])
    >>> evaluate_importance(Definition.of("price"), Attributes("left", 2, {"price": pa.array([3, None])}))
    Traceback (most recent call last):
    tidegate.InputError: importance: left.price is null or NaN; fill it (coalesce), or give a default=
    """
    importance = definition.on(rows.side).evaluate(rows)
    check_importance(importance, f"{definition!r} on the {rows.side}")
    return importance


def check_importance(importance: Array, what: str) -> None:
    """Refuse importance that is not a finite number, 0 or more."""
    bad = np.flatnonzero(~((importance >= 0) & (importance < np.inf)))
    if len(bad):
        raise InputError(
            f"importance: {what} is {importance[bad[0]]:g}; give a finite number, 0 or more, e.g. greatest(..., 0)"
        )


def number(value: object, what: str) -> float:
    """Check an importance that the user wrote."""
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
            f"importance: {what} is of type {kind}; give numbers, or list the importance of each value in Categories"
        )
    floats: Array = column.cast(pa.float64(), safe=False).to_numpy(zero_copy_only=False)
    return floats


def walk(definition: Definition) -> Iterator[Definition]:
    """A definition and all of its parts."""
    yield definition
    for part in definition.parts():
        yield from walk(part)


def as_array(column: pa.Array | pa.ChunkedArray) -> pa.Array:
    """A column as one array."""
    return column if isinstance(column, pa.Array) else one_chunk(column)


def _kinds() -> dict[str, type[Definition]]:
    return {cls.kind: cls for cls in Definition.__subclasses__()}


def _from_mapping(value: Mapping[str, Any]) -> Definition:
    known = _kinds()
    settings = dict(value)
    kind = settings.pop("kind", None)
    if not isinstance(kind, str) or kind not in known:
        raise InputError(
            f"importance of kind {kind!r} is not known; write kind = one of {', '.join(sorted(known))}"
        )
    parameters = {f.name: f.default for f in fields(known[kind])}  # type: ignore[arg-type]
    for name in settings:
        if name not in parameters:
            raise InputError(f"importance of kind {kind!r} has no {name!r}; it has {', '.join(parameters)}")
    absent = [name for name, default in parameters.items() if default is MISSING and name not in settings]
    if absent:
        raise InputError(f"importance of kind {kind!r} lacks {absent[0]!r}; it has {', '.join(parameters)}")
    return known[kind](**settings)


def _as_json(value: object) -> object:
    if isinstance(value, Definition):
        return value.to_dict()
    if isinstance(value, Mapping):
        texts = all(isinstance(name, str) for name in value)
        return dict(value) if texts else [[name, part] for name, part in value.items()]
    return [_as_json(part) for part in value] if isinstance(value, tuple) else value
